"""Which classes rare ones are taken for, before and after."""

from __future__ import annotations

from longtail.flows.judge import Judgement
from longtail.report.charts.heat import heat_chart
from longtail.report.page import Figure, Section
from longtail.report.table import Column, Table


def mistakes_section(judgement: Judgement) -> Section:
    """Groups taken for groups, and the single mistakes that rare classes suffer most."""
    groups = list(judgement.samples.groups)
    # What is right stands apart, so a column of a group holds mistakes only.
    columns = ["right", *(f"wrong: {name.removesuffix('-shot')}" for name in groups)]
    figures = [
        Figure(
            heat_chart(
                groups,
                columns,
                (100 * shares).tolist(),
                title=f"Groups taken for groups, {name}",
                row_title="true class",
                column_title="taken for",
                value_title="share of the samples (%)",
                low=0,
                high=100,
            ),
            f"{name[:1].upper()}{name[1:]}: what becomes of the samples of each group, every class "
            "counting the same.",
        )
        for name, shares in judgement.mistakes.confusions.items()
    ]
    return Section(
        heading="Which classes are taken for which", table=_pairs(judgement), figures=figures
    )


def _pairs(judgement: Judgement) -> Table | None:
    samples = judgement.samples
    if not judgement.mistakes.pairs:
        return None

    def named(k: int) -> str:
        trained = "" if samples.counts is None else f" ({int(samples.counts[k]):,} in training)"
        return f"{samples.classes[k]}{trained}"

    return Table(
        [
            Column("class of the rarer half"),
            Column("taken for"),
            Column("samples", digits=0),
            *(Column(name, "%", digits=1) for name in samples.sides),
        ],
        [
            [named(p.true), named(p.taken), p.samples, *(100 * share for share in p.shares)]
            for p in judgement.mistakes.pairs
        ],
        caption="What the rarer half of the classes loses most samples to "
        f"({samples.names[0]}), as shares of the class.",
    )
