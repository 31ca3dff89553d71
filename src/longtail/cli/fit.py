"""`longtail fit`: classifiers on features of a frozen backbone, compared and chosen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from longtail.cli import options
from longtail.cli.command import Command
from longtail.cli.terminal import closing, command, console, echo, print_json, rich_table, status
from longtail.flows import file_names

if TYPE_CHECKING:
    from longtail.core import GroupEdges, Prior
    from longtail.flows.fit_result import Criterion, FitResult


@click.command(
    cls=Command,
    files=file_names.FIT,
    short_help="Fit classifiers on features of a frozen backbone, keep the best.",
)
@click.argument("features", type=options.INPUT_FILE, required=False)
@click.option(
    "--methods",
    default="",
    show_default=False,
    metavar="NAME,...",
    help="Which methods to fit, by name; all but the slow ones by default.",
)
@click.option("--list", "list_methods", is_flag=True, help="Name the methods and stop.")
@options.input_file("--labels", help="The labels of FEATURES, if it is an .npy.")
@options.input_file("--split", help="train, validation or test for each row of an .npy.")
@options.input_file(
    "--unlabelled",
    help="Features of other samples, which follow the target, as an .npy or as FEATURES: methods "
    "that learn from them too are compared. Labels in it are not looked at.",
)
@options.word_or_file(
    "--target", ("uniform", "train"), f"The prior to predict under. {options.PRIOR_FILE}"
)
@options.choice(
    "--criterion",
    ("accuracy_under_target", "balanced_accuracy", "nll"),
    "What the best method is chosen by: accuracy under the target (for the uniform one that "
    "is balanced accuracy), balanced accuracy whatever the target, or log-loss. τ is chosen by the "
    "log-loss if that is it, else by accuracy under the target.",
)
@options.whole_number(
    "--folds",
    5,
    "Parts of the train part to choose by, where there is no validation part.",
    least=2,
)
@options.groups()
@options.seed
@options.output_folder("Folder for model.safetensors, scores, metrics.json and report.html.")
@options.common
def fit(
    features: Path | None,
    methods: str,
    list_methods: bool,
    labels: Path | None,
    split: Path | None,
    unlabelled: Path | None,
    target: Literal["uniform", "train"] | Path,
    criterion: Criterion,
    folds: int,
    groups: GroupEdges | None,
    seed: int,
    output: Path | None,
    as_json: bool,
    quiet: bool,
) -> None:
    """Fit classifiers on FEATURES of a frozen backbone, compare them, and keep the best.

    FEATURES is a feature file of longtail (.safetensors), an .npz with features and labels, or an
    .npy beside --labels. Weight decay, τ and the method are chosen on validation samples, and the
    best is fitted again on the whole train part.
    """
    if list_methods:
        _list(as_json, quiet)
        return
    if features is None or output is None:
        raise click.UsageError("give a file of FEATURES and a folder with -o; --list needs neither")
    with status("Reading", quiet) as say:

        def progress(what: str) -> None:
            say(f"Fitting: {what}")

        from longtail.data import read_features
        from longtail.flows.fit import fit as fit_features
        from longtail.flows.fit_methods import method_names
        from longtail.flows.prior_files import ClassesOf, read_prior
        from longtail.report import save

        try:
            names = method_names(options.listed(methods), unlabelled is not None)
        except ValueError as error:
            raise click.UsageError(str(error)) from error
        data = read_features(features, labels, split)
        goal: Prior | Literal["uniform", "train"]
        if isinstance(target, Path):
            goal = read_prior(target, ClassesOf(features, data.num_classes, data.classes))
        else:
            goal = target

        result = fit_features(
            data,
            unlabelled=unlabelled,
            methods=names,
            target=goal,
            criterion=criterion,
            folds=folds,
            groups=groups,
            seed=seed,
            output=output,
            page=save,
            progress=progress,
            command=command(),
        )
    if as_json:
        print_json(result.as_json())
    else:
        _show(result)
    files = [name for name in file_names.FIT if result.test is not None or name != file_names.TEST]
    closing(output, files, as_json=as_json, quiet=quiet)


def _show(result: FitResult) -> None:
    from longtail.report.names import groups_in_words
    from longtail.report.pages import fit as page

    columns, shown = page.method_columns(result, brief=True), console()
    title = f"{page.accuracy_name(result).capitalize()} (%), best first"
    rows, caption = zip(*columns.values(), strict=True), groups_in_words(result.edges)
    shown.print(rich_table(title, list(columns), rows, caption=caption))
    for sentence in page.sentences(result):
        shown.print(sentence)


def _list(as_json: bool, quiet: bool) -> None:
    with status("Reading", quiet):
        from longtail.flows.fit_methods import METHODS, ONLY_IF_NAMED, UNLABELLED

    if as_json:
        print_json(
            [
                {
                    "name": name,
                    "title": each.title,
                    "only_if_named": name in ONLY_IF_NAMED,
                    "needs_unlabelled": name in UNLABELLED,
                }
                for name, each in METHODS.items()
            ]
        )
        return
    notes = dict.fromkeys(ONLY_IF_NAMED, "  (only if named)")
    notes |= dict.fromkeys(UNLABELLED, "  (with --unlabelled)")
    for name, method in METHODS.items():
        echo(f"{name:22} {method.title}{notes.get(name, '')}")
