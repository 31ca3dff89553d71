"""The docs: a card for every public loss, links that lead somewhere, one word for one thing."""

import inspect
import re
from pathlib import Path

import pytest

from longtail import losses

ROOT = Path(__file__).parents[1]
CARDS = (ROOT / "docs" / "losses.md").read_text()
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
# What the docs call by another word, and what to write.
OTHER_WORDS = {r"held[- _]out": "validation", r"imbalance[- _]factor": "imbalance ratio"}
# What others are made of; `Deferred` is two losses, each with its own card.
ABSTRACT = (
    "Loss",
    "SampleLoss",
    "MarginLoss",
    "RegularizedLoss",
    "Regularizer",
    "Deferred",
    "BinaryLoss",
)
METHODS = [
    name
    for name, thing in vars(losses).items()
    if inspect.isclass(thing)
    and issubclass(thing, losses.Loss | losses.BinaryLoss | losses.Regularizer)
    and name not in ABSTRACT
]
OF_A_LAYER = ["linear_cross_entropy", "SampledSoftmax"]  # which take its features and weight
METHODS += OF_A_LAYER


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
    rows = dict(re.findall(r"^\| `make (\w+)` \| (.*) \|$", (ROOT / "README.md").read_text(), re.M))
    assert list(rows) == ["demo", "test"]
    for target, cells in rows.items():
        assert re.search(rf"^{target}:", (ROOT / "Makefile").read_text(), re.M)
        assert len(cells.split(" | ")) == 3
        assert re.search(r"\d+ (s|minutes)\b", cells)


def anchors(page):
    """The anchors of a page's headings, as GitHub makes them."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(), re.M)
    return {re.sub(r"[^\w -]", "", heading).lower().replace(" ", "-") for heading in headings}


@pytest.mark.parametrize(
    "page", [*PAGES, *sorted((ROOT / "results").rglob("*.md"))], ids=lambda page: page.name
)
def test_every_link_leads_to_a_file_and_a_heading_that_are_there(page):
    for link in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if link.startswith(("http://", "https://", "mailto:")):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path) if path else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_calls_a_thing_by_its_one_word(page):
    for words, instead in OTHER_WORDS.items():
        used = re.findall(words, page.read_text())
        assert not used, f"{page.name} says {used[0]!r}; write {instead}"
