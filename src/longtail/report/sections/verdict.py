"""What came of it and what to do next, each in a sentence or two that the numbers bear out."""

from __future__ import annotations

from longtail.core import Prior
from longtail.metrics import Accumulator, Difference, Interval, ece
from longtail.report.accuracies import HEADLINES, headline_key

_MISCALIBRATED = 0.05  # an ECE that is by so much above what chance gives is told
# The spread of a class with one or two samples is mostly borrowed from the others: right where
# classes vary alike, which cannot be seen if half of them have no more.
_TOO_FEW = 3


def gain_of(comparison: Difference) -> tuple[str, Interval, Interval, Interval]:
    """What counts, before, after, and the gain with its paired interval."""
    key = headline_key(comparison.before.target)
    before, after = comparison.metrics()[key]
    return HEADLINES[key], before, after, comparison.gains()[key]


def gain_in_words(comparison: Difference) -> str:
    """What was gained, in one sentence."""
    name, before, after, gain = gain_of(comparison)
    if not comparison.changed.any():
        losses = " to ".join(f"{loss.value:.3f}" for loss in comparison.metrics()["nll"])
        between = ""
        if is_open(gain):
            between = f" (95 % interval of the change {points(gain.low)} to {points(gain.high)})"
        return (
            f"No sample turned right or wrong: {name.lower()} stays at {percent(before.value)} %"
            f"{between}, and the log-loss went from {losses.replace('inf', '∞')}."
        )
    said = (
        f"{name} went from {percent(before.value)} to {percent(after.value)} %, by "
        f"{points(gain.value)} points (95 % interval {points(gain.low)} to {points(gain.high)})"
    )
    if has_too_few(comparison):
        return f"{said}; of so few samples a class, the interval is rough."
    if is_above(gain):
        return f"{said}: a gain that is more than chance."
    if is_below(gain):
        return f"{said}: a loss that is more than chance."
    return f"{said}: it may be chance."


def next_step(
    comparison: Difference, names: tuple[str, str] = ("before", "after"), written: bool = True
) -> str:
    """What the reader of a comparison should do now.

    Args:
        comparison: Of the scores before and after.
        names: What the two are called.
        written: Whether a file holds the scores after.
    """
    before, after = names
    unwritten = "" if written else " No file holds them yet: longtail fix writes such scores."
    gain = gain_of(comparison)[3]
    losses = [measured.value or 0.0 for measured in comparison.metrics()["nll"]]
    used = comparison.after
    if not comparison.changed.any() and losses[1] < losses[0]:
        step = f"Use the scores {after}: right on the same samples, with a lower log-loss."
        step += unwritten
    elif not comparison.changed.any():
        step = f"Keep the scores {before}: the others are right on the same samples, and no better."
        used = comparison.before
    elif has_too_few(comparison):
        step = "Do not decide yet: label more held-out samples, at least a few of every class."
    elif not (is_above(gain) or is_below(gain)):
        step = (
            "Do not decide yet: label more held-out samples, of the rare classes above all, until "
            "the interval of the change leaves zero."
        )
    elif is_above(gain):
        step = f"Use the scores {after}: the gain is real on these samples.{unwritten}"
    else:
        step = f"Keep the scores {before}; try another criterion, calibration or target."
        used = comparison.before
    return " ".join([step, *_calibration_step(used)])


def next_step_alone(
    tally: Accumulator, carried: Prior | None, target: Prior, disagrees: bool = False
) -> str:
    """What to do with scores that nothing was done to yet.

    Args:
        tally: Of them.
        carried: What they are declared to carry.
        target: The prior to look under.
        disagrees: Whether their labels say that they carry something else.
    """
    if carried is None:
        step = (
            "Say what prior these logits carry, or measure it (longtail fix --carried measure): "
            "then they can be moved to the prior of where they are used."
        )
    elif disagrees:
        return (
            "These logits do not behave as if they carried what is declared, see What the logits "
            "carry: calibrate them, or measure what they carry, on held-out scores (longtail fix "
            "--calibrate bias, or --carried measure)."
        )
    elif not carried.is_close(target):
        step = (
            "These logits carry another prior than the target: move them with longtail fix, on "
            "held-out scores, and look at this page again."
        )
    else:
        step = "These logits carry the target already: there is no prior left to take out."
    return " ".join([step, *_calibration_step(tally)])


def has_too_few(comparison: Difference) -> bool:
    """Whether half of the classes have so few samples that intervals say nothing."""
    counts = comparison.before.samples
    present = counts[counts > 0]
    return bool(2 * int((present < _TOO_FEW).sum()) >= len(present))


def is_above(gain: Interval) -> bool:
    """Whether a gain is more than chance."""
    return gain.low is not None and gain.low > 0


def is_below(gain: Interval) -> bool:
    """Whether it is a loss that is more than chance."""
    return gain.high is not None and gain.high < 0


def is_open(gain: Interval) -> bool:
    """Whether other samples might change, though it may be that none of these did."""
    return gain.low is not None and gain.high is not None and gain.low < gain.high


def percent(share: float | None) -> str:
    """A share in percent."""
    return "none" if share is None else f"{100 * share:.1f}"


def points(share: float | None) -> str:
    """A difference of shares in points, with its sign."""
    return "none" if share is None else f"{100 * share:+.1f}".replace("-", "−")


def _calibration_step(tally: Accumulator) -> list[str]:
    error = ece(tally)
    if error - tally.ece_by_chance < _MISCALIBRATED:
        return []
    return [
        f"Confidence is off by {percent(error)} points on average: before anyone relies on "
        "the probabilities, calibrate (longtail fix --calibrate bias); if that was done, more "
        "held-out samples are needed."
    ]
