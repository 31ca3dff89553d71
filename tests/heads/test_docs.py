"""The docs name every public head, and say of each what it carries."""

import inspect
import re
from pathlib import Path

import pytest

from longtail import heads

CARDS = (Path(__file__).parents[2] / "docs" / "heads.md").read_text()
HEADS = [
    name
    for name, thing in vars(heads).items()
    if inspect.isclass(thing)
    and issubclass(thing, heads.Head)
    and name not in ("Head", "LinearHead")
]


@pytest.mark.parametrize("name", HEADS)
def test_a_head_has_a_card_that_says_all_it_should(name):
    card = re.search(rf"^### {name}$(.*?)(?=^##|\Z)", CARDS, re.M | re.S)
    assert card, f"docs/heads.md has no card for {name}"
    for field in ("Paper", "Formula", "Carries", "Use it", "Fit"):
        assert f"- {field}: " in card[1], f"the card of {name} does not say {field}"
    assert ">>> " in card[1]


@pytest.mark.parametrize("name", HEADS)
def test_the_file_of_a_head_says_what_it_carries(name):
    assert "Carries:" in (inspect.getmodule(getattr(heads, name)).__doc__ or "")


@pytest.mark.parametrize("name", HEADS)
def test_a_head_shows_itself_at_work(name):
    assert ">>> " in (getattr(heads, name).__doc__ or "")


def test_every_card_is_of_a_head_that_is_there():
    assert set(re.findall(r"^### (\w+)$", CARDS, re.M)) == set(HEADS)
