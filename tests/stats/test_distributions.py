import math

import pytest
from scipy import stats

from longtail.stats import student_p, student_reach


@pytest.mark.parametrize("freedom", [1, 1.7, 2, 3.3, 10, 250, 99_999])
@pytest.mark.parametrize("t", [1e-9, 0.3, 1.0, 2.5, 12.7, 400.0])
def test_the_probability_is_that_of_scipy(t, freedom):
    expected = 2 * stats.t.sf(t, freedom)
    assert student_p(t, freedom) == pytest.approx(expected, rel=1e-9, abs=1e-300)
    assert student_p(-t, freedom) == student_p(t, freedom)


@pytest.mark.parametrize("freedom", [1, 2.5, 4, 30, 5000, math.inf])
@pytest.mark.parametrize("level", [0.5, 0.05, 0.05 / 45, 1e-12])
def test_the_reach_is_that_of_scipy(level, freedom):
    law = stats.norm if math.isinf(freedom) else stats.t(freedom)
    assert student_reach(level, freedom) == pytest.approx(law.isf(level / 2), rel=1e-7)


def test_the_ends_are_sure():
    assert student_p(0.0, 3) == 1.0
    assert student_p(math.inf, 3) == 0.0
    assert student_p(1e200, 3) == 0.0
