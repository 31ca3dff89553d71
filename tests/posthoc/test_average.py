"""Averaging experts: only under one target, and only of the same samples."""

import math

import numpy as np
import pytest
import torch

from longtail import Prior, Scores, UnknownPriorError
from longtail.posthoc import average, expert_weights
from longtail.testing import FiniteWorld
from longtail.testing.contract import contract_targets, require_carried

PRIORS = [[70, 25, 5], [1, 1, 1], [5, 25, 70]]
TARGET = [0.2, 0.3, 0.5]
LABELS = [0, 2, 1, 1, 0, 2]
COUNTS = [70, 25, 5]


def experts(seed=0, kind=np.asarray, **known):
    rng = np.random.default_rng(seed)
    return [
        Scores(kind(rng.normal(size=(6, 3))), LABELS, carried=prior, **known) for prior in PRIORS
    ]


def naive(given, target, of, shares=(1 / 3, 1 / 3, 1 / 3)):
    """Each expert's posterior under the target, averaged, by loops."""
    rows = []
    for i in range(len(given[0])):
        total = [0.0] * 3
        for expert, share in zip(given, shares, strict=True):
            weights = [
                math.exp(expert.logits[i, k]) / expert.carried.probs[k] * target[k]
                for k in range(3)
            ]
            probs = [float(w / sum(weights)) for w in weights]
            for k in range(3):
                total[k] += (probs[k] if of == "probs" else math.log(probs[k])) * share
        powers = total if of == "probs" else [math.exp(t) for t in total]
        rows.append([p / sum(powers) for p in powers])
    return rows


@pytest.mark.parametrize("of", ["probs", "logits"])
def test_experts_are_moved_to_the_target_and_then_averaged(of):
    mean = average(experts(), TARGET, of)
    np.testing.assert_allclose(mean.probs(), naive(experts(), TARGET, of), atol=1e-12)
    assert mean.carried == Prior.of(TARGET)


def test_the_logits_of_averaged_probabilities_are_their_logarithms():
    logits = average(experts(), TARGET).logits
    np.testing.assert_allclose(np.exp(logits), naive(experts(), TARGET, "probs"), atol=1e-12)


@pytest.mark.parametrize("of", ["probs", "logits"])
def test_exact_experts_of_different_priors_average_to_the_exact_posterior(of):
    world = FiniteWorld.long_tailed()
    priors = [world.prior, Prior.uniform(4), world.prior.tempered(-1)]
    exact = [Scores(world.posterior(prior).log(), carried=prior) for prior in priors]
    for target in contract_targets(world).values():
        mean = average(exact, target, of)
        torch.testing.assert_close(mean.probs(), world.posterior(target))
    require_carried(world, average(exact, [1, 2, 3, 4], of).logits, Prior.of([1, 2, 3, 4]))


def test_averaging_what_experts_say_on_their_own_terms_would_be_another_thing():
    world = FiniteWorld.long_tailed()
    posteriors = [world.posterior(world.prior), world.posterior([1] * 4)]
    plain = sum(posteriors) / 2
    for target in (world.prior, Prior.uniform(4)):
        assert (plain - world.posterior(target)).abs().max() > 0.05


def test_one_expert_is_that_expert_under_the_target():
    (expert, *_) = experts()
    np.testing.assert_allclose(average([expert], TARGET).probs(), expert.under(TARGET).probs())


@pytest.mark.parametrize("kind", [np.asarray, torch.as_tensor])
@pytest.mark.parametrize("of", ["probs", "logits"])
def test_what_the_experts_share_is_kept_and_the_kind_too(kind, of):
    known = {"counts": COUNTS, "classes": ["a", "b", "c"], "split": "validation"}
    mean = average(experts(kind=kind, **known), TARGET, of)
    assert type(mean.logits) is type(experts(kind=kind)[0].logits)
    assert mean.labels.tolist() == LABELS
    assert mean.counts.tolist() == COUNTS
    assert (mean.classes, mean.split) == (("a", "b", "c"), "validation")


def test_what_only_some_experts_say_is_kept():
    first, second, third = experts()
    second = Scores(second.logits, carried=second.carried, counts=COUNTS)
    mean = average([second, first, third], TARGET)
    assert mean.labels.tolist() == LABELS
    assert mean.counts.tolist() == COUNTS


def test_half_precision_is_averaged_in_float32_and_kept():
    halves = [
        Scores(torch.as_tensor(e.logits).half(), carried=e.carried)
        for e in experts(kind=np.asarray)
    ]
    mean = average(halves, TARGET)
    assert mean.logits.dtype == torch.float16
    np.testing.assert_allclose(mean.probs(), naive(experts(), TARGET, "probs"), atol=2e-3)


def test_a_class_that_the_target_rules_out_stays_out():
    mean = average(experts(), Prior.of([1, 0, 1], zeros="keep"))
    assert (mean.probs()[:, 1] == 0).all()
    np.testing.assert_allclose(mean.probs().sum(axis=1), 1)


def test_a_class_that_one_expert_rules_out_lives_in_probs_and_not_in_logits():
    one = Scores([[0.0, -np.inf]], carried=[1, 1])
    other = Scores([[0.0, 0.0]], carried=[1, 1])
    assert average([one, other], [1, 1]).probs().tolist() == [pytest.approx([0.75, 0.25])]
    assert average([one, other], [1, 1], of="logits").probs().tolist() == [[1.0, 0.0]]


def test_experts_that_leave_no_class_are_refused_for_logits():
    one, other = Scores([[0.0, -np.inf]], carried=[1, 1]), Scores([[-np.inf, 0.0]], carried=[1, 1])
    with pytest.raises(ValueError, match=r"row 0.*no class left"):
        average([one, other], [1, 1], of="logits")
    assert average([one, other], [1, 1]).probs().tolist() == [pytest.approx([0.5, 0.5])]


def changed(**known):
    first, second, *_ = experts(counts=COUNTS, classes=["a", "b", "c"], split="validation")
    values = {
        "logits": second.logits,
        "labels": LABELS,
        "carried": second.carried,
        "counts": COUNTS,
        "classes": ["a", "b", "c"],
        "split": "validation",
    }
    return [first, Scores(**values | known)]


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("labels", [1, *LABELS[1:]]),
        ("counts", [70, 25, 6]),
        ("classes", ["a", "c", "b"]),
        ("split", "test"),
    ],
)
def test_experts_that_disagree_on_the_samples_are_refused(name, value):
    with pytest.raises(ValueError, match=f"agree on {name}.*expert 0 and expert 1"):
        average(changed(**{name: value}), TARGET)


def test_an_expert_of_unknown_prior_is_named_with_the_remedy():
    with pytest.raises(UnknownPriorError, match=r"expert 1.*measure_carried"):
        average(changed(carried=None), TARGET)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: average([], TARGET), "at least one expert"),
        (lambda: average(experts(), TARGET, "votes"), '"probs" or "logits"'),
        (lambda: average(experts(), [1, 1]), r"3 classes.*target prior has 2"),
        (
            lambda: average([experts()[0], Scores([[1.0, 2.0]], carried=[1, 1])], TARGET),
            r"expert 0.*\(6, 3\).*expert 1.*\(1, 2\)",
        ),
    ],
)
def test_wrong_input_gives_one_clear_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


@pytest.mark.parametrize("of", ["probs", "logits"])
@pytest.mark.parametrize("weights", [[2.0, 1.0, 1.0], [0.0, 3.0, 1.0], [0.0, 0.0, 1.0]])
def test_weighted_experts_are_moved_to_the_target_and_then_averaged(of, weights):
    mean = average(experts(), TARGET, of, weights)
    shares = [weight / sum(weights) for weight in weights]
    np.testing.assert_allclose(mean.probs(), naive(experts(), TARGET, of, shares), atol=1e-12)
    assert mean.carried == Prior.of(TARGET)


@pytest.mark.parametrize("of", ["probs", "logits"])
def test_exact_experts_are_exact_under_any_target_whatever_they_weigh(of):
    world = FiniteWorld.long_tailed()
    priors = [world.prior, Prior.uniform(4), world.prior.tempered(-1)]
    exact = [Scores(world.posterior(prior).log(), carried=prior) for prior in priors]
    for target in contract_targets(world).values():
        mean = average(exact, target, of, [0.7, 0.1, 0.2])
        torch.testing.assert_close(mean.probs(), world.posterior(target))


def test_an_expert_of_weight_zero_rules_nothing_out():
    sure = Scores([[0.0, -np.inf]], carried=[1, 1])
    other = Scores([[0.0, 2.0]], carried=[1, 1])
    mean = average([sure, other], [1, 1], "logits", [0.0, 1.0])
    np.testing.assert_allclose(mean.probs(), other.probs())


def labelled_experts(seed, noise=(1.0, 2.0, 4.0), number=90):
    """Experts of different quality, on long-tailed validation samples."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(3, number, p=[0.7, 0.2, 0.1])
    labels[:3] = 0, 1, 2
    signal = 2.0 * np.eye(3)[labels]
    return [
        Scores(signal + s * rng.normal(size=(number, 3)), labels, p, split="validation")
        for s, p in zip(noise, PRIORS, strict=True)
    ]


def naive_log_loss(given, target, of, shares):
    """The mean over classes, by the target, of the mean log-loss of a class's samples."""
    probs, labels = naive(given, target, of, shares), given[0].labels
    by_class = [
        [-math.log(p[k]) for p, y in zip(probs, labels, strict=True) if y == k] for k in range(3)
    ]
    return sum(t * sum(losses) / len(losses) for t, losses in zip(target, by_class, strict=True))


@pytest.mark.parametrize("of", ["probs", "logits"])
@pytest.mark.parametrize("seed", [0, 1])
def test_no_point_of_a_grid_on_the_simplex_has_a_lower_log_loss(of, seed):
    given = labelled_experts(seed)
    weights = expert_weights(given, TARGET, of)
    assert weights.sum() == pytest.approx(1)
    assert (weights >= 0).all()
    least = naive_log_loss(given, TARGET, of, weights)
    grid = [(a / 10, b / 10, (10 - a - b) / 10) for a in range(11) for b in range(11 - a)]
    assert least <= min(naive_log_loss(given, TARGET, of, each) for each in grid) + 1e-9
    near = [(weights + 1e-3 * np.eye(3)[k]) / 1.001 for k in range(3)]
    assert least <= min(naive_log_loss(given, TARGET, of, each) for each in near)


@pytest.mark.parametrize("of", ["probs", "logits"])
def test_experts_that_agree_weigh_alike_and_one_that_is_noise_nothing(of):
    good, _, noise = labelled_experts(0, noise=(0.3, 1.0, 40.0))
    assert expert_weights([good, good], TARGET, of).tolist() == [0.5, 0.5]
    assert expert_weights([noise, good], TARGET, of)[0] == pytest.approx(0, abs=0.02)
    assert expert_weights([good], TARGET, of).tolist() == [1.0]


@pytest.mark.parametrize("of", ["probs", "logits"])
def test_what_the_target_rules_out_does_not_count(of):
    given = labelled_experts(2)
    kept = np.flatnonzero(given[0].labels != 2)
    target = Prior.of([1, 3, 0], zeros="keep")
    some = expert_weights([each.take(kept) for each in given], target, of)
    np.testing.assert_allclose(expert_weights(given, target, of), some, atol=1e-6)


def test_weights_are_of_labelled_validation_samples_that_have_a_log_loss():
    given = labelled_experts(0)
    with pytest.raises(ValueError, match="no labels"):
        expert_weights([Scores(each.logits, carried=each.carried) for each in given], TARGET)
    with pytest.raises(ValueError, match="split='test'"):
        expert_weights([Scores(g.logits, g.labels, g.carried, split="test") for g in given], TARGET)
    out = np.array(given[0].logits)
    out[0, given[0].labels[0]] = -np.inf
    ruled = [Scores(out, given[0].labels, PRIORS[0]), *given[1:]]
    assert expert_weights(ruled, TARGET, "probs").sum() == pytest.approx(1)
    with pytest.raises(ValueError, match="an expert rules out"):
        expert_weights(ruled, TARGET, "logits")
    with pytest.raises(ValueError, match="all experts rule out"):
        expert_weights(ruled[:1], TARGET, "probs")


@pytest.mark.parametrize("weights", [[1.0, 1.0], [1.0, -1.0, 1.0], [0, 0, 0], [1, np.nan, 1]])
def test_weights_that_are_none_are_refused(weights):
    with pytest.raises(ValueError, match="weights"):
        average(experts(), TARGET, weights=weights)
