"""`longtail sweep`: a grid from the command line, gone on with, and what is refused."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from longtail.cli import app

RECIPE = """
data: {kind: npz, validation_share: 0.2}
backbone: {name: mlp, inputs: 192, hidden: [8]}
optimizer: {lr: 2e-2}
epochs: 1
batch_size: 32
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    place = tmp_path_factory.mktemp("sweep")
    random, parts = np.random.default_rng(0), {}
    for part, counts in (("train", (40, 20, 10)), ("test", (10, 10, 10))):
        labels = np.repeat(np.arange(3), counts)
        noise = random.integers(0, 100, (len(labels), 3, 8, 8))
        parts[f"{part}_labels"] = labels
        parts[f"{part}_images"] = (noise + 50 * labels[:, None, None, None]).astype(np.uint8)
    np.savez(place / "images.npz", **parts)
    (place / "mine.yaml").write_text(RECIPE)
    return place


def swept(folder, *arguments, output="out"):
    given = [str(folder / "mine.yaml"), *arguments, "--data", str(folder / "images.npz")]
    done = CliRunner().invoke(app, ["sweep", *given, "-o", str(folder / output)])
    return done, " ".join(done.output.split())


def test_groups_are_the_same_at_every_point_and_no_grid(folder):
    edges = ["--groups", "many=9,few=4"]
    done, printed = swept(folder, "optimizer.lr=1e-2,1e-3", *edges, "--quiet", output="edges")
    assert done.exit_code == 0, printed
    runs = sorted((folder / "edges" / "runs").iterdir())
    assert len(runs) == 2
    assert all("groups: many=9,few=4" in (run / "recipe.yaml").read_text() for run in runs)


def test_a_sweep_trains_shows_and_is_not_repeated(folder):
    grid = ["optimizer.lr=1e-2,1e30"]  # the second diverges
    done, printed = swept(folder, *grid, "--dry-run")
    assert done.exit_code == 0, done.output
    assert printed.count("new ") == 2
    assert not (folder / "out").exists()
    done, printed = swept(folder, *grid, "epochs=2", "--quiet")
    assert done.exit_code == 1
    assert "The validation part chooses optimizer.lr=1e-2." in printed
    assert "1 of the runs failed: optimizer.lr=1e30-s0" in printed
    assert "the loss is nan" in printed
    first = folder / "out" / "runs" / "optimizer.lr=1e-2-s0"
    before = (first / "metrics.json").stat().st_mtime_ns
    done, _ = swept(folder, "optimizer.lr=1e-2", "epochs=2", "--dry-run", "--json")
    assert json.loads(done.stdout)["runs"][0]["state"] == "new"  # one value: another folder
    done, _ = swept(folder, *grid, "epochs=2", "--dry-run", "--json")
    assert [run["state"] for run in json.loads(done.stdout)["runs"]] == ["finished", "new"]
    assert (first / "metrics.json").stat().st_mtime_ns == before
    stored = json.loads((folder / "out" / "sweep.json").read_text())
    assert stored["chosen"] == ["1e-2"]
    assert (folder / "out" / "report.html").is_file()


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--seeds", "a,b"], "whole numbers with commas"),
        (["epoch=1,2"], "did you mean epochs?"),
        (["--jobs", "0"], "0 is not in the range"),
    ],
)
def test_wrong_usage_exits_with_2(folder, arguments, sentence):
    done, printed = swept(folder, *arguments, output="other")
    assert done.exit_code == 2
    assert sentence in printed
    assert not (folder / "other").exists()
