"""Out-of-fold scores: every class in every model, few samples or not, moved to one prior."""

import joblib
import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import KFold, LeaveOneGroupOut, StratifiedKFold

import longtail as lt
from longtail.integrations.sklearn import LogitAdjustedClassifier
from longtail.integrations.sklearn.adjustment import out_of_fold, splits_of
from longtail.integrations.sklearn.training_set import Routed, TrainingLabels, TrainingSet

COUNTS = np.array([40, 7, 3, 2, 1])


@pytest.fixture(scope="module")
def long_tail():
    random = np.random.default_rng(0)
    y = np.repeat(np.arange(5), COUNTS)
    X = random.normal(size=(len(y), 3)) + np.eye(5)[y][:, :3]
    return TrainingSet(X, y, TrainingLabels.of(y, None), Routed({}, {}, None))


@pytest.mark.parametrize("num_folds", [2, 5, 10, 1000])
def test_every_model_knows_every_class_and_only_a_single_sample_is_held_out_by_none(
    long_tail, num_folds
):
    splits = splits_of(num_folds, long_tail, seed=0)
    for train, test in splits:
        assert set(long_tail.y[train]) == set(range(5))
        assert not set(train) & set(test)
        assert len(train) + len(test) == len(long_tail.y)
    held_out = np.concatenate([test for _, test in splits])
    assert sorted(held_out) == list(range(52))  # all but the last, the only one of its class
    assert len(splits) <= min(num_folds, len(long_tail.y))


def test_the_scores_of_a_fold_are_moved_by_hand_to_the_prior_of_all_samples(long_tail):
    X, y, labels, _ = long_tail
    splits = splits_of(3, long_tail, seed=0)
    logits, positions = out_of_fold(
        LogisticRegression(), long_tail, splits, labels.prior, n_jobs=None
    )
    expected = np.full((52, 5), np.nan)
    for train, test in splits:
        model = LogisticRegression().fit(X[train], y[train])
        for at in test:
            for k in range(5):
                in_fold = np.mean(y[train] == k)
                p = model.predict_proba(X[at : at + 1])[0, k]
                expected[at, k] = np.log(p) + np.log(COUNTS[k] / 53) - np.log(in_fold)
    np.testing.assert_allclose(logits, expected[positions], atol=1e-12)


def test_splits_that_leave_a_class_out_rule_it_out_and_skip_its_samples(long_tail):
    halves = [(np.arange(40), np.arange(40, 53)), (np.arange(1, 53), np.arange(1))]
    with pytest.raises(ValueError, match="classes"):
        out_of_fold(LogisticRegression(), long_tail, halves, long_tail.labels.prior, None)
    y = long_tail.y
    without_last = [
        (np.flatnonzero((y < 3) & (np.arange(53) % 2 == k)), np.arange(53)) for k in (0, 1)
    ]
    logits, positions = out_of_fold(
        LogisticRegression(), long_tail, without_last, long_tail.labels.prior, None
    )
    assert set(y[positions]) == {0, 1, 2}
    assert len(positions) == 2 * 50
    assert np.isneginf(logits[:, 3:]).all()
    assert np.isfinite(logits[:, :3]).all()


def test_classes_of_one_and_two_samples_are_fitted_and_predicted(long_tail):
    adjusted = LogitAdjustedClassifier(LogisticRegression(), random_state=0)
    adjusted.fit(long_tail.X, long_tail.y)
    assert len(adjusted.out_of_fold_scores_) == 52
    assert np.isfinite(adjusted.out_of_fold_scores_.logits).all()
    assert adjusted.predict_proba(long_tail.X).shape == (53, 5)
    assert adjusted.adjuster_.choice is not None


def test_where_no_class_has_two_samples_tau_is_the_exact_one():
    X, y = np.eye(4), ["a", "b", "c", "d"]
    adjusted = LogitAdjustedClassifier(LogisticRegression(), target=[1, 2, 3, 4]).fit(X, y)
    assert adjusted.tau_ == 1.0
    assert adjusted.out_of_fold_scores_ is None
    with pytest.raises(ValueError, match="two samples or more"):
        adjusted.set_params(carried="measure").fit(X, y)


def test_other_splitters_and_splits_are_taken(three_classes):
    X, y = three_classes
    splitter = StratifiedKFold(4, shuffle=True, random_state=0)
    taus = {
        LogitAdjustedClassifier(LogisticRegression(), cv=cv).fit(X, y).tau_
        for cv in (splitter, list(splitter.split(X, y)))
    }
    assert len(taus) == 1
    groups = np.arange(300) % 3
    by_group = LogitAdjustedClassifier(
        LogisticRegression(), cv=list(LeaveOneGroupOut().split(X, y, groups))
    ).fit(X, y)
    assert len(by_group.out_of_fold_scores_) == 300
    assert (
        len(
            LogitAdjustedClassifier(LogisticRegression(), cv=KFold(3)).fit(X, y).out_of_fold_scores_
        )
        == 300
    )


def test_folds_may_be_fitted_side_by_side(three_classes):
    X, y = three_classes
    one, two = (
        LogitAdjustedClassifier(LogisticRegression(), n_jobs=n, random_state=0) for n in (1, 2)
    )
    with joblib.parallel_config("threading"):
        assert two.fit(X, y).tau_ == one.fit(X, y).tau_


def test_the_scores_carry_what_the_model_of_all_samples_carries(three_classes):
    X, y = three_classes
    adjusted = LogitAdjustedClassifier(
        LogisticRegression(class_weight={"ant": 1, "bee": 2, "cat": 4}), random_state=0
    ).fit(X, y)
    assert adjusted.carried_ == lt.Prior.of([240, 90, 60])
    assert adjusted.out_of_fold_scores_.carried == adjusted.carried_
    assert adjusted.out_of_fold_scores_.split == "validation"
