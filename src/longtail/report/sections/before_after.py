"""The first screen: every headline metric before and after, and what to do next."""

from __future__ import annotations

from typing import NamedTuple

from longtail.core import Prior
from longtail.metrics import Comparison, Measured
from longtail.metrics.tally import NORMAL, Tally
from longtail.report.table import Column, Table


class Row(NamedTuple):
    """A metric as it is shown: its key, its name, whether a share, whether less of it is better."""

    key: str
    name: str
    is_share: bool = True
    less: bool = False


ROWS = (
    Row("balanced_error", "balanced error", less=True),
    Row("top1", "accuracy under the target"),
    Row("sample_accuracy", "top-1, samples as they are"),
    Row("many", "many-shot classes"),
    Row("medium", "medium-shot classes"),
    Row("few", "few-shot classes"),
    Row("worst_class", "worst class"),
    Row("ece", "calibration error (ECE)", less=True),
    Row("nll", "log-loss", is_share=False, less=True),
)
_MISCALIBRATED = 0.05  # an ECE from which on the reader is told


def before_after(comparison: Comparison, names: tuple[str, str] = ("before", "after")) -> Table:
    """The table of the first screen, with 95 % intervals."""
    rows = metric_rows(comparison)
    return Table(
        [Column("metric"), *(Column(name) for name in names), Column("change")],
        rows,
        caption=_caption(comparison.before),
    )


def alone(tally: Tally) -> Table:
    """The same where there is nothing to compare with."""
    found = _with_samples(tally)
    rows = [[row.name, _shown(found[row.key], row)] for row in _rows_of(tally, found)]
    return Table([Column("metric"), Column("value")], rows, _caption(tally))


def _caption(tally: Tally) -> str:
    said = "In %, but for the log-loss; in brackets 95 % intervals."
    if not tally.groups:
        return said
    return (
        f"{said} Many-shot classes have more than 100 training samples, few-shot ones fewer "
        "than 20."
    )


def metric_rows(comparison: Comparison) -> list[tuple[str, str, str, str]]:
    """Name, before, after and change of each metric that there is."""
    before, after = (_with_samples(tally) for tally in (comparison.before, comparison.after))
    gains = comparison.gains()
    return [
        (
            row.name,
            _shown(before[row.key], row),
            _shown(after[row.key], row),
            _change(before[row.key], after[row.key], gains.get(_gain_key(row)), row),
        )
        for row in _rows_of(comparison.before, before)
    ]


def gain_of(comparison: Comparison) -> tuple[str, Measured, Measured, Measured]:
    """What counts, before, after, and the gain with its paired interval."""
    uniform = _is_uniform(comparison.before.target)
    key = "balanced_accuracy" if uniform else "top1"
    before, after = comparison.metrics()[key]
    name = "Balanced accuracy" if uniform else "Accuracy under the target"
    return name, before, after, comparison.gains()[key]


def gain_in_words(comparison: Comparison) -> str:
    """What was gained, in one sentence."""
    name, before, after, gain = gain_of(comparison)
    said = (
        f"{name} went from {percent(before.value)} to {percent(after.value)} %, by "
        f"{points(gain.value)} points (95 % interval {points(gain.low)} to {points(gain.high)})"
    )
    if is_above(gain):
        return f"{said}: a gain that is more than chance."
    if is_below(gain):
        return f"{said}: a loss that is more than chance."
    return f"{said}: it may be chance."


def next_step(comparison: Comparison) -> str:
    """What the reader of a comparison should do now."""
    _, _, _, gain = gain_of(comparison)
    steps = []
    if is_above(gain):
        steps.append("Use the scores after: the gain is real on these samples.")
    elif is_below(gain):
        steps.append("Keep the scores before; try another criterion, calibration or target.")
    else:
        steps.append(
            "Do not decide yet: label more held-out samples, of the rare classes above all, until "
            "the interval of the change leaves zero."
        )
    used = comparison.before if is_below(gain) else comparison.after
    return " ".join([*steps, *_calibration_step(used)])


def next_step_alone(tally: Tally, carried: Prior | None, target: Prior) -> str:
    """What to do with scores that nothing was done to yet."""
    steps = []
    if carried is None:
        steps.append(
            "Say what prior these logits carry, or measure it (longtail fix --carried measure): "
            "then they can be moved to the prior of where they are used."
        )
    elif not carried.is_close(target):
        steps.append(
            "These logits carry another prior than the target: move them with longtail fix, on "
            "held-out scores, and look at this page again."
        )
    else:
        steps.append("These logits carry the target already: there is no prior left to take out.")
    return " ".join([*steps, *_calibration_step(tally)])


def is_above(gain: Measured) -> bool:
    """Whether a gain is more than chance."""
    return gain.low is not None and gain.low > 0


def is_below(gain: Measured) -> bool:
    """Whether it is a loss that is more than chance."""
    return gain.high is not None and gain.high < 0


def percent(share: float | None) -> str:
    """A share in percent."""
    return "none" if share is None else f"{100 * share:.1f}"


def points(share: float | None) -> str:
    """A difference of shares in points, with its sign."""
    return "none" if share is None else f"{100 * share:+.1f}".replace("-", "−")


def _calibration_step(tally: Tally) -> list[str]:
    error = tally.metrics()["ece"].value
    if error is None or error < _MISCALIBRATED:
        return []
    return [
        f"Confidence is off by {percent(error)} points on average: before anyone relies on the "
        "probabilities, calibrate (longtail fix --calibrate bias)."
    ]


def _rows_of(tally: Tally, found: dict[str, Measured]) -> list[Row]:
    # Under the uniform prior accuracy is one minus the balanced error, which is shown. So is that
    # of the samples where they are balanced; without a target it is the accuracy.
    hidden = {"top1"} if _is_uniform(tally.target) else set()
    if tally.target is None or bool((tally.counts == tally.counts[0]).all()):
        hidden.add("sample_accuracy")
    return [
        row
        for row in ROWS
        if row.key not in hidden and row.key in found and found[row.key].value is not None
    ]


def _with_samples(tally: Tally) -> dict[str, Measured]:
    total = float(tally.counts.sum())
    right = float(tally.hits.sum()) / total
    spread = (tally.hits - tally.hits.square() / tally.counts.clamp(min=1)).sum()
    reach = NORMAL * float(spread) ** 0.5 / total
    return tally.metrics() | {"sample_accuracy": Measured(right, right - reach, right + reach)}


def _is_uniform(target: Prior | None) -> bool:
    return target is not None and target.is_close(Prior.uniform(target.num_classes))


def _gain_key(row: Row) -> str:
    return "balanced_accuracy" if row.key == "balanced_error" else row.key


def _shown(measured: Measured, row: Row) -> str:
    if measured.value is None:
        return "none"
    factor, digits = (100.0, 1) if row.is_share else (1.0, 3)
    text = f"{factor * measured.value:.{digits}f}"
    if measured.low is None or measured.high is None:
        return text
    low, high = (f"{factor * end:.{digits}f}" for end in (measured.low, measured.high))
    return f"{text} [{low},\u00a0{high}]"


def _overlap(one: Measured, other: Measured) -> bool:
    """Whether two intervals have a number in common; unknown ones have not."""
    if None in (one.low, one.high, other.low, other.high):
        return False
    return one.low <= other.high and other.low <= one.high  # type: ignore[operator]


def _change(before: Measured, after: Measured, gain: Measured | None, row: Row) -> str:
    """The difference with its paired interval where there is one, and what it means."""
    if before.value is None or after.value is None:
        return "none"
    factor, digits = (100.0, 1) if row.is_share else (1.0, 3)
    change = factor * (after.value - before.value)
    text = f"{change:+.{digits}f}".replace("-", "−")
    if float(f"{change:.{digits}f}") == 0:
        return "none"
    word = "better" if (change < 0) == row.less else "worse"
    if gain is None or gain.low is None or gain.high is None:
        return f"{text} {'may be chance' if _overlap(before, after) else word}"
    # The gain is of an accuracy; of an error it is the other way round.
    low, high = (-gain.high, -gain.low) if row.less else (gain.low, gain.high)
    between = f"[{factor * low:+.{digits}f},\u00a0{factor * high:+.{digits}f}]".replace("-", "−")
    sure = is_above(gain) or is_below(gain)
    return f"{text} {between} {word if sure else 'may be chance'}"
