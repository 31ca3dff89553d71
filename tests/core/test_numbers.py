"""What is no number is refused in one sentence, whatever it is instead."""

import pytest

from longtail.core.numbers import check_number, check_whole


@pytest.mark.parametrize("value", ["auto", None, [1.0], 10**400, 1j, float("nan"), float("inf")])
def test_what_is_no_finite_number_is_refused_by_its_name(value):
    with pytest.raises(ValueError, match="tau must be a finite number"):
        check_number(value, "tau")


@pytest.mark.parametrize("value", ["auto", None, 1.5, [1]])
def test_what_is_no_whole_number_is_refused_by_its_name(value):
    with pytest.raises(ValueError, match="seed must be a whole number"):
        check_whole(value, "seed")
