"""Priors: float64 logs, explicit words for zeros, and the moves that keep them exact."""

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from longtail import Prior
from longtail.core.prior import full_prior

counts = st.lists(st.integers(1, 10_000), min_size=1, max_size=12)


def test_a_prior_keeps_float64_logs_and_the_counts_it_was_made_from():
    prior = Prior.of([70, 25, 5])
    assert prior.log.dtype == np.float64
    np.testing.assert_allclose(prior.log, np.log([0.7, 0.25, 0.05]), rtol=1e-14)
    assert prior.counts is not None
    assert prior.counts.tolist() == [70, 25, 5]
    assert prior.num_classes == len(prior) == 3


def test_probabilities_and_derived_priors_have_no_counts():
    assert Prior.of([0.7, 0.3]).counts is None
    assert Prior.uniform(3).counts is None
    assert Prior.of([7, 3]).tempered(0.5).counts is None
    assert Prior.of([7, 3]).reweighted([1, 2]).counts is None


@pytest.mark.parametrize(
    "weights",
    [[7, 3], (7.0, 3.0), np.array([7, 3]), np.array([0.7, 0.3], np.float32), torch.tensor([7, 3])],
)
def test_every_kind_of_array_gives_the_same_prior(weights):
    assert Prior.of(weights).is_close(Prior.of([0.7, 0.3]))


def test_the_extremes_of_inaturalist_to_the_minus_tenth_power_stay_finite_and_exact():
    prior = Prior.of([1_000_000, 1]).tempered(-10)
    assert_close(float(prior.log[0]), -10 * math.log(1e6), rtol=1e-12, atol=0)


def test_zeros_are_refused_unless_a_word_says_otherwise():
    with pytest.raises(ValueError, match=r"classes 1 .*zeros='smooth'"):
        Prior.of([3, 0, 1])


def test_smoothing_adds_one_half_to_every_count_and_keeps_the_counts():
    prior = Prior.of([3, 0, 1], zeros="smooth")
    np.testing.assert_allclose(prior.probs, np.array([3.5, 0.5, 1.5]) / 5.5, rtol=1e-14)
    assert prior.counts.tolist() == [3, 0, 1]


def test_smoothing_leaves_counts_without_zeros_alone():
    assert Prior.of([3, 1], zeros="smooth").is_close(Prior.of([3, 1]), 0)


def test_smoothing_probabilities_is_refused_because_it_needs_counts():
    with pytest.raises(ValueError, match="no counts"):
        Prior.of([0.4, 0.6, 0.0], zeros="smooth")


def test_kept_zeros_are_minus_infinity_and_survive_positive_powers_and_weights():
    prior = Prior.of([3, 0, 1], zeros="keep")
    assert prior.has_zeros
    assert prior.tempered(0.5).probs[1] == 0
    assert prior.reweighted([1, 5, 1]).probs[1] == 0
    with pytest.raises(ValueError, match="no power"):
        prior.tempered(-1)
    with pytest.raises(ValueError, match=r"carried prior.*every class"):
        full_prior(prior, "carried")


@pytest.mark.parametrize(
    ("weights", "sentence"),
    [
        ([1, -1], "none negative"),
        ([0, 0], "not all zero"),
        ([1.0, math.nan], "must be finite"),
        ([1.0, math.inf], "must be finite"),
        ([[1, 2]], "one weight a class"),
        ([], "one weight a class"),
    ],
)
def test_weights_that_are_no_prior_are_refused(weights, sentence):
    with pytest.raises(ValueError, match=sentence):
        Prior.of(weights, zeros="keep")


def test_an_unknown_word_for_zeros_is_refused():
    with pytest.raises(ValueError, match="'drop'"):
        Prior.of([1, 0], zeros="drop")


def test_from_labels_counts_every_class_even_absent_ones():
    prior = Prior.from_labels(np.array([0, 2, 2, 0, 0]), 4, zeros="smooth")
    assert prior.counts.tolist() == [3, 0, 2, 0]


def test_reweighting_refuses_weights_that_are_not_positive():
    with pytest.raises(ValueError, match="positive"):
        Prior.uniform(2).reweighted([1, 0])
    with pytest.raises(ValueError, match=r"each of 2 classes, got shape \(3,\)"):
        Prior.uniform(2).reweighted([1, 1, 1])


@given(counts)
def test_powers_one_and_zero_are_identity_and_uniform(weights):
    prior = Prior.of(weights)
    assert prior.tempered(1).is_close(prior, 1e-12)
    assert prior.tempered(0).is_close(Prior.uniform(len(weights)), 1e-12)


@given(counts, st.floats(-3, 3), st.floats(-3, 3))
def test_powers_multiply(weights, first, second):
    prior = Prior.of(weights)
    twice = prior.tempered(first).tempered(second)
    assert twice.is_close(prior.tempered(first * second), 1e-9)


@given(counts)
def test_reweighting_uniform_by_the_counts_is_the_prior(weights):
    assert Prior.uniform(len(weights)).reweighted(weights).is_close(Prior.of(weights), 1e-12)


def test_numpy_sees_the_probabilities():
    np.testing.assert_allclose(np.asarray(Prior.of([1, 3])), [0.25, 0.75])


def test_many_classes_are_shown_by_their_range():
    assert repr(Prior.of(range(1, 101))) == "Prior(100 classes, 0.0198 to 0.000198)"


@pytest.mark.parametrize("log", [torch.tensor([70.0, 25.0, 5.0]), [0.7, 0.25, 0.05]])
def test_the_constructor_refuses_logs_that_are_not_normalised_and_names_prior_of(log):
    with pytest.raises(ValueError, match=r"sum to one, .* Prior\.of"):
        Prior(log)


def test_the_constructor_takes_normalised_logs_in_float32_and_makes_them_exact():
    log = torch.tensor([0.7, 0.25, 0.05]).log()
    for logs in (log, log.tolist()):
        assert float(Prior(logs).probs.sum()) == pytest.approx(1, abs=1e-15)
        assert Prior(logs).is_close(Prior.of([70, 25, 5]))


def test_the_constructor_refuses_counts_of_another_length():
    with pytest.raises(ValueError, match="each of 2 classes, got 3"):
        Prior(Prior.uniform(2).log, torch.tensor([1, 2, 3]))


def test_from_log_normalises_any_log_weights():
    log = torch.tensor([3.0, 1.0, -math.inf])
    prior = Prior.from_log(log)
    np.testing.assert_allclose(prior.probs, torch.softmax(log.double(), dim=0), rtol=1e-14)
    assert Prior.from_log([5000.0, -5000.0]).log.tolist() == [0.0, -10_000.0]


@pytest.mark.parametrize("log", [[-math.inf] * 2, [math.nan, 0.0], [math.inf, 0.0], [[0.0]], []])
def test_log_weights_that_are_no_prior_are_refused(log):
    with pytest.raises(ValueError, match=r"finite or -inf.*not all -inf"):
        Prior.from_log(log)


def test_a_prior_with_zeros_is_smoothed_from_its_counts_if_it_has_them():
    kept = Prior.of([3, 0, 1], zeros="keep")
    assert Prior.of(kept) is kept
    assert Prior.of(kept, zeros="smooth") == Prior.of([3, 0, 1], zeros="smooth")
    with pytest.raises(ValueError, match="was not made from counts"):
        Prior.of(kept.tempered(2), zeros="smooth")
    full = Prior.of([3, 1])
    assert Prior.of(full, zeros="smooth") is full


def test_priors_are_equal_by_their_probabilities_and_not_hashed():
    assert Prior.of([7, 3]) == Prior.of([0.7, 0.3])
    assert Prior.of([1, 0], zeros="keep") == Prior.of([5, 0], zeros="keep")
    assert Prior.of([7, 3]) != Prior.of([7.001, 3])
    assert Prior.of([1, 1]) != Prior.of([1, 1, 1])
    assert Prior.of([1, 1]) != "uniform"
    with pytest.raises(TypeError, match="unhashable"):
        hash(Prior.uniform(2))


def test_whole_weights_too_large_to_be_exact_are_no_counts():
    assert Prior.of([2**53 - 1, 1]).counts.tolist() == [2**53 - 1, 1]
    assert Prior.of([2**53, 1]).counts is None


def test_a_power_must_be_a_number():
    with pytest.raises(ValueError, match=r"power.*finite"):
        Prior.of([3, 1]).tempered(math.nan)


def test_another_default_device_changes_nothing():
    with torch.device("meta"):
        assert Prior.uniform(2) == Prior.of([1, 1])


def test_the_prior_of_smoothed_labels_is_their_mean():
    labels = torch.eye(3, dtype=torch.float64)[[0] * 70 + [1] * 25 + [2] * 5]
    mean = (0.9 * labels + 0.1 / 3).mean(dim=0)
    smoothed = Prior.of([70, 25, 5]).smoothed(0.1)
    np.testing.assert_allclose(smoothed.probs, mean, rtol=1e-14)
    assert smoothed.counts is None


def test_smoothing_by_zero_changes_nothing_and_zeros_become_possible():
    prior = Prior.of([70, 25, 5])
    assert prior.smoothed(0.0) is prior
    kept = Prior.of([3, 1, 0], zeros="keep").smoothed(0.3)
    assert kept.probs.tolist() == pytest.approx([0.625, 0.275, 0.1])


@pytest.mark.parametrize("epsilon", [-0.1, 1.0, math.nan, math.inf])
def test_only_a_share_below_one_smooths_a_prior(epsilon):
    with pytest.raises(ValueError, match=r"label_smoothing.*0 or more"):
        Prior.of([3, 1]).smoothed(epsilon)


def test_weights_by_class_index_need_no_order_and_by_name_need_the_classes():
    assert Prior.of({1: 25, 0: 70, 2: 5}) == Prior.of([70, 25, 5])
    with pytest.raises(ValueError, match=r"names with classes="):
        Prior.of({"cat": 3, "dog": 1})
    with pytest.raises(ValueError, match="leave none out"):
        Prior.of({0: 1, 2: 1})
