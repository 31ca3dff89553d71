"""The report of `longtail fit`: all methods, the best one by class, what was chosen."""

import numpy as np
import torch

from longtail.metrics import recalls
from longtail.recipes.fit_methods import METHODS
from longtail.recipes.fit_result import FitResult
from longtail.recipes.fit_words import (
    HEADINGS,
    accuracy_name,
    caution,
    decision,
    headline,
    method_rows,
)
from longtail.report import Column, Figure, Footer, Line, Page, Section, Table, line_chart


def fit_page(result: FitResult, footer: Footer) -> Page:
    """The page of `longtail fit`."""
    return Page(
        title="longtail fit",
        summary=headline(result),
        sections=[_methods(result), _best(result), _choices(result)],
        footer=footer,
    )


def _methods(result: FitResult) -> Section:
    table = Table(
        [Column(name) for name in HEADINGS],
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


def _best(result: FitResult) -> Section:
    scores = result.validation if result.test is None else result.test
    where = "held-out samples" if result.test is None else "the test part"
    labels = torch.as_tensor(scores.labels)
    shares = np.asarray(recalls(scores.predict(), labels, scores.num_classes))
    order = np.argsort(-result.counts, kind="stable")
    names = [result.classes[k] if result.classes else f"class {k}" for k in order]
    line = Line(
        METHODS[result.best].title,
        range(1, len(order) + 1),
        (100 * shares[order]).tolist(),
        labels=[
            f"{name}, {result.counts[k]} samples" for name, k in zip(names, order, strict=True)
        ],
        mark="dots",
    )
    chart = line_chart(
        [line],
        title="Accuracy by class",
        x_title="class, from most to fewest samples",
        y_title="accuracy (%)",
        width=960,
    )
    return Section(
        heading="The best method by class",
        figures=[Figure(chart, f"Each dot is a class, on {where}.", wide=True)],
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
