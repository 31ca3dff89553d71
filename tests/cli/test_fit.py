"""`longtail fit` from the command line."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from longtail import Prior, Scores
from longtail.cli import app


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
    assert "Best on held-out samples" in done.output
    assert sorted(path.name for path in out.iterdir()) == [
        "metrics.json",
        "model.safetensors",
        "report.html",
        "test.safetensors",
        "validation.safetensors",
    ]
    said = json.loads((out / "metrics.json").read_text())
    assert set(said["methods"]) == {"linear", "adjusted", "ncm"}
    assert said["best"] in said["methods"]


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
        losses.append(json.loads(done.stdout)["methods"]["adjusted"]["held_out"]["nll"]["value"])
    assert len(set(losses)) == 3
    found = Scores.load(tmp_path / "test.safetensors").carried
    assert found is None or found.is_close(Prior.of([1, 1, 2, 4]))


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
    assert "has 2 weights, but there are 4 classes" in done.output
    for text in ("{", '{"a": 1}', "[0, 1, 1, 1]", '["a", 1, 1, 1]'):
        wrong.write_text(text)
        done = run(npz, "--target", wrong, "-o", tmp_path)
        assert done.exit_code == 1
        assert "must be a JSON list" in done.output
    for option, value, message in (
        ("--methods", "x", "there is no method 'x'; there are linear,"),
        ("--target", "none.json", "there is no file none.json"),
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
