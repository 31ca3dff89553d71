"""The report of `longtail fix`: the report on scores before and after, and what was done."""

import numpy as np

from longtail.core import Prior
from longtail.recipes.fix_run import FixResult
from longtail.recipes.fix_words import described, headline
from longtail.report import Figure, Footer, Line, Page, Section, line_chart, scores_page

_AGAIN = (
    "The same again, on other scores of this model: longtail fix SCORES --kind logits --with "
    "adjuster.json -o OUT (--kind probs if they are probabilities)."
)


def fix_page(result: FixResult, footer: Footer) -> Page:
    """The page of `longtail fix`."""
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
        f"Measured on {result.measured_on}.",
        sections=[_steps(result)],
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
        notes=[_AGAIN],
    )


def _priors(result: FixResult) -> Figure:
    assert result.carried is not None
    shares = np.asarray(result.carried if result.counts is None else result.counts)
    order = np.argsort(-shares, kind="stable")
    names = [result.classes[k] if result.classes else f"class {k}" for k in order]
    lines = [_prior_line("carried before", result.carried, order, names, style=0)]
    estimate = result.fix.estimate if result.fix else None
    if estimate is None and result.target is not None:
        lines.append(_prior_line("carried now", result.target, order, names, style=1))
    if estimate is not None:
        probs, low, high = (
            100 * np.asarray(part)[order] for part in (estimate.prior, estimate.low, estimate.high)
        )
        lines.append(
            Line(
                "carried now, estimated with its interval",
                range(1, len(order) + 1),
                probs.tolist(),
                low.tolist(),
                high.tolist(),
                labels=names,
                style=1,
            )
        )
    chart = line_chart(
        lines,
        title="Label priors",
        x_title="class, from most to fewest training samples"
        if result.counts is not None
        else "class, from most to least likely before",
        y_title="share of the samples (%)",
        width=960,
    )
    return Figure(chart, "What the logits carried before, and what they carry now.", wide=True)


def _prior_line(name: str, prior: Prior, order: np.ndarray, names: list[str], style: int) -> Line:
    shares = 100 * np.asarray(prior)[order]
    return Line(name, range(1, len(order) + 1), shares.tolist(), labels=names, style=style)
