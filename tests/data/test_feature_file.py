"""Feature files: what goes in comes out, from the disk, and nothing else is taken for one."""

import json
import struct

import numpy as np
import pytest

from longtail.core.blocks import slices
from longtail.core.tensor_file import map_tensor_file
from longtail.data import Features, pack_features, read_features
from longtail.data.tables import arrays, features

RNG = np.random.default_rng(0)
TRAIN = (RNG.normal(size=(50, 6)).astype(np.float32), np.arange(50) % 5)
TEST = (RNG.normal(size=(20, 6)).astype(np.float32), np.arange(20) % 4)


def test_parts_names_and_origin_come_back(tmp_path):
    names = list("abcde")
    made = pack_features(
        tmp_path / "f.safetensors", {"test": TEST, "train": TRAIN}, classes=names, made_by="a net"
    )
    again = Features.load(tmp_path / "f.safetensors")
    for split, (rows, labels) in {"train": TRAIN, "test": TEST}.items():
        np.testing.assert_array_equal(again.part(split).features, rows)
        np.testing.assert_array_equal(made.part(split).labels, labels)
    assert (again.dim, again.num_classes, again.classes) == (6, 5, tuple(names))
    assert again.made_by == "a net"
    assert again.counts.tolist() == [10] * 5


def test_rows_stay_on_the_disk_until_they_are_looked_at(tmp_path):
    made = pack_features(tmp_path / "f.safetensors", {"train": TRAIN})
    assert isinstance(made.part("train").features, np.memmap)


@pytest.mark.parametrize(
    ("given", "stored"), [("float16", "float16"), ("float32", "float32"), ("float64", "float32")]
)
def test_halves_stay_halves_and_doubles_become_floats(tmp_path, given, stored):
    rows = TRAIN[0].astype(given)
    made = pack_features(tmp_path / "f.safetensors", {"train": (rows, TRAIN[1])})
    assert made.part("train").features.dtype == stored


def test_other_readers_of_the_format_read_it(tmp_path):
    from safetensors.numpy import load_file

    pack_features(tmp_path / "f.safetensors", {"train": TRAIN, "validation": TEST})
    found = load_file(tmp_path / "f.safetensors")
    np.testing.assert_array_equal(found["features"], np.concatenate([TRAIN[0], TEST[0]]))
    np.testing.assert_array_equal(found["labels"], np.concatenate([TRAIN[1], TEST[1]]))


def test_blocks_give_the_same_file(tmp_path, monkeypatch):
    whole = tmp_path / "a.safetensors"
    pack_features(whole, {"train": TRAIN})
    monkeypatch.setattr(features, "slices", lambda rows, size: slices(rows, size, numbers=18))
    pack_features(tmp_path / "b.safetensors", {"train": TRAIN})
    assert whole.read_bytes() == (tmp_path / "b.safetensors").read_bytes()


def test_a_part_that_is_not_there_is_named(tmp_path):
    made = pack_features(tmp_path / "f.safetensors", {"train": TRAIN})
    with pytest.raises(ValueError, match="no test part, only train"):
        made.part("test")


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ({}, "train, validation, test"),
        ({"dev": TRAIN}, "got dev"),
        ({"train": (TRAIN[0], TRAIN[1][:3])}, "for each of 50 rows"),
        ({"train": (TRAIN[0], TRAIN[1] * 0.5)}, "got float64"),
        ({"train": (TRAIN[0].astype(int), TRAIN[1])}, "floating type"),
        ({"train": TRAIN, "test": (TEST[0][:, :3], TEST[1])}, "features of one width"),
        ({"train": (np.full((50, 6), np.nan), TRAIN[1])}, r"NaN.*row 0 of train"),
        ({"train": (TRAIN[0], TRAIN[1] - 1)}, "got -1"),
    ],
)
def test_what_are_no_features_is_refused_and_no_file_is_left(tmp_path, parts, sentence):
    with pytest.raises(ValueError, match=sentence):
        pack_features(tmp_path / "f.safetensors", parts)
    assert not list(tmp_path.iterdir())


def test_files_that_are_damaged_or_something_else_are_refused(tmp_path):
    place = tmp_path / "f.safetensors"
    pack_features(place, {"train": TRAIN})
    whole = place.read_bytes()
    for content, sentence in (
        (whole[:-4], "not fully covered"),
        (whole[:4], "cannot be read"),
        (b"\xff" * 64, "header too large"),
        (whole.replace(b'\\"version\\":1', b'\\"version\\":9'), "version 9"),
        (whole.replace(b"longtail_features", b"longtail_furniture"[:17]), "no feature file"),
    ):
        place.write_bytes(content)
        with pytest.raises(ValueError, match=sentence):
            Features.load(place)
    with pytest.raises(FileNotFoundError, match="no feature file"):
        Features.load(tmp_path / "none.safetensors")


def test_every_tensor_is_aligned(tmp_path):
    """Whatever small tensors come before: readers map numbers where they lie."""
    pack_features(tmp_path / "f.safetensors", {"train": (TRAIN[0][:3], TRAIN[1][:3])})
    tensors = map_tensor_file(tmp_path / "f.safetensors")[1]
    for array in tensors.values():
        assert array.ctypes.data % array.dtype.itemsize == 0


def rewritten(place, change):
    """The file with another header; its tensors stay."""
    whole = place.read_bytes()
    (length,) = struct.unpack("<Q", whole[:8])
    entries = json.loads(whole[8 : 8 + length])
    said = json.loads(entries["__metadata__"]["longtail_features"])
    change(entries, said)
    entries["__metadata__"]["longtail_features"] = json.dumps(said)
    text = json.dumps(entries).encode()
    place.write_bytes(struct.pack("<Q", len(text)) + text + whole[8 + length :])


def offsets(name, start, stop):
    return lambda entries, said: entries[name].update(data_offsets=[start, stop])


def said(**values):
    return lambda entries, header: header.update(values)


@pytest.mark.parametrize(
    "change",
    [
        offsets("features", 0, 1200),  # over the labels
        offsets("features", -1200, 0),
        offsets("labels", 400, 0),
        lambda entries, said: entries["labels"].update(shape=[-50]),
        lambda entries, said: entries["labels"].update(shape=[2**63, 2]),
        lambda entries, said: entries["labels"].update(dtype="F64"),
        lambda entries, said: entries["labels"].update(shape=[25, 2]),
        lambda entries, said: entries["features"].update(shape=[25, 12]),  # fewer than labels
        lambda entries, said: entries["features"].update(shape=[300]),
        lambda entries, said: entries.update(rows=entries.pop("features")),
        said(sizes={"train": -10, "test": 60}),
        said(sizes={"train": 50, "dev": 0}),
        said(sizes={"train": 51}),
        said(sizes={}),
        said(num_classes=3),
        said(num_classes=-5),
        said(num_classes=10**10),
        said(classes=["a", "b"]),
    ],
)
def test_a_file_whose_header_does_not_fit_is_refused(tmp_path, change):
    place = tmp_path / "f.safetensors"
    pack_features(place, {"train": TRAIN})
    rewritten(place, change)
    with pytest.raises(ValueError, match=r"f\.safetensors"):
        Features.load(place)


def test_one_label_of_ten_thousand_millions_is_no_class(tmp_path):
    rows, labels = TRAIN[0][:2], np.array([0, 10**10])
    with pytest.raises(ValueError, match=r"labels.*class indices"):
        pack_features(tmp_path / "f.safetensors", {"train": (rows, labels)})
    np.savez(tmp_path / "f.npz", features=rows, labels=labels)
    with pytest.raises(ValueError, match=r"f\.npz: labels.*class indices"):
        read_features(tmp_path / "f.npz")


def test_arrays_of_other_lengths_are_refused_before_they_are_unpacked(tmp_path, monkeypatch):
    monkeypatch.setattr(arrays, "load_npz", lambda *_: pytest.fail("not to be unpacked"))
    np.savez(tmp_path / "f.npz", features=TRAIN[0], labels=np.zeros(10**6, int))
    with pytest.raises(ValueError, match=r".50, 6. and .1000000,"):
        read_features(tmp_path / "f.npz")
