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
    start, stop = (np.searchsorted(taus, ends) for ends in curve.intervals)
    every = _recalls(taus[::_DRAWN], curve, judged)
    measures = _measures(judged)
    chart, curve_plane = curves(
        taus[::_DRAWN].tolist(),
        [Curve(name, (100 * every @ weights).tolist()) for name, weights in measures.items()],
        title="Accuracy over τ",
        x_title="τ",
        y_title="accuracy (%)",
        y_span=WHOLE,
    )
    at_zero, at_best = (_recalls(np.array([tau]), curve, judged)[0] for tau in (0.0, best))
    order = judged.order
    shown_zero, shown_best = 100 * _blank(at_zero, judged), 100 * _blank(at_best, judged)
    dots, dot_plane = moving_dots(
        [("τ = 0", shown_zero[order].tolist()), ("at τ", shown_best[order].tolist())],
        title="Accuracy by class at τ",
        x_title=judged.order_title,
        y_title="accuracy (%)",
    )
    by_class = torch.argsort(_rank(order)[judged.labels], stable=True).numpy()
    ends = np.stack([start, stop], axis=1)[by_class].astype("<u2")
    values = {
        "low": float(taus[0]),
        "step": _STEP,
        "tau": best,
        "samples": judged.label_counts[order].tolist(),
        "ends": base64.b64encode(ends.tobytes()).decode(),
        "measures": [weights[order].tolist() for weights in measures.values()],
        "curves": curve_plane,
        "dots": dot_plane,
        "classes": [judged.classes[k] for k in order.tolist()],
    }
    counts = judged.counts
    return TauExplorer(
        values,
        [
            (name, float(100 * at_zero @ weights), float(100 * at_best @ weights))
            for name, weights in measures.items()
        ],
        [
            (
                judged.classes[k],
                None if counts is None else int(counts[k]),
                int(judged.label_counts[k]),
                float(shown_zero[k]),
                float(shown_best[k]),
            )
            for k in order.tolist()
        ],
        chart,
        dots,
        best,
        float(taus[0]),
        float(taus[-1]),
    )


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
        weights["top-1, samples as they are"] = judged.label_counts.numpy().astype(np.float64)
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


def _blank(recalls: npt.NDArray[np.float64], judged: Judged) -> npt.NDArray[np.float64]:
    return np.where(judged.label_counts.numpy() > 0, recalls, np.nan)


def _rank(order: torch.Tensor) -> torch.Tensor:
    rank = torch.empty_like(order)
    rank[order] = torch.arange(len(order))
    return rank
