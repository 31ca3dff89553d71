import re

import numpy as np
import pytest

import longtail as lt
from compared_worlds import World, result_of
from longtail.flows.compare_runs import BY_KEY, measured_run
from longtail.flows.compare_sets import Estimate, compare_set
from longtail.report import Footer, Reference, render_page
from longtail.report.charts.rows import IntervalRow, interval_chart
from longtail.report.charts.svg import color
from longtail.report.pages.compare import compare_page, differences_chart, values_chart
from longtail.report.pages.compare_tables import cells, for_latex, interval, latex, markdown

NASTY = r"L_A & 50% $x^2$ #1 {a} ~b \c | τ=1 <script>alert(1)</script> 🙂 " + "x" * 300
FOOTER = Footer(version="0", date="2026-01-01", command="longtail compare")


@pytest.fixture
def result():
    world = World(per_class=60)
    runs = [*world.runs("CE", 0.0), *world.runs(NASTY, 1.6), *world.runs("BS", 1.62)]
    return result_of(compare_set(world.samples, runs, "balanced_accuracy"))


def test_the_markdown_table_has_all_cells_and_marks(result):
    lines = markdown(result).splitlines()
    rows = [line for line in lines if line.startswith("| ")]
    assert rows[0].startswith(
        "| method | runs | balanced accuracy, as trained % ↑ "
        "| balanced accuracy, under the target % ↑ | many % ↑"
    )
    assert "NLL ↓" in rows[0]
    cells = [[c.strip() for c in re.split(r"(?<!\\)\|", row)[1:-1]] for row in rows]
    assert len({len(row) for row in cells}) == 1
    table = result.sets[0]
    for row, method in zip(cells[1:], table.methods, strict=True):
        found = method.estimates["balanced_accuracy"]
        assert f"{100 * found.value:.1f}" in row[3]
        assert f"± {100 * found.reach:.1f}" in row[3]
        assert row[-1] == f"{table.ranks.mean[method.name]:.2f}"
    assert cells[1][3].startswith("**")
    assert cells[2][3].endswith("†")
    assert "†" not in cells[3][3]
    assert "<script>" not in markdown(result)


def test_every_output_has_each_method_as_trained_and_under_the_target():
    world = World(per_class=60)
    table = compare_set(world.samples, world.runs("CE", 1.0), "balanced_accuracy")
    result = result_of(table)
    (method,) = table.methods
    trained, moved = (
        f"{100 * found['balanced_accuracy'].value:.1f}"
        for found in (method.as_trained, method.estimates)
    )
    assert trained != moved
    outputs = {
        "page": render_page(compare_page(result, FOOTER)),
        "markdown": markdown(result),
        "latex": latex(result),
    }
    for name, text in outputs.items():
        assert re.search(r"as trained.*under the target", text, re.S), name
        assert "as trained is balanced accuracy of the scores as they are" in text, name
        assert trained in text, name
        assert moved in text, name
    assert "<h2>As trained</h2>" in outputs["page"]
    stored = result.as_json()["sets"][0]["methods"]["CE"]["metrics"]
    assert stored["as trained"]["nll"]["value"] == method.as_trained["nll"].value
    assert stored["under the target"]["nll"]["value"] == method.estimates["nll"].value


def test_an_interval_with_ends_unequally_far_is_shown_by_both():
    """100 % with [34, 100] is not 100 ± 33."""
    world = World(per_class=2, target=None)
    perfect = 9 * np.eye(5)[world.labels]
    run = measured_run(lt.Scores(perfect, labels=world.labels), world.samples, "A")
    table = compare_set(world.samples, [run], "balanced_accuracy")
    result = result_of(table)
    low = run.metrics["balanced_accuracy"].low
    assert 0.5 < low < 0.8
    ends = f"[{100 * low:.1f}, 100.0]"
    assert f"| 100.0 {ends} |" in markdown(result)
    assert rf"$100.0\ {ends}$" in latex(result)
    page = render_page(compare_page(result, FOOTER))
    assert f"100.0 {ends}" in page
    assert page.count(f"100.0 {ends}") > 1  # in the figure too
    for text in (markdown(result), latex(result), page):
        assert "bootstrap" not in text
        assert "both stand in brackets" in text
        assert not re.search(r"100\.0 (±|\\pm) ", text)


def test_an_even_interval_keeps_its_sign():
    accuracy, even = BY_KEY["balanced_accuracy"], Estimate(0.5, 0.4201, 0.5799)
    assert interval(even, accuracy) == "± 8.0"
    assert interval(Estimate(0.5, 0.42, 0.57), accuracy) == "[42.0, 57.0]"
    assert interval(Estimate(0.5), accuracy) == ""


def test_where_nothing_was_moved_there_is_one_column():
    world = World(target=None)
    runs = world.runs("CE", 1.0)
    result = result_of(compare_set(world.samples, runs, "balanced_accuracy"))
    assert "as trained" not in markdown(result)
    assert list(result.as_json()["sets"][0]["methods"]["CE"]["metrics"]) == ["as trained"]


def test_latex_is_balanced_and_for_latex(result):
    text = latex(result)
    for command in ("toprule", "midrule", "bottomrule", "centering", "caption{", "label{tab:toy}"):
        assert f"\\{command}" in text
    body = re.search(r"\\midrule\n(.*)\\bottomrule", text, re.S)[1]
    rows = body.strip().splitlines()
    columns = re.search(r"\\begin\{tabular\}\{(\w+)\}", text)[1]
    for row in rows:
        assert row.endswith(r"\\")
        assert len(re.findall(r"(?<!\\)&", row)) == len(columns) - 1
    assert r"\mathbf{" in rows[0]
    assert r"\underline{" in rows[1]
    assert "underline" not in rows[2].split("&")[2]
    bare = re.sub(r"\\.", "", text)
    assert bare.count("{") == bare.count("}")
    assert len(re.findall(r"(?<!\\)\$", text)) % 2 == 0
    assert not re.search(r"(?<!\\)[#_]", bare)
    assert r"$\tau$=1" in text


def test_latex_escapes_every_special_character():
    assert for_latex("a&b%c$d#e_f{g}h") == r"a\&b\%c\$d\#e\_f\{g\}h"
    assert for_latex("~^\\") == r"\textasciitilde{}\textasciicircum{}\textbackslash{}"
    assert for_latex("two\nlines") == "two lines"


def test_two_sets_have_two_labels():
    world = World()
    tables = [compare_set(world.samples, world.runs("A", 1.0), "nll") for _ in range(2)]
    text = latex(result_of(*tables))
    assert r"\label{tab:toy}" in text
    assert r"\label{tab:toy-2}" in text


def test_one_method_is_neither_bold_nor_marked(world):
    only = result_of(compare_set(world.samples, world.runs("A", 1.0), "nll"))
    assert "mathbf" not in latex(only)
    assert "†" not in markdown(only)
    assert "only one method" in render_page(compare_page(only, FOOTER))


def test_the_page_says_it_all_and_no_name_is_markup(result):
    html = render_page(compare_page(result, FOOTER))
    assert "<script>alert" not in html
    assert "cannot be told apart from the best" in html
    for heading in ("Methods and runs", "What is noise"):
        assert f"<h2>{heading}</h2>" in html
    assert html.count("<svg ") == 2
    assert html.count("<table") == 3
    assert "These runs do not say which of" in html


def test_a_page_of_two_sets_names_them_and_ranks():
    tables = []
    for seed in (0, 1):
        world = World(seed=seed)
        runs = [*world.runs("A", 1.0), *world.runs("B", 0.2)]
        tables.append(compare_set(world.samples, runs, "balanced_accuracy"))
    html = render_page(compare_page(result_of(*tables), FOOTER))
    assert "Results on toy" in html
    assert "average rank" in html
    assert "Average rank over 2 data sets: A 1.00, B 2.00." in markdown(result_of(*tables))


def test_the_charts_have_a_line_a_method_and_a_dot_a_run(result, read):
    table = result.sets[0]
    values = read(values_chart(table))
    assert len(values.of_class("interval")) == 3
    assert len(values.of_class("mean")) == 3
    assert len(values.marks()) == 9
    assert all(values.inside(*place) for place in values.marks())
    behind = read(differences_chart(table))
    assert len(behind.of_class("interval")) == 2
    assert any("may be noise" in text for text in behind.texts)
    assert any(text.endswith("behind") for text in behind.texts)


def test_an_interval_is_drawn_where_it_lies(read):
    chart = interval_chart(
        [IntervalRow("A", 2.0, 1.0, 4.0), IntervalRow("B", float("nan"))],
        title="t",
        reference=Reference(0.0, "zero"),
    )
    drawn = read(chart)
    (line,) = drawn.of_class("interval")
    low, high = map(float, re.match(r"M([\d.]+) [\d.]+H([\d.]+)", line.get("d")).groups())
    zero = drawn.starts("reference")[0][0]
    assert (low - zero) * 4 == pytest.approx(high - zero, abs=0.1)
    assert len(drawn.of_class("mean")) == 1


def test_the_table_of_the_page_marks_what_cannot_be_told_from_the_best(result):
    page = render_page(compare_page(result, FOOTER))
    lead = page[page.index("<table") : page.index("</table>")]
    tied = sum(cell.tied for row in cells(result.sets[0]) for cell in row)
    assert lead.count("†</span>") == tied > 0
    assert "†: cannot be told apart from it" in lead


def test_the_colours_of_the_intervals_are_explained(result):
    table = result.sets[0]
    for chart in (values_chart(table), differences_chart(table)):
        used = {style for style in (0, 1, 4) if f'fill="{color(style)}"' in chart}
        said = {0: "the best", 1: "behind by more than noise", 4: "† may be as good"}
        assert used
        for style, name in said.items():
            assert (f">{name}<" in chart) == (style in used)
