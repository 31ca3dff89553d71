import numpy as np
import pytest
from scipy import stats

from longtail.stats import average_ranks, holm, ranked, seed_blocks


def naive_holm(values, alpha):
    """Step down by hand."""
    left = sorted(values)
    rejected = set()
    while left:
        if left[0] > alpha / len(left):
            break
        rejected.add(left.pop(0))
    return [value in rejected for value in values]


def test_it_steps_down_as_by_hand():
    random = np.random.default_rng(0)
    for _ in range(200):
        values = list(random.uniform(size=6) ** 3)
        judged = holm(values)
        assert [each.real for each in judged] == naive_holm(values, 0.05)
        for value, each in zip(values, judged, strict=True):
            assert each.real == (each.p <= 0.05)
            assert each.real == (value <= each.level)


def test_the_adjusted_probability_is_the_level_at_which_it_would_be_real():
    values = [0.01, 0.04, 0.03, 0.2]
    for index, each in enumerate(holm(values)):
        if each.p < 1:
            assert holm(values, alpha=each.p * 1.0001)[index].real
            assert not holm(values, alpha=each.p * 0.9999)[index].real


def test_nothing_to_judge_is_fine():
    assert holm([]) == []
    assert holm([0.04])[0].real


def test_ranks_are_those_of_scipy():
    random = np.random.default_rng(1)
    for _ in range(50):
        values = random.integers(0, 4, 7).astype(float)
        expected = stats.rankdata(-values)
        found = ranked({str(at): value for at, value in enumerate(values)})
        assert list(found.values()) == pytest.approx(expected)


def test_only_seeds_that_all_have_are_ranked():
    values = {"A": {"0": 0.3, "1": 0.4, "2": 0.9}, "B": {"1": 0.5, "0": 0.2}}
    blocks = seed_blocks(values)
    assert blocks == [{"A": 0.3, "B": 0.2}, {"A": 0.4, "B": 0.5}]
    assert average_ranks(blocks, "2 seeds").mean == {"A": 1.5, "B": 1.5}
    assert seed_blocks({"A": {"0": 1.0}, "B": {"1": 1.0}}) == []
    assert seed_blocks({}) == []
