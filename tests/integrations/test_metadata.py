"""Sample weights, fit parameters and groups: handed on to whoever takes them, and counted."""

import numpy as np
import pytest
import sklearn
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GroupKFold
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import longtail as lt
from longtail.integrations.sklearn import LogitAdjustedClassifier

WEIGHTS = {"ant": 1.0, "bee": 4.0, "cat": 8.0}
WEIGHTED = lt.Prior.of([240, 180, 120])


@pytest.fixture(scope="module")
def weights(three_classes):
    return np.array([WEIGHTS[label] for label in three_classes[1]])


@pytest.mark.parametrize(
    "estimator",
    [
        LogisticRegression(),
        make_pipeline(StandardScaler(), LogisticRegression()),
        make_pipeline(StandardScaler(), make_pipeline(StandardScaler(), LogisticRegression())),
    ],
    ids=["alone", "in a pipeline", "in a pipeline in a pipeline"],
)
def test_weights_reach_the_estimator_and_its_prior(three_classes, weights, estimator):
    X, y = three_classes
    adjusted = LogitAdjustedClassifier(estimator, random_state=0)
    adjusted.fit(X, y, sample_weight=weights)
    assert adjusted.prior_ == adjusted.carried_ == WEIGHTED
    unweighted = LogitAdjustedClassifier(estimator, random_state=0).fit(X, y)
    assert (
        np.abs(adjusted.estimator_.predict_proba(X) - unweighted.estimator_.predict_proba(X)).max()
        > 0.1
    )


def test_a_pipeline_may_be_given_them_by_its_own_name(three_classes, weights):
    X, y = three_classes
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    adjusted = LogitAdjustedClassifier(pipeline, random_state=0)
    adjusted.fit(X, y, logisticregression__sample_weight=weights)
    assert adjusted.carried_ == WEIGHTED


def test_weights_within_a_class_count_in_the_choice_of_tau(two_gaussians):
    (X, y), _ = two_gaussians
    X, y = X[:2000], y[:2000]
    favoured = np.where((y == 1) & (X[:, 0] < 1), 20.0, 1.0)  # the hard ones of the tail
    folds = [(np.arange(2000), np.arange(2000))]  # the same scores, counted otherwise
    frozen = LogitAdjustedClassifier(LogisticRegression(), calibration=None, cv=folds)
    plain, weighted = (frozen.fit(X, y).tau_, frozen.fit(X, y, sample_weight=favoured).tau_)
    by_hand = lt.posthoc.LogitAdjustment.fit(frozen.out_of_fold_scores_, weights=favoured)
    assert weighted == by_hand.tau
    assert weighted != pytest.approx(plain)


def test_weights_that_the_estimator_does_not_take_are_refused(three_classes, weights):
    with pytest.raises(ValueError, match=r"KNeighborsClassifier\.fit does not take it"):
        LogitAdjustedClassifier(KNeighborsClassifier()).fit(*three_classes, sample_weight=weights)


def test_a_class_without_weight_is_refused(three_classes):
    X, y = three_classes
    with pytest.raises(ValueError, match=r"the classes \['cat'\] have none"):
        LogitAdjustedClassifier(LogisticRegression()).fit(X, y, sample_weight=1.0 * (y != "cat"))


class Spy(LogisticRegression):
    """Keeps what its fit was given."""

    seen = []  # noqa: RUF012

    def fit(self, X, y, sample_weight=None, places=None, whole=None):
        self.seen.append((len(y), None if places is None else len(places), whole))
        return super().fit(X, y, sample_weight)


def test_fit_parameters_of_one_entry_a_sample_are_cut_to_the_fold_and_others_are_not(three_classes):
    X, y = three_classes
    Spy.seen.clear()
    LogitAdjustedClassifier(Spy(), cv=3).fit(X, y, places=list(range(300)), whole=[1, 2])
    assert Spy.seen == [(300, 300, [1, 2])] + [(200, 200, [1, 2])] * 3


def test_routing_sends_weights_and_groups_to_those_who_ask(three_classes, weights):
    X, y = three_classes
    groups = np.arange(300) // 6 % 5
    with sklearn.config_context(enable_metadata_routing=True):
        inside = LogisticRegression().set_fit_request(sample_weight=True)
        asked = LogitAdjustedClassifier(inside, cv=GroupKFold(5))
        asked.fit(X, y, sample_weight=weights, groups=groups)
        assert asked.carried_ == WEIGHTED
        first = asked.out_of_fold_scores_.labels[:60]
        in_a_group = [np.sort(np.searchsorted(asked.classes_, y[groups == g])) for g in range(5)]
        assert any(np.array_equal(np.sort(first), members) for members in in_a_group)
        nothing_sent = LogitAdjustedClassifier(inside, random_state=0).fit(X, y)
        refused = LogisticRegression().set_fit_request(sample_weight=False)
        unweighted = LogitAdjustedClassifier(refused).fit(X, y, sample_weight=weights)
        assert unweighted.carried_ == nothing_sent.carried_ == lt.Prior.of([240, 45, 15])
        with pytest.raises(ValueError, match="sample_weight"):
            LogitAdjustedClassifier(LogisticRegression()).fit(X, y, sample_weight=weights)
