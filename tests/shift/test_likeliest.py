"""The likeliest prior: where a naive EM ends, up to a gap that is what it says, in every corner."""

import numpy as np
import pytest

from longtail.core.draws import Draws
from longtail.shift import likeliest
from longtail.shift.em import likelihoods, plain_em, solve_free


def drawn(samples, classes, spread, seed=0):
    stream = np.random.default_rng(seed)
    means = spread * stream.normal(size=(classes, 3))
    chances = np.geomspace(1, 0.02, classes)
    labels = stream.choice(classes, samples, p=chances / chances.sum())
    points = means[labels] + stream.normal(size=(samples, 3))
    return points @ means.T - 0.5 * (means**2).sum(axis=1)


def ruled_out(logits):
    logits[::2, 0] = -np.inf
    logits[:, 1] = -np.inf
    return logits


CASES = {
    "usual": drawn(300, 6, 1.5),
    "alike": drawn(300, 6, 0.3),
    "ruled out": ruled_out(drawn(200, 5, 1.0)),
    "two columns the same": drawn(200, 4, 1.0)[:, [0, 1, 1, 2, 3]],
    "one sample": drawn(1, 4, 1.0),
    "more classes than samples": drawn(5, 12, 1.0),
    "one class": np.zeros((3, 1)),
}


@pytest.fixture(params=["newton", "anderson"])
def way(request, monkeypatch):
    """Both ways: that of matrices which are worth their cost, and that of larger ones."""
    if request.param == "anderson":
        monkeypatch.setattr(likeliest, "_MOST_FOR_NEWTON", 0)
    return request.param


def log_likelihood(likelihood, weights, more, prior):
    """A sample, with a class that nothing speaks for at nothing."""
    counted = (more * np.log(prior, where=more > 0, out=np.zeros_like(prior))).sum()
    return (weights @ np.log(likelihood @ prior) + counted) / (weights.sum() + more.sum())


def naive_em(likelihood, weights, more, rounds=20_000):
    prior = np.full(likelihood.shape[1], 1 / likelihood.shape[1])
    for _ in range(rounds):
        joint = likelihood * prior
        counts = weights @ (joint / joint.sum(axis=1, keepdims=True)) + more
        last, prior = prior, counts / counts.sum()
        if np.abs(prior - last).max() < 1e-14:
            break
    return prior


def gap(likelihood, weights, more, prior):
    """How far the conditions of an optimum are from holding, with loops."""
    total, largest = weights.sum() + more.sum(), -np.inf
    for y, column in enumerate(likelihood.T):
        triples = zip(weights, column, likelihood, strict=True)
        slope = sum(weight * share / (row @ prior) for weight, share, row in triples)
        largest = max(largest, (slope + more[y] / prior[y]) / total - 1)
    return largest


@pytest.mark.parametrize("pseudo_count", [0.0, 0.3, 2.0])
@pytest.mark.parametrize("case", CASES)
def test_it_is_where_a_naive_em_ends(case, pseudo_count, way):
    likelihood = likelihoods(CASES[case])
    samples, classes = likelihood.shape
    weights = np.random.default_rng(1).exponential(size=samples)
    more = np.full(classes, pseudo_count)
    start = np.full((classes, 1), 1 / classes)
    end = solve_free(likelihood, weights[:, None], np.float64(pseudo_count), start)
    prior, expected = end.priors[:, 0], naive_em(likelihood, weights, more)
    assert end.converged
    assert prior.sum() == pytest.approx(1)
    assert gap(likelihood, weights, more, prior) <= 1.01 * likeliest.GAP
    best = log_likelihood(likelihood, weights, more, expected)
    assert log_likelihood(likelihood, weights, more, prior) >= best - likeliest.GAP
    if pseudo_count:  # without it columns that are the same may share in any way
        np.testing.assert_allclose(prior, expected, atol=1e-6)


@pytest.mark.parametrize("case", CASES)
def test_no_step_lowers_the_likelihood(case, way, monkeypatch):
    likelihood = likelihoods(CASES[case])
    samples, classes = likelihood.shape
    once, more = np.ones(samples), np.full(classes, 0.01)
    start, values = np.full((classes, 1), 1 / classes), []
    for steps in range(1, 12):
        monkeypatch.setattr(likeliest, "_MAX_STEPS", steps)
        end = solve_free(likelihood, once[:, None], np.float64(0.01), start)
        values.append(log_likelihood(likelihood, once, more, end.priors[:, 0]))
    assert (np.diff(values) >= -1e-11).all()


def test_a_step_that_would_lower_it_is_left_for_one_of_em(monkeypatch):
    likelihood, start = likelihoods(CASES["usual"]), np.full((6, 1), 1 / 6)
    wrong = np.array([[1 - 5e-9], *[[1e-9]] * 5])
    monkeypatch.setattr(likeliest, "_newton", lambda here: wrong)
    monkeypatch.setattr(likeliest, "_MAX_STEPS", 4)
    end = solve_free(likelihood, np.ones((300, 1)), np.float64(1.0), start)
    expected = naive_em(likelihood, np.ones(300), np.ones(6), rounds=3)
    np.testing.assert_allclose(end.priors[:, 0], expected, rtol=1e-9)
    assert not end.converged


def test_columns_are_problems_of_their_own(way):
    likelihood, stream = likelihoods(CASES["usual"]), np.random.default_rng(2)
    weights = stream.exponential(size=(300, 7)) * stream.uniform(0.1, 10, size=7)
    weights[CASES["usual"].argmax(axis=1) == 0, 3] *= 50  # one unlike the others
    more = stream.exponential(size=(6, 7))
    start = np.full((6, 7), 1 / 6)
    together = solve_free(likelihood, weights, more, start)
    assert together.converged
    for column in range(7):
        one = slice(column, column + 1)
        alone = solve_free(likelihood, weights[:, one], more[:, one], start[:, one])
        np.testing.assert_allclose(together.priors[:, one], alone.priors, atol=1e-6)


def test_it_converged_only_if_every_problem_did(way, monkeypatch):
    likelihood, start = likelihoods(CASES["usual"]), np.full((6, 2), 1 / 6)
    weights = np.ones((300, 2))
    monkeypatch.setattr(likeliest, "_MAX_STEPS", 2)
    solved = solve_free(likelihood, weights, np.float64(1.0), start, tolerance=10.0)
    left = solve_free(likelihood, weights, np.float64(1.0), start)
    assert (solved.iterations, solved.converged) == (1, True)
    assert (left.iterations, left.converged) == (2, False)


def test_from_where_it_ended_it_is_there_at_once(way):
    likelihood, once = likelihoods(CASES["alike"]), np.ones((300, 1))
    end = solve_free(likelihood, once, np.float64(1.0), np.full((6, 1), 1 / 6))
    again = solve_free(likelihood, once, np.float64(1.0), end.priors)
    assert again.iterations == 1
    np.testing.assert_array_equal(again.priors, end.priors)


def test_what_is_resampled_for_an_interval_is_solved_as_far(monkeypatch):
    ends = []

    def watched(*arguments):
        ends.append(solve_free(*arguments))
        return ends[-1]

    monkeypatch.setattr("longtail.shift.em.solve_free", watched)
    estimate = plain_em(CASES["alike"], 0.5, 20, Draws(0))
    assert [end.converged for end in ends] == [True, True]
    expected = np.log(ends[1].priors).std(axis=1, ddof=1)
    np.testing.assert_allclose(estimate.spread, expected, rtol=1e-9)
