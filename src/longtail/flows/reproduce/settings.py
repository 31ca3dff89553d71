"""What a recipe says where a table is of settings, and of which sizes its training set is."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from longtail.data import exponential_counts
from longtail.flows.reproduce.experiment import Value
from longtail.flows.reproduce.measures import Edges
from longtail.flows.reproduce.measuring import group_mask
from longtail.flows.train.reading import plain
from longtail.flows.train.recipe import Cifar10, Cifar20, CifarSet, Recipe

_STATISTICS = ("classes", "samples", "imbalance_ratio")


def said(recipe: Recipe, key: str, group: str, edges: Edges) -> Value:
    """A setting under its key; classes, samples and ratio of a set whose counts follow from it."""
    if key in _STATISTICS:
        return _statistic(recipe, key, group, edges)
    inside: object = plain(recipe)
    for name in key.split("."):
        inside = inside.get(name) if isinstance(inside, Mapping) else None
    if isinstance(inside, Mapping):  # a part: its name
        inside = inside.get("name")
    return inside if isinstance(inside, int | float | str) else None


def _statistic(recipe: Recipe, key: str, group: str, edges: Edges) -> Value:
    """Known without the images of CIFAR alone, whose classes are equally large before the cut."""
    data = recipe.data
    if not isinstance(data, CifarSet) or data.profile != "exp" or data.imbalance_ratio is None:
        return None
    largest, classes = 500, 100
    if isinstance(data, Cifar10 | Cifar20):
        largest, classes = (5000, 10) if isinstance(data, Cifar10) else (2500, 20)
    counts = np.asarray(exponential_counts(largest, classes, data.imbalance_ratio))
    counts = counts[group_mask(counts, group, edges)]
    if key == "imbalance_ratio":
        return data.imbalance_ratio
    return len(counts) if key == "classes" else int(counts.sum())
