"""The two-Gaussian problem of LA §6.1: which losses and corrections find the best separator.

Best is meant for the balanced error, in which both classes count alike. Every trial draws a
training set, fits an affine classifier with each loss, and scores it twice: on a test set, and in
closed form, which has no sampling noise of its own.
"""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from longtail.core import Prior, Scores
from longtail.core.arrays import Array
from longtail.core.tensors import as_tensor
from longtail.data import two_gaussians, two_gaussians_error
from longtail.engine import fit_linear
from longtail.losses import Adaptive, CrossEntropy, Equalized, LogitAdjusted
from longtail.metrics import balanced_error
from longtail.posthoc import Adjuster, LogitAdjustment, WeightNormalization

LOSSES = {
    "ERM": CrossEntropy,
    "adaptive": Adaptive,
    "equalised": Equalized,
    "logit-adjusted": LogitAdjusted,
}
TAUS = torch.linspace(0, 3, 31, dtype=torch.float64, device="cpu")

# An affine function is known from its values here: at the origin and one step along each axis.
_PROBES = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], dtype=torch.float64, device="cpu")


@dataclass(frozen=True)
class TwoGaussians:
    """Balanced errors, one for each trial; with a second axis for τ where there is one.

    Attributes:
        exact: Of each loss's separator, in closed form.
        sampled: Of the same separators on the trial's test set.
        by_tau: Of the ERM separator after each post-hoc correction, in closed form.
        sample: The first trial's training features and labels, for the picture.
        separators: The first trial's a, b, c of a·x + b·y + c > 0 for each loss.
    """

    exact: dict[str, Tensor]
    sampled: dict[str, Tensor]
    by_tau: dict[str, Tensor]
    sample: tuple[Tensor, Tensor]
    separators: dict[str, Tensor]


def run(
    trials: int,
    samples: int,
    seed: int,
    workers: int = 1,
    tick: Callable[[], None] = lambda: None,
) -> TwoGaussians:
    """All trials; `tick` is called after each."""

    def one(trial: int) -> TwoGaussians:
        result = _trial(samples, seed + trial)
        tick()
        return result

    with ThreadPoolExecutor(workers) as pool:
        results = list(pool.map(one, range(trials)))
    first = results[0]
    return TwoGaussians(
        exact={name: torch.stack([r.exact[name] for r in results]) for name in LOSSES},
        sampled={name: torch.stack([r.sampled[name] for r in results]) for name in LOSSES},
        by_tau={name: torch.stack([r.by_tau[name] for r in results]) for name in first.by_tau},
        sample=first.sample,
        separators=first.separators,
    )


def _trial(samples: int, seed: int) -> TwoGaussians:
    features, labels = two_gaussians(samples, seed=2 * seed)
    test_features, test_labels = two_gaussians(samples, seed=2 * seed + 1)
    features, test_features = features.double(), test_features.double()
    prior = Prior.from_labels(labels, num_classes=2)
    start = _independent_rows(seed)
    layers = {
        name: fit_linear(features, labels, make(prior), start=start)
        for name, make in LOSSES.items()
    }
    separators = {name: _separator(layer(_PROBES)) for name, layer in layers.items()}
    return TwoGaussians(
        exact={name: _error(separator) for name, separator in separators.items()},
        sampled={
            name: _sampled_error(layer(test_features), test_labels)
            for name, layer in layers.items()
        },
        by_tau=_corrections(layers["ERM"], prior),
        sample=(features, labels),
        separators=separators,
    )


def _independent_rows(seed: int) -> nn.Linear:
    """From a zero start the two rows end up opposite, their norms equal, and ν=‖w‖ idle."""
    layer: nn.Linear = nn.utils.skip_init(  # type: ignore[no-untyped-call]
        nn.Linear, 2, 2, dtype=torch.float64, device="cpu"
    )
    generator = torch.Generator("cpu").manual_seed(seed)
    with torch.no_grad():
        layer.weight.uniform_(-1, 1, generator=generator)
        layer.bias.uniform_(-1, 1, generator=generator)
    return layer


def _corrections(layer: nn.Linear, prior: Prior) -> dict[str, Tensor]:
    scores = Scores(layer(_PROBES), carried=prior)
    makers: dict[str, Callable[[float], Adjuster]] = {
        "logit adjustment": lambda tau: LogitAdjustment(prior, tau),
        "weights / ‖w‖^τ": lambda tau: WeightNormalization.by_norm(layer.weight, tau),
        "weights / π^τ": lambda tau: WeightNormalization.by_prior(prior, tau),
    }
    return {
        name: torch.stack([_error(_separator(make(tau)(scores).logits)) for tau in TAUS.tolist()])
        for name, make in makers.items()
    }


def _separator(logits: Array) -> Tensor:
    """a, b, c from the logits at the probes: class 1 is chosen where a·x + b·y + c > 0."""
    given = as_tensor(logits)
    margin = given[:, 1] - given[:, 0]
    return torch.stack([margin[1] - margin[0], margin[2] - margin[0], margin[0]])


def _error(separator: Tensor) -> Tensor:
    return as_tensor(two_gaussians_error(separator[:2], separator[2]))


def _sampled_error(logits: Tensor, labels: Tensor) -> Tensor:
    error = balanced_error(logits, labels)
    return torch.tensor(error, device="cpu")
