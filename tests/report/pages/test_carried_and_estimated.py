"""Declared beside measured, and the prior of the samples estimated without their labels."""

import re
from dataclasses import replace

import numpy as np
import torch

import longtail as lt
from longtail.flows.judge import Judgement, judge
from longtail.report import render_page, scores_page
from longtail.report.page import Footer
from longtail.report.pages.priors import carried_section, target_section, tau_section
from report_pages import judged, samples_of

FOOTER = Footer("0", "2026-01-01", "longtail report")


def test_an_honest_declaration_agrees_with_what_is_measured():
    section = carried_section(judged())
    assert section.paragraphs[0].startswith("Declared and measured agree")
    assert section.figures[0].svg.count('class="line"') == 3


def test_a_wrong_declaration_is_told():
    samples = samples_of()
    wrong = replace(samples.before, carried=lt.Prior.uniform(20))
    section = carried_section(judge(wrong))
    assert section.paragraphs[0].startswith("Declared and measured disagree")


def test_few_samples_are_not_called_a_disagreement():
    samples = samples_of()
    kept = torch.cat([(samples.before.labels == k).nonzero().flatten()[:2] for k in range(20)])
    few = replace(
        samples.before,
        logits=samples.before.logits[kept] * 1.5,
        labels=samples.before.labels[kept],
    )
    found = carried_section(judge(few)).paragraphs[0]
    assert found.startswith("Declared and measured agree as far as these samples can tell")


def test_a_difference_is_told_beside_the_one_that_chance_gives():
    samples = samples_of()
    said = carried_section(judged()).paragraphs[0]
    apart, chance = (float(number) for number in re.findall(r"\d\.\d\d", said))
    assert 1 < apart < 1.1 * chance  # the declaration is right, so chance is all there is
    wrong = replace(samples.before, carried=samples.before.carried.tempered(0.6))
    said = carried_section(judge(wrong)).paragraphs[0]
    apart, chance = (float(number) for number in re.findall(r"\d\.\d\d", said))
    assert apart > 1.2 * chance
    assert "agree" not in said.removeprefix("Declared and measured disagree")


def test_where_nothing_is_declared_the_measured_one_stands_alone():
    samples = samples_of()
    unknown = replace(samples.before, carried=None)
    section = carried_section(judge(unknown))
    assert "not declared" in section.paragraphs[0]


def test_what_cannot_be_measured_says_why():
    scores = lt.Scores(torch.randn(5, 3), [1, 1, 1, 1, 1], carried=[5, 3, 2])
    section = carried_section(judge(scores))
    assert "could not be measured here" in section.paragraphs[0]
    assert "two classes" in section.paragraphs[0]
    assert section.notes == []


def test_counts_in_another_order_are_noticed_also_where_a_class_has_no_samples():
    """Among the classes that have samples the logits carry the same."""
    counts, random = [300, 80, 20, 6], np.random.default_rng(0)
    labels = np.repeat(np.arange(3), [60, 40, 30])
    logits = random.normal(size=(130, 4)) + 2 * np.eye(4)[labels] + np.log(counts)
    for declared, expected in ((counts, "AGREE"), (counts[::-1], "DISAGREE")):
        check = judge(lt.Scores(logits, labels, carried=declared)).carried_check
        assert check.agreement.name == expected
        assert check.measured.probs[3] == 0


def test_why_a_prior_cannot_be_estimated_is_told():
    samples = samples_of()
    other = replace(samples.before, split="test")
    judgement = Judgement.of(replace(samples, validation=other))
    assert judgement.estimate is None
    assert judgement.estimate_problem
    assert any(judgement.estimate_problem in note for note in target_section(judgement).notes)


def test_the_estimated_prior_stands_beside_the_labels():
    section = target_section(judged())
    (figure,) = section.figures
    assert 'class="band"' in figure.svg
    assert "estimated without labels" in figure.svg
    assert "Without validation scores" in figure.caption


def test_with_validation_scores_the_estimate_is_calibrated_first():
    samples = samples_of()
    held = replace(samples.before, split="validation")
    section = target_section(Judgement.of(replace(samples, validation=held)))
    assert "Calibrated on the validation scores" in section.figures[0].caption


def test_logits_that_carry_nothing_known_have_no_explorers_but_a_page():
    unknown = replace(samples_of().before, carried=None, counts=None)
    samples = judge(unknown)
    assert tau_section(samples) is None
    assert target_section(samples) is None
    html = render_page(scores_page(samples, FOOTER, title="t"))
    assert "<script>" not in html
    assert "script-src" not in html
    assert "Balanced accuracy is" in html


def test_of_too_many_samples_the_page_says_why_tau_cannot_be_moved(monkeypatch):
    for module in ("flows.judge", "report.pages.priors"):
        monkeypatch.setattr(f"longtail.{module}.MOST_SAMPLES", 1499)
    section = tau_section(judged())
    assert section.explorer is None
    assert "more than 1,499 samples" in section.paragraphs[0]


def test_what_tau_means_depends_on_what_the_logits_carry():
    samples = samples_of()
    assert "all the way" in tau_section(judged()).paragraphs[0]
    there = replace(samples, before=samples.after)
    assert "carry the target already" in tau_section(Judgement.of(there)).paragraphs[0]
    unknown = replace(samples.before, carried=None)
    assert (
        "not declared" in tau_section(Judgement.of(replace(samples, before=unknown))).paragraphs[0]
    )
