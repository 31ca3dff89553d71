"""Which classes are taken for which, counted again by hand."""

from collections import Counter
from dataclasses import replace

import pytest
import torch

import longtail as lt
from longtail.flows.judge import judge
from longtail.flows.samples import BeforeAfter
from longtail.report import render_page
from longtail.report.page import Footer, Page
from longtail.report.pages.scores import mistakes_section
from report_pages import NAMES, judged, samples_of


def test_every_class_counts_the_same_in_the_confusion_of_groups():
    samples = samples_of()
    predicted, groups = samples.before.predict().numpy(), samples.groups
    found = judged().mistakes.confusions["before"]
    for row, mask in zip(found, groups.values(), strict=True):
        classes = mask.nonzero()[0].tolist()
        expected = torch.zeros(1 + len(groups), dtype=torch.float64)
        for k in classes:
            own = predicted[samples.labels == k].tolist()
            for taken in own:
                if taken == k:
                    expected[0] += 1 / len(own)
                for at, other in enumerate(groups.values()):
                    if taken != k and other[taken]:
                        expected[1 + at] += 1 / len(own)
        assert row.tolist() == pytest.approx((expected / len(classes)).tolist())
        assert float(row.sum()) == pytest.approx(1)


def test_the_worst_mistakes_of_the_rarer_half_come_first():
    samples = samples_of()
    rare = set(samples.order[10:].tolist())
    pairs = zip(samples.labels.tolist(), samples.before.predict().tolist(), strict=True)
    times = Counter((y, p) for y, p in pairs if y in rare and y != p)
    table = mistakes_section(judged()).table
    first = table.rows[0]
    assert len(table.rows) == 10
    true, taken = (int(name.split()[1]) for name in first[:2])
    assert times[true, taken] == max(times.values())
    own = int((samples.labels == true).sum())
    assert first[2] == own
    assert first[3] == pytest.approx(100 * times[true, taken] / own)


def test_without_training_counts_classes_are_cut_in_thirds():
    before = replace(samples_of().before, counts=None)
    groups = BeforeAfter(before, before, lt.Prior.uniform(20)).groups
    assert list(groups) == ["head", "middle", "tail"]
    assert sum(int(mask.sum()) for mask in groups.values()) == 20
    assert groups["head"][0]
    assert groups["tail"][19]


def test_a_model_without_mistakes_has_no_table_of_them():
    labels = torch.arange(4)
    scores = lt.Scores(9 * torch.eye(4), labels, carried=[4, 3, 2, 1])
    assert mistakes_section(judge(scores)).table is None


def test_two_classes_and_hostile_names_are_no_trouble():
    labels = torch.tensor([0, 1, 1, 0])
    scores = lt.Scores(torch.tensor([[2.0, 1.0]] * 4), labels, counts=[9, 1], classes=NAMES[:2])
    section = mistakes_section(judge(scores))
    page = Page("t", "s", [section], Footer("0", "d", "c"))
    assert "<script>alert" not in render_page(page)


def test_the_names_of_the_groups_are_not_cut():
    for figure in mistakes_section(judged()).figures:
        assert "…" not in figure.svg
