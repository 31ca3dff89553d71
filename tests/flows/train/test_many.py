"""Many runs at a time: what is finished stays, what broke off goes on, what fails is told."""

import json
import os

import pytest

from longtail.flows.train.many import Job, train_many
from longtail.flows.train.reading import RecipeError, recipe_from
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


@pytest.fixture(scope="module")
def interrupted(images, tmp_path_factory):
    """Three jobs two at a time, interrupted when the short one is done."""
    runs = tmp_path_factory.mktemp("many")
    jobs = [
        job(images, runs / "diverging", epochs=2, optimizer={"lr": 1e30}),
        job(images, runs / "long", epochs=120),
        job(images, runs / "short", epochs=1),
    ]
    seen = []

    def progress(ended):
        seen.append(ended)
        if ended.job.folder.name == "short":
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train_many(jobs, at_once=2, progress=progress)
    return jobs, seen


def test_a_job_that_fails_is_told_and_does_not_stop_the_others(interrupted):
    _, seen = interrupted
    assert [(each.job.name, each.how) for each in seen] == [
        ("diverging", "failed"),
        ("short", "trained"),
    ]
    assert "the loss is nan in epoch 1" in seen[0].error


def test_an_interrupt_leaves_checkpoints_and_the_next_call_goes_on(interrupted):
    (_, long, short), _ = interrupted
    before = len(read_log(long.folder))
    assert 0 < before < 120
    assert not (long.folder / "metrics.json").exists()
    time = os.stat(short.folder / "metrics.json").st_mtime_ns
    ended = train_many([long, short])
    assert [each.how for each in ended] == ["trained", "finished before"]
    assert [row["epoch"] for row in read_log(long.folder)] == list(range(1, 121))
    assert os.stat(short.folder / "metrics.json").st_mtime_ns == time
    assert [each.how for each in train_many([long, short])] == ["finished before"] * 2


def test_a_run_keeps_the_name_of_its_recipe_and_has_one_thread(interrupted):
    (*_, short), _ = interrupted
    assert name_of_run(short.folder) == "short"
    assert recipe_name(short.folder / "recipe.yaml") == "short"
    assert json.loads((short.folder / "versions.json").read_text())["threads"] == 1
    assert (short.folder / "report.html").is_file()


def test_what_cannot_be_is_refused_before_anything_is_trained(images, interrupted, tmp_path):
    (*_, short), _ = interrupted
    new = job(images, tmp_path / "new", epochs=1)
    with pytest.raises(RecipeError, match=r"another recipe.*epochs: 1 there, 3 now"):
        train_many([new, job(images, short.folder, epochs=3)])
    with pytest.raises(RecipeError, match=r"there is no .*nowhere"):
        train_many([new, job(tmp_path / "nowhere", tmp_path / "other")])
    with pytest.raises(ValueError, match="two jobs have one folder"):
        train_many([new, new])
    assert not new.folder.exists()
