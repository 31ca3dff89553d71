r"""The target explorer: what accuracy and calibration become as the labels' prior moves.

On the way from the source π through uniform to its inverse, t ∝ π^s with s from 1 to −1, the scores
are moved to each t (after), and left as they are (before). What is moved is the result, so that
under its target it is as good as the tables beside it say. A sample of class y counts t(y)/n_y. How
a logit moves along this way is a straight line in s, so nothing is approximated between the places.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from longtail.core import Prior
from longtail.core.retarget import retarget
from longtail.core.tensors import as_tensor, wide_dtype
from longtail.metrics.samples import weights_to
from longtail.metrics.terms import BINS, inner_edges
from longtail.report.charts.chart import Chart
from longtail.report.explorers.stage import WHOLE, Curve, curves
from longtail.report.judged import Judged

PLACES = tuple(k / 10 for k in range(21))  # 1 − s: 0 as before, 1 uniform, 2 reversed
_BLOCK = 2**22


class Kept(NamedTuple):
    """Three measures under one target; no NLL where it is infinite, which JSON cannot hold."""

    accuracy: float
    ece: float
    nll: float | None


@dataclass(frozen=True, eq=False)
class TargetExplorer:
    """What the page shows and what its script needs.

    Attributes:
        values: For the script.
        words: What each place of the slider is called.
        accuracy: Accuracy over the places, left as they are and moved.
        calibration: ECE over the places.
        start: The place to begin with.
    """

    values: dict[str, Any]
    words: list[str]
    accuracy: Chart
    calibration: Chart
    start: int
    kind: str = "target"


def target_explorer(judged: Judged) -> TargetExplorer | None:
    """The explorer of before and of the result; None if it is not known what they carry."""
    source, carried = judged.source, judged.before.carried
    if source is None or carried is None or source.is_close(Prior.uniform(source.num_classes)):
        return None
    result = judged.after
    if result.carried is None or result.carried.has_zeros:  # nothing can be moved from there
        result = judged.before
    logits, labels = as_tensor(result.logits), judged.labels
    as_they_are = told(as_tensor(judged.before.logits), labels)
    left, moved = [], []
    for place in PLACES:
        target = source.tempered(1 - place)
        weights = torch.from_numpy(weights_to(target, labels))
        left.append(kept(as_they_are, weights))
        moved.append(kept(told(logits, labels, result.carried, target), weights))
    charts = {
        name: curves(
            PLACES,
            [
                Curve("left as they are", [100 * getattr(k, name) for k in left]),
                Curve("moved to the target", [100 * getattr(k, name) for k in moved]),
            ],
            title=f"{title} as the prior moves",
            x_title="0 as before, 1 uniform, 2 reversed",
            y_title=f"{title} (%)",
            y_span=span,
        )
        for name, title, span in (("accuracy", "accuracy", WHOLE), ("ece", "ECE", None))
    }
    ratio = float((as_tensor(source.log).max() - as_tensor(source.log).min()).exp())
    values = {
        "places": PLACES,
        "left": left,
        "moved": moved,
        "accuracy": charts["accuracy"][1],
        "ece": charts["ece"][1],
    }
    return TargetExplorer(
        values,
        [_words(1 - place, ratio) for place in PLACES],
        charts["accuracy"][0],
        charts["ece"][0],
        start=PLACES.index(1.0),
    )


class Told(NamedTuple):
    """Of each sample: whether it is right, with what confidence, and its log-loss."""

    right: Tensor
    confidence: Tensor
    loss: Tensor


def told(
    logits: Tensor, labels: Tensor, carried: Prior | None = None, target: Prior | None = None
) -> Told:
    """What logits say of their samples, as they are or moved from carried to target."""
    parts = []
    rows = max(1, _BLOCK // logits.shape[1])
    for start in range(0, len(logits), rows):
        block = logits[start : start + rows].cpu()
        block = block.to(wide_dtype(block.dtype))
        if target is not None:
            block = retarget(block, carried, target)
        logs, own = F.log_softmax(block, dim=1), labels[start : start + rows]
        # From the logits, as Scores.predict does: probabilities may tie where these do not.
        right = (block.argmax(dim=1) == own).double()
        loss = -logs.gather(1, own[:, None]).squeeze(1)
        parts.append((right, logs.amax(dim=1).double().exp(), loss.double()))
    return Told(*(torch.cat(part) for part in zip(*parts, strict=True)))


def kept(samples: Told, weights: Tensor) -> Kept:
    """Accuracy, ECE and NLL where samples count by their weights."""
    shares = weights / weights.sum()
    bins = torch.bucketize(samples.confidence, torch.from_numpy(inner_edges()))
    gaps = torch.bincount(bins, shares * (samples.right - samples.confidence), BINS)
    loss = float(shares @ samples.loss)
    accuracy = float(shares @ samples.right)
    return Kept(accuracy, float(gaps.abs().sum()), loss if math.isfinite(loss) else None)


def _words(power: float, ratio: float) -> str:
    if power == 0:
        return "uniform: all classes alike"
    ends = {1.0: "as before", -1.0: "reversed: the rarest class is the most frequent"}
    if power in ends:
        return ends[power]
    way = "as before, but flatter" if power > 0 else "reversed, but flatter"
    return f"{way}: largest to smallest {ratio ** abs(power):.3g} to 1"
