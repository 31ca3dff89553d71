"""What is kept of runs: small files from which every number comes out the same."""

import shutil
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from longtail.core.tensor_file import map_tensor_file, save_tensors
from longtail.flows.reproduce.collecting import keep, kept_in
from longtail.flows.reproduce.experiment import Cell, Column, Fit, Synthetic, Train
from longtail.flows.reproduce.kept import Answers, Kept, model_of, sign
from longtail.flows.reproduce.measures import EDGES
from longtail.flows.reproduce.measuring import measured
from longtail.flows.reproduce.plan import RunNames
from longtail.flows.reproduce.ways import Way, asked, measures_asked
from longtail.flows.results import write_json
from longtail.flows.train.reading import recipe_from
from longtail.flows.train.yaml_text import write_yaml

sys.path.insert(0, str(Path(__file__).parent))
from worlds import CE, COUNTS, experiment, scores

NAMES = RunNames({"ce": CE})
RECIPE = recipe_from({"data": "cifar100"})
COLUMNS = (
    Column("All", "accuracy"),
    Column("ECE", "ece"),
    Column("F", "accuracy", test="forward-5"),
)
CELLS = (
    Cell("a", "", CE, "under the target"),
    Cell("b", "", CE, head="crt"),
    Cell("c", "", Fit("cifar100", 10.0), head="linear"),
    Cell("d", "", Synthetic("two-gaussians", 3), head="ERM"),
)
TABLE = experiment(COLUMNS, rows=("a", "b", "c", "d"), cells=CELLS)


@pytest.fixture
def results(tmp_path):
    """A folder of results with a finished run of each kind."""
    from longtail.flows.train.reading import plain

    run = tmp_path / "runs" / "ce-s0"
    run.mkdir(parents=True)
    scores(1.5).save(run / "scores-test.safetensors")
    (run / "metrics.json").write_text("{}")
    (run / "recipe.yaml").write_text(write_yaml(plain(RECIPE)))
    after = tmp_path / "after" / "ce-s0"
    after.mkdir(parents=True)
    scores(2.0, 1, carried=None).save(after / "crt.safetensors")
    (after / "numbers.json").write_text('{"cdnv": 0.25}')
    fit = tmp_path / "runs" / "fit-cifar100-10-s0"
    fit.mkdir()
    scores(1.0, 2).save(fit / "linear.safetensors")
    (fit / "metrics.json").write_text('{"set": "cifar100", "imbalance_ratio": 10.0, "seed": 0}')
    drawn = tmp_path / "runs" / "two-gaussians-3-s0"
    drawn.mkdir()
    (drawn / "numbers.json").write_text('{"ERM|as trained": {"accuracy": [1.0, 2.0, 3.0]}}')
    return tmp_path


def numbers(folder):
    kept = kept_in(folder, NAMES, [TABLE], lambda run: RECIPE)
    made = {}
    for cell in CELLS:
        for column in COLUMNS:
            run = kept(cell.run, 0)
            each = None if run is None else measured({0: run}, cell, column, EDGES["LA"])
            made[cell.row, column.name] = None if each is None else each.values[0]
    return made


def test_a_table_is_the_same_from_runs_and_from_what_was_kept(results, tmp_path):
    from_runs = numbers(results)
    assert sum(value is None for value in from_runs.values()) == 1  # the drawn problem has no ECE
    files = keep(results, tmp_path / "kept", NAMES, [TABLE], lambda run: RECIPE)
    assert set(files.names) == {"ce-s0", "fit-cifar100-10-s0", "two-gaussians-3-s0"}
    assert files.total == sum(f.stat().st_size for f in (tmp_path / "kept").iterdir())
    again = numbers(tmp_path / "kept")
    for place, value in from_runs.items():
        assert again[place] == (None if value is None else pytest.approx(value, rel=1e-3)), place
    assert again["a", "All"] == from_runs["a", "All"]  # answers are exact


def test_where_scores_would_be_too_large_answers_are_kept(results, tmp_path):
    keep(results, tmp_path / "kept", NAMES, [TABLE], lambda run: RECIPE)  # of which none stays
    files = keep(results, tmp_path / "kept", NAMES, [TABLE], lambda run: RECIPE, most=1000)
    assert files.without_scores == ("ce-s0",)
    assert not (tmp_path / "kept" / "ce-s0.safetensors").exists()
    assert numbers(tmp_path / "kept")["a", "All"] == numbers(results)["a", "All"]


def test_a_run_of_any_seed_is_kept(results, tmp_path):
    (results / "runs" / "two-gaussians-3-s0").rename(results / "runs" / "two-gaussians-3-s12")
    files = keep(results, tmp_path / "kept", NAMES, [TABLE], lambda run: RECIPE)
    assert "two-gaussians-3-s12" in files.names


def test_what_was_kept_of_a_run_before_is_replaced_whole(results, tmp_path):
    place = tmp_path / "kept"
    keep(results, place, NAMES, [TABLE], lambda run: RECIPE)
    assert len(list(place.glob("ce-s0.*"))) == 3
    shutil.rmtree(results / "after")
    scores(0.5, 7).save(results / "runs" / "ce-s0" / "scores-test.safetensors")
    keep(results, place, NAMES, [TABLE], lambda run: RECIPE)
    assert [file.name for file in place.glob("ce-s0.*")] == ["ce-s0.safetensors"]
    keep(results, place, NAMES, [TABLE], lambda run: RECIPE, most=1000)
    assert [file.name for file in place.glob("ce-s0.*")] == ["ce-s0.answers.safetensors"]
    assert numbers(place)["a", "All"] == numbers(results)["a", "All"]


@pytest.mark.parametrize("end", ["safetensors", "answers.safetensors", "json"])
@pytest.mark.parametrize("content", ['{"mine": 1.0}', "notes"])
def test_a_file_of_the_same_name_that_is_not_of_the_run_stays(results, tmp_path, end, content):
    file = tmp_path / "kept" / f"ce-s0.{end}"
    file.parent.mkdir()
    file.write_text(content)
    with pytest.raises(ValueError, match=f"ce-s0.{end}"):
        keep(results, file.parent, NAMES, [TABLE], lambda run: RECIPE)
    assert file.read_text() == content
    assert not list(file.parent.glob(".ce*"))


@pytest.mark.parametrize("end", ["safetensors", "answers.safetensors", "json"])
def test_a_file_under_the_name_of_another_run_is_refused(results, tmp_path, end):
    keep(results, tmp_path / "kept", NAMES, [TABLE], lambda run: RECIPE)
    assert Kept.load(tmp_path / "kept", "ce-s0") is not None
    shutil.copy(tmp_path / "kept" / f"ce-s0.{end}", tmp_path / f"la-s0.{end}")
    with pytest.raises(ValueError, match=f"la-s0.{end} is not of the run la-s0 but of ce-s0"):
        Kept.load(tmp_path, "la-s0")


def test_what_is_kept_is_written_the_same_twice(results, tmp_path):
    for name in ("one", "two"):
        keep(results, tmp_path / name, NAMES, [TABLE], lambda run: RECIPE)
    for file in (tmp_path / "one").iterdir():
        assert file.read_bytes() == (tmp_path / "two" / file.name).read_bytes()


def test_a_folder_of_another_recipe_is_refused(results):
    kept = kept_in(results, NAMES, [TABLE], lambda run: recipe_from({"data": "cifar10"}))
    with pytest.raises(ValueError, match="of another recipe"):
        kept(CE, 0)


@pytest.mark.parametrize(
    "about",
    [
        '{"set": "caltech", "imbalance_ratio": 10.0, "seed": 0}',
        '{"set": "cifar100", "imbalance_ratio": 50.0, "seed": 0}',
        '{"set": "cifar100", "imbalance_ratio": null, "seed": 0}',
        '{"set": "cifar100", "imbalance_ratio": 10.0, "seed": 10}',
        '{"set": "cifar100"}',
    ],
)
def test_the_folder_of_another_fit_is_refused(results, about):
    (results / "runs" / "fit-cifar100-10-s0" / "metrics.json").write_text(about)
    with pytest.raises(ValueError, match=r"fit-cifar100-10-s0/metrics\.json"):
        numbers(results)


def test_heads_and_measures_of_another_model_are_refused(results):
    model = results / "runs" / "ce-s0" / "model.safetensors"
    head, measures = (results / "after" / "ce-s0" / n for n in ("crt.safetensors", "numbers.json"))
    model.write_bytes(b"one")
    sign(head, model_of(model.parent))
    write_json(measures, {"cdnv": 0.25} | model_of(model.parent))
    assert numbers(results)["b", "All"] is not None
    model.write_bytes(b"another")
    with pytest.raises(ValueError, match="is not of the model"):
        numbers(results)
    scores(2.0, 1, carried=None).save(head)  # which says nothing
    with pytest.raises(ValueError, match=r"numbers\.json is not of the model"):
        numbers(results)


@pytest.mark.parametrize("change", ["labels", "counts"])
def test_heads_for_other_samples_are_refused(results, change):
    other = scores(2.0, 1)
    other = replace(other, **{change: getattr(other, change)[::-1].copy()})
    other.save(results / "after" / "ce-s0" / "crt.safetensors")
    with pytest.raises(ValueError, match="for other test samples or training counts"):
        numbers(results)


@pytest.mark.parametrize("content", ["", '{"cdnv": 0.', "5", "[]", '{"cdnv": "a"}', '{"a|b": 1}'])
@pytest.mark.parametrize("place", ["runs/two-gaussians-3-s0", "after/ce-s0"])
def test_damaged_numbers_are_told_with_their_file(results, place, content):
    (results / place / "numbers.json").write_text(content)
    with pytest.raises(ValueError, match=f"{place}/numbers.json cannot be read as numbers"):
        numbers(results)


@pytest.mark.parametrize("name", ["runs/ce-s0/scores-test", "after/ce-s0/crt"])
def test_scores_without_labels_are_told_with_their_file(results, name):
    file = results / f"{name}.safetensors"
    replace(scores(1.0), labels=None).save(file)
    with pytest.raises(ValueError, match=f"{name}.*no labels"):
        numbers(results)


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("labels", None),
        ("labels", lambda labels: labels + 1),  # of a class that is not there
        ("labels", lambda labels: labels.astype(np.float32)),
        ("counts", lambda counts: counts - 7),
        ("a|x|y|right", lambda right: right[:-1]),  # cut: were the rest wrong?
        ("a|x|y|right", lambda right: right.astype(np.float32)),
        ("a|x|y|right", lambda right: right[None]),
        ("a|x|y|nll", lambda nll: nll[:-1]),
    ],
)
def test_damaged_answers_are_told_with_their_file(tmp_path, name, change):
    Kept(answers={"a|x|y": Answers.of(scores(1.0))}).save(tmp_path, "r")
    file = tmp_path / "r.answers.safetensors"
    tensors = {key: np.array(each) for key, each in map_tensor_file(file)[1].items()}
    before = tensors.pop(name)
    save_tensors(file, tensors | ({} if change is None else {name: change(before)}), {})
    with pytest.raises(ValueError, match=r"r\.answers\.safetensors cannot be read as answers"):
        Kept.load(tmp_path, "r")


def test_a_recipe_of_older_words_is_the_same_run(results):
    file = results / "runs" / "ce-s0" / "recipe.yaml"
    text = file.read_text()
    assert "validation_share" in text
    file.write_text(text.replace("validation_share", "held_out"))
    assert kept_in(results, NAMES, [TABLE], lambda run: RECIPE)(CE, 0) is not None


def test_a_run_that_has_not_ended_is_not_there(results):
    (results / "runs" / "ce-s0" / "metrics.json").unlink()
    assert kept_in(results, NAMES, [TABLE], lambda run: RECIPE)(CE, 0) is None
    assert kept_in(results, NAMES, [TABLE], lambda run: RECIPE)(CE, 1) is None


def test_answers_come_back_with_what_was_asked_for(tmp_path):
    full, small = (Answers.of(scores(1.0), sure) for sure in (True, False))
    Kept(answers={"a|as trained|balanced": full, "b|x|y": small}).save(tmp_path, "r")
    back = Kept.load(tmp_path, "r")
    assert back.answers["b|x|y"].nll is None
    read = back.answers["a|as trained|balanced"]
    assert np.array_equal(read.right, full.right)
    assert np.array_equal(read.labels, full.labels)
    assert read.counts.tolist() == COUNTS.tolist()
    assert read.nll == pytest.approx(full.nll, rel=1e-3)
    assert Kept.load(tmp_path, "other") is None


def test_ways_and_measures_are_those_that_tables_ask_for():
    ways = asked([TABLE])
    assert ways[CE][Way("", "under the target", "balanced")] is True  # an ECE
    assert ways[CE][Way("", "under the target", "forward-5")] is False
    assert ways[CE][Way("crt", "as trained", "balanced")] is True
    figure = experiment((Column("x", "cdnv"), Column("y", "accuracy"), Column("z", "recall")))
    # With what its picture is drawn of.
    assert measures_asked([figure]) == dict.fromkeys((CE, Train("la")), ("cdnv", "tsne"))


def test_what_was_kept_before_counts_as_much(results, tmp_path):
    place = tmp_path / "kept"
    most = sum(f.stat().st_size for f in (results / "runs" / "ce-s0").glob("scores-test.*"))
    place.mkdir()
    (place / "other-s0.json").write_text(" " * most)
    files = keep(results, place, NAMES, [TABLE], lambda run: RECIPE, most=most)
    assert "ce-s0" in files.without_scores
    assert files.total > most
