"""Thresholds of yes/no labels: the exact optimum, by whatever counts, and what they refuse."""

import json
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from longtail import LabelOdds, Scores
from longtail.posthoc import Thresholds
from longtail.posthoc import threshold_search as module

CRITERIA = {
    "f1": None,
    "balanced_error": None,
    "recall_at_precision": 0.7,
    "precision_at_recall": 0.6,
}


def made(logits, labels, carried=None, **options):
    return Scores(logits, labels, carried, family="sigmoid", _are_logits=True, **options)


def drawn(samples=400, labels=3, seed=0, dtype=np.float64):
    random = np.random.default_rng(seed)
    truth = random.random((samples, labels)) < np.linspace(0.4, 0.1, labels)
    return (2 * truth + random.standard_normal(truth.shape) - 1).astype(dtype), truth.astype(int)


def naive(z, y, criterion, at, share=None):
    """Every threshold that is a score, and never, one by one; the highest of the best."""
    mass = y.mean() if share is None else share
    best, where = -np.inf, None
    for threshold in [np.inf, *sorted(set(z.tolist()), reverse=True)]:
        chosen = z >= threshold
        tp = mass * (chosen & (y == 1)).sum() / (y == 1).sum()
        fp = (1 - mass) * (chosen & (y == 0)).sum() / (y == 0).sum()
        precision = tp / (tp + fp) if tp + fp else 0.0
        if criterion == "f1":
            value = 2 * tp / (tp + fp + mass)
        elif criterion == "balanced_error":
            value = 1 - (1 - tp / mass + fp / (1 - mass)) / 2
        elif criterion == "recall_at_precision":
            value = tp / mass if precision >= at or not chosen.any() else -1.0
        else:
            value = precision if tp / mass >= at and chosen.any() else -1.0
        if value > best + 1e-12:
            best, where = value, threshold
    return where, 1 - best if criterion == "balanced_error" else best


@pytest.mark.parametrize("criterion", CRITERIA)
@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    samples=st.integers(2, 60),
    levels=st.sampled_from([2, 5, 1000]),
    share=st.sampled_from([None, 0.03, 0.5, 0.9]),
)
def test_a_threshold_is_the_best_of_all_with_and_without_ties(
    criterion, seed, samples, levels, share
):
    random = np.random.default_rng(seed)
    z = np.round(random.standard_normal((samples, 1)) * levels) / levels
    y = random.integers(0, 2, (samples, 1))
    if y.min() == y.max():
        return
    scores, target = made(z, y), None
    if share is not None:
        scores, target = replace(scores, carried=LabelOdds.of([share])), [share]
    fitted = Thresholds.fit(scores, criterion, CRITERIA[criterion], target)
    where, best = naive(z[:, 0], y[:, 0], criterion, CRITERIA[criterion], share)
    assert fitted.values[0] == pytest.approx(best, abs=1e-12)
    assert fitted.logits[0] == where


@pytest.mark.parametrize("criterion", CRITERIA)
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_only_bins_that_can_win_are_looked_into_and_none_is_missed(criterion, dtype, monkeypatch):
    z, y = drawn(5000, 2, dtype=dtype)
    monkeypatch.setattr(module, "_FEW", 100)
    looked_at, inside = [], module._best_of_sorted
    monkeypatch.setattr(
        module, "_best_of_sorted", lambda *a: looked_at.append(len(a[1])) or inside(*a)
    )
    fitted = Thresholds.fit(made(z, y), criterion, CRITERIA[criterion])
    for label in range(2):
        where, best = naive(z[:, label], y[:, label], criterion, CRITERIA[criterion])
        assert (fitted.logits[label], fitted.values[label]) == (where, pytest.approx(best))
    assert max(looked_at) < 1000


def test_all_scores_alike_are_all_yes_or_never():
    fitted = Thresholds.fit(
        made(np.zeros((6, 2)), [[1, 0], [0, 0], [1, 0], [1, 1], [1, 0], [1, 0]])
    )
    assert fitted.logits.tolist() == [0.0, 0.0]
    precise = Thresholds.fit(made(np.zeros((4, 1)), [1, 0, 0, 0]), "recall_at_precision", 0.9)
    assert precise.logits.tolist() == [np.inf]
    assert precise.values.tolist() == [0.0]


def test_minus_zero_is_zero():
    fitted = Thresholds.fit(made([[0.0], [-0.0], [-1.0]], [0, 1, 0]))
    assert fitted.values[0] == pytest.approx(2 / 3)
    np.testing.assert_array_equal(
        made([[0.0], [-0.0], [-1.0]], [0, 1, 0]).predict(thresholds=fitted)[:, 0], [1, 1, 0]
    )


def test_a_label_that_is_never_or_always_yes_has_no_value_and_the_others_have():
    z, y = drawn(50, 3)
    y[:, 0], y[:, 2] = 0, 1
    fitted = Thresholds.fit(made(z, y))
    assert fitted.logits[0] == np.inf
    assert fitted.logits[2] == -np.inf
    assert np.isnan(fitted.values).tolist() == [True, False, True]
    predicted = made(z, y).predict(thresholds=fitted)
    assert (predicted[:, 0].max(), predicted[:, 2].min()) == (0, 1)


def test_what_is_predicted_has_the_value_that_was_said():
    z, y = drawn(300, 3, dtype=np.float32)
    fitted = Thresholds.fit(made(z, y))
    for kind in (np.asarray, torch.tensor):
        predicted = np.asarray(made(kind(z), y).predict(thresholds=fitted))
        hits = (predicted * y).sum(axis=0)
        np.testing.assert_allclose(
            2 * hits / (predicted.sum(axis=0) + y.sum(axis=0)), fitted.values
        )


def test_the_standard_error_is_that_of_drawing_samples_of_each_class_anew():
    z, y = drawn(600, 1)
    for criterion, at in CRITERIA.items():
        fitted = Thresholds.fit(made(z, y), criterion, at)
        random, values = np.random.default_rng(1), []
        is_yes = z[:, 0] >= fitted.logits[0]
        yes, no = is_yes[y[:, 0] == 1], is_yes[y[:, 0] == 0]
        label = module.Label(criterion, 0.0, len(yes), len(no), len(yes) / len(z))
        for _ in range(1000):
            counts = (random.binomial(len(each), each.mean()) for each in (yes, no))
            values.append(float(label.value(*map(np.array, counts))))
        assert fitted.standard_errors[0] == pytest.approx(np.std(values), rel=0.1)


def test_thresholds_are_frozen_and_survive_a_file(tmp_path):
    z, y = drawn(60, 4)
    y[:, 0], y[:, 3] = 0, 1
    scores = made(z, y, [0.2, 0.3, 0.4, 0.5], classes=["a", "b", "c", "d"])
    fitted = Thresholds.fit(scores, "precision_at_recall", 0.5)
    fitted.save(tmp_path / "t.json")
    loaded = Thresholds.load(tmp_path / "t.json")
    for name in ("logits", "values", "standard_errors"):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(fitted, name))
    assert (loaded.criterion, loaded.at, loaded.classes) == (
        "precision_at_recall",
        0.5,
        tuple("abcd"),
    )
    assert loaded.carried == fitted.carried
    assert json.loads((tmp_path / "t.json").read_text())["logits"][0] == "never"
    with pytest.raises(FrozenInstanceError):
        loaded.at = 0.9
    (tmp_path / "t.json").write_text('{"version": 1}')
    with pytest.raises(ValueError, match=r"Thresholds\.save"):
        Thresholds.load(tmp_path / "t.json")


def test_thresholds_belong_to_what_the_logits_carry():
    z, y = drawn()
    scores = made(z, y, [0.4, 0.2, 0.1])
    fitted = Thresholds.fit(scores, target=[0.5, 0.5, 0.5])
    assert fitted.carried == LabelOdds.even(3)
    with pytest.raises(ValueError, match=r"move them there first"):
        scores.predict(thresholds=fitted)
    assert scores.under(LabelOdds.even(3)).predict(thresholds=fitted).shape == (400, 3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"criterion": "f2"}, "criterion must be"),
        ({"at": 0.5}, "takes no at="),
        ({"criterion": "recall_at_precision"}, "needs at="),
        ({"criterion": "recall_at_precision", "at": 1.5}, "at must be"),
        ({"target": [0.5]}, "the target odds have 1"),
    ],
)
def test_options_that_do_not_fit_are_refused(options, words):
    z, y = drawn(20)
    with pytest.raises(ValueError, match=words):
        Thresholds.fit(made(z, y, [0.4, 0.2, 0.1]), **options)


def test_thresholds_are_not_fitted_on_test_samples_or_without_labels_or_of_classes():
    z, y = drawn(20)
    with pytest.raises(ValueError, match="must not be fitted on split='test'"):
        Thresholds.fit(made(z, y, split="test"))
    with pytest.raises(ValueError, match="labelled samples"):
        Thresholds.fit(made(z, None))
    with pytest.raises(ValueError, match="yes/no labels"):
        Thresholds.fit(Scores(z, [0] * 20))


@pytest.mark.parametrize(
    ("yes", "no", "true", "false"), [(5, 20, 4, 1), (7, 30, 6, 2), (3, 9, 2, 1)]
)
def test_a_precision_that_is_just_what_is_asked_for_is_kept(yes, no, true, false):
    z = np.array([2.0] * true + [0.0] * (yes - true) + [2.0] * false + [0.0] * (no - false))
    y = np.array([1] * yes + [0] * no)
    scores = Scores(z[:, None], y[:, None], family="sigmoid")
    by_precision = Thresholds.fit(scores, "recall_at_precision", at=true / (true + false))
    assert (by_precision.logits[0], by_precision.values[0]) == (2.0, pytest.approx(true / yes))
    by_recall = Thresholds.fit(scores, "precision_at_recall", at=true / yes)
    assert by_recall.logits[0] == 2.0
    assert by_recall.values[0] == pytest.approx(true / (true + false))


def test_thresholds_are_of_the_labels_by_name(tmp_path):
    z, y = [[2.0, -1.0], [-2.0, 1.0], [0.5, 0.0]], [[1, 0], [0, 1], [1, 0]]
    fitted = Thresholds.fit(Scores(z, y, classes=["a", "b"], family="sigmoid"))
    with pytest.raises(ValueError, match="another order"):
        Scores(z, y, classes=["b", "a"], family="sigmoid").predict(thresholds=fitted)
    path = tmp_path / "t.json"
    fitted.save(path)
    path.write_text(path.read_text().replace('"b"', '"b", "c"'))
    with pytest.raises(ValueError, match="labels"):
        Thresholds.load(path)
