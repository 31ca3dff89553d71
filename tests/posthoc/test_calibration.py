"""P5: each calibrator by hand and against other libraries, its order, its belief, its limits."""

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize
import torch

from longtail import Prior, Scores, UnknownPriorError
from longtail.core.measure import NegativeLogLikelihood
from longtail.core.minimise import UnsettledError
from longtail.posthoc import (
    BiasCorrectedTemperature,
    LogitAdjustment,
    PCSoftmax,
    Temperature,
    VectorScaling,
    calibration_fit,
)
from longtail.posthoc.validation import check_validation
from longtail.testing import FiniteWorld, check_adjuster
from longtail.testing.contract import require_carried

CALIBRATORS = [Temperature, BiasCorrectedTemperature, VectorScaling]
WITH_BIAS = [BiasCorrectedTemperature, VectorScaling]
WORLD = FiniteWorld.long_tailed()
POINTS, LABELS = WORLD.samples()
EXACT = WORLD.posterior(WORLD.prior).log()
DATA_ALONE = {"spread": 1e6}


def drawn(num_samples=60, num_classes=4, seed=0, carried=(40, 30, 20, 10), **known):
    """Held-out scores that are too sure of themselves, of labels with a prior of their own."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(num_classes, size=num_samples)
    logits = 3 * rng.normal(size=(num_samples, num_classes))
    logits[np.arange(num_samples), labels] += 2
    return Scores(logits, labels, carried=carried, split="validation", **known)


def naive_objective(scores, scale, bias, believed):
    """The mean of −log softmax(s·f + b + log q − log c)[y], and what is believed, by loops."""
    rows, labels = scores.logits.tolist(), scores.labels.tolist()
    offset = {k: 0.0 for k in set(labels)}  # classes without a sample are ruled out
    if scores.carried is not None:
        share = {k: labels.count(k) / len(labels) for k in offset}
        offset = {k: math.log(share[k] / scores.carried.probs[k]) for k in offset}
    total = 0.0
    for row, label in zip(rows, labels, strict=True):
        moved = {k: scale[k] * row[k] + bias[k] + offset[k] for k in offset}
        total += math.log(sum(math.exp(z - moved[label]) for z in moved.values()))
    return total / len(labels) + sum((x / s) ** 2 for x, s in believed) / (2 * len(labels))


def naive_temperature(scores, spread):
    zero = [0.0] * scores.num_classes

    def objective(log_t):
        scale = [math.exp(-log_t)] * scores.num_classes
        return naive_objective(scores, scale, zero, [(log_t, spread)])

    best = scipy.optimize.minimize_scalar(objective, bounds=(-5, 5), options={"xatol": 1e-10})
    return math.exp(best.x)


def naive_bias_corrected(scores, spread):
    def objective(x):
        scale = [math.exp(-x[0])] * scores.num_classes
        believed = [(x[0], max(spread, 1.0)), *((v, spread) for v in x[1:])]
        return naive_objective(scores, scale, x[1:], believed)

    best = scipy.optimize.minimize(objective, np.zeros(1 + scores.num_classes), tol=1e-12).x
    return math.exp(best[0]), best[1:]


def naive_vector(scores, spread, scale_spread):
    num_classes = scores.num_classes

    def objective(x):
        shared, own, bias = x[0], x[1 : 1 + num_classes], x[1 + num_classes :]
        believed = [(shared, max(spread, 1.0))] + [(v, scale_spread) for v in own]
        believed += [(v, spread) for v in bias]
        return naive_objective(scores, np.exp(shared + own), bias, believed)

    best = scipy.optimize.minimize(objective, np.zeros(1 + 2 * num_classes), tol=1e-12).x
    return np.exp(best[0] + best[1 : 1 + num_classes]), best[1 + num_classes :]


def absent_class(scores):
    """The last class relabelled as the first."""
    return replace(scores, labels=np.where(scores.labels == 3, 0, scores.labels))


def ruled_out(scores):
    """A class that is not the label ruled out in every third row."""
    logits = scores.logits.copy()
    for at in range(0, len(logits), 3):
        logits[at, (scores.labels[at] + 1) % 4] = -np.inf
    return replace(scores, logits=logits)


HELD_OUT = {
    "another prior than that of the samples": drawn(),
    "an absent class": absent_class(drawn(seed=1)),
    "classes ruled out": ruled_out(drawn(seed=2)),
    "few samples": drawn(5, seed=3),
}
UNKNOWN = {"unknown prior": drawn(seed=4, carried=None)}


@pytest.mark.parametrize("name", HELD_OUT)
@pytest.mark.parametrize("spread", [0.3, 1.0])
def test_the_temperature_is_the_minimum_of_the_naive_objective(name, spread):
    fitted = Temperature.fit(HELD_OUT[name], spread)
    assert fitted.temperature == pytest.approx(naive_temperature(HELD_OUT[name], spread), rel=1e-6)


@pytest.mark.parametrize("name", HELD_OUT | UNKNOWN)
def test_the_bias_corrected_temperature_is_the_minimum_of_the_naive_objective(name):
    scores = (HELD_OUT | UNKNOWN)[name]
    fitted = BiasCorrectedTemperature.fit(scores, 0.7)
    temperature, bias = naive_bias_corrected(scores, 0.7)
    assert fitted.temperature == pytest.approx(temperature, rel=1e-4)
    np.testing.assert_allclose(fitted.bias, bias, atol=1e-4)


@pytest.mark.parametrize("name", HELD_OUT | UNKNOWN)
def test_vector_scaling_is_the_minimum_of_the_naive_objective(name):
    scores = (HELD_OUT | UNKNOWN)[name]
    fitted = VectorScaling.fit(scores, 0.7, 0.3)
    scale, bias = naive_vector(scores, 0.7, 0.3)
    np.testing.assert_allclose(fitted.scale, scale, atol=1e-4)
    np.testing.assert_allclose(fitted.bias, bias, atol=1e-4)


def test_the_written_out_derivatives_are_those_that_autograd_finds():
    held = check_validation(HELD_OUT["classes ruled out"], "this")
    offset = torch.tensor(held.prior.log - np.log([0.4, 0.3, 0.2, 0.1]))
    generator = torch.Generator().manual_seed(0)
    scale = torch.rand(4, generator=generator, dtype=torch.float64).requires_grad_()
    shift = torch.rand(4, generator=generator, dtype=torch.float64).requires_grad_()
    logits = torch.tensor(held.logits)
    moved = logits.nan_to_num(neginf=0.0) * scale + shift + offset
    moved = moved.masked_fill(logits.isneginf(), -torch.inf)
    expected = torch.nn.functional.cross_entropy(moved, torch.tensor(held.labels))
    loss = NegativeLogLikelihood(held.logits, held.labels, 4)
    found = loss((shift + offset).detach().numpy(), scale.detach().numpy(), second=True)
    assert found.value == pytest.approx(float(expected.detach()), rel=1e-12)
    slopes = torch.autograd.grad(expected, [shift, scale], create_graph=True)
    for one, other in zip(found[1:3], slopes, strict=True):
        np.testing.assert_allclose(one, other.detach(), atol=1e-12, rtol=0)
    for row, slope in zip(found.by_bias_twice, slopes[0], strict=True):
        (exact,) = torch.autograd.grad(slope, shift, retain_graph=True)
        np.testing.assert_allclose(row, exact, atol=1e-12, rtol=0)


def test_the_temperature_is_scikit_learns_where_scores_carry_the_held_out_prior():
    calibration = pytest.importorskip("sklearn.calibration")
    frozen = pytest.importorskip("sklearn.frozen")
    linear_model = pytest.importorskip("sklearn.linear_model")
    scores = drawn(200, seed=5)
    scores = replace(scores, carried=Prior.from_labels(scores.labels, 4))
    model = linear_model.LogisticRegression().fit(scores.logits, scores.labels)
    model.coef_, model.intercept_ = np.eye(4), np.zeros(4)  # its decision is what it is given
    try:
        other = calibration.CalibratedClassifierCV(
            frozen.FrozenEstimator(model), method="temperature"
        )
        other.fit(scores.logits, scores.labels)
    except ValueError:
        pytest.skip("this scikit-learn has no temperature scaling")
    fitted = Temperature.fit(scores, **DATA_ALONE)
    np.testing.assert_allclose(
        fitted(scores).probs(), other.predict_proba(scores.logits), atol=1e-4
    )


@pytest.mark.parametrize("calibrator", CALIBRATORS)
def test_the_contract_of_adjusters_holds_for_fitted_calibrators(calibrator):
    def fitted(prior):
        return calibrator.fit(Scores(EXACT[POINTS], LABELS, carried=prior))

    check_adjuster(fitted, WORLD)
    check_adjuster(lambda prior: calibrator(), WORLD)


@pytest.mark.parametrize("times", [(1, 1, 1, 1), (1, 2, 5, 9)], ids=["same prior", "other prior"])
@pytest.mark.parametrize("calibrator", CALIBRATORS)
def test_a_model_twice_too_sure_is_mended_under_any_held_out_prior(calibrator, times):
    held_out_world = FiniteWorld(WORLD.table * torch.tensor(times))  # p(x|y) stays, p(y) does not
    points, labels = held_out_world.samples()
    fitted = calibrator.fit(Scores(2 * EXACT[points], labels, carried=WORLD.prior), **DATA_ALONE)
    mended = fitted(Scores(2 * EXACT, carried=WORLD.prior))
    assert mended.carried == WORLD.prior
    require_carried(WORLD, mended.logits, mended.carried)


@pytest.mark.parametrize("calibrator", WITH_BIAS)
def test_a_model_that_favours_classes_is_mended_by_biases(calibrator):
    favoured = 2 * EXACT + torch.tensor([1.0, -2.0, 0.5, 0.0])
    fitted = calibrator.fit(Scores(favoured[POINTS], LABELS, carried=WORLD.prior), **DATA_ALONE)
    mended = fitted(Scores(favoured, carried=WORLD.prior))
    require_carried(WORLD, mended.logits, mended.carried)


def test_a_model_that_is_surer_of_some_classes_is_mended_by_scales():
    unequal = EXACT * torch.tensor([2.0, 1.0, 0.5, 3.0])
    fitted = VectorScaling.fit(
        Scores(unequal[POINTS], LABELS, carried=WORLD.prior), spread=1e4, scale_spread=1e4
    )
    mended = fitted(Scores(unequal, carried=WORLD.prior))
    require_carried(WORLD, mended.logits, mended.carried)


@pytest.mark.parametrize("calibrator", WITH_BIAS)
def test_scores_of_unknown_prior_come_to_carry_that_of_the_held_out_samples(calibrator):
    unknown = 2 * EXACT + torch.tensor([3.0, 0.0, -1.0, 2.0])
    fitted = calibrator.fit(Scores(unknown[POINTS], LABELS), **DATA_ALONE)
    mended = fitted(Scores(unknown))
    assert mended.carried == WORLD.prior
    require_carried(WORLD, mended.logits, mended.carried)


SCORES = drawn(seed=6)


@pytest.mark.parametrize("calibrator", CALIBRATORS)
@pytest.mark.parametrize(
    "move", [LogitAdjustment([40, 30, 20, 10]), PCSoftmax([1, 1, 1, 7])], ids=["tau", "target"]
)
def test_calibrating_after_a_move_is_refused_and_the_sentence_gives_the_order(calibrator, move):
    fitted = calibrator.fit(SCORES)
    assert move(fitted(SCORES)).carried is not None
    with pytest.raises(ValueError, match="calibrate first"):
        fitted(move(SCORES))


def test_in_the_wrong_order_the_temperature_would_shrink_the_prior_too():
    fitted = Temperature.fit(Scores(2 * EXACT[POINTS], LABELS, carried=WORLD.prior), **DATA_ALONE)
    scores = Scores(2 * EXACT, carried=WORLD.prior)
    forgetful = Temperature(fitted.temperature)
    right, wrong = fitted(scores).under([1] * 4), forgetful(scores.under([1] * 4))
    posterior = WORLD.posterior([1] * 4)
    torch.testing.assert_close(right.probs(), posterior, atol=1e-6, rtol=0)
    assert (wrong.probs() - posterior).abs().max() > 0.05


def test_a_temperature_changes_no_prediction_under_the_carried_prior():
    fitted = Temperature.fit(SCORES)
    assert fitted.temperature > 1.5
    assert fitted(SCORES).predict().tolist() == SCORES.predict().tolist()


@pytest.mark.parametrize("calibrator", CALIBRATORS)
def test_one_fitted_on_a_known_prior_refuses_scores_of_an_unknown_one(calibrator):
    with pytest.raises(UnknownPriorError, match="no known prior"):
        calibrator.fit(SCORES)(replace(SCORES, carried=None))


@pytest.mark.parametrize("calibrator", WITH_BIAS)
def test_one_fitted_on_an_unknown_prior_refuses_known_ones_and_so_a_second_time(calibrator):
    unknown = replace(SCORES, carried=None)
    fitted = calibrator.fit(unknown)
    with pytest.raises(ValueError, match="calibrated already, or another model"):
        fitted(fitted(unknown))


@pytest.mark.parametrize(
    "by_hand",
    [Temperature(1.5), BiasCorrectedTemperature(1.5), VectorScaling([1 / 1.5] * 4)],
    ids=["temperature", "bias-corrected", "vector"],
)
@pytest.mark.parametrize("carried", [None, [1, 2, 3, 4]])
def test_one_made_by_hand_leaves_what_is_carried_as_it_is(by_hand, carried):
    scores = Scores(SCORES.logits, carried=carried)
    calibrated = by_hand(scores)
    assert calibrated.carried == scores.carried
    np.testing.assert_allclose(calibrated.logits, SCORES.logits / 1.5)


def test_made_by_hand_from_a_source_it_is_as_good_as_fitted():
    by_hand = BiasCorrectedTemperature(2.0, [0.0, 1.0], source=[9, 1])
    assert by_hand(Scores([[2.0, 2.0]], carried=[9, 1])).carried == Prior.of([9, 1])
    with pytest.raises(ValueError, match="calibrate first"):
        by_hand(Scores([[2.0, 2.0]], carried=[1, 1]))


def test_scores_of_unknown_prior_are_refused_by_a_temperature_with_the_remedy():
    with pytest.raises(UnknownPriorError, match=r"carry no known one .*measure_carried"):
        Temperature.fit(replace(SCORES, carried=None))


@pytest.mark.parametrize("calibrator", WITH_BIAS)
def test_an_absent_class_is_refused_where_the_carried_prior_is_not_known(calibrator):
    with pytest.raises(ValueError, match=r"every class.*class 3"):
        calibrator.fit(replace(absent_class(SCORES), carried=None))


def test_parameters_of_an_absent_class_stay_where_the_belief_puts_them():
    fitted = BiasCorrectedTemperature.fit(absent_class(SCORES))
    assert fitted.bias[3] == 0
    assert (fitted.bias[:3] != 0).all()
    scaled = VectorScaling.fit(absent_class(SCORES))
    assert scaled.bias[3] == 0
    assert scaled.scale[3] == pytest.approx(math.exp(np.log(scaled.scale[:3]).mean()), rel=0.1)


@pytest.mark.parametrize("calibrator", CALIBRATORS)
def test_a_model_without_errors_gets_a_bounded_calibration(calibrator):
    labels = np.arange(300) % 3
    logits = 8.0 * np.eye(3)[labels]
    fitted = calibrator.fit(Scores(logits, labels, carried=[1, 1, 1]))
    scale = fitted.affine(Prior.uniform(3), 3).scale
    assert ((scale > 1) & (scale < 3)).all()


@pytest.mark.parametrize("calibrator", CALIBRATORS)
@pytest.mark.parametrize("label", [0, 1], ids=["right", "wrong"])
def test_a_single_sample_moves_little(calibrator, label):
    scores = Scores([[2.0, 1.0, 0.0]], labels=[label], carried=[1, 1, 1])
    step = calibrator.fit(scores).affine(scores.carried, 3)
    # It is the only class of the held-out samples, so nothing can be learned from it.
    np.testing.assert_allclose(step.scale, np.ones(3))
    assert (step.shift == 0).all()


@pytest.mark.parametrize("calibrator", CALIBRATORS)
def test_a_single_class_is_left_alone(calibrator):
    step = calibrator.fit(Scores([[2.0], [3.0]], [0, 0], carried=[5])).affine(Prior.of([5]), 1)
    assert (step.scale.item(), step.shift.item()) == (1, 0)


def test_the_belief_keeps_biases_of_rare_classes_and_is_outweighed_by_samples():
    rare = Scores(np.zeros((12, 2)), labels=[0] * 11 + [1], carried=None)
    often = Scores(np.zeros((12000, 2)), labels=([0] * 11 + [1]) * 1000, carried=None)
    free = BiasCorrectedTemperature.fit(rare, **DATA_ALONE).bias
    assert float(free[0] - free[1]) == pytest.approx(math.log(11), abs=1e-4)
    few = BiasCorrectedTemperature.fit(rare).bias
    many = BiasCorrectedTemperature.fit(often).bias
    assert 1 < few[0] - few[1] < 2
    assert float(many[0] - many[1]) == pytest.approx(math.log(11), abs=1e-2)


@pytest.mark.parametrize("calibrator", CALIBRATORS)
def test_blocks_of_rows_change_nothing(calibrator, monkeypatch):
    whole = calibrator.fit(SCORES).affine(SCORES.carried, 4)
    monkeypatch.setattr(calibration_fit, "PER_CALL", 28)
    monkeypatch.setattr("longtail.core.measure.IN_CACHE", 28)
    blocks = calibrator.fit(SCORES).affine(SCORES.carried, 4)
    np.testing.assert_allclose(blocks.scale, whole.scale, atol=1e-7, rtol=0)
    np.testing.assert_allclose(blocks.shift, whole.shift, atol=1e-7, rtol=0)


@pytest.mark.parametrize("calibrator", CALIBRATORS)
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
def test_any_floating_type_is_fitted_in_float64_and_kept(calibrator, dtype):
    logits = torch.as_tensor(SCORES.logits).to(dtype)
    scores = Scores(logits, torch.as_tensor(SCORES.labels), carried=SCORES.carried)
    fitted = calibrator.fit(scores)
    assert fitted(scores).logits.dtype == dtype
    exact = calibrator.fit(Scores(logits.double(), scores.labels, carried=SCORES.carried))
    for name in ("scale", "shift"):
        one, other = (getattr(f.affine(SCORES.carried, 4), name) for f in (fitted, exact))
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("calibrator", CALIBRATORS)
def test_it_fits_in_inference_mode_and_without_gradients(calibrator):
    plain = calibrator.fit(SCORES).affine(SCORES.carried, 4)
    with torch.inference_mode():
        scores = replace(
            SCORES, logits=torch.tensor(SCORES.logits), labels=torch.tensor(SCORES.labels)
        )
        inside = calibrator.fit(scores).affine(SCORES.carried, 4)
    np.testing.assert_array_equal(inside.scale, plain.scale)


@pytest.mark.parametrize("size", [1e-3, 1e3])
def test_logits_of_any_size_are_brought_to_their_own(size):
    scores = drawn(400, seed=7)
    plain = Temperature.fit(scores, **DATA_ALONE)
    other = Temperature.fit(replace(scores, logits=scores.logits * size), **DATA_ALONE)
    assert other.temperature == pytest.approx(plain.temperature * size, rel=1e-3)


@pytest.mark.parametrize("calibrator", CALIBRATORS)
def test_a_fit_that_does_not_settle_is_reported(calibrator, monkeypatch):
    monkeypatch.setattr(calibration_fit, "_MAX_ITER", 1)
    with pytest.raises(UnsettledError, match="did not settle in 1 iterations"):
        calibrator.fit(drawn(50, seed=8))


@pytest.mark.parametrize("calibrator", CALIBRATORS)
@pytest.mark.parametrize(
    ("scores", "sentence"),
    [
        (replace(SCORES, split="test"), r"not be fitted.*split='test'"),
        (replace(SCORES, labels=None), "have no labels"),
        (Scores(np.zeros((0, 4)), [], carried=[1] * 4), "got none"),
        (SCORES.under(Prior.of([1, 1, 1, 0], zeros="keep")), "own label, class 3"),
    ],
    ids=["test set", "no labels", "no samples", "impossible label"],
)
def test_scores_that_nothing_may_be_fitted_on_are_refused(calibrator, scores, sentence):
    with pytest.raises(ValueError, match=sentence):
        calibrator.fit(scores)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: Temperature(0.0), r"temperature.*above zero"),
        (lambda: Temperature(math.inf), r"temperature.*finite"),
        (lambda: Temperature(source=[1, 0]), r"source prior|every class"),
        (lambda: BiasCorrectedTemperature(-1.0), "temperature must be above zero"),
        (lambda: BiasCorrectedTemperature(bias=[0.0, math.nan]), r"bias.*got nan"),
        (lambda: BiasCorrectedTemperature(bias=[0.0, 1.0])(SCORES), "bias has 2 classes, the"),
        (lambda: VectorScaling([1.0, -1.0]), r"scale.*positive.*class 1"),
        (lambda: VectorScaling([1.0, 1.0])(SCORES), r"scale has 2.*scores have 4"),
        (lambda: Temperature.fit(SCORES, 0.0), r"spread.*above zero"),
        (lambda: VectorScaling.fit(SCORES, 1.0, math.nan), r"scale_spread.*finite"),
    ],
)
def test_wrong_input_gives_one_clear_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()
