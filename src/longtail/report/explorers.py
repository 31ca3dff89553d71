"""What a reader of the page can move: τ, and the prior the labels follow.

A plane tells the script of the page where values lie in pixels, and moves marks there.
"""

import base64
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from longtail.flows.judge import Judgement
from longtail.flows.paths import PLACES, STEP, TargetPath
from longtail.report.charts.chart import Chart, drawing
from longtail.report.charts.frame import Axis, Frame, Key, frame, line_key
from longtail.report.charts.lines import path as line_path
from longtail.report.charts.scale import covering_ticks, span_of
from longtail.report.charts.svg import Attributes, color, coordinate, dash, element
from longtail.report.names import METRICS, order_title

PERCENT = (0.0, 100.0)
_HEIGHT = 220.0
Plane = dict[str, float]


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
        {METRICS[key]: (100 * part).tolist() for key, part in path.curves.items()},
        title="Accuracy over τ",
        x_title="τ",
        y_title="accuracy (%)",
        y_span=PERCENT,
    )
    dots, dot_plane = _class_dots(samples.names[0], before, result, order_title(samples))
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
        "place": path.position,
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
    accuracy, accuracy_plane = _over_places(path, "accuracy", "accuracy", PERCENT)
    calibration, ece_plane = _over_places(path, "ece", "ECE", None)
    shown = {
        "words": [_in_words(*at) for at in zip(PLACES, path.ratios, strict=True)],
        "accuracy": accuracy,
        "calibration": calibration,
        "start": PLACES.index(1.0),
    }
    planes = {"accuracy": accuracy_plane, "ece": ece_plane}
    values = {"places": PLACES, "left": path.left, "moved": path.moved, **planes}
    return Explorer("target", shown, values)


def _over_places(
    path: TargetPath, name: str, title: str, span: tuple[float, float] | None
) -> tuple[Chart, Plane]:
    lines = {"left as they are": path.left, "moved to the target": path.moved}
    return curves(
        PLACES,
        {label: [100 * getattr(at, name) for at in part] for label, part in lines.items()},
        title=f"{title} as the prior moves",
        x_title="0 as before, 1 uniform, 2 reversed",
        y_title=f"{title} (%)",
        y_span=span,
    )


def _in_words(position: float, ratio: float) -> str:
    ends = {0.0: "as before", 1.0: "uniform: all classes alike"}
    ends[2.0] = "reversed: the rarest class is the most frequent"
    if position in ends:
        return ends[position]
    way = "as before, but flatter" if position < 1 else "reversed, but flatter"
    return f"{way}: largest to smallest {ratio:.3g} to 1"


def curves(
    x: Sequence[float],
    lines: Mapping[str, Sequence[float]],
    *,
    title: str,
    x_title: str,
    y_title: str,
    y_span: tuple[float, float] | None,
) -> tuple[Chart, Plane]:
    """Lines over x with a cursor that the page moves, and the plane for it.

    The y axis covers the lines and goes no further than `y_span`; without one it starts at zero.
    """
    levels = [value for line in lines.values() for value in line]
    ticks = covering_ticks(*span_of(levels if y_span else [0.0, *levels]))
    low, high = y_span or (ticks[0], ticks[-1])
    up = Axis(max(ticks[0], low), min(ticks[-1], high), y_title)
    keys = [line_key(name, number) for number, name in enumerate(lines)]
    framed = frame(keys, Axis(x[0], x[-1], x_title), up, 480.0, _HEIGHT)
    drawn = framed.parts
    for number, line in enumerate(lines.values()):
        look: Attributes = {"fill": "none", "stroke": color(number), "stroke_width": 1.8}
        outline = line_path(x, line, framed.x, framed.y)
        dashes = dash(number)
        drawn.append(element("path", class_="line", d=outline, **look, stroke_dasharray=dashes))
    ends = {"x1": -99, "x2": -99, "y1": framed.plot.top, "y2": framed.plot.bottom}
    drawn.append(element("line", class_="cursor", **ends, stroke="currentColor"))
    description = f"{', '.join(lines)} over {x_title}."
    return drawing(framed.size, title, description, drawn), _plane(framed)


def _class_dots(
    name: str, before: Sequence[float], result: Sequence[float], x_title: str
) -> tuple[Chart, Plane]:
    """A dot for each class, in percent, before and at τ; the page redraws the latter."""
    series, size = {name: before, "at τ": result}, len(before)
    keys = [
        Key(name, element("circle", r=3.5, fill=color(number)))
        for number, name in enumerate(series)
    ]
    across = Axis(0.0, size + 1.0, x_title, whole=True)
    framed = frame(keys, across, Axis(*PERCENT, "accuracy (%)"), 960.0, _HEIGHT)
    drawn = framed.parts
    for number, (values, width, opacity) in enumerate(((before, 4.5, 0.5), (result, 6, None))):
        # Strokes without length, which a round cap makes dots.
        outline = "".join(
            f"M{coordinate(framed.x(position))} {coordinate(framed.y(value))}h0"
            for position, value in enumerate(values, start=1)
            if not math.isnan(value)
        )
        look: Attributes = {"stroke": color(number), "stroke_width": width}
        ends: Attributes = {"stroke_linecap": "round", "stroke_opacity": opacity, "fill": "none"}
        drawn.append(element("path", class_="dots", d=outline, **look, **ends))
    description = f"{size} classes; the table below has the numbers."
    return drawing(framed.size, "Accuracy by class at τ", description, drawn), _plane(framed)


def _plane(framed: Frame) -> Plane:
    """What the script needs to place a mark."""
    x, y = framed.x, framed.y
    ends = {"x0": x.low, "x1": x.high, "y0": y.low, "y1": y.high}
    return ends | {side: round(at, 2) for side, at in framed.plot._asdict().items()}
