"""Strips: one dot per trial, mean and spread by the textbook."""

import math
import random
import statistics

import pytest

from longtail.report import Reference, Strip, strip_chart


def trials(mean, spread, count=100):
    source = random.Random(0)
    return [source.gauss(mean, spread) for _ in range(count)]


def test_every_trial_has_one_dot_within_its_own_strip(read):
    strips = [Strip("CE", trials(17, 1)), Strip("LA", trials(8, 0.2))]
    drawn = read(strip_chart(strips, title="t", value_title="error (%)"))
    marks = drawn.marks()
    assert len(marks) == 200
    assert all(drawn.inside(x, y) for x, y in marks)
    assert max(y for _, y in marks[:100]) < min(y for _, y in marks[100:])


def test_dots_lie_where_the_tick_labels_say(read):
    values = [7.5, 8.25, 12.0]
    drawn = read(strip_chart([Strip("LA", values)], title="t", reference=Reference(9.0, "level")))
    ticks = {float(t): x for t, (x, _) in drawn.ticks("middle").items() if t != "level"}
    low, high = min(ticks), max(ticks)
    scale = (ticks[high] - ticks[low]) / (high - low)
    expected = [ticks[low] + (value - low) * scale for value in [*values, 9.0]]
    [(level, _)] = drawn.starts("reference")
    found = [x for x, _ in drawn.marks()] + [level]
    assert found == pytest.approx(expected, abs=0.05)


def test_mean_and_standard_deviation_are_written_with_the_same_decimals(read):
    values = trials(8.6, 0.5)
    drawn = read(strip_chart([Strip("LA", values)], title="t"))
    assert f"{statistics.fmean(values):.2f} ± {statistics.stdev(values):.2f}" in drawn.texts
    assert "over 100 runs" in drawn.description
    assert len(drawn.of_class("mean")) == 1


@pytest.mark.parametrize(
    ("values", "summary"),
    [([], "no data"), ([math.nan], "no data"), ([3.0], "3"), ([4.0] * 3, "4"), ([0.0], "0")],
    ids=str,
)
def test_odd_data_still_gives_a_sound_figure(read, values, summary):
    svg = strip_chart([Strip("a", values)], title="t", reference=Reference(4, "four"))
    drawn = read(svg)
    assert summary in drawn.texts
    assert "nan" not in svg
    assert all(drawn.inside(x, y) for x, y in drawn.marks())


def test_no_strips_is_a_figure_too(read):
    assert read(strip_chart([], title="t")).marks() == []


def test_names_are_escaped_and_too_long_ones_cut(read):
    svg = strip_chart([Strip('<b>&"' + "long " * 40, [1.0, 2.0])], title="t")
    assert "<b>" not in svg
    assert any(text.startswith('<b>&"') and "…" in text for text in read(svg).texts)
