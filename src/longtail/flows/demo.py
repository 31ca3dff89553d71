"""demo: two problems that show why logit adjustment works and what it costs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Literal

import torch

from longtail.core import Prior
from longtail.flows.caltech101 import FeatureExperiment, FeatureScores, compare_on_caltech
from longtail.flows.judge import Judgement, judge
from longtail.flows.results import Result
from longtail.flows.two_gaussians import GaussianExperiment, TwoGaussians, run_trials


@dataclass(frozen=True, eq=False)
class DemoResult(Result):
    """The results of both problems.

    Attributes:
        gaussians: Balanced errors of each trial.
        caltech: Each method on pictures, cross-entropy first and the logit-adjusted loss last.
        command: What made it.
    """

    gaussians: TwoGaussians
    caltech: tuple[FeatureScores, ...]
    command: str

    kind: ClassVar[str] = "demo"

    @cached_property
    def judgement(self) -> Judgement:
        """The pictures by cross-entropy and by the logit-adjusted loss."""
        before, after = self.caltech[0], self.caltech[-1]
        uniform = Prior.uniform(before.scores.num_classes)
        return judge(before.scores, after.scores, uniform, names=(before.name, after.name))

    def change(self, metric: str) -> tuple[float, float]:
        """A metric of the pictures, by cross-entropy and by the logit-adjusted loss."""
        first, last = (self.caltech[at].metrics[metric] for at in (0, -1))
        return first or 0.0, last or 0.0

    @property
    def gain(self) -> float:
        """Balanced accuracy that the logit-adjusted loss gains over cross-entropy."""
        before, after = self.change("balanced_accuracy")
        return after - before

    def as_json(self) -> dict[str, Any]:
        """The tables as plain values."""
        rows = (*self.gaussians.losses, *self.gaussians.corrections)
        return {
            "two_gaussians": {
                "bayes": self.gaussians.bayes,
                "trials": self.gaussians.trials,
                "methods": [
                    {
                        "method": row.method,
                        "exact": row.exact,
                        "sampled": row.sampled,
                        "above_bayes": row.above_bayes,
                    }
                    for row in rows
                ],
            },
            "caltech101": [
                {"method": each.name, "weight_decay": each.weight_decay, **each.metrics}
                for each in self.caltech
            ],
        }


def demo(
    gaussians: GaussianExperiment,
    caltech: FeatureExperiment,
    trials: int = 100,
    seed: int = 0,
    progress: Callable[[Literal["gaussians", "caltech"]], None] = lambda problem: None,
    command: str = "longtail demo",
) -> DemoResult:
    """Both problems, several fits at a time.

    Args:
        gaussians: What is tried on two Gaussians.
        caltech: What is tried on features of pictures.
        trials: How often the two Gaussians are drawn anew.
        seed: Of what is drawn.
        progress: Told after each step which problem it was of.
        command: What the page says has made it.
    """
    workers = min(4, os.cpu_count() or 1)
    with _one_thread():  # the problems are small: one thread each
        return DemoResult(
            run_trials(gaussians, trials, seed, workers, lambda: progress("gaussians")),
            compare_on_caltech(caltech, seed, workers, lambda: progress("caltech")),
            command,
        )


@contextmanager
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(before)
