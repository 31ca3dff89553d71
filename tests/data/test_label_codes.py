"""Labels of arrays: the distinct ones in order and where each stands, whatever the numbers are."""

import numpy as np
import pytest

from longtail.data.tables.label_codes import LabelCodes


@pytest.mark.parametrize(
    "labels",
    [
        np.array([7, 2, 2, 0, 9, 7]),
        np.array([3, 3], np.uint8),
        np.array([5, 2**20 - 1, 2**20, 5]),
        np.array([-1, 4, -1]),
        np.array([2**64 - 1, 1], np.uint64),
    ],
)
def test_codes_are_those_of_a_sort(labels):
    codes = LabelCodes.of_array(labels, "labels")
    values, expected = np.unique(labels, return_inverse=True)
    assert codes.values == tuple(map(str, values.tolist()))
    assert codes.codes.tolist() == expected.tolist()
    assert codes.codes.dtype == np.int64
    assert codes.stored_as_numbers
