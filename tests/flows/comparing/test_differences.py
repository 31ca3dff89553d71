import math

import numpy as np
import pytest

from compared_worlds import plain_run
from longtail import Prior
from longtail.flows.compare_runs import SampleSet
from longtail.flows.noise import Contrast, difference, seed_noise
from longtail.metrics import paired_gain
from longtail.stats import Part, student_p, student_reach

KEY = "balanced_accuracy"


def drawn(random, method, shape, shift=0.0):
    terms = random.random(shape) + shift > 0.5
    return [plain_run(method, seed, row) for seed, row in enumerate(terms)]


@pytest.fixture
def samples():
    labels = np.array([0] * 9 + [1] * 6 + [2] * 4)
    return SampleSet("toy", labels, 3, Prior.uniform(3))


def naive_variance_over_samples(terms, labels):
    total = 0.0
    for each in range(3):
        mine = [float(t) for t, y in zip(terms, labels, strict=True) if y == each]
        mean = sum(mine) / len(mine)
        var = sum((t - mean) ** 2 for t in mine) / (len(mine) - 1)
        total += (1 / 3) ** 2 * var / len(mine)
    return total


def naive_rest(rows, labels):
    """σ²_rest/(S·n) class by class, from the residuals of a table of two factors."""
    runs, total = len(rows), 0.0
    for each in range(3):
        columns = [at for at, y in enumerate(labels) if y == each]
        table = [[float(row[at]) for at in columns] for row in rows]
        n = len(columns)
        whole = sum(map(sum, table)) / (runs * n)
        squares = 0.0
        for s in range(runs):
            for i in range(n):
                of_seed = sum(table[s]) / n
                of_sample = sum(table[r][i] for r in range(runs)) / runs
                squares += (table[s][i] - of_seed - of_sample + whole) ** 2
        variance = squares / ((runs - 1) * (n - 1))
        total += (1 / 3) ** 2 * variance / (runs * n)
    return total


def metric_of(run, labels):
    by_class = [[], [], []]
    for term, label in zip(run.right.tolist(), labels.tolist(), strict=True):
        by_class[label].append(term)
    return sum(sum(each) / len(each) for each in by_class) / 3


def test_the_variances_are_what_loops_make_them(samples):
    random = np.random.default_rng(1)
    one = drawn(random, "A", (3, 19), 0.2)
    other = drawn(random, "B", (4, 19))
    found = difference(one, other, samples, KEY)
    means = [np.stack([run.right for run in runs]).mean(0) for runs in (one, other)]
    values = [[metric_of(run, samples.labels) for run in runs] for runs in (one, other)]
    assert found.value == pytest.approx(sum(values[0]) / 3 - sum(values[1]) / 4)
    shared = sum(naive_rest([r.right for r in runs], samples.labels) for runs in (one, other))
    over_samples = naive_variance_over_samples(means[0] - means[1], samples.labels)
    shared = min(shared, over_samples)
    assert found.shared == pytest.approx(shared)
    assert found.samples.variance == pytest.approx(over_samples - shared)
    parts = []
    for each in values:
        mean = sum(each) / len(each)
        parts.append(sum((v - mean) ** 2 for v in each) / (len(each) - 1) / len(each))
    assert found.seeds.variance == pytest.approx(max(sum(parts), shared))
    welch = sum(parts) ** 2 / (parts[0] ** 2 / 2 + parts[1] ** 2 / 3)
    assert found.seeds.freedom == pytest.approx(welch)
    assert not found.by_seed


def test_of_one_run_each_it_is_the_paired_gain():
    random = np.random.default_rng(2)
    labels = np.tile(np.arange(4), 25)
    samples = SampleSet("toy", labels, 4, Prior.uniform(4))
    (one,) = drawn(random, "A", (1, 100), 0.1)
    (other,) = drawn(random, "B", (1, 100))
    found = difference([one], [other], samples, KEY)
    gain = paired_gain(other.right > 0, one.right > 0, labels, target=Prior.uniform(4))
    assert found.value == pytest.approx(gain.value)
    change = one.right - other.right
    within = sum(float(change[labels == k].var(ddof=1)) / 25 for k in range(4))
    assert found.samples.variance == pytest.approx(within / 16)
    assert found.seeds is None
    assert found.p == student_p(
        found.value / math.sqrt(found.samples.variance), found.samples.freedom
    )


def test_few_samples_that_differ_have_few_degrees_of_freedom():
    labels = np.zeros(200, dtype=np.int64)
    samples = SampleSet("toy", labels, 1, Prior.uniform(1))
    better = np.zeros(200)
    better[:4] = 1.0
    one, other = [plain_run("A", 0, better)], [plain_run("B", 0, np.zeros(200))]
    found = difference(one, other, samples, KEY)
    assert found.samples.freedom == pytest.approx(3, abs=0.2)
    # The exact test of four flips says 2/2⁴; the normal one would say 0.045.
    assert found.p == pytest.approx(2 / 2**4, abs=0.03)


def test_all_samples_alike_are_no_proof():
    samples = SampleSet("toy", np.array([0, 1, 2]), 3, Prior.uniform(3))
    one, other = [plain_run("A", 0, [1, 1, 1])], [plain_run("B", 0, [0, 0, 0])]
    assert difference(one, other, samples, KEY).p > 0.1
    assert difference(one, one, samples, KEY).p == 1.0


def test_a_class_with_one_sample_varies_as_the_others_do():
    samples = SampleSet("toy", np.array([0] * 10 + [1]), 2, Prior.uniform(2))
    terms = np.array([1.0, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1])
    nothing = plain_run("B", 0, np.zeros(11))
    found = difference([plain_run("A", 0, terms)], [nothing], samples, KEY)
    of_first = terms[:10].var(ddof=1)
    expected = 0.25 * of_first / 10 + 0.25 * of_first
    assert found.samples.variance == pytest.approx(float(expected))


def test_runs_of_one_training_are_paired_and_others_are_not():
    random = np.random.default_rng(3)
    samples = SampleSet("toy", np.tile(np.arange(4), 50), 4, Prior.uniform(4))
    one = drawn(random, "A", (3, 200))
    # A second head turns a few of the samples of each run.
    second = []
    for run in one:
        turned = random.random(200) < 0.1
        second.append(plain_run("B", run.seed, np.where(turned, 1.0, run.right)))
    paired = difference(one, second[::-1], samples, KEY)
    assert paired.by_seed
    assert paired.seeds.freedom == 2
    apart = [metric_of4(a) - metric_of4(b) for a, b in zip(one, second, strict=True)]
    mean = sum(apart) / 3
    expected = sum((d - mean) ** 2 for d in apart) / 2 / 3
    assert paired.seeds.variance == pytest.approx(max(expected, paired.shared))
    assert not difference(one, drawn(random, "C", (3, 200)), samples, KEY).by_seed
    renamed = [plain_run("B", f"x{run.seed}", run.right) for run in second]
    assert not difference(one, renamed, samples, KEY).by_seed


def metric_of4(run):
    return float(run.right.reshape(50, 4).mean())


def test_one_run_borrows_the_noise_of_the_others(samples):
    random = np.random.default_rng(4)
    one = drawn(random, "A", (4, 19))
    other = drawn(random, "B", (1, 19))
    noise = seed_noise([one, other], samples, KEY)
    values = [metric_of(run, samples.labels) for run in one]
    mean = sum(values) / 4
    variance = sum((v - mean) ** 2 for v in values) / 3
    assert noise == Part(pytest.approx(variance), 3)
    found = difference(one, other, samples, KEY, noise)
    assert found.seeds.variance == pytest.approx(max(variance / 4 + variance, found.shared))
    assert seed_noise([other], samples, KEY) is None


def test_the_probability_and_the_interval_agree():
    found = Contrast(0.03, Part(1e-4, 3.0), Part(5e-5, 40.0), 1e-5, 3, False)
    assert found.reach(found.p) == pytest.approx(0.03, rel=1e-6)
    naive = math.sqrt(student_reach(0.05, 3) ** 2 * 1e-4 + student_reach(0.05, 40) ** 2 * 5e-5)
    assert found.reach(0.05) == pytest.approx(naive)


def false_alarms(trials, runs, sd_seed, sd_sample, sd_rest):
    """How often two equally good methods are told apart: by us, by seeds, by samples alone."""
    random = np.random.default_rng(5)
    samples = SampleSet("toy", np.tile(np.arange(10), 20), 10, Prior.uniform(10))
    alarms = np.zeros(3)
    for _ in range(trials):
        base = random.normal(size=(200))
        methods = []
        for name in "AB":
            score = base + sd_sample * random.normal(size=(200))
            score = score + sd_seed * random.normal(size=(runs, 1))
            score = score + sd_rest * random.normal(size=(runs, 200))
            rows = score > 0
            methods.append([plain_run(name, seed, row) for seed, row in enumerate(rows)])
        found = difference(*methods, samples, KEY)
        alarms[0] += found.p < 0.05
        if found.seeds is not None:
            error = math.sqrt(found.seeds.variance)
            alarms[1] += student_p(found.value / error, found.seeds.freedom) < 0.05
        error = math.sqrt(found.samples.variance + found.shared)
        alarms[2] += student_p(found.value / error, math.inf) < 0.05
    return (alarms / trials).tolist()


@pytest.mark.parametrize(
    ("runs", "seed", "sample", "rest"),
    [(1, 0.0, 0.4, 0.3), (3, 0.3, 0.3, 0.5), (3, 0.01, 0.6, 0.2), (5, 0.1, 0.4, 0.4)],
)
def test_equal_methods_are_rarely_told_apart(runs, seed, sample, rest):
    ours, _, _ = false_alarms(150, runs, seed, sample, rest)
    assert ours <= 0.085  # 0.05 and two standard errors of 150 trials


def test_either_source_alone_would_often_be_wrong():
    _, _, samples_only = false_alarms(60, 3, 0.3, 0.3, 0.5)
    assert samples_only > 0.3
    _, seeds_only, _ = false_alarms(60, 5, 0.01, 0.6, 0.2)
    assert seeds_only > 0.1
