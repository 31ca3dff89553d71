r"""A comparison as Markdown, and as LaTeX with the rules of booktabs."""

import re
from collections import Counter

from longtail.flows.compare import CompareResult
from longtail.flows.compare_sets import ComparedSet
from longtail.report.pages import compare_text as text
from longtail.report.pages.compare_cells import Cell, Shown, cells, columns

_MARKDOWN = str.maketrans({char: f"\\{char}" for char in "\\`*_[]<>|#~"} | {"\n": " ", "\r": " "})
_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': r"\textquotedbl{}",
    "±": r"$\pm$",
    "−": "$-$",
    "×": r"$\times$",
    "–": "--",
    "—": "---",
    "…": r"\ldots{}",
    "†": r"\dag{}",
    "→": r"$\to$",
    "∞": r"$\infty$",
    "α": r"$\alpha$",
    "β": r"$\beta$",
    "γ": r"$\gamma$",
    "δ": r"$\delta$",
    "λ": r"$\lambda$",
    "τ": r"$\tau$",
} | {char: f"\\{char}" for char in "&%$#_{}"}
_LATEX_TABLE = str.maketrans(_LATEX | {char: " " for char in "\n\r\t"})
_LATEX_HEAD = "% Made by longtail compare. Needs \\usepackage{booktabs}."


def markdown(result: CompareResult) -> str:
    """All tables with what has to be said under them."""
    parts = [_markdown_table(table, result) for table in result.sets]
    if result.ranks is not None:
        parts.append(f"{_for_markdown(text.average_ranks(result.ranks))}.")
    parts += [_for_markdown(note) for note in text.notes(result)]
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


def _markdown_cell(cell: Cell) -> str:
    value = f"**{cell.value}**" if cell.best else cell.value
    return value + (f" {cell.between}" if cell.between else "") + (" †" if cell.tied else "")


def _for_markdown(words: str) -> str:
    return words.translate(_MARKDOWN)


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
    caption = [
        text.caption(table, result),
        text.what_moved(table),
        marks if len(table.methods) > 1 else "",
        *text.intervals(table),
    ]
    lines = [
        *(f"% {' '.join(sentence.split())}" for sentence in text.judged(table)),
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
    return words.translate(_LATEX_TABLE)


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
