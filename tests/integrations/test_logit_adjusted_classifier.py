"""The classifier: what it says is the inner one's probabilities moved to the target, by hand."""

import pickle

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression, RidgeClassifier
from sklearn.metrics import balanced_accuracy_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.svm import LinearSVC

import longtail as lt
from longtail.integrations.sklearn import LogitAdjustedClassifier

TARGET = [0.2, 0.3, 0.5]


def moved_by_hand(probs, carried, target, tau):
    rows = []
    for row in probs:
        new = [p * (t / c) ** tau for p, c, t in zip(row, carried, target, strict=True)]
        rows.append([p / sum(new) for p in new])
    return np.array(rows)


@pytest.mark.parametrize("tau", [0.0, 0.7, 1.0, 1.8])
def test_probabilities_are_the_inner_ones_times_target_over_prior_to_the_tau(three_classes, tau):
    X, y = three_classes
    adjusted = LogitAdjustedClassifier(LogisticRegression(), tau=tau, target=TARGET).fit(X, y)
    plain = LogisticRegression().fit(X, y)
    by_hand = moved_by_hand(plain.predict_proba(X), [0.8, 0.15, 0.05], TARGET, tau)
    np.testing.assert_allclose(adjusted.predict_proba(X), by_hand, atol=1e-12)
    assert (adjusted.predict(X) == adjusted.classes_[by_hand.argmax(axis=1)]).all()
    scores = adjusted.to_scores(X, y)
    reached = lt.Prior.of([0.8, 0.15, 0.05]).tempered(1 - tau)
    assert scores.carried.is_close(reached.reweighted(np.power(TARGET, tau)))


def test_two_classes_have_one_decision_value_the_log_odds(two_gaussians):
    (X, y), (X_test, _) = two_gaussians
    adjusted = LogitAdjustedClassifier(LogisticRegression(), tau=1.0).fit(X[:500], y[:500])
    probs = adjusted.predict_proba(X_test)
    values = adjusted.decision_function(X_test)
    assert values.shape == (len(X_test),)
    np.testing.assert_allclose(values, np.log(probs[:, 1] / probs[:, 0]), atol=1e-9)
    assert (adjusted.predict(X_test) == (values > 0)).all()


def test_many_classes_have_one_decision_value_each(three_classes):
    X, y = three_classes
    adjusted = LogitAdjustedClassifier(LogisticRegression(), random_state=0).fit(X, y)
    values = adjusted.decision_function(X)
    probs = np.exp(values) / np.exp(values).sum(axis=1, keepdims=True)
    np.testing.assert_allclose(adjusted.predict_proba(X), probs, atol=1e-12)
    np.testing.assert_allclose(adjusted.predict_proba(X).sum(axis=1), 1)


def test_the_exact_move_finds_the_boundary_of_the_balanced_problem(two_gaussians):
    (X, y), _ = two_gaussians
    adjusted = LogitAdjustedClassifier(LogisticRegression(C=1e6), tau=1.0).fit(X, y)
    midpoint = 0.75  # between the two means
    slope = adjusted.decision_function([[1.0]]) - adjusted.decision_function([[0.0]])
    assert -adjusted.decision_function([[0.0]]) / slope == pytest.approx(midpoint, abs=0.03)


def test_the_chosen_tau_is_the_best_there_is_on_out_of_fold_scores(three_classes):
    X, y = three_classes
    adjusted = LogitAdjustedClassifier(LogisticRegression(), random_state=0).fit(X, y)
    held_out = adjusted.out_of_fold_scores_
    assert len(held_out) == len(y)
    assert adjusted.adjuster_.choice.tau == adjusted.tau_

    def balanced_accuracy(tau):
        moved = held_out.logits - tau * np.log([0.8, 0.15, 0.05])
        return balanced_accuracy_score(held_out.labels, moved.argmax(axis=1))

    best = balanced_accuracy(adjusted.tau_)
    assert best >= max(balanced_accuracy(tau) for tau in np.linspace(-2, 5, 141))
    assert best > balanced_accuracy(0.0) + 0.1


@pytest.mark.parametrize("criterion", ["accuracy_under_target", "nll", "brier", "ece"])
def test_tau_is_that_of_logit_adjustment_by_every_criterion(three_classes, criterion):
    X, y = three_classes
    adjusted = LogitAdjustedClassifier(
        LogisticRegression(), criterion=criterion, calibration=None, random_state=0
    ).fit(X, y)
    prior = lt.Prior.of([240, 45, 15])
    by_hand = lt.posthoc.LogitAdjustment.fit(
        adjusted.out_of_fold_scores_, prior, criterion=criterion
    )
    assert adjusted.tau_ == by_hand.tau
    assert adjusted.calibrator_ is None
    assert adjusted.to_scores(X).carried == lt.Prior.uniform(3)


class TooSure(LogisticRegression):
    """Three times as sure as it should be."""

    def predict_proba(self, X):
        odds = np.exp(3 * self.decision_function(X))
        return np.stack([1 / (1 + odds), odds / (1 + odds)], axis=1)


def test_a_temperature_changes_no_best_decision_but_makes_probabilities_right(two_gaussians):
    (X, y), (X_test, _) = two_gaussians
    as_it_is = LogitAdjustedClassifier(TooSure(), calibration=None, random_state=0)
    as_it_is.fit(X[:3000], y[:3000])
    honest = LogitAdjustedClassifier(TooSure(), random_state=0).fit(X[:3000], y[:3000])
    assert honest.calibrator_.temperature == pytest.approx(3, abs=0.3)
    optima = [model.adjuster_.choice.optimum for model in (as_it_is, honest)]
    assert optima[1] == pytest.approx(optima[0] / honest.calibrator_.temperature)
    # Each is held near 1, which of the two is right for the honest one only.
    assert (honest.predict(X_test) == as_it_is.predict(X_test)).mean() > 0.98
    truth = 1 / (1 + np.exp(1.5**2 / 2 - 1.5 * X_test[:, 0]))
    off = [np.abs(m.predict_proba(X_test)[:, 1] - truth).mean() for m in (as_it_is, honest)]
    assert off[0] > 0.1
    assert off[1] < 0.03


def test_decision_values_are_calibrated_before_they_are_moved(two_gaussians):
    (X, y), (X_test, y_test) = two_gaussians
    for inside in (LinearSVC(), RidgeClassifier()):
        adjusted = LogitAdjustedClassifier(inside, target="prior", random_state=0).fit(
            X[:3000], y[:3000]
        )
        assert isinstance(adjusted.calibrator_, lt.posthoc.BiasCorrectedTemperature)
        truth = 1 / (1 + np.exp(np.log(9) + 1.5**2 / 2 - 1.5 * X_test[:, 0]))
        assert np.abs(adjusted.predict_proba(X_test)[:, 1] - truth).mean() < 0.02
        balanced = LogitAdjustedClassifier(inside, tau=1.0, random_state=0).fit(X[:3000], y[:3000])
        plain = balanced_accuracy_score(y_test, inside.fit(X[:3000], y[:3000]).predict(X_test))
        assert balanced_accuracy_score(y_test, balanced.predict(X_test)) > plain + 0.15


def test_a_class_that_no_tree_has_seen_is_unlikely_but_not_impossible(three_classes):
    X, y = three_classes
    adjusted = LogitAdjustedClassifier(RandomForestClassifier(5, random_state=0), tau=1.0)
    probs = adjusted.fit(X, y).predict_proba(X)
    assert (adjusted.estimator_.predict_proba(X) == 0).any()
    assert (probs > 0).all()


def test_pipelines_take_texts_and_sparse_matrices_give_the_same():
    texts = ["ripe apple", "red apple", "green apple", "apple pie", "old pear", "pear tree"] * 5
    labels = ["apple", "apple", "apple", "apple", "pear", "pear"] * 5
    whole = make_pipeline(TfidfVectorizer(), LogisticRegression())
    adjusted = LogitAdjustedClassifier(whole, random_state=0).fit(texts, labels)
    assert adjusted.predict(["a pear", "an apple"]).tolist() == ["pear", "apple"]
    features = TfidfVectorizer().fit_transform(texts)
    for X in (features, features.toarray(), sparse.coo_array(features)):
        same = LogitAdjustedClassifier(LogisticRegression(), tau=1.0).fit(X, labels)
        np.testing.assert_allclose(
            same.predict_proba(X),
            adjusted.set_params(tau=1.0).fit(texts, labels).predict_proba(texts),
        )


def test_data_frames_keep_the_names_of_their_columns(three_classes):
    pandas = pytest.importorskip("pandas")
    X, y = three_classes
    frame = pandas.DataFrame(X, columns=["left", "right"], index=np.arange(len(y))[::-1])
    labels = pandas.Series(y, index=frame.index)
    adjusted = LogitAdjustedClassifier(LogisticRegression(), random_state=0).fit(frame, labels)
    assert adjusted.feature_names_in_.tolist() == ["left", "right"]
    plain = LogitAdjustedClassifier(LogisticRegression(), random_state=0).fit(X, y)
    np.testing.assert_allclose(adjusted.predict_proba(frame), plain.predict_proba(X))


def test_it_is_a_scikit_learn_estimator_cloned_pickled_searched_and_scored(three_classes):
    X, y = three_classes
    adjusted = LogitAdjustedClassifier(LogisticRegression(), target=TARGET, random_state=0)
    assert clone(adjusted).get_params()["target"] == TARGET
    assert adjusted.get_params()["estimator__C"] == 1.0
    adjusted.fit(X, y)
    again = pickle.loads(pickle.dumps(adjusted))  # noqa: S301
    np.testing.assert_array_equal(again.predict_proba(X), adjusted.predict_proba(X))
    search = GridSearchCV(adjusted, {"estimator__C": [0.1, 1.0], "tau": [0.5, 1.0]}, cv=2)
    assert search.fit(X, y).best_estimator_.n_features_in_ == 2
    by_scorer = cross_val_score(
        clone(adjusted).set_params(target="uniform"), X, y, scoring="balanced_accuracy"
    )
    assert by_scorer.mean() > 0.6


def test_one_random_state_makes_all_of_it_reproducible(three_classes):
    X, y = three_classes
    inside = make_pipeline(TfidfVectorizer(), RandomForestClassifier(5)).steps[-1][1]
    fits = [LogitAdjustedClassifier(inside, random_state=3).fit(X, y) for _ in range(2)]
    np.testing.assert_array_equal(*(fit.predict_proba(X) for fit in fits))
    assert inside.random_state is None
    own = RandomForestClassifier(5, random_state=7)
    assert LogitAdjustedClassifier(own, random_state=3).fit(X, y).estimator_.random_state == 7


def test_scores_speak_to_the_rest_of_the_library(three_classes):
    X, y = three_classes
    adjusted = LogitAdjustedClassifier(LogisticRegression(), random_state=0).fit(X, y)
    scores = adjusted.to_scores(X, y)
    assert scores.classes == ("ant", "bee", "cat")
    assert scores.counts.tolist() == [240, 45, 15]
    assert scores.carried == adjusted.target_ == lt.Prior.uniform(3)
    report = lt.metrics.evaluate(scores)
    assert report["balanced_accuracy"] == pytest.approx(
        balanced_accuracy_score(y, adjusted.predict(X))
    )
    with pytest.raises(ValueError, match="training set only"):
        adjusted.to_scores(X[:1], ["dog"])


def test_nothing_is_said_before_it_is_fitted(three_classes):
    X, _ = three_classes
    adjusted = LogitAdjustedClassifier(LogisticRegression())
    for method in ("predict", "predict_proba", "decision_function", "to_scores"):
        with pytest.raises(NotFittedError):
            getattr(adjusted, method)(X)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"tau": "best"}, r'tau.*"auto"'),
        ({"tau": np.nan}, r"tau.*finite"),
        ({"criterion": "accuracy"}, 'criterion must be "accuracy_under_target", "nll"'),
        ({"criterion": None}, "criterion must be .* got None"),
        ({"calibration": "isotonic"}, r'calibration.*"auto"'),
        ({"calibration": 3}, "calibration must be .* got 3"),
        ({"carried": "prior"}, r'carried.*"train", "measure"'),
        ({"carried": [1, 2]}, "have 3 classes but carried has 2"),
        ({"target": "balanced"}, 'target must be "uniform"'),
        ({"cv": 1}, "two folds or more"),
    ],
)
def test_wrong_options_are_told_in_one_sentence(three_classes, options, sentence):
    with pytest.raises(ValueError, match=sentence):
        LogitAdjustedClassifier(LogisticRegression(), **options).fit(*three_classes)


def test_an_estimator_without_scores_is_refused(three_classes):
    from sklearn.neighbors import NearestCentroid

    class Bare(NearestCentroid):
        predict_proba = decision_function = property()

    with pytest.raises(ValueError, match="Bare has neither"):
        LogitAdjustedClassifier(Bare()).fit(*three_classes)


class OnlyNumbers(LogisticRegression):
    """Takes no labels but 0, 1, 2, ... as XGBoost's classifiers do."""

    def fit(self, X, y, sample_weight=None):
        if not np.array_equal(np.unique(y), np.arange(len(np.unique(y)))):
            raise ValueError(f"Invalid classes inferred from unique values of `y`: {np.unique(y)}")
        return super().fit(X, y, sample_weight)


@pytest.mark.parametrize("target", ["uniform", "estimate"])
@pytest.mark.parametrize("inside", [OnlyNumbers(), make_pipeline(OnlyNumbers())])
def test_names_are_numbered_for_an_estimator_that_takes_no_names(three_classes, inside, target):
    X, y = three_classes
    given = {"target": target, "random_state": 0}
    plain = LogitAdjustedClassifier(LogisticRegression(), **given).fit(X, y)
    adjusted = LogitAdjustedClassifier(inside, **given).fit(X, y)
    assert (
        adjusted.classes_.tolist()
        == adjusted.estimator_.classes_.tolist()
        == plain.classes_.tolist()
    )
    np.testing.assert_allclose(adjusted.predict_proba(X), plain.predict_proba(X))
    assert (adjusted.predict(X) == plain.predict(X)).all()
    assert (adjusted.estimator_.predict(X) == plain.estimator_.predict(X)).all()
    again = pickle.loads(pickle.dumps(adjusted))  # noqa: S301
    assert (again.predict(X) == plain.predict(X)).all()


def test_numbers_with_gaps_are_numbered_anew_too(three_classes):
    X, y = three_classes
    numbers = np.array([3, 5, 11])[np.unique(y, return_inverse=True)[1]]
    adjusted = LogitAdjustedClassifier(OnlyNumbers(), tau=1.0).fit(X, numbers)
    assert set(adjusted.predict(X)) <= {3, 5, 11}


def test_what_is_not_about_labels_is_said_as_it_was(three_classes):
    X, y = three_classes
    with pytest.raises(ValueError, match="Input X contains NaN"):
        LogitAdjustedClassifier(LogisticRegression()).fit(np.where(X > 2, np.nan, X), y)


class Shares(LogisticRegression):
    """Its decision values are shares, which sum to one: no logits, but to be calibrated."""

    predict_proba = property()

    def decision_function(self, X):
        values = np.exp(super().decision_function(X))
        return values / values.sum(axis=1, keepdims=True)


def test_decision_values_may_sum_to_one(three_classes):
    X, y = three_classes
    adjusted = LogitAdjustedClassifier(Shares(), random_state=0).fit(X, y)
    assert adjusted.predict(X[:1]).shape == (1,)
    assert balanced_accuracy_score(y, adjusted.predict(X)) > 0.6
