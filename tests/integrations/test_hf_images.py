"""Rows of a Hugging Face dataset as labelled images, with a stand-in for the package."""

import io
import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

from longtail.images import ImageSplits, labels_of, long_tailed_images
from longtail.integrations.hf import from_hugging_face, read_hugging_face

image = pytest.importorskip("PIL.Image")


class ClassLabel:
    def __init__(self, names):
        self.names = names


class Rows:
    """What is used of datasets.Dataset: columns, rows, features, formats, select."""

    def __init__(self, columns, features=None):
        self.columns = columns
        self.features = dict.fromkeys(columns) | (features or {})

    @property
    def column_names(self):
        return list(self.columns)

    def __len__(self):
        return len(next(iter(self.columns.values())))

    def __getitem__(self, key):
        if isinstance(key, str):
            return self.columns[key]
        return {name: values[key] for name, values in self.columns.items()}

    def with_format(self, format):
        assert format is None
        return self

    def select(self, positions):
        chosen = {name: [values[at] for at in positions] for name, values in self.columns.items()}
        return Rows(chosen, self.features)


def pictures(number):
    random = np.random.default_rng(0)
    return [
        image.fromarray(random.integers(0, 256, (4, 5, 3), dtype=np.uint8)) for _ in range(number)
    ]


def test_images_and_labels_come_from_their_columns():
    shown = pictures(3)
    rows = Rows({"img": shown, "fine": [2, 0, 2]}, {"fine": ClassLabel(["1", "2", "0"])})
    images = from_hugging_face(rows, "img", "fine")
    assert images.classes == ("1", "2", "0")
    # Numbers are indices even where the classes have numbers for names.
    assert images.targets.tolist() == [2, 0, 2]
    first, label = images[0]
    assert (first.dtype, label) == (torch.uint8, 2)
    assert np.array_equal(first.numpy(), np.array(shown[0]).transpose(2, 0, 1))


def test_they_are_a_dataset_and_can_be_cut():
    rows = Rows({"image": pictures(20), "label": [0, 1] * 10})
    images = from_hugging_face(rows)
    assert next(iter(DataLoader(images, batch_size=4)))[0].shape == (4, 3, 4, 5)
    assert [label for _, label in images] == [0, 1] * 10
    assert labels_of(images).tolist() == [0, 1] * 10
    part = images.subset([3, 0])
    assert part.targets.tolist() == [1, 0]
    assert torch.equal(part[0][0], images[3][0])
    cut = long_tailed_images(ImageSplits(images), 5)
    assert cut.train.counts.tolist() == [9, 1]
    assert cut.validation.counts.tolist() == [1, 1]


def test_names_for_labels_are_sorted():
    images = from_hugging_face(Rows({"image": pictures(3), "label": ["fox", "cat", "fox"]}))
    assert images.classes == ("cat", "fox")
    assert images.targets.tolist() == [1, 0, 1]


def test_images_that_were_not_decoded_are():
    (shown,) = pictures(1)
    stored = io.BytesIO()
    shown.save(stored, "png")
    rows = Rows({"image": [{"bytes": stored.getvalue(), "path": None}], "label": [0]})
    assert np.array_equal(from_hugging_face(rows)[0][0], np.array(shown).transpose(2, 0, 1))


def test_a_damaged_image_is_named_by_its_row():
    rows = Rows({"image": [{"bytes": b"none", "path": None}, "text"], "label": [0, 0]})
    with pytest.raises(ValueError, match="row 0 of column 'image'"):
        from_hugging_face(rows)[0]
    with pytest.raises(ValueError, match=r"row 1.*datasets\.Image"):
        from_hugging_face(rows)[1]


class Parts(dict):
    column_names = {"train": ["image"], "test": ["image"]}  # noqa: RUF012


@pytest.mark.parametrize(
    ("dataset", "said"),
    [
        (Parts(), r"train, test;.*dataset\['train'\]"),
        ([1, 2], r"datasets\.Dataset, got a list"),
        (Rows({"image": [], "kind": []}), "'label', only image, kind"),
        (Rows({"image": [0, 0], "label": [0, -1]}), "no label in row 1"),
        (Rows({"image": [0, 0], "label": [None, 1]}), "no label in row 0"),
        (Rows({"image": [0], "label": [2]}, {"label": ClassLabel(["a", "b"])}), "0 to 1 for 2"),
        (Rows({"image": [0], "label": [0.5]}), "integer type"),
    ],
)
def test_what_is_no_dataset_of_images_is_told(dataset, said):
    with pytest.raises(ValueError, match=said):
        from_hugging_face(dataset)


def fake_datasets(monkeypatch, splits):
    asked = []

    def load(way):
        def loaded(path):
            asked.append((way, path))
            return splits

        return loaded

    stand_in = SimpleNamespace(load_dataset=load("hub"), load_from_disk=load("disk"))
    monkeypatch.setitem(sys.modules, "datasets", stand_in)
    return asked


def test_all_splits_are_read_from_the_hub_or_from_a_folder(monkeypatch, tmp_path):
    rows = Rows({"image": [image.new("RGB", (2, 2))] * 3, "label": [0, 1, 1]})
    asked = fake_datasets(monkeypatch, {"train": rows, "valid": rows, "test": rows})
    splits = read_hugging_face("someone/flowers")
    assert [len(part) for part in (splits.train, splits.validation, splits.test)] == [3, 3, 3]
    (tmp_path / "dataset_dict.json").write_text("{}")
    read_hugging_face(str(tmp_path))
    assert asked == [("hub", "someone/flowers"), ("disk", str(tmp_path))]
    fake_datasets(monkeypatch, {"train": rows})
    assert read_hugging_face("x").test is None


@pytest.mark.parametrize("labels", [[2, 0, 1], ["fox", "ant", "cat"]])
def test_other_splits_have_the_classes_of_training_whichever_of_them_they_have(monkeypatch, labels):
    shown = pictures(3)
    train = Rows({"image": shown, "label": labels})
    fake_datasets(monkeypatch, {"train": train, "test": train.select([2, 2, 1])})
    splits = read_hugging_face("x")
    assert splits.test.classes == splits.train.classes
    assert splits.train.labels.tolist() == [2, 0, 1]
    assert splits.test.labels.tolist() == [1, 1, 0]


def test_a_set_without_a_train_split_or_a_package_to_read_it_is_told(monkeypatch):
    fake_datasets(monkeypatch, {"test": None})
    with pytest.raises(ValueError, match="no train split"):
        read_hugging_face("x")
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(ImportError, match=r"pip install longtail\[hf\]"):
        read_hugging_face("x")
