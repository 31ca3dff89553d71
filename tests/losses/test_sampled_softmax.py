"""Sampled softmax: what is drawn, how it is corrected, and that all classes give the full one."""

import copy
import math
from collections import Counter
from itertools import combinations

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.testing import assert_close

from longtail import Prior
from longtail.losses import LabelCounts, SampledSoftmax, linear_cross_entropy
from longtail.losses.proposals import ClassDraws, inclusion
from longtail.testing import FiniteWorld
from longtail.testing.head_loss_checks import every_draw

TRAIN = [70, 20, 8, 2]
PROPOSAL = np.array([0.1, 0.4, 0.2, 0.3])
GENERATOR = torch.Generator().manual_seed(0)
FEATURES, LAYER, BIAS = (
    torch.randn(shape, generator=GENERATOR, dtype=torch.float64) for shape in ((6, 3), (4, 3), (4,))
)
LABELS = torch.tensor([0, 1, 2, 3, 0, 1])


def by_hand(negatives_of, expected):
    """The loss of each sample from its negatives, by plain sums; expected is e of each class."""
    logits = (FEATURES @ LAYER.T + BIAS).tolist()
    for i, (z, y) in enumerate(zip(logits, LABELS.tolist(), strict=True)):
        total = math.exp(z[y]) / expected[y]
        total += sum(math.exp(z[k]) / expected[k] for k in negatives_of(i))
        yield math.log(total) - z[y]


def value(loss, **options):
    return loss(FEATURES, LAYER, BIAS, LABELS, **options).tolist()


@pytest.mark.parametrize("corrected", [True, False])
def test_independent_draws_keep_accidental_hits_and_are_corrected_by_m_times_q(corrected):
    loss = SampledSoftmax(TRAIN, PROPOSAL, 3, corrected=corrected, reduction="none")
    drawn = copy.deepcopy(loss.draws)().tolist()
    assert set(drawn) & set(LABELS.tolist())
    expected = 3 * PROPOSAL if corrected else np.ones(4)
    assert value(loss) == pytest.approx(list(by_hand(lambda i: drawn, expected)))


@pytest.mark.parametrize("corrected", [True, False])
def test_distinct_draws_lose_hits_and_are_corrected_by_their_inclusion(corrected):
    options = {"distinct": True, "corrected": corrected, "reduction": "none"}
    loss = SampledSoftmax(TRAIN, PROPOSAL, 2, **options)
    expected = 2 * PROPOSAL if corrected else np.ones(4)
    negatives = [0, 1, 3]

    def others(i):
        return [k for k in negatives if k != LABELS[i]]

    got = value(loss, negatives=torch.tensor(negatives))
    assert got == pytest.approx(list(by_hand(others, expected)))


@pytest.mark.parametrize("corrected", [True, False])
def test_in_batch_negatives_are_the_labels_of_all_others_those_of_the_same_class_too(corrected):
    loss = SampledSoftmax(TRAIN, corrected=corrected, reduction="none")

    def others(i):
        return [y for j, y in enumerate(LABELS.tolist()) if j != i]

    expected = 5 * np.array(TRAIN) / 100 if corrected else np.ones(4)
    assert value(loss) == pytest.approx(list(by_hand(others, expected)))


@pytest.mark.parametrize("proposal", [PROPOSAL, TRAIN])
def test_with_all_classes_included_it_is_the_full_softmax(proposal):
    inputs = [each.clone().requires_grad_() for each in (FEATURES, LAYER, BIAS)]
    loss = SampledSoftmax(TRAIN, proposal, 4, distinct=True)
    assert loss.draws().tolist() == [0, 1, 2, 3]
    got, right = loss(*inputs, LABELS), F.cross_entropy(F.linear(*inputs), LABELS)
    assert_close(got, right, rtol=1e-14, atol=0)
    assert_close(torch.autograd.grad(got, inputs), torch.autograd.grad(right, inputs))
    assert loss.carried == Prior.of(TRAIN)
    assert (
        SampledSoftmax(TRAIN, proposal, 4, distinct=True, corrected=False).carried == loss.carried
    )


@pytest.mark.parametrize("distinct", [False, True])
def test_classes_are_drawn_as_often_as_is_said(distinct):
    draws = ClassDraws(Prior.of(PROPOSAL), 2, distinct, seed=0)
    times = 4000
    seen = Counter(tuple(sorted(draws().tolist())) for _ in range(times))
    loss = SampledSoftmax(TRAIN, PROPOSAL, 2, distinct=distinct)
    right = Counter()
    for probability, classes in every_draw(loss):
        right[tuple(sorted(classes.tolist()))] += probability
    assert sum(right.values()) == pytest.approx(1)
    for classes, probability in right.items():
        error = math.sqrt(probability * (1 - probability) / times)
        assert seen[classes] / times == pytest.approx(probability, abs=5 * error)
    assert set(seen) <= set(right)


@settings(max_examples=50, deadline=None)
@given(weights=st.lists(st.floats(1e-6, 1e3), min_size=1, max_size=30), data=st.data())
def test_inclusion_is_proportional_to_the_proposal_up_to_one_and_adds_up(weights, data):
    number = data.draw(st.integers(1, len(weights)))
    q = Prior.of(weights).probs
    pi = inclusion(Prior.of(weights), number)
    assert pi.sum() == pytest.approx(number)
    assert ((pi > 0) & (pi <= 1)).all()
    below = pi < 1
    if below.any():
        share = (pi / q)[below]
        assert share == pytest.approx(np.full(below.sum(), share[0]))
        assert (share[0] * q[~below] >= 1 - 1e-9).all()


def test_a_class_that_is_always_in_is_in_each_draw():
    draws = ClassDraws(Prior.of([900, 60, 30, 10]), 2, distinct=True, seed=0)
    several = [draws().tolist() for _ in range(200)]
    assert all(0 in classes for classes in several)
    assert all(len(set(classes)) == len(classes) for classes in several)
    assert np.mean([len(classes) for classes in several]) == pytest.approx(2, abs=0.3)


def test_a_fixed_number_of_distinct_classes_would_not_be_consistent():
    # The reason why their number varies: two classes, one after the other without replacement,
    # corrected by the probability that a class is among them.
    q, world = PROPOSAL, FiniteWorld.long_tailed()
    pairs = {
        (a, b): q[a] * q[b] / (1 - q[a]) + q[a] * q[b] / (1 - q[b])
        for a, b in combinations(range(4), 2)
    }
    included = [sum(p for pair, p in pairs.items() if c in pair) for c in range(4)]
    assert sum(included) == pytest.approx(2)
    loss = SampledSoftmax(world.prior, q, 2, distinct=True)
    loss.draws.log_expected.copy_(torch.tensor(included).log())
    layer = torch.eye(4, dtype=torch.float64)

    def expected(logits, labels):
        return sum(
            p * loss(logits, layer, None, labels, negatives=torch.tensor(pair))
            for pair, p in pairs.items()
        )

    posterior = torch.softmax(world.minimise(expected), dim=1)
    assert (posterior - world.posterior(world.prior)).abs().max() > 1e-3


def test_the_mean_over_draws_nears_the_full_loss_as_more_are_drawn():
    full = linear_cross_entropy(FEATURES, LAYER, BIAS, LABELS, TRAIN, TRAIN).item()
    errors = []
    for number in (10, 1000):
        loss = SampledSoftmax(TRAIN, PROPOSAL, number)
        values = [loss(FEATURES, LAYER, BIAS, LABELS).item() for _ in range(200)]
        errors.append(abs(np.mean(values) - full))
    assert errors[1] < errors[0] / 10
    assert errors[1] < 0.01


def test_the_same_seed_draws_the_same_and_a_state_goes_on_where_it_was():
    first, second, other = (SampledSoftmax(TRAIN, PROPOSAL, 8, seed=s).draws for s in (1, 1, 2))
    drawn = [first().tolist() for _ in range(3)]
    assert drawn == [second().tolist() for _ in range(3)]
    assert drawn[0] != drawn[1]
    assert drawn[0] != other().tolist()
    other.load_state_dict(first.state_dict())
    assert other().tolist() == first().tolist()
    assert copy.deepcopy(first)().tolist() == first().tolist()


def test_drawing_does_not_touch_the_global_generator():
    before = torch.get_rng_state()
    value(SampledSoftmax(TRAIN, PROPOSAL, 2))
    value(SampledSoftmax(TRAIN, PROPOSAL, 2, distinct=True))
    assert torch.equal(torch.get_rng_state(), before)


def test_half_precision_of_the_module_leaves_the_draws_exact():
    plain, half = (SampledSoftmax(TRAIN, PROPOSAL, 8) for _ in range(2))
    assert half.half().draws().tolist() == plain.draws().tolist()
    assert half.draws.cumulative.dtype == torch.float64


def test_a_sparse_gradient_has_the_same_numbers():
    grads = []
    for sparse in (False, True):
        layer = LAYER.clone().requires_grad_()
        loss = SampledSoftmax(TRAIN, PROPOSAL, 2, sparse=sparse)
        loss(FEATURES, layer, None, LABELS).backward()
        grads.append(layer.grad)
    assert grads[1].is_sparse
    assert_close(grads[1].to_dense(), grads[0])


def test_counts_are_those_of_all_labels_so_far():
    counts = LabelCounts(4)
    assert counts.prior == Prior.uniform(4)  # half a label of each
    counts.update(LABELS.view(2, 3))
    counts.update(torch.tensor([0, 0, 2, 2]))
    assert counts.prior == Prior.of([4, 2, 3, 1])
    assert_close(counts.log_frequencies(LABELS[:2]), torch.tensor([0.4, 0.2]).double().log())
    other = LabelCounts(4)
    other.load_state_dict(counts.state_dict())
    assert other.prior == counts.prior


def test_counts_that_decay_forget_at_that_rate_for_as_many_batches_as_come():
    counts, by_hand = LabelCounts(3, decay=0.5), np.zeros(3)
    generator = torch.Generator().manual_seed(0)
    for _ in range(700):  # past where the weight of a label would be infinite
        labels = torch.randint(0, 3, (5,), generator=generator)
        counts.update(labels)
        by_hand = by_hand / 2 + np.bincount(labels, minlength=3)
    assert counts.prior.is_close(Prior.of(by_hand))


def test_a_loss_counts_labels_in_training_alone_and_corrects_by_them():
    counts = LabelCounts(4)
    loss = SampledSoftmax(counts, reduction="none")
    got = value(loss)
    assert counts.prior == Prior.of([2, 2, 1, 1]) == loss.carried == loss.batches
    assert got == pytest.approx(value(SampledSoftmax([2, 2, 1, 1], reduction="none")))
    assert value(loss.eval()) == pytest.approx(got)
    assert counts.prior == Prior.of([2, 2, 1, 1])
    assert SampledSoftmax(counts, corrected=False).carried == Prior.uniform(4)
    assert "carried=Prior([0.333" in repr(loss)


def test_a_class_of_weight_zero_leaves_no_prior_to_carry():
    assert SampledSoftmax(TRAIN, weight=[1, 0, 1, 1]).carried is None


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"proposal": PROPOSAL}, "num_negatives must say how many"),
        ({"num_negatives": 3}, "say how to draw from a proposal, but there is none"),
        ({"distinct": True}, "say how to draw from a proposal, but there is none"),
        ({"proposal": [1, 1], "num_negatives": 1}, "train has 4 classes but the proposal has 2"),
        ({"proposal": [1, 1, 1, 0], "num_negatives": 1}, "every class needs a weight above"),
        ({"proposal": PROPOSAL, "num_negatives": 0}, "num_negatives must be 1 or more"),
        ({"proposal": PROPOSAL, "num_negatives": 5, "distinct": True}, "at most all 4 classes"),
        ({"reduction": "average"}, "reduction must be"),
        ({"weight": [1, 1]}, "weight must have one number for each of 4 classes"),
    ],
)
def test_what_does_not_fit_is_said(options, message):
    with pytest.raises(ValueError, match=message):
        SampledSoftmax(TRAIN, **options)


def test_a_layer_of_other_classes_is_refused():
    with pytest.raises(ValueError, match="weight must have 4 rows"):
        SampledSoftmax(TRAIN)(FEATURES, LAYER[:3], None, LABELS)
