"""A table of a paper with ours beside it: for a terminal, and as a page."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING

from longtail.flows.reproduce.experiment import Better, Close, Fit, Run, Synthetic
from longtail.flows.reproduce.measures import MEASURES
from longtail.report.charts.scale import fixed
from longtail.report.page import Column, Figure, Footer, Page, Section, Table
from longtail.report.pages.reproduce_figures import measure_figures, number_figures
from longtail.report.pages.synthetic import gaussian_figures, moons_figures

if TYPE_CHECKING:
    from longtail.flows.reproduce.experiment import Column as TableColumn
    from longtail.flows.reproduce.experiment import Value
    from longtail.flows.reproduce.overview import DryRun
    from longtail.flows.reproduce.plan import PlannedRun
    from longtail.flows.reproduce.result import Number, Reproduced
    from longtail.flows.reproduce.verdicts import ClaimVerdict, Evidence

_TEXTS = ("r52", "banking77")
_NOT_JUDGED = "not judged"
_MOST_DIGITS = 6
_FEW_HOURS = 0.1
CHOSEN_ON_TEST = (
    "† τ is chosen on test samples, for each fifth of them on the other four; of a drawn problem "
    "on all trials."
)
_PERCENT = ("accuracy", "balanced_error", "error", "geometric_mean", "recall")


def digits_of(measure: str, value: float) -> int:
    """Decimals that a number of a measure is shown with: one in percent, else three digits."""
    if measure in _PERCENT:
        return 1
    return 2 if abs(value) >= 1 else 3 if abs(value) >= 0.01 else 5


def printed(value: Value) -> str:
    """What the paper prints."""
    if value is None:
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return f"{value:g}" if isinstance(value, int | float) else value


def number_in_words(number: Number, measure: str) -> str:
    """A number of ours with its interval: 38.3 [37.5, 39.0]; † if τ was chosen on test samples."""
    digits = digits_of(measure, number.value)
    text = interval(number, digits)
    return f"{text}†" if number.chosen_on_test else text


def interval(measured: Number | Evidence, digits: int, sign: bool = False) -> str:
    """A value with its ends, a gain with its sign; decimals enough to see how far they are apart.

    >>> from longtail.stats import Interval
    >>> interval(Interval(38.26, 37.51, 39.02), 1), interval(Interval(0.5), 2, sign=True)
    ('38.3 [37.5, 39.0]', '+0.50')
    >>> interval(Interval(0.021, 0.015, 0.027), 1)
    '0.021 [0.015, 0.027]'
    """
    value, low, high = measured.value, measured.low, measured.high
    reach = measured.reach or 0.0
    while 0 < reach < 10.0**-digits and digits < _MOST_DIGITS:
        digits += 1
    text = fixed(value, digits)
    text = f"+{text}" if sign and value >= 0 else text
    if low is None or high is None:
        return text
    return f"{text} [{fixed(low, digits)}, {fixed(high, digits)}]"


def shown_columns(result: Reproduced) -> list[TableColumn]:
    """Columns that have a number of ours; without any, all that the paper prints one in."""
    columns = [each for each in result.experiment.columns if MEASURES[each.measure].is_number]
    ours = {name for _, name in (*result.numbers, *result.settings)}
    return [each for each in columns if each.name in ours] or columns


def table_rows(result: Reproduced) -> list[list[str]]:
    """A row for each of the paper's: its name, then for each column the paper's and ours."""
    experiment, rows, columns = result.experiment, [], shown_columns(result)
    has_ours = bool(result.numbers or result.settings)
    for row in experiment.rows:
        cells = [row]
        for column in columns:
            number = result.numbers.get((row, column.name))
            setting = result.settings.get((row, column.name))
            ours = "" if number is None else number_in_words(number, column.measure)
            if _is_printed(result, column):
                cells.append(printed(experiment.published(row, column.name)))
            if has_ours or not _is_printed(result, column):
                cells.append(ours or ("" if setting is None else printed(setting)))
        rows.append(cells)
    return rows


def _is_printed(result: Reproduced, column: TableColumn) -> bool:
    """Whether the paper has a number in the column."""
    rows = result.experiment.rows
    return any(result.experiment.published(row, column.name) is not None for row in rows)


def table_heads(result: Reproduced) -> list[str]:
    """What stands above the rows."""
    heads = [""]
    ours = ["ours"] if result.numbers or result.settings else []
    for each in shown_columns(result):
        heads += [f"{each.name}: paper", *ours] if _is_printed(result, each) else [each.name]
    return heads


def figures(result: Reproduced) -> list[Figure]:
    """The paper's figure of ours, where there is a drawing for what it measures."""
    if result.gaussians is not None:
        return gaussian_figures(result.gaussians)
    if result.moons is not None:
        return moons_figures(result.moons)
    return [*measure_figures(result), *number_figures(result)]


def claim_rows(result: Reproduced) -> list[list[str]]:
    """A row for each claim: what it says, the paper's gain, ours, and the verdict."""
    rows = []
    for each in result.outcomes:
        gains = [evidence_in_words(result, each, part) for part in each.evidence]
        paper = [_of_paper(result, part) for part in each.evidence]
        ours = "; ".join(gains) or why(result, each)
        rows.append([claim_in_words(each), "; ".join(paper), ours, each.verdict or _NOT_JUDGED])
    return rows


def claim_in_words(outcome: ClaimVerdict) -> str:
    """What it says, with the margin that it is judged by."""
    claim = outcome.claim
    if isinstance(claim, Better) and claim.by:
        return f"{claim.text} (by {claim.by:g} at least)"
    if not isinstance(claim, Close) or (claim.at_least and not claim.within):
        return claim.text
    margin = f"at most {claim.within:g} below" if claim.at_least else f"within {claim.within:g}"
    return f"{claim.text} ({margin})"


def source_in_words(run: Run) -> str:
    """What a run's numbers are of.

    >>> from longtail.flows.reproduce.experiment import Train
    >>> source_in_words(Train("cifar100-lt-ce-quick", ("data.imbalance_ratio=10",)))
    'network, cifar100-lt, ratio 10'
    """
    if isinstance(run, Synthetic):
        return run.problem
    if isinstance(run, Fit):
        ratio = "" if run.imbalance_ratio is None else f", ratio {run.imbalance_ratio:g}"
        return f"{'texts' if run.features in _TEXTS else 'features'}, {run.features}{ratio}"
    data, lt, _ = run.recipe.partition("-lt")
    ratios = [each.rpartition("=")[2] for each in run.overrides if "imbalance_ratio=" in each]
    return ", ".join(["network", data + lt if lt else data.partition("-")[0], *map(_ratio, ratios)])


def _ratio(value: str) -> str:
    return f"ratio {value}"


def evidence_in_words(result: Reproduced, outcome: ClaimVerdict, part: Evidence) -> str:
    """A gain, a difference or a correlation, with its interval and what it is of."""
    where = f"{', '.join(part.columns)}: " if len(outcome.evidence) > 1 else ""
    digits = 2 if is_correlation(outcome) else _digits(result, part)
    return where + interval(part, digits)


def is_correlation(outcome: ClaimVerdict) -> bool:
    """Whether the claim is judged by a rank correlation."""
    return getattr(outcome.claim, "against", "") == "count"


def _digits(result: Reproduced, part: Evidence) -> int:
    return digits_of(measure_of(result, part), part.value)


def measure_of(result: Reproduced, part: Evidence) -> str:
    """The measure of the columns that the evidence is of."""
    return result.experiment.column(part.columns[0]).measure


def _of_paper(result: Reproduced, part: Evidence) -> str:
    return "–" if part.published is None else fixed(part.published, _digits(result, part))


def why(result: Reproduced, outcome: ClaimVerdict) -> str:
    """Why a claim has no verdict."""
    reasons = result.unjudged(outcome)
    if reasons.reason:
        return reasons.reason
    if reasons.runs is None:
        return f"Not tried: it needs {', '.join(reasons.needs)}."
    if not reasons.runs:
        return "Its runs are finished, what it is about is not measured."
    time = "" if reasons.hours is None else f", about {how_long(reasons.hours)}"
    return f"Not run yet: {reasons.runs} run{'s' if reasons.runs > 1 else ''}{time}."


def how_long(hours: float) -> str:
    """Hours, or minutes where those would be none.

    >>> how_long(1.04), how_long(0.03)
    ('1.0 hours', '2 minutes')
    """
    return f"{hours:.1f} hours" if hours >= _FEW_HOURS else f"{math.ceil(60 * hours)} minutes"


def notes(result: Reproduced) -> Iterator[str]:
    """What has to be known of the table: the setting, the intervals, doubts, what is missing."""
    settled = result.settled
    yield f"Setting: {settled.setting}. {settled.note}".strip()
    if not result.measures and result.experiment.quick and settled.setting != "quick":
        yield "No run in this setting is finished; --quick is another one."
    overs = sorted({number.over for number in result.numbers.values() if number.over})
    if overs:
        seeds = sorted({number.seeds for number in result.numbers.values()})
        what = " to ".join(dict.fromkeys((str(seeds[0]), str(seeds[-1]))))
        what += f" seed{'s' if seeds[-1] > 1 else ''}{' a number' if len(seeds) > 1 else ''}"
        yield f"Of {what}; 95 % intervals over {', or over '.join(overs)}."
    if any(number.chosen_on_test for number in result.numbers.values()):
        yield CHOSEN_ON_TEST
    for each in result.outcomes:
        if each.claim.doubt:
            yield f"In the paper itself: {each.claim.text}. {each.claim.doubt}"
    for row, reason in result.why_not.items():
        yield f"{'All' if row == '*' else row}: {reason}"
    for fix in result.experiment.corrections:
        yield f"{fix.row}, {fix.column}: printed wrongly, it is {printed(fix.value)}. {fix.why}"


def plan_in_words(dry: DryRun, jobs: int) -> Iterator[str]:
    """A line a run, then what they take and what is missing."""
    plan = dry.plan
    yield f"{plan.experiment.name}, setting: {plan.settled.setting}. {plan.settled.note}".strip()
    for each in plan.runs:
        yield _planned_run(dry, each)
    if not plan.left:
        yield "Nothing is left to run."
    elif plan.hours is None:
        yield "How long it takes is not known: this setting is meant for a GPU."
    else:
        yield f"About {how_long(plan.hours)} of one thread, {jobs} runs at a time."
    for name in plan.absent:
        yield f"Missing: {name}; give it with --data {name}=PATH"


def _planned_run(dry: DryRun, each: PlannedRun) -> str:
    text = f"  {each.name}: {each.state}"
    if each.heads:
        text += f", then {len(each.heads)} heads on its features"
    if each.measures:
        text += f", then {', '.join(each.measures)}"
    if each.name in dry.refused:
        return f"{text}; cannot be built: {dry.refused[each.name]}"
    built = dry.built.get(each.name)
    if built is None:
        return text
    return (
        f"{text}; {built.training_images:,} images of {built.classes} classes, {built.steps:,} "
        f"steps, {built.parameters:,} parameters"
    )


def reproduce_page(result: Reproduced, footer: Footer) -> Page:
    """The page of `longtail reproduce NAME`."""
    experiment = result.experiment
    heads, rows, drawn = table_heads(result), table_rows(result), figures(result)
    verdicts = [each.verdict or _NOT_JUDGED for each in result.outcomes]
    counted = ", ".join(f"{verdicts.count(name)} {name}" for name in dict.fromkeys(verdicts))
    claims = Table(
        [Column(name) for name in ("claim", "in the paper", "ours", "verdict")], claim_rows(result)
    )
    return Page(
        title=f"{experiment.paper}, {experiment.item}",
        summary=f"{experiment.about} Claims: {counted or 'none'}.",
        lead=Table([Column(name) for name in heads], rows) if len(heads) > 1 else None,
        sections=[
            *([Section("Figures", figures=drawn)] if drawn else []),
            Section("Claims", table=claims),
            Section("Notes", paragraphs=list(notes(result))),
        ],
        footer=footer,
    )
