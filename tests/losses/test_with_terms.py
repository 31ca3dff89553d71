"""Terms beside any loss: values, when they begin, what they leave alone."""

from functools import partial

import pytest
import torch
from torch.testing import assert_close

from longtail import heads, losses
from longtail.losses import Center, CrossEntropy, LossWithTerms, SpreadOut

COUNTS = [70, 20, 8, 2]
GENERATOR = torch.Generator().manual_seed(0)
LOGITS = torch.randn(12, 4, generator=GENERATOR, dtype=torch.float64)
FEATURES = torch.randn(12, 3, generator=GENERATOR, dtype=torch.float64)
LABELS = torch.arange(12) % 4
HEAD = heads.EstimatedOffset(3, 4).double()
BESIDE = {
    "LogitAdjusted": losses.LogitAdjusted,
    "LDAM": losses.LDAM,
    "LADE": losses.LADE,
    "ELM": losses.ELM,
    "EstimatedOffset": partial(losses.EstimatedOffset, head=HEAD),
    "DRW": partial(losses.deferred_reweighting, losses.Focal, start=1),
}


@pytest.mark.parametrize("name", BESIDE)
def test_it_is_the_loss_and_the_terms_times_their_weights(name):
    make = BESIDE[name]
    loss = LossWithTerms(make(COUNTS), [(Center(3, 4), 0.3), (SpreadOut("all"), 2.0)]).eval()
    alone = make(COUNTS).eval()
    expected = alone(LOGITS, LABELS, FEATURES)
    expected += 0.3 * Center(3, 4)(FEATURES, LABELS) + 2 * SpreadOut("all")(FEATURES, LABELS)
    assert_close(loss(LOGITS, LABELS, FEATURES), expected)
    assert (loss.carried is None) == (alone.carried is None)
    assert loss.batches.is_close(alone.batches)
    assert not loss.takes_soft_labels
    assert loss.needs_features


def test_experts_may_have_terms_too():
    logits = torch.randn(12, 4, 2, dtype=torch.float64, generator=GENERATOR)
    loss = LossWithTerms(losses.Experts(COUNTS, taus=(0.0, 2.0)), [(Center(3, 4), 0.3)])
    expected = losses.Experts(COUNTS, taus=(0.0, 2.0))(logits, LABELS)
    expected += 0.3 * Center(3, 4)(FEATURES, LABELS)
    assert_close(loss(logits, LABELS, FEATURES), expected)
    assert loss.carried.is_close(losses.Experts(COUNTS, taus=(0.0, 2.0)).carried)


def test_a_term_counts_from_its_start_and_its_centres_follow_before():
    term, always = Center(3, 4), Center(3, 4)
    loss = LossWithTerms(CrossEntropy(COUNTS), [(term, 1.0, 2)])
    plain = CrossEntropy(COUNTS)(LOGITS, LABELS)
    for epoch in (0, 1):
        loss.set_epoch(epoch)
        rows = FEATURES.clone().requires_grad_()
        value = loss(LOGITS.clone().requires_grad_(), LABELS, rows)
        assert_close(value, plain)
        value.backward()
        assert rows.grad is None
        always(FEATURES, LABELS)
    assert torch.equal(term.centers, always.centers)
    assert term.centers.any()
    loss.set_epoch(2)
    rows = FEATURES.clone().requires_grad_()
    value = loss(LOGITS, LABELS, rows)
    assert_close(value, plain + always(FEATURES, LABELS))
    value.backward()
    assert rows.grad.any()
    loss.set_epoch(0)  # an epoch can be said again
    assert_close(loss(LOGITS, LABELS, FEATURES), plain)


def test_a_deferred_loss_switches_inside_and_says_what_is_drawn():
    deferred = losses.deferred_resampling(CrossEntropy, COUNTS, start=3)
    loss = LossWithTerms(deferred, [(SpreadOut(), 0.1)])
    assert loss.resamples
    assert loss.stages == (deferred.before, deferred.after, loss)
    for epoch in (0, 3):
        loss.set_epoch(epoch)
        assert deferred.epoch == epoch
        assert torch.equal(loss.sampling_weights, deferred.sampling_weights)
        assert loss.carried.is_close(deferred.carried)
        assert loss.needs_features


def test_centres_are_in_the_state():
    loss = LossWithTerms(CrossEntropy(COUNTS), [(Center(3, 4), 1.0)])
    loss(LOGITS, LABELS, FEATURES)
    other = LossWithTerms(CrossEntropy(COUNTS), [(Center(3, 4), 1.0)])
    other.load_state_dict(loss.state_dict())
    assert other.terms[0].centers.any()
    assert torch.equal(other.terms[0].centers, loss.terms[0].centers)


def test_what_cannot_be_is_refused():
    loss = LossWithTerms(CrossEntropy(COUNTS), [(Center(3, 4), 1.0)])
    with pytest.raises(ValueError, match="Center takes class indices, not soft labels"):
        loss(LOGITS, torch.softmax(LOGITS, 1), FEATURES)
    with pytest.raises(ValueError, match="terms need features"):
        loss(LOGITS, LABELS)
    with pytest.raises(ValueError, match="no term to add"):
        LossWithTerms(CrossEntropy(COUNTS), [])
    with pytest.raises(ValueError, match="weight of a term must be"):
        LossWithTerms(CrossEntropy(COUNTS), [(Center(3, 4), -1.0)])
    with pytest.raises(ValueError, match="start must be"):
        LossWithTerms(CrossEntropy(COUNTS), [(Center(3, 4), 1.0, -1)])
