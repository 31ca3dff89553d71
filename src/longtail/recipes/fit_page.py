"""The report of `longtail fit`: all methods, the best one by class, what was chosen."""

from dataclasses import replace

import numpy as np

from longtail.flows.judge import Judgement, judge
from longtail.recipes.fit_methods import METHODS
from longtail.recipes.fit_result import FitResult
from longtail.recipes.fit_words import (
    accuracy_name,
    caution,
    decision,
    headings,
    headline,
    method_rows,
)
from longtail.report import (
    Column,
    Figure,
    Footer,
    Line,
    Page,
    Section,
    Table,
    line_chart,
    scores_page,
)
from longtail.report.pages.scores import samples_in_words


def fit_page(result: FitResult, footer: Footer) -> Page:
    """The page of `longtail fit`."""
    best = result.validation if result.test is None else result.test
    title = METHODS[result.best].title
    judgement = judge(
        result.linear,
        result.linear if result.best == "linear" else best,
        result.target,
        names=("linear layer", title),
    )
    page = scores_page(judgement, footer, title="longtail fit", sections=[_choices(result)])
    return replace(
        page,
        summary=f"{headline(result)} {samples_in_words(judgement)}",
        next_step=_next_step(result, judgement, page.next_step),
        sections=[_methods(result), *page.sections],
    )


def _next_step(result: FitResult, judgement: Judgement, otherwise: str) -> str:
    """Use the best; or what the report on scores says, where the linear layer is the best."""
    title = METHODS[result.best].title
    if result.best == "linear":
        return f"Use the linear layer as it is, in model.safetensors. {otherwise}"
    if judgement.gain.is_above_zero:
        step = f"Use model.safetensors: {title}."
    else:
        step = (
            f"model.safetensors holds the best on held-out samples, {title}; what it gains over "
            "the linear layer here may be chance, so that may do as well."
        )
    return " ".join(filter(None, [step, caution(result)]))


def _methods(result: FitResult) -> Section:
    table = Table(
        [Column(name) for name in headings(result)],
        method_rows(result),
        caption=f"{accuracy_name(result).capitalize()} in %, with 95 % intervals; "
        "the best by held-out samples first.",
    )
    return Section(
        heading="Methods",
        table=table,
        notes=[
            *filter(None, [caution(result)]),
            f"Held out: {result.judged_on}. The test part decided nothing.",
            "Over linear: paired, on the same samples, so narrower than two intervals suggest. "
            "Many, medium and few are classes of more than 100, 20 to 100 and fewer than 20 "
            "training samples, on the held-out samples.",
        ],
    )


def _choices(result: FitResult) -> Section:
    decays = sorted(result.decays.items())
    chart = line_chart(
        [
            Line(
                "log-loss on held-out samples",
                [float(np.log10(decay)) for decay, _ in decays],
                [loss for _, loss in decays],
                labels=[f"weight decay {decay:.2g}" for decay, _ in decays],
            )
        ],
        title="Choice of the weight decay",
        x_title="log₁₀ of the weight decay",
        y_title="log-loss",
    )
    caption = f"The linear layer, moved to the target; {result.weight_decay:.2g} was chosen."
    return Section(
        heading="What was chosen",
        paragraphs=[decision(result)],
        figures=[Figure(chart, caption)],
        notes=[
            "model.safetensors holds the best head: longtail.engine.load_head reads it, and "
            "head.to_linear() makes a plain layer where there is one. "
            + (
                "Its logits carry the target."
                if result.head.carried == result.target
                else "Its logits do not carry the target; it predicts by them as they are."
                if METHODS[result.best].is_as_is(result.target) or result.head.carried is None
                else "Move its logits to the target: longtail.retarget(logits, head.carried, ...)."
            ),
        ],
    )
