"""The page of a result: which function makes it, where it is written, how a notebook shows it."""

import os
from collections.abc import Callable, Mapping
from datetime import date
from html import escape
from pathlib import Path

from longtail import __version__
from longtail.flows.file_names import PAGE
from longtail.flows.generation import added
from longtail.flows.results import Result, register_renderer
from longtail.report.page import Footer, Page, render_page, write_page
from longtail.report.pages.audit import audit_page
from longtail.report.pages.compare import compare_page
from longtail.report.pages.demo import demo_page
from longtail.report.pages.fit import fit_page
from longtail.report.pages.fix import fix_page
from longtail.report.pages.reproduce import reproduce_page
from longtail.report.pages.scores import scores_page
from longtail.report.pages.sweep import sweep_page
from longtail.report.pages.train import train_page

_PAGES: Mapping[str, Callable[..., Page]] = {
    "audit": audit_page,
    "compare": compare_page,
    "demo": demo_page,
    "fit": fit_page,
    "fix": fix_page,
    "reproduce": reproduce_page,
    "scores": scores_page,
    "sweep": sweep_page,
    "train": train_page,
}


def page_of(result: Result) -> Page:
    """The page of a result, with today's date in its footer."""
    footer = Footer(__version__, date.today().isoformat(), result.command)
    return _PAGES[result.kind](result, footer)


def save(result: Result, folder: str | os.PathLike[str]) -> Path:
    """Write the page of a result into a folder, beside its other files, and return its path.

    The folder is made if it is not there; one with files of another command is refused.
    """
    with added(Path(folder), result.folder_kind) as here:
        write_page(page_of(result), here / PAGE)
    return Path(folder) / PAGE


def _in_a_frame(result: Result) -> str:
    """The page for a notebook, apart from what else the notebook shows."""
    html = escape(render_page(page_of(result)))
    return f'<iframe srcdoc="{html}" width="100%" height="800" style="border: 0"></iframe>'


register_renderer(_in_a_frame)
