"""`longtail split`: lists of SUN397 in its long-tailed split."""

from __future__ import annotations

from pathlib import Path

import click

from longtail.cli import options, terminal
from longtail.cli.command import Command
from longtail.flows import file_names


@click.command(
    cls=Command,
    files=file_names.LISTS,
    short_help="Write the lists of SUN397's long-tailed split.",
)
@click.argument("images", type=options.INPUT)
@options.seed
@options.output_folder("Folder for train.txt, val.txt, test.txt and classes.txt.", required=True)
@options.common
def split(images: Path, seed: int, output: Path, as_json: bool, quiet: bool) -> None:
    """Cut IMAGES, the folder of SUN397, into the long-tailed split that EO reports on.

    Of a class of n images half less 49 are to train on, a tenth less 9 for validation, and 40 for
    the test: 1 to 1,132 to train on. The lists can go to the folder of the images itself, where
    the recipes sun397-eo and sun397-eo-baseline look for them.
    """
    with terminal.status("Reading names", quiet):
        from longtail.flows.split import split as split_images

        result = split_images(images, seed)
        with terminal.writing(output) as aside:
            result.write(aside)
    if as_json:
        terminal.print_json(result.as_json())
    else:
        for name, size in result.sizes.items():
            terminal.echo(
                f"{name}: {size.images:,} images, {size.smallest:,} to {size.largest:,} a class"
            )
    terminal.closing(output, file_names.LISTS, as_json=as_json, quiet=quiet)
