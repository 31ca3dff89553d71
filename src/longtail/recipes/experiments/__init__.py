"""Named experiments: the tables and figures of the five papers, as data.

>>> EXPERIMENTS["la-table-2"].published("Logit adjustment loss (τ = 1)", "CIFAR-100-LT")
56.11
"""

from longtail.flows.reproduce.experiment import (
    Better,
    Cell,
    Claim,
    Close,
    Column,
    Correction,
    Experiment,
    Fit,
    Inspect,
    Missing,
    Quick,
    Run,
    Synthetic,
    Train,
    Trend,
    claim_rows,
)
from longtail.flows.reproduce.measures import EDGES, MEASURES, Edges, Measure
from longtail.recipes.experiments.reading import EXPERIMENTS, named_runs

__all__ = [
    "EDGES",
    "EXPERIMENTS",
    "MEASURES",
    "Better",
    "Cell",
    "Claim",
    "Close",
    "Column",
    "Correction",
    "Edges",
    "Experiment",
    "Fit",
    "Inspect",
    "Measure",
    "Missing",
    "Quick",
    "Run",
    "Synthetic",
    "Train",
    "Trend",
    "claim_rows",
    "named_runs",
]
