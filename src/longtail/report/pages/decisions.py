"""The sections on what decisions cost, and on sets of classes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from longtail.flows.decisions import CostFacts, SetFacts
from longtail.flows.fix_result import FixResult
from longtail.report.figures.classes import ordered_chart
from longtail.report.names import GROUPS, order_title, percent, with_interval
from longtail.report.page import Column, Figure, Section, Table

if TYPE_CHECKING:
    from longtail.metrics import Interval

_COVERAGES = {
    "accuracy_under_target": ("coverage_under_target", "coverage under the target"),
    "balanced_accuracy": ("macro_coverage", "macro-coverage, all classes alike"),
    "accuracy": ("coverage", "coverage, samples as they are"),
}
_SHARES = {"empty": "empty sets", "full": "sets of all classes"}
_MODES = {
    "tail": "samples that follow the target, and classes nearly alike",
    "marginal": "samples that follow the target; single classes may be covered less, or more",
    "class": "the samples of every class, for which those with few validation samples pay in size",
}


def decision_sections(result: FixResult) -> list[Section]:
    """Those that there is something to say in."""
    costs, sets = result.cost_facts, result.set_facts
    made = [] if costs is None else [_costs(costs)]
    return made if sets is None else [*made, _sets(sets, result)]


def _costs(facts: CostFacts) -> Section:
    rows = [
        ["before, the most likely class", _number(facts.before)],
        ["after, the most likely class", _number(facts.after)],
        ["after, what costs least in expectation", _number(facts.decided)],
    ]
    sentences = [
        f"Costs decide {percent(facts.changed)} % of the samples otherwise than probability does."
    ]
    if facts.decider.abstain is not None:
        sentences.append(
            f"{percent(facts.undecided)} % are left undecided, at a cost of "
            f"{facts.decider.abstain:.3g} each."
        )
    columns = [Column("decided by"), Column("mean cost of a sample")]
    caption = "Under the target; in brackets 95 % intervals."
    return Section("What mistakes cost", sentences, Table(columns, rows, caption))


def _sets(facts: SetFacts, result: FixResult) -> Section:
    assert result.judgement is not None
    samples, measured = result.judgement.samples, facts.measured
    # Of coverages that are one number the first, as of accuracies.
    shown = [_COVERAGES[key] for key in result.judgement.accuracies]
    shown += [pair for pair in GROUPS.items() if samples.shot_groups]
    rows = [
        [name, with_interval(measured[key])]
        for key, name in shown
        if measured[key].value is not None
    ]
    rows.append(["classes in a set", _number(measured["size"])])
    rows += [[name, with_interval(measured[key])] for key, name in _SHARES.items()]
    chart = ordered_chart(
        {"coverage": [facts.class_coverage]},
        samples.order,
        samples.classes,
        title="Coverage by class",
        x_title=order_title(samples),
        y_title="sets that hold the true class (%)",
        factor=100,
        mark="dots",
    )
    asked = f"{100 * facts.sets.coverage:.3g} %"
    return Section(
        heading="Sets that hold the true class",
        paragraphs=[
            f"A set is to hold the true class in {asked} of the cases: of "
            f"{_MODES[facts.sets.mode]}."
        ],
        table=Table(
            [Column("measure"), Column("value")],
            rows,
            "In %, but for the size; in brackets 95 % intervals.",
        ),
        figures=[Figure(chart, "Each dot is a class.", wide=True)],
    )


def _number(measured: Interval) -> str:
    """A number that is no share, with its interval."""
    if measured.value is None or measured.low is None or measured.high is None:
        return "none" if measured.value is None else f"{measured.value:.3g}"
    return f"{measured.value:.3g} [{measured.low:.3g},\u00a0{measured.high:.3g}]"
