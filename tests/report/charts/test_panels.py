"""Panels: each chart whole, in its place, none over another."""

import re

import pytest

from longtail.report import Line, Svg, line_chart, panels

ONE = line_chart([Line("a", [0, 1], [1, 2])], title="one <b>", x_title="x & y")


def places(drawn):
    groups = [item for item in drawn.root if item.tag.endswith("}g")]
    return [tuple(map(float, re.findall(r"[\d.]+", g.get("transform")))) for g in groups]


@pytest.mark.parametrize(("columns", "shape"), [(1, (1, 3)), (2, (2, 2)), (3, (3, 1)), (5, (3, 1))])
def test_charts_stand_in_rows_and_the_drawing_holds_them_all(read, columns, shape):
    one = read(ONE)
    drawn = read(panels([ONE] * 3, title="three", columns=columns))
    assert len(drawn.marks()) == 6
    across, down = zip(*places(drawn), strict=True)
    assert (len(set(across)), len(set(down))) == shape
    assert drawn.width == max(across) + one.width
    assert drawn.height == pytest.approx(max(down) + one.height)
    assert len(set(places(drawn))) == 3


def test_headings_and_descriptions_are_kept_and_escaped_once(read):
    drawn = read(panels([ONE, ONE], title="two", headings=["many <i>", "few"]))
    assert {"many <i>", "few"} <= set(drawn.texts)
    said = read(ONE).description
    assert drawn.description == f"many <i>: {said} few: {said}"
    assert drawn.height > 2 * read(ONE).height + 40


def test_what_is_no_chart_or_has_too_few_headings_is_refused():
    with pytest.raises(TypeError, match="must be a chart"):
        panels([Svg("<svg/>")], title="t")
    with pytest.raises(ValueError, match="2 charts, 1 headings"):
        panels([ONE, ONE], title="t", headings=["a"])
    with pytest.raises(ValueError, match="columns must be at least 1"):
        panels([ONE], title="t", columns=0)
