"""Caltech-101: the shipped file, its numbers, and the long-tailed cut."""

import hashlib
from importlib.resources import files

import numpy as np
import pytest

from longtail.data import caltech101_features, caltech101_long_tailed

FOLDER = files("longtail.data") / "caltech101"
SHA256 = "e4922b7ccda4251dbbf70b95332af353da5f1a4b0f0f12464ec74eec5cce9cd6"


@pytest.fixture(scope="module")
def whole():
    return caltech101_features()


@pytest.fixture(scope="module")
def cut():
    return caltech101_long_tailed()


def rows(features):
    return {row.tobytes() for row in features}


def test_the_shipped_file_is_the_one_that_was_made():
    assert hashlib.sha256((FOLDER / "features.npz").read_bytes()).hexdigest() == SHA256


def test_the_attribution_names_authors_licence_and_changes():
    text = (FOLDER / "ATTRIBUTION.md").read_text(encoding="utf-8")
    for words in ("Fei-Fei Li", "Marco Andreetto", "Marc'Aurelio Ranzato", "Pietro Perona"):
        assert words in text
    for words in ("CC BY 4.0", "EfficientNet-Lite0", "Apache-2.0", "PCA", "What was changed"):
        assert words in text


def test_features_are_the_stored_bytes_times_their_scale(whole):
    with np.load(FOLDER / "features.npz", allow_pickle=False) as stored:
        for part in ("train", "test"):
            features = getattr(whole, f"{part}_features")
            assert features.dtype == np.float32
            assert np.array_equal(features, stored[part].astype("f4") * stored["scale"])
            assert getattr(whole, f"{part}_labels").tolist() == stored[f"{part}_label"].tolist()


def test_every_class_is_in_both_parts_with_the_described_extremes(whole):
    train, test = np.bincount(whole.train_labels), np.bincount(whole.test_labels)
    assert (train.sum(), train.max(), train.min(), len(train)) == (5784, 534, 21, 101)
    assert (test.sum(), test.max(), test.min(), len(test)) == (2893, 266, 10, 101)


def test_class_names_are_different_strings(whole):
    assert whole.classes[:5] == ("Faces", "Faces_easy", "Leopards", "Motorbikes", "accordion")
    assert len(set(whole.classes)) == 101


def test_the_long_tailed_cut_has_4268_images_by_the_profile(whole, cut):
    assert len(cut.train_features) == len(cut.train_labels) == 4268
    available = np.bincount(whole.train_labels).tolist()
    counts = np.bincount(cut.train_labels, minlength=101).tolist()
    by_size = sorted(range(101), key=lambda label: -available[label])
    for rank, label in enumerate(by_size):
        # The small addition keeps 300 / 100 from becoming 2 by rounding.
        assert counts[label] == min(available[label], int(300 * 100 ** (-rank / 100) + 1e-9))


def test_the_long_tailed_cut_keeps_features_with_their_labels_and_the_test_part(whole, cut):
    for label in (0, 50, 100):
        kept = rows(cut.train_features[cut.train_labels == label])
        assert kept <= rows(whole.train_features[whole.train_labels == label])
    assert np.array_equal(cut.test_features, whole.test_features)
    assert np.array_equal(cut.test_labels, whole.test_labels)
    assert cut.classes == whole.classes


def test_another_seed_chooses_other_images_of_the_same_number(cut):
    other = caltech101_long_tailed(seed=1)
    assert np.array_equal(np.bincount(other.train_labels), np.bincount(cut.train_labels))
    assert not np.array_equal(other.train_features, cut.train_features)
