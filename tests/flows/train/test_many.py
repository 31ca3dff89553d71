"""Many runs at a time: what is finished stays, what broke off goes on, what fails is told."""

import json
import os
import signal
import tempfile
import threading
import time

import pytest

from longtail.core.files import locked
from longtail.flows.subprocesses import TAKEN
from longtail.flows.train import many
from longtail.flows.train.many import Job, train_many
from longtail.flows.train.reading import RecipeError, read_recipe_file, recipe_from
from longtail.flows.train.run_folder import name_of_run, read_log
from longtail.recipes.catalogue import recipe_name


def job(path, folder, **values):
    common = {
        "data": {"kind": "npz", "path": str(path), "validation_share": 0.0},
        "backbone": {"name": "mlp", "inputs": 192, "hidden": [8]},
        "optimizer": {"lr": 0.02},
        "batch_size": 32,
    }
    return Job(recipe_from(common | values), folder, folder.name)


def interrupt_after_an_epoch(folder):
    while not (folder / "log.csv").is_file() or not read_log(folder):
        time.sleep(0.02)
    os.kill(os.getpid(), signal.SIGINT)


@pytest.fixture(scope="module")
def jobs(images, tmp_path_factory):
    """A long job, interrupted while it trains, and then others beside it."""
    runs = tmp_path_factory.mktemp("many")
    long = job(images, runs / "long", epochs=30, batch_size=2)
    watch = threading.Thread(target=interrupt_after_an_epoch, args=(long.folder,))
    # Where tests run in the background a shell has told them to ignore it.
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    watch.start()
    with pytest.raises(KeyboardInterrupt):
        train_many([long])
    watch.join()
    signal.signal(signal.SIGINT, before)
    diverging = job(images, runs / "diverging", epochs=2, optimizer={"lr": 1e30})
    return long, diverging, job(images, runs / "short", epochs=1)


@pytest.fixture(scope="module")
def ended(jobs):
    long = jobs[0].folder
    assert 0 < len(read_log(long)) < 30
    assert (long / "checkpoint" / "state.json").is_file()
    assert not (long / "metrics.json").exists()
    return train_many(jobs, at_once=2)


def test_what_was_interrupted_goes_on_and_what_fails_does_not_stop_the_others(jobs, ended):
    assert [each.job for each in ended] == list(jobs)
    assert [each.how for each in ended] == ["trained", "failed", "trained"]
    assert "the loss is nan in epoch 1" in ended[1].error
    assert [row["epoch"] for row in read_log(jobs[0].folder)] == list(range(1, 31))


def test_what_is_finished_is_never_trained_again(jobs, ended):
    finished = [jobs[0], jobs[2]]
    files = [each.folder / "metrics.json" for each in finished]
    before, told = [os.stat(file).st_mtime_ns for file in files], []
    again = train_many(finished, progress=told.append)
    assert [each.how for each in again] == ["finished before"] * 2
    assert told == list(again)
    assert [os.stat(file).st_mtime_ns for file in files] == before


def test_a_run_keeps_the_name_of_its_recipe_and_has_one_thread(jobs, ended):
    short = jobs[2]
    assert name_of_run(short.folder) == "short"
    assert recipe_name(short.folder / "recipe.yaml") == "short"
    assert json.loads((short.folder / "versions.json").read_text())["threads"] == 1
    assert (short.folder / "report.html").is_file()


def test_what_another_process_is_at_is_waited_for(images, tmp_path):
    taken, done = job(images, tmp_path / "taken", epochs=1), []
    with locked(taken.folder):
        waiting = threading.Thread(target=lambda: done.extend(train_many([taken])))
        waiting.start()
        time.sleep(0.5)
        assert not done
        assert not (taken.folder / "versions.json").exists()
    waiting.join(60)
    assert [each.how for each in done] == ["trained"]


def test_two_at_once_never_take_the_run_of_the_other_for_theirs(images, tmp_path):
    """Whoever comes second finds a run of another recipe, and leaves all of it as it is."""
    rates, ended = (0.01, 0.02), {}

    def begin(lr):
        mine = job(images, tmp_path / "run", epochs=1, optimizer={"lr": lr})
        (ended[lr],) = train_many([mine])

    both = [threading.Thread(target=begin, args=(lr,)) for lr in rates]
    for each in both:
        each.start()
    for each in both:
        each.join()
    assert sorted(each.how for each in ended.values()) == ["failed", "trained"]
    for lr, each in ended.items():
        trained = read_recipe_file(tmp_path / "run" / "recipe.yaml").optimizer.lr
        assert (each.how == "trained") == (trained == lr)
        assert each.how == "trained" or "another recipe" in each.error


def test_what_another_trains_is_not_written_to(images, tmp_path):
    taken = job(images, tmp_path / "run", epochs=1)
    with locked(taken.folder), tempfile.TemporaryFile() as errors:
        process = many._started(taken, tmp_path / "private", errors)
        assert process.wait(60) == TAKEN
        assert os.listdir(taken.folder) == [".longtail"]


def test_what_cannot_be_is_refused_before_anything_is_trained(images, jobs, ended, tmp_path):
    short = jobs[2]
    new = job(images, tmp_path / "new", epochs=1)
    with pytest.raises(RecipeError, match=r"another recipe.*epochs: 1 there, 3 now"):
        train_many([new, job(images, short.folder, epochs=3)])
    with pytest.raises(RecipeError, match=r"there is no .*nowhere"):
        train_many([new, job(tmp_path / "nowhere", tmp_path / "other")])
    with pytest.raises(ValueError, match="two jobs have one folder"):
        train_many([new, new])
    assert not new.folder.exists()
