"""Intra-class variance and largest distances: by loops, against scikit-learn, in blocks."""

import numpy as np
import pytest
import torch
from sklearn.covariance import ledoit_wolf, oas
from torch.testing import assert_close

from longtail.metrics import class_rows
from longtail.metrics import representations as metrics

COUNTS = [30, 9, 4, 1, 0]  # more, and fewer, than the 6 dimensions; one alone; none
LABELS = torch.repeat_interleave(torch.arange(5), torch.tensor(COUNTS))
ORDER = torch.randperm(44, generator=torch.Generator().manual_seed(1))
LABELS = LABELS[ORDER]
SCALES = torch.tensor([1.0, 2.0, 0.5, 3.0, 1.0, 0.1], dtype=torch.float64)
DRAWN = torch.randn(44, 6, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
FEATURES = DRAWN * SCALES + 5.0


@pytest.fixture(params=["one block", "small blocks"])
def blocks(request, monkeypatch):
    if request.param == "small blocks":
        monkeypatch.setattr(class_rows, "_ROWS", 4)


def own(label):
    return FEATURES[label == LABELS].numpy()


def per_class(function):
    """function(rows) of each class with two samples or more, else NaN."""
    values = [function(own(y)) if COUNTS[y] > 1 else np.nan for y in range(5)]
    return torch.tensor(values, dtype=torch.float64)


def largest(covariance):
    return np.linalg.eigvalsh(covariance)[-1]


def test_the_mean_of_each_class(blocks):
    means = metrics.class_means(FEATURES, LABELS, 5)
    for y in range(4):
        assert_close(means[y], torch.tensor([np.mean(own(y)[:, j]) for j in range(6)]))
    assert means[4].isnan().all()


def test_the_variance_is_the_largest_eigenvalue_of_the_covariance(blocks):
    """NCM equation 1, dividing by the class size, with loops over samples."""

    def variance(rows):
        mean = sum(rows) / len(rows)
        return largest(sum(np.outer(row - mean, row - mean) for row in rows) / len(rows))

    ours = metrics.intra_class_variance(FEATURES, LABELS, 5)
    assert_close(ours, per_class(variance), rtol=0, atol=1e-10, equal_nan=True)


def test_the_trace_and_the_mean_distance(blocks):
    for measure, power in (("trace", 2), ("mean_distance", 1)):
        expected = per_class(
            lambda rows, p=power: np.mean([np.linalg.norm(row - rows.mean(0)) ** p for row in rows])
        )
        ours = metrics.intra_class_variance(FEATURES, LABELS, 5, measure)
        assert_close(ours, expected, rtol=0, atol=1e-10, equal_nan=True)


@pytest.mark.parametrize(("name", "theirs"), [("ledoit_wolf", ledoit_wolf), ("oas", oas)])
def test_shrunk_estimates_are_scikit_learn_s(blocks, name, theirs):
    ours = metrics.intra_class_variance(FEATURES, LABELS, 5, estimator=name)
    expected = per_class(lambda rows: largest(theirs(rows)[0]))
    assert_close(ours, expected, rtol=0, atol=1e-10, equal_nan=True)


@pytest.mark.parametrize("normalised", [True, False])
def test_the_largest_distance_of_each_sample_by_loops(blocks, normalised):
    rows, labels = FEATURES.numpy(), LABELS.tolist()
    expected = []
    for i in range(44):
        same = [j for j in range(44) if labels[j] == labels[i] and j != i]
        gaps = [np.linalg.norm(rows[i] - rows[j]) for j in same]
        expected.append(max(gaps) if gaps else np.nan)
    scale = max(np.linalg.norm(row) for row in rows) if normalised else 1.0
    ours = metrics.largest_intra_class_distances(FEATURES, LABELS, 5, normalised)
    assert_close(ours, torch.tensor(expected) / scale, rtol=0, atol=1e-10, equal_nan=True)
    assert ours.isnan().sum() == 1


@pytest.mark.parametrize("measure", ["largest_eigenvalue", "trace", "mean_distance"])
def test_equal_samples_have_no_spread_and_one_sample_has_none_to_speak_of(measure):
    rows = torch.ones(4, 3)
    spread = metrics.intra_class_variance(rows, [0, 0, 0, 1], 2, measure)
    assert spread[0] == 0
    assert spread[1].isnan()


def test_files_and_half_precision_are_read_class_by_class(tmp_path):
    path = tmp_path / "features.npy"
    np.save(path, FEATURES.numpy().astype(np.float16))
    mapped = np.load(path, mmap_mode="r")
    rows = torch.from_numpy(np.load(path).astype(np.float64))
    for function in (
        metrics.class_means,
        metrics.intra_class_variance,
        metrics.largest_intra_class_distances,
    ):
        ours = function(mapped, LABELS.numpy(), 5)
        assert type(ours) is np.ndarray
        assert ours.dtype == np.float64
        exact = function(rows, LABELS, 5)
        assert isinstance(exact, torch.Tensor)
        np.testing.assert_allclose(ours, exact.numpy(), atol=1e-12)
        assert_close(
            function(rows.bfloat16(), LABELS, 5),
            function(rows.bfloat16().double(), LABELS, 5),
            equal_nan=True,
        )


def test_another_default_device_changes_nothing():
    plain = metrics.intra_class_variance(FEATURES, LABELS, 5)
    distances = metrics.largest_intra_class_distances(FEATURES, LABELS, 5)
    pairs = metrics.cdnv(plain, metrics.class_means(FEATURES, LABELS, 5))
    with torch.device("meta"):
        again = metrics.intra_class_variance(FEATURES, LABELS, 5)
        assert_close(again, plain, equal_nan=True)
        again = metrics.largest_intra_class_distances(FEATURES, LABELS, 5)
        assert_close(again, distances, equal_nan=True)
        again = metrics.cdnv(plain, metrics.class_means(FEATURES, LABELS, 5))
        assert_close(again, pairs, equal_nan=True)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"measure": "determinant"}, "measure must be"),
        ({"estimator": "glasso"}, "estimator must be"),
        ({"measure": "mean_distance", "estimator": "oas"}, "not made of a covariance"),
        ({"features": FEATURES[:3]}, r"44 labels, got \(3, 6\)"),
        ({"num_classes": 3}, "labels must lie in 0 to 2"),
    ],
)
def test_wrong_input_gives_one_clear_sentence(options, sentence):
    given = {"features": FEATURES, "labels": LABELS, "num_classes": 5} | options
    with pytest.raises(ValueError, match=sentence):
        metrics.intra_class_variance(**given)
