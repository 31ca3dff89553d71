"""A run that begins with the trained backbone of another one."""

import shutil

import pytest
import torch
from safetensors.torch import load_file

from flows.train.small_runs import small as small_recipe
from longtail.engine.training import StepEnd
from longtail.flows.train.model_file import load_model
from longtail.flows.train.reading import RecipeError, overridden
from longtail.flows.train.run_folder import check_folder
from longtail.flows.train.train import planned, train


def small(images, **values):
    data = {"kind": "npz", "path": str(images), "validation_share": 0}
    return small_recipe(images, data=data, **{"epochs": 1} | values)


@pytest.fixture(scope="module")
def first(images, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "first"
    train(small(images), folder)
    return folder


def backbone(folder):
    tensors = load_file(folder / "model.safetensors")
    return {key: tensors[key] for key in tensors if key.startswith("backbone.")}


def stop_in_the_second_epoch(event):
    if isinstance(event, StepEnd) and event.epoch == 2:  # the first one left a checkpoint
        raise KeyboardInterrupt


def test_it_begins_with_the_backbone_of_a_run_or_model_file_and_a_head_of_its_own(
    first, images, tmp_path
):
    # So slow that nothing moves: what it ends with is what it began with.
    still = {"optimizer": {"lr": 1e-12}, "head": "cosine"}
    for start in (first, first / "model.safetensors"):
        folder = tmp_path / start.stem
        train(small(images, start=str(start), **still), folder)
        ended, begun = backbone(folder), backbone(first)
        assert ended.keys() == begun.keys()
        for key, tensor in ended.items():
            torch.testing.assert_close(tensor, begun[key])
    fresh = tmp_path / "fresh"
    train(small(images, **still), fresh)
    assert any(not torch.allclose(t, backbone(first)[key]) for key, t in backbone(fresh).items())


def test_its_model_can_be_read_without_the_one_it_began_with(first, images, tmp_path):
    start = shutil.copytree(first, tmp_path / "start")
    train(small(images, start=str(start)), tmp_path / "run")
    shutil.rmtree(start)
    assert load_model(tmp_path / "run").recipe.start == str(start)


def test_interrupted_it_ends_as_one_that_was_not_and_the_start_may_be_a_copy(
    first, images, tmp_path
):
    here, there = shutil.copytree(first, tmp_path / "here"), tmp_path / "there"
    recipe = small(images, start=str(here), epochs=2)
    train(recipe, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        train(recipe, tmp_path / "broken", progress=stop_in_the_second_epoch)
    shutil.copytree(here, there)
    train(overridden(recipe, [f"start={there}"]), tmp_path / "broken")
    ours, theirs = (load_file(tmp_path / run / "model.safetensors") for run in ("whole", "broken"))
    assert all(torch.equal(ours[key], theirs[key]) for key in ours)


def test_a_run_does_not_go_on_from_another_start(first, images, tmp_path):
    start, run = shutil.copytree(first, tmp_path / "start"), tmp_path / "run"
    recipe = small(images, start=str(start), epochs=2)
    with pytest.raises(KeyboardInterrupt):
        train(recipe, run, progress=stop_in_the_second_epoch)
    other = tmp_path / "other"
    train(small(images, seed=1), other)
    for setting in (f"start={other}", "start=null"):
        with pytest.raises(RecipeError, match=r"another recipe.*start: "):
            check_folder(run, overridden(recipe, [setting]))
    # The same name with other weights in it.
    shutil.copy(other / "model.safetensors", start)
    with pytest.raises(RecipeError, match=r"another recipe.*start: "):
        train(recipe, run)


def test_a_finished_run_is_still_known_when_its_start_is_gone(first, images, tmp_path):
    start = shutil.copytree(first, tmp_path / "start")
    recipe = small(images, start=str(start))
    train(recipe, tmp_path / "run")
    shutil.rmtree(start)
    assert check_folder(tmp_path / "run", recipe)
    with pytest.raises(RecipeError, match="start: there is no model"):
        train(recipe, tmp_path / "run")


def test_a_start_that_is_not_there_or_does_not_fit_is_told_before_training(first, images, tmp_path):
    with pytest.raises(RecipeError, match=r"start: there is no model .*nowhere"):
        planned(small(images, start=str(tmp_path / "nowhere")))
    wider = {"name": "mlp", "inputs": 192, "hidden": [32]}
    with pytest.raises(RecipeError, match="does not hold the backbone of this recipe, mlp"):
        planned(small(images, start=str(first), backbone=wider))
    with pytest.raises(RecipeError, match="does not hold the backbone"):
        planned(small(images, start=str(first / "scores-test.safetensors")))
    with pytest.raises(RecipeError, match="no safetensors file"):
        planned(small(images, start=str(first / "log.csv")))
