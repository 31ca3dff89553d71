"""The claims of LA §6.1 in a few trials; `longtail demo` runs a hundred."""

import pytest

from longtail.data import TWO_GAUSSIANS_BAYES_ERROR
from longtail.flows.two_gaussians import run_trials
from longtail.recipes.demo import GAUSSIANS

TRIALS = 8


@pytest.fixture(scope="module")
def results():
    ticks = []
    results = run_trials(GAUSSIANS, TRIALS, seed=0, progress=lambda: ticks.append(1))
    assert len(ticks) == TRIALS
    return results


def points_above_bayes(errors):
    return float(errors.mean()) - 100 * TWO_GAUSSIANS_BAYES_ERROR


def test_the_logit_adjusted_loss_is_within_a_twentieth_of_a_point_of_bayes(results):
    assert 0 <= points_above_bayes(results.exact["logit-adjusted"]) <= 0.05


def test_the_equalised_loss_is_about_a_point_worse_adaptive_and_erm_eight_or_more(results):
    assert 0.5 < points_above_bayes(results.exact["equalised"]) < 1.2
    assert points_above_bayes(results.exact["adaptive"]) > 8
    assert points_above_bayes(results.exact["ERM"]) > 8


def test_no_separator_beats_bayes_in_closed_form(results):
    for errors in (*results.exact.values(), *results.by_tau.values()):
        assert float(errors.min()) >= 100 * TWO_GAUSSIANS_BAYES_ERROR


def test_the_sampled_error_agrees_with_the_closed_form_up_to_its_noise(results):
    for name, errors in results.exact.items():
        # Half the variance of a rate among about 500 positives, over the trials.
        noise = 50 * (0.25 / 500 / TRIALS) ** 0.5
        assert float(results.sampled[name].mean()) == pytest.approx(
            float(errors.mean()), abs=4 * noise
        )


def test_post_hoc_adjustment_gets_there_at_tau_one_and_weight_normalisation_at_none(results):
    means = {name: errors.mean(axis=0) for name, errors in results.by_tau.items()}
    adjusted = means.pop("logit adjustment")
    assert points_above_bayes(adjusted.min()) <= 0.05
    assert float(GAUSSIANS.taus[adjusted.argmin()]) == pytest.approx(1.0, abs=0.11)
    assert len(means) == 2
    for name, errors in means.items():
        assert points_above_bayes(errors.min()) > 5, name


def test_at_tau_zero_every_correction_leaves_erm_as_it_is(results):
    for errors in results.by_tau.values():
        assert abs(errors[:, 0] - results.exact["ERM"]).max() < 1e-10


def test_a_seed_gives_the_same_numbers_again(results):
    again = run_trials(GAUSSIANS, 1, seed=0)
    assert float(again.exact["adaptive"][0]) == float(results.exact["adaptive"][0])
