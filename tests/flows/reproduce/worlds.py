"""Small runs for the tests of reproduce: scores whose quality is known."""

import numpy as np

import longtail as lt
from longtail.flows.reproduce.experiment import Cell, Column, Experiment, Quick, Train
from longtail.flows.reproduce.kept import Kept

COUNTS = np.array([400, 150, 60, 25, 12, 6])
CE, LA = Train("ce"), Train("la")


def scores(strength, seed=0, carried=COUNTS, each=50, noise=1.0, shared=0):
    """Logits of a model: the true class is up by `strength`, the prior it carries added.

    Equal `shared` is the same noise of samples, as of two models on one test set.
    """
    labels = np.repeat(np.arange(len(COUNTS)), each)
    both = np.random.default_rng(1000 + shared).normal(size=(len(labels), len(COUNTS)))
    own = np.random.default_rng(seed).normal(size=both.shape)
    logits = strength * np.eye(len(COUNTS))[labels] + noise * both + 0.3 * own
    prior = None if carried is None else lt.Prior.of(carried)
    moved = logits if prior is None else logits + prior.log
    return lt.Scores(moved.astype(np.float32), labels, prior, COUNTS, split="test")


def kept(strength, seed=0, **more):
    return Kept(scores(strength, seed, **more), {}, {})


def experiment(columns=None, claims=(), rows=("a", "b"), **more):
    columns = columns or (Column("All", "accuracy"),)
    values = {row: (None,) * len(columns) for row in rows}
    cells = tuple(Cell(row, "", run) for row, run in zip(rows, (CE, LA), strict=False))
    return Experiment(
        **{
            "name": "x-table-1",
            "paper": "LA",
            "item": "Table 1",
            "about": "A.",
            "columns": columns,
            "rows": values,
            "cells": cells,
            "claims": claims,
        }
        | more
    )


def quick(cells):
    return Quick(cells, (), "Small.")
