"""The command line. One small file per command; torch is imported only when a command runs."""

import os
import sys

import click

from longtail import __version__
from longtail.cli.audit import audit
from longtail.cli.demo import demo
from longtail.cli.features import features
from longtail.cli.fit import fit
from longtail.cli.fix import fix
from longtail.cli.recipes import recipes
from longtail.cli.train import train


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="longtail")
def app() -> None:
    """Classifiers for long-tailed labels: train, fix, compare and report."""


app.add_command(audit)
app.add_command(demo)
app.add_command(features)
app.add_command(fit)
app.add_command(fix)
app.add_command(recipes)
app.add_command(train)


def main() -> None:
    """Run the command line. Exit 0 is fine, 1 a failure, 2 wrong usage, 130 an interrupt."""
    # Spinning threads slow each other down several times over on a few shared cores. It must be
    # set before torch is imported.
    os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
    try:
        sys.exit(app.main(standalone_mode=False))
    except click.exceptions.Exit as done:
        sys.exit(done.exit_code)
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted.", err=True)
        sys.exit(130)
    except (ValueError, OSError, ImportError) as error:  # an ImportError names the missing extra
        click.echo(f"Error: {error}", err=True)
        sys.exit(1)
