"""Small worlds of runs: what a method gets right depends on the sample, the seed, and chance."""

import numpy as np
import torch

from longtail import Prior, Scores
from longtail.flows.compare import CompareResult
from longtail.flows.compare_runs import Run, SampleSet, measured_run
from longtail.flows.compare_sets import set_ranks

COUNTS = np.array([500, 120, 60, 12, 5])


class World:
    """Scores of methods on one set of samples, all drawn from one seed."""

    def __init__(self, seed=0, per_class=20, target="uniform"):
        self.random = torch.Generator().manual_seed(seed)
        self.labels = np.tile(np.arange(5), per_class)
        prior = Prior.uniform(5) if target == "uniform" else target
        self.samples = SampleSet("toy", self.labels, 5, prior, COUNTS)
        self.base = torch.randn(
            len(self.labels), 5, generator=self.random, dtype=torch.float64
        ).numpy()

    def scores(self, skill, noise=0.6, carried=COUNTS):
        drawn = torch.randn(self.base.shape, generator=self.random, dtype=torch.float64).numpy()
        logits = self.base + noise * drawn
        logits[np.arange(len(self.labels)), self.labels] += skill
        return Scores(
            logits
            if carried is None
            else Scores(logits, carried=Prior.uniform(5)).under(carried).logits,
            labels=self.labels,
            carried=carried,
            counts=COUNTS,
            split="test",
        )

    def runs(self, method, skill, seeds=3, **options):
        return [
            measured_run(self.scores(skill, **options), self.samples, method, str(seed))
            for seed in range(seeds)
        ]


def plain_run(method, seed, terms):
    """A run of which only what each sample adds is given."""
    terms = np.asarray(terms, dtype=np.float64)
    return Run(method, str(seed), {}, terms, terms, terms)


def result_of(*sets, target="uniform"):
    """The result of a comparison of these sets."""
    return CompareResult(sets, set_ranks(sets), target)
