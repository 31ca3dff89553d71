"""What one row costs on its way through a loaded adjuster and a fitted classifier: calls, not µs.

Time depends on what else the machine does. Each call of Python or C is a fraction of a microsecond,
and of those that one row needs there are few enough to count.
"""

import sys

import numpy as np
import pytest

import longtail as lt

COUNTS = [500, 150, 40, 10]


def calls_of(work):
    work()  # what is kept from call to call is there now
    calls = 0

    def count(frame, event, argument):
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        work()
    finally:
        sys.setprofile(None)
    return calls


def test_a_row_of_logits_becomes_probabilities_in_few_calls(tmp_path):
    labels = np.repeat(np.arange(4), 100)
    logits = np.random.default_rng(0).normal(size=(400, 4)) + 2 * np.eye(4)[labels] + np.log(COUNTS)
    scores = lt.Scores(logits, labels, carried=COUNTS, split="validation")
    calibration = lt.posthoc.Temperature.fit(scores)
    adjusters = calibration, lt.posthoc.LogitAdjustment.fit(calibration(scores))
    lt.posthoc.save_adjusters(tmp_path / "adjuster.json", adjusters)
    adjuster = lt.posthoc.load_adjusters(tmp_path / "adjuster.json")
    prior, row = lt.Prior.of(COUNTS), np.array([[2.0, 1.0, 0.5, 0.1]])
    assert calls_of(lambda: adjuster(lt.Scores(row, carried=prior)).probs()) <= 150


def test_the_adjusted_classifier_adds_few_calls_to_the_one_inside():
    linear_model = pytest.importorskip("sklearn.linear_model")
    from longtail.integrations.sklearn import LogitAdjustedClassifier

    labels = np.repeat(np.arange(4), COUNTS)
    rows = np.random.default_rng(0).normal(size=(len(labels), 20)) + np.eye(4, 20)[labels]
    adjusted = LogitAdjustedClassifier(linear_model.LogisticRegression()).fit(rows, labels)
    alone = calls_of(lambda: adjusted.estimator_.predict_proba(rows[:1]))
    assert calls_of(lambda: adjusted.predict_proba(rows[:1])) <= alone + 40
