"""P4: on which τ a sample is right, against argmax of the moved logits in exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from longtail.posthoc import tau_curve
from longtail.posthoc.tau import intervals, paths
from longtail.posthoc.tau.intervals import intervals_against
from longtail.posthoc.tau.paths import Scale, Shift


def is_right(row, slopes, label, tau):
    """Whether argmax of f + τ·s is the label, by fractions, the lowest index winning ties."""
    heights = [
        None if f == -np.inf else Fraction(float(f)) + Fraction(tau) * Fraction(float(s))
        for f, s in zip(row, slopes, strict=True)
    ]
    top = max(h for h in heights if h is not None)
    return heights.index(top) == label


def shift_intervals(logits, labels, slopes):
    path = Shift(np.array(slopes, dtype=np.float64))
    return path.intervals(np.asarray(logits), np.array(labels))


def taus_around(right):
    """All ends with the numbers next to them, what lies between, and what lies far outside."""
    ends = np.unique(np.concatenate(right))
    ends = ends[np.isfinite(ends)]
    near = [np.nextafter(ends, -np.inf), ends, np.nextafter(ends, np.inf)]
    return np.concatenate([*near, ends[:-1] / 2 + ends[1:] / 2, [-1e9, 0.0, 1e9]])


# Halves over differences of slopes that are powers of two: every end is a float64 number.
halves = st.integers(-6, 6).map(lambda k: k / 2) | st.just(-np.inf)


@st.composite
def samples_with_ties(draw):
    classes = draw(st.integers(1, 5))
    slopes = draw(st.lists(st.sampled_from([0.0, 1.0, 2.0]), min_size=classes, max_size=classes))
    rows = st.lists(halves, min_size=classes, max_size=classes).filter(lambda r: max(r) > -np.inf)
    logits = draw(st.lists(rows, min_size=1, max_size=8))
    labels = [draw(st.integers(0, classes - 1)) for _ in logits]
    return np.array(logits), labels, slopes


@given(samples_with_ties(), st.sampled_from([np.float32, np.float64]), st.sampled_from([1, 2**17]))
def test_intervals_are_exact_at_their_ends_and_everywhere_else(case, dtype, block):
    logits, labels, slopes = case
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intervals, "PER_CALL", block)
        right = shift_intervals(logits.astype(dtype), labels, slopes)
    for tau in taus_around(right):
        wanted = [is_right(r, slopes, y, tau) for r, y in zip(logits, labels, strict=True)]
        assert right.contain(tau).tolist() == wanted, tau


def check_ends(logits, labels, slopes, right, apart):
    """Right just inside both ends and wrong just outside."""
    for row, label, *ends in zip(logits, labels, *right, strict=True):
        if not ends[0] < ends[1]:
            # Never right: where the lines of the label and of its rivals cross as anywhere else.
            crossings = [
                (row[j] - row[label]) / (slopes[label] - slopes[j])
                for j in range(len(row))
                if slopes[j] != slopes[label]
            ]
            assert not any(is_right(row, slopes, label, float(c) + 1e-6) for c in crossings)
            continue
        for end, inside in zip(ends, (1, -1), strict=True):
            if np.isfinite(end):
                step = inside * apart * max(1.0, abs(end))
                assert is_right(row, slopes, label, end + step)
                assert not is_right(row, slopes, label, end - step)


def test_ends_of_float32_logits_are_exact_to_float64():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 30, 60)
    logits = rng.normal(size=(60, 30)).astype(np.float32)
    logits[np.arange(60), labels] += 2
    slopes = -np.log(rng.permutation(1 + np.arange(30) // 2))  # each slope twice
    check_ends(logits, labels, slopes, shift_intervals(logits, labels, slopes), apart=1e-12)


def test_rivals_that_cross_within_a_rounding_of_each_other_are_told_apart():
    rng = np.random.default_rng(1)
    slopes = rng.normal(size=40)
    labels = rng.integers(0, 40, 25)
    crossing = rng.normal(size=(25, 1))
    logits = (crossing * (slopes[labels][:, None] - slopes)).astype(np.float32)  # all meet there
    right = shift_intervals(logits, labels, slopes)
    check_ends(logits, labels, slopes, right, apart=1e-13)
    flat, steep = np.argmin(slopes), np.argmax(slopes)
    never = ~(right.start < right.stop)
    assert never.sum() > 5
    assert not never[(labels == flat) | (labels == steep)].any()


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("kind", ["plain", "rounded", "ruled out", "one crossing"])
def test_the_walk_finds_what_comparing_with_all_rivals_finds(dtype, kind, monkeypatch):
    for seed in range(12):
        rng = np.random.default_rng(seed)
        samples, classes = rng.integers(1, 120), rng.integers(2, 50)
        monkeypatch.setattr(intervals, "PER_CALL", rng.choice([1, 100, 1000]))
        slopes = -np.log(rng.integers(1, rng.choice([3, 1000]), classes))
        labels = rng.integers(0, classes, samples)
        logits = rng.normal(size=(samples, classes)) * rng.choice([0.1, 1, 100])
        if kind == "rounded":
            logits = np.round(logits)
        elif kind == "ruled out":
            logits[rng.random(logits.shape) < 0.3] = -np.inf
            logits[:, 0] = 0
        elif kind == "one crossing":
            logits = logits[:, :1] * (slopes[labels][:, None] - slopes)
        logits = logits.astype(dtype)
        wide = logits.astype(np.float64)
        own = wide[np.arange(samples), labels][:, None]
        leads = np.where(wide > -np.inf, wide - np.maximum(own, -1e30), -np.inf)
        earlier = np.arange(classes) < labels[:, None]
        wanted = intervals_against(leads, slopes[labels][:, None] - slopes, earlier)
        found = shift_intervals(logits, labels, slopes)
        possible = (wanted.start < wanted.stop) & (own[:, 0] > -np.inf)
        assert ((found.start < found.stop) == possible).all()
        for one, other in zip(found, wanted, strict=True):
            np.testing.assert_array_equal(one[possible], other[possible])


def test_few_samples_of_ordinary_logits_are_compared_with_all_rivals(monkeypatch):
    compared = []
    against_all = intervals._against_all
    monkeypatch.setattr(
        intervals, "_against_all", lambda *args: compared.append(len(args[1])) or against_all(*args)
    )
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 100, 3000)
    logits = rng.normal(size=(3000, 100)).astype(np.float32)
    shift_intervals(logits, labels, -np.log(rng.integers(1, 300, 100)))
    assert len(compared) == 1
    assert compared[0] < 30


def test_a_model_that_has_only_learned_the_counts_predicts_the_first_class_at_one():
    log_prior = np.log(np.array([0.3, 0.1, 0.55, 0.05]))
    right = shift_intervals(np.tile(log_prior, (4, 1)), [0, 1, 2, 3], -log_prior)
    assert right.contain(1.0).tolist() == [True, False, False, False]
    assert right.contain(np.nextafter(1, 0)).tolist() == [False, False, True, False]
    assert right.contain(np.nextafter(1, 2)).tolist() == [False, False, False, True]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_every_dtype_gives_what_its_own_numbers_say(dtype):
    rng = np.random.default_rng(2)
    logits = torch.tensor(rng.normal(size=(200, 7)) * 2).to(dtype)
    labels, prior = rng.integers(0, 7, 200), rng.random(7)
    right = tau_curve(logits, labels, prior).intervals
    wide = tau_curve(logits.double(), labels, prior).intervals
    np.testing.assert_array_equal(right, wide)


def test_blocks_and_classes_in_any_order_change_nothing(monkeypatch):
    rng = np.random.default_rng(3)
    labels = rng.choice(20, 300, p=np.arange(1, 21) / 210)
    logits = rng.normal(size=(300, 20)).astype(np.float32)
    slopes = rng.permutation(np.linspace(-2, 2, 20))
    whole = shift_intervals(logits, labels, slopes)
    monkeypatch.setattr(intervals, "PER_CALL", 130)
    np.testing.assert_array_equal(shift_intervals(logits, labels, slopes), whole)
    order = np.argsort(slopes)  # names decide ties only: which of two neighbours an end is
    renamed = shift_intervals(logits[:, order], np.argsort(order)[labels], slopes[order])
    np.testing.assert_allclose(renamed, whole, rtol=1e-15)


def test_a_label_that_is_ruled_out_is_never_right_and_a_rival_that_is_never_in_the_way():
    logits = np.array([[-np.inf, 0.0, 1.0], [0.0, -np.inf, -np.inf], [1.0, -np.inf, 0.0]])
    right = shift_intervals(logits, [0, 0, 0], [0.0, 1.0, 2.0])
    assert not right.start[0] < right.stop[0]
    assert (right.start[1], right.stop[1]) == (-np.inf, np.inf)
    assert (right.start[2], right.stop[2]) == (-np.inf, np.nextafter(0.5, 1))


def test_a_class_that_the_target_rules_out_never_wins():
    offset = np.array([0.0, -np.inf, 1.0])
    logits, labels = np.array([[0.0, 9.0, 0.0]] * 3), np.array([0, 1, 2])
    right = Shift(offset).intervals(logits, labels)
    for tau in (-2.0, 0.0, 2.0):
        predicted = paths.predict(Shift(offset), logits, tau)
        assert right.contain(tau).tolist() == (predicted == labels).tolist()
        assert 1 not in predicted.tolist()


@given(
    st.lists(st.lists(st.integers(-3, 3), min_size=3, max_size=3), min_size=1, max_size=6),
    st.data(),
)
def test_scaled_logits_are_right_where_argmax_says_so_whatever_their_signs(rows, data):
    logits = np.array(rows) / 2
    labels = [data.draw(st.integers(0, 2)) for _ in rows]
    # Powers of two, and halves as logits: ends are logarithms to the base two, some of them exact.
    nu = np.array(data.draw(st.lists(st.sampled_from([0.5, 1.0, 2.0]), min_size=3, max_size=3)))
    right = Scale(np.log(nu)).intervals(logits, np.array(labels))
    for tau in (-2.0, -1.0, -0.3, 0.0, 0.3, 1.0, 1.7, 2.0):
        predicted = (logits / nu**tau).argmax(axis=1)
        assert right.contain(tau).tolist() == (predicted == labels).tolist(), tau


def test_intervals_of_scaled_logits_end_where_two_of_them_meet():
    rng = np.random.default_rng(4)
    nu = np.exp(rng.normal(size=6))
    logits = rng.normal(size=(400, 6)) - np.where(np.arange(400) < 100, 4, 0)[:, None]
    logits[200:210, 2] = -np.inf
    labels = rng.integers(0, 6, 400)
    right = Scale(np.log(nu)).intervals(logits, labels)
    ends = np.concatenate(right)
    for tau in [*(ends[np.abs(ends) < 50] + 1e-9), *np.linspace(-3, 3, 31)]:
        predicted = (logits / nu**tau).argmax(axis=1)
        np.testing.assert_array_equal(right.contain(tau), predicted == labels)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_predictions_are_those_of_the_stored_logits(dtype, monkeypatch):
    monkeypatch.setattr(paths, "IN_CACHE", 40)
    logits = np.random.default_rng(0).normal(size=(50, 4)).astype(dtype)
    for path in (Shift(np.array([0.1, 0.2, 0.3, 0.4])), Scale(np.ones(4))):
        scale, shift = path.affine(0.7)
        wide = np.float32 if dtype == np.float16 else dtype
        stored = (logits.astype(wide) * scale.astype(wide) + shift.astype(wide)).astype(dtype)
        np.testing.assert_array_equal(paths.predict(path, logits, 0.7), stored.argmax(axis=1))


def test_threads_share_the_samples_and_find_the_same(monkeypatch):
    rng = np.random.default_rng(0)
    logits, labels = rng.normal(size=(300, 7)), rng.integers(0, 7, 300)
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    alone = tau_curve(logits, labels, [64, 32, 16, 8, 4, 2, 1])
    monkeypatch.setattr(intervals, "_PART", 100)
    monkeypatch.setenv("OMP_NUM_THREADS", "3")
    shared = tau_curve(logits, labels, [64, 32, 16, 8, 4, 2, 1])
    np.testing.assert_array_equal(shared.taus, alone.taus)
    np.testing.assert_array_equal(shared.accuracy, alone.accuracy)
