"""Profiles: the published totals, the formulas, and no class without samples."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from longtail.core import shot_groups
from longtail.data import exponential_counts, pareto_counts, step_counts

PROFILES = [exponential_counts, step_counts, pareto_counts]
CIFAR10_TOTALS = {200: 11_203, 100: 12_406, 50: 13_996, 20: 17_023, 10: 20_431}
CIFAR100_TOTALS = {200: 9_502, 100: 10_847, 50: 12_608, 20: 15_907, 10: 19_573}
CIFAR10_CLASSES = {
    200: [5000, 2775, 1540, 854, 474, 263, 146, 81, 45, 25],
    100: [5000, 2997, 1796, 1077, 645, 387, 232, 139, 83, 50],
    50: [5000, 3237, 2096, 1357, 878, 568, 368, 238, 154, 100],
}


@pytest.mark.parametrize(("ratio", "total"), CIFAR10_TOTALS.items())
def test_exponential_counts_have_the_published_totals_of_cifar10(ratio, total):
    assert exponential_counts(5000, 10, ratio).sum() == total


@pytest.mark.parametrize(("ratio", "total"), CIFAR100_TOTALS.items())
def test_exponential_counts_have_the_published_totals_of_cifar100(ratio, total):
    assert exponential_counts(500, 100, ratio).sum() == total


@pytest.mark.parametrize(("ratio", "counts"), CIFAR10_CLASSES.items())
def test_exponential_counts_are_the_published_ones_class_by_class(ratio, counts):
    assert exponential_counts(5000, 10, ratio).tolist() == counts


def test_exponential_counts_are_those_of_the_published_loop():
    for largest, num_classes in [(5000, 10), (2500, 20), (500, 100), (50, 1000)]:
        for factor in (0.5, 0.1, 0.05, 0.02):
            loop = [int(largest * factor ** (i / (num_classes - 1))) for i in range(num_classes)]
            assert exponential_counts(largest, num_classes, 1 / factor).tolist() == loop


def test_what_is_whole_is_not_lost_to_rounding():
    assert int(4980 * (1 / 996)) == 4  # what plain truncation makes of it
    for profile in PROFILES:
        assert profile(4980, 365, 996)[[0, -1]].tolist() == [4980, 5]
    assert exponential_counts(49, 2, 49).tolist() == [49, 1]
    assert exponential_counts(1280, 10, 512)[[5, 7]].tolist() == [40, 10]


def test_step_counts_put_the_middle_of_an_odd_number_among_the_small():
    assert step_counts(5000, 10, 100).tolist() == [5000] * 5 + [50] * 5
    assert step_counts(10, 7, 3).tolist() == [10, 10, 10, 3, 3, 3, 3]


def test_pareto_counts_come_near_imagenet_lt():
    counts = pareto_counts(1280, 1000, 1280 / 5)
    groups = {name: int(mask.sum()) for name, mask in shot_groups(counts).items()}
    assert counts.sum() == pytest.approx(115_846, rel=0.05)
    assert groups == pytest.approx({"many": 385, "medium": 479, "few": 136}, rel=0.05)


def test_pareto_counts_are_stretched_pareto_quantiles():
    from scipy.stats import pareto

    quantiles = pareto(2.5).isf(np.arange(1, 31) / 30)
    height = (quantiles - 1) / (quantiles[0] - 1)
    assert pareto_counts(900, 30, 45, alpha=2.5).tolist() == [int(20 + 880 * h) for h in height]


def test_pareto_counts_stand_any_power():
    assert pareto_counts(1000, 4, 10, alpha=1e-4).tolist() == [1000, 100, 100, 100]
    # The limit of a large power is linear in the logarithm of the rank.
    assert pareto_counts(1001, 4, 10, alpha=1e9).tolist() == [1001, 550, 287, 100]


@pytest.mark.parametrize("profile", PROFILES)
@given(smallest=st.integers(1, 1000), ratio=st.integers(1, 1000), num_classes=st.integers(2, 200))
def test_profiles_fall_from_the_largest_to_the_smallest(profile, smallest, ratio, num_classes):
    counts = profile(smallest * ratio, num_classes, ratio)
    assert counts.dtype == np.int64
    assert counts.shape == (num_classes,)
    assert (counts[0], counts[-1]) == (smallest * ratio, smallest)
    assert (np.diff(counts) <= 0).all()


@pytest.mark.parametrize("profile", PROFILES)
def test_a_single_class_keeps_the_largest_count(profile):
    assert profile(500, 1, 100).tolist() == [500]


@pytest.mark.parametrize("profile", PROFILES)
def test_a_ratio_of_one_is_balanced(profile):
    assert profile(7, 5, 1).tolist() == [7] * 5


@pytest.mark.parametrize("profile", PROFILES)
def test_a_class_without_samples_is_refused_with_the_parameters_that_make_it(profile):
    with pytest.raises(ValueError, match=r"largest=50, .*imbalance_ratio=100 leave .* 0\.5,"):
        profile(50, 10, 100)


@pytest.mark.parametrize("profile", PROFILES)
def test_an_inverted_ratio_is_refused_with_the_right_one(profile):
    with pytest.raises(ValueError, match=r"at least 1, got 0\.01; 0\.01 is written 100 here"):
        profile(500, 10, 0.01)


@pytest.mark.parametrize("profile", PROFILES)
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((500, 10, 0), r"at least 1, got 0$"),
        ((500, 10, float("nan")), r"at least 1, got nan$"),
        ((500, 10, float("inf")), r"at least 1, got inf$"),
        ((0, 10, 10), r"largest must .* got 0$"),
        ((float("inf"), 10, 10), r"largest must .* got inf$"),
        ((500, 0, 10), r"num_classes must .* got 0$"),
    ],
)
def test_nonsense_is_refused(profile, arguments, message):
    with pytest.raises(ValueError, match=message):
        profile(*arguments)


@pytest.mark.parametrize("alpha", [0, -1, float("nan"), float("inf")])
def test_a_power_that_is_not_positive_is_refused(alpha):
    with pytest.raises(ValueError, match="alpha must be a positive number"):
        pareto_counts(500, 10, 10, alpha=alpha)
