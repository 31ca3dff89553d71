"""A comparison as Markdown."""

from longtail.report.comparison.cells import Cell, cells, columns, heading
from longtail.report.comparison.compared import Compared, ComparedSet
from longtail.report.comparison.words import (
    caption,
    headline,
    legend,
    notes,
    what_moved,
    what_varies,
)

_SPECIAL = str.maketrans({char: f"\\{char}" for char in "\\`*_[]<>|#~"} | {"\n": " ", "\r": " "})


def markdown(result: Compared) -> str:
    """All tables with what has to be said under them."""
    parts = [markdown_table(table, result.target) for table in result.sets]
    if result.ranks is not None:
        ranks = sorted(result.ranks.mean.items(), key=lambda item: item[1])
        said = ", ".join(f"{_escaped(name)} {rank:.2f}" for name, rank in ranks)
        parts.append(f"Average rank over {result.ranks.over}: {said}.")
    parts += [_escaped(note) for note in notes(result)]
    return "\n\n".join(parts) + "\n"


def markdown_table(table: ComparedSet, target: str) -> str:
    """One table: its caption, the rows, the verdict, and what the marks mean."""
    heads = ["method", "runs", *map(heading, columns(table))]
    if table.ranks is not None:
        heads.append("rank")
    lines = [
        f"**{_escaped(caption(table, target))}**",
        "",
        f"| {' | '.join(heads)} |",
        f"|---|{'---:|' * (len(heads) - 1)}",
    ]
    for method, row in zip(table.methods, cells(table), strict=True):
        shown = [_escaped(method.name), str(len(method.runs)), *map(_cell, row)]
        if table.ranks is not None:
            shown.append(f"{table.ranks.mean[method.name]:.2f}")
        lines.append(f"| {' | '.join(shown)} |")
    said = [headline(table), what_moved(table), legend(table), *what_varies(table)]
    lines += [f"\n{_escaped(sentence)}" for sentence in said if sentence]
    return "\n".join(lines)


def _cell(cell: Cell) -> str:
    value = f"**{cell.value}**" if cell.best else cell.value
    return value + (f" {cell.between}" if cell.between else "") + (" †" if cell.tied else "")


def _escaped(text: str) -> str:
    return text.translate(_SPECIAL)
