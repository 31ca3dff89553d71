"""What the figures of a page are drawn of: the judgement has it, as the metrics would."""

import numpy as np
import pytest

import longtail as lt
from longtail.flows.judge import judge


def scores(per_class, num_classes=12):
    random = np.random.default_rng(0)
    counts = np.array(lt.data.exponential_counts(500, num_classes, 100))
    labels = np.tile(np.arange(num_classes), per_class)
    logits = random.normal(size=(len(labels), num_classes)) + lt.Prior.of(counts).log
    logits[np.arange(len(labels)), labels] += 2
    return lt.Scores(logits, labels, carried=counts, counts=counts)


@pytest.mark.parametrize(("per_class", "bins"), [(42, 5), (84, 10), (200, 20)])
def test_reliability_has_as_many_bins_as_the_samples_fill(per_class, bins):
    judgement = judge(scores(per_class))
    (curve,) = judgement.reliability.values()
    assert len(curve.share) == bins


def test_reliability_and_its_error_are_under_the_target_and_leave_the_scores_as_they_are():
    before = scores(30)
    target = lt.Prior.of([10] + [1] * 11)
    judgement = judge(before, before.under(target), target, tau=1.0)
    weights = target.probs[before.labels] / np.bincount(before.labels)[before.labels]
    expected = lt.metrics.ece(before.logits, before.labels, weights)
    after = lt.metrics.evaluate(before, target=target)["ece"]
    assert abs(expected - after) > 0.01
    assert judgement.eces == {"before": pytest.approx(expected), "after": pytest.approx(after)}
    curve = lt.metrics.reliability(before.logits, before.labels, weights, bins=5)
    np.testing.assert_allclose(judgement.reliability["before"].accuracy, curve.accuracy)


def test_recalls_mistakes_and_margins_are_those_of_each_side():
    before = scores(30)
    after = before.under(lt.Prior.uniform(12))
    judgement = judge(before, after, tau=1.0)
    for name, side in (("before", before), ("after", after)):
        np.testing.assert_allclose(judgement.recalls[name], lt.metrics.recalls(side))
        wrong = lt.metrics.false_positives(side)
        np.testing.assert_array_equal(judgement.false_positives[name], wrong)
        np.testing.assert_allclose(judgement.margins[name], lt.metrics.margins(side))
    assert list(judge(before).margins) == ["before"]
