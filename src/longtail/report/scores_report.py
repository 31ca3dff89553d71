"""The whole report on scores: the first screen, then one section after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from longtail.metrics import Comparison
from longtail.report.judged import Judged
from longtail.report.page import Footer, Page, Section
from longtail.report.sections.before_after import (
    alone,
    before_after,
    gain_in_words,
    next_step,
    next_step_alone,
    percent,
)
from longtail.report.sections.by_class import (
    by_class_section,
    calibration_section,
    margins_section,
)
from longtail.report.sections.carried import carried_section
from longtail.report.sections.explorers import target_section, tau_section
from longtail.report.sections.mistakes import mistakes_section

_SECTIONS: tuple[Callable[[Judged], Section | None], ...] = (
    by_class_section,
    tau_section,
    target_section,
    calibration_section,
    carried_section,
    margins_section,
    mistakes_section,
)
STEPS = 1 + len(_SECTIONS)  # that `scores_page` tells about


def scores_page(
    judged: Judged,
    footer: Footer,
    *,
    title: str,
    done: str = "",
    sections: Sequence[Section] = (),
    comparison: Comparison | None = None,
    advance: Callable[[], None] = lambda: None,
) -> Page:
    """A page about scores, before and after something was done to them.

    Args:
        judged: The samples.
        footer: Where the page comes from.
        title: What it is called.
        done: What was done, in one sentence.
        sections: What only this report has; they stand last.
        comparison: Of all samples, where the judged ones are only some of them.
        advance: Called STEPS times.
    """
    comparison = judged.comparison if comparison is None else comparison
    if judged.is_changed:
        lead, outcome = before_after(comparison, judged.names), gain_in_words(comparison)
        step = next_step(comparison)
    else:
        lead, outcome = alone(comparison.before), alone_in_words(judged)
        step = next_step_alone(comparison.before, judged.before.carried, judged.target)
    advance()
    return Page(
        title=title,
        summary=" ".join(part for part in (done, samples_in_words(judged), outcome) if part),
        sections=[*scores_sections(judged, advance), *sections],
        footer=footer,
        lead=lead,
        next_step=step,
    )


def scores_sections(judged: Judged, advance: Callable[[], None] = lambda: None) -> list[Section]:
    """Everything below the first screen, in the order in which it answers questions."""
    made: list[Section] = []
    for make in _SECTIONS:
        section = make(judged)
        made += [] if section is None else [section]
        advance()
    return made


def samples_in_words(judged: Judged) -> str:
    """What the report is on."""
    split = f"{judged.before.split} " if judged.before.split else ""
    said = f"On {len(judged.labels):,} {split}samples of {judged.num_classes:,} classes"
    counts = judged.counts
    if counts is None or not (counts > 0).any():
        return f"{said}."
    seen = counts[counts > 0].double()
    ratio = float(seen.max() / seen.min())
    return f"{said}; in training the largest had {ratio:,.4g} times the samples of the smallest."


def alone_in_words(judged: Judged) -> str:
    """How good scores are that nothing was done to."""
    found = judged.comparison.before.metrics()
    groups = ", ".join(
        f"{name} {percent(found[name].value)}"
        for name in judged.groups
        if found[name].value is not None
    )
    return f"Balanced accuracy is {percent(found['balanced_accuracy'].value)} %" + (
        f" ({groups})." if groups else "."
    )
