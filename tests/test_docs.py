"""The docs name every public loss, and say of each what it carries."""

import inspect
import re
from pathlib import Path

import pytest

from longtail import losses

CARDS = (Path(__file__).parents[1] / "docs" / "losses.md").read_text()
# What others are made of; `Deferred` is two losses, each with its own card.
ABSTRACT = ("Loss", "SampleLoss", "MarginLoss", "RegularizedLoss", "Regularizer", "Deferred")
METHODS = [
    name
    for name, thing in vars(losses).items()
    if inspect.isclass(thing)
    and issubclass(thing, losses.Loss | losses.Regularizer)
    and name not in ABSTRACT
]


@pytest.mark.parametrize("name", METHODS)
def test_a_loss_has_a_card_that_says_all_it_should(name):
    card = re.search(rf"^### {name}$(.*?)(?=^##|\Z)", CARDS, re.M | re.S)
    assert card, f"docs/losses.md has no card for {name}"
    for field in ("Paper", "Formula", "Carries", "Use it", "Cost"):
        assert f"- {field}: " in card[1], f"the card of {name} does not say {field}"
    assert ">>> " in card[1]


@pytest.mark.parametrize("name", METHODS)
def test_the_file_of_a_loss_says_what_it_carries(name):
    assert "Carries:" in (inspect.getmodule(getattr(losses, name)).__doc__ or "")


def test_every_card_is_of_a_loss_that_is_there():
    assert set(re.findall(r"^### (\w+)$", CARDS, re.M)) == set(METHODS)


def test_the_readme_says_what_the_commands_of_a_fresh_machine_need_do_and_take():
    root = Path(__file__).parents[1]
    rows = dict(re.findall(r"^\| `make (\w+)` \| (.*) \|$", (root / "README.md").read_text(), re.M))
    assert list(rows) == ["demo", "test"]
    for target, cells in rows.items():
        assert re.search(rf"^{target}:", (root / "Makefile").read_text(), re.M)
        assert len(cells.split(" | ")) == 3
        assert "minutes" in cells
