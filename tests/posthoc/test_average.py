"""Averaging experts: only under one target, and only of the same samples."""

import math

import numpy as np
import pytest
import torch

from longtail import Prior, Scores, UnknownPriorError
from longtail.posthoc import average
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


def naive(given, target, of):
    """Each expert's posterior under the target, averaged, by loops."""
    rows = []
    for i in range(len(given[0])):
        total = [0.0] * 3
        for expert in given:
            weights = [
                math.exp(expert.logits[i, k]) / expert.carried.probs[k] * target[k]
                for k in range(3)
            ]
            probs = [float(w / sum(weights)) for w in weights]
            for k in range(3):
                total[k] += (probs[k] if of == "probs" else math.log(probs[k])) / len(given)
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
