"""`longtail doctor`, what is installed here and what to mend; `longtail completion` for shells."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from click.shell_completion import get_completion_class

from longtail.cli import options
from longtail.cli.command import Command
from longtail.cli.errors import FAILURE
from longtail.cli.terminal import console, echo, print_json, rich_table, status

if TYPE_CHECKING:
    from longtail.flows.doctor import Checkup, Machine, Package, Torch

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


@click.command(cls=Command, short_help="Say what is installed, what it can do here, what to mend.")
@options.common
@click.pass_context
def doctor(ctx: click.Context, as_json: bool, quiet: bool) -> None:
    """Say what is installed, what it can do here, and what to mend.

    Exits with 1 if something that longtail needs is missing or broken.
    """
    from longtail.flows.doctor import check_up

    with status("Looking", quiet) as say:

        def progress(what: str) -> None:
            say(f"Looking at {what}")

        checkup = check_up(progress)
    if as_json:
        print_json(checkup.as_json())
    else:
        _show(checkup)
    ctx.exit(0 if checkup.is_well else FAILURE)


def _show(checkup: Checkup) -> None:
    shown = console()
    title = f"longtail {checkup.version}, Python {checkup.python}, {checkup.platform}"
    shown.print(title, style="bold")
    rows = [(package.name, _version(package), package.gives) for package in checkup.packages]
    shown.print(rich_table("\nPackages", ("package", "version", "for"), rows, left=3))
    facts = _torch_rows(checkup.torch) + _machine_rows(checkup.machine)
    facts += [(name, value or "not set") for name, value in checkup.settings.items()]
    shown.print(rich_table("\nHere", ("what", "found"), facts, left=2))
    if not checkup.problems:
        shown.print("\nNothing to mend.")
        return
    shown.print("\nWhat to mend", style="bold")
    for problem in checkup.problems:
        role = "" if problem.is_fatal else " (longtail works without)"
        shown.print(f"• {problem.what}{role}\n  {problem.remedy}", soft_wrap=True)


def _version(package: Package) -> str:
    if package.version is None:
        extra = "" if package.extra is None else f"; longtail[{package.extra}]"
        return f"not installed{extra}"
    return package.version if package.state == "works" else f"{package.version}, {package.state}"


def _torch_rows(torch: Torch | None) -> list[tuple[str, str]]:
    if torch is None:
        return [("torch", "none here: audit, fix, report and compare work, what trains does not")]
    built = "without CUDA" if torch.cuda_build is None else f"for CUDA {torch.cuda_build}"
    gpus = ", ".join(torch.cuda) or f"none (torch built {built})"
    return [
        ("trains on", "cuda" if torch.cuda else "cpu"),
        ("torch threads", str(torch.threads)),
        ("CPU instructions", torch.cpu),
        ("CUDA", gpus),
        ("Apple GPU", "there, not used" if torch.mps else "none"),
        ("several processes", ", ".join(torch.backends) or "not in this torch"),
        ("torch.compile", torch.compiler or "no C++ compiler found"),
    ]


def _machine_rows(machine: Machine) -> list[tuple[str, str]]:
    return [
        ("cores", str(machine.cores)),
        ("memory", f"{_size(machine.memory)}, {_size(machine.memory_free)} free"),
        ("shared memory", f"{_size(machine.shared_memory)} free"),
        *(
            (f"{folder.role} folder", f"{folder.path}, {_size(folder.free)} free")
            for folder in (machine.temporary, machine.current)
        ),
    ]


def _size(number: int | None) -> str:
    return "not known" if number is None else f"{number / 2**30:.1f} GB"


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
        install = _INSTALL[shell].replace("\n", ", ")
        print_json({"shell": shell, "script": script, "install": install})
    else:
        echo(script)
