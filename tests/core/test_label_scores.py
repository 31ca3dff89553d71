"""Odds of yes/no labels, and scores that carry them: moved, saved, and not mixed with classes."""

import copy
import json
import pickle
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import longtail as lt
from longtail import LabelOdds, Prior, Scores, UnknownPriorError, retarget
from longtail.core import LabelScores

LOGITS = np.array([[2.0, -1.0, 0.5], [-2.0, 0.25, 1.0]])
LABELS = [[1, 0, 0], [0, 1, 1]]
ODDS = LabelOdds.from_counts([10, 500, 250], 1000)


def full(logits=LOGITS):
    return Scores(
        logits, LABELS, ODDS, [10, 500, 250], ["sea", "sand", "élan"], "validation", [7, 9],
        family="sigmoid",
    )  # fmt: skip


probabilities = st.lists(st.floats(1e-6, 1 - 1e-6), min_size=2, max_size=2)


@settings(deadline=None)
@given(carried=probabilities, target=probabilities)
def test_moving_a_label_is_moving_zero_and_z_from_no_and_yes(carried, target):
    moved = retarget(LOGITS[:, :2], LabelOdds.of(carried), LabelOdds.of(target))
    for label, (c, t) in enumerate(zip(carried, target, strict=True)):
        pair = np.stack([np.zeros(2), LOGITS[:, label]], axis=1)
        by_softmax = retarget(pair, [1 - c, c], [1 - t, t])
        np.testing.assert_allclose(
            moved[:, label], by_softmax[:, 1] - by_softmax[:, 0], rtol=1e-9, atol=1e-9
        )


def test_moved_probabilities_are_those_of_bayes():
    moved = full().under([0.5, 0.2, 0.9])
    for label, (c, t) in enumerate(zip(ODDS.probs, [0.5, 0.2, 0.9], strict=True)):
        p = full().probs()[:, label]
        yes, no = p * t / c, (1 - p) * (1 - t) / (1 - c)
        np.testing.assert_allclose(moved.probs()[:, label], yes / (yes + no))
    assert moved.carried == LabelOdds.of([0.5, 0.2, 0.9])


def test_odds_come_from_counts_labels_and_probabilities_and_names():
    labels = np.array([[1, 0], [0, 0], [0, 1], [0, 1]])
    for odds in (LabelOdds.from_counts([1, 2], 4), LabelOdds.of([0.25, 0.5])):
        assert odds == LabelOdds.from_labels(labels) == LabelOdds.from_labels(labels.astype(bool))
    assert LabelOdds.of({"b": 0.5, "a": 0.25}, ["a", "b"]) == LabelOdds.of([0.25, 0.5])
    assert LabelOdds.from_labels([0, 1, 0, 0]) == LabelOdds.of([0.25])
    np.testing.assert_allclose(LabelOdds.of([0.25]).tempered(2).probs, [1 / 10])


@settings(deadline=None)
@given(st.integers(1, 99), st.integers(1, 50), st.floats(0.01, 1.0), st.floats(0.01, 1.0))
def test_weights_and_sampling_are_counts_of_more_or_fewer_samples(yes, weight, kept, others):
    odds = LabelOdds.from_counts([yes], 100)
    weighted = weight * yes / (weight * yes + 100 - yes)
    np.testing.assert_allclose(odds.reweighted(weight).probs, weighted)
    sampled = kept * yes / (kept * yes + others * (100 - yes))
    np.testing.assert_allclose(odds.sampled(kept, others).probs, sampled)


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda: LabelOdds.from_counts([0, 5], 10), "zeros='smooth'"),
        (lambda: LabelOdds.from_counts([10], 10), "zeros='smooth'"),
        (lambda: LabelOdds.from_counts([11], 10), "11 positives of 10 samples"),
        (lambda: LabelOdds.of([0.0, 0.5]), "above 0 and below 1"),
        (lambda: LabelOdds.of([3, 5]), "from_counts"),
        (lambda: LabelOdds.of(Prior.uniform(2)), "is a prior over classes"),
        (lambda: LabelOdds.of("even"), "got 'even'"),
        (lambda: LabelOdds.from_labels([[0, 2]]), "must be 0 or 1, got 2 in row 0, label 1"),
        (lambda: ODDS.reweighted([1.0, 2.0]), "each of 3 labels"),
        (lambda: Prior.of(ODDS), "no prior over classes"),
        (lambda: retarget(LOGITS, ODDS, Prior.uniform(3)), "is a prior over classes"),
    ],
)
def test_what_is_no_odds_is_refused(make, words):
    with pytest.raises(ValueError, match=words):
        make()


def test_a_label_that_is_never_yes_gets_half_a_sample_if_asked():
    odds = LabelOdds.from_counts([0, 5], 10, zeros="smooth")
    np.testing.assert_allclose(odds.probs, [0.5 / 11, 0.5])


def test_scores_keep_their_kind_and_the_rest():
    for logits, kind in ((LOGITS, np.ndarray), (torch.tensor(LOGITS), torch.Tensor)):
        scores = full(logits)
        assert isinstance(scores, LabelScores)
        assert isinstance(scores, Scores)
        assert (scores.family, scores.num_labels, len(scores)) == ("sigmoid", 3, 2)
        moved = scores.under(LabelOdds.even(3))
        for array in (moved.logits, moved.labels, scores.probs(), scores.predict()):
            assert isinstance(array, kind)
        assert moved.classes == ("sea", "sand", "élan")
        assert np.asarray(scores.predict(thresholds=[0.9, 0.1, 0.7])).tolist() == [
            [0, 1, 0],
            [0, 1, 1],
        ]


def test_a_file_brings_back_everything(tmp_path):
    full().save(tmp_path / "s.safetensors")
    loaded = Scores.load(tmp_path / "s.safetensors")
    assert isinstance(loaded, LabelScores)
    for name in ("logits", "labels", "counts", "ids"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(full(), name))
    assert (loaded.carried, loaded.classes, loaded.split) == (ODDS, full().classes, "validation")
    assert (loaded.carried.positives.tolist(), loaded.carried.total) == ([10, 500, 250], 1000)
    with pytest.raises(ValueError, match="yes/no labels"):
        lt.data.open_score_table(tmp_path / "s.safetensors", "logits")


def test_parts_are_taken_put_together_copied_and_pickled():
    scores = full()
    again = Scores.concat([scores.take([0]), scores.take([False, True])])
    for other in (again, copy.copy(scores), pickle.loads(pickle.dumps(scores))):  # noqa: S301
        assert isinstance(other, LabelScores)
        np.testing.assert_array_equal(other.logits, LOGITS)
        np.testing.assert_array_equal(other.labels, LABELS)
    assert replace(scores, labels=None).labels is None
    with pytest.raises(ValueError, match="agree in family"):
        Scores.concat([scores, Scores(LOGITS)])


def test_probabilities_become_logits_and_are_not_taken_for_them():
    probs = np.linspace(0.05, 0.95, 12).reshape(4, 3)
    scores = Scores.from_probs(probs, carried=ODDS, family="sigmoid")
    np.testing.assert_allclose(scores.probs(), probs)
    assert scores.carried == ODDS
    with pytest.raises(ValueError, match="from_probs"):
        Scores(probs, family="sigmoid")
    with pytest.raises(ValueError, match="divide percentages"):
        Scores.from_probs(100 * probs, family="sigmoid")
    with pytest.warns(UserWarning, match="exactly 0 or 1"):
        finite = Scores.from_probs([[0.0, 1.0, 0.5]], family="sigmoid").logits
    assert np.isfinite(finite).all()


def test_one_label_may_be_a_vector():
    scores = Scores(LOGITS[:, 0], [1, 0], [0.3], family="sigmoid")
    assert scores.logits.shape == scores.labels.shape == (2, 1)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"labels": [[1, 0], [0, 1]]}, "expected 3 yes/no labels"),
        ({"labels": [[1, 0, 0]]}, "2 rows of logits but labels of 1"),
        ({"carried": [0.5]}, "the logits have 3 labels"),
        ({"carried": Prior.uniform(3)}, "is a prior over classes"),
        ({"family": "tanh"}, "family must be"),
        ({"classes": ["a", "b"]}, "must name each"),
    ],
)
def test_what_does_not_fit_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        Scores(LOGITS, **{"family": "sigmoid", **options})


def test_infinite_logits_are_refused_with_their_place():
    wrong = LOGITS.copy()
    wrong[1, 2] = np.inf
    with pytest.raises(ValueError, match="inf in row 1, label 2"):
        Scores(wrong, family="sigmoid")


def test_scores_of_unknown_odds_refuse_to_move_and_name_the_remedy():
    with pytest.raises(UnknownPriorError, match=r"measure_odds\(logits, labels\)"):
        Scores(LOGITS, family="sigmoid").under([0.5] * 3)


OF_CLASSES = {
    "adjusters": lambda s: lt.posthoc.LogitAdjustment([1, 1, 1])(s),
    "temperature": lambda s: lt.posthoc.Temperature.fit(s),
    "tau": lambda s: lt.posthoc.LogitAdjustment.fit(s, [1, 1, 1]),
    "average": lambda s: lt.posthoc.average([s, s], [1, 1, 1]),
    "estimate": lambda s: lt.shift.estimate_prior(s),
    "matching": lambda s: lt.posthoc.MarginalMatching.fit(s, [1, 1, 1]),
    "metrics": lambda s: lt.metrics.accuracy(s),
    "accumulator": lambda s: lt.metrics.Accumulator.of(s),
    "only prior": lambda s: lt.shift.check_only_prior_changed(s, s),
    "stream": lambda s: lt.shift.StreamingPrior(3).update(s),
    "fix": lambda s: lt.fix(s, train=[1, 1, 1]),
    "report": lambda s: lt.fix(Scores(LOGITS, [0, 1]), s, train=[1, 1, 1]),
}


@pytest.mark.parametrize("name", OF_CLASSES)
def test_what_is_for_one_class_a_sample_refuses_labels_in_a_sentence(name):
    with pytest.raises(ValueError, match='family="sigmoid"'):
        OF_CLASSES[name](full())


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), shift=st.floats(-3, 3))
def test_measured_odds_are_those_that_calibrate_the_labels(seed, shift):
    random = np.random.default_rng(seed)
    z = random.standard_normal((400, 2)) + np.array([-1.0, 0.5])
    y = (random.random(z.shape) < 1 / (1 + np.exp(-z))).astype(int)
    measured = lt.measure_odds(z + shift, y)
    labelled = LabelOdds.from_labels(y)
    moved = retarget(z + shift, measured, labelled)
    np.testing.assert_allclose((1 / (1 + np.exp(-moved))).mean(axis=0), y.mean(axis=0))
    with pytest.raises(ValueError, match="told apart perfectly"):
        lt.measure_odds([[50.0], [-50.0]] * 10, [[1], [0]] * 10)


def test_no_warning_comes_from_extreme_logits():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scores = Scores([[1e4, -1e4]], carried=[0.5, 0.5], family="sigmoid")
        assert scores.probs().tolist() == [[1.0, 0.0]]


def test_a_reader_of_the_first_version_is_told_that_it_is_too_old(tmp_path):
    full().save(tmp_path / "s")
    raw = (tmp_path / "s").read_bytes()
    header = json.loads(raw[8 : 8 + int.from_bytes(raw[:8], "little")])
    assert json.loads(header["__metadata__"]["longtail"])["version"] == 2
