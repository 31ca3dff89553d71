"""What scores of scikit-learn classifiers carry: told by their parameters, checked by measuring."""

import numpy as np
import pytest
from lightgbm import LGBMClassifier
from sklearn.base import BaseEstimator
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import make_classification
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.ensemble import (
    BaggingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import FixedThresholdClassifier, GridSearchCV
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.tree import DecisionTreeClassifier

import longtail as lt
from longtail.integrations.sklearn import LogitAdjustedClassifier
from longtail.integrations.sklearn.carried import carried_by
from longtail.integrations.sklearn.training_set import TrainingLabels

BOOSTED = {"n_estimators": 40, "max_depth": 2, "n_jobs": 1, "verbose": -1}
BALANCED = LogisticRegression(class_weight="balanced")
TRAIN, UNIFORM = [0.9, 0.1], [0.5, 0.5]

CARRIED = {
    "plain": (LogisticRegression(), TRAIN),
    "balanced": (BALANCED, UNIFORM),
    "weights by label": (LogisticRegression(class_weight={0: 1, 1: 3}), [0.9, 0.3]),
    "weights of one label": (LogisticRegression(class_weight={1: 3}), [0.9, 0.3]),
    "pipeline": (make_pipeline(StandardScaler(), BALANCED), UNIFORM),
    "search": (GridSearchCV(make_pipeline(BALANCED), {"logisticregression__C": [1.0]}), UNIFORM),
    "threshold": (FixedThresholdClassifier(BALANCED, threshold=0.3), UNIFORM),
    "calibrated afterwards": (CalibratedClassifierCV(BALANCED, cv=2), TRAIN),
    "boosting, balanced": (
        HistGradientBoostingClassifier(max_iter=40, max_depth=2, class_weight="balanced"),
        UNIFORM,
    ),
    "LightGBM": (LGBMClassifier(**BOOSTED), TRAIN),
    "LightGBM, balanced": (LGBMClassifier(**BOOSTED, class_weight="balanced"), UNIFORM),
    "LightGBM, unbalanced": (LGBMClassifier(**BOOSTED, is_unbalance=True), UNIFORM),
    "LightGBM, positives": (LGBMClassifier(**BOOSTED, scale_pos_weight=4), [0.9, 0.4]),
    "naive Bayes": (GaussianNB(), TRAIN),
    "naive Bayes, told": (GaussianNB(priors=[0.3, 0.7]), [0.3, 0.7]),
    "discriminants, told": (LinearDiscriminantAnalysis(priors=[0.3, 0.7]), [0.3, 0.7]),
    "naive Bayes of signs": (BernoulliNB(fit_prior=False), UNIFORM),
}


@pytest.mark.parametrize("name", CARRIED)
def test_what_is_declared_is_what_is_measured(two_gaussians, name):
    (X, y), (X_test, y_test) = two_gaussians
    estimator, expected = CARRIED[name]
    estimator.fit(X, y)
    declared = carried_by(estimator, TrainingLabels.of(y, None))
    assert declared.is_close(lt.Prior.of(expected), tolerance=0.05)
    measured = lt.measure_carried(np.log(estimator.predict_proba(X_test)), y_test)
    assert declared.is_close(measured, tolerance=0.1)


def test_a_balanced_classifier_is_not_adjusted_a_second_time(three_classes):
    X, y = three_classes
    adjusted = LogitAdjustedClassifier(BALANCED).fit(X, y)
    assert adjusted.carried_ == lt.Prior.uniform(3)
    assert adjusted.out_of_fold_scores_ is None
    np.testing.assert_allclose(
        adjusted.predict_proba(X), BALANCED.fit(X, y).predict_proba(X), atol=1e-12
    )


def test_class_weights_are_undone_where_the_training_prior_is_the_target(two_gaussians):
    (X, y), (X_test, _) = two_gaussians
    weighted = LogitAdjustedClassifier(BALANCED, target="prior", tau=1.0).fit(X, y)
    plain = LogisticRegression().fit(X, y)
    np.testing.assert_allclose(
        weighted.predict_proba(X_test), plain.predict_proba(X_test), atol=0.03
    )
    assert (
        np.abs(BALANCED.fit(X, y).predict_proba(X_test) - plain.predict_proba(X_test)).max() > 0.4
    )


@pytest.mark.parametrize(
    ("estimator", "expected"),
    [
        (LogisticRegression(class_weight="balanced"), [1, 1]),  # counts samples by their weight
        (LogisticRegression(class_weight={0: 5}), [450, 270]),
        (DecisionTreeClassifier(class_weight="balanced"), [1, 27]),  # counts samples
        (HistGradientBoostingClassifier(class_weight="balanced"), [1, 27]),
        (LGBMClassifier(**BOOSTED, class_weight="balanced"), [1, 27]),
    ],
    ids=lambda given: str(given).partition("(")[0],
)
def test_a_classifier_that_sees_nothing_says_what_it_carries(estimator, expected):
    y = np.repeat([0, 1], [90, 10])
    weights = np.where(y == 1, 27.0, 1.0)  # 90 to 270
    X = np.zeros((100, 1))
    estimator.fit(X, y, sample_weight=weights)
    declared = carried_by(estimator, TrainingLabels.of(y, weights))
    assert declared.is_close(lt.Prior.of(expected))
    assert declared.is_close(lt.Prior.of(estimator.predict_proba(X)[0]), tolerance=1e-3)


@pytest.mark.parametrize("class_weight", ["balanced", "balanced_subsample", {1: 5, 2: 20}, None])
def test_what_weights_do_to_a_forest_is_measured_and_not_assumed(class_weight):
    X, y = make_classification(
        5000, n_classes=3, n_informative=6, weights=[0.85, 0.12], class_sep=0.8, random_state=0
    )
    forest = RandomForestClassifier(20, class_weight=class_weight, random_state=0)
    weights = 1 / np.bincount(y)[y[:1500]] if class_weight is None else None
    adjusted = LogitAdjustedClassifier(forest, cv=3, random_state=0)
    adjusted.fit(X[:1500], y[:1500], weights)
    assert adjusted.out_of_fold_scores_ is not None
    assert adjusted.carried_.probs[0] > 0.5  # pure leaves say what they would without weights
    plain, moved = (
        balanced_accuracy_score(y[1500:], model.predict(X[1500:]))
        for model in (adjusted.estimator_, adjusted)
    )
    assert moved > plain + 0.03


def test_of_classes_told_apart_perfectly_the_declared_prior_is_taken_and_measuring_is_refused():
    y = np.repeat([0, 1, 2], [30, 20, 10])
    X, weights = 10.0 * y[:, None] + np.eye(60), np.linspace(1, 2, 60)
    forest = RandomForestClassifier(5, random_state=0)
    adjusted = LogitAdjustedClassifier(forest, cv=3, random_state=0).fit(X, y, weights)
    assert np.allclose(adjusted.carried_.probs, np.bincount(y, weights) / weights.sum())
    with pytest.raises(ValueError, match="do not determine the prior"):
        LogitAdjustedClassifier(forest, cv=3, random_state=0, carried="measure").fit(X, y, weights)


def test_what_a_linear_model_carries_is_not_measured(two_gaussians):
    (X, y), _ = two_gaussians
    for estimator in (BALANCED, make_pipeline(StandardScaler(), BALANCED), GaussianNB()):
        adjusted = LogitAdjustedClassifier(estimator, tau=1.0).fit(X, y)
        assert adjusted.out_of_fold_scores_ is None


class Undersampler(BaseEstimator):
    """As imbalanced-learn's are."""

    def fit_resample(self, X, y):
        return X, y

    def fit(self, X, y):
        return self

    def transform(self, X):
        return X


class Resampling(LogisticRegression):
    """As imbalanced-learn's ensembles are."""

    def __init__(self, sampling_strategy="auto"):
        super().__init__()
        self.sampling_strategy = sampling_strategy


@pytest.mark.parametrize(
    ("estimator", "reason"),
    [
        (BaggingClassifier(BALANCED), "estimator__class_weight='balanced'"),
        (make_pipeline(Undersampler(), LogisticRegression()), "'undersampler' resamples"),
        (Resampling(), "sampling_strategy='auto'"),
        (ComplementNB(), "leaves the prior of its labels out"),
    ],
)
def test_where_it_cannot_be_told_the_error_names_the_remedy(three_classes, estimator, reason):
    X, y = three_classes
    with pytest.raises(ValueError, match=f'cannot tell .*{reason}.*carried="measure"'):
        LogitAdjustedClassifier(estimator).fit(np.abs(X), y)


def test_a_measured_prior_mends_a_classifier_that_resamples(two_gaussians):
    (X, y), (X_test, _) = two_gaussians

    class Undersampled(LogisticRegression):
        def fit(self, X, y):
            keep = np.random.default_rng(0).random(len(y)) < np.where(y == 1, 1.0, 0.2)
            return super().fit(X[keep], y[keep])

    adjusted = LogitAdjustedClassifier(
        Undersampled(), target="prior", carried="measure", tau=1.0, random_state=0
    ).fit(X, y)
    assert adjusted.carried_.is_close(lt.Prior.of([0.18, 0.1]), tolerance=0.1)
    plain = LogisticRegression().fit(X, y)
    np.testing.assert_allclose(
        adjusted.predict_proba(X_test), plain.predict_proba(X_test), atol=0.03
    )


def test_a_frozen_classifier_is_adjusted_on_samples_of_its_own_kind(three_classes):
    X, y = three_classes
    trained = LogisticRegression().fit(X, y)
    with pytest.raises(ValueError, match="trained before"):
        LogitAdjustedClassifier(FrozenEstimator(trained)).fit(X, y)
    adjusted = LogitAdjustedClassifier(
        FrozenEstimator(trained), carried=[240, 45, 15], random_state=0
    ).fit(X[:150], y[:150])
    assert adjusted.carried_ == lt.Prior.of([240, 45, 15])
    assert adjusted.estimator_.estimator is trained
    assert (adjusted.predict(X) != trained.predict(X)).any()
    with pytest.raises(ValueError, match="each of its classes"):
        LogitAdjustedClassifier(FrozenEstimator(trained), carried=[2, 1]).fit(
            X[y != "cat"], y[y != "cat"]
        )
