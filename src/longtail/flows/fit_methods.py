"""The methods that a fit compares: each is a head, how it is fitted, how it predicts.

All of one fit start from the same linear layer, trained by cross-entropy at a weight decay that was
chosen for it. Linear heads are decayed as much. Small sets get smaller batches than papers
say, for at least 40 steps an epoch: their numbers are for sets of a hundred thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from longtail import heads, losses
from longtail.core import Prior, PriorLike, Scores
from longtail.engine import fit_head
from longtail.flows.fit_samples import Samples
from longtail.flows.fit_unlabelled import Unlabelled, matched, self_trained
from longtail.heads import Head, SGDConfig
from longtail.heads.head import CRT
from longtail.losses import Loss
from longtail.posthoc import LogitAdjustment, WeightNormalization, fold

_STEPS, _SMALLEST = 40, 32


@dataclass(frozen=True, eq=False)
class Task:
    """What a method is fitted on: samples, and a linear layer trained on them by cross-entropy."""

    samples: Samples
    layer: nn.Linear
    weight_decay: float  # what the layer was trained with
    seed: int
    unlabelled: Unlabelled | None = None

    @cached_property
    def prior(self) -> Prior:
        """That of the labels."""
        return Prior.from_labels(self.samples.labels, self.layer.out_features)

    @property
    def sizes(self) -> tuple[int, int]:
        """Dimension and number of classes, as every head takes them."""
        return self.layer.in_features, self.layer.out_features

    def fitted(self, head: Head, sgd: SGDConfig | None = None, **options: Any) -> Head:
        """The head, fitted on these samples."""
        how, samples = head.sgd if sgd is None else sgd, self.samples
        if how is not None:
            enough = max(_SMALLEST, len(samples.labels) // _STEPS)
            how = replace(how, batch_size=min(how.batch_size, enough))
        fit_head(head, samples.features, samples.labels, sgd=how, seed=self.seed, **options)
        return head

    def decayed(self, sgd: SGDConfig) -> SGDConfig:
        """The same with the weight decay that was chosen."""
        return replace(sgd, weight_decay=self.weight_decay)


class Aim(NamedTuple):
    """What is to be good at the end, under which prior."""

    target: Prior
    criterion: Literal["accuracy_under_target", "nll"] = "accuracy_under_target"


class Tuned(NamedTuple):
    """A τ that is decided by the linear layer's logits of validation samples and their labels."""

    best: Callable[[Task, Aim, Tensor, Tensor], float]
    head: Callable[[Task, Aim, float], Head]


class Method(NamedTuple):
    """One row of the comparison."""

    title: str  # as tables name it
    row: str  # in the list of methods of the five papers
    fit: Callable[[Task], Head]
    # Whether it predicts by its logits as they are: "never", where it is known what they carry;
    # "uniform", if that is the target, as its paper does; or "always".
    as_is: Literal["never", "uniform", "always"] = "never"
    tuned: Tuned | None = None

    def keeps_logits(self, target: Prior) -> bool:
        """Whether it predicts by its logits as they are under this target."""
        uniform = target.is_close(Prior.uniform(target.num_classes))
        return self.as_is == "always" or (self.as_is == "uniform" and uniform)


def predicted(method: Method, head: Head, features: Tensor, target: Prior) -> Scores[Tensor]:
    """What a method predicts by: moved to the target if it can be, unless its paper does not."""
    with torch.no_grad():
        scores = Scores(head(features), carried=head.carried)
    as_is = method.keeps_logits(target) or head.carried is None
    return scores if as_is else scores.under(target)


def _linear(task: Task) -> Head:
    return heads.Linear.from_linear(task.layer, carried=task.prior)


def _adjusted(task: Task, tau: float = 1.0, target: Prior | None = None) -> Head:
    """Its logits carry the target, which is uniform by default, for whatever τ was chosen."""
    goal = Prior.uniform(task.prior.num_classes) if target is None else target
    layer = fold(task.layer, LogitAdjustment(task.prior, tau, goal))
    return heads.Linear.from_linear(layer, carried=goal)


def _matched(task: Task) -> Head:
    others = task.unlabelled
    assert others is not None
    layer = matched(task.layer, task.prior, others)
    return heads.Linear.from_linear(layer, carried=others.prior)


def _self_trained(task: Task) -> Head:
    others = task.unlabelled
    assert others is not None
    layer = self_trained(task.samples, task.layer, task.weight_decay, others)
    return heads.Linear.from_linear(layer, carried=others.prior)


def _trained(task: Task, loss: Callable[[PriorLike], Loss]) -> Head:
    """Trained on from the adjusted layer, which carries what these losses give."""
    return task.fitted(_adjusted(task), loss=loss, sgd=task.decayed(CRT))


def _minimised(task: Task, loss: Callable[[PriorLike], Loss]) -> Head:
    """A linear layer at the minimum of a loss that is a sum over samples."""
    head = heads.Linear.from_linear(task.layer)
    return task.fitted(head, loss=loss, sgd=task.decayed(CRT), solver="lbfgs")


def _large_margin(task: Task) -> Head:
    head = heads.Cosine.from_linear(task.layer, scale=30.0)
    return task.fitted(head, loss=partial(losses.LDAM, scale=30.0, scale_in="head"))


def _retrained(task: Task) -> Head:
    """CRT at its minimum: class-balanced sampling is class weights there."""
    return task.fitted(heads.Linear(*task.sizes), sgd=task.decayed(CRT), solver="lbfgs")


def _estimated(task: Task) -> Head:
    head = heads.EstimatedOffset.from_linear(task.layer)
    return task.fitted(head, sgd=task.decayed(head.sgd))


def _learned(task: Task, sgd: SGDConfig) -> Head:
    return task.fitted(heads.LearnedNCM(*task.sizes), sgd=sgd)


def _multi(task: Task, sgd: SGDConfig) -> Head:
    """Displacements, about centres that were trained without adjustment (NCM §4.4)."""
    learned = heads.LearnedNCM(*task.sizes)
    task.fitted(learned)
    return task.fitted(heads.MultiNCM.from_learned(learned), sgd=sgd)


def _metric(task: Task, metric: Literal["global", "per_class", "eigenbasis"]) -> Head:
    sgd = heads.MetricNCM.sgd
    if metric != "global":  # each class has a D × D matrix: an epoch costs as much as ten
        sgd = replace(sgd, epochs=1)
    return task.fitted(heads.MetricNCM(*task.sizes, metric), sgd=sgd)


def _mean(task: Task, metric: Literal["euclidean", "cosine", "cl2n"]) -> Head:
    return task.fitted(heads.NearestClassMean(*task.sizes, metric))


def _best_tau(task: Task, aim: Aim, logits: Tensor, labels: Tensor) -> float:
    scores = Scores(logits, labels, carried=task.prior, split="validation")
    return LogitAdjustment.fit(scores, task.prior, aim.target, aim.criterion).tau


def _best_norm_tau(task: Task, aim: Aim, logits: Tensor, labels: Tensor) -> float:
    scores = Scores(logits - task.layer.bias, labels, split="validation")
    nu = heads.TauNorm.from_linear(task.layer).log_nu(torch.float64).exp()
    return WeightNormalization.fit(scores, nu, aim.target, aim.criterion).tau


_TAU = Tuned(_best_tau, lambda task, aim, tau: _adjusted(task, tau, aim.target))
_NORM = Tuned(_best_norm_tau, lambda task, aim, tau: heads.TauNorm.from_linear(task.layer, tau))

METHODS: dict[str, Method] = {
    "linear": Method("linear, cross-entropy", "H1", _linear, as_is="always"),
    "adjusted": Method("linear, logit-adjusted", "H1, L5", _adjusted),
    "adjusted_tau": Method("linear, adjusted by the best τ", "H1, P1", _linear, tuned=_TAU),
    "matched": Method("linear, matched to unlabelled", "H1, S1", _matched),
    "self_trained": Method("linear, self-trained", "H1, S3", _self_trained),
    "lade": Method("linear, LADE", "H1, L14", partial(_trained, loss=losses.LADE)),
    "elm": Method("linear, ELM", "H1, L15", partial(_trained, loss=losses.ELM)),
    "crt": Method("cRT", "H5", _retrained),
    "lws": Method(
        "LWS", "H4", lambda t: t.fitted(heads.LearnableScale.from_linear(t.layer), solver="lbfgs")
    ),
    "tau_norm": Method(
        "τ-normalised", "H3", lambda t: heads.TauNorm.from_linear(t.layer), tuned=_NORM
    ),
    "cosine": Method("cosine", "H2", lambda t: t.fitted(heads.Cosine(*t.sizes))),
    "empirical_offset": Method(
        "empirical offset", "H6", lambda t: t.fitted(heads.EmpiricalOffset.from_linear(t.layer))
    ),
    "estimated_offset": Method("estimated offset", "H7", _estimated),
    "generative": Method("generative (LDA)", "H8", lambda t: t.fitted(heads.Generative(*t.sizes))),
    "ncm": Method("NCM", "H9", partial(_mean, metric="euclidean")),
    "ncm_cosine": Method("NCM, cosine", "H9", partial(_mean, metric="cosine")),
    "ncm_cl2n": Method("NCM, centred and normalised", "H9", partial(_mean, metric="cl2n")),
    "learned_ncm": Method("learned NCM", "H10", partial(_learned, sgd=heads.LearnedNCM.sgd)),
    "learned_ncm_adjusted": Method(
        "learned NCM, adjusted",
        "H11",
        partial(_learned, sgd=heads.LearnedNCM.adjusted_sgd),
        as_is="uniform",
    ),
    "multi_ncm": Method(
        "multi-NCM, adjusted", "H12", partial(_multi, sgd=heads.MultiNCM.adjusted_sgd), "uniform"
    ),
    "metric_ncm": Method("metric NCM, global", "H13", partial(_metric, metric="global")),
    "causal_norm": Method(
        "causal norm (TDE)", "H14", lambda t: t.fitted(heads.CausalNorm.from_linear(t.layer))
    ),
    "wvn": Method(
        "WVN + RS",
        "H14",
        lambda t: t.fitted(heads.WeightVectorNorm.from_linear(t.layer, train=t.prior)),
    ),
}
_LOSSES: dict[str, tuple[str, str, Callable[[PriorLike], Loss]]] = {
    "class_balanced": ("class-balanced", "L11", losses.ClassBalanced),
    "focal": ("focal", "L12", losses.Focal),
    "adaptive": ("adaptive margin", "L3", losses.Adaptive),
    "equalised": ("equalised", "L4", losses.Equalized),
    "adjusted_adaptive": ("adjusted and adaptive", "L6", losses.LogitAdjustedAdaptive),
    "vs": ("VS", "L22", losses.VS),
    "cdt": ("CDT", "L22", losses.CDT),
    "smoothing": ("label-aware smoothing", "L22", losses.LabelAwareSmoothing),
}
# Only if they are named: C matrices of D × D are slow, and the others seldom the best.
_BASELINES: dict[str, Method] = {
    name: Method(f"linear, {title}", f"H1, {row}", partial(_minimised, loss=loss))
    for name, (title, row, loss) in _LOSSES.items()
} | {
    "ldam": Method("cosine, LDAM", "H2, L13", _large_margin),
    "multi_ncm_plain": Method("multi-NCM", "H12", partial(_multi, sgd=heads.MultiNCM.sgd)),
    "metric_ncm_classes": Method(
        "metric NCM, per class", "H13", partial(_metric, metric="per_class")
    ),
    "metric_ncm_eigen": Method(
        "metric NCM, eigenbasis", "H13", partial(_metric, metric="eigenbasis")
    ),
}
METHODS |= _BASELINES
ONLY_IF_NAMED = tuple(_BASELINES)
UNLABELLED = ("matched", "self_trained")  # what they need


def method_names(methods: Sequence[str], has_unlabelled: bool = False) -> list[str]:
    """The methods of these names, for none those that need not be named; the linear one first."""
    unknown = [name for name in methods if name not in METHODS]
    if unknown:
        raise ValueError(f"there is no method {unknown[0]!r}; there are {', '.join(METHODS)}")
    without = () if has_unlabelled else UNLABELLED
    if needing := [name for name in methods if name in without]:
        raise ValueError(f"{needing[0]} needs unlabelled samples: give them (--unlabelled)")
    if has_unlabelled and methods and not set(methods) & set(UNLABELLED):
        raise ValueError(
            f"none of these methods learns from unlabelled samples: add {' or '.join(UNLABELLED)}, "
            "or leave the samples out (--unlabelled)"
        )
    unnamed = [name for name in METHODS if name not in (*ONLY_IF_NAMED, *without)]
    chosen = [name for name in METHODS if name in (methods or unnamed)]
    return ["linear", *(name for name in chosen if name != "linear")]
