"""The page: self-contained, escaped, the same for the same values, never half written."""

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from longtail.report import (
    Column,
    Figure,
    Footer,
    Line,
    Page,
    Section,
    Table,
    line_chart,
    render_page,
    write_page,
)
from longtail.report.charts.svg import COLORS

EVIL = "<script>alert('x')</script>&\""
CHART = line_chart([Line(EVIL, [0, 1], [1, 2])], title=EVIL)
TABLE = Table(
    [Column(EVIL), Column("error", unit="%", best="low")],
    [
        [EVIL, (17.118, 0.2)],
        ["LA", (7.934, 0.1)],
        ["LA too", 7.931],
        ["Bayes", "7.87"],
        ["?", None],
    ],
    caption=EVIL,
)


def page_of(*sections, title="Report"):
    return Page(title, "What came out.", sections, Footer("0.1.0", "2025-06-01", "longtail demo"))


FULL = page_of(
    Section("Result", [EVIL, "Second."], TABLE, [Figure(CHART, EVIL, wide=True)], [EVIL]),
    title=EVIL,
)


class Outline(HTMLParser):
    """Tags that are open, and the cells of tables with their markup."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.cells = [], [], []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.append(tag)
        if tag not in ("meta", "link"):
            self.open.append(tag)
        if tag == "td":
            self.cells.append(["", dict(attrs).get("class"), False])

    def handle_startendtag(self, tag, attrs):
        self.tags.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if "td" in self.open:
            self.cells[-1][0] += data
            self.cells[-1][2] = "b" in self.open


def test_tags_are_balanced_and_every_part_is_there():
    outline = Outline(render_page(FULL))
    assert outline.open == []
    assert {"h1", "h2", "table", "caption", "figure", "figcaption", "svg", "footer"} <= set(
        outline.tags
    )


def test_nothing_is_fetched_and_no_script_runs():
    html = render_page(FULL)
    assert not re.search(r"https?://", html.replace("http://www.w3.org/2000/svg", ""))
    assert not re.search(r"url\((?!#)|@import|\bsrc=", html)
    assert "script" not in Outline(html).tags
    assert "default-src 'none'" in html


def test_every_text_is_escaped_and_only_our_figures_are_not():
    html = render_page(FULL)
    assert "<script" not in html
    assert str(CHART) in html
    assert Outline(html).cells[0][0] == EVIL


def test_numbers_stand_right_and_the_best_as_printed_is_bold():
    cells = Outline(render_page(FULL)).cells
    assert cells[1::2] == [
        ["17.12 ± 0.20", "number", False],
        ["7.93 ± 0.10", "number", True],
        ["7.93", "number", True],
        ["7.87", "number", False],  # text never competes
        ["–", "number", False],
    ]
    assert all(side is None and not bold for _, side, bold in cells[::2])


def test_high_can_be_best():
    table = Table([Column("accuracy", best="high", digits=0)], [[70], [float("nan")], [-80]])
    cells = Outline(render_page(page_of(Section("s", table=table)))).cells
    assert [(text, bold) for text, _, bold in cells] == [("70", True), ("–", False), ("−80", False)]


def test_rendering_is_deterministic():
    assert render_page(FULL) == render_page(FULL)


def test_a_page_without_sections_is_a_page():
    assert "longtail demo" in render_page(page_of())


def test_dark_mode_redefines_every_colour():
    html = render_page(page_of())
    dark = html[html.index("prefers-color-scheme: dark") :]
    assert all(f"--lt-{number}:" in dark for number in range(1, len(COLORS) + 1))


def test_a_figure_must_come_from_our_charts():
    with pytest.raises(TypeError, match=r"svg.*longtail\.report; got str"):
        Figure("<svg onload='alert(1)'/>", "foreign")


def test_rows_of_another_length_are_an_error_sentence():
    table = Table([Column("a"), Column("b")], [["x", 1], ["y"]])
    with pytest.raises(ValueError, match=r"row 1.*2 columns; got 1"):
        render_page(page_of(Section("s", table=table)))


def test_writing_replaces_the_file_whole(tmp_path):
    place = tmp_path / "report.html"
    place.write_text("old")
    assert write_page(FULL, place) == place
    assert place.read_bytes().decode() == render_page(FULL)
    assert list(tmp_path.iterdir()) == [place]


def test_a_failed_writing_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    place = tmp_path / "report.html"
    place.write_text("old")

    def half(part, text):
        part.touch()
        raise OSError("disk full")

    monkeypatch.setattr(Path, "write_bytes", half)
    with pytest.raises(OSError, match="disk full"):
        write_page(FULL, place)
    assert place.read_text() == "old"
    assert list(tmp_path.iterdir()) == [place]


def test_a_missing_folder_is_an_error_sentence(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"there is no folder .*nowhere"):
        write_page(FULL, tmp_path / "nowhere" / "report.html")
