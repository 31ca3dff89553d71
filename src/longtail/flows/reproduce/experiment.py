"""An experiment: a table or a figure of a paper, what makes it here, and what the paper says of it.

Values only. A published table has rows and columns; a cell says which run makes a row on the data
of a column, and how it predicts. A claim compares rows, so it can be judged from whatever numbers
fill the table: the paper's, ours in its setting, or ours in the quick one.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, TypeAlias

import msgspec

from longtail.flows.reproduce.measures import MEASURES, WHOLE

Value: TypeAlias = float | int | bool | str | None  # None for what is empty, or in a figure only
Needs: TypeAlias = Literal[
    "cifar10",
    "cifar100",
    "imagenet-lt",
    "places-lt",
    "inaturalist",
    "sun397",
    "caltech-features",
    "cifar100-features",
    "r52",
    "banking77",
]
Paper: TypeAlias = Literal["LA", "LADE", "EO", "ELM", "NCM", "ours"]  # ours: of no table of theirs
Sign: TypeAlias = Literal[1, 0, -1]
Group: TypeAlias = Literal["", "many", "medium", "few"]
# How a run predicts. "under the target": moved from the prior it carries to that of the test set
# (PC Softmax); "from uniform": the same as if it carried the uniform prior, whatever is known of it
# (LADE §4.3). The "best" ones choose τ on test samples: in each fifth of them that of the least
# balanced error in the other four, since one of its own would flatter; of a drawn problem that of
# the least mean error of all trials.
Variant: TypeAlias = Literal[
    "as trained", "under the target", "from uniform", "best tau", "best weight norm"
]


class _Value(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A part of an experiment."""


class Train(_Value, frozen=True, tag="train"):
    """A training run: a recipe of the catalogue and `key=value` as on the command line.

    Whoever runs it adds the seed. Equal values are one run, whichever experiments ask for it.
    """

    recipe: str
    overrides: tuple[str, ...] = ()
    hours: float | None = None  # one seed on one thread of a CPU; None: this is for a GPU
    start: str = ""  # the name of the run, of the same seed, whose backbone it begins with


class Fit(_Value, frozen=True, tag="fit"):
    """`longtail fit` on stored features or words of texts, cut to a ratio; a cell names a method.

    Without a ratio the seed draws four fifths of each class.
    """

    features: Literal["cifar100", "caltech", "r52", "banking77"]
    imbalance_ratio: float | None = None
    hours: float = 0.03  # with all methods of one seed


class Synthetic(_Value, frozen=True, tag="synthetic"):
    """A problem that is drawn: LA §6.1 or ELM §2.3; the cell names loss or correction."""

    problem: Literal["two-gaussians", "two-moons"]
    trials: int
    hours: float = 0.01


class Inspect(_Value, frozen=True, tag="inspect"):
    """No run: what a recipe says, its settings and the class counts of its training set."""

    recipe: str
    overrides: tuple[str, ...] = ()
    hours: float = 0.0


Run: TypeAlias = Train | Fit | Synthetic | Inspect


class Cell(_Value, frozen=True):
    """What makes a row on one set of data."""

    row: str
    data: str  # as in `Column.data`
    run: Run
    variant: Variant = "as trained"
    # Of a Train: a head of the second stage as a recipe writes it, "" for the trained one. Of a
    # Fit: a name of `longtail fit --list`. Of a Synthetic: the loss or correction.
    head: str = ""
    # Before the second stage, as a recipe writes it.
    batch_norm: Literal["keep", "reestimate", "reestimate_class_balanced"] = "keep"

    @property
    def chosen_on_test(self) -> bool:
        """Whether its τ is chosen on test samples."""
        return self.variant in ("best tau", "best weight norm")


class Column(_Value, frozen=True):
    """A column of the table, or what a figure draws."""

    name: str
    measure: str  # of MEASURES
    data: str = ""  # which cell of a row it is read from
    group: Group = ""  # the classes it is over; "" for all
    test: str = "balanced"  # or "forward-50": the test set cut to that ratio (LADE §4.3)
    key: str = ""  # of a setting: where the recipe has it; of a statistic: what is counted


class Better(_Value, frozen=True, tag="better"):
    """One row is better than another in every column; which way is better the measure says."""

    text: str
    better: str
    worse: str
    columns: tuple[str, ...] = ()  # () for all
    by: float = 0.0  # at least so much, in the column's unit
    doubt: str = ""  # where the paper's own numbers do not bear it out


class Trend(_Value, frozen=True, tag="trend"):
    """A rank correlation has one of these signs; 0 is for none that chance does not explain.

    Against "count": of one number a class with the class's training count, in each row and column.
    "rows": of a column's numbers with the order of the rows, in each column. "columns": of a row's
    numbers with the order of the columns, in each row. "point": the last of a curve of its own less
    its first. Only "count" has a measure of how weak a trend is, so that 0 is for it alone.
    """

    text: str
    rows: tuple[str, ...]
    columns: tuple[str, ...]
    signs: tuple[Sign, ...]
    against: Literal["count", "rows", "columns", "point"] = "count"
    minus: str = ""  # a row that is subtracted first
    doubt: str = ""


class Close(_Value, frozen=True, tag="close"):
    """A row equals another, or a number, within so much, in every column.

    `at_least`: more than that is right too, however much.
    """

    text: str
    row: str
    to: str | float
    within: float
    columns: tuple[str, ...] = ()
    doubt: str = ""
    at_least: bool = False


Claim: TypeAlias = Better | Trend | Close


class Missing(_Value, frozen=True):
    """Why a row cannot be made; row "*" is for all."""

    row: str
    why: str


class Correction(_Value, frozen=True):
    """A published cell that is a slip, with what it should be."""

    row: str
    column: str
    value: Value
    why: str


class Quick(_Value, frozen=True):
    """The setting for a CPU. Its cells stand for the same rows and data of the table."""

    cells: tuple[Cell, ...]
    needs: tuple[Needs, ...]
    note: str  # what stands in for what
    seeds: tuple[int, ...] = (0,)

    @property
    def hours(self) -> float | None:
        """About how long all runs of all seeds take on one thread."""
        return _hours(self.cells, self.seeds)


class Experiment(_Value, frozen=True, kw_only=True):
    """A table or a figure of a paper."""

    name: str
    paper: Paper
    item: str  # as the paper calls it: "Table 2"
    about: str
    needs: tuple[Needs, ...] = ()  # () for nothing but what is drawn or written here
    columns: tuple[Column, ...] = ()
    rows: Mapping[str, tuple[Value, ...]] = {}  # as printed, a value for each column
    cells: tuple[Cell, ...] = ()  # in the paper's setting
    seeds: tuple[int, ...] = (0,)  # as many as the paper averages over
    quick: Quick | None = None
    claims: tuple[Claim, ...] = ()
    missing: tuple[Missing, ...] = ()
    corrections: tuple[Correction, ...] = ()
    draws: tuple[str, ...] = ()  # beside the columns' measures: "tsne", "reliability"

    def __post_init__(self) -> None:
        for complaint in _complaints(self):
            raise ValueError(f"{self.name}: {complaint}")

    def published(self, row: str, column: str) -> Value:
        """A cell as printed."""
        return self.rows[row][[each.name for each in self.columns].index(column)]

    @property
    def hours(self) -> float | None:
        """That of the quick setting, of the paper's own if that needs no GPU, or None."""
        return _hours(self.cells, self.seeds) if self.quick is None else self.quick.hours

    def column(self, name: str) -> Column:
        """The column of that name."""
        return next(each for each in self.columns if each.name == name)


def _hours(cells: tuple[Cell, ...], seeds: tuple[int, ...]) -> float | None:
    hours = [run.hours for run in {cell.run for cell in cells}]
    if not hours or None in hours:
        return None
    return len(seeds) * sum(each or 0.0 for each in hours)


def _complaints(experiment: Experiment) -> Iterable[str]:
    """What does not fit together."""
    rows, columns = experiment.rows, [each.name for each in experiment.columns]
    data = {each.data for each in experiment.columns}
    quick = () if experiment.quick is None else experiment.quick.cells
    if len(set(columns)) < len(columns):
        yield "two columns have one name"
    yield from (f"no measure {c.measure}" for c in experiment.columns if c.measure not in MEASURES)
    for column in (each for each in experiment.columns if each.measure in MEASURES):
        is_cut, is_shifted = column.group != "", column.test != "balanced"
        by_class = not MEASURES[column.measure].is_number
        if (is_cut and (is_shifted or by_class)) or (
            column.measure in WHOLE and (is_cut or is_shifted)
        ):
            yield f"{column.name}: {column.measure} has no such group and test set"
    yield from (
        f"{row} has {len(values)} values for {len(columns)} columns"
        for row, values in rows.items()
        if len(values) != len(columns)
    )
    for cells in (experiment.cells, quick):
        spots = [(cell.row, cell.data) for cell in cells]
        yield from (f"nothing at {p}" for p in spots if p[0] not in rows or p[1] not in data)
        if len(set(spots)) < len(spots):
            yield "two cells for one place"
    absent = [each.row for each in experiment.missing if each.row != "*"]
    yield from (f"no row {row} is missing" for row in absent if row not in rows)
    for fix in experiment.corrections:
        if fix.row not in rows or fix.column not in columns:
            yield f"nothing to correct at {fix.row}, {fix.column}"
    for claim in experiment.claims:
        yield from (
            f"no row {row} in {claim.text!r}" for row in claim_rows(claim) if row not in rows
        )
        yield from (f"no column {c} in {claim.text!r}" for c in claim.columns if c not in columns)
        if isinstance(claim, Trend) and 0 in claim.signs and claim.against != "count":
            yield f"no measure of how weak a trend along {claim.against} is, in {claim.text!r}"


def claim_rows(claim: Claim) -> tuple[str, ...]:
    """The rows that a claim is about."""
    if isinstance(claim, Better):
        return claim.better, claim.worse
    if isinstance(claim, Close):
        return (claim.row, claim.to) if isinstance(claim.to, str) else (claim.row,)
    return (*claim.rows, claim.minus) if claim.minus else claim.rows
