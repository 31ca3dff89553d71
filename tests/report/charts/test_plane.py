"""The plane: equal units, and separators that satisfy their own equation."""

import math
import random

import pytest

from longtail.report import Points, Separator, plane_chart


def cloud(name, at, count):
    source = random.Random(name)
    x, y = ([source.gauss(at, 1) for _ in range(count)] for _ in range(2))
    return Points(name, x, y)


CLOUDS = [cloud("rare", 1, 20), cloud("frequent", -1, 380)]


def scales(drawn):
    """From pixels back to numbers, by the tick labels."""

    def back(ticks):
        (a, pa), *_, (b, pb) = sorted(ticks.items())
        return lambda pixel: a + (pixel - pa) / (pb - pa) * (b - a)

    def number(text):
        return float(text.replace("−", "-").replace(",", ""))

    x = {number(text): at for text, (at, _) in drawn.ticks("middle").items()}
    y = {number(text): at - 13 * 0.35 for text, (_, at) in drawn.ticks("end").items()}
    return back(x), back(y)


def test_every_point_has_one_mark_where_it_belongs(read):
    drawn = read(plane_chart(CLOUDS, title="t"))
    assert all(drawn.inside(x, y) for x, y in drawn.marks())
    x, y = scales(drawn)
    drawn_first = [*CLOUDS[1].x, *CLOUDS[0].x], [*CLOUDS[1].y, *CLOUDS[0].y]
    assert [x(at) for at, _ in drawn.marks()] == pytest.approx(drawn_first[0], abs=0.01)
    assert [y(at) for _, at in drawn.marks()] == pytest.approx(drawn_first[1], abs=0.01)


def test_a_unit_is_as_long_in_x_as_in_y(read):
    x, y = scales(read(plane_chart([Points("wide", [0, 1000], [0, 1])], title="t")))
    assert x(200) - x(100) == pytest.approx(y(100) - y(200), rel=0.01)


def test_the_rare_class_is_drawn_last(read):
    drawn = read(plane_chart(CLOUDS, title="t"))
    assert drawn.tooltips()[0].startswith("frequent")
    assert drawn.tooltips()[-1].startswith("rare")


@pytest.mark.parametrize(
    ("a", "b", "c"), [(1, 1, 0), (1, 0, -1), (0, 2, 1), (-3, 0.5, 0.2), (1e-9, 1e-9, 0)]
)
def test_separators_satisfy_their_equation_and_end_at_the_frame(read, a, b, c):
    drawn = read(plane_chart(CLOUDS, [Separator("s", a, b, c)], title="t"))
    [line] = drawn.of_class("separator")
    x, y = scales(drawn)
    for end in "12":
        px, py = float(line.get(f"x{end}")), float(line.get(f"y{end}"))
        assert drawn.inside(px, py)
        assert (a * x(px) + b * y(py) + c) / math.hypot(a, b) == pytest.approx(0, abs=0.02)


def test_a_separator_outside_the_frame_is_said_to_be(read):
    outside = [Separator("far", 1, 1, 1e6), Separator("upright", 1, 0, 1e6)]
    drawn = read(plane_chart(CLOUDS, outside, title="t"))
    assert drawn.of_class("separator") == []
    assert "far (outside the frame)" in drawn.texts
    assert "upright (outside the frame)" in drawn.texts


@pytest.mark.parametrize("points", [[], [Points("a", [], [])], [Points("a", [2], [2])]], ids=len)
def test_odd_data_still_gives_a_sound_figure(read, points):
    drawn = read(plane_chart(points, [Separator("s", 1, -1, 0)], title="t"))
    assert len(drawn.of_class("separator")) == 1
    assert ("no data" in drawn.texts) == (not drawn.marks())


def test_points_with_nan_are_left_out(read):
    drawn = read(plane_chart([Points("a", [1, math.nan, 3], [1, 2, math.inf])], title="t"))
    assert len(drawn.marks()) == 1


def test_names_are_escaped(read):
    svg = plane_chart([Points('<b>&"', [1], [2])], [Separator("<i>", 1, 1, 1)], title="t")
    assert "<b>" not in svg
    assert '<b>&"' in read(svg).texts


@pytest.mark.parametrize("bad", [(0, 0, 1), (math.nan, 1, 1), (1, 1, math.inf)])
def test_what_is_no_line_is_an_error_sentence(bad):
    with pytest.raises(ValueError, match=r"separator 's'.*finite"):
        plane_chart(CLOUDS, [Separator("s", *bad)], title="t")


def test_unequal_lengths_are_an_error_sentence():
    with pytest.raises(ValueError, match=r"points 'a'.*one length"):
        plane_chart([Points("a", [1], [1, 2])], title="t")


def test_coloured_classes_differ_by_shape_and_have_no_numbers_beside_them(read):
    svg = plane_chart(CLOUDS, title="t", colored=True, axes=False)
    drawn = read(svg)
    assert drawn.ticks("end") == {}
    assert set(drawn.tooltips()) == {cloud.name for cloud in CLOUDS}
    assert "--lt-1" in svg
    shapes = {item.get("d").partition("m")[2] for item in drawn.of_class("mark")}
    assert len(shapes) == len(CLOUDS)


def test_thousands_of_points_are_one_path_a_class(read):
    clouds = [Points(f"c{k}", range(400), [k] * 400) for k in range(2)]
    drawn = read(plane_chart(clouds, title="t"))
    assert [item.get("d").count("M") for item in drawn.of_class("marks")] == [400, 400]
    assert drawn.marks() == []
