"""The page of a result: in a folder, or in a notebook."""

from __future__ import annotations

import os
from datetime import date
from html import escape
from importlib import import_module
from pathlib import Path

from longtail import __version__
from longtail.flows.results import Result, register_renderer
from longtail.report.page import Footer, Page, render_page, write_page

PAGE = "report.html"


def page_of(result: Result) -> Page:
    """The page of a result; that of kind "fix" is made by report/pages/fix.py, `fix_page`."""
    footer = Footer(__version__, date.today().isoformat(), result.command)
    pages = import_module(f"longtail.report.pages.{result.kind}")
    page: Page = getattr(pages, f"{result.kind}_page")(result, footer)
    return page


def save(result: Result, folder: str | os.PathLike[str]) -> Path:
    """Write the page of a result into a folder, which must exist, and return its path.

    Args:
        result: What a flow returned.
        folder: Where report.html goes.
    """
    return write_page(page_of(result), Path(folder) / PAGE)


def _in_a_frame(result: Result) -> str:
    """The page for a notebook, apart from what else the notebook shows."""
    html = escape(render_page(page_of(result)))
    return f'<iframe srcdoc="{html}" width="100%" height="800" style="border: 0"></iframe>'


register_renderer(_in_a_frame)
