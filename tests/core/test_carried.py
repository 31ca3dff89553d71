"""What logits carry by unlabelled samples of a known prior: marginal matching."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail import Prior, measure_carried
from longtail.core import carried, measure
from longtail.core.carried import matched_offsets
from longtail.core.measure import NegativeLogLikelihood, lowest_offset
from longtail.core.minimise import UnsettledError


def posteriors(seed, prior, count, apart=2.0):
    """Logits that carry the prior that their samples follow: Gaussians around corners."""
    stream = np.random.default_rng(seed)
    labels = stream.choice(len(prior), count, p=prior)
    points = stream.normal(size=(count, len(prior))) + apart * np.eye(len(prior))[labels]
    return apart * points + np.log(prior)


def softmax(logits):
    exps = np.exp(logits - logits.max(axis=1, keepdims=True))
    return exps / exps.sum(axis=1, keepdims=True)


def sinkhorn(logits, prior, steps=3000):
    """The fixed point, a class at a time as the formula says it."""
    offset = np.zeros(len(prior))
    for _ in range(steps):
        mean = np.mean([softmax(row[None] + offset)[0] for row in logits], axis=0)
        offset = offset + np.log(prior) - np.log(mean)
    return offset - offset.mean()


PRIOR = np.array([0.5, 0.3, 0.15, 0.05])


def spread_of(matched):
    """Of offsets with mean zero."""
    return matched.deviations(np.full(len(matched.offset), 1 / len(matched.offset)))


LOGITS = posteriors(0, PRIOR, 3000) + np.array([0.5, -0.5, 0.0, 1.0])


def test_without_a_ridge_it_is_the_fixed_point_of_sinkhorns_steps():
    few = LOGITS[:40]
    offset = lowest_offset(NegativeLogLikelihood(few, Prior.of(PRIOR), 4), np.zeros(4))
    np.testing.assert_allclose(offset, sinkhorn(few, PRIOR, 500), atol=1e-7)
    np.testing.assert_allclose(softmax(few + offset).mean(axis=0), PRIOR, atol=1e-9)


def test_the_ridge_takes_its_share_of_the_difference_to_the_prior():
    likelihood = NegativeLogLikelihood(LOGITS, Prior.of(PRIOR), 4, ridge=0.01)
    offset = lowest_offset(likelihood, np.zeros(4))
    mean = softmax(LOGITS + offset).mean(axis=0)
    np.testing.assert_allclose(mean + 0.01 * offset, PRIOR, atol=1e-9)


def test_the_same_samples_more_often_need_less_of_a_ridge():
    exact = sinkhorn(LOGITS[:40], PRIOR, 500)
    far = [
        np.abs(matched_offsets(np.tile(LOGITS[:40], (times, 1)), PRIOR).offset - exact).max()
        for times in (1, 10, 100, 1000)
    ]
    assert far == sorted(far, reverse=True)
    assert far[-1] < 0.02 < 0.3 < far[0]


@given(st.floats(-1e3, 1e3), st.integers(0, 100))
def test_what_is_added_to_a_row_changes_nothing(constant, seed):
    rows = np.random.default_rng(seed).normal(size=(len(LOGITS), 1)) * constant
    moved = measure_carried(LOGITS + rows, prior=PRIOR)
    assert moved.is_close(measure_carried(LOGITS, prior=PRIOR), 1e-6)


def test_what_logits_carried_before_is_found_whatever_it_was():
    before = measure_carried(LOGITS, prior=PRIOR)
    assert before.is_close(Prior.of(PRIOR * np.exp([0.5, -0.5, 0.0, 1.0])), 0.2)
    for added in ([3.0, 0.0, 0.0, -3.0], [30.0, 0.0, -30.0, 0.0], [0.0, 1e4, 0.0, 0.0]):
        moved = measure_carried(LOGITS + added, prior=PRIOR)
        assert moved.is_close(Prior.from_log(before.log + added), 0.05)


def test_labels_and_their_prior_say_nearly_the_same():
    stream = np.random.default_rng(1)
    labels = np.array([stream.choice(4, p=row) for row in softmax(LOGITS - [0.5, -0.5, 0, 1.0])])
    by_labels = measure_carried(LOGITS, labels)
    by_prior = measure_carried(LOGITS, prior=np.bincount(labels))
    assert by_prior.is_close(by_labels, 0.2)


@pytest.mark.parametrize("count", [100, 1000, 5000])
def test_a_calibrated_model_gets_offsets_of_zero_within_their_error(count):
    prior = np.full(10, 0.1)
    matched = [matched_offsets(posteriors(seed, prior, count), prior) for seed in range(20)]
    assert max(np.abs(each.offset).std() for each in matched) < 0.2
    beyond = [np.abs(each.offset) > 1.96 * spread_of(each) for each in matched]
    assert np.mean(beyond) < 0.05


@pytest.mark.parametrize(
    ("classes", "count", "size", "apart"),
    [(3, 2000, 0.5, 1.5), (10, 1000, 0.3, 2.0), (10, 1000, 1.0, 2.0), (40, 2000, 0.5, 3.0)],
)
def test_intervals_cover_what_was_added(classes, count, size, apart):
    stream, inside = np.random.default_rng(classes), []
    for seed in range(40):
        prior = stream.dirichlet(np.full(classes, 5.0)) * 0.9 + 0.1 / classes
        added = stream.normal(size=classes) * size
        matched = matched_offsets(posteriors(seed, prior, count, apart) - added, prior)
        far = np.abs(matched.offset - (added - added.mean()))
        inside.append(far < 1.96 * spread_of(matched))
    assert 0.9 <= np.mean(inside) <= 0.99


def test_a_model_that_is_sure_is_not_told_wrong_by_chance():
    prior = np.full(3, 1 / 3)
    for seed in range(20):
        matched = matched_offsets(posteriors(seed, prior, 500, apart=6.0), prior)
        assert np.abs(matched.offset).max() < 0.1
        assert spread_of(matched).min() > 0.5


def test_a_class_that_is_never_predicted_is_raised():
    prior, logits = np.full(4, 0.25), posteriors(3, np.full(4, 0.25), 4000)
    logits[:, 2] -= 20.0
    assert not (logits.argmax(axis=1) == 2).any()
    offset = matched_offsets(logits, prior).offset
    assert np.bincount((logits + offset).argmax(axis=1), minlength=4).min() > 800


def test_a_model_that_says_the_same_of_every_sample_carries_what_it_says():
    logits = np.tile([1.0, 0.0, -1.0], (10, 1))
    matched = matched_offsets(logits, [1, 1, 1])
    assert matched.carried.is_close(Prior.from_log([1.0, 0.0, -1.0]), 1e-6)
    assert np.isfinite(spread_of(matched)).all()


def test_many_classes_need_no_matrix(monkeypatch):
    full = matched_offsets(LOGITS, PRIOR)
    monkeypatch.setattr(measure, "MOST_FOR_NEWTON", 3)
    monkeypatch.setattr(carried, "MOST_FOR_NEWTON", 3)
    diagonal = matched_offsets(LOGITS, PRIOR)
    np.testing.assert_allclose(diagonal.offset, full.offset, atol=0.02)
    assert (spread_of(diagonal) < 3 * spread_of(full)).all()
    assert (spread_of(diagonal) > spread_of(full) / 3).all()


def test_a_model_that_is_sure_of_every_sample_tells_nothing():
    with pytest.raises(UnsettledError, match=r"sure of every sample.*use harder"):
        measure_carried(1e3 * np.eye(3)[[0, 1, 2, 0]], prior=[1, 1, 1])


@pytest.mark.parametrize(
    ("logits", "options", "sentence"),
    [
        (LOGITS, {}, "either labels or prior, not neither"),
        (LOGITS, {"labels": [0] * 3000, "prior": PRIOR}, "either labels or prior, not both"),
        (LOGITS[:1], {"prior": PRIOR}, "by two or more; got 1"),
        (LOGITS[:0], {"prior": PRIOR}, "at least one|two or more"),
        (LOGITS, {"prior": [1, 2, 0, 1]}, "above zero"),
        (
            LOGITS,
            {"prior": Prior.of([1, 2, 0, 1], zeros="keep")},
            "the known prior must give every",
        ),
        (LOGITS, {"prior": [1, 2, 3]}, "logits have 4 classes but the known prior has 3"),
        (np.where(LOGITS > 3, -np.inf, LOGITS), {"prior": PRIOR}, "must be finite"),
        (softmax(LOGITS), {"prior": PRIOR}, "are probabilities"),
    ],
)
def test_wrong_input_gives_one_clear_sentence(logits, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        measure_carried(logits, **options)


def test_names_that_are_not_those_of_the_classes_are_refused():
    for names in ("abc", "abcde"):
        with pytest.raises(ValueError, match=f"each of the 4 classes.*got {len(names)} names"):
            measure_carried(LOGITS, classes=[*names], prior=PRIOR)
    with pytest.raises(ValueError, match="got 3 names"):
        measure_carried(LOGITS, np.arange(len(LOGITS)) % 4, [*"abc"])
    assert measure_carried(LOGITS, classes=[*"abcd"], prior=PRIOR)
