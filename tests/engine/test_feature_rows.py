"""Rows come out the same from memory and from the disk."""

import numpy as np
import pytest
import torch

from longtail.core.blocks import DiskRows
from longtail.engine import FeatureRows

VALUES = torch.randn(50, 7, generator=torch.Generator().manual_seed(0))


def mapped(folder, dtype):
    place = folder / "rows.npy"
    np.save(place, VALUES.numpy().astype(dtype))
    return np.load(place, mmap_mode="r")


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_blocks_and_positions_are_the_rows(tmp_path, dtype):
    stored = mapped(tmp_path, dtype)
    wide = torch.float64 if dtype == np.float64 else torch.float32
    expected = torch.from_numpy(np.array(stored)).to(wide)
    for given in (stored, np.array(stored), torch.from_numpy(np.array(stored))):
        rows = FeatureRows(given)
        assert (len(rows), rows.dim, rows.dtype) == (50, 7, wide)
        blocks = list(rows.blocks(numbers=7 * 8))
        assert [at.stop - at.start for at, _ in blocks] == [8] * 6 + [2]
        assert torch.equal(torch.cat([block for _, block in blocks]), expected)
        at = torch.tensor([3, 3, 49, 0])
        assert torch.equal(rows.take(at), expected[at])


def test_a_row_larger_than_a_block_is_a_block():
    assert len(list(FeatureRows(VALUES).blocks(numbers=3))) == 50


def test_rows_on_the_disk_are_read_and_not_mapped(tmp_path):
    assert isinstance(FeatureRows(mapped(tmp_path, np.float16))._rows, DiskRows)


@pytest.mark.parametrize("wrong", [torch.zeros(3), torch.zeros(3, 2, dtype=torch.long)])
def test_what_are_no_features_is_said(wrong):
    with pytest.raises(ValueError, match=r"\(N, D\) and float16"):
        FeatureRows(wrong)
