"""A real browser on a report: Debian's chromium, driven by Playwright, where both are there."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from longtail.report import Footer, scores_page, write_page
from longtail.report.pages.compare import compare_page
from report_pages import NAMES, compared, fitted, judged


@pytest.fixture(scope="session")
def page_files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Scores with plain and with hostile names, and a comparison of methods named so."""
    folder = tmp_path_factory.mktemp("pages")
    footer = Footer("0.1.0", "2026-01-01", "longtail report")
    pages = {
        name: scores_page(judged(names), footer, title="longtail report")
        for name, names in (("plain", ()), ("hostile", NAMES))
    }
    pages["fitted"] = scores_page(fitted(), footer, title="longtail fix")
    pages["comparison"] = compare_page(compared(), footer)
    return {name: write_page(page, folder / f"{name}.html") for name, page in pages.items()}


@pytest.fixture(scope="session")
def browser() -> Iterator[object]:
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed")
    path = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("google-chrome")
    if path is None:
        pytest.skip("there is no chromium to open the page with")
    with api.sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield launched
        launched.close()
