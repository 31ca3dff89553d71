"""The page of a run: its recipe in words, and the accuracy that was asked for first."""

from pathlib import Path

import pytest
import torch

from longtail import Prior, Scores
from longtail.engine.training import Trained
from longtail.flows.samples import AS_TRAINED, UNDER_TARGET
from longtail.flows.train.model_file import StoredModel
from longtail.flows.train.reading import plain, recipe_from
from longtail.flows.train.result import TrainResult
from longtail.flows.train.train import train
from longtail.flows.train.variants import Variant
from longtail.recipes.catalogue import named_recipe
from longtail.report import Footer, render_page
from longtail.report.pages.train import _recipe, headline, metric_table, train_page


def test_the_recipe_is_told_in_words():
    recipe = _recipe(plain(named_recipe("cifar100-lt-ce-quick")))
    rows = dict(recipe.table.rows)
    assert rows["augment"].startswith("name crop, padding 4; name flip")
    assert rows["compile"] == "no"
    assert not any(sign in text for text in rows.values() for sign in "{}'")


@pytest.mark.parametrize(
    ("weights", "first", "said"),
    [
        ([1, 1, 1], ["balanced accuracy"], "Balanced accuracy on the test part"),
        (
            [6, 3, 1],
            ["accuracy under the target", "balanced accuracy"],
            "Accuracy under the target on the test part",
        ),
    ],
)
def test_the_accuracy_under_the_target_asked_for_is_the_first_column(weights, first, said):
    counts, target = torch.tensor([300, 60, 8]), Prior.of(weights)
    labels = torch.arange(90) % 3
    drawn = torch.randn(90, 3, generator=torch.Generator().manual_seed(0))
    scores = Scores(drawn + torch.eye(3)[labels], labels, carried=counts, counts=counts)
    variants = (
        Variant(AS_TRAINED, {"test": scores}),
        Variant(UNDER_TARGET, {"test": scores.under(target)}, tau=1.0),
    )
    recipe = named_recipe("cifar100-lt-ce-quick")
    trained = Trained(Prior.of(counts), best_epoch=None, history=[], finished=True)
    result = TrainResult(
        model=StoredModel(None, recipe, ("a", "b", "c"), (300, 60, 8), None),
        folder=Path("run"),
        target=target,
        trained=trained,
        variants=variants,
        command="longtail train",
    )
    heads, *rows = metric_table(result, "test")
    assert heads[1 : len(first) + 2] == [*first, "many"]
    key = "balanced_accuracy" if len(first) == 1 else "accuracy_under_target"
    value = f"{100 * result.metrics['test'][UNDER_TARGET][key].value:.1f} ["
    assert rows[1][1].startswith(value)
    assert f"{said}, under the target: {value}" in headline(result)


def test_a_tau_that_the_validation_part_does_not_determine_is_said_to_be_held_near_one(
    images, tmp_path
):
    recipe = recipe_from(
        {
            "data": {"kind": "npz", "path": str(images), "validation_share": 0.1},
            "backbone": {"name": "mlp", "inputs": 192, "hidden": [8]},
            "optimizer": {"lr": 0.02},
            "epochs": 1,
            "target": {"tau": "auto", "prior": [61, 30, 12, 6]},  # near what is carried
        }
    )
    run = train(recipe, tmp_path / "run")
    moved = next(variant for variant in run.variants if variant.choice is not None)
    assert not moved.choice.is_determined
    assert moved.tau == pytest.approx(1, abs=0.2)
    assert "it was held near 1" in render_page(train_page(run, Footer("0", "d", "c")))


def test_the_page_shows_what_the_network_makes_of_its_classes(images, tmp_path):
    values = {
        "data": {"kind": "npz", "path": str(images), "validation_share": 0.2},
        "backbone": {"name": "mlp", "inputs": 192, "hidden": [16]},
        "epochs": 1,
    }
    result = train(values, tmp_path / "linear")
    made = result.class_values
    scores = {name: result.variants[k].scores["test"] for k, name in enumerate(made)}
    assert list(made) == [AS_TRAINED, UNDER_TARGET]
    for name, each in scores.items():
        means = each.probs().double().mean(0)
        assert made[name]["mean_probability"] == pytest.approx(means.numpy(), rel=1e-4)
    own = scores[UNDER_TARGET].logits[scores[UNDER_TARGET].labels == 1][:, 1]
    assert made[UNDER_TARGET]["class_logits"][0, 1] == pytest.approx(own.mean().item(), rel=1e-4)
    bias = result.model.model.head.bias.detach()
    assert made[AS_TRAINED]["bias"] == pytest.approx(bias.double().numpy())
    page = render_page(train_page(result, Footer("0", "2026-01-01", "longtail train")))
    for words in ("LADE figure 2", "LADE figure 3", "EO figure 1", "training prior"):
        assert words in page

    cosine = train(values | {"head": "cosine"}, tmp_path / "cosine")
    assert "bias" not in cosine.class_values[AS_TRAINED]
    page = render_page(train_page(cosine, Footer("0", "2026-01-01", "longtail train")))
    assert "EO figure 1" not in page
