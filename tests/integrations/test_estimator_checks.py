"""scikit-learn's own checks: none fails that the classifier inside passes by itself."""

import warnings

import pytest
from lightgbm import LGBMClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import check_estimator

from longtail.integrations.sklearn import LogitAdjustedClassifier

# Leaves of five samples: by default boosting does not split the few samples of a check at all, and
# passes by learning nothing.
INSIDE = {
    "logistic regression": LogisticRegression(),
    "histogram boosting": HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=5),
    "LightGBM": LGBMClassifier(n_estimators=5, min_child_samples=5, n_jobs=1, verbose=-1),
}
# Neither is the same with a sample of weight two as with two samples; scikit-learn says so of its
# own. LightGBM keeps `verbose` as an attribute, and takes weights that are all zero.
WEIGHTS = {"check_sample_weight_equivalence_on_dense_data"}
FAIL_THEMSELVES = {
    "logistic regression": set(),
    "histogram boosting": WEIGHTS,
    "LightGBM": WEIGHTS
    | {
        "check_sample_weight_equivalence_on_sparse_data",
        "check_no_attributes_set_in_init",
        "check_all_zero_sample_weights_error",
    },
}
SLOW = {
    "random forest": RandomForestClassifier(n_estimators=5),
    "linear support vectors": LinearSVC(),
    "naive Bayes": GaussianNB(),
}


def failed(estimator):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        results = check_estimator(estimator, on_fail=None, on_skip=None)
    assert sum(result["status"] == "passed" for result in results) > 50
    return {result["check_name"] for result in results if result["status"] == "failed"}


@pytest.mark.parametrize("name", INSIDE)
def test_no_check_fails_that_the_classifier_inside_passes(name):
    alone = failed(INSIDE[name])
    assert failed(LogitAdjustedClassifier(INSIDE[name], cv=3)) <= alone
    assert alone == FAIL_THEMSELVES[name]


@pytest.mark.parametrize("options", [{"tau": 1.0}, {"target": "prior"}, {"criterion": "nll"}])
def test_other_options_pass_every_check_around_logistic_regression(options):
    assert not failed(LogitAdjustedClassifier(LogisticRegression(), cv=3, **options))


@pytest.mark.slow
@pytest.mark.parametrize("name", SLOW)
def test_no_check_fails_that_other_classifiers_pass(name):
    assert failed(LogitAdjustedClassifier(SLOW[name], cv=3)) <= failed(SLOW[name])
