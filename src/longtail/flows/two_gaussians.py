"""The two-Gaussian problem of LA §6.1: which losses and corrections find the best separator.

Best is meant for the balanced error, in which both classes count alike. Every trial draws a
training set, fits an affine classifier with each loss, and scores it twice: on a test set, and in
closed form, which has no sampling noise of its own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from longtail.core import Prior, Scores
from longtail.core.arrays import Array
from longtail.core.tensors import as_tensor
from longtail.data import TWO_GAUSSIANS_BAYES_ERROR, two_gaussians, two_gaussians_error
from longtail.engine import fit_linear
from longtail.losses import Adaptive, CrossEntropy, Equalized, LogitAdjusted, Loss
from longtail.metrics import balanced_error
from longtail.posthoc import Adjuster, LogitAdjustment, WeightNormalization

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

_Trials = TypeVar("_Trials", bound="DataclassInstance")
_CORRECTIONS: dict[str, Callable[[nn.Linear, Prior, float], Adjuster]] = {
    "logit adjustment": lambda layer, prior, tau: LogitAdjustment(prior, tau),
    "weights / ‖w‖^τ": lambda layer, prior, tau: WeightNormalization.by_norm(layer.weight, tau),
    "weights / π^τ": lambda layer, prior, tau: WeightNormalization.by_prior(prior, tau),
}
# An affine function is known from its values here: at the origin and one step along each axis.
_PROBES = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], dtype=torch.float64, device="cpu")

Floats = npt.NDArray[np.float64]


class GaussianExperiment(NamedTuple):
    """What is tried in each trial."""

    samples: int  # of the training set and of the test set
    losses: Mapping[str, Callable[[Prior], Loss]]  # "ERM" is corrected afterwards
    taus: tuple[float, ...]  # how far each correction goes


LA_FIGURE_2 = GaussianExperiment(
    samples=10_000,
    losses={
        "ERM": CrossEntropy,
        "adaptive": Adaptive,
        "equalised": Equalized,
        "logit-adjusted": LogitAdjusted,
    },
    taus=tuple(step / 10 for step in range(31)),
)


class GaussianRow(NamedTuple):
    """A method: balanced errors in percent, mean and spread over trials."""

    method: str
    exact: tuple[float, float]
    sampled: tuple[float, float] | None  # None for what is only computed in closed form
    above_bayes: float


@dataclass(frozen=True, eq=False)
class TwoGaussians:
    """Balanced errors in percent, one for each trial; a second axis is for τ."""

    exact: Mapping[str, Floats]  # of each loss's separator, in closed form
    sampled: Mapping[str, Floats]  # of the same separators on the trial's test set
    by_tau: Mapping[str, Floats]  # of ERM's after each post-hoc correction, in closed form
    taus: tuple[float, ...]
    features: Floats  # the first trial's training set, for the picture
    labels: npt.NDArray[np.int64]
    separators: Mapping[str, Floats]  # the first trial's a, b, c of a·x + b·y + c > 0

    @property
    def bayes(self) -> float:
        """The least error there is, in percent."""
        return 100 * TWO_GAUSSIANS_BAYES_ERROR

    @property
    def trials(self) -> int:
        """How many there are."""
        return len(next(iter(self.exact.values())))

    @property
    def losses(self) -> list[GaussianRow]:
        """Each loss."""
        return [
            self._row(f"{name} loss", self.exact[name], self.sampled[name]) for name in self.exact
        ]

    @property
    def corrections(self) -> list[GaussianRow]:
        """ERM corrected afterwards, by each method at the τ with the least mean error."""
        rows = []
        for name, errors in self.by_tau.items():
            best = int(errors.mean(axis=0).argmin())
            rows.append(self._row(f"{name}, τ = {self.taus[best]:.1f}", errors[:, best]))
        return rows

    @property
    def curves(self) -> dict[str, tuple[Floats, Floats, Floats]]:
        """Of each correction's error at every τ the mean, and it less and plus the spread."""
        made = {}
        for name, errors in self.by_tau.items():
            mean, spread = errors.mean(axis=0), errors.std(axis=0, ddof=1)
            made[name] = mean, mean - spread, mean + spread
        return made

    def _row(self, method: str, exact: Floats, sampled: Floats | None = None) -> GaussianRow:
        def over_trials(errors: Floats) -> tuple[float, float]:
            return float(errors.mean()), float(errors.std(ddof=1))

        noisy = None if sampled is None else over_trials(sampled)
        return GaussianRow(method, over_trials(exact), noisy, float(exact.mean()) - self.bayes)


def run_trials(
    experiment: GaussianExperiment,
    trials: int,
    seed: int,
    workers: int = 1,
    progress: Callable[[], None] = lambda: None,
) -> TwoGaussians:
    """All trials; `progress` is called after each."""

    def one(trial: int) -> TwoGaussians:
        result = _trial(experiment, seed + trial)
        progress()
        return result

    with ThreadPoolExecutor(workers) as pool:
        results = list(pool.map(one, range(trials)))

    return joined_trials(results, "exact", "sampled", "by_tau")


def joined_trials(results: Sequence[_Trials], *fields: str) -> _Trials:
    """The first result with these of its fields, mappings to arrays, of all of them."""
    parts = {field: [getattr(each, field) for each in results] for field in fields}
    whole = {
        field: {name: np.concatenate([part[name] for part in each]) for name in each[0]}
        for field, each in parts.items()
    }
    return replace(results[0], **whole)


def _trial(experiment: GaussianExperiment, seed: int) -> TwoGaussians:
    features, labels = _drawn(experiment.samples, 2 * seed)
    test_features, test_labels = _drawn(experiment.samples, 2 * seed + 1)
    prior = Prior.from_labels(labels, num_classes=2)
    start = _independent_rows(seed)
    layers = {
        name: fit_linear(features, labels, make(prior), start=start)
        for name, make in experiment.losses.items()
    }
    separators = {name: _separator(layer(_PROBES)) for name, layer in layers.items()}
    plain = layers["ERM"]
    probed = Scores(plain(_PROBES), carried=prior)
    corrected = {
        name: [_separator(make(plain, prior, tau)(probed).logits) for tau in experiment.taus]
        for name, make in _CORRECTIONS.items()
    }
    return TwoGaussians(
        exact={name: _errors([separator]) for name, separator in separators.items()},
        sampled={
            name: np.array([100 * balanced_error(layer(test_features), test_labels)])
            for name, layer in layers.items()
        },
        by_tau={name: _errors(by_tau)[None] for name, by_tau in corrected.items()},
        taus=experiment.taus,
        features=features.numpy(),
        labels=labels.numpy(),
        separators=separators,
    )


def _drawn(samples: int, seed: int) -> tuple[Tensor, Tensor]:
    features, labels = two_gaussians(samples, seed=seed)
    return as_tensor(features).double(), as_tensor(labels)


def _independent_rows(seed: int) -> nn.Linear:
    """From a zero start the two rows end up opposite, their norms equal, and ν=‖w‖ idle."""
    generator = torch.Generator("cpu").manual_seed(seed)
    layer = nn.Linear(2, 2, dtype=torch.float64, device="meta").to_empty(device="cpu")
    nn.init.uniform_(layer.weight, -1, 1, generator)
    nn.init.uniform_(layer.bias, -1, 1, generator)
    return layer


def _separator(logits: Array) -> Floats:
    """a, b, c from the logits at the probes: class 1 is chosen where a·x + b·y + c > 0."""
    values = as_tensor(logits).detach().numpy()
    margin = values[:, 1] - values[:, 0]
    return np.array([margin[1] - margin[0], margin[2] - margin[0], margin[0]])


def _errors(separators: Sequence[Floats]) -> Floats:
    stacked = np.stack(separators)
    return 100 * np.asarray(two_gaussians_error(stacked[:, :2], stacked[:, 2]))
