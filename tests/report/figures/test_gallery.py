"""The gallery shows every figure, as the script makes it."""

import importlib.util
import inspect
import re
from pathlib import Path
from xml.etree import ElementTree

import pytest

from longtail.report import figures

DOCS = Path(__file__).parents[3] / "docs"
PUBLIC = [name for name, thing in vars(figures).items() if inspect.isfunction(thing)]
REMAKE = "remake it: python docs/gallery/make.py"


@pytest.fixture(scope="module")
def script():
    spec = importlib.util.spec_from_file_location("gallery_make", DOCS / "gallery" / "make.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    with pytest.MonkeyPatch.context() as patch:  # as if it were run: beside what it imports
        patch.syspath_prepend(DOCS / "gallery")
        yield module


def skeleton(path):
    """What a drawing is made of and says, but for its numbers."""
    root = ElementTree.parse(path).getroot()
    kinds = {(item.tag, item.get("class")) for item in root.iter()}
    texts = {re.sub(r"[\d.,−]+", "#", text) for text in root.itertext()}
    return kinds, {text for text in texts if "samples" not in text and "#" not in text}


def test_every_figure_has_a_card(script):
    assert sorted(card.name for card in script.CARDS) == sorted(PUBLIC)


def test_the_page_is_what_the_script_writes(script):
    assert (DOCS / "gallery.md").read_text(encoding="utf-8") == script.page(), REMAKE


def test_every_card_shows_a_call_and_a_picture_that_is_there(script):
    for card in script.CARDS:
        assert card.call.startswith(f"figures.{card.name}("), card.name
        assert card.call.count("(") == card.call.count(")")
        assert card.says.endswith(".")
        assert (DOCS / "gallery" / f"{card.name}.svg").stat().st_size < 150_000
    pictures = {path.stem for path in (DOCS / "gallery").glob("*.svg")}
    assert pictures == set(PUBLIC), REMAKE


@pytest.mark.slow
def test_running_the_script_gives_the_pictures_that_are_there(script, tmp_path):
    pytest.importorskip("sklearn")
    script.make(tmp_path)
    for name in PUBLIC:
        made, there = (skeleton(at / "gallery" / f"{name}.svg") for at in (tmp_path, DOCS))
        assert made == there, f"{name} looks otherwise now; {REMAKE}"
