"""What a reader of the page can move: τ, and the prior the labels follow."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from longtail.flows.judge import Judgement
from longtail.flows.paths import PLACES, STEP, TargetPath
from longtail.report.charts.chart import Chart
from longtail.report.charts.stage import WHOLE, Curve, curves, moving_dots
from longtail.report.names import METRICS, order_title


@dataclass(frozen=True, eq=False)
class Explorer:
    """What the template of that kind shows, and the values that its script needs."""

    kind: Literal["tau", "target"]
    shown: Mapping[str, object]
    values: Mapping[str, object]


def tau_explorer(judgement: Judgement) -> Explorer | None:
    """The τ explorer of a judgement, where there is a path."""
    path, samples = judgement.tau_path, judgement.samples
    if path is None:
        return None
    order = samples.order
    before, result = ((100 * part[order]).tolist() for part in (path.before, path.result))
    names, here = [samples.classes[k] for k in order], samples.label_counts[order].tolist()
    trained = [None] * len(names) if samples.counts is None else samples.counts[order].tolist()
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
    shown = {
        # Each accuracy before and at the result, where the slider starts.
        "rows": [(METRICS[key], 100 * was, 100 * now) for key, (was, now) in path.totals.items()],
        # The same of each class, after its training samples and those here.
        "classes": list(zip(names, trained, here, before, result, strict=True)),
        "curves": chart,
        "dots": dots,
        "before": samples.names[0],
        "tau": path.tau,
        "best_tau": path.best_tau,
        "high": float(path.slider[-1]),
    }
    values = {
        "low": float(path.slider[0]),
        "step": STEP,
        "tau": path.tau,
        "place": path.place,
        "between": path.is_between,
        "samples": here,
        "ends": base64.b64encode(path.ends.astype("<u2").tobytes()).decode(),
        "measures": [weights[order].tolist() for weights in path.weights.values()],
        "classes": names,
        "curves": curve_plane,
        "dots": dot_plane,
    }
    return Explorer("tau", shown, values)


def target_explorer(judgement: Judgement) -> Explorer | None:
    """The target explorer of a judgement, where there is a path."""
    path = judgement.target_path
    if path is None:
        return None
    accuracy, accuracy_plane = _over_places(path, "accuracy", "accuracy", WHOLE)
    calibration, ece_plane = _over_places(path, "ece", "ECE", None)
    shown = {
        "words": [_in_words(1 - place, path.ratio) for place in PLACES],
        "accuracy": accuracy,
        "calibration": calibration,
        "start": PLACES.index(1.0),
    }
    values = {
        "places": PLACES,
        "left": path.left,
        "moved": path.moved,
        "accuracy": accuracy_plane,
        "ece": ece_plane,
    }
    return Explorer("target", shown, values)


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
