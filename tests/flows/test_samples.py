"""The samples a report is on: what they are ordered by, and what it refuses."""

from dataclasses import replace

import pytest
import torch

import longtail as lt
from longtail.flows.samples import BeforeAfter
from report_pages import samples_of


def test_classes_are_ordered_by_training_counts_where_these_are_known():
    scores = lt.Scores(torch.zeros(3, 3), [0, 1, 2], carried=[1, 2, 3], counts=[5, 90, 30])
    assert BeforeAfter(scores, scores, lt.Prior.uniform(3)).order.tolist() == [1, 2, 0]


def test_else_by_what_the_logits_carry_and_else_by_the_samples():
    uniform = lt.Prior.uniform(3)
    scores = lt.Scores(torch.zeros(4, 3), [0, 1, 1, 2], carried=[1, 2, 3])
    assert BeforeAfter(scores, scores, uniform).order.tolist() == [2, 1, 0]
    unknown = replace(scores, carried=None)
    found = BeforeAfter(unknown, unknown, uniform)
    assert found.order.tolist() == [1, 0, 2]
    assert found.ordered_by == "labels"
    assert found.source is None
    assert found.shot_groups == {}


def test_logits_that_carry_the_target_are_explored_from_the_training_prior():
    scores = lt.Scores(torch.zeros(2, 2), [0, 1], carried=[1, 1], counts=[90, 10])
    found = BeforeAfter(scores, scores, lt.Prior.uniform(2))
    assert found.source.is_close(lt.Prior.of([90, 10]))


def test_scores_without_labels_and_other_samples_are_refused():
    scores = samples_of().before
    uniform = lt.Prior.uniform(scores.num_classes)
    with pytest.raises(ValueError, match="these have none"):
        BeforeAfter(replace(scores, labels=None), scores, uniform)
    turned = replace(scores, labels=scores.labels.flip(0))
    with pytest.raises(ValueError, match="same order"):
        BeforeAfter(scores, turned, uniform)
    empty = lt.Scores(torch.zeros(0, 2), torch.zeros(0, dtype=torch.long))
    with pytest.raises(ValueError, match="at least one sample"):
        BeforeAfter(empty, empty, lt.Prior.uniform(2))


def test_other_ids_and_classes_in_another_order_are_refused():
    scores = lt.Scores([[1.0, 0.0], [0.5, 0.0]], [0, 1], classes=["a", "b"], ids=[7, 8])
    uniform = lt.Prior.uniform(2)
    with pytest.raises(ValueError, match="other ids"):
        BeforeAfter(scores, replace(scores, ids=[7, 9]), uniform)
    with pytest.raises(ValueError, match="same classes"):
        BeforeAfter(scores, replace(scores, classes=["b", "a"]), uniform)
    turned = replace(scores.take([1, 0]), ids=["8", "7"])
    after = BeforeAfter(scores, turned, uniform).after
    assert after.logits.tolist() == scores.logits.tolist()


def test_a_fit_looks_at_the_same_share_of_every_class_but_at_two_at_least(monkeypatch):
    monkeypatch.setattr("longtail.flows.samples._FITTED_ON", 4 * 100)
    labels = torch.tensor([0] * 700 + [1] * 290 + [2] * 9 + [3])
    scores = lt.Scores(torch.zeros(1000, 4), labels)
    some = BeforeAfter(scores, scores, lt.Prior.uniform(4)).some
    assert torch.bincount(labels[some]).tolist() == [70, 29, 2, 1]
    assert len(set(some.tolist())) == len(some)
    monkeypatch.undo()
    assert samples_of().some.tolist() == list(range(1500))
