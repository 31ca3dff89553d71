"""The first screen: what is shown, and what of it is sure."""

from dataclasses import replace
from types import SimpleNamespace

import pytest
import torch
from scipy import stats

import longtail as lt
from longtail.flows.changes import change_of
from longtail.flows.judge import Judgement, judge
from longtail.flows.samples import BeforeAfter
from longtail.metrics import Difference, Interval
from longtail.report.pages.first_screen import first_table, metric_rows
from report_pages import judged, samples_of


def backwards() -> BeforeAfter:
    """The same samples, the good scores first."""
    samples = samples_of()
    return replace(samples, before=samples.after, after=samples.before)


def test_every_metric_of_the_issue_is_there_with_its_interval():
    table = first_table(Judgement.of(replace(samples_of(), names=("old", "new"))))
    assert [column.name for column in table.columns] == ["metric", "old", "new", "change"]
    names = [row[0] for row in table.rows]
    assert names == [
        "balanced accuracy",
        "accuracy, samples as they are",
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
    samples = samples_of()
    found = lt.metrics.evaluate(samples.after, target=samples.goal)
    shown = {row[0]: float(row[2].split(" ")[0]) for row in metric_rows(Judgement.of(samples))}
    assert shown["balanced accuracy"] == pytest.approx(100 * found["balanced_accuracy"], abs=0.051)
    assert shown["few-shot classes"] == pytest.approx(100 * found["few"], abs=0.051)
    assert shown["log-loss"] == pytest.approx(found["nll"], abs=0.00051)
    right = float((samples.after.predict() == samples.after.labels).double().mean())
    assert shown["accuracy, samples as they are"] == pytest.approx(100 * right, abs=0.051)


def test_of_balanced_samples_accuracy_would_say_the_same_twice():
    scores = lt.Scores(2 * torch.eye(4), torch.arange(4), carried=[4, 3, 2, 1])
    assert "accuracy, samples as they are" not in [
        row[0] for row in first_table(judge(scores)).rows
    ]


def test_the_accuracy_under_the_target_that_was_asked_for_is_the_first_row():
    samples = replace(samples_of(), goal=lt.Prior.of(torch.arange(20, 0, -1)))
    names = [row[0] for row in metric_rows(Judgement.of(samples))]
    assert names[:3] == [
        "accuracy under the target",
        "balanced accuracy",
        "accuracy, samples as they are",
    ]
    alone_names = [row[0] for row in first_table(judge(samples.before, target=samples.goal)).rows]
    assert alone_names[0] == "accuracy under the target"


def test_what_is_one_number_has_one_row_and_one_name():
    """Under the uniform target, of balanced samples, and where the samples follow the target."""
    balanced, tailed = torch.tensor([5, 5, 5, 5]), torch.tensor([8, 4, 4, 4])
    uniform, other = lt.Prior.uniform(4), lt.Prior.of([2, 1, 1, 1])
    under, mean, plain = "accuracy under the target", "balanced accuracy", "accuracy, samples"
    for counts, target, expected in (
        (balanced, uniform, [mean]),
        (tailed, uniform, [mean, plain]),
        (balanced, other, [under, mean]),
        (tailed, other, [under, mean]),
        (tailed, None, [plain, mean]),
        (balanced, None, [plain]),
    ):
        labels = torch.arange(4).repeat_interleave(counts)
        scores = lt.Scores(2 * torch.eye(4)[labels.roll(3)], labels)
        sums = Difference(4, target)
        sums.add(scores.logits, scores.logits, labels)
        table = first_table(Judgement(BeforeAfter(scores, scores, uniform), sums))
        shown = [row[0] for row in table.rows if "accuracy" in row[0]]
        assert [name.removesuffix(" as they are") for name in shown] == expected


def test_a_change_says_which_way_and_whether_it_is_sure():
    rows = {row[0]: row[3] for row in metric_rows(judged())}
    assert rows["balanced accuracy"].startswith("+")
    assert rows["balanced accuracy"].endswith("better")
    assert rows["many-shot classes"].startswith("−")
    assert rows["many-shot classes"].endswith("worse")
    rows = {row[0]: row[3] for row in metric_rows(Judgement.of(backwards()))}
    assert rows["balanced accuracy"].endswith("worse")
    samples = samples_of()
    hardly = replace(samples, after=replace(samples.before, logits=0.97 * samples.before.logits))
    rows = {row[0]: row[3] for row in metric_rows(Judgement.of(hardly))}
    assert rows["log-loss"].endswith("better")  # by little, but by as much in all samples
    assert rows["balanced accuracy"] == "none"


def test_the_paired_interval_of_a_group_is_that_of_its_samples():
    samples = samples_of()
    gain = judged().gains["few"]
    labels = samples.before.labels
    own = torch.from_numpy(samples.shot_groups["few"])[labels]
    was, now = (s.predict() == labels for s in (samples.before, samples.after))
    change = now.double() - was.double()
    by_class = [change[own & (labels == k)] for k in range(samples.num_classes)]
    by_class = [part for part in by_class if len(part)]
    several = [part.var(correction=1) for part in by_class if len(part) > 1]
    worth = len(by_class) ** 2 / sum(1 / len(part) for part in by_class)
    rate = sum(float(part.abs().mean()) for part in by_class) / len(by_class)
    usual = max(float(torch.stack(several).mean()), rate)
    means, variances = [], []
    for mine in by_class:
        means.append(float(mine.mean()))
        own_variance = (len(mine) * float(mine.var(correction=0)) + usual) / len(mine)
        variances.append(own_variance / len(mine))
    variance = sum(variances) / len(means) ** 2 + 2 / worth**2
    squares = sum(v / len(part) ** 2 for v, part in zip(variances, by_class, strict=True))
    freedom = 2 * variance**2 / (squares / len(means) ** 4 + 2 / worth**4)
    reach = stats.t.ppf(0.975, freedom) * variance**0.5
    assert gain.value == pytest.approx(sum(means) / len(means))
    assert gain.high == pytest.approx(gain.value + reach)


def test_scores_alone_have_one_column():
    assert len(first_table(judge(samples_of().before)).columns) == 2


def test_an_infinite_log_loss_is_shown_as_such_and_has_no_interval():
    samples = samples_of()
    ruled_out = samples.after.logits.clone()
    ruled_out[0, samples.labels[0]] = -torch.inf
    worse = replace(samples, after=replace(samples.after, logits=ruled_out))
    rows = {row[0]: row[1:] for row in metric_rows(Judgement.of(worse))}
    assert rows["log-loss"][1:] == ("∞", "+∞ worse")
    both = replace(worse, before=worse.after)
    assert metric_rows(Judgement.of(both))[-1] == ("log-loss", "∞", "∞", "none")


def test_a_class_that_the_target_rules_out_does_not_count_in_the_log_loss():
    target = lt.Prior.of([0.0] * 5 + [1.0] * 15, zeros="keep")
    samples = samples_of()
    moved = replace(samples, after=samples.before.under(target), goal=target)
    found = lt.metrics.evaluate(samples.before, target=target)
    assert metric_rows(Judgement.of(moved))[-1][2].startswith(f"{found['nll']:.3f} [")


def test_few_samples_of_a_class_are_told_and_make_no_change_sure():
    scores = lt.Scores(2 * torch.eye(4), torch.arange(4), carried=[4, 3, 2, 1])
    wrong = replace(scores, logits=2 * torch.eye(4).roll(1, 0))
    samples = BeforeAfter(wrong, scores, lt.Prior.uniform(4))
    assert "fewer than 5 samples here: 4 of 4" in first_table(Judgement.of(samples)).caption
    assert metric_rows(Judgement.of(samples))[0][3].endswith("may be chance")
    assert "samples here" not in first_table(judged()).caption


def test_without_a_target_accuracy_is_that_of_the_samples_as_they_are():
    samples = samples_of()
    as_they_are = Difference(samples.num_classes)
    as_they_are.add(samples.before.logits, samples.after.logits, samples.before.labels)
    names = [row[0] for row in metric_rows(Judgement(samples, as_they_are))]
    assert "accuracy under the target" not in names
    assert "accuracy, samples as they are" in names


@pytest.mark.parametrize(
    ("after", "shown"),
    [(0.5004, "+0.0 [+0.0, +0.1] better"), (0.5 + 1e-15, "none"), (0.5, "none")],
)
def test_a_change_too_small_for_its_digits_is_still_a_change(after, shown):
    gain = Interval(after - 0.5, after - 0.5002, after - 0.4998)
    change = change_of("accuracy", Interval(0.5, 0.4, 0.6), Interval(after, 0.4, 0.6), gain, True)
    ((*_, last),) = metric_rows(SimpleNamespace(changes={"accuracy": change}))
    assert last == shown
