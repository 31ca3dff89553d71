"""CDNV and the displacement of centres, by loops."""

import math
from functools import partial

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from longtail.core.blocks import slices
from longtail.metrics import representations as metrics

VARIANCES = torch.tensor([1.0, 0.5, math.nan, 2.0, 3.0], dtype=torch.float64)
CENTERS = torch.randn(5, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64) + 50


def naive(variances, centers, i, j):
    """(Var_i + Var_j) / (2 ‖μ_i − μ_j‖²)."""
    square = sum((a - b) ** 2 for a, b in zip(centers[i], centers[j], strict=True))
    return (variances[i] + variances[j]) / (2 * square)


def test_cdnv_of_all_pairs_by_loops():
    ours = metrics.cdnv(VARIANCES, CENTERS)
    variances, centers = VARIANCES.tolist(), CENTERS.tolist()
    for i in range(5):
        for j in range(5):
            if i == j or 2 in (i, j):
                assert ours[i, j].isnan()
            else:
                expected = naive(variances, centers, i, j)
                assert ours[i, j].item() == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("size", [1, 10, 2**22])
def test_the_mean_is_over_the_pairs_that_have_one(size, monkeypatch):
    monkeypatch.setattr(metrics, "slices", partial(slices, numbers=size))
    variances, centers = VARIANCES.tolist(), CENTERS.tolist()
    known = [0, 1, 3, 4]
    pairs = [naive(variances, centers, i, j) for i in known for j in known if i != j]
    assert metrics.mean_cdnv(VARIANCES, CENTERS) == pytest.approx(np.mean(pairs), abs=1e-10)


def test_without_two_classes_there_is_no_mean():
    assert math.isnan(metrics.mean_cdnv([1.0, math.nan], [[0.0], [1.0]]))


def test_a_class_without_a_centre_has_no_cdnv():
    centers = CENTERS.clone()
    centers[0] = math.nan
    ours = metrics.cdnv(torch.ones(5), centers)
    assert ours[0].isnan().all()
    assert ours[:, 0].isnan().all()
    assert ours[1, 3].item() == pytest.approx(naive([1] * 5, CENTERS.tolist(), 1, 3), abs=1e-10)


def test_centres_that_coincide_are_infinitely_bad():
    ours = metrics.cdnv([1.0, 1.0], [[3.0, 7.0], [3.0, 7.0]])
    assert ours[0, 1] == math.inf


def test_it_falls_with_separation_and_rises_with_variance():
    near, far = torch.eye(3), 2 * torch.eye(3)
    assert metrics.mean_cdnv(torch.ones(3), far) == metrics.mean_cdnv(torch.ones(3), near) / 4
    assert metrics.mean_cdnv(2 * torch.ones(3), near) == 2 * metrics.mean_cdnv(torch.ones(3), near)


def test_how_far_each_centre_moved():
    moved = CENTERS + torch.arange(5)[:, None]
    expected = [2.0 * y for y in range(5)]  # √4 · y
    assert_close(metrics.centroid_displacement(moved, CENTERS), torch.tensor(expected).double())


def test_numpy_gives_numpy():
    ours = metrics.cdnv(VARIANCES.numpy(), CENTERS.numpy())
    assert type(ours) is np.ndarray
    assert type(metrics.centroid_displacement(CENTERS.numpy(), CENTERS.numpy())) is np.ndarray


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: metrics.cdnv([1.0], CENTERS), r"none negative, got .*1,"),
        (lambda: metrics.cdnv([-1.0] * 5, CENTERS), "none negative"),
        (lambda: metrics.cdnv([1.0], [1.0]), r"centers.*\(C, D\), got \(1,\)"),
        (lambda: metrics.centroid_displacement(CENTERS, CENTERS[:2]), r"one shape, got \(5, 4\)"),
    ],
)
def test_wrong_input_gives_one_clear_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()
