"""The page of a run shows its recipe in words, not as Python writes it."""

from longtail.recipes.training.catalogue import RECIPES
from longtail.recipes.training.run_page import recipe_section


def test_the_recipe_is_told_in_words():
    rows = dict(recipe_section(RECIPES["cifar100-lt-ce-quick"]()).table.rows)
    assert rows["augment"].startswith("name crop, padding 4; name flip")
    assert rows["compile"] == "no"
    assert not any(sign in text for text in rows.values() for sign in "{}'")
