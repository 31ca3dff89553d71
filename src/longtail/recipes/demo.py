"""The demo: two problems that show why logit adjustment works and what it costs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from torch import Tensor

from longtail.data import TWO_GAUSSIANS_BAYES_ERROR
from longtail.recipes import caltech101, two_gaussians
from longtail.recipes.caltech101 import Method
from longtail.recipes.two_gaussians import TAUS, TwoGaussians

SAMPLES = 10_000
BAYES = 100 * TWO_GAUSSIANS_BAYES_ERROR


@dataclass(frozen=True)
class GaussianRow:
    """A method on the two Gaussians: balanced errors in percent, mean and spread over trials.

    `sampled` is None for what is only computed in closed form.
    """

    method: str
    exact: tuple[float, float]
    sampled: tuple[float, float] | None

    @property
    def above_bayes(self) -> float:
        """Percentage points above the Bayes error, in closed form."""
        return self.exact[0] - BAYES


@dataclass(frozen=True)
class Demo:
    """The results of both problems."""

    gaussians: TwoGaussians
    caltech: list[Method]

    @property
    def losses(self) -> list[GaussianRow]:
        """Each loss on the two Gaussians."""
        exact, sampled = self.gaussians.exact, self.gaussians.sampled
        return [
            GaussianRow(f"{name} loss", _percent(exact[name]), _percent(sampled[name]))
            for name in exact
        ]

    @property
    def corrections(self) -> list[GaussianRow]:
        """ERM corrected afterwards, by each method at the τ with the least mean error."""
        rows = []
        for name, errors in self.gaussians.by_tau.items():
            best = int(errors.mean(dim=0).argmin())
            label = f"{name}, τ = {TAUS[best]:.1f}"
            rows.append(GaussianRow(label, _percent(errors[:, best]), None))
        return rows

    @property
    def gain(self) -> float:
        """Points of balanced accuracy that the logit-adjusted loss gains over cross-entropy."""
        first, last = (self.caltech[i].metrics["balanced_accuracy"] for i in (0, -1))
        return 100 * ((last or 0.0) - (first or 0.0))

    @property
    def probabilities(self) -> str:
        """What becomes of the probabilities on the test part, from cross-entropy to the loss."""
        losses, errors = (
            [method.metrics[key] or 0.0 for method in (self.caltech[0], self.caltech[-1])]
            for key in ("nll", "ece")
        )
        return (
            "Its probabilities, on the samples as they are: the log-loss goes from "
            f"{losses[0]:.3f} to {losses[1]:.3f}, the calibration error from "
            f"{100 * errors[0]:.1f} to {100 * errors[1]:.1f} %."
        )

    def as_json(self) -> dict[str, object]:
        """The tables as plain values."""
        return {
            "two_gaussians": {
                "bayes": BAYES,
                "trials": len(self.gaussians.exact["ERM"]),
                "methods": [
                    {
                        "method": row.method,
                        "exact": row.exact,
                        "sampled": row.sampled,
                        "above_bayes": row.above_bayes,
                    }
                    for row in (*self.losses, *self.corrections)
                ],
            },
            "caltech101": [
                {"method": m.name, "weight_decay": m.weight_decay, **m.metrics}
                for m in self.caltech
            ],
        }


def run(
    trials: int,
    seed: int,
    workers: int = 1,
    tick: Callable[[str], None] = lambda problem: None,
) -> Demo:
    """Both problems; `tick` is called with "gaussians" or "caltech" after each step of one."""
    return Demo(
        gaussians=two_gaussians.run(trials, SAMPLES, seed, workers, lambda: tick("gaussians")),
        caltech=caltech101.run(seed, workers, lambda: tick("caltech")),
    )


def _percent(errors: Tensor) -> tuple[float, float]:
    return float(100 * errors.mean()), float(100 * errors.std())
