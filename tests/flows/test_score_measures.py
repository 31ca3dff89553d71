"""What figures measure of scores, each against a re-derivation with loops."""

import math

import numpy as np
import pytest

from longtail import Scores
from longtail.flows.score_measures import SCORE_MEASURES, measure_scores

SOURCE = np.random.default_rng(3)
COUNTS = [40, 900, 7, 100]
LABELS = SOURCE.permutation(np.repeat([0, 1, 2, 3], [5, 9, 3, 6]))
LOGITS = SOURCE.normal(size=(23, 4)) + 2 * np.eye(4)[LABELS]
SCORES = Scores(LOGITS, LABELS, counts=COUNTS)


def measured(name, scores=SCORES):
    return measure_scores(scores, [name])[name]


def by_class(values):
    return [[v for v, y in zip(values, LABELS, strict=True) if y == k] for k in range(4)]


def mean(values):
    return sum(values) / len(values)


def naive_margins():
    return [
        row[y] - max(v for k, v in enumerate(row) if k != y)
        for row, y in zip(LOGITS, LABELS, strict=True)
    ]


def test_margins_are_to_the_highest_other_class_and_averaged_within_each_class():
    own = naive_margins()
    assert measured("margins") == pytest.approx(own)
    assert measured("margin_mean") == pytest.approx([mean(each) for each in by_class(own)])
    spreads = [
        math.sqrt(mean([(value - mean(each)) ** 2 for value in each])) for each in by_class(own)
    ]
    assert measured("margin_std") == pytest.approx(spreads)


def test_the_mean_probability_is_over_all_samples_whatever_their_class():
    probs = [[math.exp(v) / sum(map(math.exp, row)) for v in row] for row in LOGITS]
    assert measured("mean_probability") == pytest.approx(
        [mean([row[k] for row in probs]) for k in range(4)]
    )


def test_positive_logits_are_those_of_the_own_class_and_their_distance_is_from_log_c():
    own = [row[y] for row, y in zip(LOGITS, LABELS, strict=True)]
    assert measured("positive_logit") == pytest.approx([mean(each) for each in by_class(own)])
    apart = [abs(value - math.log(4)) for value in own]
    assert measured("positive_logit_gap") == pytest.approx([mean(e) for e in by_class(apart)])
    assert measured("class_logits").shape == (4, 4)


def test_recall_is_in_percent_and_false_positives_are_counted_where_they_fall():
    taken = LOGITS.argmax(axis=1)
    assert measured("recall") == pytest.approx([100 * mean(e) for e in by_class(taken == LABELS)])
    wrong = [sum(1 for t, y in zip(taken, LABELS, strict=True) if t == k != y) for k in range(4)]
    assert measured("false_positives").tolist() == wrong


def fallen(*mistakes):
    """Scores in which so many samples of other classes are taken for each class."""
    size = len(mistakes)
    taken = np.repeat(np.arange(size), mistakes)
    counts = np.arange(size, 0, -1) * 10
    return Scores(10.0 * np.eye(size)[taken], (taken + 1) % size, counts=counts)


@pytest.mark.parametrize("mistakes", [(1, 0, 0, 0), (3, 0, 4, 1), (0, 2, 0, 7), (5, 5, 5, 5)])
def test_the_bend_is_the_area_between_the_curve_and_the_diagonal(mistakes):
    ends = np.concatenate([[0], np.cumsum(mistakes)]) / sum(mistakes)
    at = (np.arange(400_000) + 0.5) / 400_000
    area = np.abs(np.interp(at, np.linspace(0, 1, 5), ends) - at).mean()
    assert measured("false_positive_bend", fallen(*mistakes)) == pytest.approx(area, abs=1e-6)


def test_the_bend_follows_the_training_counts_and_needs_them():
    one = fallen(6, 1, 1, 0)
    turned = Scores(one.logits, one.labels, counts=[10, 20, 30, 40])
    straight = measured("false_positive_bend", one)
    assert measured("false_positive_bend", turned) == pytest.approx(straight)
    unequal = Scores(one.logits, one.labels, counts=[10, 40, 30, 20])
    assert measured("false_positive_bend", unequal) != pytest.approx(straight)
    with pytest.raises(ValueError, match="training counts"):
        measured("false_positive_bend", Scores(one.logits, one.labels))


def test_only_the_names_that_scores_have_are_measured_and_scores_need_labels():
    assert set(measure_scores(SCORES, ["recall", "bias"])) == {"recall"}
    for name in set(SCORE_MEASURES) - {"mean_probability"}:
        with pytest.raises(ValueError, match="labels"):
            measured(name, Scores(LOGITS, counts=COUNTS))
