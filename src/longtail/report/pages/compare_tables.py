r"""A comparison as cells of text, as Markdown, and as LaTeX with the rules of booktabs."""

import re
from collections import Counter
from typing import NamedTuple

from longtail.flows.compare import CompareResult
from longtail.flows.compare_runs import Metric
from longtail.flows.compare_sets import ComparedSet, Estimate, Method
from longtail.flows.samples import AS_TRAINED, UNDER_TARGET
from longtail.plain_text import plain_text
from longtail.report.charts.scale import fixed
from longtail.report.pages import compare_text as text

_MARKDOWN = str.maketrans({char: f"\\{char}" for char in "\\`*_[]<>|#~"} | {"\n": " ", "\r": " "})
_NAMES = ("backslash", "asciitilde", "asciicircum", "less", "greater", "bar", "quotedbl")
_MATHS = ("pm", "times", "to", "infty", "alpha", "beta", "gamma", "delta", "lambda", "tau")
_LATEX = str.maketrans(
    {"−": "$-$", "–": "--", "—": "---", "…": r"\ldots{}", "†": r"\dag{}"}
    | {char: rf"\text{name}{{}}" for char, name in zip('\\~^<>|"', _NAMES, strict=True)}
    | {char: rf"$\{name}$" for char, name in zip("±×→∞αβγδλτ", _MATHS, strict=True)}
    | {char: f"\\{char}" for char in "&%$#_{}"}
    | dict.fromkeys("\n\r\t", " ")
)
_LATEX_HEAD = "% Made by longtail compare. Needs \\usepackage{booktabs}."


class Cell(NamedTuple):
    """A number ready to print."""

    value: str  # the mean
    between: str  # its interval: ± half of it, both ends where they are not equally far, or empty
    best: bool = False  # whether it is the best of its column
    tied: bool = False  # whether it cannot be told apart from the best


class Shown(NamedTuple):
    """A column of a table."""

    metric: Metric  # what is in it
    name: str  # what it is called
    short: str  # the same where there is little room
    is_as_trained: bool = False  # whether it is of the scores as they are, and not under the target

    @property
    def heading(self) -> str:
        """The name, the unit, and which way is good."""
        unit = " %" if self.metric.percent else ""
        return f"{self.name}{unit} {'↑' if self.metric.best == 'high' else '↓'}"


def columns(table: ComparedSet) -> list[Shown]:
    """From left to right; `cells` has a cell for each.

    Where scores were moved, the metric that orders the methods comes twice: as trained first.
    """
    shown = []
    for metric in table.metrics:
        name, short = metric.name, metric.short
        if table.has_moved and metric is table.by:
            shown.append(Shown(metric, f"{name}, {AS_TRAINED}", AS_TRAINED, is_as_trained=True))
            is_told = metric.key == "accuracy_under_target"
            name, short = name if is_told else f"{name}, {UNDER_TARGET}", UNDER_TARGET
        shown.append(Shown(metric, name, short))
    return shown


def cells(table: ComparedSet) -> list[list[Cell]]:
    """A row a method, a cell for each of `columns`."""
    shown = columns(table)
    return [[cell_of(table, method, column) for column in shown] for method in table.methods]


def number(value: float | None, metric: Metric) -> str:
    """A value as it is shown; a dash where there is none."""
    return "–" if value is None else fixed(metric.factor * value, metric.digits)


def interval(estimated: Estimate, metric: Metric) -> str:
    """± half of it, or both ends in brackets where it is not even; empty where there is none."""
    value, low, high = estimated.value, estimated.low, estimated.high
    if value is None or low is None or high is None:
        return ""
    even = {number(far, metric) for far in (estimated.below, estimated.above, estimated.reach)}
    if len(even) == 1:  # as far as digits are shown
        return f"± {even.pop()}"
    return f"[{number(low, metric)}, {number(high, metric)}]"


def cell_of(table: ComparedSet, method: Method, shown: Shown) -> Cell:
    """What a method has in a column."""
    metric = shown.metric
    estimates = method.as_trained if shown.is_as_trained else method.estimates
    estimated = estimates[metric.key]
    cell = Cell(number(estimated.value, metric), interval(estimated, metric))
    if shown.is_as_trained:  # never marked: methods are compared under the target
        return cell
    best, tied = table.best_by(metric), table.tied_by(metric)
    return cell._replace(best=method.name in best, tied=method.name in tied)


def markdown(result: CompareResult) -> str:
    """All tables with what has to be said under them."""
    parts = [_markdown_table(table, result) for table in result.sets]
    if result.ranks is not None:
        parts.append(f"{_for_markdown(text.average_ranks(result.ranks))}.")
    parts += map(_for_markdown, text.notes(result))
    return "\n\n".join(parts) + "\n"


def _markdown_table(table: ComparedSet, result: CompareResult) -> str:
    """One table: its caption, the rows, the verdict, and what the marks mean."""
    heads = ["method", "runs", *(shown.heading for shown in columns(table))]
    heads += ["rank"] if table.ranks is not None else []
    lines = [
        f"**{_for_markdown(text.caption(table, result))}**",
        "",
        f"| {' | '.join(heads)} |",
        f"|---|{'---:|' * (len(heads) - 1)}",
    ]
    for method, row in zip(table.methods, cells(table), strict=True):
        shown = [_for_markdown(method.name), str(len(method.runs)), *map(_markdown_cell, row)]
        shown += [] if table.ranks is None else [f"{table.ranks.mean[method.name]:.2f}"]
        lines.append(f"| {' | '.join(shown)} |")
    sentences = [text.headline(table), text.what_moved(table), text.legend(table)]
    sentences += text.what_varies(table)
    return "\n".join([*lines, *(f"\n{_for_markdown(each)}" for each in sentences if each)])


def _for_markdown(words: str) -> str:
    return plain_text(words).translate(_MARKDOWN)


def _markdown_cell(cell: Cell) -> str:
    value = f"**{cell.value}**" if cell.best else cell.value
    return value + (f" {cell.between}" if cell.between else "") + (" †" if cell.tied else "")


def latex(result: CompareResult) -> str:
    """All tables, each in an environment of its own with a caption and a label."""
    tables, labels = [], Counter[str]()
    for table in result.sets:
        label = re.sub(r"[^a-z0-9]+", "-", table.samples.name.lower()).strip("-") or "comparison"
        labels[label] += 1
        again = f"-{labels[label]}" if labels[label] > 1 else ""
        tables.append(_latex_table(table, result, label + again))
    return "\n\n".join([_LATEX_HEAD, *tables]) + "\n"


def _latex_table(table: ComparedSet, result: CompareResult, label: str) -> str:
    heads = ["Method", *map(_latex_heading, columns(table))]
    heads += ["Rank"] if table.ranks is not None else []
    marks = "Bold: best; underlined: cannot be told apart from it."
    about = text.caption(table, result), text.what_moved(table)
    caption = [*about, marks if len(table.methods) > 1 else "", *text.intervals(table)]
    lines = [
        *(f"% {plain_text(' '.join(sentence.split()))}" for sentence in text.judged(table)),
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{for_latex(' '.join(filter(None, caption)))}}}",
        rf"\label{{tab:{label}}}",
        rf"\begin{{tabular}}{{l{'r' * (len(heads) - 1)}}}",
        r"\toprule",
        rf"{' & '.join(heads)} \\",
        r"\midrule",
    ]
    for method, row in zip(table.methods, cells(table), strict=True):
        shown = [for_latex(method.name), *map(_latex_cell, row)]
        shown += [] if table.ranks is None else [f"{table.ranks.mean[method.name]:.2f}"]
        lines.append(rf"{' & '.join(shown)} \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"])


def for_latex(words: str) -> str:
    r"""Text in which LaTeX finds no command.

    >>> print(for_latex("LA_tau=1.5 & 50%"))
    LA\_tau=1.5 \& 50\%
    """
    return plain_text(words).translate(_LATEX)


def _latex_heading(shown: Shown) -> str:
    name = shown.name[:1].upper() + shown.name[1:]
    unit = r" (\%)" if shown.metric.percent else ""
    arrow = r" $\uparrow$" if shown.metric.best == "high" else r" $\downarrow$"
    return for_latex(name) + unit + arrow


def _latex_cell(cell: Cell) -> str:
    if cell.value == "–":
        return "--"
    value, between = (
        part.replace("±", r"\pm").replace("−", "-").replace("∞", r"\infty")
        for part in (cell.value, cell.between)
    )
    if cell.best:
        value = rf"\mathbf{{{value}}}"
    elif cell.tied:
        value = rf"\underline{{{value}}}"
    gap = r"\ " if between.startswith("[") else " "
    return f"${value}{gap}{between}$" if between else f"${value}$"
