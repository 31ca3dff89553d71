"""`longtail report` on run folders, scores files and several of them."""

import json
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

import longtail as lt
from longtail.cli import app
from report_pages import samples_of

RECIPE = """
data: {kind: npz, validation_share: 0.2}
backbone: {name: mlp, inputs: 192, hidden: [8]}
epochs: 1
batch_size: 32
"""
COUNTS = [600, 60, 10]
LABELS = np.arange(90) % 3


def run(*arguments):
    return CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)


def logits(skill: float = 1.5) -> np.ndarray:
    made = np.random.default_rng(0).normal(size=(90, 3))
    made[np.arange(90), LABELS] += skill
    return skill * made


@pytest.fixture
def scores(tmp_path):
    carried = lt.Prior.of(COUNTS)
    moved = logits() + carried.log
    place = tmp_path / "scores.safetensors"
    lt.Scores(moved, LABELS, carried=carried, counts=COUNTS, split="test").save(place)
    return place


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trained")
    random = np.random.default_rng(0)
    arrays = {}
    for split, sizes in (("train", [60, 30, 12]), ("test", [9, 9, 9])):
        labels = np.repeat(np.arange(3), sizes)
        pixels = random.integers(0, 90, (len(labels), 8, 8, 3)) + 60 * labels[:, None, None, None]
        arrays |= {f"{split}_images": pixels.astype(np.uint8), f"{split}_labels": labels}
    np.savez(folder / "images.npz", **arrays)
    (folder / "recipe.yaml").write_text(RECIPE)
    done = run(
        "train", folder / "recipe.yaml", "--data", folder / "images.npz", "-o", folder / "run"
    )
    assert done.exit_code == 0, done.output
    return folder / "run"


def test_scores_that_say_what_they_carry_are_shown_as_they_are_and_moved(scores, tmp_path):
    done = run("report", scores, "-o", tmp_path / "out", "--json")
    assert done.exit_code == 0
    found = json.loads(done.stdout)
    before, after = (found["metrics"]["balanced_accuracy"][side] for side in ("before", "after"))
    held = lt.Scores.load(scores)
    assert before["value"] == pytest.approx(lt.metrics.evaluate(held)["balanced_accuracy"])
    moved = lt.metrics.evaluate(held, target=lt.Prior.uniform(3))
    assert after["value"] == pytest.approx(moved["balanced_accuracy"])
    page = (tmp_path / "out" / "report.html").read_text()
    assert 'data-explorer="tau"' in page
    assert "What to do next" in page


def test_scores_of_another_format_need_to_be_told_about(tmp_path):
    place, counts = tmp_path / "scores.npz", tmp_path / "counts.json"
    np.savez(place, logits=logits() + lt.Prior.of(COUNTS).log, labels=LABELS)
    counts.write_text(json.dumps(COUNTS))
    assert "it is not guessed" in run("report", place).output
    given = ("--kind", "logits", "--counts", counts, "-o", tmp_path / "out")
    done = run("report", place, *given)
    assert done.exit_code == 0
    assert "balanced accuracy" in done.output
    alone = run("report", place, *given, "--carried", "uniform")
    assert "not behave as if they carried what is declared" in " ".join(alone.output.split())


def test_two_files_of_the_same_samples_are_before_and_after(scores, tmp_path):
    later = tmp_path / "later.safetensors"
    lt.Scores(logits(4.0), LABELS, carried=[1, 1, 1]).save(later)
    done = run("report", scores, "--after", later, "-o", tmp_path / "out", "--json")
    assert json.loads(done.stdout)["gains"]["balanced_accuracy"]["value"] > 0.2


def test_what_is_said_of_a_file_before_does_not_hold_for_one_of_longtail_after(tmp_path):
    before, later = tmp_path / "before.npz", tmp_path / "later.safetensors"
    np.savez(before, outputs=logits(), truth=LABELS)
    lt.Scores(logits(4.0), LABELS, carried=[1, 1, 1]).save(later)
    said = ("--kind", "logits", "--array", "outputs", "--label-column", "truth")
    done = run("report", before, *said, "--after", later, "-o", tmp_path / "out")
    assert done.exit_code == 0, done.output


def test_other_samples_after_are_refused(scores, tmp_path):
    later = tmp_path / "later.safetensors"
    lt.Scores(logits()[:50], LABELS[:50]).save(later)
    done = run("report", scores, "--after", later, "-o", tmp_path / "out")
    assert done.exit_code == 1
    assert "same order" in done.output


def test_scores_after_are_paired_by_id_and_never_by_place(tmp_path):
    ids, order = np.array([f"s{k}" for k in range(90)]), np.random.default_rng(1).permutation(90)
    before = lt.Scores(logits(), LABELS, ids=ids)
    before.save(tmp_path / "before.safetensors")
    for name, after in (("with", before), ("without", replace(before, labels=None))):
        after.take(order).save(tmp_path / f"{name}.safetensors")
        arguments = ("--after", tmp_path / f"{name}.safetensors", "-o", tmp_path / "out", "--json")
        done = run("report", tmp_path / "before.safetensors", *arguments)
        gain = json.loads(done.stdout)["gains"]["balanced_accuracy"]
        assert gain == {"value": 0.0, "low": 0.0, "high": 0.0}
    replace(before, ids=np.arange(90)).save(tmp_path / "others.safetensors")
    others = ("--after", tmp_path / "others.safetensors", "-o", tmp_path / "out")
    done = run("report", tmp_path / "before.safetensors", *others)
    assert done.exit_code == 1
    assert "other ids" in done.output


def test_scores_after_with_columns_in_another_order_are_refused(tmp_path):
    rows = logits()
    for name, columns in (("before", "abc"), ("after", "cba")):
        lines = [",".join([*columns, "label"])]
        for row, label in zip(rows, LABELS, strict=True):
            values = dict(zip("abc", map(str, row), strict=True))
            lines.append(",".join([*(values[name] for name in columns), "abc"[label]]))
        (tmp_path / f"{name}.csv").write_text("\n".join(lines) + "\n")
    before, after = tmp_path / "before.csv", tmp_path / "after.csv"
    done = run("report", before, "--kind", "logits", "--after", after, "-o", tmp_path / "out")
    assert done.exit_code == 1
    assert "another order" in done.output


def test_scores_without_labels_say_so(tmp_path):
    place = tmp_path / "scores.safetensors"
    lt.Scores(logits(), carried=COUNTS).save(place)
    done = run("report", place, "-o", tmp_path / "out")
    assert done.exit_code == 1
    assert "has no labels" in done.output
    assert not (tmp_path / "out").exists()


def test_a_run_folder_is_reported_with_its_training(trained, tmp_path):
    done = run("report", trained, "-o", tmp_path / "out", "--json")
    assert done.exit_code == 0
    found = json.loads(done.stdout)["metrics"]["balanced_accuracy"]
    own = json.loads((trained / "metrics.json").read_text())["metrics"]["test"]
    assert found["before"] == own["as trained"]["balanced_accuracy"]
    assert found["after"] == own["under the target"]["balanced_accuracy"]
    page = (tmp_path / "out" / "report.html").read_text()
    for words in ("Training loss", "LA figure 1", "backbone"):
        assert words in page


def test_several_are_compared(trained, scores, tmp_path):
    other = tmp_path / "other.safetensors"
    lt.Scores(logits(4.0), LABELS, carried=[1, 1, 1], counts=COUNTS, split="test").save(other)
    done = run("report", scores, other, "-o", tmp_path / "out")
    assert done.exit_code == 0
    assert "report.html, table.md, table.tex, comparison.json" in " ".join(done.output.split())


def test_what_would_be_ignored_is_wrong_usage(trained, scores, tmp_path):
    for arguments in (
        (trained, "--counts", scores),
        (trained, scores, "--kind", "logits"),
        (trained, "--target", scores),
    ):
        done = run("report", *arguments, "-o", tmp_path / "out")
        assert done.exit_code == 2, done.output


def test_a_run_that_has_not_finished_says_what_to_do(trained, tmp_path):
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "recipe.yaml").write_text((trained / "recipe.yaml").read_text())
    done = run("report", tmp_path / "half", "-o", tmp_path / "out")
    assert done.exit_code == 1
    assert "has not finished" in done.output


def test_a_model_below_its_largest_class_is_said_in_the_first_line(tmp_path):
    labels = np.arange(400) // 4 % 2 * (np.arange(400) % 2)  # a quarter of them of class 1
    logits = np.random.default_rng(0).normal(size=(400, 2))
    np.savez(tmp_path / "scores.npz", logits=logits, labels=labels)
    given = ["report", tmp_path / "scores.npz", "--kind", "logits", "-o", tmp_path / "out"]
    done = CliRunner().invoke(app, list(map(str, given)))
    assert done.exit_code == 0, done.output
    assert "trust these numbers: " in done.output.splitlines()[0]
    done = CliRunner().invoke(app, [*map(str, given), "--json"])
    assert json.loads(done.stdout)["sanity"]["below_largest_class"] is True


def test_a_report_that_moves_scores_says_that_it_did_not_write_them(tmp_path):
    samples = samples_of()
    samples.before.save(tmp_path / "before.safetensors")
    samples.after.save(tmp_path / "after.safetensors")
    said = ["report", str(tmp_path / "before.safetensors"), "-o", str(tmp_path / "out")]
    alone = CliRunner().invoke(app, said).stdout
    beside = CliRunner().invoke(app, [*said, "--after", str(tmp_path / "after.safetensors")]).stdout
    assert "No file holds them yet" in " ".join(alone.split())
    assert "No file holds them yet" not in " ".join(beside.split())


def test_probabilities_are_compared_with_the_scores_that_a_fix_wrote(tmp_path):
    samples = samples_of()
    probs = np.asarray(samples.before.probs())
    np.savez(tmp_path / "before.npz", probs=probs, labels=np.asarray(samples.labels))
    samples.after.save(tmp_path / "after.safetensors")
    given = ["report", tmp_path / "before.npz", "--kind", "probs"]
    given += ["--after", tmp_path / "after.safetensors", "-o", tmp_path / "out"]
    done = CliRunner().invoke(app, list(map(str, given)))
    assert done.exit_code == 0, done.output
