r"""The methods that a fit compares: each is a head, how it is fitted, how it predicts.

All of one fit start from the same linear layer, trained by cross-entropy at a weight decay that was
chosen for it. Linear heads are decayed as much. Small sets get smaller batches than papers
say, for at least 40 steps an epoch: their numbers are for sets of a hundred thousand.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from longtail.core import Prior, PriorLike, Scores
from longtail.engine import fit_head
from longtail.flows.fit_samples import Samples
from longtail.heads import (
    CausalNorm,
    Cosine,
    EmpiricalOffset,
    EstimatedOffset,
    Generative,
    Head,
    LearnableScale,
    LearnedNCM,
    Linear,
    MetricNCM,
    MultiNCM,
    NearestClassMean,
    SGDConfig,
    TauNorm,
    WeightVectorNorm,
)
from longtail.heads.head import CRT
from longtail.losses import ELM, LADE, Loss
from longtail.posthoc import LogitAdjustment, WeightNormalization, fold

_STEPS, _SMALLEST = 40, 32


@dataclass(frozen=True, eq=False)
class Task:
    """What a method is fitted on.

    Attributes:
        samples: Features and labels.
        prior: That of the labels.
        layer: A linear layer trained on them by cross-entropy.
        weight_decay: What it was trained with.
        seed: Of whatever is drawn.
    """

    samples: Samples
    prior: Prior
    layer: nn.Linear
    weight_decay: float
    seed: int

    @classmethod
    def of(cls, samples: Samples, layer: nn.Linear, weight_decay: float, seed: int) -> Task:
        """With the prior of the samples."""
        prior = Prior.from_labels(samples.labels, layer.out_features)
        return cls(samples, prior, layer, weight_decay, seed)

    def sizes(self) -> tuple[int, int]:
        """Dimension and number of classes, as every head takes them."""
        return self.layer.in_features, self.layer.out_features

    def fitted(self, head: Head, sgd: SGDConfig | None = None, **options: Any) -> Head:
        """The head, fitted on these samples."""
        how = head.sgd if sgd is None else sgd
        if how is not None:
            enough = max(_SMALLEST, len(self.samples.labels) // _STEPS)
            how = replace(how, batch_size=min(how.batch_size, enough))
        samples = self.samples
        fit_head(head, samples.features, samples.labels, sgd=how, seed=self.seed, **options)
        return head

    def decayed(self, sgd: SGDConfig) -> SGDConfig:
        """The same with the weight decay that was chosen."""
        return replace(sgd, weight_decay=self.weight_decay)


class Aim(NamedTuple):
    """What is to be good at the end.

    Attributes:
        target: The prior to predict under.
        criterion: "accuracy_under_target" or "nll".
    """

    target: Prior
    criterion: Literal["accuracy_under_target", "nll"] = "accuracy_under_target"


class Tuned(NamedTuple):
    """A τ that validation samples decide.

    Attributes:
        best: The best one, given the linear layer's logits of validation samples and their labels.
        head: The head with that τ.
    """

    best: Callable[[Task, Aim, Tensor, Tensor], float]
    head: Callable[[Task, Aim, float], Head]


class Method(NamedTuple):
    """One row of the comparison.

    Attributes:
        title: As tables name it.
        row: Its row in the list of methods of the five papers.
        fit: Makes the fitted head.
        as_is: Whether it predicts by its logits as they are: "never", where it is known what they
            carry; "uniform", if that is the target, as its paper does; or "always".
        tuned: What is chosen on validation samples.
    """

    title: str
    row: str
    fit: Callable[[Task], Head]
    as_is: Literal["never", "uniform", "always"] = "never"
    tuned: Tuned | None = None

    def keeps_logits(self, target: Prior) -> bool:
        """Whether it predicts by its logits as they are under this target."""
        uniform = target.is_close(Prior.uniform(target.num_classes))
        return self.as_is == "always" or (self.as_is == "uniform" and uniform)


def _linear(task: Task) -> Head:
    return Linear.from_linear(task.layer, carried=task.prior)


def _adjusted(task: Task, tau: float = 1.0, target: Prior | None = None) -> Head:
    """Its logits carry the target, which is uniform by default, for whatever τ was chosen."""
    goal = Prior.uniform(task.prior.num_classes) if target is None else target
    layer = fold(task.layer, LogitAdjustment(task.prior, tau, goal))
    return Linear.from_linear(layer, carried=goal)


def _trained(task: Task, loss: Callable[[PriorLike], Loss]) -> Head:
    """Trained on from the adjusted layer, which carries what these losses give."""
    return task.fitted(_adjusted(task), loss=loss, sgd=task.decayed(CRT))


def _retrained(task: Task) -> Head:
    """CRT at its minimum: class-balanced sampling is class weights there."""
    return task.fitted(Linear(*task.sizes()), sgd=task.decayed(CRT), solver="lbfgs")


def _estimated(task: Task) -> Head:
    head = EstimatedOffset.from_linear(task.layer)
    return task.fitted(head, sgd=task.decayed(EstimatedOffset.sgd))


def _learned(task: Task, sgd: SGDConfig) -> Head:
    return task.fitted(LearnedNCM(*task.sizes()), sgd=sgd)


def _multi(task: Task) -> Head:
    learned = LearnedNCM(*task.sizes())
    task.fitted(learned, sgd=LearnedNCM.adjusted_sgd)
    return task.fitted(MultiNCM.from_learned(learned), sgd=MultiNCM.adjusted_sgd)


def _metric(task: Task, metric: Literal["global", "per_class", "eigenbasis"]) -> Head:
    sgd = MetricNCM.sgd
    if metric != "global":  # each class has a D × D matrix: an epoch costs as much as ten
        sgd = replace(sgd, epochs=1)
    return task.fitted(MetricNCM(*task.sizes(), metric), sgd=sgd)


def _mean(task: Task, metric: Literal["euclidean", "cosine", "cl2n"]) -> Head:
    return task.fitted(NearestClassMean(*task.sizes(), metric))


def _rescaled(task: Task) -> Head:
    return task.fitted(WeightVectorNorm.from_linear(task.layer, train=task.prior))


def _best_tau(task: Task, aim: Aim, logits: Tensor, labels: Tensor) -> float:
    scores = Scores(logits, labels, carried=task.prior, split="validation")
    return LogitAdjustment.fit(scores, task.prior, aim.target, aim.criterion).tau


def _best_norm_tau(task: Task, aim: Aim, logits: Tensor, labels: Tensor) -> float:
    scores = Scores(logits - task.layer.bias, labels, split="validation")
    nu = TauNorm.from_linear(task.layer).log_nu(torch.float64).exp()
    return WeightNormalization.fit(scores, nu, aim.target, aim.criterion).tau


_TAU = Tuned(_best_tau, lambda task, aim, tau: _adjusted(task, tau, aim.target))
_NORM_TAU = Tuned(_best_norm_tau, lambda task, aim, tau: TauNorm.from_linear(task.layer, tau))

METHODS: dict[str, Method] = {
    "linear": Method("linear, cross-entropy", "H1", _linear, as_is="always"),
    "adjusted": Method("linear, logit-adjusted", "H1, L5", _adjusted),
    "adjusted_tau": Method("linear, adjusted by the best τ", "H1, P1", _linear, tuned=_TAU),
    "lade": Method("linear, LADE", "H1, L14", partial(_trained, loss=LADE)),
    "elm": Method("linear, ELM", "H1, L15", partial(_trained, loss=ELM)),
    "crt": Method("cRT", "H5", _retrained),
    "lws": Method(
        "LWS", "H4", lambda t: t.fitted(LearnableScale.from_linear(t.layer), solver="lbfgs")
    ),
    "tau_norm": Method(
        "τ-normalised",
        "H3",
        lambda t: TauNorm.from_linear(t.layer),
        tuned=_NORM_TAU,
    ),
    "cosine": Method("cosine", "H2", lambda t: t.fitted(Cosine(*t.sizes()))),
    "empirical_offset": Method(
        "empirical offset", "H6", lambda t: t.fitted(EmpiricalOffset.from_linear(t.layer))
    ),
    "estimated_offset": Method("estimated offset", "H7", _estimated),
    "generative": Method("generative (LDA)", "H8", lambda t: t.fitted(Generative(*t.sizes()))),
    "ncm": Method("NCM", "H9", partial(_mean, metric="euclidean")),
    "ncm_cosine": Method("NCM, cosine", "H9", partial(_mean, metric="cosine")),
    "ncm_cl2n": Method("NCM, centred and normalised", "H9", partial(_mean, metric="cl2n")),
    "learned_ncm": Method("learned NCM", "H10", partial(_learned, sgd=LearnedNCM.sgd)),
    "learned_ncm_adjusted": Method(
        "learned NCM, adjusted",
        "H11",
        partial(_learned, sgd=LearnedNCM.adjusted_sgd),
        as_is="uniform",
    ),
    "multi_ncm": Method("multi-NCM, adjusted", "H12", _multi, as_is="uniform"),
    "metric_ncm": Method("metric NCM, global", "H13", partial(_metric, metric="global")),
    "metric_ncm_classes": Method(
        "metric NCM, per class", "H13", partial(_metric, metric="per_class")
    ),
    "metric_ncm_eigen": Method(
        "metric NCM, eigenbasis", "H13", partial(_metric, metric="eigenbasis")
    ),
    "causal_norm": Method(
        "causal norm (TDE)", "H14", lambda t: t.fitted(CausalNorm.from_linear(t.layer))
    ),
    "wvn": Method("WVN + RS", "H14", _rescaled),
}
SLOW = ("metric_ncm_classes", "metric_ncm_eigen")  # C matrices of D × D: only if asked for


def method_names(methods: Sequence[str]) -> list[str]:
    """The methods of these names, all but the slow ones for none; the linear layer first."""
    unknown = [name for name in methods if name not in METHODS]
    if unknown:
        raise ValueError(f"there is no method {unknown[0]!r}; there are {', '.join(METHODS)}")
    chosen = [name for name in METHODS if name in methods or (not methods and name not in SLOW)]
    return ["linear", *(name for name in chosen if name != "linear")]
