"""Every command that docs, pages and messages name can be given, and those that are whole run."""

import json
import os
import shutil
from functools import cache
from pathlib import Path
from unittest.mock import create_autospec

import click
import numpy as np
import pytest
import yaml
from click.testing import CliRunner

import longtail as lt
from command_texts import (
    DOCS,
    OPTION,
    OTHERS,
    SOURCES,
    block_commands,
    blocks,
    is_whole,
    option_of,
    python_blocks,
    sentence_commands,
    spans,
    texts,
)
from longtail import images
from longtail.cli import app
from longtail.flows.train.reading import overridden
from longtail.recipes.catalogue import read_recipe

IN_DOCS = sorted({words for path in DOCS for words in block_commands(path)})
IN_SENTENCES = sorted(
    {words for path in SOURCES for text in texts(path) for words in sentence_commands(text)}
    | {words for path in DOCS for span in spans(path) for words in sentence_commands(span)}
)
PYTHON = {path.name: python_blocks(path) for path in DOCS if path.name != "gallery.md"}
PYTHON = {page: code for page, code in PYTHON.items() if code}
WHOLE = [words for words in IN_SENTENCES if is_whole(words)]
# They fail, to show how an error looks (tests/cli/test_docs.py), or are run by tests of their own.
ELSEWHERE = (
    ("trian", "cifar100-lt-lade"),
    ("recipes", "cifar100-lt-lade", "loss.alhpa=0.1"),
    ("audit", "labels.csv"),
)
SLOW = ("demo", "doctor")

STAND_INS = {
    "SCORES": "val.npz",
    "VAL": "val.npz",
    "KIND": "logits",
    "COUNTS": "counts.json",
    "{}": "counts.json",
    "LABELS": "train_labels.csv",
    "FILE": "adjuster.json",
    "NAME": "cifar100-lt-la-quick",
    "OUT": "out",
    "...": "cifar.npz",
    "PATH": "cifar.npz",
    "cifar-100-binary.tar.gz": "cifar.npz",
    "cifar-100-python.tar.gz": "cifar.npz",
}
KEPT = str(Path(__file__).parents[1] / "results" / "scores")
REPRODUCED = {
    "NAME": "lade-figure-2",
    "NAME=PATH": "cifar100=cifar.npz",
    "cifar100=cifar-100-binary.tar.gz": "cifar100=cifar.npz",
    "RESULTS": KEPT,
    "results/scores": KEPT,
    "docs/ledger.md": "ledger.md",
}
# A training command reads its data, builds everything and stops; the archive has few images.
LOSSES = {"la": "logit_adjusted", "ce": "cross_entropy"}
DRY = ["--dry-run", "data.official=false", "data.imbalance_ratio=2"]
TINY = """
data: {kind: npz, validation_share: 0.2}
backbone: {name: mlp, inputs: 192, hidden: [8]}
epochs: 1
batch_size: 32
"""


def longtail(*words):
    done = CliRunner().invoke(app, list(words), prog_name="longtail")
    assert done.exit_code == 0, f"longtail {' '.join(words)}\n{done.output}"
    return done


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """A folder with a small file under every name that a command of the docs reads."""
    folder = tmp_path_factory.mktemp("commands")
    random = np.random.default_rng(0)
    labels, counts = np.arange(90) % 3, [60, 20, 10]

    def scores(skill):
        logits = random.normal(size=(90, 3)) + skill * np.eye(3)[labels]
        return logits + np.log(counts) * (skill < 2)

    for name in ("val", "test", "new"):
        np.savez(folder / f"{name}.npz", logits=scores(1.5), labels=labels)
    (folder / "counts.json").write_text(json.dumps(counts))
    (folder / "costs.csv").write_text("class,cost\n0,1\n1,5\n2,20\n")
    (folder / "train_labels.csv").write_text("label\n" + "\n".join("aaaabbc" * 9))
    features = random.normal(size=(90, 4)).astype(np.float32) + labels[:, None]
    np.savez(folder / "features.npz", features=features, labels=labels)
    np.save(folder / "features.npy", features)
    np.save(folder / "new.npy", features + random.normal(size=features.shape).astype(np.float32))
    np.save(folder / "labels.npy", labels)
    lt.data.pack_features(folder / "features.safetensors", {"train": (features, labels)})
    for name, carried in (("before", counts), ("scores", counts), ("after", [1, 1, 1])):
        made = lt.Scores(scores(1.5), labels, carried=lt.Prior.of(carried), counts=counts)
        made.save(folder / f"{name}.safetensors")
    probs = np.exp(scores(1.5))
    rows = np.column_stack([probs / probs.sum(1, keepdims=True), labels])
    lines = [f"{a},{b},{c},{'abc'[int(label)]}" for a, b, c, label in rows]
    (folder / "scores.csv").write_text("\n".join(["a,b,c,label", *lines]))
    for name in ("a/abbey", "z/zen_garden"):
        (folder / "SUN397" / name).mkdir(parents=True)
        for at in range(100):
            (folder / "SUN397" / name / f"{at}.jpg").touch()
    (folder / "counts-of-names.json").write_text('{"a": 60, "b": 20, "c": 10}')
    write_images(folder / "images.npz", classes=3, size=8)
    write_images(folder / "cifar.npz", classes=100, size=32)
    (folder / "tiny.yaml").write_text(TINY)
    for run in ("la", "ce"):
        recipe = [str(folder / "tiny.yaml"), "--data", str(folder / "images.npz")]
        longtail("train", *recipe, "-o", str(folder / "runs" / run), f"loss={LOSSES[run]}")
    options = ["--kind", "logits", "--counts", str(folder / "counts.json"), "-o", str(folder / "f")]
    longtail("fix", str(folder / "val.npz"), *options)
    shutil.copy(folder / "f" / "adjuster.json", folder / "adjuster.json")
    return folder


def write_images(path, classes, size):
    random, labels = np.random.default_rng(0), np.repeat(np.arange(classes), 8)
    pixels = random.integers(0, 256, (len(labels), 3, size, size)).astype(np.uint8)
    parts = {"train_images": pixels, "train_labels": labels}
    np.savez(path, **parts, test_images=pixels[::2], test_labels=labels[::2])


@pytest.fixture
def inside(prepared, tmp_path, monkeypatch):
    """The prepared folder as the current one; what commands write goes to a copy."""
    shutil.copytree(prepared, tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")


def runnable(words):
    """The command on the prepared files, as little of it as shows that it can be run."""
    name, *rest = [STAND_INS.get(word, word) for word in words]
    if name == "reproduce":
        rest = [REPRODUCED.get(word, word) for word in words[1:]]
        makes = rest and not rest[0].startswith("-") and "--table" not in rest
        return [name, *rest, *(["--dry-run"] if makes and "--dry-run" not in rest else [])]
    if name in ("train", "sweep"):
        rest = ["cifar.npz" if word == "DIR" else word for word in rest]
        return [name, *(word.replace("runs/", "begun/") for word in rest), *DRY]
    if name == "features":  # of the tiny run, whose data are the tiny images
        return [name, *("images.npz" if word in ("DIR", "cifar.npz") else word for word in rest)]
    if name == "report" and "scores.csv" in rest:
        return [name, *("counts-of-names.json" if word == "counts.json" else word for word in rest)]
    return [name, *rest]


@pytest.mark.parametrize(
    "words", [w for w in IN_DOCS if w not in ELSEWHERE and w[0] not in SLOW], ids=" ".join
)
def test_a_command_of_the_docs_runs(words, inside):
    longtail(*runnable(words))


@pytest.mark.parametrize("words", [w for w in WHOLE if w[0] not in SLOW], ids=" ".join)
def test_a_command_that_a_sentence_advises_runs(words, inside):
    longtail(*runnable(words))


@pytest.mark.parametrize("words", IN_SENTENCES, ids=" ".join)
def test_a_command_in_a_sentence_has_the_options_it_names(words):
    command = app.commands[words[0]]
    for word, value in zip(words[1:], (*words[2:], ""), strict=True):
        if not word.startswith("-") or word == "--help":
            continue
        option = option_of(command, word)
        assert option is not None, f"longtail {words[0]} has no {word}"
        if isinstance(option.type, click.Choice):
            assert STAND_INS.get(value, value) in option.type.choices


@cache
def every_option():
    context = click.Context(app)
    return OTHERS | {
        name
        for command in app.commands.values()
        for option in command.get_params(context)
        for name in (*option.opts, *option.secondary_opts)
    }


def test_every_option_that_a_text_names_is_one():
    all_texts = [(path, path.read_text()) for path in DOCS]
    all_texts += [(path, text) for path in SOURCES for text in texts(path)]
    named = {(path.name, name) for path, text in all_texts for name in OPTION.findall(text)}
    unknown = {(path, name) for path, name in named if name not in every_option()}
    assert {(path, name) for path, name in unknown if not name.startswith("--lt-")} == set()


@pytest.mark.parametrize(
    ("language", "text"),
    [block for path in DOCS for block in blocks(path) if block[0] in ("yaml", "json")],
    ids=lambda value: value[:30].replace("\n", " "),
)
def test_a_recipe_of_the_docs_is_one(language, text, tmp_path):
    yaml.safe_load(text)
    (tmp_path / f"recipe.{language}").write_text(text)
    read_recipe(tmp_path / f"recipe.{language}")


@pytest.mark.parametrize("page", PYTHON)
def test_the_python_of_the_docs_that_needs_files_runs_on_small_ones(page, inside):
    """The gallery's calls are run by the script that makes it."""
    random, labels = np.random.default_rng(0), np.repeat(np.arange(3), [60, 20, 10])
    features = random.normal(size=(90, 4)).astype(np.float32) + labels[:, None]
    names = {
        "fitting.md": {"lt": lt, "os": os, "features": features, "labels": labels}
        | {"x2": features[::2], "y2": labels[::2]},
        "images.md": {"images": create_autospec(images), "folder": "cifar"},
        "training.md": {
            "recipe": overridden(read_recipe("tiny.yaml"), ["data.path=images.npz"]),
            "images": np.load("images.npz")["test_images"],
        },
    }[page]
    for run in ("sgd", "adam", "ncm", "elm"):
        shutil.copytree("runs/la", f"runs/{run}")
    for text in PYTHON[page]:
        exec(text, names)


def test_there_are_commands_to_look_at():
    assert len(IN_DOCS) > 25
    assert len(WHOLE) >= 5
    assert ("fix", "--carried", "measure") in IN_SENTENCES
    assert any(words[:2] == ("fix", "SCORES") for words in WHOLE)
