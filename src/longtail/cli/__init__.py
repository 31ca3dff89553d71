"""The command line. A command is a small function; torch is imported only when one runs."""

from typing import NoReturn

import click

from longtail import __version__
from longtail.cli.app import App, run
from longtail.cli.audit import audit
from longtail.cli.compare import compare
from longtail.cli.demo import demo
from longtail.cli.doctor import completion, doctor
from longtail.cli.fit import fit
from longtail.cli.fix import fix
from longtail.cli.report import report
from longtail.cli.reproduce import reproduce
from longtail.cli.split import split
from longtail.cli.sweep import sweep
from longtail.cli.train import features, recipes, train

_SETTINGS = {"help_option_names": ["-h", "--help"], "show_default": True}


@click.group(cls=App, context_settings=_SETTINGS)
@click.version_option(__version__, prog_name="longtail")
def app() -> None:
    """Classifiers for long-tailed labels: train, fix, compare and report."""


_COMMANDS = (
    *(audit, compare, completion, demo, doctor, features, fit, fix),
    *(recipes, report, reproduce, split, sweep, train),
)
for each in _COMMANDS:
    app.add_command(each)


def main() -> NoReturn:
    """Run the command line, and exit as errors.py says."""
    run(app)
