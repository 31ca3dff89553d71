"""ELM §2.3 in few trials of few epochs; `longtail reproduce elm-figure-1` runs ten."""

import numpy as np
import pytest
import torch

from longtail.core import Prior
from longtail.data import two_moons as drawn_moons
from longtail.flows.two_moons import ELM_FIGURE_1, run_trials, trained
from longtail.losses import ELM, LogitAdjusted
from longtail.report.pages.synthetic import moons_figures

QUICK = ELM_FIGURE_1._replace(epochs=25, test_samples=1000)


@pytest.fixture(scope="module")
def moons():
    ticks = []
    result = run_trials(QUICK, 2, seed=0, progress=lambda: ticks.append(1))
    assert len(ticks) == result.trials == 2
    return result


def test_the_adjusted_loss_is_nearly_perfect_on_both_classes(moons):
    assert moons.recalls["logit-adjusted"].shape == (2, 2)
    assert moons.recalls["logit-adjusted"].min() > 90


def test_cross_entropy_misses_more_of_the_tail_than_the_adjusted_loss(moons):
    plain, adjusted = (
        moons.recalls[name][:, 1].mean() for name in ("cross-entropy", "logit-adjusted")
    )
    assert plain < adjusted


def test_the_pull_makes_embeddings_more_compact_also_beside_the_distance_of_the_classes(moons):
    for measured in (moons.variances, moons.cdnv):
        assert measured["elm"].max() < measured["logit-adjusted"].min()


def test_variance_and_its_normalised_form_are_those_of_a_loop(moons):
    rows, labels = moons.embeddings["elm"], moons.labels
    means, spread = [], []
    for label in (0, 1):
        own = rows[labels == label]
        mean = sum(own) / len(own)
        means.append(mean)
        spread.append(sum(float((row - mean) @ (row - mean)) for row in own) / len(own))
    apart = float((means[0] - means[1]) @ (means[0] - means[1]))
    assert moons.variances["elm"][0] == pytest.approx(spread)
    assert moons.cdnv["elm"][0] == pytest.approx(sum(spread) / 2 / apart)


def test_the_separator_decides_as_the_network_does(moons):
    for name, embedded in moons.embeddings.items():
        a, b, c = moons.separators[name]
        tail = a * embedded[:, 0] + b * embedded[:, 1] + c > 0
        right = [float((tail == label)[moons.labels == label].mean()) for label in (0, 1)]
        assert moons.recalls[name][0] == pytest.approx(np.multiply(100, right))


def test_a_step_is_that_of_a_network_written_out():
    features, labels = map(torch.as_tensor, drawn_moons(40, seed=3, tail=0.3))
    prior = Prior.from_labels(labels, 2)
    single = QUICK._replace(epochs=1, batch_size=40)
    still = single._replace(lr=0.0)  # the network as it starts
    embed, head = trained(still, LogitAdjusted(prior), features, labels, seed=5)
    values = [each.detach().clone() for each in (*embed.parameters(), *head.parameters())]
    assert [tuple(each.shape) for each in values[::2]] == [(16, 2), (8, 16), (2, 8), (2, 2)]
    loss = ELM(prior, lam=0.01, margins="prior")
    for each in values:
        each.requires_grad_()
    hidden = features
    for layer in range(3):
        hidden = hidden @ values[2 * layer].T + values[2 * layer + 1]
        hidden = hidden.clamp_min(0) if layer < 2 else hidden
    loss(hidden @ values[6].T + values[7], labels, features=hidden).backward()
    after = trained(single, loss, features, labels, seed=5)
    moved = [each for part in after for each in part.parameters()]
    for start, end in zip(values, moved, strict=True):
        # The first step of Adam is the rate times the sign of the gradient.
        assert torch.allclose(end, start - single.lr * start.grad.sign(), atol=1e-4)


def test_a_seed_gives_the_same_numbers_again_and_each_trial_others(moons):
    again = run_trials(QUICK._replace(losses={"elm": QUICK.losses["elm"]}), 1, seed=1)
    assert again.cdnv["elm"][0] == moons.cdnv["elm"][1] != moons.cdnv["elm"][0]


def test_the_picture_shows_each_loss_and_all_trials(moons):
    *planes, strips = [figure.svg for figure in moons_figures(moons)]
    assert len(planes) == 3
    assert all('class="separator"' in plane for plane in planes)
    assert all(name in strips for name in moons.cdnv)
