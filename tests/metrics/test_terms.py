"""What samples add to sums: the same on any number of threads, and next to the edges of bins."""

import numpy as np
import pytest

from longtail.metrics import terms
from longtail.metrics.terms import bin_of, block_sums


@pytest.fixture
def block():
    stream = np.random.default_rng(0)
    logits = stream.normal(scale=3, size=(500, 7)).astype(np.float32)
    logits[::5, 2] = -np.inf
    return logits, stream.integers(0, 7, 500), stream.exponential(size=500)


def naive(logits, labels, weights, bins):
    """With loops, one probability at a time."""
    edges, gaps, columns = np.arange(1, bins) / bins, np.zeros((7, bins)), []
    for row, label, weight in zip(logits.astype(float), labels, weights, strict=True):
        probs = np.exp(row - row.max())
        probs /= probs.sum()
        truth = np.arange(7) == label
        with np.errstate(divide="ignore"):
            loss = -np.log(probs[label])
        columns.append((row.argmax() == label, loss, ((probs - truth) ** 2).sum(), probs.max()))
        for chosen in range(7):
            at = np.searchsorted(edges, probs[chosen])
            gaps[chosen, at] += weight * (truth[chosen] - probs[chosen])
    return np.array(columns).T, gaps


@pytest.mark.parametrize("bins", [1, 15, 20])
@pytest.mark.parametrize("level", [0, -29, 29, -200, 200])
@pytest.mark.parametrize(
    ("kind", "near", "zero"), [("float64", 1e-12, 1e-14), ("float32", 1e-6, 5e-7)]
)
def test_they_are_those_of_loops(block, bins, level, kind, near, zero, monkeypatch):
    logits = block[0].astype(kind)
    if level:  # each row's highest is at it, or up to one below
        fraction = np.abs(logits.max(axis=1, keepdims=True)) % 1
        logits += level - logits.max(axis=1, keepdims=True) - fraction
    block = (logits, *block[1:])
    monkeypatch.setattr(terms, "_PART", 7 * 90)
    monkeypatch.setattr(terms, "IN_CACHE", 7 * 40)
    made, predicted, gaps = block_sums(*block, bins)
    expected, expected_gaps = naive(*block, bins)
    np.testing.assert_array_equal(predicted, block[0].argmax(axis=1))
    np.testing.assert_array_equal(made.right, expected[0])
    for column, wanted in zip(made[1:], expected[1:], strict=True):
        np.testing.assert_allclose(column, wanted, rtol=near, atol=zero)
    np.testing.assert_allclose(gaps, expected_gaps, rtol=near, atol=100 * zero)


def test_float32_logits_near_the_end_of_their_range_have_their_log_loss():
    logits = np.array([[3e38, -3e38], [-3e38, 0.0]], np.float32)
    made, _, _ = block_sums(logits, np.array([1, 0]), np.ones(2), 20)
    np.testing.assert_allclose(made.nll, [6e38, 3e38], rtol=1e-6)


def test_on_any_number_of_threads_they_are_the_same_to_the_bit(block, monkeypatch):
    monkeypatch.setattr(terms, "_PART", 7 * 90)
    results = []
    for threads in ("1", "3", "any"):
        monkeypatch.setenv("OMP_NUM_THREADS", threads)
        made, predicted, gaps = block_sums(*block, 20)
        results.append([*made, predicted, gaps])
    for other in results[1:]:
        for one, same in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(one, same)


def test_what_is_not_asked_for_is_no_number(block):
    made, predicted, gaps = block_sums(*block, 20, whole=False)
    all_of_it = block_sums(*block, 20)
    for name in ("right", "nll", "confidence"):
        np.testing.assert_array_equal(getattr(made, name), getattr(all_of_it[0], name))
    np.testing.assert_array_equal(predicted, all_of_it[1])
    assert np.isnan(made.brier).all()
    assert np.isnan(gaps).all()


@pytest.mark.parametrize("bins", [1, 3, 10, 15, 20, 49])
def test_bins_are_open_below_and_closed_above_to_the_last_bit(bins):
    edges = np.arange(0, bins + 1) / bins
    probs = np.concatenate([edges, np.nextafter(edges, 0), np.nextafter(edges, 2)])
    expected = np.searchsorted(edges[1:-1], probs)
    np.testing.assert_array_equal(bin_of(probs, bins), expected)
    np.testing.assert_array_equal(bin_of(probs[:, None], bins), expected[:, None])


@pytest.mark.parametrize("kind", ["float32", "float64"])
def test_shares_of_votes_are_on_edges_however_many_rows_are_counted_together(kind):
    votes = np.random.default_rng(0).multinomial(20, np.full(7, 1 / 7), size=300) + 1e-300
    logits, labels = np.log(votes).clip(-80).astype(kind), np.arange(300) % 7
    whole = block_sums(logits, labels, np.ones(300), 20)[2]
    alone = [
        block_sums(*part, np.ones(1), 20)[2]
        for part in zip(logits[:, None], labels[:, None], strict=True)
    ]
    np.testing.assert_allclose(np.sum(alone, axis=0), whole, atol=1e-4)
