"""Figures of labelled scores: what is drawn is derived again by counting."""

import math
import re

import numpy as np
import pytest
import torch

import longtail as lt
from longtail.report import figures
from longtail.report.charts.svg import color


def wrong(scores):
    return lt.metrics.false_positives(scores)


def recalls(scores):
    return lt.metrics.recalls(scores)


def margins(scores):
    return lt.metrics.margins(scores)


def numbers(drawn, class_="line"):
    """The points of each path of that class, in pixels."""
    return [
        [tuple(map(float, at)) for at in re.findall(r"(-?[\d.]+) (-?[\d.]+)", item.get("d"))]
        for item in drawn.of_class(class_)
    ]


def levels(drawn, points):
    """Heights in pixels as values, by the tick labels of the y axis."""
    ticks = {float(t.replace(",", "")): y for t, (_, y) in drawn.ticks("end").items()}
    low, high = min(ticks), max(ticks)
    per_pixel = (high - low) / (ticks[high] - ticks[low])
    return [low + (y + 13 * 0.35 - ticks[low]) * per_pixel for _, y in points]


def test_cumulative_false_positives_are_counted_from_the_most_frequent_class(scores, read):
    drawn = read(figures.false_positives_chart(wrong(scores), scores.counts))
    predicted, counts = scores.predict(), scores.counts
    order = sorted(range(12), key=lambda k: -counts[k])
    expected, total = [0.0], 0
    for c in order:
        total += sum(int(p) == c != int(y) for p, y in zip(predicted, scores.labels, strict=True))
        expected.append(float(total))
    [line] = numbers(drawn)
    assert levels(drawn, line) == pytest.approx(expected, abs=0.5)
    assert f"ends at {total}" in drawn.description
    [guide] = numbers(drawn, "guide")
    assert levels(drawn, guide) == pytest.approx([0, total], abs=0.5)


def test_as_shares_every_run_ends_at_a_hundred(scores, read):
    runs = {"before": wrong(scores), "after": wrong(scores.under(lt.Prior.uniform(12)))}
    said = read(figures.false_positives_chart(runs, scores.counts, share=True)).description
    assert said.count("ends at 100") == 2


def test_class_accuracy_is_the_recall_along_the_tail_with_the_geometric_mean(make_scores, read):
    scores = make_scores(classes=[f"name {k}" for k in range(12)])
    recall = np.asarray(recalls(scores))
    drawn = read(figures.class_accuracy_chart(recall, scores.counts, classes=scores.classes))
    order = np.argsort(-np.asarray(scores.counts), kind="stable")
    tips = [tip for tip in drawn.tooltips() if "geometric" in tip]
    assert [tip.partition("%, ")[2].partition(":")[0] for tip in tips] == [
        f"name {k}" for k in order
    ]
    shown = [float(tip.rpartition(": ")[2]) for tip in tips]
    assert shown == pytest.approx(100 * recall[order], abs=0.05)
    mean = math.prod(max(r, 0.001) for r in recall) ** (1 / 12)
    assert f"geometric mean {100 * mean:.1f} %" in drawn.description


def test_many_classes_are_pale_dots_and_a_running_mean(make_scores, read):
    scores = make_scores(num_classes=60, per_class=3)
    drawn = read(figures.class_accuracy_chart(recalls(scores), scores.counts))
    [line, _] = numbers(drawn)  # and the edge of the counts below
    assert len(line) == 60
    assert len([tip for tip in drawn.tooltips() if "class" in tip]) >= 60


def test_reliability_has_a_dot_a_filled_bin_with_the_area_of_its_share(scores, read):
    found = lt.metrics.reliability(scores.logits, scores.labels, bins=10)
    drawn = read(figures.reliability_chart(found))
    filled = np.asarray(found.share) > 0
    assert len(drawn.marks()) == filled.sum()
    radii = [float(re.search(r"a([\d.]+)", m.get("d"))[1]) for m in drawn.of_class("mark")]
    share = np.asarray(found.share)[filled]
    large = share > 0.1 * share.max()
    ratio = np.square(radii)[large] / share[large]
    assert ratio.max() / ratio.min() < 1.03
    assert f"model, ECE {100 * found.ece:.1f} %" in drawn.texts
    shown = levels(drawn, drawn.marks())
    assert shown == pytest.approx(100 * np.asarray(found.accuracy)[filled], abs=0.4)


def test_the_errors_of_the_legend_may_be_of_other_bins_than_are_drawn(scores, read):
    found = lt.metrics.reliability(scores.logits, scores.labels, bins=5)
    error = lt.metrics.ece(scores.logits, scores.labels)
    assert abs(error - found.ece) > 0.001
    drawn = read(figures.reliability_chart({"before": found, "after": found}, ece={"after": error}))
    assert f"before, ECE {100 * found.ece:.1f} %" in drawn.texts
    assert f"after, ECE {100 * error:.1f} %" in drawn.texts


def test_error_against_tau_is_what_adjusting_by_hand_gives(scores, read):
    curve = lt.posthoc.tau_curve(scores.logits, scores.labels, scores.counts)
    drawn = read(figures.tau_error_chart(curve, low=0.0, high=2.0))
    [line] = numbers(drawn)
    shown = levels(drawn, line)
    log = torch.as_tensor(lt.Prior.of(scores.counts).log)
    for at in (0, 60, 120, 240):
        tau = at / 120
        guess = (torch.as_tensor(scores.logits).double() - tau * log).argmax(1)
        error = 100 * lt.metrics.balanced_error(guess, scores.labels, 12)
        assert shown[at] == pytest.approx(error, abs=0.15)
    assert any(text.startswith(f"best τ {curve.best_tau:.3g}: ") for text in drawn.texts)


def test_a_best_tau_outside_the_axis_is_not_drawn_and_an_empty_axis_refused(scores, read):
    curve = lt.posthoc.tau_curve(scores.logits, scores.labels, scores.counts)
    drawn = read(figures.tau_error_chart(curve, low=curve.best_tau + 1, high=curve.best_tau + 2))
    assert not any(text.startswith("best") for text in drawn.texts)
    with pytest.raises(ValueError, match="must begin below its end"):
        figures.tau_error_chart(curve, low=1, high=1)


def test_an_error_under_another_target_says_so(scores, read):
    target = lt.Prior.of(range(1, 13))
    curve = lt.posthoc.tau_curve(scores.logits, scores.labels, scores.counts, target)
    assert "error under the target (%)" in read(figures.tau_error_chart(curve)).texts


def test_groups_against_tau_begin_where_the_plain_scores_are(scores, read):
    curve = lt.posthoc.tau_curve(scores.logits, scores.labels, scores.counts)
    drawn = read(figures.tau_groups_chart(curve, scores.counts))
    plain = lt.metrics.evaluate(scores)
    said = dict(re.findall(r"(\w+) starts at ([\d.]+)", drawn.description))
    for name, key in (("all", "balanced_accuracy"), ("many", "many"), ("few", "few")):
        assert float(said[name]) == pytest.approx(100 * plain[key], abs=0.01)


def test_margins_are_drawn_by_group_and_their_cdf_has_the_error_at_zero(scores, read):
    margin = np.asarray(margins(scores))
    drawn = read(figures.margins_chart(margin, scores.labels, scores.counts))
    assert len(drawn.of_class("line")) == 3
    few = np.asarray(lt.shot_groups(scores.counts)["few"])
    assert f"few: {few.sum()} classes, {20 * few.sum()} samples" in drawn.texts
    one = {"some": few}
    cdf = read(figures.margin_cdf_chart(margin, scores.labels, scores.counts, groups=one))
    [line] = numbers(cdf)
    shown = levels(cdf, line)
    assert shown == sorted(shown)
    assert shown[-1] == pytest.approx(100, abs=1)
    own = margin[few[np.asarray(scores.labels)]]
    zero = cdf.ticks("middle")["0"][0]
    at = min(range(len(line)), key=lambda k: abs(line[k][0] - zero))
    assert shown[at] == pytest.approx(100 * (own <= 0).mean(), abs=3)


def test_logits_of_positives_and_negatives_stand_beside_log_c(scores, read):
    found = lt.metrics.class_logits(scores.logits, scores.labels)
    drawn = read(figures.class_logits_chart(found, scores.counts))
    first = int(np.argmax(np.asarray(scores.counts)))
    said = dict(re.findall(r"(\w+) starts at (−?[\d.]+)", drawn.description))
    for name, mean in (("positives", found.positive_mean), ("negatives", found.negative_mean)):
        assert float(said[name].replace("−", "-")) == pytest.approx(float(mean[first]), abs=1e-3)
    assert f"log C = {math.log(12):.2f}" in drawn.texts
    assert len(drawn.of_class("band")) == 3


def test_what_a_figure_lacks_is_an_error_that_says_what_to_give(scores):
    with pytest.raises(ValueError, match="got none"):
        figures.reliability_chart({})
    with pytest.raises(ValueError, match="got none"):
        figures.class_accuracy_chart({}, scores.counts)
    with pytest.raises(ValueError, match=r"'b'.*each of 12 classes"):
        figures.class_accuracy_chart({"a": recalls(scores), "b": [1.0, 0.5]}, scores.counts)
    with pytest.raises(ValueError, match="mask over 12 classes"):
        figures.margins_chart(margins(scores), scores.labels, scores.counts, groups={"a": [True]})


def test_each_line_of_no_favour_has_the_name_and_colour_of_its_run(make_scores, read):
    one, other = make_scores(), make_scores(strength=1.0)
    runs, counts = {"before": wrong(one), "after": wrong(other)}, one.counts
    drawn = read(figures.false_positives_chart(runs, counts))
    guides = drawn.of_class("guide")
    strokes = {guide.get("stroke") for guide in guides}
    assert len(guides) == len(strokes) == 2
    of_lines = [g for g in drawn.root.iter() if any(part.get("class") == "line" for part in g)]
    assert strokes == {group.get("stroke") for group in of_lines}
    assert {"no class favoured, before", "no class favoured, after"} <= set(drawn.texts)
    alone = read(figures.false_positives_chart(wrong(one), counts))
    assert "no class favoured" in alone.texts
    shares = read(figures.false_positives_chart(runs, counts, share=True))
    assert len(shares.of_class("guide")) == 1  # the same line for both


def test_pale_marks_of_two_runs_do_not_mix_and_are_in_the_legend(make_scores, read):
    strengths = {"before": 2.0, "after": 1.0}
    runs = {name: make_scores(60, strength=strength) for name, strength in strengths.items()}
    counts = runs["before"].counts
    drawn = read(figures.class_accuracy_chart({n: recalls(s) for n, s in runs.items()}, counts))
    pale = [group for group in drawn.root.iter() if group.get("opacity") == "0.45"]
    marked = [group for group in pale if any(part.get("class") == "mark" for part in group)]
    fills = {group.get("stroke"): group.get("fill") for group in marked}
    assert [fills[color(style)] for style in (0, 1)] == [color(0), "none"]  # discs, and outlines
    keys = [group for group in drawn.root.iter() if group.get("opacity") == "0.6"]
    assert len(keys) == 2
