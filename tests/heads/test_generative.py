"""The generative head: the equation, the posterior, scikit-learn's shrinkage and analysis."""

import math

import numpy as np
import pytest
import torch
from scipy.stats import multivariate_normal
from sklearn.covariance import ledoit_wolf, oas
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from torch.testing import assert_close

from longtail import Prior, heads
from longtail.heads.generative import shrunk_covariance

COUNTS = [20, 12, 8, 3, 1]


def made(moments, **options):
    head = heads.Generative(6, 5, **options).double()
    head.set_moments(moments(**head.moment_options))
    return head


def residuals(features, labels):
    means = torch.stack([features[labels == y].mean(0) for y in range(5)])
    return (features - means[labels]).numpy()


@pytest.mark.parametrize("prior", [None, COUNTS])
def test_equation_two_by_loops_up_to_what_all_classes_share(features, labels, moments, prior):
    head = made(moments, prior=prior, shrinkage=None)
    rows = residuals(features, labels)
    precision = np.linalg.inv(rows.T @ rows / len(rows))
    for x, logits in zip(features.numpy(), head(features), strict=True):
        expected = []
        for y in range(5):
            mean = features[labels == y].mean(0).numpy()
            weight = precision @ mean
            bias = -0.5 * mean @ precision @ mean
            if prior is not None:
                bias += math.log(prior[y] / sum(prior))
            expected.append(weight @ x + bias)
        gaps = torch.tensor(expected, dtype=torch.float64) - expected[0]
        assert_close(logits - logits[0], gaps, rtol=0, atol=1e-10)


def test_equation_three_the_softmax_is_the_posterior(features, labels, moments):
    given = moments(scatter="pooled")
    head = made(moments, prior=COUNTS, shrinkage=0.3)
    covariance = shrunk_covariance(given, 0.3).numpy()
    density = np.stack(
        [multivariate_normal(mean, covariance).pdf(features.numpy()) for mean in given.means],
        axis=1,
    )
    joint = density * np.array(COUNTS) / 44
    posterior = torch.from_numpy(joint / joint.sum(1, keepdims=True))
    assert_close(torch.softmax(head(features), 1), posterior, rtol=1e-9, atol=1e-10)


@pytest.mark.filterwarnings("ignore:Only one sample available")
def test_it_is_scikit_learn_s_linear_discriminant_analysis(features, labels, moments):
    theirs = LinearDiscriminantAnalysis(solver="lsqr").fit(features.numpy(), labels.numpy())
    ours = torch.softmax(made(moments, prior=COUNTS, shrinkage=None)(features), 1)
    assert_close(ours, torch.from_numpy(theirs.predict_proba(features.numpy())))


@pytest.mark.parametrize(
    ("shrinkage", "theirs"), [("ledoit_wolf", ledoit_wolf), ("oas", oas)], ids=["lw", "oas"]
)
@pytest.mark.parametrize("num_samples", [44, 8])
def test_shrinkage_is_scikit_learn_s(features, labels, shrinkage, theirs, num_samples):
    rows, known = features[-num_samples:], labels[-num_samples:]
    given = heads.class_moments(rows, known, 5, "pooled", fourth=True, block=3)
    means = given.means[known]
    expected, amount = theirs((rows - means).numpy(), assume_centered=True)
    assert amount > 0
    assert_close(
        shrunk_covariance(given, shrinkage), torch.from_numpy(expected), rtol=0, atol=1e-10
    )


def test_in_one_dimension_there_is_nothing_to_shrink():
    given = heads.class_moments([[0.0], [2.0], [5.0]], [0, 0, 1], 2, "pooled", fourth=True)
    for shrinkage in ("oas", "ledoit_wolf"):
        assert shrunk_covariance(given, shrinkage).item() == pytest.approx(2 / 3)


def test_features_of_one_spread_in_all_directions_are_shrunk_to_what_they_are():
    rows = torch.tensor([[1.0, 0.0], [-1.0, 0.0], [0.0, 1.0], [0.0, -1.0]])
    given = heads.class_moments(rows, [0] * 4, 1, "pooled", fourth=True)
    for shrinkage in ("oas", "ledoit_wolf", 1.0):
        assert_close(shrunk_covariance(given, shrinkage), 0.5 * torch.eye(2).double())


def test_what_it_carries_is_the_prior_it_was_given(moments):
    assert made(moments).carried == Prior.uniform(5)
    assert made(moments, prior=COUNTS).carried == Prior.of(COUNTS)


def test_a_prior_moves_the_logits_as_retarget_does(features, moments):
    plain, given = made(moments), made(moments, prior=COUNTS)
    moved = plain(features) + torch.from_numpy(Prior.of(COUNTS).log)
    assert_close(torch.log_softmax(given(features), 1), torch.log_softmax(moved, 1))


def test_a_large_common_mean_costs_no_digits_in_float32(features, labels):
    far = heads.class_moments(features + 1000, labels, 5, "pooled")
    near = heads.class_moments(features, labels, 5, "pooled")
    moved, exact = heads.Generative(6, 5), heads.Generative(6, 5).double()
    moved.set_moments(far)
    exact.set_moments(near)
    logits = moved((features + 1000).float()).double()
    assert_close(logits - logits[:, :1], exact(features) - exact(features)[:, :1], rtol=0, atol=0.1)


@pytest.mark.parametrize("shrinkage", [None, 0.0])
def test_a_direction_that_never_varies_needs_shrinkage(features, labels, shrinkage):
    flat = features.clone()
    flat[:, 2] = 1.0
    given = heads.class_moments(flat, labels, 5, "pooled")
    with pytest.raises(ValueError, match=r"inverted.*shrinkage='oas'"):
        heads.Generative(6, 5, shrinkage=shrinkage).set_moments(given)
    heads.Generative(6, 5).set_moments(given)


def test_fewer_samples_than_dimensions_need_shrinkage(features):
    given = heads.class_moments(features[:8], torch.arange(8) % 5, 5, "pooled")
    with pytest.raises(ValueError, match="there are too few samples"):
        heads.Generative(6, 5, shrinkage=None).set_moments(given)
    heads.Generative(6, 5).set_moments(given)


def test_single_samples_alone_have_no_covariance_at_all():
    head = heads.Generative(6, 5)
    with pytest.raises(ValueError, match="cannot be inverted"):
        head.set_moments(heads.class_moments(torch.eye(6)[:5], range(5), 5, "pooled"))


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: heads.Generative(6, 5, shrinkage="lw"), r"shrinkage.*got 'lw'"),
        (lambda: heads.Generative(6, 5, shrinkage=1.5), "a number in 0 to 1"),
        (lambda: heads.Generative(6, 5, prior=[1, 2]), r"5 classes.*prior has"),
        (lambda: heads.Generative(6, 5, prior=[1, 2, 3, 4, 0]), "zeros='smooth'"),
    ],
)
def test_wrong_options_give_one_clear_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


def test_moments_that_lack_something_say_what(moments):
    with pytest.raises(ValueError, match="scatter='pooled'"):
        heads.Generative(6, 5).set_moments(moments())
    with pytest.raises(ValueError, match="fourth=True"):
        heads.Generative(6, 5, shrinkage="ledoit_wolf").set_moments(moments(scatter="pooled"))
