"""The page of `longtail fix`, and the same in the words of the terminal."""

from longtail.core import Prior
from longtail.core.arrays import as_numpy
from longtail.flows.figure_curves import descending
from longtail.flows.fix_result import CROSS_FITTED, MOST_CLASSES, FixResult, StepFacts
from longtail.report.figures.classes import ordered_chart
from longtail.report.names import ORDERS
from longtail.report.page import Figure, Footer, Page, Section
from longtail.report.pages.decisions import decision_sections
from longtail.report.pages.first_screen import REMEDY, gain_in_words, tau_in_words
from longtail.report.pages.scores import scores_page

_AGAIN = (
    "The same again, on other scores of this model: longtail fix SCORES --kind logits --with "
    "adjuster.json -o OUT (--kind probs if they are probabilities)."
)


def fix_page(result: FixResult, footer: Footer) -> Page:
    """The page on scores before and after, and what was done."""
    if result.judgement is None:
        return Page(
            title="longtail fix",
            summary=headline(result),
            sections=[_steps(result)],
            footer=footer,
            next_step="Give the labels of some of these samples, and what the fix gains is "
            "measured: --labels, or --apply-labels for those of --apply.",
        )
    return scores_page(
        result.judgement,
        footer,
        title="longtail fix",
        done="The scores of a trained model were adjusted, as said at the end of this page. "
        f"Measured on {measured_on(result)}.",
        sections=[*decision_sections(result), _steps(result)],
        written=True,
        remedy=remedy_of(result),
    )


def headline(result: FixResult) -> str:
    """What the fix gained, in one sentence."""
    if result.judgement is None:
        return "The scores have no labels, so what the fix gained could not be measured."
    return gain_in_words(result.judgement)


def measured_on(result: FixResult) -> str:
    """What samples it was measured on, and how."""
    if result.measured != CROSS_FITTED:
        return result.measured_on
    same = result.is_applied_to_validation
    why = " (the scores to adjust are of the samples that were fitted on)" if same else ""
    return f"{result.measured_on}, each fifth fixed by what was fitted on the others{why}"


def absent_in_words(result: FixResult) -> str:
    """How many classes nothing is said of, or nothing where all have samples."""
    absent = 0 if result.judgement is None else result.judgement.absent_classes
    return f"Classes without a sample there ({absent:,}) count for nothing." if absent else ""


def remedy_of(result: FixResult) -> str:
    """What helps where the fix does harm: what there was to choose in this one."""
    if any(step.name == "MarginalMatching" for step in result.steps):
        return (
            "The unlabelled samples probably do not follow the target: leave --unlabelled out, or "
            "let the target be estimated from them (--apply and --target estimate)."
        )
    if result.estimate is not None:
        return (
            "The prior that was estimated does not suit these scores; give the target if you know "
            "it, or try --calibrate none."
        )
    return REMEDY


def shift_in_words(result: FixResult) -> str:
    """That more than the prior changed, where the new scores say so, or may have."""
    if result.is_shift_unchecked:
        return (
            "Whether more than the prior changed in the new scores was not checked: too "
            f"many classes, more than {MOST_CLASSES}."
        )
    if result.shift is None or not result.shift.is_doubtful:
        return ""
    return (
        "More than the prior seems to have changed in the new scores: the model is more, or "
        "less, sure of them than any mixture of the validation samples' classes would make it "
        f"(chance alone: {result.shift.p_value:.2g}). Then moving the prior is not exact. Fits "
        f"worst: what is predicted to be {', '.join(result.fits_worst)}."
    )


def steps_in_words(result: FixResult) -> list[str]:
    """What was done, a sentence a step."""
    return [in_words(step) for step in result.steps]


def _steps(result: FixResult) -> Section:
    sentences = steps_in_words(result)
    if result.estimate is not None:
        sentences.append("The target was estimated from the scores themselves, without labels.")
    sentences += filter(None, [shift_in_words(result)])
    return Section(
        heading="What was done",
        paragraphs=sentences,
        figures=[] if result.carried is None else [_priors(result, result.carried)],
        notes=[_AGAIN],
    )


def _priors(result: FixResult, carried: Prior) -> Figure:
    order = descending(carried.probs if result.counts is None else result.counts)
    before = "carried before" if result.matching is None else "carried before, as declared"
    priors = {before: [carried.probs]}
    if (matching := result.matching) is not None:
        interval = matching.interval or ()
        priors["carried before, by the unlabelled samples"] = [matching.measured.probs, *interval]
    if (estimate := result.estimate) is not None:
        ends = [as_numpy(end) for end in (estimate.low, estimate.high)]
        priors["carried now, estimated with its interval"] = [estimate.prior.probs, *ends]
    elif result.carried_after is not None:
        priors["carried now"] = [result.carried_after.probs]
    chart = ordered_chart(
        priors,
        order,
        result.classes or [f"class {k}" for k in range(len(order))],
        title="Label priors",
        x_title=ORDERS["source" if result.counts is None else "counts"],
        y_title="share of the samples (%)",
        factor=100,
    )
    caption = "What the logits carried before, and what they carry now."
    if result.matching is not None and result.matching.interval is not None:
        caption += " By the unlabelled samples: after calibration, with 95 % intervals."
    return Figure(chart, caption, wide=True)


def in_words(step: StepFacts) -> str:
    """An adjuster in one sentence."""
    match step.name:
        case "BiasCorrectedTemperature":
            return f"Divide the logits by {step.temperature:.3g} and add a bias to each class."
        case "Temperature":
            return f"Divide the logits by {step.temperature:.3g}."
        case "VectorScaling":
            return "Scale the logits of each class and add a bias to it."
        case "LogitAdjustment" if step.tau is not None:
            where = "towards" if step.tau >= 0 else "away from"
            return (
                f"Move the logits from what they carry {where} the target, by τ = {step.tau:.3g}."
                f"{tau_in_words(step.choice)}"
            )
        case "MarginalMatching":
            return (
                "Move the logits to the target, which unlabelled samples follow, by what these say "
                f"is carried: off from what was said by {step.beyond:.2g} (root mean square of the "
                "classes' logits)."
            )
        case "PCSoftmax":
            return "Move the logits from what they carry to the target."
        case "WeightNormalization":
            return f"Divide the logits of each class by its scale to the power {step.tau:.3g}."
    return step.name
