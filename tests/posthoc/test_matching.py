"""Marginal matching: unlabelled samples of a known prior say what logits carry."""

import numpy as np
import pytest
import torch

from longtail import Prior, Scores, UnknownPriorError, measure_carried
from longtail.posthoc import MarginalMatching, Temperature

COUNTS, TARGET = np.array([600, 250, 100, 50]), np.array([0.1, 0.2, 0.3, 0.4])
ADDED = np.array([0.6, -0.6, 0.3, -0.3])


def scores_of(count, labels_follow, seed=0, added=ADDED):
    """Scores said to carry the counts, but for what is added."""
    stream = np.random.default_rng(seed)
    labels = stream.choice(4, count, p=labels_follow)
    points = stream.normal(size=(count, 4)) + 2 * np.eye(4)[labels]
    return Scores(2 * points + np.log(COUNTS / 1000) + added, labels, carried=COUNTS)


UNLABELLED = scores_of(4000, TARGET)


def test_mean_probabilities_are_the_prior_and_so_is_what_is_carried():
    fitted = MarginalMatching.fit(UNLABELLED, TARGET)
    moved = fitted(UNLABELLED)
    assert moved.carried.is_close(Prior.of(TARGET))
    np.testing.assert_allclose(moved.probs().mean(axis=0), TARGET, atol=0.002)
    assert fitted.measured.is_close(Prior.of(COUNTS * np.exp(ADDED)), 0.2)
    low, high = fitted.interval
    truth = Prior.of(COUNTS * np.exp(ADDED)).probs
    assert ((low < truth) & (truth < high)).all()
    assert fitted.beyond == pytest.approx(ADDED.std(), abs=0.1)


def test_it_classifies_new_samples_better_than_the_declared_prior():
    new = scores_of(20_000, TARGET, seed=1)
    matched = MarginalMatching.fit(UNLABELLED, TARGET)(new)
    declared, exact = new.under(TARGET), scores_of(20_000, TARGET, seed=1, added=0.0).under(TARGET)
    right = [np.mean(each.predict() == new.labels) for each in (declared, matched, exact)]
    assert right[1] > right[0] + 0.01
    assert right[1] > right[2] - 0.003


def test_what_scores_were_moved_to_before_makes_no_difference():
    there = MarginalMatching.fit(UNLABELLED, TARGET)(UNLABELLED)
    for before in ([1, 1, 1, 1], TARGET, [1, 5, 5, 1]):
        moved = UNLABELLED.under(before)
        again = MarginalMatching.fit(moved, TARGET)(moved)
        np.testing.assert_allclose(again.probs(), there.probs(), atol=1e-9)


def test_scores_of_an_unknown_prior_are_measured_and_then_carry_the_prior():
    unknown = Scores(UNLABELLED.logits)
    fitted = MarginalMatching.fit(unknown, TARGET)
    assert fitted.measured == measure_carried(UNLABELLED.logits, prior=TARGET)
    assert fitted(unknown).carried == Prior.of(TARGET)
    with pytest.raises(ValueError, match="fitted on scores that carry no known prior"):
        fitted(fitted(unknown))


def test_scores_that_carry_something_else_are_refused():
    fitted = MarginalMatching.fit(UNLABELLED, TARGET)
    with pytest.raises(ValueError, match="fitted on scores that carry"):
        fitted(UNLABELLED.under([1, 1, 1, 1]))
    with pytest.raises(UnknownPriorError):
        fitted(Scores(UNLABELLED.logits))


def test_it_may_be_fitted_on_unlabelled_test_scores_and_labels_are_not_looked_at():
    test = Scores(UNLABELLED.logits, carried=COUNTS, split="test")
    fitted = MarginalMatching.fit(test, TARGET)
    wrong = Scores(UNLABELLED.logits, np.zeros(4000, int), carried=COUNTS)
    np.testing.assert_array_equal(fitted.bias, MarginalMatching.fit(wrong, TARGET).bias)


def test_few_samples_leave_the_plain_move():
    few = scores_of(10, TARGET)
    fitted = MarginalMatching.fit(few, TARGET)
    np.testing.assert_allclose(fitted(few).probs(), few.under(TARGET).probs(), atol=0.02)
    assert (fitted.spread > 0.3).all()


def test_it_comes_after_a_temperature_and_keeps_the_kind_of_arrays():
    labelled = scores_of(2000, COUNTS / 1000, seed=2)
    calibrate = Temperature.fit(labelled)
    tensors = Scores(torch.as_tensor(UNLABELLED.logits, dtype=torch.float32), carried=COUNTS)
    fitted = MarginalMatching.fit(calibrate(tensors), TARGET)
    moved = fitted(calibrate(tensors))
    assert isinstance(moved.logits, torch.Tensor)
    assert moved.logits.dtype == torch.float32


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: MarginalMatching.fit(UNLABELLED, [1, 0, 1, 1]), "classes 1 have none.*small prob"),
        (lambda: MarginalMatching.fit(UNLABELLED, [1, 1, 1]), "4 classes.*3"),
        (lambda: MarginalMatching.fit(UNLABELLED.take([0]), TARGET), "two or more; got 1"),
        (lambda: MarginalMatching([0.0, np.nan], [1, 1]), "bias must be finite.*class 1"),
        (lambda: MarginalMatching([0.0], [1, 1]), "bias must have one number for each of 2"),
        (lambda: MarginalMatching([0.0, 0.0], [1, 1], spread=[1.0, -1.0]), "none negative"),
        (lambda: MarginalMatching([0.0, 0.0], [1, 1])(Scores(UNLABELLED.logits)), "2 classes"),
    ],
)
def test_wrong_input_gives_one_clear_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


def test_one_made_by_hand_has_no_interval():
    assert MarginalMatching([0.0, 1.0], [1, 1]).interval is None


def test_the_interval_of_a_rare_class_holds_what_is_carried_as_that_of_a_large_one_does():
    inside = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        carried = np.array([0.9, 0.1]) * np.exp(0.3 * rng.normal(size=2))
        carried /= carried.sum()
        labels = rng.integers(0, 2, 4000)
        logits = 1.5 * (1.5 * np.eye(2)[labels] + rng.normal(size=(4000, 2))) + np.log(carried)
        fitted = MarginalMatching.fit(Scores(logits, carried=[0.9, 0.1]), prior=[0.5, 0.5])
        low, high = fitted.interval
        inside.append((low <= carried) & (carried <= high))
    held = np.mean(inside, axis=0)
    assert (held >= 0.85).all()
    assert held.mean() < 1
