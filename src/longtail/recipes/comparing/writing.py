"""The files of a comparison: report.html, table.md, table.tex and comparison.json."""

from __future__ import annotations

from datetime import date
from pathlib import Path

from longtail import __version__
from longtail.core.files import written_whole
from longtail.flows.json_text import json_text
from longtail.report import Footer, write_page
from longtail.report.comparison import Compared, comparison_page, latex, markdown

PAGE, MARKDOWN, LATEX, NUMBERS = "report.html", "table.md", "table.tex", "comparison.json"


def write_comparison(result: Compared, output: Path, command: str) -> tuple[str, ...]:
    """Write all files into the folder; their names."""
    footer = Footer(version=__version__, date=date.today().isoformat(), command=command)
    write_page(comparison_page(result, footer), output / PAGE)
    texts = {
        MARKDOWN: markdown(result),
        LATEX: latex(result),
        NUMBERS: json_text({"version": __version__, "command": command} | result.as_json()),
    }
    for name, text in texts.items():
        with written_whole(output / name) as part:
            part.write_text(text, encoding="utf-8", newline="\n")
    return PAGE, *texts
