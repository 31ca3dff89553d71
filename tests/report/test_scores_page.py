"""What the page says of the samples it is on."""

from dataclasses import replace

import numpy as np
import pytest
import torch

import longtail as lt
from longtail.flows.judge import Judgement, judge, judge_scores
from longtail.metrics import Difference
from longtail.report import Footer, page_of, render_page, scores_page
from longtail.report.pages.scores import samples_in_words
from report_pages import judged, samples_of

FOOTER = Footer("0", "2026-01-01", "longtail report")


def judged_with(counts: list[int], labels: list[int]) -> Judgement:
    scores = lt.Scores(torch.zeros(len(labels), len(counts)), labels, counts=counts)
    return judge(scores)


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ([500, 50, 5], "the largest had 100 times the samples of the smallest."),
        ([500, 5, 0], "the largest had 100 times the samples of the smallest; 1 had none."),
        ([7, 7, 7], "all had equally many samples."),
        ([7, 7, 0], "those that had any had equally many samples; 1 had none."),
        ([123456, 10, 10], "the largest had 12,346 times the samples of the smallest."),
    ],
)
def test_how_uneven_training_was_is_said_as_it_is(counts, said):
    assert samples_in_words(judged_with(counts, [0, 1, 2])).endswith(said)


def test_classes_without_samples_are_told():
    assert "(2) count for nothing" in samples_in_words(judged_with([3, 2, 1], [0, 0]))
    assert "for nothing" not in samples_in_words(judged_with([3, 2, 1], [0, 1, 2]))


def test_where_the_table_is_of_more_samples_than_the_rest_both_are_told():
    part = judged_with([3, 2, 1], [0, 1, 2])
    labels = np.repeat([0, 1, 2], [4000, 2, 1])
    whole = Difference(3)
    whole.add(2 * np.eye(3)[labels], 2 * np.eye(3)[labels], labels)
    said = samples_in_words(replace(part, comparison=whole))
    assert said.startswith("On 4,003 samples of 3 classes")
    assert "3 of the samples are looked at" in said


def test_without_scripts_every_class_has_its_accuracy_at_the_tau_that_is_named():
    html = render_page(scores_page(judged(), FOOTER, title="t"))
    assert "data-class>–<" not in html
    assert html.count("<span data-tau-shown>") == 2
    before = samples_of().before
    fewer = replace(before, logits=before.logits[:1], labels=before.labels[:1])
    html = render_page(scores_page(judge(fewer), FOOTER, title="t"))
    assert html.count("data-class>–<") == 19


def test_the_same_samples_give_the_same_page():
    pages = [render_page(scores_page(judged(), FOOTER, title="t")) for _ in range(2)]
    assert pages[0] == pages[1]


def test_scores_that_nothing_was_done_to_are_not_called_before():
    before = replace(samples_of().before, carried=None)
    page = page_of(judge_scores(before, None, lt.Prior.uniform(20)))
    by_class, mistakes = page.sections[0], page.sections[-1]
    assert "as they are, geometric mean" in by_class.figures[0].svg
    assert [column.name for column in mistakes.table.columns][-1] == "as they are"
