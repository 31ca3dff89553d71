"""A chart on its own: for notebooks, as SVG and as PDF, whole or not at all."""

import builtins
import re
from xml.etree import ElementTree

import pytest

from longtail.report import (
    Bars,
    Chart,
    Line,
    Points,
    Strip,
    bar_chart,
    heat_chart,
    line_chart,
    plane_chart,
    strip_chart,
)

EVIL = 'var(--lt-1, red) currentColor <script>alert("currentColor")</script>'
CHARTS = {
    "line": line_chart([Line(EVIL, [0, 1], [1, 2])], title=EVIL),
    "bar": bar_chart(["many", "few"], [Bars("a", [1, 2]), Bars("b", [2, 1])], title="bars"),
    "plane": plane_chart([Points("a", [1, 2], [1, 2])], title="plane"),
    "strip": strip_chart([Strip("a", [1.0, 2.0])], title="strip"),
    "heat": heat_chart(["a"], ["b"], [[1.0]], title="heat"),
}


@pytest.mark.parametrize("name", CHARTS)
def test_every_chart_function_returns_a_chart(name):
    assert isinstance(CHARTS[name], Chart)


@pytest.mark.parametrize("name", CHARTS)
def test_alone_it_has_its_size_and_no_colour_that_a_page_would_have_to_give(name, read):
    text = CHARTS[name].standalone()
    assert text == CHARTS[name]._repr_svg_()
    root = ElementTree.fromstring(text)
    for item in root.iter():
        for value in item.attrib.values():
            assert "var(" not in value
            assert value != "currentColor"
    drawn = read(text)
    assert (float(root.get("width")), float(root.get("height"))) == (drawn.width, drawn.height)
    assert root.get("style") is None
    assert "system-ui" not in text
    title, description, paper = root[:3]
    assert title.tag.endswith("title")
    assert description.tag.endswith("desc")
    assert paper.tag.endswith("rect")
    assert paper.get("fill") == "#ffffff"
    assert drawn.title == read(CHARTS[name]).title


def test_texts_that_look_like_colours_stay_as_they_are(read):
    drawn = read(CHARTS["line"].standalone())
    assert drawn.title == EVIL
    assert drawn.tooltips()[0].startswith(EVIL)
    assert "<script>" not in CHARTS["line"].standalone()


def test_saved_as_svg_it_is_what_a_notebook_shows(tmp_path):
    place = CHARTS["bar"].save(tmp_path / "bars.SVG")
    assert place.read_text(encoding="utf-8") == CHARTS["bar"].standalone()
    assert [path.name for path in tmp_path.iterdir()] == ["bars.SVG"]


@pytest.mark.parametrize("name", CHARTS)
def test_saved_as_pdf_it_is_one_page_of_vectors(name, tmp_path):
    pytest.importorskip("cairosvg", exc_type=(ImportError, OSError))
    written = CHARTS[name].save(tmp_path / "chart.pdf").read_bytes()
    assert written.startswith(b"%PDF")
    assert len(re.findall(rb"/Type /Page\b", written)) <= 1
    assert b"/Subtype /Image" not in written


@pytest.mark.parametrize("wrong", ["chart.png", "chart", "chart.svg.gz"])
def test_another_ending_is_an_error_that_names_those_there_are(wrong, tmp_path):
    with pytest.raises(ValueError, match=rf"saved as \.svg or \.pdf, got '{wrong}'"):
        CHARTS["bar"].save(tmp_path / wrong)
    assert list(tmp_path.iterdir()) == []


def test_a_missing_folder_is_an_error_that_says_so(tmp_path):
    with pytest.raises(FileNotFoundError, match="make it first"):
        CHARTS["bar"].save(tmp_path / "nowhere" / "chart.svg")


@pytest.mark.parametrize("error", [ImportError("no cairosvg"), OSError("no libcairo")])
def test_without_cairo_a_pdf_says_what_to_install_and_writes_nothing(error, tmp_path, monkeypatch):
    real = builtins.__import__

    def refuse(name, *rest, **options):
        if name == "cairosvg":
            raise error
        return real(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match=r"longtail\[plot\].*\.svg"):
        CHARTS["bar"].save(tmp_path / "chart.pdf")
    assert list(tmp_path.iterdir()) == []


def test_a_drawing_without_a_view_box_is_refused():
    with pytest.raises(ValueError, match="viewBox"):
        Chart("<svg role='img'></svg>").standalone()
