"""The ledger as a text: docs/ledger.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from longtail.core.files import written_whole
from longtail.flows.reproduce.ledger import TITLE
from longtail.report.pages.reproduce import (
    CHOSEN_ON_TEST,
    claim_in_words,
    digits_of,
    interval,
    is_correlation,
    measure_of,
    number_in_words,
    printed,
    source_in_words,
    why,
)

if TYPE_CHECKING:
    from longtail.flows.reproduce.experiment import Experiment
    from longtail.flows.reproduce.ledger import Entry, Ledger
    from longtail.flows.reproduce.verdicts import Evidence

# The numbers of a claim's rows, then what it is judged by: a gain, a difference or a correlation.
_HEADS = ("item", "claim", "paper", "ours", "judged by, 95 %", "over", "ours is of", "verdict")


def write_ledger(ledger: Ledger, file: Path) -> None:
    """Write the text, or leave what is there."""
    with written_whole(file) as part:
        part.write_text(ledger_text(ledger), encoding="utf-8", newline="\n")


def ledger_text(ledger: Ledger) -> str:
    """The whole file."""
    return "\n".join(_lines(ledger)) + "\n"


def in_words(ledger: Ledger) -> str:
    """How many claims hold, how many do not, and how many are open."""
    holds, fails, open_ones, rest = ledger.verdicts.values()
    return (
        f"{len(ledger.entries)} claims: {holds} hold, {fails} do not, of {open_ones} one cannot "
        f"tell, and {rest} are not judged."
    )


def _lines(ledger: Ledger) -> Iterator[str]:
    yield TITLE
    yield (
        "What the papers claim and what came of it here. Made by `longtail reproduce --ledger "
        f"{ledger.source}`\nfrom what is kept of finished runs; a test makes it again. "
        "[Reproducing](reproducing.md) says what each verdict\nmeans.\n"
    )
    yield (
        "A verdict is on what the column *ours is of* names, which often stands in for larger data "
        "of the paper:\n`--quick` says how. Intervals of one seed hold the noise of test samples, "
        "not that of training.\n"
    )
    yield f"{CHOSEN_ON_TEST}\n"
    yield f"{in_words(ledger)}\n"
    for paper in dict.fromkeys(each.paper for each in ledger.experiments):
        entries = [each for each in ledger.entries if each.table.experiment.paper == paper]
        yield f"## {'Beside the papers' if paper == 'ours' else paper}\n"
        judged = [each for each in entries if each.outcome.verdict is not None]
        if judged:
            yield from _table(_HEADS, map(_row, judged))
        yield from _doubts(judged)
        open_ones = [each for each in entries if each.outcome.verdict is None]
        if open_ones:
            yield "Not judged:\n"
            rows = ((_item(e), e.outcome.claim.text, why(e.table, e.outcome)) for e in open_ones)
            yield from _table(("item", "claim", "why"), rows)
        yield from _left_out([each for each in ledger.experiments if each.paper == paper])


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    names = list(heads)
    yield "| " + " | ".join(names) + " |"
    yield "|" + "---|" * len(names)
    for row in rows:
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |"
    yield ""


def _item(entry: Entry) -> str:
    return entry.table.experiment.item.lower()


def _row(entry: Entry) -> Iterator[str]:
    outcome, table = entry.outcome, entry.table
    claim = claim_in_words(outcome) + (" ¹" if outcome.claim.doubt else "")
    yield from (_item(entry), claim)
    yield "<br>".join(_numbers(entry, part, ours=False) for part in outcome.evidence)
    yield "<br>".join(_numbers(entry, part, ours=True) for part in outcome.evidence)
    yield "<br>".join(_gain(entry, part) for part in outcome.evidence)
    yield ", ".join(dict.fromkeys(part.over or "–" for part in outcome.evidence))
    sources = dict.fromkeys(source_in_words(run) for run in table.runs_of(outcome))
    seeds = f"{outcome.seeds} seed{'s' if outcome.seeds > 1 else ''}"
    left = f"; not: {', '.join(outcome.columns_left)}" if outcome.columns_left else ""
    yield f"{'; '.join(sources)} ({table.settled.setting}, {seeds}){left}"
    yield f"**{outcome.verdict}**"


def _numbers(entry: Entry, part: Evidence, ours: bool) -> str:
    """The numbers of a column's rows, the paper's or ours: 61.64 against 56.11."""
    table, texts = entry.table, []
    for row in part.rows:
        for name in part.columns:
            if ours:
                number = table.numbers.get((row, name))
                measure = table.experiment.column(name).measure
                texts.append("" if number is None else number_in_words(number, measure))
            else:
                texts.append(printed(table.experiment.published(row, name)))
    numbers = " / ".join(text for text in texts if text and text != "–")
    where = "" if ours else f"{', '.join(part.columns)}: "
    return where + (numbers or "–")


def _gain(entry: Entry, part: Evidence) -> str:
    if is_correlation(entry.outcome):
        return f"ρ = {interval(part, 2)}"
    digits = digits_of(measure_of(entry.table, part), part.value)
    return interval(part, digits, sign=True)


def _doubts(entries: Iterable[Entry]) -> Iterator[str]:
    doubted = [each for each in entries if each.outcome.claim.doubt]
    for each in doubted:
        claim = each.outcome.claim
        yield f"¹ {_item(each)}, {claim.text}. In the paper itself: {claim.doubt}  "
    if doubted:
        yield ""


def _left_out(experiments: Iterable[Experiment]) -> Iterator[str]:
    """Rows that are not reproduced, and slips of the papers."""
    missing = [(each, row) for each in experiments for row in each.missing]
    if missing:
        yield "Not reproduced:\n"
        yield from _table(
            ("item", "row", "why"),
            ((e.item.lower(), "all" if m.row == "*" else m.row, m.why) for e, m in missing),
        )
    slips = [(each, slip) for each in experiments for slip in each.corrections]
    if slips:
        yield "Printed wrongly:\n"
        yield from _table(
            ("item", "where", "printed", "is", "why"),
            (
                (
                    e.item.lower(),
                    f"{s.row}, {s.column}",
                    printed(e.published(s.row, s.column)),
                    printed(s.value),
                    s.why,
                )
                for e, s in slips
            ),
        )
