"""How far samples may take tau from 1, by the formula, and what they can know of it at most."""

import numpy as np
import pytest

from longtail.posthoc.tau.choice import held_near_one, least_error
from longtail.posthoc.tau.criteria import nll_scores
from longtail.posthoc.tau.paths import Scale, Shift

OFFSET = np.array([-1.0, 0.2, 0.5, 3.0])


def information(log_probs):
    """Of one sample on tau along the offset: how much its log-loss bends."""
    return nll_scores(log_probs[None], np.array([0]), OFFSET, np.zeros(4)).bend.item()


def test_the_least_error_is_that_of_samples_between_the_two_ends_of_the_move():
    reach = Shift(OFFSET).reach(np.zeros((1, 4)))
    halves = np.log([0.5, 1e-300, 1e-300, 0.5])
    assert least_error(100, reach) == pytest.approx((100 * information(halves)) ** -0.5)
    drawn = np.random.default_rng(0).dirichlet(np.full(4, 0.3), 500)
    known = [information(np.log(probs)) for probs in drawn]
    assert least_error(100, reach) <= (100 * max(known)) ** -0.5
    assert (100 * max(known)) ** -0.5 < 1.1 * least_error(100, reach)  # and no far bound


def test_the_reach_leaves_out_classes_that_are_ruled_out():
    ruled_out = np.append(OFFSET, -np.inf)
    assert Shift(ruled_out).reach(np.zeros((1, 5))) == pytest.approx(4)


def test_the_reach_of_scales_is_the_mean_square_of_those_of_the_samples():
    log_nu = np.array([0.5, -0.5])
    logits = np.array([[2.0, 4.0], [0.0, 1.0], [-np.inf, 2.0]])
    wanted = np.sqrt((3**2 + 0.5**2 + 1**2) / 3)
    assert Scale(log_nu).reach(logits) == pytest.approx(wanted)


def test_nothing_is_known_where_nothing_moves():
    assert least_error(100, 0.0) == np.inf
    assert held_near_one(7.0, 0.1, length=0.0) == (1.0, 0.0)
    assert held_near_one(7.0, np.inf, length=2.0) == (1.0, 0.0)
