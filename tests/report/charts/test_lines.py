"""Lines: where marks lie is derived again from the tick labels, naively."""

import math
import re
from itertools import pairwise

import pytest

from longtail.report import Guide, Line, Reference, line_chart

NAN = math.nan


def test_every_point_has_one_mark_inside_the_view_box(read):
    y = [[k * i**0.5 for i in range(101)] for k in range(3)]
    lines = [Line(f"line {k}", range(101), each, mark="both") for k, each in enumerate(y)]
    drawn = read(line_chart(lines, title="many"))
    assert len(drawn.marks()) == 303
    assert all(drawn.inside(x, y) for x, y in drawn.marks())


@pytest.mark.parametrize("level", [5.5, 7.87, 16.0])
def test_reference_and_marks_lie_where_the_tick_labels_say(read, level):
    svg = line_chart(
        [Line("a", [0, 1, 2], [6.2, 11.0, level])], title="t", reference=Reference(level, "Bayes")
    )
    drawn = read(svg)
    ticks = {float(text): y for text, (_, y) in drawn.ticks("end").items()}
    low, high = min(ticks), max(ticks)
    share = (level - low) / (high - low)
    expected = ticks[low] + share * (ticks[high] - ticks[low]) - 13 * 0.35  # text is lowered
    [line], [(_, height)] = drawn.of_class("reference"), drawn.starts("reference")
    assert re.fullmatch(r"M\S+ \S+H\S+", line.get("d"))
    assert height == pytest.approx(expected, abs=0.02)
    assert drawn.marks()[2][1] == pytest.approx(expected, abs=0.02)


def test_logarithmic_x_puts_powers_of_ten_at_equal_distances(read):
    drawn = read(line_chart([Line("a", [1, 10, 100, 1000], [1, 2, 3, 4])], title="t", log_x=True))
    x = [place[0] for place in drawn.marks()]
    assert x[1] - x[0] == pytest.approx(x[2] - x[1], abs=0.02)
    assert x[2] - x[1] == pytest.approx(x[3] - x[2], abs=0.02)
    assert {"1", "10", "100", "1,000"} <= set(drawn.texts)


def test_nan_breaks_the_line_and_the_band_and_has_no_mark(read):
    y = [1, 2, NAN, 4, 5]
    drawn = read(line_chart([Line("a", range(5), y, low=y, high=y)], title="t"))
    assert len(drawn.marks()) == 4
    for kind in ("line", "band"):
        [path] = drawn.of_class(kind)
        assert len(re.findall("M", path.get("d"))) == 2
        assert "nan" not in path.get("d")


def test_a_point_between_gaps_is_visible_though_no_line_reaches_it(read):
    drawn = read(line_chart([Line("a", range(5), [1, 2, NAN, 4, NAN])], title="t"))
    assert [mark.get("opacity") for mark in drawn.of_class("mark")] == ["0", "0", None]


@pytest.mark.parametrize(
    "lines",
    [
        [],
        [Line("empty", [], [])],
        [Line("one", [3], [4])],
        [Line("same", [1, 1], [5, 5])],
        [Line("zero", [0, 0], [0, 0])],
        [Line("nothing finite", [1, 2], [NAN, math.inf])],
        [Line("tiny", [0, 1], [1e-12, 2e-12]), Line("huge", [0, 1], [1e12, 2e12])],
        [Line("nearly equal", [0, 1], [1e6, 1e6 + 1e-6])],
    ],
    ids=lambda lines: lines[0].name if lines else "no lines",
)
@pytest.mark.parametrize("reference", [None, Reference(2.0, "two")])
def test_odd_data_still_gives_a_sound_figure(read, lines, reference):
    svg = line_chart(lines, title="t", reference=reference)
    drawn = read(svg)
    assert all(drawn.inside(x, y) for x, y in drawn.marks())
    assert not re.search(r'"[^"]*\b(nan|inf)\b[^"]*"', svg)
    assert ("no data" in drawn.texts) == (not drawn.marks())


def test_lines_differ_by_dash_and_dots_by_shape_not_only_by_colour(read):
    lines = [Line(f"line {k}", [0, 1], [k, k], mark="both") for k in range(5)]
    drawn = read(line_chart(lines, title="t"))
    assert len({path.get("stroke-dasharray") for path in drawn.of_class("line")}) == 5
    shapes = {mark.get("d").partition("m")[2] for mark in drawn.of_class("mark")}
    assert len(shapes) == 5


def test_style_keeps_the_look_of_a_series_that_stands_elsewhere():
    alone = line_chart([Line("b", [0, 1], [0, 1], style=1)], title="t")
    assert "--lt-2" in alone
    assert "--lt-1" not in alone


def test_labels_name_the_points(read):
    line = Line("CE", [1, 2], [80.0, 20.5], labels=["airplanes", "wild cat"])
    drawn = read(line_chart([line], title="t"))
    assert drawn.tooltips() == ["CE, airplanes: 80", "CE, wild cat: 20.5"]


def test_the_description_tells_what_the_figure_shows(read):
    line = Line("CE", [0, 1, 2], [17.0, 8.0, 9.5])
    drawn = read(
        line_chart([line], title="Error", x_title="tau", reference=Reference(7.9, "Bayes"))
    )
    assert drawn.title == "Error"
    assert "CE starts at 17 and ends at 9.5, between 8 and 17." in drawn.description
    assert "Bayes" in drawn.description


def test_names_are_escaped(read):
    name = '<b>&"\x00'
    svg = line_chart([Line(name, [0], [1])], title=name, x_title=name, y_title=name)
    drawn = read(svg)
    assert "<b>" not in svg
    assert drawn.title == '<b>&"\ufffd'
    assert drawn.texts.count('<b>&"\ufffd') == 3


def test_legend_entries_stay_apart_from_each_other_and_from_the_data(read):
    lines = [Line(f"a method with a long name {k}", [0, 1], [0, 1]) for k in range(9)]
    svg = line_chart(lines, title="t")
    entries = re.findall(r'translate\(([\d.]+) ([\d.]+)\)"><g', svg)
    assert len(set(entries)) == 9
    assert max(float(y) for _, y in entries) < min(y for _, y in read(svg).marks())


def test_numpy_arrays_are_taken(read):
    np = pytest.importorskip("numpy")
    x = np.linspace(0, 1, 4)
    drawn = read(line_chart([Line("a", x, x**2, low=x - 1, high=x + 1)], title="t"))
    assert len(drawn.marks()) == 4


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (Line("a", [1, 2], [1]), r"line 'a'.*one length; got 2 x, 1 y"),
        (Line("a", [1], [1], low=[0]), "high is missing"),
        (Line("a", [1], [1], low=[0], high=[1, 2]), "1 low, 2 high"),
        (Line("a", [0], [1]), "above zero"),
    ],
)
def test_what_does_not_fit_is_an_error_sentence(line, says):
    with pytest.raises(ValueError, match=says):
        line_chart([line], title="t", log_x=True)


def test_text_among_numbers_is_an_error_sentence():
    with pytest.raises(TypeError, match=r"line 'a'.*flat sequence"):
        line_chart([Line("a", [1], ["many"])], title="t")


def test_a_reference_must_be_finite():
    with pytest.raises(ValueError, match=r"'Bayes'.*finite"):
        Reference(NAN, "Bayes")


def test_a_long_plain_line_is_a_curve_without_a_mark_a_point(read):
    drawn = read(line_chart([Line("a", range(61), range(61))], title="t"))
    assert drawn.marks() == []
    assert len(drawn.of_class("line")) == 1
    named = Line("a", range(61), range(61), labels=[f"class {k}" for k in range(61)])
    assert len(read(line_chart([named], title="t")).marks()) == 61


@pytest.mark.parametrize("style", range(5))
def test_thousands_of_dots_are_one_path_at_the_same_places(read, style):
    x, y = list(range(1, 601)), [k % 7 + 1.0 for k in range(600)]
    few = read(line_chart([Line("a", x[:500], y[:500], mark="dots", style=style)], title="t"))
    many = line_chart([Line("a", x, y, mark="dots", style=style)], title="t", x_range=(1, 600))
    [path] = read(many).of_class("marks")
    starts = re.findall(r"M(-?[\d.]+) (-?[\d.]+)", path.get("d"))
    assert len(starts) == 600
    assert len(few.marks()) == 500
    # The same level lies at the same height, and x runs evenly from edge to edge.
    assert {float(b) for _, b in starts} == {round(at, 1) for _, at in few.marks()}
    assert (
        path.get("stroke-linecap") != "square"
    )  # which cairo leaves out where a line has no length
    steps = [float(b[0]) - float(a[0]) for a, b in pairwise(starts)]
    assert max(steps) - min(steps) < 0.21
    assert len(many) < 65 * 600


def test_logarithmic_y_puts_powers_of_ten_at_equal_distances(read):
    drawn = read(line_chart([Line("a", [1, 2, 3], [1, 10, 100])], title="t", log_y=True))
    y = [place[1] for place in drawn.marks()]
    assert y[0] - y[1] == pytest.approx(y[1] - y[2], abs=0.02)
    with pytest.raises(ValueError, match=r"above zero.*log_y=False"):
        line_chart([Line("a", [1, 2], [0, 1])], title="t", log_y=True)


def test_a_guide_is_dotted_named_and_inside_the_axes(read):
    guide = Guide("calibrated", [0, 50, NAN, 60, 100], [0, 50, NAN, 60, 200])
    svg = line_chart([Line("a", [10, 20], [10, 20])], title="t", guides=[guide])
    drawn = read(svg)
    [path] = drawn.of_class("guide")
    assert path.get("d").count("M") == 2
    places = [tuple(map(float, at)) for at in re.findall(r"([\d.]+) ([\d.]+)", path.get("d"))]
    assert all(drawn.inside(x, y) for x, y in places)
    assert "calibrated" in drawn.texts
    assert "Dotted: calibrated." in drawn.description


def test_sizes_are_areas(read):
    line = Line("a", [1, 2], [1, 2], mark="dots", sizes=[1, 4])
    shapes = [item.get("d") for item in read(line_chart([line], title="t")).of_class("mark")]
    radii = [float(re.search(r"a([\d.]+)", shape)[1]) for shape in shapes]
    assert radii[1] == pytest.approx(2 * radii[0], abs=0.01)


def test_a_faint_series_is_drawn_but_not_in_the_legend(read):
    lines = [Line("dots", [1, 2], [1, 2], mark="dots", faint=True), Line("mean", [1, 2], [1, 1])]
    drawn = read(line_chart(lines, title="t"))
    assert "mean" in drawn.texts
    assert "dots" not in drawn.texts
    assert len(drawn.marks()) == 4
    assert drawn.description.startswith("1 series")


def test_charts_of_one_range_and_room_have_their_axes_in_one_place(read):
    charts = [
        line_chart([Line("a", [3, 4], y)], title="t", x_range=(0, 10), y_room=60)
        for y in ([0, 1], [0, 100000])
    ]
    first, second = (
        {t: x for t, (x, _) in read(chart).ticks("middle").items()} for chart in charts
    )
    assert first == second
    assert {"0", "10"} <= set(first)


def test_between_whole_numbers_there_are_no_ticks(read):
    drawn = read(line_chart([Line("a", [1, 2], [0.0, 1.0])], title="classes"))
    assert set(drawn.ticks("middle")) == {"1", "2"}
    drawn = read(line_chart([Line("a", [1, 1.5], [0.0, 1.0])], title="numbers"))
    assert len(drawn.ticks("middle")) > 2
