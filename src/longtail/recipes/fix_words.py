"""The result of `longtail fix` in words, for the terminal and the page alike."""

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
from longtail.report.sections import before_after, verdict
from longtail.report.sections.held_tau import held_near_one_in_words
from longtail.report.sections.sanity import sanity_in_words


def headline(result: FixResult) -> str:
    """What the fix gained, in one sentence."""
    if result.comparison is None:
        return "The scores have no labels, so what the fix gained could not be measured."
    return verdict.gain_in_words(result.comparison)


def warning(result: FixResult) -> str:
    """Why not to trust what follows, or nothing."""
    return "" if result.comparison is None else sanity_in_words(result.comparison.sanity)


def absent_in_words(result: FixResult) -> str:
    """How many classes nothing is said of, or nothing where all have samples."""
    if result.comparison is None:
        return ""
    absent = int((result.comparison.before.samples == 0).sum())
    return f"Classes without a sample there ({absent:,}) count for nothing." if absent else ""


def metric_rows(result: FixResult) -> list[tuple[str, str, str, str]]:
    """Name, before, after and change of each metric."""
    return [] if result.comparison is None else before_after.metric_rows(result.comparison)


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
            where = "towards" if step.tau >= 0 else "away from"
            return (
                f"Move the logits from what they carry {where} the target, by τ = {step.tau:.3g}."
                f"{held_near_one_in_words(step.choice)}"
            )
        case PCSoftmax():
            return "Move the logits from what they carry to the target."
        case WeightNormalization():
            return f"Divide the logits of each class by its scale to the power {step.tau:.3g}."
    return type(step).__name__
