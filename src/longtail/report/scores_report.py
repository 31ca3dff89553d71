"""The whole report on scores: the first screen, then one section after the other."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from longtail.metrics import Difference
from longtail.report.accuracies import HEADLINES, headline_key
from longtail.report.charts.scale import readable
from longtail.report.judged import Judged
from longtail.report.page import Footer, Page, Section
from longtail.report.sections.before_after import alone, before_after
from longtail.report.sections.by_class import (
    by_class_section,
    calibration_section,
    margins_section,
)
from longtail.report.sections.carried import carried_section, disagrees
from longtail.report.sections.explorers import target_section, tau_section
from longtail.report.sections.mistakes import mistakes_section
from longtail.report.sections.sanity import sanity_in_words
from longtail.report.sections.verdict import gain_in_words, next_step, next_step_alone, percent

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
    comparison: Difference | None = None,
    advance: Callable[[], None] = lambda: None,
    written: bool = True,
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
        written: Whether a file holds the scores after.
    """
    comparison = judged.comparison if comparison is None else comparison
    if judged.is_changed:
        lead, outcome = before_after(comparison, judged.names), gain_in_words(comparison)
        step = next_step(comparison, judged.names, written)
    else:
        lead, outcome = alone(comparison.before), alone_in_words(judged)
        carried = judged.before.carried
        step = next_step_alone(comparison.before, carried, judged.target, disagrees(judged))
    advance()
    return Page(
        title=title,
        summary=" ".join(filter(None, (done, samples_in_words(judged, comparison), outcome))),
        sections=[*scores_sections(judged, advance), *sections],
        footer=footer,
        lead=lead,
        next_step=step,
        warning=sanity_in_words(comparison.sanity),
    )


def scores_sections(judged: Judged, advance: Callable[[], None] = lambda: None) -> list[Section]:
    """Everything below the first screen, in the order in which it answers questions."""
    made: list[Section] = []
    for make in _SECTIONS:
        section = make(judged)
        made += [] if section is None else [section]
        advance()
    return made


def samples_in_words(judged: Judged, comparison: Difference | None = None) -> str:
    """What the report is on, and what of it counts for nothing."""
    counts = judged.label_counts if comparison is None else comparison.before.samples
    split = f"{judged.before.split} " if judged.before.split else ""
    said = [
        f"On {int(counts.sum()):,} {split}samples of {judged.num_classes:,} classes"
        f"{_tail_in_words(judged)}."
    ]
    if absent := int((counts == 0).sum()):
        said.append(f"Classes without a sample here ({absent:,}) count for nothing.")
    if int(counts.sum()) > len(judged.labels):
        said.append(f"Below the table, {len(judged.labels):,} of the samples are looked at.")
    return " ".join(said)


def _tail_in_words(judged: Judged) -> str:
    """How uneven the training counts were, where they are known."""
    if judged.counts is None or not (judged.counts > 0).any():
        return ""
    seen = judged.counts[judged.counts > 0]
    ratio, unseen = float(seen.max() / seen.min()), judged.num_classes - len(seen)
    none = f"; {unseen:,} had none" if unseen else ""
    if ratio == 1:
        those = "those that had any" if unseen else "all"
        return f"; in training {those} had equally many samples{none}"
    times = readable(ratio, 3)
    return f"; in training the largest had {times} times the samples of the smallest{none}"


def alone_in_words(judged: Judged) -> str:
    """How good scores are that nothing was done to."""
    tally = judged.comparison.before
    found, key = tally.metrics(), headline_key(tally.target)
    groups = ", ".join(
        f"{name} {percent(found[name].value)}"
        for name in judged.groups
        if found[name].value is not None
    )
    return f"{HEADLINES[key]} is {percent(found[key].value)} %" + (
        f" ({groups})." if groups else "."
    )
