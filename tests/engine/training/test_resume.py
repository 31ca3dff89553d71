"""A run that was stopped, by whatever and whenever, goes on as if it had not been."""

import csv
import errno
import json
import multiprocessing
import os
import random
import resource
import signal
import threading
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from engine.training.tiny import (
    CLASSES,
    flat_model,
    full_run,
    images,
    model,
    quick,
    quick_train,
    run_and_die,
    run_and_interrupt,
    with_terms,
)
from longtail.engine.training import FixedSize, StepEnd
from longtail.engine.training.checkpoint import check_task, read_checkpoint, write_checkpoint
from longtail.images.samplers import EffectiveNumberSampler
from longtail.losses import LADE, CrossEntropy, LogitAdjusted, deferred_reweighting

SERVER = multiprocessing.get_context("forkserver")
# The optimisers import torch._dynamo when they are first used, which takes a second.
SERVER.set_forkserver_preload(["longtail.engine.training", "torch._dynamo"])


def drw(start):
    return lambda counts: deferred_reweighting(CrossEntropy, counts, start)


def effective(beta):
    return lambda data: EffectiveNumberSampler(data.labels, CLASSES, beta=beta)


def squares(random):
    return lambda data: FixedSize(data, size=8, random=random)


@pytest.fixture(scope="module")
def unbroken(tmp_path_factory):
    """Weights and history of a run that nobody stopped."""
    net, result = full_run(tmp_path_factory.mktemp("unbroken"))
    return net.state_dict(), result


def assert_same_bits(state, expected):
    assert state.keys() == expected.keys()
    for key, value in expected.items():
        assert torch.equal(state[key], value), key


def learned(history):
    """The rows without what depends on the clock."""
    return [{k: v for k, v in row.items() if "second" not in k} for row in history]


def started(folder, **options):
    process = SERVER.Process(target=run_and_die, args=(str(folder),), kwargs=options)
    process.start()
    return process


def test_a_run_killed_at_random_moments_ends_with_the_same_bits(unbroken, tmp_path):
    moments, kills = random.Random(0), 0
    for latest in (0.05, 0.1, 0.15, 0.2, 0.3, 0.4):
        process = started(tmp_path, die_after=moments.uniform(0.02, latest))
        process.join()
        kills += process.exitcode == -signal.SIGKILL
    net, _ = full_run(tmp_path)
    assert kills >= 2
    assert_same_bits(net.state_dict(), unbroken[0])


@pytest.mark.parametrize("sync", [1, 3, 4, 5, 8])
def test_a_run_killed_in_the_midst_of_a_checkpoint_ends_with_the_same_bits(
    sync, unbroken, tmp_path
):
    process = started(tmp_path, die_at_sync=sync)
    process.join()
    assert process.exitcode == -signal.SIGKILL
    net, result = full_run(tmp_path)
    assert_same_bits(net.state_dict(), unbroken[0])
    assert learned(result.history) == learned(unbroken[1].history)
    assert len(list((tmp_path / "checkpoint").iterdir())) == 2  # and nothing was left lying about


@pytest.mark.parametrize("steps", [1, 6, 7])
def test_a_run_stopped_every_few_steps_ends_with_the_same_bits(steps, unbroken, tmp_path):
    stops = 0
    while True:
        net, result = full_run(tmp_path, stop_after=steps, checkpoint_every=None)
        if result.finished:
            break
        stops += 1
    assert stops == (24 - 1) // steps
    assert_same_bits(net.state_dict(), unbroken[0])
    assert learned(result.history) == learned(unbroken[1].history)
    with open(tmp_path / "log.csv") as file:
        assert [int(row["epoch"]) for row in csv.DictReader(file)] == [1, 2, 3, 4]


def test_the_centres_of_terms_go_on_too(tmp_path):
    data, losses = images(), [with_terms(images().counts) for _ in range(3)]
    whole, parts = model(), model()
    quick_train(whole, data, losses[0])
    quick_train(parts, data, losses[1], run=tmp_path, stop_after=8)  # in the second epoch of six
    again = model()
    quick_train(again, data, losses[2], run=tmp_path)
    assert_same_bits(again.state_dict(), whole.state_dict())
    for key, value in losses[0].state_dict().items():
        assert torch.equal(losses[2].state_dict()[key], value), key
    assert losses[0].terms[0].centers.any()


def test_rows_of_the_log_that_the_checkpoint_does_not_know_are_cut(tmp_path):
    net, data = flat_model(), images()
    quick_train(net, data, options=quick(epochs=3), run=tmp_path, stop_after=6)
    with open(tmp_path / "log.csv", "a") as file:
        file.write("2,12,0.05,0.1,1.0,1.0\n3,18,0.")  # a later row, and half of another
    quick_train(flat_model(), data, options=quick(epochs=3), run=tmp_path)
    with open(tmp_path / "log.csv") as file:
        rows = list(csv.DictReader(file))
    assert [row["epoch"] for row in rows] == ["1", "2", "3"]
    assert float(rows[1]["train_loss"]) != 0.1


def test_a_finished_run_is_read_and_not_trained_again(unbroken, tmp_path):
    full_run(tmp_path)
    seen = []
    net, result = full_run(tmp_path, progress=seen.append)
    assert not seen
    assert result.carried == unbroken[1].carried
    assert result.best_epoch == unbroken[1].best_epoch
    assert_same_bits(net.state_dict(), unbroken[0])


def test_what_follows_a_run_draws_what_it_would_have_drawn_without_it(tmp_path):
    net, data = flat_model(), images()
    torch.manual_seed(4)
    expected = torch.rand(3)
    torch.manual_seed(4)
    quick_train(net, data)
    assert torch.equal(torch.rand(3), expected)


def test_a_checkpoint_holds_what_it_takes_to_understand_it(tmp_path):
    data = images()
    quick_train(flat_model(), data, run=tmp_path, recipe={"name": "tiny", "model": {"dim": 16}})
    tensors, state = read_checkpoint(tmp_path / "checkpoint")
    assert state["task"]["recipe"] == {"name": "tiny", "model": {"dim": 16}}
    assert state["counts"] == data.counts.tolist()
    assert state["carried"] == pytest.approx((data.counts / len(data)).tolist())
    assert state["versions"]["torch"] == torch.__version__
    assert (state["epoch"], state["step"]) == (2, 0)
    assert {"model", "optimizer", "loss", "random"} == {key.partition(".")[0] for key in tensors}


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"options": quick(lr=0.1)}, r"options.lr: it was 0.05, now 0.1"),
        ({"recipe": {"name": "b"}}, r"recipe.name: it was 'a', now 'b'"),
        ({"loss": LogitAdjusted}, r"loss.kind: it was 'CrossEntropy', now 'LogitAdjusted"),
        ({"data": images(91)}, r"images.labels: it was '90 of 4"),
    ],
)
def test_a_checkpoint_of_another_task_is_refused_with_what_differs(changes, named, tmp_path):
    data = images()
    quick_train(flat_model(), data, run=tmp_path, recipe={"name": "a"}, stop_after=2)
    data = changes.pop("data", data)
    loss = changes.pop("loss", CrossEntropy)(data.counts)
    with pytest.raises(ValueError, match=named):
        quick_train(flat_model(), data, loss, **{"recipe": {"name": "a"}} | changes, run=tmp_path)


def test_an_option_that_came_later_is_no_other_task_unless_it_is_used():
    before = {"loss": {"kind": "CrossEntropy", "settings": {"ignore_index": -100}}}
    after = {"loss": {"kind": "CrossEntropy", "settings": {"ignore_index": -100}}}
    after["loss"]["settings"]["label_smoothing"] = 0.0
    check_task(before, after, "run")
    after["recipe"] = {"terms": []}
    check_task(before, after, "run")
    after["loss"]["settings"]["label_smoothing"] = 0.1
    with pytest.raises(ValueError, match=r"label_smoothing: it was 0\.0, now 0\.1"):
        check_task(before, after, "run")


@pytest.mark.parametrize(
    ("name", "before", "after", "named"),
    [
        ("loss", lambda n: LADE(n, alpha=0.1), lambda n: LADE(n, alpha=0.2), "settings.strength"),
        ("loss", drw(start=1), drw(start=2), "loss.settings.start: it was 1, now 2"),
        ("sampler", effective(0.9), effective(0.99), "sampler.beta: it was 0.9, now 0.99"),
        ("data", squares(random=False), squares(random=True), "images.random: it was False, now"),
    ],
    ids=["a loss", "its start", "the sampler", "the images"],
)
def test_other_settings_of_the_same_kinds_are_another_task(name, before, after, named, tmp_path):
    def start(make, **more):
        given = {"data": images(), name: make(images().counts if name == "loss" else images())}
        quick_train(flat_model(), run=tmp_path, **given, **more)

    start(before, stop_after=2)
    start(before, stop_after=2)
    with pytest.raises(ValueError, match=named):
        start(after)


def test_a_recipe_with_tuples_in_it_is_the_same_when_it_comes_back(tmp_path):
    for _ in range(4):
        result = quick_train(
            flat_model(), images(), run=tmp_path, recipe={"pairs": [(1, 2)]}, stop_after=3
        )
    assert result.finished


def test_a_checkpoint_says_where_its_sampler_is(tmp_path):
    places = []
    for _ in range(3):  # epochs of six steps of 16 images
        quick_train(flat_model(), images(), run=tmp_path, stop_after=4)
        places.append(read_checkpoint(tmp_path / "checkpoint").state["sampler"])
    assert [(place["epoch"], place["start"]) for place in places] == [(0, 64), (1, 32), (2, 0)]


@pytest.mark.parametrize("damage", [Path.unlink, lambda file: os.truncate(file, 500)])
def test_a_checkpoint_without_its_tensors_is_refused_by_its_name(damage, tmp_path):
    write_checkpoint(tmp_path, "epoch-1-step-0", {"a": torch.ones(2000)}, {"step": 1})
    damage(tmp_path / "epoch-1-step-0.safetensors")
    with pytest.raises(ValueError, match=r"epoch-1-step-0\.safetensors.* damaged"):
        read_checkpoint(tmp_path)


def test_workers_and_compilation_may_change_from_one_start_to_the_next(tmp_path):
    quick_train(flat_model(), images(), run=tmp_path, stop_after=2)
    options = quick(num_workers=1, compile="eager")
    assert quick_train(flat_model(), images(), options=options, run=tmp_path).finished


def test_a_disk_that_is_full_gives_a_clear_error_and_leaves_the_checkpoint_before(tmp_path):
    unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)

    def fill_disk(event):
        if isinstance(event, StepEnd) and (event.epoch, event.step) == (2, 1):
            resource.setrlimit(resource.RLIMIT_FSIZE, (9000, unlimited[1]))

    try:
        with pytest.raises(OSError, match=r"File too large.* intact"):
            quick_train(
                flat_model(), images(), run=tmp_path, checkpoint_every=4, progress=fill_disk
            )
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
    _, state = read_checkpoint(tmp_path / "checkpoint")
    assert (state["epoch"], state["step"]) == (1, 0)
    assert len(list((tmp_path / "checkpoint").iterdir())) == 2
    net = flat_model()
    assert quick_train(net, images(), run=tmp_path, checkpoint_every=4).finished
    other = flat_model()
    quick_train(other, images())
    assert_same_bits(net.state_dict(), other.state_dict())


@pytest.mark.parametrize("file", ["tensors", "state.json"])
def test_no_space_for_either_file_leaves_the_checkpoint_before(file, tmp_path, monkeypatch):
    write_checkpoint(tmp_path, "epoch-1-step-0", {"a": torch.ones(2)}, {"step": 1})
    syncs = []

    def full(descriptor):
        syncs.append(descriptor)
        if len(syncs) == (1 if file == "tensors" else 3):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match=r"epoch-2-step-0 .*No space left") as raised:
        write_checkpoint(tmp_path, "epoch-2-step-0", {"a": torch.zeros(2)}, {"step": 2})
    assert raised.value.errno == errno.ENOSPC
    tensors, state = read_checkpoint(tmp_path)
    assert torch.equal(tensors["a"], torch.ones(2))
    assert state == {"step": 1}
    assert not list(tmp_path.glob("*.part"))


def test_a_folder_with_something_else_in_it_is_refused(tmp_path):
    (tmp_path / "state.json").write_text("{}")
    with pytest.raises(ValueError, match="is no checkpoint of longtail"):
        read_checkpoint(tmp_path)
    (tmp_path / "state.json").write_text('{"version": 2, "tensors": "a"}')
    with pytest.raises(ValueError, match="version 2 of the checkpoint format"):
        read_checkpoint(tmp_path)


def test_of_a_checkpoint_folder_only_what_runs_write_is_removed(tmp_path):
    folder, elsewhere = tmp_path / "checkpoint", tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "best.pt").write_text("mine")
    quick_train(flat_model(), images(), run=tmp_path, stop_after=2)
    left = ["epoch-0-step-1.safetensors", "epoch-7-step-1.safetensors.0123abcd.part"]
    mine = ["best.pt", "epoch-1.pt", "state.json.bak"]
    for name in left + mine:
        (folder / name).write_text("mine")
    (folder / "epoch-3-step-4").symlink_to(elsewhere)
    (folder / "notes").mkdir()
    quick_train(flat_model(), images(), run=tmp_path)
    kept = {"state.json", "epoch-2-step-0.safetensors", "epoch-3-step-4", "notes", *mine}
    assert {path.name for path in folder.iterdir()} == kept
    assert (elsewhere / "best.pt").read_text() == "mine"


def test_a_checkpoint_folder_of_somebody_else_is_refused(tmp_path):
    (tmp_path / "checkpoint").mkdir()
    (tmp_path / "checkpoint" / "best.pt").write_text("mine")
    with pytest.raises(ValueError, match=r"best\.pt was not written by longtail"):
        quick_train(flat_model(), images(), run=tmp_path)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "checkpoint").symlink_to(tmp_path / "checkpoint")
    with pytest.raises(ValueError, match="is a link"):
        quick_train(flat_model(), images(), run=tmp_path / "run")
    assert (tmp_path / "checkpoint" / "best.pt").read_text() == "mine"


def test_a_state_that_is_a_pipe_or_a_device_is_refused_and_not_waited_for(tmp_path):
    (tmp_path / "checkpoint").mkdir()
    state = tmp_path / "checkpoint" / "state.json"
    for make in (os.mkfifo, lambda path: os.symlink("/dev/zero", path)):
        make(state)
        with pytest.raises(ValueError, match=r"state\.json is no checkpoint.*plain file"):
            quick_train(flat_model(), images(), run=tmp_path)
        state.unlink()
    quick_train(flat_model(), images(), run=tmp_path, stop_after=2)
    tensors = tmp_path / "checkpoint" / "epoch-0-step-2.safetensors"
    tensors.unlink()
    os.mkfifo(tensors)
    with pytest.raises(ValueError, match="epoch-0-step-2"):
        quick_train(flat_model(), images(), run=tmp_path)


@pytest.mark.parametrize(
    ("key", "wrong"),
    [
        *(
            (key, value)
            for key in ("task", "history", "scaler", "world_size", "loss_sum", "seconds")
            for value in (None, "text", [1])
        ),
        *((key, value) for key in ("epoch", "step") for value in (None, "1", -1, 10**6, 10**30)),
        ("history", [{}]),
        ("history", []),
        ("world_size", 0),
        ("tensors", None),
        ("tensors", 3),
        ("tensors", "../checkpoint/epoch-1-step-2.safetensors"),
        ("shards", {}),
        ("shards", {"folder": "../../x", "names": []}),
        ("shards", {"folder": "epoch-1-step-2", "names": ["optimizer.x"]}),
    ],
)
def test_a_state_with_a_value_that_is_missing_or_wrong_is_said_to_be_damaged(key, wrong, tmp_path):
    quick_train(flat_model(), images(), run=tmp_path, stop_after=8)
    path = tmp_path / "checkpoint" / "state.json"
    values = json.loads(path.read_text())
    values.pop(key, None)
    for changed in (values, {**values, key: wrong}):
        if changed is values and key == "shards":
            continue
        path.write_text(json.dumps(changed))
        with pytest.raises(ValueError, match="damaged"):
            quick_train(flat_model(), images(), run=tmp_path)


@pytest.mark.parametrize("change", ["names", "shapes", "rows"])
def test_tensors_of_another_run_are_said_to_be_damaged(change, tmp_path):
    quick_train(flat_model(), images(), run=tmp_path, stop_after=8)
    file = tmp_path / "checkpoint" / "epoch-1-step-2.safetensors"
    tensors = load_file(file)
    if change == "names":
        tensors = {"a": torch.ones(2)}
    elif change == "shapes":
        tensors = {name: tensor.flatten()[:1].clone() for name, tensor in tensors.items()}
    else:
        tensors |= {n: t[:0].clone() for n, t in tensors.items() if n.startswith("random")}
    save_file(tensors, file)
    with pytest.raises(ValueError, match="damaged"):
        quick_train(flat_model(), images(), run=tmp_path)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_stops_between_two_steps_after_a_checkpoint(number, unbroken, tmp_path):
    # In a process of its own: here it could strike anywhere, in the test runner too.
    work = SERVER.Process(target=run_and_interrupt, args=(str(tmp_path), number))
    work.start()
    work.join()
    assert work.exitcode == 0
    assert (tmp_path / "raised").read_text() == f"Stopped: stopped by signal {number}, in epoch 2"
    _, state = read_checkpoint(tmp_path / "checkpoint")
    assert (state["epoch"], state["step"]) == (1, 3)
    net, _ = full_run(tmp_path)
    assert_same_bits(net.state_dict(), unbroken[0])


def test_a_run_in_another_thread_leaves_signals_alone():
    seen = []
    work = threading.Thread(target=lambda: seen.append(quick_train(flat_model(), images())))
    work.start()
    work.join()
    assert seen[0].finished
