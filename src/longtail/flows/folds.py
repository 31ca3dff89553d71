"""Samples that choose what they are judged by: each fold is predicted by what the others choose."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from longtail.core import Scores
from longtail.core.arrays import Floats, Indices, as_numpy
from longtail.data import stratified_folds
from longtail.flows.samples import Mask
from longtail.flows.train.recipe import FOLDS
from longtail.posthoc import Adjuster
from longtail.posthoc.tau.curve import TauCurve


def cross_fitted(scores: Scores, fit: Callable[[Scores], Adjuster]) -> Scores:
    """The scores in their order, each fold moved by what was fitted on the others."""
    return in_folds(scores, lambda rest, own: fit(scores.take(rest))(scores.take(own)))


def in_folds(samples: Scores, predicted: Callable[[Mask, Mask], Scores]) -> Scores:
    """What is predicted for each fold from the mask of the other samples and that of its own."""
    folds = as_numpy(stratified_folds(as_numpy(samples.labels), FOLDS))
    parts = [predicted(folds != fold, folds == fold) for fold in range(FOLDS)]
    order = np.argsort(folds, kind="stable")  # of the samples, as `parts` has them
    return Scores.concat(parts).take(np.argsort(order))


def by_best_tau(
    scores: Scores,
    curve: Callable[[Floats, Indices], TauCurve],
    move: Callable[[float], Adjuster],
) -> Scores:
    """Each fold moved by the best τ of the others, so that together they carry nothing known."""

    def predicted(rest: Mask, own: Mask) -> Scores:
        tau = curve(as_numpy(scores.logits)[rest], as_numpy(scores.labels)[rest]).best_tau
        return replace(move(tau)(scores.take(own)), carried=None)

    return in_folds(scores, predicted)
