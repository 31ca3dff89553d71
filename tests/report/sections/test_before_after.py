"""The first screen: what is shown, and what of it is sure."""

from dataclasses import replace

import pytest
import torch

import longtail as lt
from longtail.metrics import Comparison
from longtail.report import Judged
from longtail.report.sections.before_after import alone, before_after, metric_rows
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
        variances.append(float(mine.var(correction=1)) / len(mine))
    reach = 1.959964 * sum(variances) ** 0.5 / len(means)
    assert gain.value == pytest.approx(sum(means) / len(means))
    assert gain.high == pytest.approx(gain.value + reach, rel=0.01)


def test_scores_alone_have_one_column():
    assert len(alone(judged().comparison.before).columns) == 2


def test_an_infinite_log_loss_is_shown_as_such_and_has_no_interval():
    samples = judged()
    ruled_out = samples.after.logits.clone()
    ruled_out[0, samples.labels[0]] = -torch.inf
    worse = replace(samples, after=replace(samples.after, logits=ruled_out))
    rows = {row[0]: row[1:] for row in metric_rows(worse.comparison)}
    assert rows["log-loss"][1:] == ("∞", "+∞ worse")
    both = replace(worse, before=worse.after)
    assert metric_rows(both.comparison)[-1] == ("log-loss", "∞", "∞", "none")


def test_a_class_that_the_target_rules_out_does_not_count_in_the_log_loss():
    target = lt.Prior.of([0.0] * 5 + [1.0] * 15, zeros="keep")
    samples = judged()
    moved = replace(samples, after=samples.before.under(target), target=target)
    found = lt.metrics.evaluate(samples.before, target)
    assert metric_rows(moved.comparison)[-1][2].startswith(f"{found['nll']:.3f} [")


def test_few_samples_of_a_class_are_told_and_make_no_change_sure():
    scores = lt.Scores(torch.eye(4), torch.arange(4), carried=[4, 3, 2, 1])
    wrong = replace(scores, logits=torch.eye(4).roll(1, 0))
    samples = Judged(wrong, scores, lt.Prior.uniform(4))
    assert "fewer than 5 samples here: 4 of 4" in before_after(samples.comparison).caption
    assert metric_rows(samples.comparison)[0][3].endswith("may be chance")
    assert "samples here" not in before_after(judged().comparison).caption


def test_without_a_target_accuracy_is_that_of_the_samples_as_they_are():
    samples = judged()
    as_they_are = Comparison(samples.label_counts)
    as_they_are.add(samples.before.logits, samples.after.logits, samples.labels)
    names = [row[0] for row in metric_rows(as_they_are)]
    assert "accuracy under the target" not in names
    assert "top-1, samples as they are" in names
