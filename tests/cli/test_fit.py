"""`longtail fit` from the command line."""

import json
import re
import subprocess
import sys

import numpy as np
import pytest
from click.testing import CliRunner

from longtail import Prior, Scores
from longtail.cli import app
from longtail.data import pack_features
from longtail.flows.fit_methods import METHODS, Method


@pytest.fixture
def npz(tmp_path):
    rng = np.random.default_rng(0)
    means = 2 * rng.normal(size=(4, 6))

    def part(counts):
        labels = np.repeat(np.arange(4), counts)
        return (means[labels] + rng.normal(size=(len(labels), 6))).astype(np.float32), labels

    train, test = part([40, 20, 8, 4]), part([20] * 4)
    place = tmp_path / "features.npz"
    np.savez(
        place,
        train_features=train[0],
        train_labels=train[1],
        test_features=test[0],
        test_labels=test[1],
    )
    return place


def run(*arguments):
    return CliRunner().invoke(app, ["fit", *map(str, arguments)], catch_exceptions=False)


def test_it_writes_model_scores_metrics_and_page(npz, tmp_path):
    out = tmp_path / "out"
    done = run(npz, "--methods", "adjusted,ncm", "--folds", 3, "-o", out)
    assert done.exit_code == 0
    assert "Best on validation samples" in done.output
    assert sorted(path.name for path in out.glob("[!.]*")) == [
        "metrics.json",
        "model.safetensors",
        "report.html",
        "test.safetensors",
        "validation.safetensors",
    ]
    said = json.loads((out / "metrics.json").read_text())
    assert set(said["methods"]) == {"linear", "adjusted", "ncm"}
    assert said["best"] in said["methods"]


def test_the_table_keeps_its_numbers_whole_in_80_columns_and_failures_are_told(
    npz, tmp_path, monkeypatch
):
    def fail(task):
        raise ValueError("this one diverged")

    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setitem(METHODS, "broken", Method("broken", "", fail))
    done = run(npz, "--methods", "adjusted_tau,broken", "--folds", 3, "-o", tmp_path / "out")
    said = json.loads((tmp_path / "out/metrics.json").read_text())["methods"]
    found = said["adjusted_tau"]["validation"]["accuracy_under_target"]["value"]
    rows = [line for line in done.output.split("\n") if line.startswith(" linear, ")]
    assert f"{100 * found:.1f}" in " ".join(rows).split()
    assert max(map(len, rows)) <= 80
    assert "broken failed: this one diverged" in done.output


def test_unlabelled_features_are_learned_from(npz, tmp_path):
    with np.load(npz) as stored:
        np.save(tmp_path / "new.npy", stored["test_features"])
    out, options = tmp_path / "out", ("--methods", "adjusted,self_trained", "--folds", 3)
    done = run(npz, "--unlabelled", tmp_path / "new.npy", *options, "-o", out)
    assert done.exit_code == 0
    assert "80 unlabelled samples were taken to follow the target" in " ".join(done.output.split())
    said = json.loads((out / "metrics.json").read_text())
    assert set(said["methods"]) == {"linear", "adjusted", "self_trained"}
    assert said["unlabelled_samples"] == 80
    refused = run(npz, *options, "-o", tmp_path / "other")
    assert refused.exit_code == 2
    assert "needs unlabelled samples" in " ".join(refused.output.split())


def test_json_is_all_that_goes_to_standard_output(npz, tmp_path):
    done = run(npz, "--methods", "ncm", "--folds", 2, "--json", "-o", tmp_path / "out")
    assert json.loads(done.stdout)["methods"].keys() == {"linear", "ncm"}


def test_a_target_can_be_the_training_prior_or_a_file(npz, tmp_path):
    weights = tmp_path / "target.json"
    weights.write_text("[1, 1, 2, 4]")
    losses = []
    for target in ("uniform", "train", weights):
        done = run(
            npz, "--methods", "adjusted", "--folds", 2, "--target", target, "--json", "-o", tmp_path
        )
        losses.append(json.loads(done.stdout)["methods"]["adjusted"]["validation"]["nll"]["value"])
    assert len(set(losses)) == 3
    found = Scores.load(tmp_path / "test.safetensors").carried
    assert found is None or found.is_close(Prior.of([1, 1, 2, 4]))


def test_a_target_by_class_name(npz, tmp_path):
    with np.load(npz) as stored:
        parts = {"train": (stored["train_features"], stored["train_labels"])}
    place = tmp_path / "named.safetensors"
    pack_features(place, parts, classes=["cat", "dog", "emu", "fox"])
    losses = []
    for text in ("[1, 1, 2, 4]", '{"fox": 4, "cat": 1, "emu": 2, "dog": 1}'):
        (tmp_path / "target.json").write_text(text)
        given = ("--methods", "ncm", "--folds", 2, "--json", "-o", tmp_path / "out")
        done = run(place, "--target", tmp_path / "target.json", *given)
        losses.append(json.loads(done.stdout)["methods"]["ncm"]["validation"])
    assert losses[0] == losses[1]


def test_the_methods_are_listed():
    done = run("--list")
    assert done.exit_code == 0
    assert "learned_ncm" in done.output
    assert "only if named" in done.output


def test_wrong_usage_is_told(npz, tmp_path):
    assert run(npz).exit_code == 2
    assert run("-o", tmp_path).exit_code == 2
    wrong = tmp_path / "wrong.json"
    wrong.write_text("[1, 2]")
    done = run(npz, "--target", wrong, "-o", tmp_path)
    assert done.exit_code == 1
    assert f"has 2 weights, but {npz} has 4 classes" in done.output
    for text, said in (
        ("{", "must be a JSON list"),
        ('["a", 1, 1, 1]', "must be a JSON list"),
        ('{"a": 1}', "does not name its classes"),
        ("[0, 1, 1, 1]", "a weight of zero"),
    ):
        wrong.write_text(text)
        done = run(npz, "--target", wrong, "-o", tmp_path)
        assert done.exit_code == 1
        assert said in done.output
    for option, value, message in (
        ("--methods", "x", "there is no method 'x'; there are linear,"),
        ("--target", "none.json", "there is no file none.json"),
        ("--seed", 2**64, "--seed"),
    ):
        done = run(npz, option, value, "-o", tmp_path)
        assert done.exit_code == 2
        assert message in " ".join(done.output.split())


def test_scores_of_an_earlier_fit_do_not_stay(npz, tmp_path):
    run(npz, "--methods", "ncm", "--folds", 2, "-o", tmp_path / "out")
    with np.load(npz) as stored:
        np.savez(
            tmp_path / "train.npz", features=stored["train_features"], labels=stored["train_labels"]
        )
    run(tmp_path / "train.npz", "--methods", "ncm", "--folds", 2, "-o", tmp_path / "out")
    assert not (tmp_path / "out" / "test.safetensors").exists()


@pytest.mark.skipif(sys.platform != "linux", reason="needs a limit on the size of files")
def test_a_full_disk_is_told_with_the_file_and_is_no_bug(npz, tmp_path):
    code = (
        "import resource, sys; from longtail.cli import app\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (300, 300))\n"
        "app.main(sys.argv[1:])"
    )
    words = ["fit", npz, "--methods", "linear", "--folds", "2", "-o", tmp_path / "out"]
    done = subprocess.run(
        [sys.executable, "-c", code, *map(str, words)], capture_output=True, text=True
    )
    assert done.returncode == 1
    assert re.match(r"Error: file too large: .*out/\w+\.safetensors\nHint: make room", done.stderr)
