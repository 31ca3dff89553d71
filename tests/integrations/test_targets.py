"""Where scores are moved to: named, given, mapped from labels, or estimated from what comes."""

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

import longtail as lt
from longtail.integrations.sklearn import LogitAdjustedClassifier
from longtail.integrations.sklearn.adjustment import target_prior

CLASSES = np.array(["ant", "bee", "cat"])
TRAIN = lt.Prior.of([240, 45, 15])


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("uniform", [1, 1, 1]),
        ("prior", [240, 45, 15]),
        ([10, 20, 70], [0.1, 0.2, 0.7]),
        (np.array([0.1, 0.2, 0.7]), [0.1, 0.2, 0.7]),
        (lt.Prior.of([1, 2, 7]), [0.1, 0.2, 0.7]),
        ({"cat": 7, "ant": 1, "bee": 2}, [0.1, 0.2, 0.7]),
    ],
)
def test_a_target_is_named_given_or_mapped_from_labels(target, expected):
    assert target_prior(target, TRAIN, CLASSES) == lt.Prior.of(expected)


@pytest.mark.parametrize(
    ("target", "sentence"),
    [
        ([1, 2], "have 3 classes but target has 2"),
        ({"ant": 1, "bee": 1}, r"missing: \['cat'\], unknown: \[\]"),
        ({"ant": 1, "bee": 1, "cat": 1, "dog": 1}, r"missing: \[\], unknown: \['dog'\]"),
        ([1, -1, 1], "none negative"),
    ],
)
def test_a_wrong_target_is_told_in_one_sentence(target, sentence):
    with pytest.raises(ValueError, match=sentence):
        target_prior(target, TRAIN, CLASSES)


def test_the_training_prior_as_target_leaves_probabilities_as_they_are(three_classes):
    X, y = three_classes
    adjusted = LogitAdjustedClassifier(LogisticRegression(), target="prior").fit(X, y)
    np.testing.assert_allclose(
        adjusted.predict_proba(X), LogisticRegression().fit(X, y).predict_proba(X), atol=1e-12
    )
    assert adjusted.tau_ == 1.0


@pytest.mark.parametrize("tau", ["auto", 1.0])
def test_a_class_that_the_target_rules_out_is_never_predicted(three_classes, tau):
    X, y = three_classes
    adjusted = LogitAdjustedClassifier(
        LogisticRegression(), target=[1, 0, 1], tau=tau, random_state=0
    ).fit(X, y)
    probs = adjusted.predict_proba(X)
    assert (probs[:, 1] == 0).all()
    np.testing.assert_allclose(probs.sum(axis=1), 1)
    assert set(adjusted.predict(X)) == {"ant", "cat"}


def test_accuracy_is_best_where_the_target_is_what_comes(two_gaussians):
    (X, y), (X_test, y_test) = two_gaussians
    comes = np.random.default_rng(2).random(20_000) < np.where(y_test == 1, 1.0, 0.05)
    X_test, y_test = X_test[comes], y_test[comes]

    def accuracy(target):
        model = LogitAdjustedClassifier(LogisticRegression(), tau=1.0, target=target)
        return model.fit(X, y).score(X_test, y_test)

    known = accuracy(np.bincount(y_test))
    assert known > accuracy("uniform") + 0.02
    assert accuracy("uniform") > accuracy("prior") + 0.2


@pytest.fixture(scope="module")
def shifted(two_gaussians):
    """A classifier that estimates its target, and samples of which two thirds are positive."""
    (X, y), (X_test, y_test) = two_gaussians
    comes = np.random.default_rng(2).random(20_000) < np.where(y_test == 1, 1.0, 0.05)
    model = LogitAdjustedClassifier(LogisticRegression(), target="estimate", random_state=0)
    return model.fit(X[:3000], y[:3000]), X_test[comes][:2000], y_test[comes][:2000]


def test_an_estimated_target_is_that_of_the_samples_given(shifted):
    model, X, y = shifted
    assert model.target_ is None
    reached = model.to_scores(X).carried
    assert float(reached.probs[1]) == pytest.approx(y.mean(), abs=0.05)
    truth = 1 / (1 + np.exp(1.5**2 / 2 - 1.5 * X[:, 0] - np.log(y.mean() / (1 - y.mean()))))
    assert np.abs(model.predict_proba(X)[:, 1] - truth).mean() < 0.05
    assert model.score(X, y) > model.estimator_.score(X, y) + 0.2


def test_what_one_call_says_depends_on_its_samples_until_the_target_is_fixed(shifted):
    model, X, y = shifted
    alone = model.predict_proba(X[y == 0])
    assert np.abs(alone - model.predict_proba(X)[y == 0]).max() > 0.05
    estimate = model.estimate_target(X)
    assert estimate.low[1] < y.mean() < estimate.high[1]
    assert model.target_ == estimate.prior
    np.testing.assert_allclose(model.predict_proba(X[:5]), model.predict_proba(X)[:5])
    assert model.to_scores(X).carried == estimate.prior


def test_a_known_target_is_not_estimated(three_classes):
    X, y = three_classes
    adjusted = LogitAdjustedClassifier(LogisticRegression(), target=[1, 2, 3]).fit(X, y)
    with pytest.raises(ValueError, match='made with target="estimate"'):
        adjusted.estimate_target(X)
