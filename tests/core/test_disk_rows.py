"""Rows read from the file are those seen through the map."""

import numpy as np
import pytest

from longtail.core.blocks import DiskRows, on_disk

ROWS = np.random.default_rng(0).normal(size=(40, 7)).astype(np.float16)


@pytest.fixture
def mapped(tmp_path):
    np.save(tmp_path / "rows.npy", ROWS)
    return np.load(tmp_path / "rows.npy", mmap_mode="r")


def test_slices_and_positions_are_the_rows(mapped):
    rows = on_disk(mapped)
    assert isinstance(rows, DiskRows)
    assert (rows.shape, rows.dtype, rows.ndim, len(rows)) == ((40, 7), np.float16, 2, 40)
    for at in (slice(0, 40), slice(3, 9), slice(38, 99), slice(5, 5), slice(None)):
        assert np.array_equal(rows[at], ROWS[at])
    at = np.array([3, 39, 0, 3])
    assert np.array_equal(rows[at], ROWS[at])
    assert type(rows[:2]) is np.ndarray


def test_a_part_of_a_map_starts_where_it_starts(mapped):
    part = mapped[5:30][2:]
    assert np.array_equal(on_disk(part)[:], ROWS[7:30])


def test_what_is_no_plain_read_only_map_stays_as_it_is(mapped, tmp_path):
    written = np.load(tmp_path / "rows.npy", mmap_mode="r+")
    for rows in (ROWS, mapped[:, 1:], mapped[::2], written, mapped[:0], mapped[0]):
        assert on_disk(rows) is rows


def test_a_file_that_was_cut_short_is_an_error(mapped, tmp_path):
    rows = on_disk(mapped)
    with (tmp_path / "rows.npy").open("r+b") as file:
        file.truncate(300)
    with pytest.raises(OSError, match="cut short"):
        rows[:]


def test_steps_are_refused(mapped):
    with pytest.raises(IndexError, match="in order"):
        on_disk(mapped)[::2]
