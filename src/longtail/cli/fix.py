"""`longtail fix`: adjust the scores of a trained model, by what validation scores say."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from longtail.cli import options
from longtail.cli.command import Command
from longtail.cli.score_inputs import ScoreOptions, read_target, score_options
from longtail.cli.terminal import (
    bars,
    closing,
    command,
    console,
    print_json,
    report_table,
    rich_table,
)
from longtail.flows import file_names

if TYPE_CHECKING:
    from longtail.flows.fix_result import FixResult


@click.command(
    cls=Command,
    files=file_names.FIX_ALL,
    short_help="Adjust the scores of a trained model, by validation scores.",
)
@click.argument("scores", type=options.INPUT_FILE)
@options.input_file("--apply", "to_apply", help="Other scores of the same model to adjust.")
@options.input_file("--with", "adjuster", help="An adjuster.json: apply it, fit nothing.")
@options.input_file(
    "--unlabelled",
    help="Other scores of the same model, of samples that follow the target: what the logits carry "
    "is measured on them. Labels in it are not looked at; it may be the file of --apply.",
)
@options.input_file(
    "--features",
    help="The features of --apply, for --target estimate: what the model says of a sample is "
    "smoothed over its neighbours.",
)
@options.input_file("--validation-features", help="The features of SCORES, for --features.")
@score_options
@options.input_file("--apply-labels", help="The labels of --apply, for the comparison.")
@options.word_or_file(
    "--target",
    ("uniform", "source", "estimate"),
    "The prior to move to; source stays and only calibrates; estimate finds that of --apply. "
    + options.PRIOR_FILE,
)
@click.option(
    "--tau", default="auto", metavar="auto|NUMBER", help="How far to move: 1 is all the way."
)
@options.choice(
    "--criterion", ("accuracy_under_target", "nll", "brier", "ece"), "What τ is chosen by."
)
@options.choice(
    "--calibrate",
    ("auto", "temperature", "bias", "vector", "none"),
    "What is fitted before the move: a temperature, also a bias a class, also a scale a "
    "class. auto is temperature, and bias where the target is estimated.",
)
@options.input_file(
    "--costs",
    help="What mistakes cost: a table or JSON of a class and its cost, or a matrix of true and "
    "decided classes. The adjusted scores are decided by it.",
)
@click.option("--abstain", type=click.FloatRange(0), help="What it costs not to decide.")
@click.option(
    "--sets",
    type=click.FloatRange(0, 1, min_open=True),
    metavar="SHARE",
    help="Also make sets of classes that hold the true one so often, such as 0.9.",
)
@options.choice(
    "--sets-mode",
    ("tail", "marginal", "class"),
    "What sets cover so often: samples under the target, with classes nearly alike; samples, and "
    "no more; every class, by large sets.",
)
@options.groups()
@options.seed
@options.output_folder(
    "Folder for scores.safetensors, adjuster.json, metrics.json and report.html; for sets.json and "
    "decisions.csv, if they are asked for.",
    required=True,
)
@options.common
def fix(
    scores: Path,
    to_apply: Path | None,
    adjuster: Path | None,
    unlabelled: Path | None,
    features: Path | None,
    validation_features: Path | None,
    reader: ScoreOptions,
    apply_labels: Path | None,
    target: str | Path,
    tau: str,
    output: Path,
    as_json: bool,
    quiet: bool,
    **choices: Any,
) -> None:
    """Fix a trained model: fit on the validation SCORES, and adjust them or those of --apply.

    SCORES is an .npz, .npy, .safetensors, .csv, .tsv (also .gz) or .parquet file with a row a
    sample and a column a class, of logits or probabilities.
    """
    strength = _tau(tau)
    _check_used(adjuster is not None, target, strength, to_apply, unlabelled)
    with bars(quiet) as bar:
        say = partial(bar.update, bar.add_task("Reading", total=None, detail=""))

        def progress(done: int) -> None:
            say(description="Rows", advance=done)

        if adjuster is not None:
            result = _again(scores, adjuster, reader, output, choices, say, progress)
        else:
            from longtail.flows.fix import fix
            from longtail.report import save

            table = reader.open(scores)
            counts = reader.read_counts(table)
            others = None
            if to_apply is not None:
                others = reader.open_others(to_apply, apply_labels, table)
            followers = None
            if unlabelled is not None:
                followers = reader.open_others(unlabelled, None, table)
            say(description="Fitting", total=(others or table).num_rows)
            result = fix(
                table,
                others,
                counts,
                read_target(target, table),
                unlabelled=followers,
                features=features,
                validation_features=validation_features,
                output=output,
                page=save,
                carried=reader.read_carried(table),
                tau=strength,
                criterion=choices["criterion"],
                calibration=choices["calibrate"],
                zeros=reader.zeros,
                groups=choices["groups"],
                costs=choices["costs"],
                abstain=choices["abstain"],
                sets=choices["sets"],
                sets_mode=choices["sets_mode"],
                seed=choices["seed"],
                progress=progress,
                command=command(),
            )
    if as_json:
        print_json(result.as_json())
    else:
        _show(result)
    closing(output, result.files, as_json=as_json, quiet=quiet)


def _again(
    scores: Path,
    adjuster: Path,
    reader: ScoreOptions,
    output: Path,
    choices: Mapping[str, Any],
    say: Callable[..., None],
    progress: Callable[[int], None],
) -> FixResult:
    """What was fitted before, applied to scores of the same model."""
    from longtail.flows.fix import fix_again
    from longtail.posthoc import load_adjusters
    from longtail.report import save

    stored = load_adjusters(adjuster)
    table = reader.open(scores, stored.classes)
    say(total=table.num_rows)
    return fix_again(
        table,
        stored,
        reader.read_counts(table),
        output=output,
        page=save,
        groups=choices["groups"],
        costs=choices["costs"],
        abstain=choices["abstain"],
        progress=progress,
        command=command(),
    )


def _check_used(
    again: bool,
    target: str | Path,
    tau: float | None,
    to_apply: Path | None,
    unlabelled: Path | None,
) -> None:
    """A usage error for an option that says something nobody would look at."""
    if again and to_apply is not None:
        raise click.UsageError("--with applies a fix to SCORES itself; leave --apply out")
    if target == "estimate" and unlabelled is not None:
        raise click.UsageError(
            "--unlabelled is of samples that follow a known target, and --target estimate finds "
            "that of --apply; leave one of them out"
        )
    context = click.get_current_context()
    fitted = ("criterion", "calibrate", "seed", "unlabelled", "sets", "sets_mode")
    others = ("carried", "apply_labels", "costs", "abstain", "features", "validation_features")
    named = {
        name
        for name in ("target", "tau", *fitted, *others)
        if context.get_parameter_source(name) is ParameterSource.COMMANDLINE
    }
    unused, where = set[str](), ""
    if again:
        unused = named - {"costs", "abstain"}
        where = "with --with, which fits nothing"
    elif target in ("source", "estimate"):
        unused = named & {"tau", "criterion"}
        where = f"with --target {target}, where there is no τ to choose"
    elif unlabelled is not None:
        unused = named & {"tau", "criterion"}
        where = "with --unlabelled, which says how far to move"
    elif tau is not None:
        unused, where = named & {"criterion"}, f"with --tau {tau:g}, where there is no τ to choose"
    of_features = named & {"features", "validation_features"}
    if of_features and target != "estimate" and not again:
        unused, where = of_features, "without --target estimate"
    for name in sorted(unused):
        raise click.UsageError(f"--{name.replace('_', '-')} is not used {where}; leave it out")
    pairs = (("features", "validation_features"), ("validation_features", "features"))
    for name, other in (("abstain", "costs"), ("sets_mode", "sets"), *pairs):
        if name in named and other not in named:
            given, missing = (each.replace("_", "-") for each in (name, other))
            raise click.UsageError(f"--{given} goes with --{missing}; give both")
    if "apply_labels" in named and to_apply is None:
        raise click.UsageError("--apply-labels is for --apply; give both, or neither")


def _tau(tau: str) -> float | None:
    if tau == "auto":
        return None
    with suppress(ValueError):
        if math.isfinite(strength := float(tau)):
            return strength
    raise click.UsageError(f"--tau is a number or auto, got {tau!r}")


def _show(result: FixResult) -> None:
    from longtail.report.names import groups_in_words
    from longtail.report.pages import fix as text
    from longtail.report.pages.decisions import decision_sections
    from longtail.report.pages.first_screen import metric_rows, warning

    shown, judgement = console(), result.judgement
    if judgement is not None and (doubt := warning(judgement.sanity, text.remedy_of(result))):
        shown.print(f"{doubt}\n", style="bold")
    if doubt := text.shift_in_words(result):
        shown.print(f"{doubt}\n", style="bold" if result.shift else None)
    for step in text.steps_in_words(result):
        shown.print(f"• {step}")
    if judgement is not None:
        title = f"\nMeasured on {text.measured_on(result)}"
        heads = ("metric", "before", "after", "")
        caption = groups_in_words(judgement.samples.edges) if judgement.samples.shot_groups else ""
        shown.print(rich_table(title, heads, metric_rows(judgement), caption=caption))
    for section in decision_sections(result):
        if section.table is not None:
            shown.print(report_table(f"\n{section.heading}", section.table))
        for sentence in section.paragraphs:
            shown.print(sentence)
    if absent := text.absent_in_words(result):
        shown.print(absent)
    shown.print(text.headline(result))
