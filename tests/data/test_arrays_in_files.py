"""Arrays in .npy and .npz files: a header is believed if it fits what is stored and memory."""

import zipfile

import numpy as np
import pytest

from longtail.core import memory
from longtail.data import open_score_table, read_label_counts
from longtail.data.tables.arrays import load_npy, load_npz, npz_header

MAGIC = b"\x93NUMPY\x01\x00"


def npy(header, data=b""):
    text = header if isinstance(header, bytes) else header.encode()
    text += b" " * (-(10 + len(text) + 1) % 64) + b"\n"
    return MAGIC + len(text).to_bytes(2, "little") + text + data


def described(shape, kind="<i8"):
    return f"{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}"


BROKEN = {
    "a shape of 2**64": npy(described(f"({2**64},)")),
    "a shape of 2**32 by 2**32": npy(described(f"({2**32}, {2**32})")),
    "a negative shape": npy(described("(-1,)")),
    "fewer numbers than it says": npy(described("(3,)"), bytes(16)),
    "more numbers than it says": npy(described("(1,)"), bytes(16)),
    "a broken header": npy("{'descr': '<i8', 'fortran_order': False, 'shape': (3,"),
    "a header that is no dictionary": npy("[[[["),
    "a header nested too deep": npy("(" * 60_000),
    "a type that is none": npy(described("(1,)", "<Q9")),
    "a bad code point": npy(described("(1,)", "<U1"), b"\xff\xff\xff\xff"),
    "a header that is cut": MAGIC + b"\xff\xff{",
    "Python objects": npy(described("(1,)", "|O"), bytes(8)),
    "a newer version": b"\x93NUMPY\x09\x00" + bytes(8),
    "no array": b"what is this",
}


@pytest.mark.parametrize("data", BROKEN.values(), ids=BROKEN)
def test_a_damaged_array_is_told_with_its_file(tmp_path, data):
    (tmp_path / "a.npy").write_bytes(data)
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as stored:
        stored.writestr("labels.npy", data)
    for name in ("a.npy", "a.npz"):
        with pytest.raises(ValueError, match=rf"{name}"):
            read_label_counts(tmp_path / name)


def test_a_member_that_is_no_array_is_not_taken_for_one(tmp_path):
    np.savez(tmp_path / "a.npz", labels=np.arange(3))
    with zipfile.ZipFile(tmp_path / "a.npz", "a") as stored:
        stored.writestr("labels", b"text")  # NumPy would take it for the array of that name
        stored.writestr("classes.npy", b"text")
    assert load_npz(tmp_path / "a.npz", ["labels"])["labels"].tolist() == [0, 1, 2]
    with pytest.raises(ValueError, match=r"a\.npz.*npz file \(in 'classes'"):
        read_label_counts(tmp_path / "a.npz")


def test_names_of_classes_that_are_no_text_are_told_with_their_file(tmp_path):
    np.savez(tmp_path / "a.npz", labels=np.arange(1), classes=np.array([b"\xff"]))
    with pytest.raises(ValueError, match=r"'classes'.*a\.npz.*UTF-8"):
        read_label_counts(tmp_path / "a.npz")
    np.savez(tmp_path / "a.npz", labels=np.arange(1), classes=np.array("a"))
    with pytest.raises(ValueError, match=r"'classes'.*a\.npz.*names"):
        read_label_counts(tmp_path / "a.npz")


def test_what_does_not_fit_into_memory_is_refused_before_it_is_loaded(tmp_path, monkeypatch):
    np.savez_compressed(tmp_path / "a.npz", labels=np.zeros(2**22, np.int64))
    np.save(tmp_path / "a.npy", np.zeros(2**22, np.int64))
    monkeypatch.setattr(memory, "free_memory", lambda: 2**24)
    monkeypatch.setattr(np, "load", lambda *_, **__: pytest.fail("nothing should be loaded"))
    for load in (
        lambda: load_npz(tmp_path / "a.npz", ["labels"]),
        lambda: load_npy(tmp_path / "a.npy"),
    ):
        with pytest.raises(ValueError, match=r"a\.np. .*0\.0312 GB.*0\.0156 GB"):
            load()
    assert npz_header(tmp_path / "a.npz", "labels").shape == (2**22,)


def test_labels_of_more_samples_than_there_are_scores_are_refused_before_they_are_loaded(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(
        "longtail.data.tables.arrays.load_npz",
        lambda *_: pytest.fail("nothing should be unpacked"),
    )
    labels = np.zeros(10**6, np.int64)
    np.savez_compressed(tmp_path / "a.npz", logits=np.ones((2, 3)), labels=labels)
    with pytest.raises(ValueError, match=r"a\.npz.*2 rows.*'labels'.*1000000"):
        open_score_table(tmp_path / "a.npz", "logits")


def test_labels_whose_work_does_not_fit_into_memory_are_refused(tmp_path, monkeypatch):
    np.save(tmp_path / "a.npy", np.zeros(2**20, np.uint8))
    monkeypatch.setattr(memory, "free_memory", lambda: 2**25)
    with pytest.raises(ValueError, match=r"a\.npy would take 0\.0391 GB"):
        read_label_counts(tmp_path / "a.npy")
