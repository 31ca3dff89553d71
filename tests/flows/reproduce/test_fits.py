"""The folders of fit runs, and the sets that they are made on."""

import gzip
import json
import math
import sys
from collections import Counter
from dataclasses import replace
from itertools import product
from pathlib import Path

import numpy as np
import pytest

from longtail.core import Prior, Scores
from longtail.data import caltech101_long_tailed, pack_features
from longtail.flows.fit import fit
from longtail.flows.fit_methods import METHODS, Method
from longtail.flows.reproduce import fits
from longtail.flows.reproduce.collecting import keep, kept_in
from longtail.flows.reproduce.experiment import Cell, Column, Fit
from longtail.flows.reproduce.fits import FitSet, long_tailed_set
from longtail.flows.reproduce.kept import in_float16
from longtail.flows.reproduce.measures import EDGES
from longtail.flows.reproduce.measuring import measured, summed
from longtail.flows.reproduce.plan import RunNames
from longtail.metrics import balanced_accuracy, evaluate

sys.path.insert(0, str(Path(__file__).parent))
from worlds import experiment

C, D = 4, 5
SMALL = FitSet("cifar100-features", 40, C, "features of C classes")
WORDS = ("alpha beta beta", "beta gamma", "gamma gamma gamma delta", "alpha delta epsilon")


def drawn(each, seed):
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(C), each)
    return (3 * np.eye(C, D)[labels] + rng.normal(size=(len(labels), D))).astype(np.float32), labels


@pytest.fixture
def data(tmp_path, monkeypatch):
    monkeypatch.setitem(fits.SETS, "cifar100", SMALL)
    pack_features(tmp_path / "f.safetensors", {"train": drawn(60, 0), "test": drawn(25, 1)})
    return {"cifar100-features": tmp_path / "f.safetensors"}


def text_set(tmp_path, monkeypatch, rows, name="r52", classes=2, packed=False):
    monkeypatch.setitem(fits.SETS, name, FitSet(name, 3, classes, "some texts", True))
    file = tmp_path / ("texts.tsv.gz" if packed else "texts.tsv")
    content = "".join("\t".join(row) + "\n" for row in rows).encode()
    file.write_bytes(gzip.compress(content) if packed else content)
    return {name: file}


def test_the_training_part_is_cut_to_the_ratio_and_the_seed_draws_it(data):
    first, again, other = (long_tailed_set(Fit("cifar100", 8.0), seed, data) for seed in (0, 0, 1))
    assert first.counts.tolist() == [40, 20, 10, 5]
    assert len(first.part("test").labels) == 25 * C
    rows = [each.part("train").features for each in (first, again, other)]
    assert np.array_equal(rows[0], rows[1])
    assert not np.array_equal(rows[0], rows[2])


def test_without_a_ratio_four_fifths_of_each_class_are_drawn(data):
    assert long_tailed_set(Fit("cifar100", None), 0, data).counts.tolist() == [48] * C


def test_caltech_is_in_the_package():
    made, expected = long_tailed_set(Fit("caltech", 50.0), 3, {}), caltech101_long_tailed(3, 50)
    assert np.array_equal(made.part("train").features, expected.train_features)
    assert np.array_equal(made.part("test").labels, expected.test_labels)
    assert made.classes == expected.classes


def test_texts_become_the_weights_of_their_words(tmp_path, monkeypatch):
    rows = [("train", label, text) for label, text in zip("yyxx", WORDS, strict=True)]
    rows += [("test", "y", "alpha alpha zeta"), ("test", "x", "delta")]
    data = text_set(tmp_path, monkeypatch, rows, packed=True)
    made = long_tailed_set(Fit("r52", 1.0), 0, data)
    assert made.classes == ("x", "y")
    words = sorted({word for text in WORDS for word in text.split()})
    documents = {word: sum(word in text.split() for text in WORDS) for word in words}
    weights = {word: 1 + math.log((1 + 4) / (1 + documents[word])) for word in words}

    def naive(text):
        counts = Counter(text.split())
        row = [(1 + math.log(counts[w])) * weights[w] if counts[w] else 0.0 for w in words]
        length = math.sqrt(sum(value**2 for value in row))
        return [value / length for value in row]

    expected = sorted(naive(text) for text in WORDS)
    np.testing.assert_allclose(sorted(made.part("train").features.tolist()), expected, atol=1e-6)
    test = [naive("alpha alpha"), naive("delta")]
    np.testing.assert_allclose(made.part("test").features, test, atol=1e-6)
    assert made.part("test").labels.tolist() == [1, 0]


def test_what_is_expected_of_data_is_said(data, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="cifar100-features=PATH"):
        long_tailed_set(Fit("cifar100", 8.0), 0, {})
    absent = {"cifar100-features": tmp_path / "no.npz"}
    with pytest.raises(FileNotFoundError, match="features of C classes"):
        long_tailed_set(Fit("cifar100", 8.0), 0, absent)
    train_only = tmp_path / "train.safetensors"
    pack_features(train_only, {"train": drawn(9, 0)})
    with pytest.raises(ValueError, match="4 classes, train and test"):
        long_tailed_set(Fit("cifar100", 8.0), 0, {"cifar100-features": train_only})
    texts = text_set(tmp_path, monkeypatch, [("train", "a", "one"), ("dev", "b", "two")])
    with pytest.raises(ValueError, match="line 2"):
        long_tailed_set(Fit("r52", None), 0, texts)
    texts = text_set(tmp_path, monkeypatch, [("train", "a", "one"), ("test", "a", "two")])
    with pytest.raises(ValueError, match="1 labels"):
        long_tailed_set(Fit("r52", None), 0, texts)


def test_a_folder_holds_the_test_scores_that_fit_has_for_each_method(data, tmp_path, monkeypatch):
    def fail(task):
        raise ValueError("no such luck")

    few = {name: METHODS[name] for name in ("linear", "adjusted_tau", "ncm", "lws")}
    for name in set(METHODS) - set(few):
        monkeypatch.delitem(METHODS, name)
    monkeypatch.setitem(METHODS, "broken", Method("broken", "", fail))
    run, folder = Fit("cifar100", 8.0), tmp_path / "runs" / "fit-cifar100-8-s2"
    fits.run(run, 2, folder, data)
    whole = fit(long_tailed_set(run, 2, data), methods=tuple(few), seed=2)
    about = json.loads((folder / "metrics.json").read_text())
    assert about["weight_decay"] == pytest.approx(whole.weight_decay)
    assert about["failed"] == {"broken": "no such luck"}
    assert {file.stem for file in folder.glob("*.safetensors")} == set(few)
    for each in whole.table:
        scores = Scores.load(folder / f"{each.name}.safetensors")
        assert scores.logits.dtype == np.float16
        assert scores.counts.tolist() == [40, 20, 10, 5]
        expected = each.test["balanced_accuracy"].value
        assert balanced_accuracy(scores) == pytest.approx(expected, abs=0.011)
    linear = Scores.load(folder / "linear.safetensors")
    assert linear.carried.is_close(Prior.of([40, 20, 10, 5]))
    moment = (folder / "metrics.json").stat().st_mtime_ns
    fits.run(run, 2, folder, {})
    assert (folder / "metrics.json").stat().st_mtime_ns == moment


def test_what_is_kept_of_a_fit_is_small_and_says_what_the_scores_say(data, tmp_path, monkeypatch):
    few = ("linear", "adjusted")
    for name in set(METHODS) - set(few):
        monkeypatch.delitem(METHODS, name)
    run, columns = Fit("cifar100", 8.0), (Column("All", "accuracy"), Column("NLL", "nll"))
    cells = (Cell("a", "", run, head="linear"), Cell("b", "", run, "under the target", "linear"))
    table = experiment(columns, cells=cells, seeds=(0, 1))
    names = RunNames({})
    for seed in (0, 1):
        fits.run(run, seed, tmp_path / "runs" / names(run, seed), data)
    keep(tmp_path, tmp_path / "kept", names, [table], recipe_of=None)
    assert len(list((tmp_path / "kept").glob("*.answers.safetensors"))) == 2
    for place in (tmp_path, tmp_path / "kept"):
        kept_of = kept_in(place, names, [table], recipe_of=None)
        kept = {seed: kept_of(run, seed) for seed in (0, 1)}
        for cell, column in product(cells, columns):
            made = measured(kept, cell, column, EDGES["LA"])
            for seed, value in zip(made.seeds, made.values, strict=True):
                stored = Scores.load(tmp_path / "runs" / names(run, seed) / "linear.safetensors")
                wide = replace(stored, logits=stored.logits.astype(np.float32))
                shown = evaluate(wide if cell.row == "a" else wide.under(Prior.uniform(C)))
                expected = {"accuracy": 100 * shown["balanced_accuracy"], "nll": shown["nll"]}
                assert value == pytest.approx(expected[column.measure], rel=1e-5)
            assert summed([(1.0, made)]).reach() > 0


def test_a_run_that_breaks_off_leaves_no_folder_and_the_next_one_is_whole(tmp_path):
    folder = tmp_path / "runs" / "x-s0"

    def broken():
        with fits.staged_folder(folder) as aside:
            (aside / "half.txt").write_text("half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        broken()
    assert not folder.exists()
    with fits.staged_folder(folder) as aside:
        (aside / "whole.txt").write_text("whole")
    assert [file.name for file in folder.iterdir()] == ["whole.txt"]


def test_half_precision_keeps_what_distances_of_hundreds_tell_apart():
    logits = np.array([[-700.3, -700.1, -900.0], [-1e6, -2.0, -3.0]])
    scores = in_float16(fits.lowered(Scores(logits, labels=[1, 1])))
    assert scores.predict().tolist() == [1, 1]
    wide = Scores(scores.logits.astype(np.float64))
    np.testing.assert_allclose(wide.probs(), Scores(logits).probs(), atol=1e-3)


@pytest.mark.parametrize("content", [gzip.compress(bytes(2**20)), b"no gzip at all"])
def test_a_packed_file_of_any_size_and_a_damaged_one_are_told_by_name(
    tmp_path, monkeypatch, content
):
    monkeypatch.setattr(fits, "_MOST_BYTES", 2**16)
    data = text_set(tmp_path, monkeypatch, [], packed=True)
    data["r52"].write_bytes(content)
    with pytest.raises(ValueError, match=r"texts\.tsv\.gz cannot be read as a set of texts"):
        long_tailed_set(Fit("r52", 1.0), 0, data)
