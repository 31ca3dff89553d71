"""The result of a fit in words, tables and a page."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from longtail.report.charts.lines import Line, line_chart
from longtail.report.names import (
    groups_in_words,
    percent,
    points_with_interval,
    with_interval,
)
from longtail.report.page import Column, Figure, Footer, Page, Section, Table
from longtail.report.pages.priors import shifted_sections
from longtail.report.pages.scores import samples_in_words, scores_page

if TYPE_CHECKING:
    from longtail.flows.fit_result import FitResult

_USE = {
    "carries_target": "Its logits carry the target.",
    "as_is": "Its logits do not carry the target; it predicts by them as they are.",
    "retarget": "Move its logits to the target: longtail.retarget(logits, head.carried, ...).",
}


def fit_page(result: FitResult, footer: Footer) -> Page:
    """The page of `longtail fit`."""
    judgement = result.judgement
    own = [*shifted_sections(result.shifted_sets), _choices(result)]
    page = scores_page(judgement, footer, title="longtail fit", sections=own)
    return replace(
        page,
        summary=f"{headline(result)} {samples_in_words(judgement)}",
        next_step=_next_step(result, page.next_step),
        sections=[_methods(result), *page.sections],
    )


def accuracy_name(result: FitResult) -> str:
    """What accuracy is meant."""
    return "balanced accuracy" if result.is_uniform else "accuracy under the target"


def method_columns(result: FitResult, brief: bool = False) -> dict[str, list[str]]:
    """A column a measure, a row a method that was fitted; in % but for the log-loss.

    A brief one has what a terminal has room for: the interval that decides, and no empty column.
    """
    fitted = [each for each in result.table if not each.error]
    text = (lambda measured: percent(measured.value)) if brief else with_interval
    first = "accuracy_under_target"

    def column(key: str) -> list[str]:
        return [percent(each.validation[key].value) for each in fitted if key in each.validation]

    columns = {
        "method": [each.title for each in fitted],
        "validation": [text(each.validation[first]) for each in fitted],
        "over linear": [
            "" if each.name == "linear" else points_with_interval(each.gain) for each in fitted
        ],
        "balanced": [] if result.is_uniform else column("balanced_accuracy"),
        "log-loss": []
        if brief and result.criterion != "nll"
        else [f"{each.validation['nll'].value:.3f}" for each in fitted],
        **{name: column(name) for name in ("many", "medium", "few")},
        "test": [text(each.test[first]) for each in fitted if each.test is not None],
        "τ": ["" if each.tau is None else f"{each.tau:.2f}" for each in fitted],
        "s": [] if brief else [f"{each.seconds:.1f}" for each in fitted],
    }
    return {name: cells for name, cells in columns.items() if any(cells)}


def sentences(result: FitResult) -> list[str]:
    """What a terminal says under the table: failures, the outcome, what was chosen, a caution."""
    failures = [f"{each.title} failed: {each.error}" for each in result.table if each.error]
    texts = [*failures, headline(result), decision(result), learned(result), caution(result)]
    return [sentence for sentence in texts if sentence]


def headline(result: FitResult) -> str:
    """Which method is best, and how sure that is, in a few sentences."""
    best = result.best
    by = " by log-loss" if result.criterion == "nll" else ""
    text = (
        f"Best on validation samples{by}: {best.title}, {accuracy_name(result)} "
        f"{with_interval(best.validation['accuracy_under_target'])} %"
    )
    if best.test is not None:
        text += f"; on the test part {with_interval(best.test['accuracy_under_target'])} %"
    if best.name != "linear":
        text += (
            f". That is {points_with_interval(best.gain)} points over the linear layer as it is, "
            f"{'more than chance' if result.is_gain_certain else 'which may be chance'}"
        )
    if result.ties:
        shown = "; ".join(each.title for each in result.ties[:5])
        others = "; and others" if len(result.ties) > 5 else ""
        text += f". Validation samples cannot tell it from: {shown}{others}"
    elif not result.few:
        text += ". All others are behind it by more than chance"
    return f"{text}."


def decision(result: FitResult) -> str:
    """What was chosen, and on what."""
    end = " (the last to be tried: a larger or smaller one may be better)"
    criterion = {"accuracy_under_target": accuracy_name(result), "nll": "log-loss"}
    tuned = any(each.tau is not None for each in result.table)
    tau = " τ is held near 1 as far as these samples do not determine it." if tuned else ""
    return (
        f"Chosen on {_judged_on(result)}: weight decay {result.weight_decay:.2g}, of "
        f"{len(result.decays)} tried, by log-loss{end if result.is_decay_at_end else ''}; the "
        f"method by {criterion.get(result.criterion, 'balanced accuracy')}. "
        f"Fitted again on all of the train part.{tau}"
    )


def learned(result: FitResult) -> str:
    """What unlabelled samples were good for, or nothing without them."""
    plain = result.best_without_unlabelled
    if not result.unlabelled or plain is None:
        return ""
    outcome = (
        "no method that learns from them is better on validation samples than the best without, by "
        "more than a standard error"
    )
    if plain is not result.best:
        outcome = (
            f"with them the best gains {points_with_interval(plain.behind)} points over the best "
            f"without, {plain.title}"
        )
    return (
        f"{result.unlabelled:,} unlabelled samples were taken to follow the target: {outcome}. "
        "If they follow another prior, leave them out."
    )


def caution(result: FitResult) -> str:
    """What the intervals do not know, or nothing."""
    if not result.few:
        return ""
    none = f", {result.unjudged} of them none, which count for nothing" if result.unjudged else ""
    instead = "" if result.folds is None else ", or a validation part,"
    return (
        f"{result.few} of {len(result.counts)} classes have fewer than five validation "
        f"samples{none}: their share of the intervals is borrowed from the other classes. More "
        f"samples of the rare classes{instead} would tell."
    )


def _judged_on(result: FitResult) -> str:
    if result.folds is None:
        return "the validation part"
    return f"{result.folds} folds of the train part, each by what was fitted on the others"


def _next_step(result: FitResult, otherwise: str) -> str:
    """Use the best; or what the report on scores says, where the linear layer is the best."""
    title = result.best.title
    if result.best.name == "linear":
        return f"Use the linear layer as it is, in model.safetensors. {otherwise}"
    if result.judgement.gain.is_above_zero:
        step = f"Use model.safetensors: {title}."
    else:
        step = (
            f"model.safetensors holds the best on validation samples, {title}; what it gains over "
            "the linear layer here may be chance, so that may do as well."
        )
    return " ".join(filter(None, [step, caution(result)]))


def _methods(result: FitResult) -> Section:
    columns = method_columns(result)
    failed = [
        (each.title, f"failed: {each.error}", *[""] * (len(columns) - 2))
        for each in result.table
        if each.error
    ]
    caption = (
        f"{accuracy_name(result).capitalize()} in %, with 95 % intervals; "
        "the best by validation samples first."
    )
    rows = [*zip(*columns.values(), strict=True), *failed]
    return Section(
        heading="Methods",
        table=Table([Column(name) for name in columns], rows, caption),
        notes=[
            *filter(None, [caution(result)]),
            f"Validation: {_judged_on(result)}. The test part decided nothing.",
            "Over linear: paired, on the same samples, so narrower than two intervals suggest. "
            f"{groups_in_words(result.edges)} Here they are of the validation samples.",
        ],
    )


def _choices(result: FitResult) -> Section:
    decays = sorted(result.decays.items())
    line = Line(
        "log-loss on validation samples",
        [decay for decay, _ in decays],
        [loss for _, loss in decays],
        labels=[f"weight decay {decay:.2g}" for decay, _ in decays],
    )
    title, x_title = "Choice of the weight decay", "weight decay, by its logarithm"
    chart = line_chart([line], title=title, x_title=x_title, y_title="log-loss", log_x=True)
    caption = f"The linear layer, moved to the target; {result.weight_decay:.2g} was chosen."
    return Section(
        heading="What was chosen",
        paragraphs=[*filter(None, [decision(result), learned(result)])],
        figures=[Figure(chart, caption)],
        notes=[
            "model.safetensors holds the best head: longtail.engine.load_head reads it, and "
            f"head.to_linear() makes a plain layer where there is one. {_USE[result.use]}"
        ],
    )
