"""The first screen: every headline metric with its interval, what came of it, what to do next."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longtail.flows.carried_check import Agreement
from longtail.flows.changes import Change, Direction, Outcome
from longtail.flows.fix_result import TauChoice
from longtail.flows.judge import Judgement
from longtail.flows.samples import Standing
from longtail.report.names import (
    HEADLINES,
    METRICS,
    groups_in_words,
    number,
    percent,
    points,
    with_interval,
)
from longtail.report.page import Column, Table

if TYPE_CHECKING:
    from longtail.metrics import Sanity

_WORDS = {Direction.BETTER: "better", Direction.WORSE: "worse", Direction.CHANCE: "may be chance"}
_ENDS = {
    Outcome.TOO_FEW: "; of so few samples a class, the interval is rough.",
    Outcome.GAIN: ": a gain that is more than chance.",
    Outcome.LOSS: ": a loss that is more than chance.",
    Outcome.CHANCE: ": it may be chance.",
}
_CHECK = (
    "Check that the columns are in the order of the classes and of the counts, that every column "
    "is a class, and that the labels are those of these rows."
)
# What helps where a fix does harm, unless something else is the likely reason.
REMEDY = (
    "What was fitted does not suit these scores; try longtail fix --calibrate none, or --tau 1."
)


def first_table(judgement: Judgement) -> Table:
    """The table of the first screen, with 95 % intervals; one column where nothing was done."""
    if judgement.samples.is_changed:
        columns = [Column(name) for name in ("metric", *judgement.samples.names, "change")]
        return Table(columns, metric_rows(judgement), _caption(judgement))
    rows = [[METRICS[key], with_interval(judgement.before[key], key)] for key in judgement.metrics]
    return Table([Column("metric"), Column("value")], rows, _caption(judgement))


def metric_rows(judgement: Judgement) -> list[tuple[str, str, str, str]]:
    """Name, before, after and change of each metric that there is."""
    return [
        (
            METRICS[key],
            with_interval(change.before, key),
            with_interval(change.after, key),
            _change(change, key),
        )
        for key, change in judgement.changes.items()
    ]


def _caption(judgement: Judgement) -> str:
    sentences = ["In %, but for the log-loss; in brackets 95 % intervals."]
    if judgement.samples.shot_groups:
        sentences.append(groups_in_words(judgement.samples.edges))
    if few := judgement.few_classes:
        sentences.append(
            f"Classes with fewer than 5 samples here: {few:,} of {judgement.samples.num_classes:,};"
            " their share of the intervals is borrowed from the other classes."
        )
    return " ".join(sentences)


def _change(change: Change, key: str) -> str:
    """The difference with its paired interval where there is one, and what it means."""
    difference = change.difference
    if difference is None or difference.value is None or change.direction is Direction.NONE:
        return "none"
    text = number(difference.value, key, "+")
    if difference.low is not None and difference.high is not None:
        ends = (number(end, key, "+") for end in (difference.low, difference.high))
        text += f" [{', '.join(ends)}]"  # it may break on a phone
    return f"{text} {_WORDS[change.direction]}"


def gain_in_words(judgement: Judgement) -> str:
    """What was gained, in one sentence."""
    name, gain = HEADLINES[judgement.main_metric], judgement.gain
    before, after = (
        side[judgement.main_metric].value for side in (judgement.before, judgement.after)
    )
    ends = f"{points(gain.low)} to {points(gain.high)}"
    if judgement.outcome not in _ENDS:
        sides = judgement.before, judgement.after
        losses = " to ".join(number(side["nll"].value, "nll") for side in sides)
        # Others of these samples' kind might change, unless none can.
        is_open = gain.low is not None and gain.high is not None and gain.low < gain.high
        between = f" (95 % interval of the change {ends})" if is_open else ""
        return (
            f"No sample turned right or wrong: {name.lower()} stays at {percent(before)} %"
            f"{between}, and the log-loss went from {losses}."
        )
    return (
        f"{name} went from {percent(before)} to {percent(after)} %, by {points(gain.value)} points "
        f"(95 % interval {ends}){_ENDS[judgement.outcome]}"
    )


def alone_in_words(judgement: Judgement) -> str:
    """How good scores are that nothing was done to."""
    values = {key: judgement.before[key].value for key in judgement.metrics}
    groups = [
        f"{name} {percent(values[name])}"
        for name in judgement.samples.shot_groups
        if name in values
    ]
    text = f"{HEADLINES[judgement.main_metric]} is {percent(values[judgement.main_metric])} %"
    return f"{text} ({', '.join(groups)})." if groups else f"{text}."


def next_step(judgement: Judgement, written: bool = True, remedy: str = REMEDY) -> str:
    """What the reader should do now; `written` says whether a file holds the scores after.

    `remedy` is what helps where the result is worse.
    """
    if not judgement.samples.is_changed:
        return _next_step_alone(judgement)
    before, after = judgement.samples.names
    unwritten = "" if written else " No file holds them yet: longtail fix writes such scores."
    steps = {
        Outcome.SAME_AND_SURER: f"Use the scores {after}: right on the same samples, with a lower "
        f"log-loss.{unwritten}",
        Outcome.SAME: f"Keep the scores {before}: the others are right on the same samples, and no "
        "better.",
        Outcome.TOO_FEW: "Do not decide yet: label more validation samples, at least a few of "
        "every class.",
        Outcome.CHANCE: "Do not decide yet: label more validation samples, of the rare classes "
        "above all, until the interval of the change leaves zero.",
        Outcome.GAIN: f"Use the scores {after}: the gain is real on these samples.{unwritten}",
        Outcome.LOSS: f"Keep the scores {before}; try another criterion, calibration or target."
        if remedy == REMEDY
        else f"Keep the scores {before}. {remedy}",
    }
    return f"{steps[judgement.outcome]}{_calibration_step(judgement)}"


def _next_step_alone(judgement: Judgement) -> str:
    if judgement.standing is Standing.UNDECLARED:
        step = (
            "Say what prior these logits carry, or measure it (longtail fix --carried measure): "
            "then they can be moved to the prior of where they are used."
        )
    elif judgement.carried_check.agreement is Agreement.DISAGREE:
        return (
            "These logits do not behave as if they carried what is declared, see What the logits "
            "carry: calibrate them, or measure what they carry, on validation scores (longtail fix "
            "--calibrate bias, or --carried measure)."
        )
    elif judgement.standing is Standing.ELSEWHERE:
        step = (
            "These logits carry another prior than the target: move them with longtail fix, on "
            "validation scores, and look at this page again."
        )
    else:
        step = "These logits carry the target already: there is no prior left to take out."
    return f"{step}{_calibration_step(judgement)}"


def _calibration_step(judgement: Judgement) -> str:
    if judgement.miscalibration is None:
        return ""
    return (
        f" Confidence is off by {percent(judgement.miscalibration)} points on average: before "
        "anyone relies on the probabilities, calibrate (longtail fix --calibrate bias); if that "
        "was done, more validation samples are needed."
    )


def warning(sanity: Sanity, remedy: str = REMEDY) -> str:
    """Why not to trust the scores, before all else; nothing where nothing is wrong."""
    wrong = []
    if sanity.near_chance:
        wrong.append(
            f"the result is near chance (balanced accuracy {percent(sanity.balanced_accuracy)} %, "
            f"one answer for all gives {percent(sanity.chance)} %)"
        )
    if sanity.below_largest_class:
        wrong.append(
            f"the model is right on {percent(sanity.accuracy)} % of the samples, always answering "
            f"the largest class would be on {percent(sanity.largest_class)} %"
        )
    if sanity.has_lost:
        return (
            "Do not use this result: it is right on "
            f"{percent(sanity.result_accuracy)} % of the samples, where the scores before were on "
            f"{percent(sanity.accuracy)} %, and nothing was gained for it. {remedy}"
        )
    if not wrong:
        return ""
    text = "; ".join(wrong)
    if sanity.near_chance:
        return f"Do not trust these numbers: {text}. {_CHECK}"
    return (
        f"Look twice before you trust these numbers: {text}. A model that was trained to treat "
        f"classes alike may be. {_CHECK}"
    )


def tau_in_words(choice: TauChoice | None) -> str:
    """Why τ is near 1 and not where the validation samples have it; nothing if it is there."""
    if choice is None or choice.is_determined:
        return ""
    if choice.trust == 0:  # no move, or a criterion that no longer changes with τ
        return " The validation samples do not determine τ, so it is 1, where the move is exact."
    between = ""
    if choice.low is not None and choice.high is not None:
        between = f" (95 % interval {choice.low:.3g} to {choice.high:.3g})"
    if choice.optimum == 1:
        return (
            " The validation samples do not determine τ, so it is 1, where the move is exact: "
            f"none does better on them{between}."
        )
    return (
        " The validation samples do not determine τ, so it was held near 1, where the move is "
        f"exact: they alone would have it at {choice.optimum:.3g}{between}."
    )
