"""2-D y: a classifier a label, their odds, and boosters with weights back to probabilities."""

import numpy as np
import pytest
import scipy.sparse
from lightgbm import LGBMClassifier
from sklearn.base import clone
from sklearn.datasets import make_multilabel_classification
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from longtail import LabelOdds, metrics
from longtail.core import LabelScores
from longtail.integrations.sklearn import LogitAdjustedClassifier

X, Y = make_multilabel_classification(600, n_classes=3, n_labels=1, random_state=0)
ODDS = LabelOdds.from_labels(Y)


def fitted(**options):
    return LogitAdjustedClassifier(LogisticRegression(max_iter=1000), **options).fit(X, Y)


def test_each_label_is_what_a_classifier_of_its_own_says():
    both = fitted(tau=1.0)
    assert both.carried_.is_close(ODDS)
    assert both.target_ == LabelOdds.even(3)
    for label in range(3):
        own = LogitAdjustedClassifier(LogisticRegression(max_iter=1000), tau=1.0)
        own.fit(X, Y[:, label])
        np.testing.assert_array_equal(both.predict(X)[:, label], own.predict(X))
        np.testing.assert_allclose(both.predict_proba(X)[:, label], own.predict_proba(X)[:, 1])
        np.testing.assert_allclose(both.decision_function(X)[:, label], own.decision_function(X))


def test_the_move_is_that_of_the_odds_and_scores_say_what_they_carry():
    plain, moved = (fitted(tau=1.0, target=t) for t in ("prior", [0.1, 0.5, 0.7]))
    scores = moved.to_scores(X, Y)
    assert isinstance(scores, LabelScores)
    assert scores.carried == LabelOdds.of([0.1, 0.5, 0.7])
    expected = plain.to_scores(X).under(LabelOdds.of([0.1, 0.5, 0.7]))
    np.testing.assert_allclose(scores.logits, expected.logits)
    assert metrics.evaluate(scores)["f1"] > 0.5
    np.testing.assert_array_equal(scores.counts, Y.sum(axis=0))


def test_what_is_carried_may_be_said_a_label_and_lists_are_taken():
    said = LogitAdjustedClassifier(LogisticRegression(), tau=1.0, carried=[0.5, 0.2, 0.3])
    assert said.fit(X, Y).carried_ == LabelOdds.of([0.5, 0.2, 0.3])
    assert said.fit(X, Y.tolist()).predict(X).shape == Y.shape
    assert clone(said).fit(X, Y.astype(bool)).predict(X).dtype == bool


def test_a_fit_on_classes_after_one_on_labels_forgets_the_labels():
    model = fitted(tau=1.0)
    model.fit(X, Y[:, 0])
    assert model.predict(X).shape == (600,)
    assert not model.estimators_


@pytest.mark.parametrize(
    ("y", "options", "words"),
    [
        (Y + 1, {}, "0 or 1"),
        (np.c_[Y, np.zeros(600, int)], {}, "columns 3 of y are not"),
        (scipy.sparse.csr_matrix(Y), {}, "dense matrix"),
        (Y, {"target": "estimate"}, "of several labels target must be"),
        (Y, {"target": [0.5, 0.5]}, "y has 3 labels but target has 2"),
    ],
)
def test_what_labels_cannot_be_is_refused(y, options, words):
    with pytest.raises(ValueError, match=words):
        LogitAdjustedClassifier(LogisticRegression(), **options).fit(X, y)


BOOSTED = {"n_estimators": 60, "num_leaves": 7, "verbose": -1, "n_jobs": 1, "random_state": 0}


@pytest.mark.parametrize("weights", [{"scale_pos_weight": 19.0}, {"is_unbalance": True}])
def test_a_booster_that_was_trained_with_weights_gives_probabilities_again(weights):
    random = np.random.default_rng(0)
    x = random.standard_normal((12_000, 6))
    y = (random.random(12_000) < 1 / (1 + np.exp(4 - 1.5 * x[:, 0] - x[:, 1]))).astype(int)
    train, test = slice(0, 8000), slice(8000, None)
    plain = LGBMClassifier(**BOOSTED).fit(x[train], y[train])
    weighted = LGBMClassifier(**BOOSTED, **weights)
    raw = clone(weighted).fit(x[train], y[train]).predict_proba(x[test])[:, 1]
    back = LogitAdjustedClassifier(weighted, target="prior", criterion="nll", random_state=0)
    probs = back.fit(x[train], y[train]).predict_proba(x[test])[:, 1]
    best = log_loss(y[test], plain.predict_proba(x[test])[:, 1])
    assert log_loss(y[test], raw) > 1.5 * best
    assert log_loss(y[test], probs) < 1.05 * best
    assert probs.mean() == pytest.approx(y[test].mean(), abs=0.01)
