"""No part takes NaN or infinity for a number: one walk over every number that a part is given."""

import inspect
import math
from functools import partial
from types import SimpleNamespace
from typing import Annotated, get_origin

import numpy as np
import pytest
import torch
from torch import nn

from longtail import (
    data,
    fit_head,
    heads,
    images,
    losses,
    metrics,
    posthoc,
    ranges,
    shift,
    shot_groups,
)
from longtail.core import LabelOdds, Scores
from longtail.engine import averaging, backbones, fit_linear, schedules, training
from longtail.images import augment
from loss_examples import BINARY_MAKE, MAKE

COUNTS = [70, 20, 8, 2]
LABELS = np.repeat(np.arange(4), COUNTS)
FEATURES = np.random.default_rng(0).normal(size=(100, 3)).astype(np.float32)
LOGITS = np.random.default_rng(1).normal(size=(100, 4))
SCORES = Scores(LOGITS, LABELS, carried=COUNTS, counts=COUNTS)
ODDS = LabelOdds.from_counts([10, 40, 200], total=1000)
YES_NO = Scores(LOGITS[:, :2], np.eye(4, dtype=int)[LABELS][:, :2], family="sigmoid")
RANGES = [name for name, kind in vars(ranges).items() if get_origin(kind) is Annotated]
KINDS = ("float", "int", *RANGES)
NUMBERS = {*KINDS, *(f"{kind} | None" for kind in KINDS)}


def of_samples(make, **options):
    return partial(make, LABELS, 4, **options)


# Everything public whose options are numbers, with what else it needs.
MAKERS = {
    **{f"losses.{name}": partial(make, COUNTS) for name, make in MAKE.items()},
    **{f"losses.{name}": partial(make, ODDS) for name, make in BINARY_MAKE.items()},
    "posthoc.Thresholds.fit": partial(posthoc.Thresholds.fit, YES_NO, "recall_at_precision"),
    "metrics.LabelAccumulator": partial(metrics.LabelAccumulator, 3),
    "losses.Center": partial(losses.Center, 3, 4),
    "losses.DROLT": partial(losses.DROLT, COUNTS, 3),
    "losses.LADER": partial(losses.LADER, COUNTS),
    "losses.LiftedStructure": losses.LiftedStructure,
    "losses.Pull": partial(losses.Pull, COUNTS),
    "losses.Range": losses.Range,
    "losses.Deferred": partial(
        losses.Deferred, losses.CrossEntropy(COUNTS), losses.Balanced(COUNTS), start=1
    ),
    "losses.linear_cross_entropy": partial(
        losses.linear_cross_entropy,
        torch.zeros(2, 3),
        torch.zeros(4, 3),
        None,
        torch.tensor([0, 1]),
        COUNTS,
        COUNTS,
    ),
    "losses.SampledSoftmax": partial(losses.SampledSoftmax, COUNTS, COUNTS, num_negatives=2),
    "losses.LabelCounts": partial(losses.LabelCounts, 4),
    "losses.class_balanced_weights": partial(losses.class_balanced_weights, COUNTS),
    "losses.pull_margins": partial(losses.pull_margins, COUNTS),
    "losses.deferred_reweighting": partial(
        losses.deferred_reweighting, losses.CrossEntropy, COUNTS, start=1
    ),
    "losses.deferred_resampling": partial(
        losses.deferred_resampling, losses.CrossEntropy, COUNTS, start=1
    ),
    **{
        f"heads.{name}": partial(getattr(heads, name), dim=4, num_classes=4)
        for name in (
            "CausalNorm",
            "Cosine",
            "EmpiricalOffset",
            "EstimatedOffset",
            "Generative",
            "LearnableScale",
            "LearnedNCM",
            "Linear",
            "MetricNCM",
            "MultiNCM",
            "NearestClassMean",
            "TauNorm",
        )
    },
    "heads.WeightVectorNorm": partial(heads.WeightVectorNorm, dim=4, num_classes=4, train=COUNTS),
    "heads.Experts": partial(heads.Experts, dim=6, num_classes=4),
    "heads.SGDConfig": partial(heads.SGDConfig, lr=0.1),
    "posthoc.BiasCorrectedTemperature": posthoc.BiasCorrectedTemperature,
    "posthoc.Temperature": posthoc.Temperature,
    "posthoc.ConformalSets": partial(posthoc.ConformalSets, [0.1] * 4, 0.9),
    "posthoc.LogitAdjustment": partial(posthoc.LogitAdjustment, COUNTS),
    "posthoc.WeightNormalization": partial(posthoc.WeightNormalization, [1.0, 2.0]),
    "shift.estimate_prior": partial(shift.estimate_prior, SCORES),
    "shift.check_only_prior_changed": partial(shift.check_only_prior_changed, SCORES, SCORES),
    "shift.StreamingPrior": partial(shift.StreamingPrior, 4),
    "shot_groups": partial(shot_groups, COUNTS),
    "metrics.ece": partial(metrics.ece, LOGITS, LABELS),
    "metrics.classwise_ece": partial(metrics.classwise_ece, LOGITS, LABELS),
    "metrics.reliability": partial(metrics.reliability, LOGITS, LABELS),
    "metrics.cost": partial(metrics.cost, LABELS, LABELS, costs=[1, 1, 1, 1]),
    "metrics.evaluate": partial(metrics.evaluate, SCORES, costs=[1, 1, 1, 1]),
    "metrics.Accumulator": metrics.Accumulator,
    "metrics.Difference": metrics.Difference,
    **{
        f"metrics.{name}": partial(getattr(metrics, name), LABELS, LABELS, num_classes=4)
        for name in (
            "accuracy",
            "balanced_accuracy",
            "balanced_error",
            "false_positives",
            "geometric_mean",
            "most_mistaken",
            "recalls",
            "worst_class",
        )
    },
    "metrics.accuracy_under": partial(metrics.accuracy_under, LABELS, LABELS, target=COUNTS),
    "metrics.group_accuracies": partial(metrics.group_accuracies, LABELS, LABELS, groups={}),
    "metrics.group_confusion": partial(
        metrics.group_confusion, LABELS, LABELS, groups={"all": [True] * 4}
    ),
    "data.exponential_counts": partial(data.exponential_counts, 100, 5, 10),
    "data.pareto_counts": partial(data.pareto_counts, 100, 5, 10),
    "data.step_counts": partial(data.step_counts, 100, 5, 10),
    "data.stratified_folds": partial(data.stratified_folds, LABELS, 2),
    "data.exponential_subset": partial(data.exponential_subset, LABELS, 5, 2),
    "data.long_tailed_subset": partial(data.long_tailed_subset, LABELS, [5, 4, 3, 2]),
    "data.shifted_subset": partial(data.shifted_subset, LABELS, COUNTS, 1),
    "data.two_gaussians": partial(data.two_gaussians, 10, 0),
    "data.two_moons": partial(data.two_moons, 10, 0),
    "images.ClassBalancedSampler": of_samples(images.ClassBalancedSampler),
    "images.EffectiveNumberSampler": of_samples(images.EffectiveNumberSampler),
    "images.InstanceSampler": of_samples(images.InstanceSampler),
    "images.MPerClassSampler": of_samples(images.MPerClassSampler, m=2),
    "images.ProgressiveSampler": of_samples(images.ProgressiveSampler, num_epochs=3),
    "images.ReversedSampler": of_samples(images.ReversedSampler),
    "images.SquareRootSampler": of_samples(images.SquareRootSampler),
    "schedules.Constant": schedules.Constant,
    "schedules.Steps": partial(schedules.Steps, milestones=(1,), decay=0.1),
    "schedules.Cosine": partial(schedules.Cosine, total=5),
    "schedules.OneCycle": partial(schedules.OneCycle, total=5, peak=2),
    "schedules.ByEpoch": partial(schedules.ByEpoch, schedules.Constant(), 3),
    "augment.AutoAugment": augment.AutoAugment,
    "augment.ColorJitter": augment.ColorJitter,
    "augment.RandomCrop": augment.RandomCrop,
    "augment.Cutout": augment.Cutout,
    "augment.Flip": augment.Flip,
    "augment.Mixup": augment.Mixup,
    "averaging.moving_average": partial(averaging.moving_average, nn.Linear(2, 2)),
    "training.TrainingOptions": partial(training.TrainingOptions, epochs=1),
    "backbones.MLP": backbones.MLP,
    "backbones.ResNet32": backbones.ResNet32,
    "backbones.SmallCNN": backbones.SmallCNN,
    "fit_linear": partial(
        fit_linear, torch.from_numpy(FEATURES), LABELS, losses.CrossEntropy(COUNTS)
    ),
    "fit_head": partial(fit_head, heads.Linear(3, 4), FEATURES, LABELS),
}


def is_number(parameter):
    kind = parameter.annotation
    if any(kind is vars(ranges)[name] for name in RANGES):
        return True
    return str(kind) in NUMBERS or getattr(kind, "__name__", None) in NUMBERS


def number_options():
    """Each maker with each of its options that is a number."""
    for name, make in MAKERS.items():
        target = make.func if isinstance(make, partial) else make
        parameters = inspect.signature(target).parameters.values()
        for parameter in parameters:
            if is_number(parameter):
                yield pytest.param(make, parameter.name, id=f"{name}.{parameter.name}")


# Values that the library makes and returns, functions whose only numbers are sizes of what they
# are given, and what cannot be made by itself.
NOT_WALKED = {
    *(
        "losses.Loss",
        "losses.SampleLoss",
        "losses.MarginLoss",
        "losses.RegularizedLoss",
        "losses.Regularizer",
        "losses.AddedTerm",
    ),
    *("losses.SpreadOut", "images.ClassSampler", "data.caltech101_long_tailed"),
    *("data.Features", "data.pack_features", "data.Block", "data.ScoreWriter"),
    *("data.open_score_writer", "data.ScoreTable", "data.read_costs"),
    *("heads.MomentSums", "heads.ClassMoments", "heads.class_moments"),
    *("posthoc.chain_affine", "posthoc.TauChoice", "posthoc.TauCurve", "posthoc.Thresholds"),
    *("metrics.Interval", "metrics.Mistake", "metrics.Sanity", "shift.PriorEstimate"),
}


def test_everything_public_that_takes_a_number_is_walked():
    modules = {"losses": losses, "heads": heads, "posthoc": posthoc, "data": data}
    modules |= {"metrics": metrics, "shift": shift, "schedules": schedules, "augment": augment}
    modules["images"] = SimpleNamespace(
        **{kind.__name__: kind for kind in images.SAMPLERS.values()}
    )
    walked = {name.split(",")[0] for name in MAKERS} | NOT_WALKED
    for folder, module in modules.items():
        for name, thing in vars(module).items():
            home = str(getattr(thing, "__module__", ""))
            own = home.startswith("longtail") and home != "longtail.core.numbers"
            if name.startswith("_") or not callable(thing) or not own:
                continue
            numbers = [p for p in inspect.signature(thing).parameters.values() if is_number(p)]
            assert not numbers or f"{folder}.{name}" in walked, f"{folder}.{name} is not walked"


def with_option(make, option, value):
    """The call with one argument replaced, by its name: positional ones are bound first."""
    target = make.func if isinstance(make, partial) else make
    args, keywords = (make.args, make.keywords) if isinstance(make, partial) else ((), {})
    bound = inspect.signature(target).bind_partial(*args, **keywords)
    arguments = dict(bound.arguments)
    for name, parameter in bound.signature.parameters.items():
        if parameter.kind is inspect.Parameter.VAR_KEYWORD:
            arguments.update(arguments.pop(name, {}))
    return target(**{**arguments, option: value})


NOT_FINITE = (math.nan, math.inf, -math.inf)


@pytest.mark.parametrize("value", NOT_FINITE)
@pytest.mark.parametrize(("make", "option"), list(number_options()))
def test_a_number_that_is_none_is_refused(make, option, value):
    with pytest.raises((ValueError, TypeError)):
        with_option(make, option, value)


@pytest.mark.parametrize("value", NOT_FINITE)
@pytest.mark.parametrize(
    "make",
    [
        lambda value: losses.CrossEntropy(COUNTS, label_smoothing=value),
        lambda value: losses.CrossEntropy(COUNTS, ignore_index=value),
        lambda value: losses.CrossEntropy(COUNTS, weight=[1, 1, 1, value]),
        lambda value: schedules.Steps((value,), 0.1),
        lambda value: augment.Normalize(mean=(0.5, value), std=(1.0, 1.0)),
        lambda value: augment.Normalize(mean=(0.5, 0.5), std=(1.0, value)),
        lambda value: training.FixedSize(None, size=value),
    ],
)
def test_nor_where_it_is_one_of_several_or_of_all_losses(make, value):
    with pytest.raises(ValueError, match=r"must|got"):
        make(value)
