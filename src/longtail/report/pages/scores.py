"""The page on scores: the first screen, then one section after the other."""

from collections.abc import Callable, Sequence

from longtail.flows.judge import Judgement
from longtail.flows.samples import BeforeAfter
from longtail.report.charts.scale import readable
from longtail.report.page import Footer, Page, Section
from longtail.report.sections.by_class import (
    by_class_section,
    calibration_section,
    margins_section,
    mistakes_section,
)
from longtail.report.sections.first_screen import (
    alone_in_words,
    first_table,
    gain_in_words,
    next_step,
    warning,
)
from longtail.report.sections.priors import carried_section, target_section, tau_section

# In the order in which they answer questions.
_SECTIONS: tuple[Callable[[Judgement], Section | None], ...] = (
    by_class_section,
    tau_section,
    target_section,
    calibration_section,
    carried_section,
    margins_section,
    mistakes_section,
)


def scores_page(
    judgement: Judgement,
    footer: Footer,
    *,
    title: str = "longtail report",
    done: str | None = None,
    sections: Sequence[Section] = (),
    written: bool | None = None,
) -> Page:
    """A page about scores, before and after something was done to them.

    Args:
        judgement: What is to be said of them.
        footer: Where the page comes from.
        title: What it is called.
        done: What was done, in one sentence; by default where the scores are from.
        sections: What only this report has; they stand last.
        written: Whether a file holds the scores after; by default those that are no mere move.
    """
    done = _source(judgement) if done is None else done
    written = judgement.samples.tau is None if written is None else written
    is_changed = judgement.samples.is_changed
    outcome = gain_in_words(judgement) if is_changed else alone_in_words(judgement)
    made = (make(judgement) for make in _SECTIONS)
    return Page(
        title=title,
        summary=" ".join(filter(None, (done, samples_in_words(judgement), outcome))),
        sections=[*(section for section in made if section is not None), *sections],
        footer=footer,
        lead=first_table(judgement),
        next_step=next_step(judgement, written),
        warning=warning(judgement.sanity),
    )


def _source(judgement: Judgement) -> str:
    samples, done = judgement.samples, f"Scores of {judgement.source}"
    if samples.is_changed and samples.tau is None:
        return f"{done}, before and after."
    moved = ", as they are and moved from the prior they carry to the target"
    return f"{done}{moved if samples.is_changed else ''}."


def samples_in_words(judgement: Judgement) -> str:
    """What the report is on, and what of it counts for nothing."""
    samples, counts = judgement.samples, judgement.label_counts
    split = f"{samples.before.split} " if samples.before.split else ""
    total = int(counts.sum())
    sentences = [f"On {total:,} {split}samples of {samples.num_classes:,} classes{_tail(samples)}."]
    if absent := int((counts == 0).sum()):
        sentences.append(f"Classes without a sample here ({absent:,}) count for nothing.")
    if total > len(samples.labels):
        sentences.append(f"Below the table, {len(samples.labels):,} of the samples are looked at.")
    return " ".join(sentences)


def _tail(samples: BeforeAfter) -> str:
    """How uneven the training counts were, where they are known."""
    if samples.counts is None or not (samples.counts > 0).any():
        return ""
    seen = samples.counts[samples.counts > 0]
    ratio, unseen = float(seen.max() / seen.min()), samples.num_classes - len(seen)
    none = f"; {unseen:,} had none" if unseen else ""
    if ratio == 1:
        those = "those that had any" if unseen else "all"
        return f"; in training {those} had equally many samples{none}"
    times = readable(ratio, 3)
    return f"; in training the largest had {times} times the samples of the smallest{none}"
