r"""The τ explorer: accuracy of every class and group at any τ, exactly and at once.

It starts at the result that the page is about, whose logits f are calibrated and moved by τ₀. At
another τ they are

    f + (τ − τ₀)·(log t − log π),

so that at τ₀ nothing is added: what is counted there is what the tables beside it count. A sample
is right on one interval [start, stop) of τ. So two numbers a sample are enough: the places on the
slider from which on and up to which it is right. Both are found in float64 here. τ₀ has a place of
its own among those of the slider.
"""

from __future__ import annotations

import base64
import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from longtail.core import Prior
from longtail.core.retarget import prior_offset
from longtail.core.tensors import as_tensor
from longtail.posthoc import TauCurve
from longtail.posthoc.tau.curve import curve_along
from longtail.posthoc.tau.paths import Shift
from longtail.posthoc.tau.weighted import Weighted
from longtail.report.accuracies import GROUPS, shown_accuracies
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
        rows: The accuracies it shows, with the numbers before and at the result.
        classes: Name, training samples, test samples and accuracy before and at the result of each
            class.
        curves: Accuracy of groups over τ.
        dots: Accuracy of classes, before and at the τ chosen.
        before: What the scores before are called.
        tau: That of the result, where the slider starts.
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
    before: str
    tau: float
    best_tau: float
    low: float
    high: float
    step: float = _STEP
    kind: str = "tau"


def tau_explorer(judged: Judged) -> TauExplorer | None:
    """The explorer of the result; None without a known prior or with too many samples."""
    found = way(judged)
    if found is None or len(judged.labels) > MOST_SAMPLES:
        return None
    offset, start = found
    curve = _curve(judged, offset)
    grid = slider(curve.best_tau + start, start)
    taus = np.union1d(grid, start)  # the result has a place of its own
    best = best_place(grid, start, curve)
    measures, order = _measures(judged), judged.order
    (at_result,) = _recalls(np.zeros(1), curve, judged)
    tally = judged.comparison.before
    seen = judged.label_counts.numpy() > 0
    at_first = np.nan_to_num(tally.recalls)
    shown_first, shown_result = (
        100 * np.where(seen, at, np.nan)[order] for at in (at_first, at_result)
    )
    chart, curve_plane = _drawn_curves(grid[::_DRAWN], start, curve, judged, measures)
    dots, dot_plane = moving_dots(
        [(judged.names[0], shown_first.tolist()), ("at τ", shown_result.tolist())],
        title="Accuracy by class at τ",
        x_title=judged.order_title,
        y_title="accuracy (%)",
    )
    names, samples = _named(judged), judged.label_counts[order].tolist()
    trained = [None] * len(names) if judged.counts is None else judged.counts[order].tolist()
    values = {
        "low": float(grid[0]),
        "step": _STEP,
        "tau": start,
        "place": int(np.searchsorted(taus, start)),
        "between": len(taus) > len(grid),  # whether its place lies between those of the steps
        "samples": samples,
        "ends": _ends(taus - start, curve, judged),
        "measures": [weights[order].tolist() for weights in measures.values()],
        "curves": curve_plane,
        "dots": dot_plane,
        "classes": names,
    }
    return TauExplorer(
        values,
        rows=[
            (name, float(100 * at_first @ weights), float(100 * at_result @ weights))
            for name, weights in measures.items()
        ],
        classes=list(
            zip(names, trained, samples, shown_first.tolist(), shown_result.tolist(), strict=True)
        ),
        curves=chart,
        dots=dots,
        before=judged.names[0],
        tau=start,
        best_tau=best,
        low=float(grid[0]),
        high=float(grid[-1]),
    )


def way(judged: Judged) -> tuple[torch.Tensor, float] | None:
    """What is added to the result's logits for each unit of τ, and the τ of the result.

    A result that is no move of the scores before is taken as it is, at τ = 0.
    """
    is_move = judged.tau is not None
    carried = judged.before.carried if is_move else judged.after.carried
    source = carried
    if carried is None or carried.is_close(judged.target):
        # There is no way to go from here but that of the training prior.
        source = None if judged.counts is None else Prior.of(judged.counts, zeros="smooth")
        is_move = False
    if source is None or source.is_close(judged.target):
        return None
    offset = as_tensor(prior_offset(source, judged.target))
    # What the target rules out is ruled out in the result already.
    return offset.nan_to_num(neginf=0.0), judged.tau or 0.0 if is_move else 0.0


def _curve(judged: Judged, offset: torch.Tensor) -> TauCurve:
    """Accuracy of the result's logits for every τ beyond that of the result."""
    rows = as_tensor(judged.after.logits).detach().cpu()
    samples = Weighted.under(judged.target, rows, judged.labels)
    return curve_along(Shift(offset), samples, judged.target, judged.after.logits)


def _named(judged: Judged) -> list[str]:
    return [judged.classes[k] for k in judged.order.tolist()]


def _drawn_curves(
    taus: npt.NDArray[np.float64],
    start: float,
    curve: TauCurve,
    judged: Judged,
    measures: dict[str, npt.NDArray[np.float64]],
) -> tuple[Chart, dict[str, float]]:
    """Every measure over τ."""
    every = _recalls(taus - start, curve, judged)
    return curves(
        taus.tolist(),
        [Curve(name, (100 * every @ weights).tolist()) for name, weights in measures.items()],
        title="Accuracy over τ",
        x_title="τ",
        y_title="accuracy (%)",
        y_span=WHOLE,
    )


def _ends(taus: npt.NDArray[np.float64], curve: TauCurve, judged: Judged) -> str:
    """From which place of the slider on and up to which each sample is right, class by class.

    Args:
        taus: The places, counted from the result.
        curve: Of the result.
        judged: The samples.
    """
    start, stop = (np.searchsorted(taus, ends) for ends in curve.intervals)
    by_class = torch.argsort(_rank(judged.order)[judged.labels], stable=True).numpy()
    ends = np.stack([start, stop], axis=1)[by_class].astype("<u2")
    return base64.b64encode(ends.tobytes()).decode()


def slider(*taus: float) -> npt.NDArray[np.float64]:
    """The steps of the slider: −1 to 3, and further where a τ that it has to reach lies further."""
    low = max(min(-1.0, math.floor(min(taus) - 1)), -_FARTHEST)
    high = min(max(3.0, math.ceil(max(taus) + 1)), _FARTHEST)
    steps = round(1 / _STEP)
    # Divided, not multiplied: so each is the double that its decimals stand for.
    return np.arange(round(low) * steps, round(high) * steps + 1) / steps


def best_place(taus: npt.NDArray[np.float64], start: float, curve: TauCurve) -> float:
    """The τ of the slider with the highest accuracy under the target.

    The best τ of all may lie in a piece of the curve that no place of the slider falls into. Of
    equally good places it is the nearest to that τ.
    """
    pieces = np.searchsorted(np.asarray(curve.taus), taus - start, side="right")
    accuracy = np.asarray(curve.accuracy)[pieces]
    good = taus[accuracy > accuracy.max() - 1e-12]
    return float(good[np.abs(good - start - curve.best_tau).argmin()])


def _measures(judged: Judged) -> dict[str, npt.NDArray[np.float64]]:
    """The accuracies of the first table: what every class counts for in each."""
    tally = judged.comparison.before
    names = shown_accuracies(tally) | GROUPS
    shares = tally.class_shares
    return {names[key]: shares[key] for key in names if key in shares}


def _recalls(
    taus: npt.NDArray[np.float64], curve: TauCurve, judged: Judged
) -> npt.NDArray[np.float64]:
    """The recall of every class at each τ, counted from that of the result.

    It is zero for a class without samples, which weighs none.
    """
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
