"""How experiments are written: in the .toml files beside this one, one or more for each paper.

A table is an experiment, its name says paper and item, and its keys are the fields of `Experiment`.
Files share four more: [settings.NAME] is what several have in common and take up with `base`,
[runs.NAME] a run that cells name, [methods.NAME] how rows are made of one run, [why] reasons for
missing rows, by a word.

columns   A name alone has `measure` and `data` of the experiment. Each of `groups`, of `tests` or
          of a list of data, which is at {data} in the name, is a column.
rows      A list of names where no number is known; "-" is an empty place.
cells     All `rows` on all of `data`, or of the columns' data if it is left out; with `methods` its
          rows. `run` is a name of [runs] or a recipe, then changes as on the command line; {data}
          in it is the data. `inspect` in its place is for what is not run.
claims    sentence = the fields of a claim, or a list: better row, worse row, columns, then fields
          if there are more. A star in a row's or column's name stands for anything.
"""

import fnmatch
import shlex
import tomllib
from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from itertools import product
from typing import TypeAlias, get_args

import msgspec

from longtail.flows.reproduce.experiment import (
    Experiment,
    Fit,
    Paper,
    Run,
    Synthetic,
    Train,
    Value,
)

Names: TypeAlias = str | tuple[str, ...]
Fields: TypeAlias = dict[str, object]
Words: TypeAlias = dict[str, Names]  # fields of columns and cells
_PAPERS = {paper.lower(): paper for paper in get_args(Paper)}
_GROUPS = {
    **{"All": "", "Many": "many", "Medium": "medium", "Med": "medium", "Few": "few"},
    **{"Head": "many", "Torso": "medium", "Tail": "few"},
}


class _Files(msgspec.Struct):
    settings: dict[str, Fields]
    runs: dict[str, Fields]
    methods: dict[str, dict[str, Words]]
    why: dict[str, str]
    experiments: dict[str, Fields]


class _Short(msgspec.Struct):
    """What an experiment has in a short form."""

    measure: str = ""
    data: Names = ""
    columns: tuple[str | Words, ...] = ()
    rows: dict[str, tuple[Value, ...]] | tuple[str, ...] = ()
    cells: tuple[Words, ...] = ()
    quick: Fields | None = None
    claims: dict[str, Fields | tuple[str | Fields, ...]] = {}
    missing: dict[str, str] = {}


class _Experiments(Mapping[str, Experiment]):
    """By name, in the order of the papers, tables first; read when first asked for."""

    def __getitem__(self, name: str) -> Experiment:
        return _experiments()[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_experiments())

    def __len__(self) -> int:
        return len(_experiments())


EXPERIMENTS = _Experiments()


@cache
def named_runs() -> dict[str, Run]:
    """The runs that have a name, by it."""
    return {name: _run(name) for name in _read().runs}


@cache
def _read() -> _Files:
    parts: dict[str, Fields] = {name: {} for name in _Files.__struct_fields__}
    for file in files(__package__).iterdir():
        if file.name.endswith(".toml"):
            for name, table in tomllib.loads(file.read_text(encoding="utf-8")).items():
                present, new = (
                    (parts[name], table) if name in parts else (parts["experiments"], {name: table})
                )
                if twice := present.keys() & new:
                    raise ValueError(f"{file.name}: {', '.join(sorted(twice))} is there twice")
                present |= new
    return msgspec.convert(parts, _Files)


@cache
def _experiments() -> dict[str, Experiment]:
    def order(name: str) -> tuple[int, bool, int]:
        paper, kind, *number = name.split("-")
        return list(_PAPERS).index(paper), kind == "figure", int(number[0]) if number else 0

    tables = _read().experiments
    return {name: experiment_from(name, tables[name]) for name in sorted(tables, key=order)}


def experiment_from(name: str, table: Fields) -> Experiment:
    """The experiment of a table as files have it."""
    paper, _, item = name.partition("-")
    if "base" in table:
        table = _read().settings[str(table["base"])] | table
    short = msgspec.convert(table, _Short)
    columns = list(_columns(short))
    names = tuple(str(column["name"]) for column in columns)
    data = tuple(dict.fromkeys(str(column["data"]) for column in columns))
    rows = short.rows if isinstance(short.rows, dict) else dict.fromkeys(short.rows, ())
    why = _read().why
    fields = {
        "name": name,
        "paper": _PAPERS[paper],
        "item": item.replace("-", " ").capitalize(),
        **{key: value for key, value in table.items() if key not in ("base", "measure", "data")},
        "columns": columns,
        "rows": {
            row: [None if value == "-" else value for value in values or "-" * len(columns)]
            for row, values in rows.items()
        },
        "cells": list(_cells(short.cells, data)),
        "claims": [_claim(*each, tuple(rows), names) for each in short.claims.items()],
        "missing": [
            {"row": row, "why": why.get(text, text)} for row, text in short.missing.items()
        ],
    }
    if short.quick is not None:
        cells = msgspec.convert(short.quick["cells"], tuple[Words, ...])
        fields["quick"] = short.quick | {"cells": list(_cells(cells, data))}
    return msgspec.convert(fields, Experiment)


def _columns(short: _Short) -> Iterator[Fields]:
    for each in short.columns:
        words: Words = {"measure": short.measure, "data": short.data}
        words |= {"name": each} if isinstance(each, str) else each
        groups, tests = _each(words.pop("groups", ())), _each(words.pop("tests", ()))
        for data in _each(words["data"]):
            for word in groups or tests or ("",):
                test = word.lower().replace(" ", "-").replace("uniform", "balanced")
                name = f"{words.get('name', '')} {word}".strip().replace("{data}", data)
                yield {
                    **words,
                    **{"name": name, "data": data},
                    **({"group": _GROUPS[word]} if groups else {}),
                    **({"test": test} if tests else {}),
                }


def _cells(cells: tuple[Words, ...], all_data: tuple[str, ...]) -> Iterator[Fields]:
    for each in cells:
        words = dict(each)
        methods = _read().methods[str(words.pop("methods"))] if "methods" in each else {}
        kind = "inspect" if "inspect" in each else "run"
        text = words.pop(kind)
        rows, on = words.pop("rows", tuple(methods)), words.pop("data", all_data)
        for data, row in product(_each(on), _each(rows)):
            how = words | (methods[row] if methods else {})
            run = msgspec.to_builtins(
                _run(f"{text} {how.pop('changes', '')}".replace("{data}", data))
            )
            if kind == "inspect":
                run = {key: run[key] for key in ("recipe", "overrides")} | {"type": "inspect"}
            yield {"row": row, "data": data, "run": run, **how}


def _run(text: str) -> Run:
    """That of a name or a recipe, with what is changed in it."""
    name, *changes = shlex.split(text)
    fields = _read().runs.get(name)
    if fields is None:
        return Train(name, tuple(changes))
    if "train" not in fields:
        return msgspec.convert(fields, Fit | Synthetic)
    base = _run(shlex.join([*shlex.split(str(fields["train"])), *changes]))
    own = {key: fields[key] for key in ("hours", "start") if key in fields}
    return msgspec.convert(msgspec.to_builtins(base) | own, Train)


def _claim(
    text: str, claim: Fields | tuple[str | Fields, ...], rows: Names, columns: Names
) -> Fields:
    parts = claim if isinstance(claim, tuple) else (claim,)
    names = tuple(each for each in parts if isinstance(each, str))
    fields: Fields = {"better": names[0], "worse": names[1], "columns": names[2:]} if names else {}
    for each in parts:
        fields |= each if isinstance(each, dict) else {}
    for key, present in ("rows", rows), ("columns", columns):
        if key in fields:
            patterns = _each(msgspec.convert(fields[key], Names))
            matches = [fnmatch.filter(present, pattern) or [pattern] for pattern in patterns]
            fields[key] = [name for names in matches for name in names]
    if isinstance(fields.get("signs"), int):
        fields["signs"] = [fields["signs"]]
    kind = "better" if "better" in fields else "close" if "to" in fields else "trend"
    return {"type": kind, "text": text, **fields}


def _each(names: Names) -> tuple[str, ...]:
    return (names,) if isinstance(names, str) else names
