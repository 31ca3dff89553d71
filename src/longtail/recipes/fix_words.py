"""The result of `longtail fix` in words and tables, for the terminal and the page alike."""

from longtail.core import Prior
from longtail.metrics import Measured
from longtail.posthoc import (
    AffineAdjuster,
    BiasCorrectedTemperature,
    LogitAdjustment,
    PCSoftmax,
    Temperature,
    VectorScaling,
    WeightNormalization,
)
from longtail.recipes.fix_run import FixResult

# What is shown, what it is called, whether it is a share, and whether less of it is better.
_ROWS = (
    ("balanced_accuracy", "balanced accuracy", True, False),
    ("top1", "accuracy under the target", True, False),
    ("many", "many-shot classes", True, False),
    ("medium", "medium-shot classes", True, False),
    ("few", "few-shot classes", True, False),
    ("worst_class", "worst class", True, False),
    ("nll", "log-loss", False, True),
    ("brier", "Brier score", False, True),
    ("ece", "calibration error (ECE)", True, True),
)


def metric_rows(result: FixResult) -> list[tuple[str, str, str, str]]:
    """Name, before, after and the verdict of each metric."""
    if result.comparison is None:
        return []
    metrics = result.comparison.metrics()
    return [
        (
            label,
            _shown(*_both(metrics[name][0], share)),
            _shown(*_both(metrics[name][1], share)),
            _verdict(*metrics[name], less),
        )
        for name, label, share, less in _ROWS
        if name in metrics
        and metrics[name][0].value is not None
        # Under the uniform prior that is balanced accuracy, which is shown.
        and not (name == "top1" and _is_uniform(result))
    ]


def headline(result: FixResult) -> str:
    """What the fix gained, in one sentence."""
    if result.comparison is None:
        return "The scores have no labels, so what the fix gained could not be measured."
    name = "balanced_accuracy" if _is_uniform(result) else "top1"
    gain = result.comparison.gains()[name]
    before, after = result.comparison.metrics()[name]
    what = "Balanced accuracy" if _is_uniform(result) else "Accuracy under the target"
    said = (
        f"{what} went from {_percent(before.value)} to {_percent(after.value)} %, by "
        f"{_points(gain.value)} points (95 % interval {_points(gain.low)} to {_points(gain.high)})"
    )
    if gain.low is not None and gain.low > 0:
        return f"{said}: a gain that is more than chance."
    if gain.high is not None and gain.high < 0:
        return f"{said}: a loss. Do not use this fix; try another criterion or calibration."
    return f"{said}: it may be chance; more held-out samples of the rare classes would tell."


def _is_uniform(result: FixResult) -> bool:
    """Whether what counts is the uniform prior, and not that of the samples themselves."""
    target = result.target
    estimated = result.fix is not None and result.fix.estimate is not None
    return target is None or (target.is_close(Prior.uniform(target.num_classes)) and not estimated)


def described(step: AffineAdjuster) -> str:
    """An adjuster in one sentence."""
    match step:
        case BiasCorrectedTemperature():
            return f"Divide the logits by {step.temperature:.3g} and add a bias to each class."
        case Temperature():
            return f"Divide the logits by {step.temperature:.3g}."
        case VectorScaling():
            return "Scale the logits of each class and add a bias to it."
        case LogitAdjustment():
            return (
                f"Move the logits from what they carry towards the target, by τ = {step.tau:.3g}."
            )
        case PCSoftmax():
            return "Move the logits from what they carry to the target."
        case WeightNormalization():
            return f"Divide the logits of each class by its scale to the power {step.tau:.3g}."
    return type(step).__name__


def _both(measured: Measured, share: bool) -> tuple[Measured, float, int]:
    return measured, 100.0 if share else 1.0, 1 if share else 3


def _shown(measured: Measured, factor: float, digits: int) -> str:
    if measured.value is None:
        return "none"
    text = f"{factor * measured.value:.{digits}f}"
    if measured.low is None or measured.high is None:
        return text
    return f"{text} [{factor * measured.low:.{digits}f}, {factor * measured.high:.{digits}f}]"


def _verdict(before: Measured, after: Measured, less: bool) -> str:
    if before.value is None or after.value is None or before.value == after.value:
        return "same"
    return "better" if (after.value < before.value) == less else "worse"


def _percent(share: float | None) -> str:
    return "none" if share is None else f"{100 * share:.1f}"


def _points(share: float | None) -> str:
    return "none" if share is None else f"{100 * share:+.1f}".replace("-", "−")
