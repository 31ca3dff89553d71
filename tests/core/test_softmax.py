"""Softmax in NumPy, in blocks, against SciPy's."""

import numpy as np
import pytest
from scipy import special

from longtail.core import softmax
from longtail.core.blocks import blocks, slices


@pytest.mark.parametrize("shape", [(7,), (3, 5), (2000, 100), (4, 6, 3)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_it_equals_scipys(shape, dtype):
    logits = (20 * np.random.default_rng(0).normal(size=shape)).astype(dtype)
    axis = 0 if len(shape) == 1 else 1
    for name in ("softmax", "log_softmax", "logsumexp"):
        ours, theirs = getattr(softmax, name)(logits, axis), getattr(special, name)(logits, axis)
        assert ours.dtype == dtype
        np.testing.assert_allclose(ours, theirs, rtol=1e-5 if dtype == np.float32 else 1e-12)


def test_classes_that_are_ruled_out_have_probability_zero():
    rows = np.array([[0.0, -np.inf, 0.0]])
    assert softmax.softmax(rows).tolist() == [[0.5, 0.0, 0.5]]
    assert softmax.logsumexp(np.full((1, 2), -np.inf)).tolist() == [-np.inf]


def test_slices_cover_every_row_once():
    for num_rows, size, numbers in ((10, 3, 6), (1, 100, 6), (0, 5, 6), (12, 1, 4)):
        covered = [i for part in slices(num_rows, size, numbers) for i in range(num_rows)[part]]
        assert covered == list(range(num_rows))


def test_blocks_are_numpy_arrays_of_rows_and_what_belongs_to_them():
    torch = pytest.importorskip("torch")
    rows, labels = torch.arange(10.0).view(5, 2), np.arange(5)
    parts = list(blocks(rows, labels, numbers=4))
    assert [len(part) for part, _ in parts] == [2, 2, 1]
    np.testing.assert_array_equal(np.concatenate([part for part, _ in parts]), rows)
    np.testing.assert_array_equal(np.concatenate([part for _, part in parts]), labels)
