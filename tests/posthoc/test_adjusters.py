"""P1 to P3: each by hand, each keeping the adjuster's contract, none applied twice."""

import inspect
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import torch

from longtail import Prior, Scores, UnknownPriorError
from longtail.posthoc import (
    BiasCorrectedTemperature,
    LogitAdjustment,
    MarginalMatching,
    PCSoftmax,
    Temperature,
    VectorScaling,
    WeightNormalization,
)
from longtail.testing import ContractError, FiniteWorld, check_adjuster

COUNTS = np.array([70, 25, 5])
PI = COUNTS / 100
LOGITS = np.random.default_rng(0).normal(size=(6, 3))
SCORES = Scores(LOGITS, carried=COUNTS, counts=COUNTS, split="test")

WORLD = FiniteWorld.long_tailed()


def unlabelled(carried):
    """The whole population of the world, by its exact posterior."""
    return Scores(WORLD.posterior(WORLD.prior).log()[WORLD.samples()[0]], carried=carried)


ADJUSTERS = {
    "logit adjustment": LogitAdjustment,
    "logit adjustment, tau 0.4": partial(LogitAdjustment, tau=0.4),
    "PC softmax": lambda prior: PCSoftmax([1, 2, 3, 4]),
    "weight normalisation by prior": partial(WeightNormalization.by_prior, tau=0.5),
    "marginal matching": lambda prior: MarginalMatching.fit(unlabelled(prior), WORLD.prior),
    "weight normalisation by norm": lambda prior: WeightNormalization.by_norm(torch.eye(4) * 2),
}


@pytest.mark.parametrize("name", ADJUSTERS)
def test_the_contract_of_adjusters_holds(name):
    check_adjuster(ADJUSTERS[name])


def differences(logits):
    return logits - logits[:, :1]


@pytest.mark.parametrize("tau", [0.0, 0.5, 1.0, 2.0])
def test_logit_adjustment_subtracts_tau_log_pi(tau):
    adjusted = LogitAdjustment(COUNTS, tau)(SCORES)
    np.testing.assert_allclose(
        differences(adjusted.logits), differences(LOGITS - tau * np.log(PI)), atol=1e-12
    )
    assert adjusted.carried.is_close(Prior.of(COUNTS).tempered(1 - tau))


def test_adjusting_twice_is_refused_and_the_sentence_says_why():
    adjust = LogitAdjustment(COUNTS)
    with pytest.raises(ValueError, match="count the prior twice"):
        adjust(adjust(SCORES))


def test_adjusting_scores_of_a_balanced_model_is_refused():
    with pytest.raises(ValueError, match="trained by a loss"):
        LogitAdjustment(COUNTS)(Scores(LOGITS, carried=[1, 1, 1]))


def test_adjusting_scores_of_unknown_prior_is_refused_with_the_remedy():
    with pytest.raises(UnknownPriorError, match="measure_carried"):
        LogitAdjustment(COUNTS)(Scores(LOGITS))


def test_pc_softmax_is_the_same_move_whether_logits_carry_the_source_or_uniform():
    target = np.array([0.2, 0.3, 0.5])
    from_source = PCSoftmax(target)(SCORES)
    np.testing.assert_allclose(
        differences(from_source.logits), differences(LOGITS - np.log(PI) + np.log(target))
    )
    balanced = SCORES.under(Prior.uniform(3))
    np.testing.assert_allclose(PCSoftmax(target)(balanced).probs(), from_source.probs())


@pytest.mark.parametrize("tau", [0.0, 0.5, 1.0])
def test_weight_normalisation_divides_by_nu_to_the_tau_bias_included(tau):
    weight, bias = np.random.default_rng(1).normal(size=(3, 5)), np.array([1.0, -1.0, 0.5])
    features = np.random.default_rng(2).normal(size=(6, 5))
    scores = Scores(features @ weight.T + bias, carried=COUNTS)
    norms = np.sqrt((weight**2).sum(axis=1))
    by_norm = WeightNormalization.by_norm(weight, tau)(scores)
    np.testing.assert_allclose(by_norm.logits, scores.logits / norms**tau)
    by_prior = WeightNormalization.by_prior(COUNTS, tau)(scores)
    np.testing.assert_allclose(by_prior.logits, scores.logits / PI**tau)


def test_normalised_scores_carry_no_known_prior():
    normalised = WeightNormalization.by_prior(COUNTS)(SCORES)
    with pytest.raises(UnknownPriorError):
        normalised.under([1, 1, 1])


def test_a_rare_class_with_a_negative_logit_never_wins_by_weight_normalisation():
    scores = Scores([[1.0, 0.5, -0.1]], carried=COUNTS)
    for tau in np.linspace(0, 10, 21):
        assert WeightNormalization.by_prior(COUNTS, tau)(scores).predict().tolist() != [2]
    assert LogitAdjustment(COUNTS, 1.0)(scores).predict().tolist() == [2]


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: LogitAdjustment([3, 0]), "zeros='smooth'"),
        (lambda: LogitAdjustment([3, 1])(SCORES), "adjustment starts from"),
        (lambda: LogitAdjustment([3, 1], tau=np.nan), r"tau.*finite"),
        (lambda: WeightNormalization([1.0, 0.0]), r"nu.*positive.*class 1"),
        (lambda: WeightNormalization([[1.0, 1.0]]), r"got shape \(1, 2\)"),
        (lambda: WeightNormalization([1.0], tau=np.inf), r"tau.*finite"),
        (lambda: WeightNormalization.by_norm(torch.ones(4)), r"of shape \(C, D\), got \(4,\)"),
        (lambda: WeightNormalization.by_norm(torch.eye(3)[:, :2]), "norm of weight .* class 2"),
        (lambda: WeightNormalization([1.0, 1.0])(SCORES), r"nu has 2.*scores have 3"),
        (lambda: PCSoftmax([1, 1])(SCORES), r"3 classes.*target prior has 2"),
    ],
)
def test_wrong_input_gives_one_clear_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


def test_an_adjuster_that_lies_about_what_is_carried_is_caught():
    def lie(prior):
        return lambda scores: Scores(
            scores.logits, scores.labels, [1] * 4, scores.counts, scores.classes, scores.split
        )

    with pytest.raises(ContractError, match="off the true posterior"):
        check_adjuster(lie)


@pytest.mark.parametrize(
    ("name", "other"),
    [
        ("labels", [0] * 6),
        ("counts", [1, 1, 1, 1]),
        ("classes", ["a", "b", "c", "d"]),
        ("split", "test"),
        ("labels", None),
        ("split", None),
    ],
)
def test_an_adjuster_that_loses_or_changes_anything_else_is_caught(name, other):
    with pytest.raises(ContractError, match=f"must keep their {name}"):
        check_adjuster(lambda prior: lambda scores: replace(scores, **{name: other}))


def test_what_an_adjuster_does_is_differentiable_and_exported_with_the_model():
    step = LogitAdjustment(COUNTS, 0.7).affine(Prior.of(COUNTS), 3)

    class Model(torch.nn.Module):
        def forward(self, logits):
            return step(logits)

    logits = torch.tensor(LOGITS, requires_grad=True)
    adjusted = step(logits)
    torch.testing.assert_close(adjusted, torch.tensor(LOGITS - 0.7 * np.log(PI) - 0.7 * np.log(3)))
    adjusted[:, 0].sum().backward()
    assert logits.grad.tolist() == [[1.0, 0.0, 0.0]] * 6
    exported = torch.export.export(Model(), (logits.detach(),)).module()
    torch.testing.assert_close(exported(logits.detach()), adjusted.detach())


def test_a_row_is_adjusted_without_looking_at_the_prior_again(monkeypatch):
    adjust = LogitAdjustment(COUNTS)
    first = adjust(SCORES)
    monkeypatch.setattr(LogitAdjustment, "affine", None)
    again = adjust(Scores(LOGITS[:1], carried=COUNTS))
    np.testing.assert_array_equal(again.logits, first.logits[:1])
    assert again.carried is first.carried


@pytest.mark.parametrize("kind", [np.asarray, torch.as_tensor])
@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_logits_that_overflow_are_told(kind, dtype):
    largest = np.finfo(dtype).max
    scores = Scores(kind(np.array([[largest, 1.0, 0.0]], dtype)), carried=COUNTS)
    for adjuster in (WeightNormalization([1e-5, 1.0, 1.0]), Temperature(0.5)):
        with pytest.raises(ValueError, match="got inf in row 0, class 0") as raised:
            adjuster(scores)
        assert isinstance(raised.value, FloatingPointError)  # as where NumPy is told to raise it
    lowest = Scores(kind(np.full((1, 3), -largest)), carried=COUNTS)
    with pytest.raises(ValueError, match="one finite value in every row"):
        Temperature(0.5)(lowest)


@pytest.mark.parametrize("kind", [np.asarray, torch.as_tensor])
def test_the_lowest_number_is_the_mask_of_a_class_and_may_fall_to_minus_infinity(kind):
    masked = Scores(kind(np.array([[np.finfo(np.float32).min, 1.0, 0.0]], np.float32)))
    adjusted = Temperature(0.5)(masked)
    np.testing.assert_allclose(np.asarray(adjusted.probs()), [[0, 0.880797, 0.119203]], rtol=1e-6)


@pytest.mark.parametrize(
    "adjuster",
    [
        LogitAdjustment(COUNTS, tau=1e308),
        WeightNormalization(COUNTS, tau=-1e6),
        Temperature(1e-320),
    ],
    ids=lambda adjuster: type(adjuster).__name__,
)
@pytest.mark.parametrize("kind", [np.asarray, torch.as_tensor])
def test_parameters_that_leave_no_number_are_refused(adjuster, kind):
    with pytest.raises(ValueError, match="finite"):
        adjuster(Scores(kind(LOGITS), carried=COUNTS))


@pytest.mark.parametrize("kind", [np.asarray, torch.as_tensor])
def test_parameters_that_only_wide_numbers_can_hold_are_refused_for_narrow_ones(kind):
    scores = Scores(kind(LOGITS.astype(np.float32)), carried=COUNTS)
    with pytest.raises(ValueError, match="got inf"):
        BiasCorrectedTemperature(bias=[1e300, 0, 0])(scores)


@pytest.mark.parametrize(
    "adjuster",
    [
        LogitAdjustment(COUNTS),
        WeightNormalization(COUNTS),
        Temperature(2.0),
        BiasCorrectedTemperature(2.0),
        VectorScaling(),
    ],
    ids=lambda adjuster: type(adjuster).__name__,
)
def test_fit_is_called_on_the_class_as_it_would_ignore_what_an_instance_has(adjuster):
    name = type(adjuster).__name__
    with pytest.raises(TypeError, match=rf"{name}\.fit.*on the class"):
        adjuster.fit(SCORES)
    assert inspect.ismethod(type(adjuster).fit)


def test_fit_of_an_adjuster_of_ones_own_is_the_class_s_too():
    class Own(LogitAdjustment):
        @classmethod
        def fit(cls, scores):
            return cls(scores.carried)

    assert Own.fit(SCORES)(SCORES).carried == Prior.uniform(3)
    with pytest.raises(TypeError, match=r"Own\.fit"):
        Own(COUNTS).fit(SCORES)
