"""The result of `longtail fix` in words, for the terminal and the page alike."""

from longtail.posthoc import (
    AffineAdjuster,
    BiasCorrectedTemperature,
    LogitAdjustment,
    PCSoftmax,
    TauChoice,
    Temperature,
    VectorScaling,
    WeightNormalization,
)
from longtail.recipes.fix_run import FixResult
from longtail.report.sections import before_after, verdict
from longtail.report.sections.sanity import sanity_in_words


def headline(result: FixResult) -> str:
    """What the fix gained, in one sentence."""
    if result.comparison is None:
        return "The scores have no labels, so what the fix gained could not be measured."
    return verdict.gain_in_words(result.comparison)


def warning(result: FixResult) -> str:
    """Why not to trust what follows, or nothing."""
    return "" if result.comparison is None else sanity_in_words(result.comparison.sanity)


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
            return (
                f"Move the logits from what they carry towards the target, by τ = {step.tau:.3g}."
                f"{held_near_one_in_words(step.choice)}"
            )
        case PCSoftmax():
            return "Move the logits from what they carry to the target."
        case WeightNormalization():
            return f"Divide the logits of each class by its scale to the power {step.tau:.3g}."
    return type(step).__name__


def held_near_one_in_words(choice: TauChoice | None) -> str:
    """Why τ is near 1 and not where the held-out samples have it, or nothing if it is there."""
    if choice is None or choice.is_determined:
        return ""
    if choice.trust == 0:
        return " The target is what they carry already, so that every τ does the same."
    between = ""
    if choice.low is not None and choice.high is not None:
        between = f" (95 % interval {choice.low:.3g} to {choice.high:.3g})"
    return (
        " The held-out samples do not determine τ, so it was held near 1, where the move is exact: "
        f"they alone would have it at {choice.optimum:.3g}{between}."
    )
