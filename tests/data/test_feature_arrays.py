"""Features are read from the arrays people have."""

import numpy as np
import pytest

from longtail.data import pack_features, read_features

ROWS = np.random.default_rng(0).normal(size=(9, 4)).astype(np.float32)
LABELS = np.array([0, 0, 1, 1, 2, 2, 0, 1, 2])


def test_an_npz_of_one_part_is_the_train_part(tmp_path):
    np.savez(tmp_path / "f.npz", features=ROWS, labels=LABELS, classes=np.array([b"a", b"b", b"c"]))
    features = read_features(tmp_path / "f.npz")
    assert list(features.parts) == ["train"]
    assert features.classes == ("a", "b", "c")
    assert np.array_equal(features.part("train").features, ROWS)
    assert features.counts.tolist() == [3, 3, 3]


def test_an_npz_may_have_all_parts(tmp_path):
    np.savez(
        tmp_path / "f.npz",
        **{
            f"{split}_{what}": part
            for split in ("train", "validation", "test")
            for what, part in (("features", ROWS), ("labels", LABELS))
        },
    )
    assert list(read_features(tmp_path / "f.npz").parts) == ["train", "validation", "test"]


def test_rows_of_bytes_are_multiplied_by_their_scale(tmp_path):
    stored = np.random.default_rng(1).integers(-128, 128, (9, 4)).astype(np.int8)
    scale = np.array([0.5, 1.0, 2.0, 0.1], np.float32)
    parts = {
        "train": stored,
        "train_label": LABELS.astype(np.uint8),
        "test": stored[:3],
        "test_label": LABELS[:3].astype(np.uint8),
        "scale": scale,
        "label_names": np.array([b"a", b"b", b"c"]),
    }
    np.savez(tmp_path / "f.npz", **parts)
    features = read_features(tmp_path / "f.npz")
    assert features.classes == ("a", "b", "c")
    assert list(features.parts) == ["train", "test"]
    expected = [[np.float32(n) * s for n, s in zip(row, scale, strict=True)] for row in stored]
    assert features.part("train").features.tolist() == np.array(expected).tolist()
    assert features.part("test").labels.tolist() == LABELS[:3].tolist()
    np.savez(tmp_path / "short.npz", **parts | {"scale": scale[:3]})
    with pytest.raises(ValueError, match="a scale for each number"):
        read_features(tmp_path / "short.npz")


def test_an_npy_is_mapped_and_split_by_words(tmp_path):
    np.save(tmp_path / "x.npy", ROWS)
    np.save(tmp_path / "y.npy", LABELS)
    whole = read_features(tmp_path / "x.npy", tmp_path / "y.npy")
    assert isinstance(whole.part("train").features, np.memmap)
    words = np.array(["train"] * 5 + ["test"] * 4)
    np.save(tmp_path / "s.npy", words)
    parts = read_features(tmp_path / "x.npy", tmp_path / "y.npy", tmp_path / "s.npy").parts
    assert {name: len(part.labels) for name, part in parts.items()} == {"train": 5, "test": 4}
    assert np.array_equal(parts["test"].features, ROWS[5:])


def test_a_packed_file_is_read_as_it_is(tmp_path):
    pack_features(tmp_path / "f.safetensors", {"train": (ROWS, LABELS)})
    assert np.array_equal(read_features(tmp_path / "f.safetensors").part("train").features, ROWS)


def test_what_is_missing_or_wrong_is_said(tmp_path):
    np.savez(tmp_path / "f.npz", x=ROWS)
    np.save(tmp_path / "x.npy", ROWS)
    np.save(tmp_path / "y.npy", LABELS)
    np.save(tmp_path / "short.npy", np.array(["train"] * 3))
    np.save(tmp_path / "odd.npy", np.array(["dev"] * 9))
    (tmp_path / "f.csv").write_text("1,2")
    np.savez(
        tmp_path / "val.npz", features=ROWS, labels=LABELS, val_features=ROWS, val_labels=LABELS
    )
    np.savez(tmp_path / "half.npz", features=ROWS, labels=LABELS, test_features=ROWS)
    (tmp_path / "cut.npz").write_bytes((tmp_path / "f.npz").read_bytes()[:60])
    (tmp_path / "junk.npy").write_bytes(b"junk")
    x, y = tmp_path / "x.npy", tmp_path / "y.npy"
    for arguments, message in (
        ((tmp_path / "f.npz",), "has the arrays x; it needs features and labels"),
        ((x,), "holds no labels"),
        (
            (x, y, tmp_path / "short.npy"),
            "one entry a sample, got features of shape .9, 4. and shape .3,. in",
        ),
        ((x, y, tmp_path / "odd.npy"), "a split is one of .* got 'dev'"),
        ((tmp_path / "f.csv",), "are read from .safetensors, .npz or .npy"),
        ((tmp_path / "f.npz", y), "belong to an .npy"),
        ((tmp_path / "val.npz",), "an array val_features that cannot be used: its splits are"),
        ((tmp_path / "half.npz",), "an array test_features that .* no test_labels beside it"),
        ((tmp_path / "cut.npz",), "cannot be read as an npz file"),
        ((tmp_path / "junk.npy", y), "cannot be read as an npy file"),
    ):
        with pytest.raises(ValueError, match=message):
            read_features(*arguments)
    with pytest.raises(FileNotFoundError, match="there is no feature file"):
        read_features(tmp_path / "none.npz")


NAMES = np.array(["ant", "bee", "cat"])[LABELS]


@pytest.mark.parametrize("names", [NAMES, NAMES.astype("S"), NAMES.astype(object)])
def test_labels_may_be_names_which_become_the_classes(tmp_path, names):
    np.savez(tmp_path / "f.npz", features=ROWS, labels=names)
    np.save(tmp_path / "x.npy", ROWS)
    np.save(tmp_path / "y.npy", names)
    for given in ((tmp_path / "f.npz",), (tmp_path / "x.npy", tmp_path / "y.npy")):
        features = read_features(*given)
        assert features.classes == ("ant", "bee", "cat")
        assert features.part("train").labels.tolist() == LABELS.tolist()


def test_names_of_all_parts_and_of_a_list_are_numbered_alike(tmp_path):
    parts = {"train_features": ROWS, "train_labels": NAMES}
    parts |= {"test_features": ROWS[:2], "test_labels": np.array(["cat", "emu"])}
    np.savez(tmp_path / "f.npz", **parts)
    features = read_features(tmp_path / "f.npz")
    assert features.classes == ("ant", "bee", "cat", "emu")
    assert features.part("test").labels.tolist() == [2, 3]
    np.savez(tmp_path / "f.npz", **parts, classes=np.array(["emu", "cat", "bee", "ant"]))
    assert read_features(tmp_path / "f.npz").part("test").labels.tolist() == [1, 0]
    np.savez(tmp_path / "f.npz", **parts, classes=np.array(["cat", "bee", "ant"]))
    with pytest.raises(ValueError, match=r"labels of test.*'emu' in row 1"):
        read_features(tmp_path / "f.npz")


def test_numbers_in_text_are_class_indices_beside_integers(tmp_path):
    rows, labels = np.eye(12), np.arange(12)
    parts = {"train_features": rows, "train_labels": labels, "test_features": rows}
    np.savez(tmp_path / "f.npz", **parts, test_labels=labels.astype(str))
    features = read_features(tmp_path / "f.npz")
    assert features.classes is None
    assert features.part("test").labels.tolist() == labels.tolist()
    np.savez(tmp_path / "f.npz", **parts, test_labels=np.array([*"abcdefghijkl"]))
    with pytest.raises(ValueError, match=r"labels of train .* numbers.* test names"):
        read_features(tmp_path / "f.npz")
    named = [f"class {label}" for label in labels]
    np.savez(tmp_path / "f.npz", **parts, test_labels=named, classes=named)
    assert read_features(tmp_path / "f.npz").part("test").labels.tolist() == labels.tolist()
