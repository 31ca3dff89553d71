"""What is made of a training run that is finished: second-stage heads, measures of its features."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from longtail.flows.reproduce.inspect import measure
from longtail.flows.reproduce.plan import RUNS, head_file
from longtail.flows.reproduce.stored import check_signed, model_of, read_numbers, sign
from longtail.flows.results import write_json
from longtail.flows.train.building import read_data
from longtail.flows.train.model_file import load_model
from longtail.flows.train.reading import overridden
from longtail.flows.train.scores import second_stage


def fit_heads(results: Path, name: str, heads: Sequence[tuple[str, str]], data: Path) -> None:
    """Write the scores of each head, given as a recipe writes it, with its batch norm.

    The head is no part of the run: whatever second stage its recipe has is left out.
    """
    stored = load_model(results / RUNS / name)
    plain = overridden(stored.recipe, ["second_stage=null", f"data.path={data}"])
    images = read_data(plain.data)
    for batch_norm in dict.fromkeys(each for _, each in heads):
        chosen = [head for head, each in heads if each == batch_norm]
        recipe = overridden(
            plain,
            [f"second_stage.heads=[{', '.join(chosen)}]", f"second_stage.batch_norm={batch_norm}"],
        )
        made = second_stage(recipe, stored.model, images, stored.normalize)
        for head, variant in zip(chosen, made, strict=True):
            file = head_file(results, name, head, batch_norm)
            file.parent.mkdir(parents=True, exist_ok=True)
            variant.scores["test"].save(file)
            sign(file, model_of(results / RUNS / name))


def measure_run(folder: Path, names: Sequence[str], data: Path, output: Path) -> None:
    """Add measures of a run's features and head to a file of numbers; null for what it has not."""
    model, before = model_of(folder), dict[str, object]()
    if output.is_file():
        check_signed(output, model)
        before = read_numbers(output)
    made = measure(folder, names, data=data)
    output.parent.mkdir(parents=True, exist_ok=True)
    write_json(output, model | before | {name: _rounded(made.get(name)) for name in names})


def _rounded(value: object) -> object:
    """Six digits: numbers are kept as text."""
    if value is None:
        return None
    if isinstance(value, np.ndarray | list):
        return [_rounded(each) for each in value]
    return float(f"{float(str(value)):.6g}")
