"""What a reader of the page can move: τ, and the prior the labels follow."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from longtail.flows.judge import Judgement
from longtail.flows.samples import BeforeAfter
from longtail.flows.target_path import PLACES, TargetPath
from longtail.flows.tau_path import STEP, TauPath
from longtail.report.charts.chart import Chart
from longtail.report.charts.stage import WHOLE, Curve, curves, moving_dots
from longtail.report.names import METRICS, order_title


@dataclass(frozen=True, eq=False)
class TauExplorer:
    """The τ explorer: what the page shows and what its script needs.

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

    values: Mapping[str, Any]
    rows: list[tuple[str, float, float]]
    classes: list[tuple[str, int | None, int, float, float]]
    curves: Chart
    dots: Chart
    before: str
    tau: float
    best_tau: float
    low: float
    high: float
    step: float = STEP
    kind: str = "tau"


@dataclass(frozen=True, eq=False)
class TargetExplorer:
    """The target explorer: what the page shows and what its script needs.

    Attributes:
        values: For the script.
        words: What each place of the slider is called.
        accuracy: Accuracy over the places, left as they are and moved.
        calibration: ECE over the places.
        start: The place to begin with.
    """

    values: Mapping[str, Any]
    words: list[str]
    accuracy: Chart
    calibration: Chart
    start: int
    kind: str = "target"


def tau_explorer(judgement: Judgement) -> TauExplorer | None:
    """The τ explorer of a judgement, where there is a path."""
    path, samples = judgement.tau_path, judgement.samples
    if path is None:
        return None
    order = samples.order
    before, result = ((100 * part[order]).tolist() for part in (path.before, path.result))
    chart, curve_plane = curves(
        path.drawn.tolist(),
        [Curve(METRICS[key], (100 * part).tolist()) for key, part in path.curves.items()],
        title="Accuracy over τ",
        x_title="τ",
        y_title="accuracy (%)",
        y_span=WHOLE,
    )
    dots, dot_plane = moving_dots(
        [(samples.names[0], before), ("at τ", result)],
        title="Accuracy by class at τ",
        x_title=order_title(samples),
        y_title="accuracy (%)",
    )
    names, here = [samples.classes[k] for k in order], samples.label_counts[order].tolist()
    trained = [None] * len(names) if samples.counts is None else samples.counts[order].tolist()
    return TauExplorer(
        _tau_values(path, samples) | {"curves": curve_plane, "dots": dot_plane},
        rows=[
            (METRICS[key], 100 * first, 100 * last) for key, (first, last) in path.totals.items()
        ],
        classes=list(zip(names, trained, here, before, result, strict=True)),
        curves=chart,
        dots=dots,
        before=samples.names[0],
        tau=path.tau,
        best_tau=path.best_tau,
        low=float(path.slider[0]),
        high=float(path.slider[-1]),
    )


def _tau_values(path: TauPath, samples: BeforeAfter) -> dict[str, Any]:
    order = samples.order
    return {
        "low": float(path.slider[0]),
        "step": STEP,
        "tau": path.tau,
        "place": path.place,
        "between": path.is_between,
        "samples": samples.label_counts[order].tolist(),
        "ends": base64.b64encode(path.ends.astype("<u2").tobytes()).decode(),
        "measures": [weights[order].tolist() for weights in path.weights.values()],
        "classes": [samples.classes[k] for k in order],
    }


def target_explorer(judgement: Judgement) -> TargetExplorer | None:
    """The target explorer of a judgement, where there is a path."""
    path = judgement.target_path
    if path is None:
        return None
    accuracy, accuracy_plane = _over_places(path, "accuracy", "accuracy", WHOLE)
    calibration, ece_plane = _over_places(path, "ece", "ECE", None)
    values = {
        "places": PLACES,
        "left": path.left,
        "moved": path.moved,
        "accuracy": accuracy_plane,
        "ece": ece_plane,
    }
    words = [_in_words(1 - place, path.ratio) for place in PLACES]
    return TargetExplorer(values, words, accuracy, calibration, start=PLACES.index(1.0))


def _over_places(
    path: TargetPath, name: str, title: str, span: tuple[float, float] | None
) -> tuple[Chart, dict[str, float]]:
    lines = {"left as they are": path.left, "moved to the target": path.moved}
    return curves(
        PLACES,
        [Curve(label, [100 * getattr(at, name) for at in part]) for label, part in lines.items()],
        title=f"{title} as the prior moves",
        x_title="0 as before, 1 uniform, 2 reversed",
        y_title=f"{title} (%)",
        y_span=span,
    )


def _in_words(power: float, ratio: float) -> str:
    if np.isclose(power, 0):
        return "uniform: all classes alike"
    ends = {1.0: "as before", -1.0: "reversed: the rarest class is the most frequent"}
    if power in ends:
        return ends[power]
    way = "as before, but flatter" if power > 0 else "reversed, but flatter"
    return f"{way}: largest to smallest {ratio ** abs(power):.3g} to 1"
