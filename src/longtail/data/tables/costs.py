"""What mistakes cost, from a file: one number a class, or a matrix of true and decided classes.

| file | holds |
|---|---|
| .csv, .tsv (also .gz) | a row a class with its name and its cost, with or without a header |
| the same, wider | the decided classes in the first row, and in each other a true class and costs |
| .json | a list or an object from name to cost; a list of rows, or an object of such objects |

Classes are called by their names, or by their indices where nobody knows names.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TypeAlias, cast

import msgspec
import numpy as np

from longtail.core.arrays import Floats
from longtail.core.costs import Costs
from longtail.data.tables.text import TextTable, is_number, read_json, suffix_of

_ByName: TypeAlias = dict[str, float] | dict[str, dict[str, float]]
_Json: TypeAlias = list[float] | list[list[float]] | _ByName
_KINDS = {  # by whether it is an object, and of numbers
    (False, True): list[float],
    (False, False): list[list[float]],
    (True, True): dict[str, float],
    (True, False): dict[str, dict[str, float]],
}
_EXPECTED = (
    "what mistakes cost: a list of numbers, one a class, or of rows of them, or an object from "
    "class name to cost, or to an object of such costs"
)


def read_costs(
    path: str | os.PathLike[str], num_classes: int, classes: Sequence[str] | None = None
) -> Floats:
    """The costs in a file, of shape (C,) or (C, C), in the order of the classes.

    Args:
        path: A file as above.
        num_classes: How many classes there are.
        classes: Their names in order, if they have any.
    """
    path = Path(path)
    names = [str(index) for index in range(num_classes)] if classes is None else list(classes)
    values = _of_json(path) if suffix_of(path) == ".json" else _of_table(path)
    try:
        return Costs.of(np.array(_in_order(values, names), np.float64), num_classes).values
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _of_json(path: Path) -> _Json:
    values = read_json(path, msgspec.json.Decoder(list[object] | dict[str, object]), _EXPECTED)
    try:
        kind = _KINDS[isinstance(values, dict), _is_flat(values)]
        return cast(_Json, msgspec.convert(values, kind))
    except msgspec.ValidationError as error:
        raise ValueError(f"{path} must be {_EXPECTED} ({error}); correct it") from error


def _is_flat(values: list[object] | dict[str, object]) -> bool:
    first = next(iter(values.values() if isinstance(values, dict) else values), 0.0)
    return not isinstance(first, list | dict)


def _of_table(path: Path) -> _ByName:
    table = TextTable.open(path, exact=True)
    rows = [[field.strip() for field in row] for row in table.rows()]
    for number, row in enumerate(rows):
        if len(row) != table.width or table.width < 2:
            raise ValueError(
                f"{path} has {len(row)} columns in row {number}, expected a class and its cost, or "
                "a true class and a cost for each decided one"
            )
    head = None if table.width == 2 and is_number(rows[0][1]) else rows.pop(0)
    costs: dict[str, list[float]] = {}
    for name, *fields in rows:
        if wrong := [field for field in fields if not is_number(field)]:
            raise ValueError(f"{path} has {wrong[0]!r} for class {name!r}, where a cost should be")
        if name in costs:
            raise ValueError(f"{path} has class {name!r} twice; leave one of them out")
        costs[name] = list(map(float, fields))
    if table.width == 2 or head is None:
        return {name: cost for name, (cost,) in costs.items()}
    if len(set(head[1:])) < len(head) - 1:
        raise ValueError(f"{path} names a class twice in its first row; correct it")
    return {name: dict(zip(head[1:], row, strict=True)) for name, row in costs.items()}


def _in_order(values: object, names: list[str]) -> object:
    if not isinstance(values, dict):
        return values
    if values.keys() != set(names):
        known = set(names)
        missing = [name for name in names if name not in values]
        unknown = [name for name in values if name not in known]
        what = f"has no {missing[0]!r}" if missing else f"has a class {unknown[0]!r}, unknown here"
        raise ValueError(
            f"it must name each of {len(names)} classes once ({', '.join(names):.80}), but {what}"
        )
    return [_in_order(values[name], names) for name in names]
