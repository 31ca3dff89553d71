"""Fitting a linear layer: to the minimum, with a free bias."""

import warnings

import pytest
import torch
from sklearn.linear_model import LogisticRegression
from torch.testing import assert_close

from longtail import Prior, Scores, losses
from longtail.data import TWO_GAUSSIANS_BAYES_ERROR, two_gaussians, two_gaussians_error
from longtail.engine import fit_linear
from longtail.posthoc import LogitAdjustment, WeightNormalization

FEATURES, LABELS = map(torch.from_numpy, two_gaussians(2000, seed=0))
FEATURES = FEATURES.double()
PRIOR = Prior.from_labels(LABELS, 2)


def decision(layer):
    return layer.weight[1] - layer.weight[0], layer.bias[1] - layer.bias[0]


def test_it_finds_scikit_learns_minimum():
    # Two opposite rows of half the weight: ½·wd·(¼+¼)‖w‖² is scikit-learn's ½·‖w‖²/(C·N).
    decay = 0.02
    layer = fit_linear(
        FEATURES, LABELS, losses.CrossEntropy(PRIOR), weight_decay=decay, tolerance=1e-10
    )
    theirs = LogisticRegression(C=2 / (decay * len(LABELS)), tol=1e-10).fit(FEATURES, LABELS)
    weight, bias = decision(layer)
    assert_close(weight, torch.tensor(theirs.coef_[0]), rtol=1e-5, atol=0)
    assert_close(bias, torch.tensor(theirs.intercept_[0]), rtol=1e-5, atol=0)


def test_adjusting_in_the_loss_and_afterwards_have_the_same_minimum():
    plain = fit_linear(FEATURES, LABELS, losses.CrossEntropy(PRIOR), weight_decay=0.01)
    adjusted = fit_linear(FEATURES, LABELS, losses.LogitAdjusted(PRIOR), weight_decay=0.01)
    after = LogitAdjustment(PRIOR)(Scores(plain(FEATURES), carried=PRIOR)).probs()
    assert_close(after, torch.softmax(adjusted(FEATURES), dim=1), rtol=0, atol=1e-4)


def test_the_logit_adjusted_separator_is_near_bayes_and_that_of_erm_is_not():
    for make, low, high in ((losses.LogitAdjusted, 0, 0.005), (losses.CrossEntropy, 0.05, 0.2)):
        layer = fit_linear(FEATURES, LABELS, make(PRIOR))
        above = float(two_gaussians_error(*decision(layer))) - TWO_GAUSSIANS_BAYES_ERROR
        assert low <= above <= high


def test_from_a_zero_start_two_rows_are_opposite_and_dividing_by_their_norm_changes_nothing():
    layer = fit_linear(FEATURES, LABELS, losses.CrossEntropy(PRIOR))
    assert_close(layer.weight[0], -layer.weight[1])
    scores = Scores(layer(FEATURES), carried=PRIOR)
    divided = WeightNormalization.by_norm(layer.weight, tau=3.0)(scores)
    assert torch.equal(divided.predict(), scores.predict())


def test_a_start_is_used_and_left_as_it_is():
    start = torch.nn.Linear(2, 2, dtype=torch.float64)
    before = start.weight.detach().clone()
    layer = fit_linear(FEATURES, LABELS, losses.CrossEntropy(PRIOR), start=start)
    assert torch.equal(start.weight, before)
    # Adding one vector to both rows changes no loss, so the sum of the rows stays where it began.
    assert_close(layer.weight.sum(dim=0), before.sum(dim=0))


def test_it_works_where_gradients_are_off_and_the_layer_needs_none():
    with torch.no_grad():
        layer = fit_linear(FEATURES, LABELS, losses.CrossEntropy(PRIOR))
    assert not layer.weight.requires_grad
    assert float(layer.weight.abs().max()) > 0


@pytest.mark.parametrize(
    ("features", "labels", "sentence"),
    [
        (FEATURES[:, 0], LABELS, r"shape \(N, D\)"),
        (FEATURES * torch.nan, LABELS, r"NaN.*row 0"),
        (FEATURES, LABELS[:5], "2000 rows of features but 5 labels"),
        (FEATURES, LABELS + 1, "lie in 0 to 1"),
        (FEATURES[:0], LABELS[:0], "at least one row"),
        (FEATURES.long(), LABELS, r"float64, got torch\.int64"),
    ],
)
def test_wrong_input_gives_one_clear_sentence(features, labels, sentence):
    with pytest.raises(ValueError, match=sentence):
        fit_linear(features, labels, losses.CrossEntropy(PRIOR))


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"loss": losses.CrossEntropy(PRIOR, reduction="none")}, 'has reduction="none"'),
        ({"weight_decay": -1.0}, r"weight_decay.*0 or more"),
        ({"start": torch.nn.Linear(3, 2)}, r"\(2, 2\).*got \(2, 3\)"),
        ({"start": torch.nn.Linear(2, 2, bias=False)}, r"got \(2, 2\) without one"),
    ],
)
def test_wrong_options_give_one_clear_sentence(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        fit_linear(FEATURES, LABELS, **{"loss": losses.CrossEntropy(PRIOR), **options})


def test_a_layer_that_is_not_at_the_minimum_comes_with_a_warning():
    with pytest.warns(RuntimeWarning, match="gradient .* max_iter=2"):
        fit_linear(FEATURES, LABELS, losses.CrossEntropy(PRIOR), max_iter=2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_layer_that_is_there_comes_without(dtype):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit_linear(FEATURES.to(dtype), LABELS, losses.CrossEntropy(PRIOR))


def test_it_leaves_the_global_generator_alone():
    before = torch.random.get_rng_state()
    fit_linear(FEATURES, LABELS, losses.CrossEntropy(PRIOR))
    assert torch.equal(torch.random.get_rng_state(), before)


def test_inference_mode_and_another_default_device_change_nothing():
    loss = losses.CrossEntropy(PRIOR)
    expected = fit_linear(FEATURES, LABELS, loss).weight
    with torch.inference_mode():
        assert_close(fit_linear(FEATURES.clone(), LABELS.clone(), loss).weight, expected)
    with torch.device("meta"):
        layer = fit_linear(FEATURES, LABELS, loss)
    assert_close(layer.weight, expected)
