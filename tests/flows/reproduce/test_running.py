"""Runs as one job: nothing twice, everything resumed, whoever else is at it."""

import json
import os
import shutil
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from longtail.core import Scores
from longtail.core.files import locked
from longtail.flows.reproduce import running
from longtail.flows.reproduce.collecting import kept_in
from longtail.flows.reproduce.experiment import Cell, Synthetic, Train
from longtail.flows.reproduce.kept import check_signed, model_of
from longtail.flows.reproduce.plan import RunNames, head_file, plan
from longtail.flows.reproduce.running import log_file, run_all, tasks
from longtail.flows.train.reading import overridden, read_recipe_file

sys.path.insert(0, str(Path(__file__).parent))
from worlds import experiment

RECIPE = """
data: {kind: npz, validation_share: 0.0}
backbone: {name: mlp, inputs: 192, hidden: [16]}
optimizer: {lr: 2e-2}
epochs: 2
batch_size: 32
"""


# What stands in for training: it locks the folder of the run as training does, and says so.
FAKE = """
import sys, time
from pathlib import Path
from longtail.core.files import locked
folder = Path(sys.argv[1])
with locked(folder):
    (folder / "versions.json").write_text("{}")
    with (folder / "trained").open("a") as file:
        file.write("once ")
    time.sleep(float(sys.argv[2]))
    if sys.argv[2] == "0.0":
        sys.exit("the reason")
    (folder / "metrics.json").write_text("{}")
"""


@pytest.fixture
def lasting(monkeypatch):
    """Let training be something that takes so many seconds; none at all is a failure."""

    def last(seconds):
        monkeypatch.setattr(
            running,
            "command",
            lambda task: [sys.executable, "-c", FAKE, str(task.folder), str(float(seconds))],
        )

    return last


@pytest.fixture
def place(tmp_path):
    random, parts = np.random.default_rng(0), {}
    for part, counts in (("train", (40, 20, 8)), ("test", (10, 10, 10))):
        labels = np.repeat(np.arange(3), counts)
        noise = random.integers(0, 100, (len(labels), 3, 8, 8))
        parts[f"{part}_labels"] = labels
        parts[f"{part}_images"] = (noise + 50 * labels[:, None, None, None]).astype(np.uint8)
    np.savez(tmp_path / "images.npz", **parts)
    (tmp_path / "mine.yaml").write_text(RECIPE)
    return tmp_path


def todo(place, *overrides, heads=(), measures=()):
    run = Train(str(place / "mine.yaml"), overrides)
    cells = (Cell("a", "", run), *(Cell("b", "", run, head=head) for head in heads))
    one = experiment(cells=cells, draws=measures)
    names = RunNames({f"mine{len(overrides)}": run})
    return planned(place, one, names)


def planned(place, one, names):
    data = {"mine": place / "images.npz"}
    made = plan(one, place / "results", names, lambda run: "mine", data=data)
    return tasks(made, place / "results")


def run(place):
    return place / "results" / "runs" / "mine0-s0"


def test_a_run_is_trained_and_its_heads_fitted_and_none_of_it_again(place):
    events = []
    asked = {
        "heads": ("{name: learned_ncm, tau: 0.125}",),
        "measures": ("weight_norm", "offset_gap", "group_curves"),
    }
    job = todo(place, **asked)
    assert run_all(job, 2, lambda *event: events.append(event)) == []
    assert (run(place) / "metrics.json").is_file()
    scores = Scores.load(
        head_file(place / "results", "mine0-s0", "{name: learned_ncm, tau: 0.125}", "keep")
    )
    assert (len(scores), scores.split) == (30, "test")
    for file in (place / "results" / "after" / "mine0-s0").iterdir():
        check_signed(file, model_of(run(place)), must=True)
    assert events[-1] == ("mine0-s0", "finished")
    numbers = json.loads((place / "results" / "after" / "mine0-s0" / "numbers.json").read_text())
    assert len(numbers["weight_norm"]) == 3
    assert numbers["offset_gap"] is None  # a linear layer has no learned centres
    assert todo(place, **asked) == []
    assert run_all(job, 2, lambda *event: events.append(event)) == []
    # Train, then head; what was done by then counts as finished.
    assert [event for _, event in events] == ["started", "started", "finished", "finished"]


@pytest.mark.parametrize("content", ["5", '{"cdnv": 0.'])
def test_damaged_numbers_fail_their_own_run_alone(place, content):
    (task,) = todo(place, measures=("cdnv",))
    task.numbers.parent.mkdir(parents=True)
    task.numbers.write_text(content)
    assert task.measures_left == ("cdnv",)
    task.folder.mkdir(parents=True)
    (task.folder / "metrics.json").write_text("{}")
    with pytest.raises(ValueError, match=r"numbers\.json cannot be read"):
        running.work(task)


def test_what_fails_is_named_and_its_log_says_why(place, lasting):
    lasting(0)
    assert run_all(todo(place), 1) == ["mine0-s0"]
    assert "the reason" in log_file(place / "results", "mine0-s0").read_text()
    lasting(0.01)
    assert run_all(todo(place), 1) == []  # the same again goes on


def test_an_interrupt_ends_what_runs(place, lasting):
    lasting(100)
    job = todo(place)

    def stop(name, event):
        until(lambda: (run(place) / "trained").exists())
        raise KeyboardInterrupt

    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        run_all(job, 1, stop)
    assert time.monotonic() - started < 60
    assert not job[0].is_elsewhere  # nobody is at it any more
    assert not job[0].is_trained


def until(done, seconds=60):
    end = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_what_another_process_is_at_is_waited_for(place, lasting):
    lasting(0.01)
    job, failed = todo(place), []
    with locked(job[0].lock):  # as another process that is at it
        waiting = threading.Thread(target=lambda: failed.append(run_all(job, 1)))
        waiting.start()
        time.sleep(0.5)
        assert not run(place).exists()
    waiting.join(60)
    assert failed == [[]]
    assert job[0].is_done


def test_two_jobs_on_one_folder_train_a_run_once(place, lasting):
    lasting(1)
    job, failed = todo(place), []
    both = [threading.Thread(target=lambda: failed.append(run_all(job, 1))) for _ in range(2)]
    for each in both:
        each.start()
    for each in both:
        each.join(60)
    assert failed == [[], []]
    assert (run(place) / "trained").read_text() == "once "


def test_what_a_killed_job_left_running_is_waited_for(place, lasting):
    lasting(1)
    job = todo(place)
    orphan = running._started(job[0])
    until(lambda: (run(place) / "trained").exists())
    assert run_all(job, 1) == []
    assert orphan.wait() == 0
    assert (run(place) / "trained").read_text() == "once "


def test_training_is_longtail_train_with_seed_data_and_folder(place):
    (task,) = todo(place, "loss=focal", heads=("crt",))
    command = running.command(task)
    assert command[2:6] == ["longtail", "train", str(place / "mine.yaml"), "loss=focal"]
    assert "seed=0" in command
    assert os.fspath(place / "images.npz") in command


def beginning(place):
    first = Train(str(place / "mine.yaml"), ("epochs=1",))
    second = Train(str(place / "mine.yaml"), ("loss=focal",), start="first")
    names = RunNames({"first": first, "second": second})
    return second, names, experiment(cells=(Cell("a", "", second),))


def begun_with_another(place):
    _, names, one = beginning(place)
    return planned(place, one, names)


def begun(results):
    """What is kept of the run that began with another."""
    second, names, one = beginning(results.parent)
    recipe = overridden(read_recipe_file(results.parent / "mine.yaml"), ["loss=focal"])
    return kept_in(results, names, [one], lambda run: recipe)(second, 0)


def test_a_run_begins_with_the_backbone_of_another_that_is_trained_before(place):
    started = []
    job = begun_with_another(place)
    assert [task.name for task in job] == ["first-s0", "second-s0"]
    finished = place / "results" / "runs" / "first-s0" / "metrics.json"

    def progress(name, event):
        if event == "started":
            started.append((name, finished.is_file()))

    assert run_all(job[::-1], 2, progress) == []
    assert started == [("first-s0", False), ("second-s0", True)]
    runs = place / "results" / "runs"
    assert read_recipe_file(runs / "second-s0" / "recipe.yaml").start == str(runs / "first-s0")
    # Moved, with or without what it began with, it is still the same run; of another start not.
    moved = (place / "results").rename(place / "moved")
    assert begun(moved) is not None
    versions = moved / "runs" / "second-s0" / "versions.json"
    said = json.loads(versions.read_text())
    versions.write_text(json.dumps({key: said[key] for key in said if key != "start"}))
    assert begun(moved) is not None  # as runs were written before
    versions.write_text(json.dumps(said | {"start": "0" * 64}))
    with pytest.raises(ValueError, match="another recipe: start is '000"):
        begun(moved)
    shutil.rmtree(moved / "runs" / "first-s0")
    assert begun(moved) is not None


def test_what_begins_with_a_run_that_fails_is_not_waited_for(place, lasting):
    lasting(0)
    assert run_all(begun_with_another(place), 2) == ["first-s0", "second-s0"]


def test_what_is_in_the_place_of_a_run_is_refused_and_an_empty_folder_is_no_run(place):
    run = Synthetic("two-gaussians", 1)
    names, one = RunNames({"gaussians": run}), experiment(cells=(Cell("a", "", run),))
    folder = place / "results" / "runs" / "gaussians-s0"
    folder.mkdir(parents=True)
    (task,) = planned(place, one, names)
    assert not task.is_trained
    folder.rmdir()
    folder.write_text("mine")
    assert run_all([task], 1) == ["gaussians-s0"]
    assert "is there and is no finished run" in log_file(place / "results", task.name).read_text()
    assert folder.read_text() == "mine"
    folder.unlink()
    folder.mkdir()
    assert run_all([task], 1) == []
    assert (folder / "numbers.json").is_file()


def test_what_ends_well_and_does_nothing_has_failed(place, monkeypatch):
    monkeypatch.setattr(running, "command", lambda task: [sys.executable, "-c", ""])
    assert run_all(todo(place), 1) == ["mine0-s0"]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no such pipes")
def test_a_pipe_in_the_place_of_a_log_is_refused(place):
    log = log_file(place / "results", "mine0-s0")
    log.parent.mkdir(parents=True)
    os.mkfifo(log)
    with pytest.raises(ValueError, match="no plain file"):
        run_all(todo(place), 1)
