"""Bars: their heights, whiskers and labels, read back from the drawing."""

import math
from itertools import pairwise

import pytest

from longtail.report import Bars, Reference, bar_chart

GROUPS = ["many", "medium", "few"]


def boxes(drawn):
    names = ("x", "y", "width", "height")
    return [tuple(float(bar.get(n)) for n in names) for bar in drawn.of_class("mark")]


def test_bars_are_as_high_as_their_values_and_do_not_overlap(read):
    series = [Bars("a", [80, 40, 20]), Bars("b", [60, 60, 10])]
    drawn = read(bar_chart(GROUPS, series, title="t"))
    found = boxes(drawn)
    heights = [height for *_, height in found]
    assert [h / heights[0] for h in heights] == pytest.approx(
        [1, 0.5, 0.25, 0.75, 0.75, 0.125], 0.01
    )
    edges = sorted((x, x + width) for x, _, width, _ in found)
    assert all(right <= left for (_, right), (left, _) in pairwise(edges))
    assert all(drawn.inside(x, y) and drawn.inside(x + w, y + h) for x, y, w, h in found)


def test_reference_lies_at_the_top_of_a_bar_of_that_value(read):
    drawn = read(
        bar_chart(GROUPS, [Bars("a", [80, 40, 20])], title="t", reference=Reference(40, "r"))
    )
    [(_, level)] = drawn.starts("reference")
    assert level == pytest.approx(boxes(drawn)[1][1], abs=0.02)


def test_values_and_whiskers_are_shown(read):
    series = [Bars("a", [80.16, 40, 20], low=[79, 38, math.nan], high=[81, 42, math.nan])]
    drawn = read(bar_chart(GROUPS, series, title="t"))
    assert {"80.2", "40.0", "20.0"} <= set(drawn.texts)
    assert len(drawn.of_class("whisker")) == 2
    assert drawn.tooltips()[0] == "a, many: 80.16 (79 to 81)"


def test_nan_leaves_a_gap_where_its_bar_would_be(read):
    full = read(bar_chart(GROUPS, [Bars("a", [3, 2, 1])], title="t"))
    gap = read(bar_chart(GROUPS, [Bars("a", [3, math.nan, 1])], title="t"))
    assert boxes(gap) == [boxes(full)[0], boxes(full)[2]]


def test_negative_bars_hang_from_the_base_line(read):
    up, down, _ = boxes(read(bar_chart(GROUPS, [Bars("a", [2, -1, 0])], title="t")))
    assert up[1] + up[3] == pytest.approx(down[1], abs=0.02)
    assert down[3] == pytest.approx(up[3] / 2, abs=0.02)


def test_bars_differ_by_hatch_and_patterns_are_defined(read):
    svg = bar_chart(GROUPS, [Bars(f"s{k}", [1, 2, 3]) for k in range(3)], title="t")
    drawn = read(svg)
    fills = {bar.get("fill") for bar in drawn.of_class("mark")}
    assert len(fills) == 3
    for fill in fills:
        if fill.startswith("url(#"):
            assert f'id="{fill[5:-1]}"' in svg


def test_labels_of_narrow_bars_stand_upright_and_of_narrower_ones_are_left_to_the_tooltip(read):
    svg = bar_chart(GROUPS, [Bars(f"s{k}", [1.25, 2, 3]) for k in range(8)], title="t")
    assert svg.count("rotate(-90)") == 24
    svg = bar_chart(GROUPS, [Bars(f"s{k}", [1.25, 2, 3]) for k in range(20)], title="t")
    assert ">1.25</text>" not in svg
    assert len(boxes(read(svg))) == 60


@pytest.mark.parametrize("values", [[], [0.0], [math.nan], [5.0], [-5.0]], ids=str)
def test_odd_data_still_gives_a_sound_figure(read, values):
    svg = bar_chart([f"c{k}" for k in range(len(values))], [Bars("a", values)], title="t")
    assert "nan" not in svg.replace("no value", "")
    assert len(boxes(read(svg))) == sum(map(math.isfinite, values))


def test_no_series_and_no_categories_say_that_there_is_no_data(read):
    assert "no data" in read(bar_chart([], [], title="t")).texts


def test_names_are_escaped_and_long_ones_broken(read):
    svg = bar_chart(
        ['<b>&"', "a very long name of several words"], [Bars("<i>", [1, 2])], title="&"
    )
    drawn = read(svg)
    assert "<b>" not in svg
    assert '<b>&"' in drawn.texts
    assert "<i>" in drawn.texts
    # A line of a broken name carries the whole name as its tooltip.
    assert sum(text.endswith("a very long name of several words") for text in drawn.texts) == 2


def test_unequal_lengths_are_an_error_sentence():
    with pytest.raises(ValueError, match=r"bars 'a'.*one length; got 3"):
        bar_chart(GROUPS, [Bars("a", [1, 2])], title="t")
    with pytest.raises(ValueError, match="low is missing"):
        bar_chart(GROUPS, [Bars("a", [1, 2, 3], high=[1, 2, 3])], title="t")
