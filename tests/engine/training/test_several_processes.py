"""k processes on parts of the batches do what one process does on the whole ones."""

import multiprocessing
import threading
import weakref
from datetime import timedelta

import pytest
import torch
import torch.distributed as dist
from safetensors.torch import load_file
from torch.testing import assert_close

from engine.training.tiny import (
    IN_PIECES,
    LOSSES,
    NORMALIZE,
    curve,
    curves,
    first_steps,
    images,
    in_group,
    model,
    predictions,
    run_in_parts,
    steps_in_folders_apart,
    whole_run,
)
from longtail.engine.training import predict, processes
from longtail.engine.training.process_group import agreed_name, close_group

SERVER = multiprocessing.get_context("forkserver")
SERVER.set_forkserver_preload(
    ["longtail.engine.training", "torch._dynamo", "torch.distributed.fsdp"]
)


def together(folder, work, *arguments, number=2):
    """What each process ends with."""
    folder.mkdir(exist_ok=True)
    team = [
        SERVER.Process(target=in_group, args=(rank, number, str(folder), work, *arguments))
        for rank in range(number)
    ]
    for process in team:
        process.start()
    for process in team:
        process.join()
    assert [process.exitcode for process in team] == [0] * number
    return [load_file(folder / f"rank{rank}.safetensors") for rank in range(number)]


@pytest.fixture(scope="module")
def on_two(tmp_path_factory):
    return together(tmp_path_factory.mktemp("curves"), curves)


@pytest.mark.parametrize("name", LOSSES)
def test_two_processes_on_half_batches_take_the_steps_of_one_on_whole_batches(name, on_two):
    losses, weights = curve(name)
    assert len(losses) == 20
    assert losses[10:].mean() < losses[:10].mean()  # something was learned
    for found in on_two:
        for key, value in weights.items():
            assert_close(found[f"{name}.{key}"], value, atol=1e-5, rtol=1e-5)
    if name in ("LADE", "ELM"):  # others speak of the part of their process
        assert_close(on_two[0][f"{name}.losses"], losses, atol=1e-5, rtol=0)


@pytest.mark.parametrize("name", IN_PIECES)
def test_two_processes_that_take_their_batches_in_pieces_do_too(name, on_two):
    _, weights = curve(name)
    for key, value in weights.items():
        assert_close(on_two[1][f"{name} in pieces.{key}"], value, atol=1e-5, rtol=1e-5)


def test_predictions_come_in_order_and_once_on_all_processes(tmp_path):
    net, data = model(), images(11)
    expected = predict(net, data, NORMALIZE)
    for found in together(tmp_path, predictions, number=3):
        assert_close(found["logits"], expected.logits)
        assert_close(found["features"], expected.features)
        assert_close(found["one"], expected.logits[10:])


def test_two_processes_that_stopped_go_on_to_the_same_bits(tmp_path):
    whole = together(tmp_path / "whole", whole_run)
    parts = together(tmp_path / "parts", run_in_parts, str(tmp_path / "run"))
    for key, value in whole[0].items():
        assert torch.equal(whole[1][key], value)
        assert torch.equal(parts[0][key], value), key
        assert torch.equal(parts[1][key], value), key


def test_another_number_of_processes_goes_on_with_the_same_steps(tmp_path):
    folder = str(tmp_path / "run")
    together(tmp_path, first_steps, folder)
    losses, weights = curve("LADE", run=folder)
    assert len(losses) == 7
    for key, value in curve("LADE")[1].items():
        assert_close(weights[key], value, atol=1e-5, rtol=1e-5)


def test_a_folder_that_is_not_shared_is_refused_when_the_run_goes_on(tmp_path):
    for found in together(tmp_path, steps_in_folders_apart, str(tmp_path)):
        said = bytes(found["said"].tolist()).decode()
        assert "found different checkpoints" in said
        assert "[[0, 3], [0, 0]]" in said


def test_without_torchrun_there_is_one_process():
    with processes() as these:
        assert (these.rank, these.world_size, these.is_main) == (0, 1, True)
        assert not dist.is_initialized()


def test_processes_agree_on_a_name_whatever_dead_ones_left_in_the_store():
    store = dist.HashStore()
    store.set_timeout(timedelta(seconds=20))
    store.set("hello_1", "somebody who is dead")
    store.set("hello_2", "another")
    store.set("known_of_old_1", "yes")
    names = []
    for _ in range(3):
        found = [None] * 3

        def work(rank, found=found):
            found[rank] = agreed_name(store, rank, 3)

        team = [threading.Thread(target=work, args=(rank,)) for rank in (0, 2, 1)]
        for thread in team:
            thread.start()
        for thread in team:
            thread.join()
        assert len(set(found)) == 1
        names.append(found[0])
    assert len(set(names)) == 3


def test_whatever_holds_the_group_is_gone_before_it_is_closed(monkeypatch):
    """DDP as the last to hold it waits for ever for a thread that waits for Python."""

    class Holder:
        def __init__(self):
            self.itself = self  # only a collector frees it

    alive = []
    holder = weakref.ref(Holder())
    monkeypatch.setattr("torch.distributed.destroy_process_group", lambda: alive.append(holder()))
    close_group()
    assert alive == [None]
