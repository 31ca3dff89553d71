"""`longtail train`: a run from the command line, what it prints, and what is refused."""

import json
import multiprocessing
import shutil
import time

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from cli.killed import train_and_wait
from longtail.cli import app
from longtail.flows.train.reading import recipe_from
from longtail.flows.train.run_folder import check_folder

RECIPE = """
data: {kind: npz, validation_share: 0.2}
backbone: {name: mlp, inputs: 192, hidden: [16]}
optimizer: {lr: 2e-2}
epochs: 1
batch_size: 32
"""


@pytest.fixture
def folder(tmp_path):
    random = np.random.default_rng(0)
    parts = {}
    for part, counts in (("train", (40, 20, 8)), ("test", (10, 10, 10))):
        labels = np.repeat(np.arange(3), counts)
        parts[f"{part}_labels"] = labels
        noise = random.integers(0, 100, (len(labels), 3, 8, 8))
        parts[f"{part}_images"] = (noise + 50 * labels[:, None, None, None]).astype(np.uint8)
    np.savez(tmp_path / "images.npz", **parts)
    (tmp_path / "mine.yaml").write_text(RECIPE)
    return tmp_path


def trained(folder, *arguments, data="images.npz", output="run"):
    given = [str(folder / "mine.yaml"), *arguments]
    given += ["--data", str(folder / data)] if data else []
    given += ["-o", str(folder / output)] if output else []
    done = CliRunner().invoke(app, ["train", *given])
    return done, " ".join(done.output.split())


def test_a_run_prints_its_tables_and_where_it_is(folder):
    done, printed = trained(folder)
    assert done.exit_code == 0, done.output
    for words in ("On the test part", "as trained", "under the target", "Balanced accuracy on"):
        assert words in printed
    assert (folder / "run" / "report.html").is_file()


def test_the_same_command_again_goes_on_and_json_is_json(folder):
    trained(folder)
    before = (folder / "run" / "log.csv").read_text()
    done, _ = trained(folder, "--json", "--quiet")
    result = json.loads(done.stdout)
    assert result["metrics"]["test"]["as trained"]["balanced_accuracy"]["value"] is not None
    assert done.stderr == ""
    done, _ = trained(folder, "--json")
    json.loads(done.stdout)
    assert "In " in done.stderr
    assert (folder / "run" / "log.csv").read_text() == before  # nothing was trained again


def test_a_dry_run_builds_all_and_writes_nothing(folder):
    done, printed = trained(folder, "--dry-run", "epochs=7", output=None)
    assert done.exit_code == 0, done.output
    assert "epochs: 7" in printed
    assert "training images: 54" in printed
    assert not (folder / "run").exists()
    done, _ = trained(folder, "--dry-run", "--json")
    assert json.loads(done.stdout)["plan"]["classes"] == 3
    assert not (folder / "run").exists()


def test_groups_are_those_of_the_option(folder):
    done, printed = trained(folder, "--dry-run", "--groups", "many=9,few=4", output=None)
    assert done.exit_code == 0, done.output
    assert "groups: many=9,few=4" in printed
    done, _ = trained(folder, "--groups", "most=9", output=None)
    assert done.exit_code == 2


@pytest.mark.parametrize(
    ("arguments", "options", "sentence"),
    [
        (["epoch=3"], {}, "did you mean epochs?"),
        (["loss=la"], {}, "loss.name cannot be 'la'"),
        ([], {"data": None}, "give --data PATH"),
        ([], {"data": "nothing.npz"}, "there is no"),
        ([], {"output": None}, "say where the run goes: -o RUN"),
        ([], {"output": "mine.yaml"}, "is a file"),
        (["--resume", "often"], {}, "'often' is not one of 'auto', 'never'"),
    ],
)
def test_wrong_usage_and_wrong_recipes_exit_with_2(folder, arguments, options, sentence):
    done, printed = trained(folder, *arguments, **options)
    assert done.exit_code == 2
    assert sentence in printed
    assert "Traceback" not in printed


def test_a_run_of_another_recipe_is_left_alone(folder):
    trained(folder)
    done, printed = trained(folder, "epochs=2")
    assert done.exit_code == 2
    assert "take another folder: epochs: 1 there, 2 now Hint:" in printed
    assert printed.endswith("train --help")  # it is the folder that is wrong, not the recipe
    done, printed = trained(folder, "--resume", "never")
    assert done.exit_code == 2
    assert "holds a run already" in printed


@pytest.mark.parametrize("option", [[], ["--dry-run"]])
def test_what_is_wrong_with_a_recipe_exits_with_2_also_where_only_the_data_tell(folder, option):
    done, printed = trained(folder, "backbone=small_cnn", "backbone.channels=1", *option)
    assert done.exit_code == 2
    assert "set backbone.channels" in printed
    assert not (folder / "run").exists()


def test_a_loss_that_diverges_is_a_failure_with_a_sentence(folder):
    done, printed = trained(folder, "optimizer.lr=1e30", "epochs=3")
    assert done.exit_code == 1
    assert "lower the rate" in printed


def test_other_processes_say_nothing(folder, monkeypatch):
    monkeypatch.setenv("RANK", "1")
    done, printed = trained(folder)
    assert done.exit_code == 0
    assert printed == ""


def test_of_two_runs_in_one_folder_the_second_is_refused_and_goes_on_once_the_first_is_killed(
    folder,
):
    first = multiprocessing.get_context("forkserver").Process(
        target=train_and_wait, args=(str(folder),)
    )
    first.start()
    while not (folder / "waits").exists():
        assert first.is_alive()
        time.sleep(0.01)
    log = (folder / "run" / "log.csv").read_bytes()
    done, printed = trained(folder)
    assert done.exit_code == 75
    assert f"Error: another longtail (process {first.pid}) is writing to" in printed
    assert (folder / "run" / "log.csv").read_bytes() == log
    first.kill()
    first.join()
    done, printed = trained(folder)
    assert done.exit_code == 0, printed
    assert (folder / "run" / ".longtail" / "generation.json").exists()


def test_the_results_of_a_run_are_put_in_place_together(folder, monkeypatch):
    assert trained(folder)[0].exit_code == 0
    run = folder / "run"
    before = {path.name: path.read_bytes() for path in run.glob("*.safetensors")}
    assert {"model.safetensors", "scores-test.safetensors"} <= before.keys()

    def full(page, path):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("longtail.report.result_page.write_page", full)
    for name in before:
        (run / name).write_bytes(b"older")
    done, printed = trained(folder)
    assert done.exit_code == 1
    assert "no space left on device" in printed
    assert {path.read_bytes() for path in run.glob("*.safetensors")} == {b"older"}


def test_a_run_may_be_gone_on_with_by_its_own_recipe_which_is_not_written_over(folder):
    assert trained(folder)[0].exit_code == 0
    own = folder / "run" / "recipe.yaml"
    before = own.read_bytes()
    given = ["train", str(own), "-o", str(folder / "run")]
    done = CliRunner().invoke(app, given)
    assert done.exit_code == 0, done.output
    done = CliRunner().invoke(app, [*given, "num_workers=1"])
    assert done.exit_code == 2
    assert "recipe.yaml is an input, and -o" in done.stderr
    assert own.read_bytes() == before


def test_results_whose_checkpoint_is_gone_are_not_mixed_with_another_run(folder):
    assert trained(folder)[0].exit_code == 0
    shutil.rmtree(folder / "run" / "checkpoint")
    done, printed = trained(folder, "epochs=2")
    assert done.exit_code == 2
    assert "holds results without the checkpoint they came from" in printed


@pytest.mark.parametrize(
    "name",
    [
        "recipe.yaml",
        "versions.json",
        "log.csv",
        "report.html",
        "metrics.json",
        "scores-test.safetensors",
        "head-crt.safetensors",
        "checkpoint/best.pt",
        "checkpoint/epoch-1-step-0.safetensors",
        "checkpoint/deep/state.json",
    ],
)
def test_files_of_somebody_else_stay_and_the_folder_is_refused(folder, name):
    # What a run may write is nobody's but of a run; other files stay and are no matter.
    mine = folder / "run" / name
    mine.parent.mkdir(parents=True)
    mine.write_bytes(b"\xff mine")
    (folder / "run" / "notes.txt").write_text("mine")
    before = sorted((folder / "run").rglob("*"))
    done, printed = trained(folder)
    assert done.exit_code == 2
    assert f"{name.partition('/')[0]} is there and was not written by longtail" in printed
    assert sorted((folder / "run").rglob("*")) == before
    assert mine.read_bytes() == b"\xff mine"
    mine.unlink()
    if "/" in name:
        shutil.rmtree(folder / "run" / "checkpoint")
    assert trained(folder)[0].exit_code == 0
    assert (folder / "run" / "notes.txt").read_text() == "mine"


def test_a_link_in_the_place_of_the_checkpoint_is_not_followed(folder):
    theirs = folder / "theirs"
    theirs.mkdir()
    (theirs / "best.pt").write_text("precious")
    (folder / "run").mkdir()
    (folder / "run" / "checkpoint").symlink_to(theirs)
    assert trained(folder)[0].exit_code == 2
    (folder / "run" / "checkpoint").unlink()
    assert trained(folder)[0].exit_code == 0
    (folder / "run" / "checkpoint").rename(folder / "moved")
    (folder / "run" / "checkpoint").symlink_to(folder / "moved")
    before = sorted((folder / "moved").iterdir())
    done, printed = trained(folder)
    assert done.exit_code == 1
    assert "checkpoint is a link" in printed
    assert sorted((folder / "moved").iterdir()) == before
    assert [path.name for path in theirs.iterdir()] == ["best.pt"]


@pytest.mark.parametrize(
    ("classes", "output"),
    [
        (("cat", "checkpoint"), "pets"),
        (("cat", "dog"), "pets/run"),
        (("cat", "dog"), "pets/cat"),
        (("train/cat", "train/dog"), "pets"),
        (("train/cat", "train/dog"), "pets/train/run"),
        (("cat", "dog"), "link"),
    ],
)
def test_a_run_does_not_go_among_the_images(folder, classes, output):
    pixels = np.zeros((8, 8, 3), np.uint8)
    for name in classes:
        (folder / "pets" / name).mkdir(parents=True)
        Image.fromarray(pixels).save(folder / "pets" / name / "1.png")
    (folder / "link").symlink_to(folder / "pets")
    before = sorted((folder / "pets").rglob("*"))
    done, printed = trained(folder, "data.kind=folder", data="pets", output=output)
    assert done.exit_code == 2
    assert "where the images are" in printed
    assert sorted((folder / "pets").rglob("*")) == before


def test_beside_the_parts_of_a_set_is_not_among_its_images(folder):
    recipe = recipe_from({"data": {"kind": "folder", "path": str(folder)}})
    (folder / "train" / "cat").mkdir(parents=True)
    assert not check_folder(folder / "run", recipe)
    npz = recipe_from({"data": {"kind": "npz", "path": str(folder / "images.npz")}})
    assert not check_folder(folder / "run", npz)
