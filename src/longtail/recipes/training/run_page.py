"""The results of a run in words, tables and figures, and all of its files."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from longtail import __version__
from longtail.engine import save_head
from longtail.flows.accuracies import headline_key, shown_accuracies
from longtail.flows.json_text import write_json
from longtail.flows.judge import Judgement, judge
from longtail.flows.samples import AS_TRAINED
from longtail.metrics import Interval
from longtail.metrics.representations import weight_norms
from longtail.recipes.training.checking import plain
from longtail.recipes.training.recipe import Recipe
from longtail.recipes.training.results import RunResult
from longtail.recipes.training.run_figures import GROUPS, group_curves_chart, weight_norms_chart
from longtail.recipes.training.run_folder import METRICS
from longtail.report import (
    Column,
    Figure,
    Footer,
    Line,
    Page,
    Section,
    Table,
    line_chart,
    scores_page,
    write_page,
)
from longtail.report.names import ACCURACIES, HEADLINES
from longtail.report.sections.verdict import tau_in_words

# What is shown, what it is called, what it is multiplied by, and with how many digits.
_COLUMNS = (
    *((key, name, 100.0, 1) for key, name in ACCURACIES.items()),
    ("many", "many", 100.0, 1),
    ("medium", "medium", 100.0, 1),
    ("few", "few", 100.0, 1),
    ("nll", "log-loss", 1.0, 3),
    ("ece", "ECE", 100.0, 1),
)


def write_results(result: RunResult, folder: Path) -> None:
    """Scores, second-stage heads, metrics.json and report.html, into a folder."""
    for variant in result.variants:
        # What is under the target follows from the scores as they were trained.
        if variant.head is None and variant is not result.variants[0]:
            continue
        name = "" if variant.head is None else f"-{variant.name}"
        for split, scores in variant.scores.items():
            scores.save(folder / f"scores-{split}{name}.safetensors")
        if variant.head is not None:
            about = {"classes": result.classes, "counts": result.counts.tolist()}
            save_head(variant.head, folder / f"head{name}.safetensors", about)
    write_json(folder / METRICS, {"version": __version__} | result.as_json())
    command = shlex.join(["longtail", *sys.argv[1:]])
    footer = Footer(version=__version__, date=date.today().isoformat(), command=command)
    write_page(run_page(result, footer), folder / "report.html")


def run_page(result: RunResult, footer: Footer) -> Page:
    """The page of `longtail train`."""
    own = [
        *_variants(result),
        training_section(
            result.trained.history,
            result.recipe.optimizer.name,
            result.weight,
            result.counts.tolist(),
        ),
        recipe_section(result.recipe),
    ]
    judgement = _judgement(result)
    if judgement is None:
        return Page("longtail train", headline(result), own, footer)
    done = (
        f"A model was trained for {result.recipe.epochs} epochs on "
        f"{int(result.counts.sum()):,} images"
        + (f": {result.recipe.about.rstrip('.')}." if result.recipe.about else ".")
    )
    return scores_page(
        judgement, footer, title="longtail train", done=done, sections=own, written=False
    )


def _judgement(result: RunResult) -> Judgement | None:
    """As trained beside under the target, on the part that the headline is of."""
    split = result.judged_on
    if split is None:
        return None
    found = {variant.name: variant for variant in result.variants}
    trained, shown = found[AS_TRAINED], found[result.headline]
    return judge(
        trained.scores[split],
        shown.scores[split],
        result.target,
        validation=trained.scores.get("validation") if split == "test" else None,
        names=(AS_TRAINED, result.headline),
        tau=shown.tau,
    )


def _variants(result: RunResult) -> list[Section]:
    """Every way to predict, on every part."""
    return [
        Section(
            heading=f"All variants on the {split} part",
            table=_table(metric_table(result, split)),
            notes=_notes(result) if split == result.judged_on else [],
        )
        for split in result.metrics
    ]


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
    key = headline_key(result.target)
    groups = ", ".join(
        f"{name} {_shown(found[name], 100.0, 1, interval=False)}"
        for name in GROUPS
        if name in found and found[name].value is not None
    )
    return (
        f"{said} {HEADLINES[key]} on the {result.judged_on} part, {result.headline}: "
        f"{_shown(found[key], 100.0, 1)} % ({groups})."
    )


def metric_table(result: RunResult, split: str) -> list[list[str]]:
    """The heads of the columns, then a row a variant; in % but for the log-loss."""
    tally = result.tallies[split][AS_TRAINED]
    shown = shown_accuracies(tally.class_shares, tally.target)
    columns = [c for c in _COLUMNS if c[0] in shown or c[0] not in ACCURACIES]
    rows = [["", *(title for _, title, _, _ in columns)]]
    for name, found in result.metrics[split].items():
        cells = [
            _shown(found.get(key, Interval(None)), factor, digits, interval=at == 0)
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
    for variant in result.variants:
        if variant.choice is not None:
            held = tau_in_words(variant.choice)
            said.append(f"The validation part chose τ = {variant.tau:.3g}.{held}")
    smoothing = getattr(result.recipe.loss, "label_smoothing", 0.0)
    if carried is not None and smoothing:
        said.append(
            f"Labels were smoothed by {smoothing:g}: the prior that the logits carry is that of "
            "the smoothed labels; for the true ones it is an approximation."
        )
    if carried is None:
        said.append(
            "What the logits of this loss carry is no prior, so they were not moved to the target; "
            "longtail fix --carried measure does it from held-out scores."
        )
    return said


def training_section(
    history: Sequence[Mapping[str, float | None]],
    optimizer: str,
    weight: Tensor,
    counts: Sequence[int],
) -> Section:
    """How training went: its loss, the groups' accuracy, and the norms it left.

    Args:
        history: The rows of the log.
        optimizer: Its name.
        weight: The rows of the head.
        counts: Training images of each class.
    """
    loss = Line(
        "training loss",
        [row["epoch"] or 0.0 for row in history],
        [row["train_loss"] if row["train_loss"] is not None else torch.nan for row in history],
    )
    chart = line_chart([loss], title="Training loss", x_title="epoch", y_title="mean loss")
    figures = [Figure(chart, "Mean loss of each epoch.")]
    if any(row.get(f"val_{name}") is not None for row in history for name in GROUPS):
        curves = group_curves_chart(history)
        figures.append(
            Figure(curves, "Accuracy on the validation part, as trained (as NCM figure 4).")
        )
    norms = weight_norms_chart({optimizer: [(weight_norms(weight), torch.as_tensor(counts))]})
    figures.append(
        Figure(norms, "Do the norms of the weights follow the frequency? (As LA figure 1.)")
    )
    return Section(heading="Training", figures=figures)


def recipe_section(recipe: Recipe) -> Section:
    """What was asked for."""
    rows = [
        [key, _in_words(value)] for key, value in plain(recipe).items() if value not in (None, "")
    ]
    return Section(heading="Recipe", table=Table([Column("key"), Column("value")], rows))


def _in_words(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(
            f"{key} {_in_words(part)}" for key, part in value.items() if part is not None
        )
    if isinstance(value, list | tuple):
        return "; ".join(map(_in_words, value))
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _shown(measured: Interval, factor: float, digits: int, interval: bool = True) -> str:
    if measured.value is None:
        return "none"
    text = f"{factor * measured.value:.{digits}f}"
    if not interval or measured.low is None or measured.high is None:
        return text
    return f"{text} [{factor * measured.low:.{digits}f}, {factor * measured.high:.{digits}f}]"
