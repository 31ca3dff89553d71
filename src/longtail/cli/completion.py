"""`longtail completion`: the script by which a shell completes commands, options and names."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem, get_completion_class

from longtail.cli import options
from longtail.cli.command import Command
from longtail.cli.outputs import print_json
from longtail.cli.terminal import echo

_INSTALL = {
    "bash": "longtail completion bash > ~/.longtail-complete.bash\n"
    "and in ~/.bashrc: source ~/.longtail-complete.bash",
    "zsh": "longtail completion zsh > ~/.longtail-complete.zsh\n"
    "and in ~/.zshrc, after compinit: source ~/.longtail-complete.zsh",
    "fish": "longtail completion fish > ~/.config/fish/completions/longtail.fish",
}
# After \b click keeps lines as they are.
_HELP = "Print the script that completes longtail in SHELL: bash, zsh or fish.\n\n\b\n" + "\n".join(
    _INSTALL.values()
)


@click.command(
    cls=Command, help=_HELP, short_help="Print the script that completes longtail in a shell."
)
@click.argument("shell", type=click.Choice(list(_INSTALL)), metavar="SHELL")
@options.common
@click.pass_context
def completion(ctx: click.Context, shell: str, as_json: bool, quiet: bool) -> None:
    """Print the script that completes longtail in a shell."""
    kind = get_completion_class(shell)
    assert kind is not None  # click has all three
    script = kind(ctx.find_root().command, {}, "longtail", "_LONGTAIL_COMPLETE").source()
    if as_json:
        print_json(
            {"shell": shell, "script": script, "install": _INSTALL[shell].replace("\n", ", ")}
        )
    else:
        echo(script)


def recipe_names(
    ctx: click.Context, param: click.Parameter, incomplete: str
) -> list[CompletionItem]:
    """The recipes whose names begin so; files where there are none."""
    from longtail.recipes.catalogue import RECIPES

    return options.names_or_files(sorted(RECIPES), incomplete)
