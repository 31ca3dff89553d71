"""The results of a run in words, tables and figures, and all of its files."""

from __future__ import annotations

import shlex
import sys
from datetime import date
from typing import Any

import torch

from longtail import __version__
from longtail.core import Prior
from longtail.engine import save_head
from longtail.metrics import Measured
from longtail.recipes.training.checking import plain
from longtail.recipes.training.results import RunResult, tallied
from longtail.recipes.training.run_figures import GROUPS, group_curves_chart, weight_norms_chart
from longtail.recipes.training.run_folder import METRICS, write_json
from longtail.report import (
    Column,
    Figure,
    Footer,
    Line,
    Page,
    Section,
    Table,
    line_chart,
    write_page,
)

# What is shown, what it is called, what it is multiplied by, and with how many digits.
_COLUMNS = (
    ("balanced_accuracy", "balanced accuracy", 100.0, 1),
    ("many", "many", 100.0, 1),
    ("medium", "medium", 100.0, 1),
    ("few", "few", 100.0, 1),
    ("top1", "under the target", 100.0, 1),
    ("nll", "log-loss", 1.0, 3),
    ("ece", "ECE", 100.0, 1),
)


def write_results(result: RunResult) -> None:
    """Scores, second-stage heads, metrics.json and report.html, into the run folder."""
    for variant in result.variants:
        # What is under the target follows from the scores as they were trained.
        if variant.head is None and variant is not result.variants[0]:
            continue
        name = "" if variant.head is None else f"-{variant.name}"
        for split, scores in variant.scores.items():
            scores.save(result.folder / f"scores-{split}{name}.safetensors")
        if variant.head is not None:
            about = {"classes": result.classes, "counts": result.counts.tolist()}
            save_head(variant.head, result.folder / f"head{name}.safetensors", about)
    write_json(result.folder / METRICS, {"version": __version__} | result.as_json())
    command = shlex.join(["longtail", *sys.argv[1:]])
    footer = Footer(version=__version__, date=date.today().isoformat(), command=command)
    write_page(run_page(result, footer), result.folder / "report.html")


def run_page(result: RunResult, footer: Footer) -> Page:
    """The page of `longtail train`."""
    sections = [
        Section(
            heading=f"On the {split} part",
            table=_table(metric_table(result, split)),
            figures=[_by_class(result)] if split == result.judged_on else [],
            notes=_notes(result) if split == result.judged_on else [],
        )
        for split in result.metrics
    ]
    sections.append(Section(heading="Training", figures=_training_figures(result)))
    sections.append(Section(heading="Recipe", table=_recipe_table(result)))
    return Page("longtail train", headline(result), sections, footer)


def _table(rows: list[list[str]]) -> Table:
    return Table([Column(name) for name in rows[0]], rows[1:])


def headline(result: RunResult) -> str:
    """What came out, in one sentence."""
    said = (
        f"{int(result.counts.sum()):,} training images of {len(result.classes):,} classes, "
        f"{result.recipe.epochs} epochs."
    )
    if result.judged_on is None:
        return f"{said} There is no validation and no test part, so nothing was measured."
    found = result.metrics[result.judged_on][result.headline]
    value = found["balanced_accuracy"]
    groups = ", ".join(
        f"{name} {_shown(found[name], 100.0, 1, interval=False)}"
        for name in GROUPS
        if name in found and found[name].value is not None
    )
    return (
        f"{said} Balanced accuracy on the {result.judged_on} part, {result.headline}: "
        f"{_shown(value, 100.0, 1)} % ({groups})."
    )


def metric_table(result: RunResult, split: str) -> list[list[str]]:
    """The heads of the columns, then a row a variant; in % but for the log-loss."""
    uniform = result.target.is_close(Prior.uniform(len(result.classes)))
    # Under the uniform prior accuracy is balanced accuracy, which is shown.
    columns = [column for column in _COLUMNS if not (uniform and column[0] == "top1")]
    rows = [["", *(title for _, title, _, _ in columns)]]
    for name, found in result.metrics[split].items():
        cells = [
            _shown(found.get(key, Measured(None)), factor, digits, interval=at == 0)
            for at, (key, _, factor, digits) in enumerate(columns)
        ]
        rows.append([name, *cells])
    return rows


def _notes(result: RunResult) -> list[str]:
    said = [
        "In %, but for the log-loss; in brackets 95 % intervals. Classes count as the target says."
    ]
    carried = result.trained.carried
    if carried is not None and carried.is_close(result.target):
        said.append("The logits carry the target as they are.")
    if carried is None:
        said.append(
            "What the logits of this loss carry is no prior, so they were not moved to the target; "
            "longtail fix --carried measure does it from held-out scores."
        )
    return said


def _by_class(result: RunResult) -> Figure:
    order = result.counts.argsort(descending=True, stable=True)
    names = [result.classes[at] for at in order.tolist()]
    assert result.judged_on is not None
    lines = []
    for variant in result.variants[:2]:
        tally = tallied(variant.scores[result.judged_on], result.target, result.counts)
        recall = (100 * tally.hits / tally.counts)[order].tolist()
        places = range(1, len(order) + 1)
        lines.append(Line(variant.name, places, recall, labels=names, mark="dots"))
    chart = line_chart(
        lines,
        title="Accuracy by class",
        x_title="class, from the most frequent to the rarest",
        y_title="accuracy (%)",
        width=960,
    )
    return Figure(chart, "Each dot is a class.", wide=True)


def _training_figures(result: RunResult) -> list[Figure]:
    history = result.trained.history
    loss = Line(
        "training loss",
        [row["epoch"] or 0.0 for row in history],
        [row["train_loss"] if row["train_loss"] is not None else torch.nan for row in history],
    )
    chart = line_chart([loss], title="Training loss", x_title="epoch", y_title="mean loss")
    figures = [Figure(chart, "Mean loss of each epoch.")]
    if any(row.get(f"val_{name}") is not None for row in history for name in GROUPS):
        curves = group_curves_chart(history)
        figures.append(Figure(curves, "As NCM figure 4, on the validation part, as trained."))
    norms = weight_norms_chart({result.recipe.optimizer.name: [(result.weight, result.counts)]})
    figures.append(Figure(norms, "As LA figure 1: norms that follow the frequency, or do not."))
    return figures


def _recipe_table(result: RunResult) -> Table:
    rows = [
        [
            key,
            ", ".join(f"{k} {v}" for k, v in value.items())
            if isinstance(value, dict)
            else str(value),
        ]
        for key, value in plain(result.recipe).items()
        if value not in (None, "")
    ]
    return Table([Column("key"), Column("value")], rows)


def _in_words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{key} {part}" for key, part in value.items() if part is not None)
    return str(value)


def _shown(measured: Measured, factor: float, digits: int, interval: bool = True) -> str:
    if measured.value is None:
        return "none"
    text = f"{factor * measured.value:.{digits}f}"
    if not interval or measured.low is None or measured.high is None:
        return text
    return f"{text} [{factor * measured.low:.{digits}f}, {factor * measured.high:.{digits}f}]"
