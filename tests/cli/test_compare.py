"""`longtail compare` from the command line, on runs that the other commands have written."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

from longtail import Scores
from longtail.cli import app

RECIPE = """
data: {kind: npz, validation_share: 0.2}
backbone: {name: mlp, inputs: 192, hidden: [8]}
epochs: 1
batch_size: 32
second_stage: {heads: [crt]}
"""
LABELS = np.arange(60) % 3


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)


def compared(*arguments):
    done = run("compare", *arguments)
    return done, " ".join(done.output.split())


@pytest.fixture
def scores(tmp_path):
    random = np.random.default_rng(0)
    for name, skill in (("la", 3.0), ("ce", 0.3)):
        for seed in range(3):
            logits = random.normal(size=(60, 3))
            logits[np.arange(60), LABELS] += skill
            made = Scores(logits, LABELS, carried=[6, 3, 1], counts=[600, 30, 10], split="test")
            made.save(tmp_path / f"{name}-seed{seed}.safetensors")
    return tmp_path


def test_it_prints_the_table_and_the_verdict(scores):
    done, printed = compared(scores)
    assert done.exit_code == 0
    assert "la is best (balanced accuracy" in printed
    assert "ahead of ce by more than noise" in printed
    assert "over seeds (Student's t)" in printed
    assert "In " not in done.output.splitlines()[-1]


def test_the_table_has_the_scores_as_trained_beside_those_under_the_target(scores):
    done, printed = compared(scores)
    assert "under the target (the uniform prior)" in printed
    assert "as trained is balanced accuracy of the scores as they are" in printed
    said = json.loads(compared(scores, "--json")[0].stdout)["sets"][0]["methods"]
    rows = {line.split()[0]: line.split() for line in done.output.splitlines() if " ± " in line}
    for name, method in said.items():
        found = [method["metrics"][key] for key in ("as trained", "under the target")]
        shown = [f"{100 * each['balanced_accuracy']['value']:.1f}" for each in found]
        assert shown[0] != shown[1]
        assert rows[name][1:3] == shown
    none, printed = compared(scores, "--target", "none")
    assert none.exit_code == 0
    assert "as trained: scores and samples as they are" in printed
    assert "under the target" not in printed


def test_an_interval_of_one_run_is_shown_by_both_ends(tmp_path):
    few = np.arange(3)
    Scores(9 * np.eye(3)[few], few, carried=[6, 3, 1]).save(tmp_path / "la.safetensors")
    done, printed = compared(tmp_path / "la.safetensors", "--target", "none")
    assert done.exit_code == 0
    assert "100.0 [43.9, 100.0]" in printed  # Wilson's of 3 in 3
    assert "100.0 ±" not in printed


def test_files_are_written(scores, tmp_path):
    done, printed = compared(scores, "-o", tmp_path / "out")
    assert done.exit_code == 0
    assert "report.html, table.md, table.tex, comparison.json" in printed
    assert (tmp_path / "out" / "report.html").read_text().startswith("<!doctype html>")
    assert "\\toprule" in (tmp_path / "out" / "table.tex").read_text()


def test_json_is_all_that_goes_to_standard_output(scores, tmp_path):
    done, _ = compared(scores, "--json", "-o", tmp_path / "out")
    said = json.loads(done.stdout)
    assert set(said["sets"][0]["methods"]) == {"la", "ce"}
    stored = json.loads((tmp_path / "out" / "comparison.json").read_text())
    assert {key: stored[key] for key in said} == said
    assert stored["command"].startswith("longtail compare")
    assert "In " in done.stderr


def test_a_narrow_terminal_leaves_columns_out_and_says_which(scores, monkeypatch):
    monkeypatch.setenv("COLUMNS", "72")
    (scores / "target.json").write_text("[5, 3, 2]")
    done, printed = compared(scores, "--target", scores / "target.json", "--by", "nll")
    assert done.exit_code == 0
    assert "Left out for want of room: rank, worst and ECE." in printed
    headings = done.output.splitlines()[done.output.splitlines().index(" " * 72, 1) :]
    assert " ".join(headings[1].split()) == "under as under the"
    assert headings[2].split()[-2:] == ["trained", "target"]  # the log-loss, and no accuracy
    assert max(map(len, done.output.splitlines())) <= 72
    monkeypatch.setenv("COLUMNS", "120")
    assert "Left out" not in compared(scores)[1]


def test_labels_name_methods(scores):
    files = [scores / f"la-seed{seed}.safetensors" for seed in range(3)]
    given = [f"--label=Ours={file}" for file in files]
    done, _ = compared(*given, scores / "ce-seed0.safetensors", "--json")
    methods = json.loads(done.stdout)["sets"][0]["methods"]
    assert len(methods["Ours"]["runs"]) == 3
    assert len(methods["ce"]["runs"]) == 1


def test_methods_are_ordered_by_what_was_asked_for(scores):
    done, _ = compared(scores, "--by", "nll", "--target", "none", "--json")
    assert json.loads(done.stdout)["sets"][0]["by"] == "nll"


def test_wrong_usage_is_told(scores):
    for arguments, sentence in (
        ([], "give run folders or files of scores"),
        ([scores, "--by", "auc"], "--by is one of accuracy_under_target, balanced_accuracy"),
        (["--label", "LA"], "it is NAME=PATH"),
        (["--label", "=x"], "it is NAME=PATH"),
        (["--label", "LA=nowhere"], "LA: there is no nowhere"),
        ([scores / "nowhere"], "does not exist"),
        ([scores, "--target", "sideways"], "there is no file sideways"),
        ([scores, "-o", scores / "la-seed0.safetensors"], "is a file"),
    ):
        done, printed = compared(*arguments)
        assert done.exit_code == 2
        assert sentence in printed


def test_a_failure_is_a_sentence_and_no_traceback(tmp_path):
    done, printed = compared(tmp_path)
    assert done.exit_code == 1
    assert printed.startswith(f"Error: {tmp_path} holds no scores to compare; give folders")
    assert "Traceback" not in printed


def test_runs_of_train_fit_and_fix_stand_beside_each_other(tmp_path):
    random = np.random.default_rng(0)
    parts = {}
    for part, counts in (("train", (40, 20, 8)), ("test", (10, 10, 10))):
        labels = np.repeat(np.arange(3), counts)
        noise = random.integers(0, 100, (len(labels), 3, 8, 8))
        images = (noise + 50 * labels[:, None, None, None]).astype(np.uint8)
        parts |= {f"{part}_labels": labels, f"{part}_images": images}
        parts[f"{part}_features"] = images.reshape(len(labels), -1)[:, :12].astype(np.float32)
    np.savez(tmp_path / "images.npz", **{k: v for k, v in parts.items() if "features" not in k})
    np.savez(tmp_path / "features.npz", **{k: v for k, v in parts.items() if "images" not in k})
    (tmp_path / "mine.yaml").write_text(RECIPE)
    runs = tmp_path / "runs"
    for seed in (0, 1):
        given = ["train", tmp_path / "mine.yaml", f"seed={seed}", "--data", tmp_path / "images.npz"]
        assert run(*given, "-o", runs / f"ce-{seed}", "--quiet").exit_code == 0
    scored = [runs / "ce-0" / f"scores-{part}.safetensors" for part in ("validation", "test")]
    assert run("fix", scored[0], "--apply", scored[1], "-o", runs / "fixed").exit_code == 0
    fit = ["fit", tmp_path / "features.npz", "--methods", "adjusted", "--folds", 2]
    assert run(*fit, "-o", runs / "fit").exit_code == 0
    done, _ = compared(runs, "--json")
    said = json.loads(done.stdout)
    found = [{name: len(m["runs"]) for name, m in each["methods"].items()} for each in said["sets"]]
    # What is held out of training is in the counts, so fit, which held nothing out, is by itself.
    trained = next(each for each in found if "fixed" in each)
    assert trained == {"mine": 2, "mine + crt": 2, "fixed": 1}
    (fitted,) = [each for each in found if each is not trained]
    assert list(fitted.values()) == [1]
    assert next(iter(fitted)).startswith("fit ")
