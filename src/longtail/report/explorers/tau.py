r"""The τ explorer: accuracy of every class and group at any τ, exactly and at once.

Adjusted logits f + τ·(log t − log π) make a sample right on one interval [start, stop) of τ. So two
numbers a sample are enough: the places on the slider from which on and up to which it is right.
Both are found in float64 here, so what the page counts is what `tau_curve` counts.
"""

from __future__ import annotations

import base64
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from longtail.posthoc import TauCurve, tau_curve
from longtail.report.charts.chart import Chart
from longtail.report.explorers.stage import WHOLE, Curve, curves, moving_dots
from longtail.report.judged import Judged

_STEP = 0.001  # of the slider
_DRAWN = 20  # so many places of the slider for a point of the drawn curves
_FARTHEST = 30.0  # 60,000 places, which two bytes can number
MOST_SAMPLES = 250_000  # two numbers a sample: above a megabyte and a third


@dataclass(frozen=True, eq=False)
class TauExplorer:
    """What the page shows and what its script needs.

    Attributes:
        values: For the script.
        rows: The accuracies it shows, with the numbers at τ = 0 and at the best τ.
        classes: Name, training samples, test samples and accuracy at τ = 0 and at the best τ of
            each class.
        curves: Accuracy of groups over τ.
        dots: Accuracy of classes, at τ = 0 and at the τ chosen.
        best_tau: Where on the slider accuracy under the target is highest on these samples.
        low: Where the slider begins.
        high: Where it ends.
        step: What it moves by.
    """

    values: dict[str, Any]
    rows: list[tuple[str, float, float]]
    classes: list[tuple[str, int | None, int, float, float]]
    curves: Chart
    dots: Chart
    best_tau: float
    low: float
    high: float
    step: float = _STEP
    kind: str = "tau"


def tau_explorer(judged: Judged) -> TauExplorer | None:
    """The explorer of the scores before; None without a known prior or with too many samples."""
    source = judged.source
    if source is None or source.is_close(judged.target) or len(judged.labels) > MOST_SAMPLES:
        return None
    curve = tau_curve(judged.before.logits, judged.labels, source, judged.target)
    taus = slider(curve.best_tau)
    best = best_place(taus, curve)
    measures, order = _measures(judged), judged.order
    at_zero, at_best = _recalls(np.array([0.0, best]), curve, judged)
    seen = judged.label_counts.numpy() > 0
    shown_zero, shown_best = (100 * np.where(seen, at, np.nan)[order] for at in (at_zero, at_best))
    chart, curve_plane = _drawn_curves(taus[::_DRAWN], curve, judged, measures)
    dots, dot_plane = moving_dots(
        [("τ = 0", shown_zero.tolist()), ("at τ", shown_best.tolist())],
        title="Accuracy by class at τ",
        x_title=judged.order_title,
        y_title="accuracy (%)",
    )
    names, samples = _named(judged), judged.label_counts[order].tolist()
    trained = [None] * len(names) if judged.counts is None else judged.counts[order].tolist()
    values = {
        "low": float(taus[0]),
        "step": _STEP,
        "tau": best,
        "samples": samples,
        "ends": _ends(taus, curve, judged),
        "measures": [weights[order].tolist() for weights in measures.values()],
        "curves": curve_plane,
        "dots": dot_plane,
        "classes": names,
    }
    return TauExplorer(
        values,
        rows=[
            (name, float(100 * at_zero @ weights), float(100 * at_best @ weights))
            for name, weights in measures.items()
        ],
        classes=list(
            zip(names, trained, samples, shown_zero.tolist(), shown_best.tolist(), strict=True)
        ),
        curves=chart,
        dots=dots,
        best_tau=best,
        low=float(taus[0]),
        high=float(taus[-1]),
    )


def _named(judged: Judged) -> list[str]:
    return [judged.classes[k] for k in judged.order.tolist()]


def _drawn_curves(
    taus: npt.NDArray[np.float64],
    curve: TauCurve,
    judged: Judged,
    measures: dict[str, npt.NDArray[np.float64]],
) -> tuple[Chart, dict[str, float]]:
    """Every measure over τ."""
    every = _recalls(taus, curve, judged)
    return curves(
        taus.tolist(),
        [Curve(name, (100 * every @ weights).tolist()) for name, weights in measures.items()],
        title="Accuracy over τ",
        x_title="τ",
        y_title="accuracy (%)",
        y_span=WHOLE,
    )


def _ends(taus: npt.NDArray[np.float64], curve: TauCurve, judged: Judged) -> str:
    """From which place of the slider on and up to which each sample is right, class by class."""
    start, stop = (np.searchsorted(taus, ends) for ends in curve.intervals)
    by_class = torch.argsort(_rank(judged.order)[judged.labels], stable=True).numpy()
    ends = np.stack([start, stop], axis=1)[by_class].astype("<u2")
    return base64.b64encode(ends.tobytes()).decode()


def slider(best_tau: float) -> npt.NDArray[np.float64]:
    """The places of the slider: −1 to 3, and further where the best τ lies further."""
    low = max(min(-1.0, math.floor(best_tau - 1)), -_FARTHEST)
    high = min(max(3.0, math.ceil(best_tau + 1)), _FARTHEST)
    steps = round(1 / _STEP)
    # Divided, not multiplied: so each is the double that its decimals stand for.
    return np.arange(round(low) * steps, round(high) * steps + 1) / steps


def best_place(taus: npt.NDArray[np.float64], curve: TauCurve) -> float:
    """The τ of the slider with the highest accuracy under the target.

    The best τ of all may lie in a piece of the curve that no place of the slider falls into. Of
    equally good places it is the nearest to that τ.
    """
    pieces = np.searchsorted(np.asarray(curve.taus), taus, side="right")
    accuracy = np.asarray(curve.accuracy)[pieces]
    good = taus[accuracy > accuracy.max() - 1e-12]
    return float(good[np.abs(good - curve.best_tau).argmin()])


def _measures(judged: Judged) -> dict[str, npt.NDArray[np.float64]]:
    """What is made of the recalls: for each accuracy the weight of every class."""
    present = judged.label_counts.numpy() > 0
    weights = {"balanced accuracy": present.astype(np.float64)}
    if (judged.label_counts != judged.label_counts[0]).any():
        weights["accuracy, samples as they are"] = judged.label_counts.numpy().astype(np.float64)
    target = judged.target.probs.numpy()
    if not np.allclose(target, target[0]):
        weights["accuracy under the target"] = target * present
    for name, mask in judged.groups.items():
        weights[f"{name}-shot classes"] = mask.numpy() * present.astype(np.float64)
    return {name: w / w.sum() for name, w in weights.items() if w.sum() > 0}


def _recalls(
    taus: npt.NDArray[np.float64], curve: TauCurve, judged: Judged
) -> npt.NDArray[np.float64]:
    """The recall of every class at each τ; zero for a class without samples, which weighs none."""
    rows = np.empty((len(taus), judged.num_classes))
    labels, counts = judged.labels.numpy(), judged.label_counts.numpy().clip(min=1)
    for row, tau in zip(rows, taus, strict=True):
        right = labels[curve.intervals.contain(tau)]
        row[:] = np.bincount(right, minlength=judged.num_classes) / counts
    return rows


def _rank(order: torch.Tensor) -> torch.Tensor:
    rank = torch.empty_like(order)
    rank[order] = torch.arange(len(order))
    return rank
