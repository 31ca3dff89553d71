"""The pictures of a reproduced experiment: of what was measured, and of a figure's own numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import nan
from typing import TYPE_CHECKING

from longtail.flows.reproduce.measures import MEASURES
from longtail.report.charts.bars import Bars, bar_chart
from longtail.report.charts.frame import WIDTH
from longtail.report.figures.measured import measured_chart
from longtail.report.page import Figure

if TYPE_CHECKING:
    from longtail.flows.reproduce.pictures import Picture
    from longtail.flows.reproduce.result import Number, Reproduced

_SHARES = ("accuracy", "balanced_error", "error")
_NARROW = 12  # so many bars stand on half a page
_TSNE = (
    "Training features of the two most frequent classes and of the two rarest with ten samples, by "
    "t-SNE: which samples mix means something there, distances mean little."
)
_CAPTIONS = {
    "tsne": _TSNE,
    "cdnv": _TSNE,  # how compact clusters are shows there
    "reliability": "Accuracy of the samples in 20 bins of confidence, of one seed.",
}


def measure_figures(result: Reproduced) -> Iterator[Figure]:
    """Of every measure that has a picture, for which something was measured."""
    for each in result.pictures:
        chart = measured_chart(each.measure, each.rows, each.counts, groups=each.groups)
        if chart is not None:
            yield Figure(chart, _caption(each))


def _caption(picture: Picture) -> str:
    if picture.measure in _CAPTIONS:
        return _CAPTIONS[picture.measure]
    measure = MEASURES[picture.measure]
    if measure.is_number:  # its columns are of groups, which are panels here
        return f"{measure.about[0].upper()}{measure.about[1:]}."
    return f"{picture.column}: {measure.about}."


def number_figures(result: Reproduced) -> Iterator[Figure]:
    """Bars of a figure's accuracies: of its rows side by side, or along them if it goes by rows."""
    experiment, numbers = result.experiment, result.numbers
    if not experiment.item.startswith("Figure"):
        return
    measures = {each.name: each.measure for each in experiment.columns if each.measure in _SHARES}
    columns = [each for each in measures if any(name == each for _, name in numbers)]
    rows = [row for row in experiment.rows if any((row, name) in numbers for name in columns)]
    if not columns:
        return
    is_by_rows = len(columns) == 1 or any(
        getattr(claim, "against", "") == "rows" for claim in experiment.claims
    )
    bars = (
        [_bars(name, [numbers.get((row, name)) for row in rows]) for name in columns]
        if is_by_rows
        else [_bars(row, [numbers.get((row, name)) for name in columns]) for row in rows]
    )
    is_wide = len(rows) * len(columns) > _NARROW
    chart = bar_chart(
        rows if is_by_rows else columns,
        bars,
        title=f"{experiment.paper}, {experiment.item}",
        y_title="accuracy (%)" if measures[columns[0]] == "accuracy" else "error (%)",
        width=960 if is_wide else WIDTH,
    )
    yield Figure(chart, "Ours, with 95 % intervals.", is_wide)


def _bars(name: str, numbers: Sequence[Number | None]) -> Bars:
    def column(part: str) -> list[float]:
        ends = (getattr(number, part, None) for number in numbers)
        return [nan if end is None else end for end in ends]

    return Bars(name, column("value"), column("low"), column("high"))
