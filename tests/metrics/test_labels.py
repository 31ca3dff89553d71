"""Metrics of yes/no labels beside scikit-learn's, by loops under a target, and on edges."""

import inspect
import warnings

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn import metrics as sk

from longtail import LabelOdds, Scores, metrics
from longtail.metrics import LabelAccumulator, per_label
from longtail.posthoc import Thresholds


def drawn(samples=500, labels=4, seed=0, levels=None, **options):
    random = np.random.default_rng(seed)
    truth = random.random((samples, labels)) < np.linspace(0.5, 0.1, labels)
    z = 2 * truth + random.standard_normal(truth.shape) - 1.5
    z = z if levels is None else np.round(z * levels) / levels
    return Scores(z, truth.astype(int), family="sigmoid", _are_logits=True, **options)


@pytest.mark.parametrize("levels", [None, 2])
def test_metrics_are_those_of_scikit_learn_label_by_label(levels):
    scores = drawn(levels=levels)
    each, probs, said = per_label(scores), scores.probs(), scores.predict()
    for label in range(4):
        y, p = scores.labels[:, label], said[:, label]
        expected = {
            "precision": sk.precision_score(y, p),
            "recall": sk.recall_score(y, p),
            "f1": sk.f1_score(y, p),
            "balanced_accuracy": sk.balanced_accuracy_score(y, p),
            "average_precision": sk.average_precision_score(y, scores.logits[:, label]),
            "brier": sk.brier_score_loss(y, probs[:, label]),
            "nll": sk.log_loss(y, probs[:, label]),
        }
        for name, value in expected.items():
            assert getattr(each, name)[label] == pytest.approx(value, abs=1e-12), name
    assert each.macro()["f1"] == pytest.approx(sk.f1_score(scores.labels, said, average="macro"))


def test_the_calibration_error_is_that_of_bins_by_hand():
    scores = drawn()
    probs = scores.probs()
    for label in range(4):
        p, y = probs[:, label], scores.labels[:, label]
        total = 0.0
        for b in range(20):
            here = (p >= b / 20) & (p < (b + 1) / 20)
            total += abs((y[here] - p[here]).sum())
        assert per_label(scores).ece[label] == pytest.approx(total / len(p))


def test_under_a_target_metrics_are_those_of_samples_repeated_to_have_its_odds():
    scores = drawn(400, 1, carried=[0.3])
    yes, no = int((scores.labels == 1).sum()), int((scores.labels == 0).sum())
    # Every positive 3·no times and every negative yes times: three quarters are positives.
    times = np.where(scores.labels[:, 0] == 1, 3 * no, yes)
    moved = scores.under([0.75])
    repeated = moved.take(np.repeat(np.arange(400), times))
    expected, got = per_label(repeated), per_label(scores, target=[0.75])
    for name in got._fields[2:]:
        np.testing.assert_allclose(getattr(got, name), getattr(expected, name), rtol=1e-9)


@settings(max_examples=20, deadline=None)
@given(seed=st.integers(0, 10**6), cut=st.integers(1, 99))
def test_sums_of_parts_merge_to_those_of_the_whole(seed, cut):
    scores = drawn(100, 3, seed, levels=4)
    whole = LabelAccumulator.of(scores)
    parts = [scores.take(slice(0, cut)), scores.take(slice(cut, None))]
    first, second = (LabelAccumulator(3) for _ in range(2))
    for sums, part in zip((first, second), parts, strict=True):
        sums.add(part.logits, part.labels)
    for name in ("precision", "recall", "f1", "balanced_accuracy", "nll", "brier", "ece"):
        got = getattr(first + second, name)
        np.testing.assert_allclose(got, getattr(whole, name), rtol=1e-12, atol=1e-12)


def test_sums_made_otherwise_do_not_merge():
    with pytest.raises(ValueError, match="made alike"):
        LabelAccumulator(2) + LabelAccumulator(2, target=[0.5, 0.5])


def test_a_label_without_positives_has_no_recall_and_is_left_out_of_the_means():
    scores = drawn(60, 3)
    labels = scores.labels.copy()
    labels[:, 1] = 0
    scores = Scores(scores.logits, labels, family="sigmoid")
    each, means = per_label(scores), metrics.evaluate(scores)
    for name in ("recall", "f1", "balanced_accuracy", "average_precision"):
        assert np.isnan(getattr(each, name)).tolist() == [False, True, False]
        assert means[name] == pytest.approx(np.nanmean(getattr(each, name)))
    assert means["absent_labels"] == 1
    assert np.isfinite(each.nll).all()


def test_evaluate_takes_thresholds_and_counts_of_training_samples():
    scores = drawn(400, 4, counts=[500, 200, 50, 3])
    fitted = Thresholds.fit(scores)
    values = metrics.evaluate(scores, thresholds=fitted)
    assert values["f1"] == pytest.approx(fitted.values.mean())
    precision = per_label(scores).average_precision
    assert values["many"] == pytest.approx(precision[:2].mean())
    assert (values["medium"], values["few"]) == (precision[2], precision[3])
    in_torch = Scores(torch.tensor(scores.logits), scores.labels, family="sigmoid")
    assert metrics.evaluate(in_torch)["nll"] == pytest.approx(metrics.evaluate(scores)["nll"])
    with pytest.raises(ValueError, match="leave them out"):
        metrics.evaluate(Scores([[2.0, 0.0]], [0]), thresholds=0.5)


OF_CLASSES = [
    name
    for name, function in vars(metrics).items()
    if inspect.isfunction(function)
    and "logits" in inspect.signature(function).parameters
    and name != "evaluate"  # which is for both
]


@pytest.mark.parametrize("name", OF_CLASSES)
def test_a_metric_of_one_class_a_sample_refuses_labels_and_says_what_to_use(name):
    function = getattr(metrics, name)
    with pytest.raises(ValueError, match=r"sigmoid.*evaluate or metrics\.per_label"):
        function(drawn(20, 2), **({"at": [0.0]} if name == "margin_cdf" else {}))


def test_costs_are_of_one_class_a_sample_and_refuse_labels():
    scores = drawn(20, 2)
    with pytest.raises(ValueError, match=r"sigmoid.*Thresholds"):
        scores.decide([1, 2])
    with pytest.raises(ValueError, match=r"costs are for .* thresholds"):
        metrics.evaluate(scores, costs=[1, 2])


@pytest.mark.parametrize("name", ["per_label", "average_precision"])
def test_a_metric_of_labels_refuses_one_class_a_sample(name):
    with pytest.raises(ValueError, match='family="sigmoid"'):
        getattr(metrics, name)(Scores([[2.0, 0.0]], [0]))


def test_odds_may_be_of_no_sample_as_they_are_and_no_warning_comes():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        scores = Scores([[3.0], [1.0]], [1, 1], carried=LabelOdds.of([0.5]), family="sigmoid")
        assert per_label(scores).balanced_accuracy.tolist() != [0.0]
        assert np.isnan(per_label(scores, target=[0.2]).nll).all()
