"""`longtail features`: what a trained backbone makes of images, in one file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Literal

import click


@click.command()
@click.argument("model", type=click.Path(path_type=Path), metavar="RUN|MODEL")
@click.argument("data", type=click.Path())
@click.argument("settings", nargs=-1, metavar="[KEY=VALUE]...")
@click.option(
    "--batch-norm",
    type=click.Choice(["keep", "reestimate"]),
    default="keep",
    show_default=True,
    help="Batch-norm statistics as training left them, or estimated anew on the training images.",
)
@click.option("--batch-size", type=click.IntRange(min=1), default=256, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    required=True,
    metavar="FILE",
    help="The .safetensors file to write; longtail fit reads it.",
)
def features(
    model: Path,
    data: str,
    settings: tuple[str, ...],
    batch_norm: Literal["keep", "reestimate"],
    batch_size: int,
    as_json: bool,
    output: Path,
) -> None:
    """Write the features of DATA by the backbone of a run, all parts in one file.

    RUN is a folder of `longtail train`, MODEL its model.safetensors. DATA is read as the recipe of
    the run says, with the same cut and the same held-out part; KEY=VALUE changes that:
    data.kind=folder data.size=224, data.held_out=0.
    """
    from longtail.recipes.training.checking import RecipeError
    from longtail.recipes.training.extract import extract_features

    if output.suffix.lower() != ".safetensors":
        raise click.UsageError(f"{output} must end in .safetensors to take features; rename it")
    try:
        found = extract_features(
            model, data, output, settings, batch_norm=batch_norm, batch_size=batch_size
        )
    except RecipeError as error:
        raise click.UsageError(str(error)) from None
    sizes = {split: len(part.labels) for split, part in found.parts.items()}
    said = {"file": str(output), "dim": found.dim, "classes": found.num_classes, "parts": sizes}
    if as_json:
        click.echo(json.dumps(said, indent=2))
        return
    listed = ", ".join(f"{number:,} of {split}" for split, number in sizes.items())
    click.echo(f"{output}: {found.dim} numbers for each of {listed}")
