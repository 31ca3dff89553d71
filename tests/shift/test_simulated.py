"""Simulated shifts: drawn as they say, and what they choose follows from a model's errors."""

import numpy as np
import pytest

from longtail import Prior, Scores
from longtail.core.draws import Draws
from longtail.posthoc.validation import check_validation
from longtail.shift import simulated
from longtail.shift.simulated import Reliance, reliance, simulated_shifts

COUNTS = np.array([200, 100, 50, 25, 12, 6])
LEVEL = np.zeros(6)


def labelled(gaussian_scores, bias=0.0, counts=COUNTS, number=400):
    return check_validation(gaussian_scores(counts, number, seed=1, bias=bias), "a test")


def test_every_shift_has_its_samples_and_the_shares_they_have(gaussian_scores):
    validation = labelled(gaussian_scores)
    shifts = simulated_shifts(validation, 500, Draws(0))
    assert (shifts.times.sum(axis=0) == 500).all()
    labels = validation.labels[shifts.rows]
    for times, truth in zip(shifts.times.T, shifts.truths.T, strict=True):
        drawn = np.repeat(labels, times.astype(int))
        np.testing.assert_array_equal(np.bincount(drawn, minlength=6) / 500, truth)


def test_they_go_from_far_off_the_uniform_prior_to_near_it(gaussian_scores):
    shifts = simulated_shifts(labelled(gaussian_scores), 2000, Draws(0))
    apart = np.abs(shifts.truths - 1 / 6).sum(axis=0).reshape(6, -1).mean(axis=1)
    assert (np.diff(apart) < 0.05).all()
    assert apart[0] > 0.8
    assert apart[-1] < 0.15


def test_a_class_without_validation_samples_is_in_none(gaussian_scores):
    validation = labelled(gaussian_scores, counts=[3, 2, 0, 1, 1, 0])
    shifts = simulated_shifts(validation, 100, Draws(0))
    assert (shifts.truths[[2, 5]] == 0).all()
    assert reliance(validation, LEVEL, shifts).eta in simulated.COUNTING


def test_of_large_classes_some_are_drawn_from_and_of_small_ones_all(gaussian_scores, monkeypatch):
    validation = labelled(gaussian_scores, number=1000)
    monkeypatch.setattr(simulated, "_MOST_NUMBERS", 300 * 6)
    drawn = validation.labels[simulated_shifts(validation, 20_000, Draws(0)).rows]
    counts, whole = (np.bincount(labels, minlength=6) for labels in (drawn, validation.labels))
    assert counts.sum() <= 300
    np.testing.assert_array_equal(counts, np.minimum(whole, counts.max()))


def test_samples_of_a_model_that_is_wrong_count_for_less(gaussian_scores):
    uniform = np.ones(6)
    right = labelled(gaussian_scores, counts=uniform, number=3000)
    wrong = labelled(
        gaussian_scores, np.random.default_rng(0).normal(size=6), counts=uniform, number=3000
    )
    relied = [
        reliance(each, LEVEL, simulated_shifts(each, 3000, Draws(0))).eta for each in (right, wrong)
    ]
    assert relied[0] > 0.5
    assert relied[1] <= 0.25


def test_intervals_are_widened_by_the_hardest_of_the_shifts_that_look_alike():
    off = [np.full(50, value) for value in (9.0, 9.0, 1.96, 3.92, 2.94, 0.1)]
    found = Reliance(1.0, np.array([1.0, 3.0, 10.0, 30.0, 100.0, 1000.0]), off)
    assert found.widening(100.0) == pytest.approx(2, rel=1e-3)
    assert found.widening(1.0) == pytest.approx(9 / 1.96, rel=1e-3)


def test_they_are_never_made_narrower():
    found = Reliance(1.0, np.arange(1.0, 7.0), [np.full(9, 0.1)] * 6)
    assert found.widening(2.0) == 1.0


def test_one_sample_and_one_class_are_no_trouble():
    one = check_validation(Scores(np.zeros((4, 1)), [0] * 4, Prior.uniform(1)), "a test")
    shifts = simulated_shifts(one, 1, Draws(0))
    assert reliance(one, np.zeros(1), shifts).widening(5.0) == 1.0
