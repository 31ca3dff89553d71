"""The catalogue: every recipe is whole, says where it is from, and has its paper's numbers."""

import json
import tomllib
from pathlib import Path

import pytest

from longtail.core import shot_groups
from longtail.flows.train import building, parts
from longtail.flows.train.reading import RecipeError, overridden, plain, recipe_from
from longtail.flows.train.run_folder import start_file
from longtail.recipes import catalogue
from longtail.recipes.catalogue import RECIPES, named_recipe

_EO_SETS = ("imagenet-lt", "places-lt", "sun397")


@pytest.mark.parametrize("name", RECIPES)
def test_a_recipe_is_whole_and_says_where_it_is_from(name):
    recipe = named_recipe(name)
    assert recipe_from(plain(recipe)) == recipe
    assert recipe.about.endswith(".")
    assert recipe.source
    assert "  " not in recipe.about + recipe.source


@pytest.mark.parametrize("name", RECIPES)
def test_what_a_recipe_names_can_be_built(name):
    recipe = named_recipe(name)
    options = building.build_options(recipe)
    factors = [options.schedule(epoch) for epoch in range(recipe.epochs)]
    assert 0 < max(factors) <= 1
    assert min(factors) >= 0
    building.build_augment(recipe)
    if recipe.backbone.tag not in ("torchvision", "timm"):
        assert building.build_backbone(recipe.backbone).dim in (64, 128, 192)


def test_names_stand_once_and_every_setting_is_taken_up():
    tables = [
        tomllib.loads(file.read_text(encoding="utf-8"))
        for file in Path(catalogue.__file__).parent.glob("*.toml")
    ]
    settings = [table.pop("settings", {}) for table in tables]
    named = [name for table in tables for name in table]
    shared = [name for table in settings for name in table]
    assert sorted(named) == list(RECIPES)
    assert len(shared) == len(set(shared))
    users = [values for table in (*tables, *settings) for values in table.values()]
    assert {name for values in users for name in values.get("base", ())} == set(shared)


def test_lade_has_the_numbers_of_its_table_7():
    found = {
        name: (recipe.loss.lam, recipe.loss.alpha, recipe.batch_size)
        for name in RECIPES
        if (recipe := named_recipe(name)).loss.tag == "lade" and not name.endswith("quick")
    }
    assert found == {
        "cifar100-lt10-lade": (0.01, 0.01, 256),
        "cifar100-lt50-lade": (0.01, 0.01, 256),
        "cifar100-lt-lade": (0.01, 0.1, 256),
        "places-lt-lade": (0.1, 0.005, 128),
        "imagenet-lt-lade": (0.5, 0.05, 256),
        "inaturalist-lade": (0.5, 0.05, 256),
    }


ELM = parts.LOSSES["elm"]


def test_elm_has_the_margins_of_its_appendix_and_the_setting_of_its_table_3():
    found = {name: named_recipe(name) for name in RECIPES if name.endswith("-elm")}
    assert {name: recipe.loss for name, recipe in found.items()} == {
        "cifar10-lt-elm": ELM(lam=0.01, margins="prior"),
        "cifar100-lt-elm": ELM(lam=0.01, margins="sqrt_count"),
        "imagenet-lt-elm": ELM(lam=0.001, margins="sqrt_prior", scale=10.0),
        "inaturalist-elm": ELM(lam=0.01, margins="sqrt_count"),
    }
    table = {
        name: (r.optimizer.lr, r.epochs, r.batch_size, r.optimizer.weight_decay)
        for name, r in found.items()
    }
    assert table == {
        "cifar10-lt-elm": (0.4, 256, 128, 1e-4),
        "cifar100-lt-elm": (0.4, 256, 128, 1e-4),
        "imagenet-lt-elm": (0.4, 90, 512, 5e-4),
        "inaturalist-elm": (0.4, 90, 1024, 1e-4),
    }


def test_the_rates_are_those_that_the_papers_print():
    lade = building.build_schedule(named_recipe("cifar100-lt-lade"))
    rates = [0.2 * lade(epoch) for epoch in (0, 4, 119, 120, 160)]
    assert rates == pytest.approx([0.0933, 0.2, 0.2, 0.002, 0.00002], rel=1e-3)
    elm = building.build_schedule(named_recipe("cifar100-lt-elm"))
    assert [elm(epoch) for epoch in (14, 95, 96, 192, 224)] == pytest.approx(
        [1, 1, 0.1, 0.01, 0.001]
    )


def test_the_peak_of_a_quick_recipe_moves_with_its_epochs():
    quick = named_recipe("cifar100-lt-la-quick")
    whole = building.build_schedule(quick)
    assert (whole(0), whole(10), whole(40)) == (0.1, 1.0, 0.0)
    short = building.build_schedule(overridden(quick, ["epochs=2"]))
    assert short.stretched(10)(5) == 1.0
    later = building.build_schedule(overridden(quick, ["schedule.peak=20"]))
    assert later(20) == 1.0


def test_the_others_have_the_numbers_of_their_papers_or_of_released_code():
    def numbers(name):
        r = named_recipe(name)
        return r.optimizer.lr, r.optimizer.weight_decay, r.epochs, r.batch_size

    for loss in ("ce", "adjusted", "adjusted-adaptive"):
        assert numbers(f"cifar10-lt-la-{loss}") == (0.1, 2e-4, 1241, 128)
        assert numbers(f"cifar100-lt-la-{loss}") == (0.1, 2e-4, 1419, 128)
    assert numbers("cifar100-lt-ldam-drw") == (0.1, 2e-4, 200, 128)
    assert numbers("cifar100-lt-experts") == (0.1, 5e-4, 200, 128)
    assert numbers("imagenet-lt-lade") == (0.05, 5e-4, 180, 256)
    assert numbers("inaturalist-lade") == (0.1, 5e-4, 200, 256)
    assert numbers("imagenet-lt-eo") == numbers("imagenet-lt-ncm") == (0.2, 5e-4, 90, 512)
    for name, images, epochs in (("cifar10-lt-ncm", 12406, 520), ("cifar100-lt-ncm", 10847, 591)):
        assert numbers(name) == (0.1, 5e-4, epochs, 512)
        assert epochs * -(-images // 512) == pytest.approx(13_000, abs=13)
    places = named_recipe("places-lt-lade").optimizer
    assert (places.lr, places.head_lr) == (0.001, 0.05)


def test_the_quick_recipes_of_eo_average_the_centre_term_and_one_must_be_told_its_start():
    for name in ("cifar100-lt-eo-quick", "cifar100-lt-eo-start-quick"):
        assert named_recipe(name).loss.center_squares == "mean"
    assert named_recipe("cifar100-lt-eo-quick").start is None
    assert {named_recipe(f"{data}-eo").loss.center_squares for data in _EO_SETS} == {"sum"}
    with pytest.raises(RecipeError, match="start: there is no model RUN"):
        start_file(named_recipe("cifar100-lt-eo-start-quick"))


def test_nothing_is_held_out_of_what_papers_train_on_but_of_quick_recipes():
    for name in RECIPES:
        data = named_recipe(name).data
        has_validation = getattr(data, "validation", None) is not None
        assert has_validation or (data.validation_share > 0) == name.endswith("-quick"), name


def test_a_wrong_name_is_answered_with_the_nearest():
    with pytest.raises(RecipeError, match=r"did you mean .*cifar100-lt-la-quick"):
        named_recipe("cifar100-la-quick")


def test_the_recipes_of_la_elm_and_ncm_count_a_class_of_100_as_many():
    of_papers = [name for name in RECIPES if {"la", "elm", "ncm"} & set(name.split("-"))]
    full = [name for name in of_papers if not name.endswith("-quick")]
    assert len(full) > 10
    assert {named_recipe(name).groups for name in full} == {"many=100,few=20,inclusive"}
    assert named_recipe("cifar100-lt-lade").groups == "many=100,few=20"


def test_ncm_has_the_groups_of_its_table_4():
    # Training images of each class of ImageNet-LT (Liu et al., CVPR 2019).
    counts = json.loads((Path(__file__).parent / "imagenet_lt_counts.json").read_text())
    groups = shot_groups(counts, named_recipe("imagenet-lt-ncm").groups)
    assert sum(counts) == 115_846
    assert [int(mask.sum()) for mask in groups.values()] == [391, 473, 136]


def test_edges_that_are_none_are_refused_with_the_recipe():
    with pytest.raises(RecipeError, match="many=100,few=20,inclusive"):
        overridden(named_recipe("cifar100-lt-ncm"), ["groups=most=5"])
    changed = overridden(named_recipe("cifar100-lt-ncm"), ["groups=many=50,few=5"])
    assert changed.groups == "many=50,few=5"
