"""The result of a training run in words, tables and a page."""

from __future__ import annotations

from collections.abc import Mapping
from math import nan
from typing import TYPE_CHECKING, Any

from longtail.core.scores import Split
from longtail.report.charts.lines import Line, line_chart
from longtail.report.figures import group_curves_chart, weight_norms_chart
from longtail.report.figures.classes import GROUPS
from longtail.report.figures.measured import measured_chart
from longtail.report.names import (
    ACCURACIES,
    HEADLINES,
    groups_in_words,
    percent,
    with_interval,
)
from longtail.report.page import Column, Figure, Footer, Page, Section, Table
from longtail.report.pages.first_screen import tau_in_words
from longtail.report.pages.priors import shifted_sections
from longtail.report.pages.scores import scores_page

if TYPE_CHECKING:
    from longtail.flows.train.result import TrainResult
    from longtail.flows.train.train import TrainingPlan

_CROSS_FITTED = (
    "There is no test part: each fifth of the validation part is judged by what the others chose."
)
_CARRIED = {
    "unknown": "no known prior",
    "uniform": "the uniform prior",
    "train": "the training prior",
    "other": "a prior between these or beyond",
}


def train_page(result: TrainResult, footer: Footer) -> Page:
    """The page of `longtail train`."""
    recipe = result.recipe
    own = [
        *(_variants(result, split) for split in result.metrics),
        *shifted_sections(result.shifted_sets),
        *_classes(result),
        _training(result),
        _recipe(result.recipe_values),
    ]
    title = f"longtail train: {result.folder.resolve().name}"
    if result.judgement is None:
        return Page(title, headline(result), own, footer)
    about = f": {recipe.about.rstrip('.')}" if recipe.about else ""
    images = f"{result.num_images:,} images"
    done = f"A model was trained for {recipe.epochs} epochs on {images}{about}."
    return scores_page(
        result.judgement, footer, title=title, done=done, sections=own, written=False
    )


def headline(result: TrainResult) -> str:
    """What came out, in one sentence."""
    text = (
        f"{result.num_images:,} training images of {len(result.model.classes):,} classes, "
        f"{result.recipe.epochs} epochs."
    )
    if result.judged_on is None:
        return f"{text} There is no validation and no test part, so nothing was measured."
    metrics, key = result.metrics[result.judged_on][result.main_variant], result.accuracy
    groups = ", ".join(
        f"{name} {percent(metrics[name].value)}"
        for name in GROUPS
        if name in metrics and metrics[name].value is not None
    )
    text += (
        f" {HEADLINES[key]} on the {result.judged_on} part, {result.main_variant}: "
        f"{with_interval(metrics[key])} % ({groups})."
    )
    return f"{text} {_CROSS_FITTED}" if result.is_cross_fitted else text


def plan_in_words(plan: TrainingPlan) -> list[str]:
    """The lines of `longtail train --dry-run`."""
    numbers = plan._asdict()
    prior, smoothing = _CARRIED[numbers.pop("carried")], numbers.pop("label_smoothing")
    smoothed = f" of labels smoothed by {smoothing:g}" if smoothing else ""
    terms = ", ".join(numbers.pop("terms"))
    unchanged = f"; terms on the features ({terms}) leave that as it is" if terms else ""
    lines = [f"{name.replace('_', ' ')}: {value}" for name, value in numbers.items()]
    return [*lines, f"the logits will carry: {prior}{smoothed}{unchanged}"]


def metric_table(result: TrainResult, split: Split) -> list[list[str]]:
    """The heads of the columns, then a row a variant; in % but for the log-loss."""
    accuracies = result.accuracies[split]
    heads = ["", *(ACCURACIES[key] for key in accuracies), *GROUPS, "log-loss", "ECE"]
    rows = [heads]
    for name, metrics in result.metrics[split].items():
        shares = [*accuracies[1:], *GROUPS]
        loss = metrics["nll"].value
        rows.append(
            [
                name,
                with_interval(metrics[accuracies[0]]),
                *(percent(metrics[key].value) if key in metrics else "none" for key in shares),
                "none" if loss is None else f"{loss:.3f}",
                percent(metrics["ece"].value),
            ]
        )
    return rows


def _variants(result: TrainResult, split: Split) -> Section:
    """Every way to predict, on one part."""
    heads, *rows = metric_table(result, split)
    return Section(
        heading=f"All variants on the {split} part",
        table=Table([Column(name) for name in heads], rows),
        notes=_notes(result) if split == result.judged_on else [],
    )


def _notes(result: TrainResult) -> list[str]:
    notes = [
        "In %, but for the log-loss; in brackets 95 % intervals. Classes count as the target says. "
        + groups_in_words(result.edges)
    ]
    if result.carries_target:
        notes.append("The logits carry the target as they are.")
    if result.recipe.terms:
        names = ", ".join(term.tag for term in result.recipe.terms)
        notes.append(
            f"Terms on the features: {names}. They shape the features; what the logits carry is "
            "what the loss says."
        )
    for variant in result.variants:
        if variant.choice is not None:
            why = tau_in_words(variant.choice)
            notes.append(f"The validation part chose τ = {variant.tau:.3g}.{why}")
        elif variant.norm_tau is not None:
            notes.append(
                f"The weights of {variant.name} are normalised by τ = {variant.norm_tau:.3g}."
            )
    if result.expert_weights is not None:
        weights = ", ".join(f"{weight:.3g}" for weight in result.expert_weights)
        notes.append(f"The validation part lets the experts weigh {weights}.")
    if result.is_cross_fitted:
        notes.append(_CROSS_FITTED)
    if result.trained.carried is None:
        notes.append(
            "What the logits of this loss carry is no prior, so they were not moved to the target; "
            "longtail fix --carried measure does it from validation scores."
        )
    elif smoothing := getattr(result.recipe.loss, "label_smoothing", 0.0):
        notes.append(
            f"Labels were smoothed by {smoothing:g}: the prior that the logits carry is that of "
            "the smoothed labels; for the true ones it is an approximation."
        )
    return notes


def _training(result: TrainResult) -> Section:
    """How training went: its loss, the groups' accuracy, and the norms it left."""
    history = result.trained.history
    loss = Line(
        "training loss",
        [row["epoch"] or 0.0 for row in history],
        [nan if (value := row["train_loss"]) is None else value for row in history],
    )
    chart = line_chart([loss], title="Training loss", x_title="epoch", y_title="mean loss")
    figures = [Figure(chart, "Mean loss of each epoch.")]
    if any(row.get(f"val_{name}") is not None for row in history for name in GROUPS):
        caption = "Accuracy on the validation part, as trained (as NCM figure 4)."
        figures.append(Figure(group_curves_chart(history), caption))
    chart = weight_norms_chart(
        {result.recipe.optimizer.name: [(result.weight_norms, result.counts)]}
    )
    caption = "Do the norms of the weights follow the frequency? (As LA figure 1.)"
    figures.append(Figure(chart, caption))
    return Section(heading="Training", figures=figures)


_CLASS_FIGURES = {
    "mean_probability": (
        "The mean probability of each class on the balanced test part: what follows the training "
        "prior still carries it (as LADE figure 2)."
    ),
    "positive_logit": (
        "The logit of each class on its own samples and on all others. Where classes can be told "
        "apart and logits carry the uniform prior, the former tend to log C (as LADE figure 3)."
    ),
    "bias": "The offset that the last layer has learned for each class (as EO figure 1).",
}


def _classes(result: TrainResult) -> list[Section]:
    """What the network makes of each class; nothing without scores."""
    rows = {name: [measured] for name, measured in result.class_values.items()}
    charts = {
        measure: measured_chart(measure, rows, result.counts, classes=result.model.classes)
        for measure in _CLASS_FIGURES
    }
    figures = [Figure(c, _CLASS_FIGURES[m]) for m, c in charts.items() if c is not None]
    heading = "What the network makes of its classes"
    return [Section(heading=heading, figures=figures)] if figures else []


def _recipe(values: Mapping[str, Any]) -> Section:
    """What was asked for, by the keys of the recipe."""
    rows = [[key, _in_words(value)] for key, value in values.items() if value not in (None, "", [])]
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
