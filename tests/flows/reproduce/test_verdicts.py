"""Verdicts: what each means, at every edge."""

import sys
from pathlib import Path

import numpy as np
import pytest

from longtail.flows.reproduce.experiment import Better, Close, Column, Trend
from longtail.flows.reproduce.measures import EDGES
from longtail.flows.reproduce.measuring import CellMeasure
from longtail.flows.reproduce.result import reproduced
from longtail.flows.reproduce.verdicts import _Finding, _verdict, judge_claim
from longtail.stats import Interval

sys.path.insert(0, str(Path(__file__).parent))
from worlds import CE, COUNTS, LA, experiment, kept

HOLDS, FAILS, OPEN = "holds", "does not hold", "cannot tell"


def verdict(claim, *ends):
    found = [
        _Finding((), (), lambda level, e=each: Interval(sum(e) / 2, *e), "", 1) for each in ends
    ]
    return _verdict(claim, found)


@pytest.mark.parametrize(
    ("by", "ends", "expected"),
    [
        (0.0, [(0.1, 1.0)], HOLDS),
        (0.0, [(0.0, 1.0)], OPEN),
        (0.0, [(-0.5, 0.5)], OPEN),
        (0.0, [(-1.0, -0.1)], FAILS),
        (0.0, [(-1.0, 0.0)], OPEN),
        (0.0, [(0.1, 1.0), (0.2, 0.4)], HOLDS),
        (0.0, [(0.1, 1.0), (-0.1, 0.4)], OPEN),
        (0.0, [(0.1, 1.0), (-0.4, -0.1)], FAILS),
        (5.0, [(5.0, 9.0)], HOLDS),
        (5.0, [(4.9, 9.0)], OPEN),
        (5.0, [(1.0, 4.9)], FAILS),
    ],
)
def test_better_by_so_much(by, ends, expected):
    assert verdict(Better("t", "a", "b", by=by), *ends) == expected


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ([(-0.5, 0.0)], HOLDS),
        ([(3.0, 9.0)], HOLDS),
        ([(-0.6, 9.0)], OPEN),
        ([(-0.9, -0.6)], FAILS),
        ([(3.0, 9.0), (-0.9, -0.6)], FAILS),
    ],
)
def test_at_least_a_number_has_no_upper_edge(ends, expected):
    assert verdict(Close("t", "a", 46.0, 0.5, at_least=True), *ends) == expected


@pytest.mark.parametrize(
    ("ends", "expected"),
    [
        ([(-0.5, 0.5)], HOLDS),
        ([(-0.6, 0.5)], OPEN),
        ([(0.6, 0.9)], FAILS),
        ([(-0.9, -0.6)], FAILS),
        ([(-0.1, 0.1), (0.4, 0.6)], OPEN),
        ([(-0.1, 0.1), (0.6, 0.7)], FAILS),
    ],
)
def test_close_within_so_much(ends, expected):
    assert verdict(Close("t", "a", 0.0, 0.5), *ends) == expected


@pytest.mark.parametrize(
    ("signs", "ends", "expected"),
    [
        ((1,), (0.1, 0.9), HOLDS),
        ((1,), (-0.1, 0.9), OPEN),
        ((1,), (-0.9, -0.1), FAILS),
        ((-1,), (-0.9, -0.1), HOLDS),
        ((-1,), (0.1, 0.9), FAILS),
        ((0,), (-0.2, 0.3), HOLDS),
        ((0,), (-0.2, 0.6), OPEN),  # too few classes to say that there is none
        ((0,), (0.1, 0.3), FAILS),
        ((0,), (-0.3, -0.1), FAILS),
        ((0, -1), (-0.9, -0.6), HOLDS),
        ((0, -1), (-0.9, 0.3), HOLDS),
        ((0, -1), (-0.2, 0.6), OPEN),
        ((0, -1), (0.1, 0.4), FAILS),
        ((1, 0), (0.3, 0.9), HOLDS),
        ((1, 0), (-0.4, -0.1), FAILS),
    ],
)
def test_a_trend_has_one_of_these_signs(signs, ends, expected):
    assert verdict(Trend("t", ("a",), ("x",), signs), ends) == expected


def test_without_an_interval_nothing_can_be_told():
    found = _Finding((), (), lambda level: Interval(5.0), "", 1)
    assert _verdict(Better("t", "a", "b"), [found]) == OPEN


def test_that_one_of_many_columns_fails_takes_more_than_one_in_twenty():
    def at(level):  # of a standard error of 1, below zero by 2.1 of them
        reach = {0.05: 1.96, 0.01: 2.576}[round(level, 3)]
        return Interval(-2.1, -2.1 - reach, -2.1 + reach)

    good = _Finding((), (), lambda level: Interval(1.0, 0.5, 1.5), "", 1)
    bad = _Finding((), (), at, "", 1)
    assert _verdict(Better("t", "a", "b"), [bad]) == FAILS
    assert _verdict(Better("t", "a", "b"), [bad, *[good] * 4]) == OPEN


def made(claims, first, second, columns=None, **more):
    one = experiment(columns, claims, **more)
    runs = {CE: first, LA: second}
    return reproduced(one, lambda run, seed: runs[run].get(seed), None, quick=False)


def test_a_claim_is_judged_by_the_difference_on_the_same_samples():
    better, worse = {0: kept(2.0, 1)}, {0: kept(1.0, 2)}
    claims = (Better("up", "a", "b"), Better("down", "b", "a"), Close("same", "a", "b", 0.5))
    result = made(claims, better, worse)
    assert [each.verdict for each in result.outcomes] == [HOLDS, FAILS, FAILS]
    part = result.outcomes[0].evidence[0]
    ours = [result.numbers[row, "All"].value for row in ("a", "b")]
    assert part.value == pytest.approx(ours[0] - ours[1])
    assert (part.rows, part.columns, part.seeds) == (("a", "b"), ("All",), 1)
    same = made(claims, better, better)
    assert [each.verdict for each in same.outcomes] == [OPEN, OPEN, HOLDS]


def test_of_an_error_less_is_better():
    columns = (Column("Error", "balanced_error"),)
    result = made((Better("t", "a", "b"),), {0: kept(2.0, 1)}, {0: kept(1.0, 2)}, columns)
    assert result.outcomes[0].verdict == HOLDS
    assert result.outcomes[0].evidence[0].value > 0


def test_columns_and_rows_without_numbers_are_left_out_and_said():
    columns = (Column("All", "accuracy"), Column("Few", "accuracy", "elsewhere"))
    result = made((Better("t", "a", "b"),), {0: kept(2.0, 1)}, {0: kept(1.0, 2)}, columns)
    assert (result.outcomes[0].verdict, result.outcomes[0].columns_left) == (HOLDS, ("Few",))
    nothing = made((Better("t", "a", "b"),), {0: kept(2.0, 1)}, {})
    assert (nothing.outcomes[0].verdict, nothing.outcomes[0].rows_left) == (None, ("b",))


def per_class(values, seeds=(0,)):
    rows = np.tile(np.asarray(values, dtype=float), (len(seeds), 1))
    return CellMeasure(tuple(seeds), rows, counts=COUNTS)


def test_a_trend_with_the_class_size_is_a_rank_correlation_over_classes():
    counts = np.arange(100, 0, -1)
    one = experiment((Column("x", "weight_norm"),))
    rising = CellMeasure((0,), (counts**2.0)[None], counts=counts)
    noise = CellMeasure((0,), np.random.default_rng(0).normal(size=(1, 100)), counts=counts)
    claims = {sign: Trend("t", ("a",), ("x",), (sign,)) for sign in (1, 0, -1)}
    for table, expected in ((rising, (HOLDS, FAILS, FAILS)), (noise, (OPEN, HOLDS, OPEN))):
        got = [judge_claim(one, claims[s], {("a", "x"): table}).verdict for s in (1, 0, -1)]
        assert tuple(got) == expected
    found = judge_claim(one, claims[1], {("a", "x"): rising}).evidence[0]
    assert (found.value, found.over) == (1.0, "classes")
    few = CellMeasure((0,), np.zeros((1, 6)) + np.arange(6), counts=COUNTS)
    assert judge_claim(one, claims[0], {("a", "x"): few}).evidence[0].value == -1.0


def test_a_trend_along_rows_is_their_contrast_and_needs_three():
    rows = ("a", "b", "c")
    claim = Trend("t", rows, ("All",), (1,), against="rows")
    one = experiment(claims=(claim,), rows=rows)
    from longtail.flows.reproduce.experiment import Cell
    from longtail.flows.reproduce.measuring import measured

    cells = {row: kept(strength, 3) for row, strength in zip(rows, (1.0, 1.3, 1.8), strict=True)}
    table = {
        (row, "All"): measured({0: each}, Cell(row, "", CE), one.columns[0], EDGES["LA"])
        for row, each in cells.items()
    }
    judged = judge_claim(one, claim, table)
    values = [table[row, "All"].values[0] for row in rows]
    assert judged.verdict == HOLDS
    assert judged.evidence[0].value == pytest.approx(values[2] - values[0])
    assert judged.evidence[0].rows == rows
    del table["b", "All"]
    assert judge_claim(one, claim, table).verdict is None


def test_a_row_may_be_subtracted_first():
    claim = Trend("t", ("a",), ("x",), (0,), minus="b")
    one = experiment((Column("x", "recall"),), (claim,))
    counts = np.arange(1, 41)
    own, other = (
        CellMeasure((0,), values[None], counts=counts) for values in (counts * 2.0, counts * 1.0)
    )
    judged = judge_claim(one, claim, {("a", "x"): own, ("b", "x"): other})
    assert judged.evidence[0].value == 1.0


def test_of_a_row_that_is_subtracted_only_common_seeds_count():
    claim = Trend("t", ("a",), ("x",), (1,), minus="b")
    one, counts = experiment((Column("x", "recall"),), (claim,)), np.arange(1, 41)
    # The second seed of "a" falls with the count, but "b" does not have it.
    own = CellMeasure((0, 1), np.stack([counts * 2.0, counts * -9.0]), counts=counts)
    other = CellMeasure((2, 0), np.stack([counts * 50.0, counts * 1.0]), counts=counts)
    found = judge_claim(one, claim, {("a", "x"): own, ("b", "x"): other}).evidence[0]
    assert (found.value, found.seeds) == (1.0, 1)
    apart = CellMeasure((5,), counts[None] * 1.0, counts=counts)
    assert judge_claim(one, claim, {("a", "x"): own, ("b", "x"): apart}).verdict is None


def test_a_curve_rises_if_its_last_point_is_above_its_first_over_seeds():
    claim = Trend("t", ("a",), ("x",), (1,), against="point")
    one = experiment((Column("x", "cdnv_curve"),), (claim,))
    walk = np.linspace(0.0, 1.0, 11)  # one smooth curve says nothing of others
    for curves, expected in (
        ([walk], OPEN),
        ([walk, walk * 1.1, walk * 0.9], HOLDS),
        ([walk, -walk, walk], OPEN),
        ([-walk, -walk * 1.1, -walk * 0.9], FAILS),
    ):
        table = {
            ("a", "x"): CellMeasure(tuple(range(len(curves))), np.stack(curves), counts=COUNTS)
        }
        judged = judge_claim(one, claim, table)
        assert judged.verdict == expected
    assert judged.evidence[0].value == pytest.approx(-1.0)
    assert judged.evidence[0].over == "seeds"
