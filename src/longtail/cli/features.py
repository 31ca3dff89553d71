"""`longtail features`: what a trained backbone makes of images, in one file."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

import click

from longtail.cli import options
from longtail.cli.command import Command
from longtail.cli.terminal import echo, print_json, status


@click.command(cls=Command, short_help="Write the features of images by the backbone of a run.")
@click.argument("model", type=options.INPUT, metavar="RUN|MODEL")
@click.argument("data", type=click.Path())
@click.argument("settings", nargs=-1, metavar="[KEY=VALUE]...")
@options.choice(
    "--batch-norm",
    ("keep", "reestimate"),
    "Batch-norm statistics as training left them, or estimated anew on the training images.",
)
@options.whole_number("--batch-size", 256, "Images at a time.")
@options.output_file("The .safetensors file to write; longtail fit reads it.")
@options.common
def features(
    model: Path,
    data: str,
    settings: tuple[str, ...],
    batch_norm: Literal["keep", "reestimate"],
    batch_size: int,
    output: Path,
    as_json: bool,
    quiet: bool,
) -> None:
    """Write the features of DATA by the backbone of a run, all parts in one file.

    RUN is a folder of `longtail train`, MODEL its model.safetensors. DATA is read as the recipe of
    the run says, with the same cut and the same validation part; KEY=VALUE changes that:
    data.kind=folder data.size=224, data.held_out=0.
    """
    if output.suffix.lower() != ".safetensors":
        raise click.UsageError(f"{output} must end in .safetensors to take features; rename it")
    with status("Computing features", quiet):
        from longtail.flows.features import features as extract

        written = extract(
            model, data, output, settings, batch_norm=batch_norm, batch_size=batch_size
        )
    sizes = {split: len(part.labels) for split, part in written.parts.items()}
    if as_json:
        numbers = {"dim": written.dim, "classes": written.num_classes, "parts": sizes}
        print_json({"file": str(output)} | numbers)
        return
    listed = ", ".join(f"{number:,} of {split}" for split, number in sizes.items())
    echo(f"{output}: {written.dim} numbers for each of {listed}")
