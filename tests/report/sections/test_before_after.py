"""The first screen: what is shown, what is sure, what to do."""

from dataclasses import replace

import pytest
import torch

import longtail as lt
from longtail.report import Judged
from longtail.report.sections.before_after import (
    alone,
    before_after,
    gain_in_words,
    metric_rows,
    next_step,
    next_step_alone,
)
from report_pages import judged


def backwards() -> Judged:
    """The same samples, the good scores first."""
    samples = judged()
    return replace(samples, before=samples.after, after=samples.before)


def test_every_metric_of_the_issue_is_there_with_its_interval():
    table = before_after(judged().comparison, ("old", "new"))
    assert [column.name for column in table.columns] == ["metric", "old", "new", "change"]
    names = [row[0] for row in table.rows]
    assert names == [
        "balanced error",
        "top-1, samples as they are",
        "many-shot classes",
        "medium-shot classes",
        "few-shot classes",
        "worst class",
        "calibration error (ECE)",
        "log-loss",
    ]
    assert all("[" in cell for row in table.rows for cell in row[1:3])
    assert "more than 100" in table.caption


def test_the_numbers_are_those_of_evaluate():
    samples = judged()
    found = lt.metrics.evaluate(samples.after, samples.target)
    shown = {row[0]: float(row[2].split(" ")[0]) for row in metric_rows(samples.comparison)}
    assert shown["balanced error"] == pytest.approx(100 * found["balanced_error"], abs=0.051)
    assert shown["few-shot classes"] == pytest.approx(100 * found["few"], abs=0.051)
    assert shown["log-loss"] == pytest.approx(found["nll"], abs=0.00051)
    right = float((samples.after.predict() == samples.labels).double().mean())
    assert shown["top-1, samples as they are"] == pytest.approx(100 * right, abs=0.051)


def test_of_balanced_samples_top_1_would_say_the_same_twice():
    scores = lt.Scores(torch.eye(4), torch.arange(4), carried=[4, 3, 2, 1])
    samples = Judged(scores, scores, lt.Prior.uniform(4))
    assert "top-1, samples as they are" not in [
        row[0] for row in alone(samples.comparison.before).rows
    ]


def test_another_target_has_its_own_accuracy():
    samples = replace(judged(), target=lt.Prior.of(torch.arange(20, 0, -1)))
    assert "accuracy under the target" in [row[0] for row in metric_rows(samples.comparison)]


def test_a_change_says_which_way_and_whether_it_is_sure():
    rows = {row[0]: row[3] for row in metric_rows(judged().comparison)}
    assert rows["balanced error"].startswith("−")
    assert rows["balanced error"].endswith("better")
    assert rows["many-shot classes"].startswith("−")
    assert rows["many-shot classes"].endswith("worse")
    rows = {row[0]: row[3] for row in metric_rows(backwards().comparison)}
    assert rows["balanced error"].endswith("worse")
    samples = judged()
    hardly = replace(samples, after=replace(samples.before, logits=0.97 * samples.before.logits))
    rows = {row[0]: row[3] for row in metric_rows(hardly.comparison)}
    assert rows["log-loss"].endswith("may be chance")
    assert rows["balanced error"] == "none"


def test_the_paired_interval_of_a_group_is_that_of_its_samples():
    samples = judged()
    gain = samples.comparison.gains()["few"]
    own = samples.groups["few"][samples.labels]
    was, now = (s.predict() == samples.labels for s in (samples.before, samples.after))
    change = now.double() - was.double()
    means, variances = [], []
    for k in samples.groups["few"].nonzero().flatten().tolist():
        mine = change[own & (samples.labels == k)]
        means.append(float(mine.mean()))
        variances.append(float(mine.var(correction=0)) / len(mine))
    reach = 1.959964 * sum(variances) ** 0.5 / len(means)
    assert gain.value == pytest.approx(sum(means) / len(means))
    assert gain.high == pytest.approx(gain.value + reach)


def test_what_to_do_follows_from_the_interval():
    assert next_step(judged().comparison).startswith("Use the scores after")
    assert next_step(backwards().comparison).startswith("Keep the scores before")
    same = replace(judged(), after=replace(judged().before))
    assert next_step(same.comparison).startswith("Do not decide yet")
    assert "more than chance" in gain_in_words(judged().comparison)
    assert "a loss" in gain_in_words(backwards().comparison)


def test_bad_calibration_is_told_and_good_is_not():
    samples = judged()
    hot = replace(samples, after=replace(samples.after, logits=5 * samples.after.logits))
    assert "calibrate" in next_step(hot.comparison)
    assert "calibrate" not in next_step(judged().comparison)


def test_scores_alone_have_one_column_and_their_own_advice():
    samples = judged()
    tally = samples.comparison.before
    assert len(alone(tally).columns) == 2
    uniform = lt.Prior.uniform(20)
    assert "longtail fix" in next_step_alone(tally, samples.before.carried, uniform)
    assert "measure" in next_step_alone(tally, None, uniform)
    assert "carry the target already" in next_step_alone(tally, uniform, uniform)
