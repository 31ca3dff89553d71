"""Work on threads: results in order, and NumPy's products on one thread only as long as asked."""

from threading import Barrier

import pytest

from longtail.core import threads
from longtail.core.threads import in_threads, one_blas_thread

PARTS = [slice(at, at + 1) for at in range(9)]


@pytest.mark.parametrize("said", ["1", "3", "", "many"])
def test_results_come_in_the_order_of_the_parts(said, monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", said)
    assert in_threads(lambda part: part.start**2, PARTS) == [at**2 for at in range(9)]


def test_several_parts_are_worked_on_at_a_time(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    met = Barrier(3, timeout=30)  # which would break if fewer came
    in_threads(lambda part: met.wait(), PARTS)


def test_an_error_of_the_work_is_raised(monkeypatch):
    monkeypatch.setenv("OMP_NUM_THREADS", "2")
    with pytest.raises(ZeroDivisionError):
        in_threads(lambda part: 1 / part.start, PARTS)


@pytest.fixture
def number(monkeypatch):
    """How many threads OpenBLAS takes, as if it were this one."""
    taken = [5]
    functions = (lambda: taken[0], lambda new: taken.__setitem__(0, new))
    monkeypatch.setattr(threads, "_thread_number", lambda: functions)
    return taken


def test_products_take_one_thread_until_the_last_that_asked_is_done(number):
    with one_blas_thread():
        with one_blas_thread():
            assert number == [1]
        assert number == [1]
    assert number == [5]
    with pytest.raises(ValueError, match="wrong"), one_blas_thread():
        raise ValueError("wrong")
    assert number == [5]


def test_they_do_where_parts_are_worked_on(number):
    assert in_threads(lambda part: number[0], PARTS) == [1] * 9
    assert number == [5]


def test_with_another_library_nothing_is_changed(monkeypatch):
    monkeypatch.setattr(threads, "_thread_number", lambda: None)
    assert in_threads(lambda part: part.start, PARTS) == list(range(9))


def test_that_of_numpys_wheels_is_found():
    number = threads._thread_number()
    if number is None:
        pytest.skip("this NumPy has another library")
    before = number[0]()
    with one_blas_thread():
        assert number[0]() == 1
    assert number[0]() == before
