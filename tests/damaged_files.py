"""Whole files of every kind that commands read, and ways to damage them; all by a seed."""

import gzip
import io
import json
import random
import struct
import zipfile
from pathlib import Path

import numpy as np
from safetensors.numpy import save_file

from longtail import Prior, Scores
from longtail.data import pack_features
from longtail.posthoc import LogitAdjustment, Temperature, save_adjusters

NASTY = [
    *(b"-1", b"0", b"1e999", b"nan", b"18446744073709551616", b"9223372036854775808"),
    *(b"99999999999", b"null", b"true", b"{}", b"[]", b"[[]]", b'""', b"*a", b"&a", b"!!int"),
    *(b'"\\u001b[31m"', b'"\\ud800"', b"!!bool", b"<<:", b"-", b"../../x", b"\xff", b"\x00"),
    *(b"\x1b[2J", b"\xe2\x80\xae", b" ", b"\n", b",", b'"', b"'", b"\r", b"\t"),
    *(b"[" * 3000, b"9" * 5000),
]

RECIPE = """
about: Small.
data: {kind: npz, validation_share: 0.2}
backbone: {name: mlp, inputs: 192, hidden: [8]}
loss: {name: logit_adjusted, tau: 1.0}
augment: [flip]
epochs: 1
batch_size: 16
"""


def write_whole_files(folder: Path) -> None:
    """One file of each kind, all of the same three classes."""
    draws = np.random.default_rng(0)
    labels = np.arange(60) % 3
    logits = draws.normal(size=(60, 3)).round(3)
    logits[np.arange(60), labels] += 2
    names = ("cat", "dog", "fox")
    np.savez_compressed(folder / "scores.npz", logits=logits, labels=labels, classes=names)
    np.save(folder / "scores.npy", logits)
    rows = [",".join((*map(str, row), names[y])) for row, y in zip(logits, labels, strict=True)]
    table = "\n".join((",".join((*names, "label")), *rows)) + "\n"
    (folder / "scores.csv").write_text(table)
    (folder / "scores.csv.gz").write_bytes(gzip.compress(table.encode()))
    scores = Scores(logits, labels, carried=[40, 15, 5], counts=[40, 15, 5], classes=names)
    scores.save(folder / "scores.safetensors")
    save_file({"logits": logits, "labels": labels}, folder / "foreign.safetensors")
    features = draws.normal(size=(60, 4)).astype(np.float32) + labels[:, None]
    pack_features(folder / "features.safetensors", {"train": (features, labels)}, classes=names)
    np.savez(folder / "features.npz", features=features, labels=labels)
    np.save(folder / "features.npy", features)
    (folder / "counts.json").write_text(json.dumps({"cat": 40, "dog": 15, "fox": 5}))
    (folder / "list-of-counts.json").write_text("[40, 15, 5]")
    (folder / "weights.json").write_text("[0.5, 0.25, 0.25]")
    np.save(folder / "labels.npy", labels)
    np.savez(folder / "labels.npz", train_labels=labels, test_labels=labels[:9])
    (folder / "labels.csv").write_text("file,label\n" + "".join(f"{y}.png,{y}\n" for y in labels))
    (folder / "labels.txt").write_text("".join(f"{y}.png {y}\n" for y in labels))
    (folder / "names.json").write_text(json.dumps(names))
    steps = [Temperature(1.5), LogitAdjustment([40, 15, 5], tau=1.2)]
    save_adjusters(folder / "adjuster.json", steps, carried=Prior.of([40, 15, 5]), classes=names)
    (folder / "recipe.yaml").write_text(RECIPE)
    images = draws.integers(0, 255, (60, 3, 8, 8)).astype(np.uint8)
    np.savez(folder / "images.npz", train_images=images, train_labels=labels)
    (folder / "0.ppm").write_bytes(b"P6\n8 8\n255\n" + images[0].tobytes())
    (folder / "list.txt").write_text("".join(f"0.ppm {y}\n" for y in labels))
    notes = {
        "images": [{"id": at, "file_name": "0.ppm"} for at in range(6)],
        "annotations": [{"image_id": at, "category_id": at % 3} for at in range(6)],
        "categories": [{"id": at, "name": name} for at, name in enumerate(names)],
    }
    (folder / "list.json").write_text(json.dumps(notes))
    (folder / "run").mkdir()
    scores.save(folder / "run" / "scores.safetensors")
    (folder / "run" / "metrics.json").write_text(json.dumps({"steps": [], "measured_on": "x"}))


_FIX = ("fix", "{}", "--kind", "logits", "--tau", "1", "--calibrate", "none", "-o", "out")
_UNNAMED = (*_FIX, "--labels", "labels.npy", "--carried", "uniform")
_UNNAMED = tuple(word.replace("{}", "scores.npy") for word in _UNNAMED)
_TRAIN = ("train", "{recipe}", "--data", "{}", "--dry-run")
_LISTS = ("train", "{recipe}", "data.kind=lists", "--data", ".", "--dry-run")

# From the file to the words of a command that reads it; {} is the damaged copy.
READERS = {
    "scores.npz": (*_FIX, "--counts", "counts.json"),
    "scores.npy": (*_FIX, "--counts", "list-of-counts.json", "--labels", "labels.npy"),
    "scores.csv": (*_FIX, "--counts", "counts.json"),
    "scores.csv.gz": (*_FIX, "--counts", "counts.json"),
    "scores.safetensors": _FIX,
    "foreign.safetensors": ("report", "{}", "--kind", "logits", "-o", "report"),
    "features.safetensors": ("fit", "{}", "--methods", "linear", "--folds", "2", "-o", "fitted"),
    "features.npz": ("fit", "{}", "--methods", "linear", "--folds", "2", "-o", "fitted"),
    "features.npy": ("fit", "{}", "--labels", "labels.npy", "--methods", "linear", "-o", "fitted"),
    "counts.json": ("audit", "{}"),
    "weights.json": (*_FIX[:1], "scores.safetensors", *_FIX[2:], "--target", "{}"),
    "labels.npy": ("audit", "{}"),
    "labels.npz": ("audit", "{}"),
    "labels.csv": ("audit", "{}"),
    "labels.txt": ("audit", "{}"),
    "names.json": (*_UNNAMED, "--classes", "{}"),
    "adjuster.json": ("fix", "scores.safetensors", "--with", "{}", "-o", "out"),
    "recipe.yaml": ("recipes", "{}"),
    "images.npz": _TRAIN,
    "list.txt": (*_LISTS, "data.train={}"),
    "list.json": (*_LISTS, "data.train={}"),
}


# Not everybody has pyarrow, so these are written where it is there.
PARQUET = {"scores.parquet": (*_FIX, "--counts", "counts.json"), "labels.parquet": ("audit", "{}")}


def write_parquet_files(folder: Path) -> None:
    """The same scores and labels, with pyarrow."""
    from pyarrow import csv, parquet

    parquet.write_table(csv.read_csv(folder / "scores.csv"), folder / "scores.parquet")
    parquet.write_table(csv.read_csv(folder / "labels.csv"), folder / "labels.parquet")


def damaged(name: str, whole: bytes, seed: int) -> bytes:
    """The file with something wrong in it: anywhere, or within what a container holds."""
    draw = random.Random(f"{name} {seed}")
    inside = seed % 4 != 0  # else the container itself
    if name.endswith(".npz") and inside:
        return _zip_damaged(whole, draw)
    if name.endswith(".gz") and inside:
        return gzip.compress(_changed(gzip.decompress(whole), draw))
    if name.endswith(".safetensors") and inside:
        (length,) = struct.unpack("<Q", whole[:8])
        header = _changed(whole[8 : 8 + length], draw)
        return struct.pack("<Q", len(header)) + header + whole[8 + length :]
    if name.endswith(".npy") and inside:
        return _changed(whole[:128], draw) + whole[128:]
    return _changed(whole, draw)


def _zip_damaged(whole: bytes, draw: random.Random) -> bytes:
    made = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(whole)) as read, zipfile.ZipFile(made, "w") as write:
        chosen = draw.choice(read.namelist())
        for name in read.namelist():
            data = read.read(name)
            if name == chosen:
                data = _changed(data[:128], draw) + data[128:]
            write.writestr(name, data)
    return made.getvalue()


def _changed(data: bytes, draw: random.Random) -> bytes:
    """One change, or a few."""
    for _ in range(draw.choice((1, 1, 1, 2, 4))):
        start = draw.randrange(len(data) + 1)
        stop = min(len(data), start + draw.choice((0, 1, 1, 2, 8, 64)))
        kind = draw.randrange(6)
        if kind == 0:
            put = draw.randbytes(stop - start)
        elif kind == 1:
            put = b""
        elif kind == 2:
            return data[:start]
        elif kind == 3:
            put = 2 * data[start:stop]
        else:
            put = draw.choice(NASTY)
        data = data[:start] + put + data[stop:]
    return _with_another_number(data, draw) if draw.random() < 0.3 else data


def _with_another_number(data: bytes, draw: random.Random) -> bytes:
    places = [at for at, byte in enumerate(data) if chr(byte).isdigit()]
    if not places:
        return data
    at = draw.choice(places)
    return data[:at] + draw.choice(NASTY[:8]) + data[at + 1 :]
