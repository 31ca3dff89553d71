"""The page of a comparison and its figures."""

import math
from pathlib import Path

from longtail.core.files import written_whole
from longtail.flows.compare import CompareResult
from longtail.flows.compare_runs import Metric
from longtail.flows.compare_sets import ComparedSet, Ranks
from longtail.flows.samples import AS_TRAINED
from longtail.report.charts.chart import Chart
from longtail.report.charts.frame import Reference
from longtail.report.charts.rows import IntervalRow, interval_chart
from longtail.report.page import Cell, Column, Figure, Footer, Page, Printed, Section, Table
from longtail.report.pages import compare_tables as tables
from longtail.report.pages import compare_text as text

_TITLE = "Methods compared"
_BEST, _TIED, _BEHIND = 0, 4, 1  # colours: the best, what may be as good, what is behind
_COLORS = {_BEST: "the best", _TIED: "† may be as good", _BEHIND: "behind by more than noise"}


def write_tables(result: CompareResult, folder: Path) -> tuple[str, ...]:
    """Write the tables as Markdown and as LaTeX; the names of the files."""
    texts = {"table.md": tables.markdown(result), "table.tex": tables.latex(result)}
    for name, words in texts.items():
        with written_whole(folder / name) as part:
            part.write_text(words, encoding="utf-8", newline="\n")
    return tuple(texts)


def compare_page(result: CompareResult, footer: Footer) -> Page:
    """Everything a comparison says."""
    sections, alone = [], len(result.sets) == 1
    for table in result.sets:
        sections.append(_results(table, result))
        sections += [_as_trained(table, alone)] if table.has_moved else []
        sections.append(_noise(table, alone))
    if result.ranks is not None:
        sections.append(_ranks(result.ranks, result.sets[0].by))
    if notes := text.notes(result):
        sections.append(Section("About these runs", notes=notes))
    if not alone:
        each = (f"{table.samples.name}: {text.headline(table)}" for table in result.sets)
        return Page(_TITLE, " ".join(each), sections, footer)
    (table,) = result.sets
    lead = results_table(table, result)
    summary = " ".join(filter(None, (text.headline(table), text.what_moved(table))))
    return Page(_TITLE, summary, sections, footer, lead, text.next_step(table))


def results_table(table: ComparedSet, result: CompareResult) -> Table:
    """Methods × metrics, each a mean with its interval; the best is bold."""
    unequal = len(table.run_numbers) > 1  # else the caption has it
    columns = [Column("method"), *map(_column, tables.columns(table))]
    columns += [Column("runs", digits=0)] if unequal else []
    columns += [Column("rank", digits=2)] if table.ranks is not None else []
    rows: list[list[Cell]] = []
    for method, cells in zip(table.methods, tables.cells(table), strict=True):
        row: list[Cell] = [method.name, *map(_printed, cells)]
        row += [len(method.runs)] if unequal else []
        row += [table.ranks.mean[method.name]] if table.ranks is not None else []
        rows.append(row)
    caption = " ".join(filter(None, (text.caption(table, result), text.legend(table))))
    return Table(columns, rows, caption=caption)


def _column(shown: tables.Shown) -> Column:
    return Column(shown.short, "%" if shown.metric.percent else "")


def _printed(cell: tables.Cell) -> Printed:
    words = " ".join(filter(None, (cell.value, cell.between)))
    return Printed(words, best=cell.best, mark="†" if cell.tied else "")


def values_chart(table: ComparedSet) -> Chart:
    """Every method's mean, interval and runs by the metric that orders them."""
    metric = table.by
    lines = []
    for method in table.methods:
        estimated, style = method.estimates[metric.key], _style(table, method.name)
        value, low, high = (
            math.nan if part is None else metric.factor * part
            for part in (estimated.value, estimated.low, estimated.high)
        )
        parts = tables.number(estimated.value, metric), tables.interval(estimated, metric)
        shown = " ".join(filter(None, (*parts, "†" if style == _TIED else "")))
        dots = [metric.factor * dot for dot in estimated.runs]
        lines.append(IntervalRow(method.name, value, low, high, shown, dots, style))
    unit = " (%)" if metric.percent else ""
    return interval_chart(
        lines,
        title=f"{metric.name} of each method",
        value_title=metric.name + unit,
        colors=_colors(lines),
    )


def differences_chart(table: ComparedSet) -> Chart:
    """How far every method is behind the best, with the interval it was judged by."""
    metric, verdict = table.by, table.verdicts[table.by.key]
    lines = []
    for each in verdict.others:
        low, value, high = (metric.factor * end for end in (each.low, each.behind, each.high))
        word = "behind" if each.told_apart else "may be noise"
        shown = f"{value:.{metric.digits + 1}f}, {word}"
        style = _style(table, each.method)
        lines.append(IntervalRow(each.method, value, low, high, shown, (), style))
    unit = "points" if metric.percent else metric.name
    return interval_chart(
        lines,
        title=f"How far each method is behind {verdict.best}",
        value_title=f"behind by ({unit})",
        reference=Reference(0.0, verdict.best),
        colors=_colors(lines),
    )


def _results(table: ComparedSet, result: CompareResult) -> Section:
    caption = "Dots are runs, lines 95 % intervals; † cannot be told apart from the best."
    figures = [Figure(values_chart(table), caption)]
    if len(result.sets) == 1:  # the first screen has the table, the summary what was moved
        return Section("Methods and runs", figures=figures, notes=text.what_varies(table))
    return Section(
        heading=f"Results on {table.samples.name}",
        table=results_table(table, result),
        figures=figures,
        notes=[*filter(None, [text.what_moved(table)]), *text.what_varies(table)],
    )


def _as_trained(table: ComparedSet, alone: bool) -> Section:
    """Methods × metrics of the scores as they are, in the order that they have under the target."""
    shown = [tables.Shown(m, m.name, m.short, is_as_trained=True) for m in table.metrics]
    rows: list[list[Cell]] = [
        [method.name, *(_printed(tables.cell_of(table, method, each)) for each in shown)]
        for method in table.methods
    ]
    columns = [Column("method"), *map(_column, shown)]
    caption = "The scores as they are, on the same samples; each class counts as the target says."
    return Section(
        heading=AS_TRAINED.capitalize() + ("" if alone else f" on {table.samples.name}"),
        table=Table(columns, rows, caption=caption),
        notes=[
            "What is noise is judged under the target only. Scores of which it is not known what "
            "they carry, and those that carry the target, are the same in both cells."
        ],
    )


def _noise(table: ComparedSet, alone: bool) -> Section:
    verdict = table.verdicts.get(table.by.key)
    if verdict is None or not verdict.others:
        return Section("What is noise", [text.headline(table)])
    caption = (
        f"Differences in {table.by.name} on the same samples. An interval that reaches zero leaves "
        "open which is better; it is as wide as the correction for all pairs asks."
    )
    return Section(
        heading="What is noise" if alone else f"What is noise on {table.samples.name}",
        # Of one set the summary has the headline.
        paragraphs=[*([] if alone else [text.headline(table)]), *text.what_would_tell(table)],
        table=_verdict_table(table),
        figures=[Figure(differences_chart(table), caption)],
        notes=[
            "What it would take to tell is rough: it takes the difference seen for the true one."
        ],
    )


def _verdict_table(table: ComparedSet) -> Table:
    tested = [metric for metric in table.metrics if metric.key in table.verdicts]
    rows = [[m.name, *(_said(table, m.name, metric) for metric in tested)] for m in table.methods]
    columns = [Column("method"), *(Column(metric.short) for metric in tested)]
    caption = "Behind the best of each column by so much; † cannot be told apart from it."
    return Table(columns, rows, caption)


def _said(table: ComparedSet, name: str, metric: Metric) -> str:
    verdict = table.verdicts[metric.key]
    if name == verdict.best:
        return "best"
    each = next((each for each in verdict.others if each.method == name), None)
    if each is None:
        return "–"
    gap = f"{metric.factor * each.behind:.{metric.digits}f}"
    return gap if each.told_apart else f"{gap}\u00a0†"


def _ranks(ranks: Ranks, by: Metric) -> Section:
    rows = sorted(ranks.mean.items(), key=lambda item: item[1])
    columns = [Column("method"), Column("average rank", best="low")]
    about = (
        f"By {by.name}, over {ranks.blocks} {ranks.over}, of the methods that are on all of them. "
        "So few sets do not say which method is better in general."
    )
    return Section("Ranks", [about], Table(columns, rows))


def _colors(lines: list[IntervalRow]) -> dict[int, str]:
    """What the colours of these lines mean; nothing where there is only one."""
    used = {line.style for line in lines}
    return {style: name for style, name in _COLORS.items() if style in used and len(lines) > 1}


def _style(table: ComparedSet, name: str) -> int:
    if table.by.key not in table.verdicts or name in table.best_by(table.by):
        return _BEST
    return _TIED if name in table.tied_by(table.by) else _BEHIND
