import math
from statistics import NormalDist

import numpy as np
import pytest

from compared_worlds import World, plain_run
from longtail.flows.compare_runs import SampleSet
from longtail.flows.noise import Contrast, needed, verdict
from longtail.stats import Part


def test_the_best_what_is_tied_and_what_is_behind():
    world = World(per_class=80)
    methods = {
        "CE": world.runs("CE", 0.2),
        "LA": world.runs("LA", 1.60),
        "BS": world.runs("BS", 1.62),
    }
    found = verdict(methods, world.samples, "balanced_accuracy")
    assert found.best in ("LA", "BS")
    assert found.tied == tuple({"LA", "BS"} - {found.best})
    assert found.behind == ("CE",)
    assert found.with_seeds


def test_less_is_better_for_the_log_loss(world):
    methods = {"CE": world.runs("CE", 0.2), "LA": world.runs("LA", 2.0)}
    found = verdict(methods, world.samples, "nll")
    assert found.best == "LA"
    assert found.others[0].behind > 0


@pytest.mark.parametrize("seeds", [1, 3])
def test_an_interval_that_reaches_zero_is_one_that_is_not_told_apart(seeds):
    world = World(seed=7)
    methods = {f"{skill}": world.runs(f"{skill}", skill, seeds) for skill in (0, 0.3, 0.9, 1.0, 3)}
    for key in ("balanced_accuracy", "few", "ece", "nll"):
        found = verdict(methods, world.samples, key)
        assert found.with_seeds == (seeds > 1)
        for each in found.others:
            assert each.told_apart == (each.low > 0)
            assert each.told_apart == (each.p <= 0.05)
            assert each.low <= each.behind <= each.high


def test_the_correction_counts_all_pairs():
    world = World(per_class=40)
    (one,), (other,) = world.runs("A", 1.0, 1), world.runs("B", 0.6, 1)
    alone = verdict({"A": [one], "B": [other]}, world.samples, "balanced_accuracy")
    # Copies of the better one: six pairs, of which the three with B are alike.
    copies = {name: [one] for name in "ACD"} | {"B": [other]}
    among = verdict(copies, world.samples, "balanced_accuracy")
    p = next(each.p for each in among.others if each.method == "B")
    assert p == pytest.approx(min(1.0, 6 * alone.others[0].p))


def test_a_method_without_a_finite_value_is_left_out(world):
    ruled_out = plain_run("CE", 0, np.full(100, math.inf))
    methods = {"CE": [ruled_out], "LA": world.runs("LA", 1.0, 1), "BS": world.runs("BS", 0.9, 1)}
    found = verdict(methods, world.samples, "nll")
    assert found.left_out == ("CE",)
    assert len(found.others) == 1
    assert verdict({"CE": [ruled_out]}, world.samples, "nll") is None


def power(value, variance, level):
    """How often a difference is told, if seen with this variance."""
    reach = NormalDist().inv_cdf(1 - level / 2) * math.sqrt(variance)
    return (
        NormalDist(value, math.sqrt(variance)).cdf(-reach)
        + 1
        - NormalDist(value, math.sqrt(variance)).cdf(reach)
    )


def test_what_is_needed_gives_four_of_five():
    seeds, samples, shared, runs = 4e-4, 1e-5, 1e-4, 3
    found = Contrast(0.02, Part(seeds, 4), Part(samples, 300), shared, runs, False)
    more_seeds, more_samples, _ = needed(found, 0.05)
    assert power(0.02, seeds * runs / more_seeds + samples, 0.05) == pytest.approx(0.8, abs=1e-6)
    assert more_samples is None  # the seeds alone vary too much
    fewer = Contrast(0.02, Part(3e-5, 4), Part(9e-5, 300), 2e-5, runs, False)
    more_seeds, more_samples, _ = needed(fewer, 0.05)
    assert more_seeds is None
    left = (3e-5 - 2e-5) + (9e-5 + 2e-5) / more_samples
    assert power(0.02, left, 0.05) == pytest.approx(0.8, abs=1e-6)
    alone = Contrast(0.02, None, Part(2e-4, 300), 0.0, 1, False)
    _, more_samples, _ = needed(alone, 0.01)
    assert power(0.02, 2e-4 / more_samples, 0.01) == pytest.approx(0.8, abs=1e-6)


def test_equally_good_methods_are_rarely_all_told_apart_from_the_best():
    """The best of six is chosen by looking, and the correction has to know."""
    random = np.random.default_rng(0)
    samples = SampleSet("toy", np.tile(np.arange(5), 40), 5)
    alarms = 0
    for _ in range(60):
        base = random.normal(size=200)
        methods = {}
        for name in "ABCDEF":
            score = base + 0.7 * random.normal(size=200)
            methods[name] = [plain_run(name, 0, score > 0)]
        found = verdict(methods, samples, "balanced_accuracy")
        alarms += bool(found.behind)
    assert alarms / 60 <= 0.1
