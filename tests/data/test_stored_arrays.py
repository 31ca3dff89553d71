"""Names that were stored as Python objects are read without unpickling, or refused in words."""

import tracemalloc

import numpy as np
import pytest
from numpy.lib import format as npy

from longtail.core import memory
from longtail.data import open_score_table, read_label_counts
from longtail.data.tables.arrays import load_npy, load_npz

LOGITS = np.random.default_rng(0).normal(size=(4, 3))
NAMES = np.array(["cat", "dog", "cat", "élan"], dtype=object)


@pytest.mark.parametrize(
    "values", [NAMES, np.array([2, 0, -1, 2**40], dtype=object), np.array([], dtype=object)]
)
def test_text_and_whole_numbers_come_back_as_they_were(tmp_path, values):
    np.save(tmp_path / "a.npy", values)
    np.savez(tmp_path / "a.npz", labels=values)
    stored = load_npz(tmp_path / "a.npz", ["labels"])
    for array in (load_npy(tmp_path / "a.npy"), stored["labels"]):
        assert array.dtype.kind in "Ui"
        assert array.tolist() == values.tolist()


def test_a_table_may_have_labels_and_classes_as_objects(tmp_path):
    classes = np.array(["cat", "dog", "élan"], dtype=object)
    np.savez(tmp_path / "a.npz", logits=LOGITS, labels=NAMES, classes=classes)
    table = open_score_table(tmp_path / "a.npz", "logits")
    assert table.classes == ("cat", "dog", "élan")
    assert table.labels.tolist() == [0, 1, 0, 2]
    assert read_label_counts(tmp_path / "a.npz")["all"].counts == {"cat": 2, "dog": 1, "élan": 1}


class Hostile:
    def __reduce__(self):
        return print, ("this ran",)


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (["cat", None, "dog", "cat"], "None in row 1"),
        ([0.5, 1.0, 2.0, 3.0], r"objects such as 0\.5 in row 0"),
        ([1, "cat", "dog", "cat"], "'cat' in row 1"),
        ([Hostile(), "cat", "dog", "cat"], "text and numbers"),
        ([["cat"], ["dog"], ["cat"], ["dog"]], "text and numbers"),
    ],
)
def test_other_objects_are_refused_and_not_called_damage(tmp_path, values, sentence, capsys):
    labels = np.empty(len(values), dtype=object)
    labels[:] = values
    np.savez(tmp_path / "a.npz", logits=LOGITS, labels=labels)
    with pytest.raises(ValueError, match=sentence) as raised:
        open_score_table(tmp_path / "a.npz", "logits")
    assert "numpy.array(names, dtype=str)" in str(raised.value)
    assert "damaged" not in str(raised.value)
    assert not capsys.readouterr().out


def store(path, shape, pickled):
    """An .npy that says it has objects of that shape, and has this pickle."""
    with path.open("wb") as file:
        header = {"descr": "|O", "fortran_order": False, "shape": shape}
        npy.write_array_header_1_0(file, header)
        file.write(pickled)


@pytest.mark.parametrize(
    "opcodes",
    [
        b"]" * 10**7,  # as many lists
        b"(" * 10**7,
        b"X\x00\x00\x00\x00" * 10**6,
        # One text of a megabyte, made into bytes again and again.
        b"X\x00\x00\x10\x00" + b"a" * 2**20 + b"q\x000"
        b"c_codecs\nencode\nq\x01" + b"h\x01h\x00U\x06latin1\x86R" * 800,
    ],
    ids=["lists", "marks", "texts", "bytes"],
)
def test_a_pickle_that_makes_more_than_its_shape_promises_is_left_early(tmp_path, opcodes):
    store(tmp_path / "a.npy", (10,), b"\x80\x02" + opcodes + b".")
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="objects"):
            load_npy(tmp_path / "a.npy")
        assert tracemalloc.get_traced_memory()[1] < 5e7
    finally:
        tracemalloc.stop()


def test_a_shape_that_promises_more_than_memory_holds_is_left_before_it_is_followed(
    tmp_path, monkeypatch
):
    monkeypatch.setattr(memory, "free_memory", lambda: 2**28)
    store(tmp_path / "a.npy", (10**7,), b"\x80\x02" + b"]" * 10**7 + b".")
    with pytest.raises(ValueError, match="would take"):
        load_npy(tmp_path / "a.npy")


def test_one_text_does_not_make_all_others_as_wide(tmp_path):
    np.save(tmp_path / "a.npy", np.array(["a"] * 100 + ["b" * 10**6], dtype=object))
    with pytest.raises(ValueError, match="1,000,000"):
        load_npy(tmp_path / "a.npy")
    np.save(tmp_path / "a.npy", np.array(["a", "a\0"], dtype=object))
    with pytest.raises(ValueError, match="NUL"):
        load_npy(tmp_path / "a.npy")
