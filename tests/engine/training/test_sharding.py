"""A model that is shared out over processes learns, stops and goes on as one that is not."""

import os
import sys

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import longtail as lt
from engine.training.sharded import (
    CURVES,
    HEADS,
    SETTINGS,
    both_ways,
    refused,
    run_in_parts,
    sharded_curves,
    sizes,
    stopped_by_a_full_disk,
    the_rest_of_ddp,
    whole_run,
)
from engine.training.test_several_processes import together
from engine.training.tiny import (
    CLASSES,
    curve,
    first_steps,
    flat_model,
    images,
    quick,
    quick_train,
)
from longtail.engine.backbones import Backbone
from longtail.engine.training import Model, TrainingOptions
from longtail.engine.training.checkpoint import read_checkpoint
from longtail.engine.training.sharding import blocks
from longtail.flows.train.building import build_options
from longtail.flows.train.reading import RecipeError, overridden
from longtail.recipes.catalogue import read_recipe


def said(found):
    return bytes(found["said"].tolist()).decode()


@pytest.fixture(scope="module")
def on_two(tmp_path_factory):
    return together(tmp_path_factory.mktemp("curves"), sharded_curves)


@pytest.fixture(scope="module")
def compared(tmp_path_factory):
    return together(tmp_path_factory.mktemp("compared"), both_ways)


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    return together(tmp_path_factory.mktemp("unbroken"), whole_run)


@pytest.mark.parametrize("name", CURVES)
def test_two_shards_on_half_batches_take_the_steps_of_one_model_on_whole_batches(name, on_two):
    losses, weights = curve(name)
    assert len(losses) == 20
    assert losses[10:].mean() < losses[:10].mean()  # something was learned
    assert_close(on_two[0][f"{name}.losses"], losses, atol=1e-5, rtol=0)
    for found in on_two:
        for key, value in weights.items():
            assert_close(found[f"{name}.{key}"], value, atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", [*HEADS, *SETTINGS])
def test_fsdp_learns_what_ddp_learns(name, compared):
    first, second = compared
    keys = [key for key in first if key.startswith(f"{name}.ddp.")]
    assert len(keys) > 10
    for key in keys:
        sharded = key.replace(".ddp.", ".fsdp.")
        assert_close(first[sharded], first[key], atol=1e-5, rtol=1e-5)
        assert torch.equal(second[sharded], first[sharded])


def test_every_process_keeps_its_part_alone(tmp_path):
    whole = sum(p.numel() for p in flat_model().parameters())
    for found in together(tmp_path, sizes):
        assert {name: int(number) for name, number in found.items()} == dict.fromkeys(
            ("weights", "gradients", "momenta", "averages"), whole // 2
        )


def test_a_sharded_run_that_stopped_goes_on_to_the_same_bits(unbroken, tmp_path):
    parts = together(tmp_path, run_in_parts, str(tmp_path / "run"))
    for key, value in unbroken[0].items():
        assert torch.equal(unbroken[1][key], value)
        assert torch.equal(parts[0][key], value), key
        assert torch.equal(parts[1][key], value), key
    kept = {path.name for path in (tmp_path / "run" / "checkpoint").iterdir()}
    assert kept == {"state.json", "epoch-2-step-0.safetensors", "epoch-2-step-0"}
    assert len(list((tmp_path / "run" / "checkpoint" / "epoch-2-step-0").iterdir())) == 2


def test_a_disk_that_is_full_for_one_process_stops_all_and_leaves_the_checkpoint_before(
    unbroken, tmp_path
):
    for found in together(tmp_path, stopped_by_a_full_disk, str(tmp_path / "run")):
        assert "epoch-1-step-0 could not be written (No space left" in said(found)
        assert "the one before is intact" in said(found)
    place = tmp_path / "run" / "checkpoint"
    state = read_checkpoint(place).state
    assert (state["epoch"], state["step"]) == (0, 4)
    names = {"state.json", "epoch-0-step-4.safetensors", "epoch-0-step-4"}
    assert {path.name for path in place.iterdir()} == names
    (tmp_path / "store").unlink()
    left = place / "epoch-2-step-0"  # by a run that was killed while it wrote
    left.mkdir()
    (left / "shard-00003-model-00001-of-00001.safetensors").write_text("half")
    for found in together(tmp_path, whole_run, str(tmp_path / "run")):
        for key, value in unbroken[0].items():
            assert torch.equal(found[key], value), key
    assert len(list(left.iterdir())) == 2


def test_one_process_or_ddp_goes_on_with_what_shards_began_and_they_with_what_ddp_began(tmp_path):
    expected = curve("LADE")[1]
    together(tmp_path / "sharded", first_steps, str(tmp_path / "run"), "fsdp")
    losses, weights = curve("LADE", run=str(tmp_path / "run"))
    assert len(losses) == 7
    together(tmp_path / "ddp", first_steps, str(tmp_path / "other"), "ddp")
    (found, _) = together(tmp_path / "rest", the_rest_of_ddp, str(tmp_path / "other"))
    for key, value in expected.items():
        assert_close(weights[key], value, atol=1e-5, rtol=1e-5)
        assert_close(found[key], value, atol=1e-5, rtol=1e-5)


def test_a_checkpoint_without_one_of_its_parts_is_refused_by_its_name(tmp_path):
    folder = tmp_path / "run"
    together(tmp_path / "begun", first_steps, str(folder), "fsdp")
    part = next((folder / "checkpoint" / "epoch-1-step-3").glob("shard-00002*"))
    os.truncate(part, 100)
    for found in together(tmp_path / "damaged", refused, str(folder)):
        assert "epoch-1-step-3 are missing or damaged" in said(found)
    part.unlink()
    with pytest.raises(ValueError, match="epoch-1-step-3 are missing or damaged"):
        curve("LADE", run=str(folder))


def test_one_process_has_nothing_to_share_out():
    nets = []
    for parallel in ("ddp", "fsdp"):
        net = flat_model()
        quick_train(net, images(), options=quick(parallel=parallel))
        nets.append(net.state_dict())
    for key, value in nets[0].items():
        assert torch.equal(nets[1][key], value)


class Twice(Backbone):
    def __init__(self):
        super().__init__(16)
        first, second = nn.Linear(16, 16), nn.Linear(16, 16)
        second.weight = first.weight
        self.layers = nn.Sequential(nn.Flatten(), nn.Linear(192, 16), first, second)

    def forward(self, inputs):
        return self.layers(inputs)


def test_a_torch_that_cannot_write_parts_of_tensors_is_refused_at_the_door(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.distributed.checkpoint.hf_storage", None)
    with pytest.raises(ValueError, match="newer torch"):
        quick_train(flat_model(), images(), options=quick(parallel="fsdp"))


def test_a_recipe_says_how_processes_share_the_network_and_refuses_what_they_cannot():
    recipe = overridden(read_recipe("cifar10-lt-la-quick"), ["parallel=fsdp"])
    assert build_options(recipe).parallel == "fsdp"
    with pytest.raises(RecipeError, match="parallel=ddp"):
        overridden(recipe, ["loss=estimated_offset", "head=estimated_offset"])
    with pytest.raises(RecipeError, match="learns a single number"):
        overridden(recipe, ["head=cosine", "head.learn_scale=true"])
    with pytest.raises(RecipeError, match="take one of ddp, fsdp"):
        overridden(recipe, ["parallel=zero"])


def test_what_cannot_be_shared_out_is_refused_at_the_door():
    data, options = images(), quick(parallel="fsdp")
    head = lt.heads.EstimatedOffset(16, CLASSES)
    loss = lt.losses.EstimatedOffset(data.counts, head=head)
    beside = lt.losses.LossWithTerms(loss, [(lt.losses.SpreadOut(), 0.1)])
    for each in (loss, beside):
        with pytest.raises(ValueError, match=r"EstimatedOffset .*ddp"):
            quick_train(Model(flat_model().backbone, head), data, each, options)
    scaled = Model(flat_model().backbone, lt.heads.Cosine(16, CLASSES, learn_scale=True))
    with pytest.raises(ValueError, match=r"head\.scale: a single number"):
        quick_train(scaled, data, options=options)
    with pytest.raises(ValueError, match="share parameters"):
        quick_train(Model(Twice(), lt.heads.Linear(16, CLASSES)), data, options=options)
    with pytest.raises(ValueError, match=r"parallel .*'zero'"):
        TrainingOptions(epochs=1, parallel="zero")


def test_blocks_are_large_members_of_sequences_however_deep_and_nothing_within_them():
    net, block = Twice(), nn.Module()
    block.convs = nn.Sequential(nn.Linear(400, 400))
    inner = nn.Sequential(nn.Linear(400, 400), nn.ReLU(), nn.Linear(2, 2))
    net.stem, net.stages = nn.Linear(400, 400), nn.Sequential(inner, nn.ModuleList([block]))
    assert blocks(Model(net, lt.heads.Linear(16, CLASSES))) == [inner[0], block]
    large = Model(net, lt.heads.Linear(16, 10000))
    assert blocks(large) == [inner[0], block, large.head]
