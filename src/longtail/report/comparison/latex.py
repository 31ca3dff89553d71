r"""A comparison as LaTeX: a table with booktabs' rules, the best bold, what is tied underlined."""

import re

from longtail.report.comparison.cells import Cell, Shown, cells, columns
from longtail.report.comparison.compared import Compared, ComparedSet
from longtail.report.comparison.words import caption, intervals, judged, what_moved

_SPECIAL = {
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
_TABLE = str.maketrans(_SPECIAL | {char: " " for char in "\n\r\t"})
_HEAD = "% Made by longtail compare. Needs \\usepackage{booktabs}."


def latex(result: Compared) -> str:
    """All tables, each in an environment of its own with a caption and a label."""
    tables = [latex_table(table, result.target) for table in result.sets]
    return "\n\n".join([_HEAD, *_distinct_labels(tables)]) + "\n"


def latex_table(table: ComparedSet, target: str) -> str:
    """One table environment."""
    heads = ["Method", *map(_heading, columns(table))]
    heads += ["Rank"] if table.ranks is not None else []
    lines = [
        *(f"% {' '.join(sentence.split())}" for sentence in judged(table)),
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{escaped(_caption(table, target))}}}",
        rf"\label{{tab:{_label(table.samples.name)}}}",
        rf"\begin{{tabular}}{{l{'r' * (len(heads) - 1)}}}",
        r"\toprule",
        rf"{' & '.join(heads)} \\",
        r"\midrule",
    ]
    for method, row in zip(table.methods, cells(table), strict=True):
        shown = [escaped(method.name), *map(_cell, row)]
        if table.ranks is not None:
            shown.append(f"{table.ranks.mean[method.name]:.2f}")
        lines.append(rf"{' & '.join(shown)} \\")
    return "\n".join([*lines, r"\bottomrule", r"\end{tabular}", r"\end{table}"])


def escaped(text: str) -> str:
    r"""Text in which LaTeX finds no command.

    >>> print(escaped("LA_tau=1.5 & 50%"))
    LA\_tau=1.5 \& 50\%
    """
    return text.translate(_TABLE)


def _caption(table: ComparedSet, target: str) -> str:
    marks = (
        "Bold: best; underlined: cannot be told apart from it." if len(table.methods) > 1 else ""
    )
    said = [caption(table, target), what_moved(table), marks, *intervals(table)]
    return " ".join(filter(None, said))


def _heading(shown: Shown) -> str:
    metric, name = shown.metric, shown.name[:1].upper() + shown.name[1:]
    unit = r" (\%)" if metric.percent else ""
    return escaped(name) + unit + (r" $\uparrow$" if metric.best == "high" else r" $\downarrow$")


def _cell(cell: Cell) -> str:
    if cell.value == "–":
        return "--"
    value = cell.value.replace("−", "-").replace("∞", r"\infty")
    if cell.best:
        value = rf"\mathbf{{{value}}}"
    elif cell.tied:
        value = rf"\underline{{{value}}}"
    between = cell.between.replace("±", r"\pm").replace("−", "-").replace("∞", r"\infty")
    gap = r"\ " if between.startswith("[") else " "
    return f"${value}{gap}{between}$" if between else f"${value}$"


def _label(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-") or "comparison"


def _distinct_labels(tables: list[str]) -> list[str]:
    """The tables with a number after a label that an earlier one has."""
    seen: dict[str, int] = {}
    made = []
    for table in tables:
        label = re.search(r"\\label\{([^}]*)\}", table)
        name = label[1] if label else ""
        seen[name] = seen.get(name, 0) + 1
        again = f"{name}-{seen[name]}" if seen[name] > 1 else name
        made.append(table.replace(rf"\label{{{name}}}", rf"\label{{{again}}}", 1))
    return made
