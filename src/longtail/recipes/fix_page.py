"""The report of `longtail fix`: before and after, what was done, and the figures behind it."""

import numpy as np

from longtail.core import Prior
from longtail.recipes.fix_run import FixResult
from longtail.recipes.fix_words import described, headline, metric_rows
from longtail.report import Column, Figure, Footer, Line, Page, Section, Table, line_chart


def fix_page(result: FixResult, footer: Footer) -> Page:
    """The page of `longtail fix`."""
    return Page(
        title="longtail fix",
        summary=headline(result),
        sections=[_comparison(result), _steps(result)],
        footer=footer,
    )


def _comparison(result: FixResult) -> Section:
    columns = [Column("metric"), Column("before"), Column("after"), Column("")]
    table = Table(
        columns,
        metric_rows(result),
        caption=f"In %, but for log-loss and Brier score, with 95 % intervals. "
        f"Measured on {result.measured_on}.",
    )
    return Section(
        heading="Before and after",
        table=table if result.comparison is not None else None,
        figures=[_by_class(result)] if result.comparison is not None else [],
        notes=[
            "Every sample counts as much as its class does under the target, so a long-tailed set "
            "can speak about another one. Intervals draw samples anew within each class.",
        ],
    )


def _steps(result: FixResult) -> Section:
    said = [described(step) for step in result.steps]
    estimate = result.fix.estimate if result.fix else None
    if estimate is not None:
        said.append("The target was estimated from the scores themselves, without labels.")
    return Section(
        heading="What was done",
        paragraphs=said,
        figures=[_priors(result)] if result.carried is not None else [],
        notes=["The same again, on other scores of this model: longtail fix SCORES --with FILE."],
    )


def _by_class(result: FixResult) -> Figure:
    assert result.comparison is not None
    before, after = result.comparison.before, result.comparison.after
    order, axis = _order(result)
    names = _names(result, order)
    lines = [
        Line(
            name,
            range(1, len(order) + 1),
            (100 * tally.hits / tally.counts).numpy()[order].tolist(),
            labels=names,
            mark="dots",
            style=style,
        )
        for style, (name, tally) in enumerate((("before", before), ("after", after)))
    ]
    chart = line_chart(
        lines, title="Accuracy by class", x_title=axis, y_title="accuracy (%)", width=960
    )
    return Figure(chart, "Each dot is a class.", wide=True)


def _priors(result: FixResult) -> Figure:
    order, axis = _order(result)
    places, names = range(1, len(order) + 1), _names(result, order)
    lines = []
    if result.carried is not None:
        lines.append(_prior_line("carried before", result.carried, order, names, style=0))
    estimate = result.fix.estimate if result.fix else None
    if result.target is not None and estimate is None:
        lines.append(_prior_line("target", result.target, order, names, style=1))
    if estimate is not None:
        probs, low, high = (
            100 * np.asarray(part)[order] for part in (estimate.prior, estimate.low, estimate.high)
        )
        lines.append(
            Line(
                "target, estimated with its interval",
                places,
                probs.tolist(),
                low.tolist(),
                high.tolist(),
                labels=names,
                style=1,
            )
        )
    chart = line_chart(
        lines, title="Label priors", x_title=axis, y_title="share of the samples (%)", width=960
    )
    return Figure(chart, "What the logits carried before, and what they carry now.", wide=True)


def _prior_line(name: str, prior: Prior, order: np.ndarray, names: list[str], style: int) -> Line:
    shares = 100 * np.asarray(prior)[order]
    return Line(name, range(1, len(order) + 1), shares.tolist(), labels=names, style=style)


def _order(result: FixResult) -> tuple[np.ndarray, str]:
    """The classes from frequent to rare, and what the axis says."""
    if result.counts is not None:
        return np.argsort(-result.counts, kind="stable"), "class, from most to fewest samples"
    assert result.carried is not None or result.comparison is not None
    weights = (
        np.asarray(result.carried)
        if result.carried is not None
        else result.comparison.before.counts.numpy()  # type: ignore[union-attr]
    )
    return np.argsort(-weights, kind="stable"), "class, from most to least likely before"


def _names(result: FixResult, order: np.ndarray) -> list[str]:
    return [result.classes[k] if result.classes else f"class {k}" for k in order]
