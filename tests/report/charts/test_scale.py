"""Ticks and spans over many sizes of numbers."""

import random

import pytest

from longtail.report.charts.scale import (
    covering_ticks,
    linear_ticks,
    log_ticks,
    readable,
    span_of,
    tick_labels,
)
from longtail.report.charts.svg import shorten, text_width, wrap

SOURCE = random.Random(0)
SPANS = [
    (low, low + 10 ** SOURCE.uniform(-6, 6))
    for low in (SOURCE.uniform(-1, 1) * 10 ** SOURCE.uniform(-3, 3) for _ in range(300))
]


@pytest.mark.parametrize("most", [1, 5, 8])
def test_ticks_lie_in_the_span_evenly_and_are_few(most):
    for low, high in SPANS:
        ticks = linear_ticks(low, high, most)
        room = (high - low) * 1e-6
        assert len(ticks) <= most + 1
        assert all(low - room <= tick <= high + room for tick in ticks)


def test_tick_labels_are_distinct():
    for low, high in SPANS:
        labels = tick_labels(linear_ticks(low, high))
        if (high - low) > 1e-5 * max(abs(low), abs(high)):
            assert len(set(labels)) == len(labels)


def test_covering_ticks_reach_around_the_span():
    for low, high in SPANS:
        ticks = covering_ticks(low, high)
        room = (high - low) * 1e-6
        assert ticks[0] <= low + room
        assert ticks[-1] >= high - room
        assert 2 <= len(ticks) <= 7


def test_covering_ticks_of_positive_numbers_do_not_cross_zero():
    assert covering_ticks(0.3, 97.0)[0] == 0


@pytest.mark.parametrize(("low", "high"), [(1, 2), (3, 4), (0.5, 3000), (1e-8, 1e9), (9, 11)])
def test_logarithmic_ticks_lie_in_the_span(low, high):
    ticks = log_ticks(low, high)
    assert 2 <= len(ticks) <= 6
    assert all(low <= tick <= high for tick in ticks)


def test_spans_are_never_empty():
    for values in ([], [0.0], [3.0, 3.0], [-1e9], [1e-9], [float("inf")], [1.0, 1.0 + 1e-15]):
        low, high = span_of(values)
        assert low < high


def test_numbers_are_written_for_people():
    numbers = [0.0, -0.25, 12.0, 999.5, 1500.0, 2.5e12, float("inf")]
    written = ["0", "−0.25", "12", "999.5", "1,500", "2.5e12", "∞"]
    assert list(map(readable, numbers)) == written


def test_text_is_cut_and_wrapped_to_its_room():
    text = "a name of many words that needs several lines"
    assert all(text_width(line) <= 100 for line in wrap(text, 100))
    assert len(wrap(text, 100)) == 3
    assert text_width(shorten(text, 50)) <= 50
    assert shorten("short", 500) == "short"
