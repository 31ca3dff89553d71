"""Reports after the fact: on a run folder, or on a file of scores, before and after a move."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from longtail.core import Prior, Scores
from longtail.flows.run_sources import find_sources
from longtail.recipes.training import building
from longtail.recipes.training.model_file import load_model
from longtail.recipes.training.reading import read_recipe
from longtail.recipes.training.run_figures import read_log
from longtail.recipes.training.run_folder import RECIPE
from longtail.recipes.training.run_page import recipe_section, training_section
from longtail.recipes.training.run_scores import adjusted
from longtail.report import Footer, Judged, Page, scores_page
from longtail.report.judged import AS_TRAINED, UNDER_TARGET


def single_run(paths: Sequence[Path]) -> Path | None:
    """The run folder of train, or the file of scores, if the paths hold just one; else None."""
    if len(paths) == 1 and paths[0].is_file():
        return paths[0]
    sources, _ = find_sources(paths)
    folders = {source.scores.parent for source in sources}
    folder = folders.pop()
    if not folders and (folder / RECIPE).is_file():
        return folder
    return sources[0].scores if len(sources) == 1 else None


class Report(NamedTuple):
    """A page, and the samples it is on."""

    page: Page
    judged: Judged


def run_folder_report(folder: Path, footer: Footer) -> Report:
    """The report on a finished run of `longtail train`, from what its folder holds."""
    recipe = read_recipe(folder / RECIPE)
    found = {
        split: Scores.load(folder / f"scores-{split}.safetensors")
        for split in ("test", "validation")
        if (folder / f"scores-{split}.safetensors").is_file()
    }
    if not found:
        raise ValueError(
            f"{folder} has no scores: the run has not finished, or has no validation and no test "
            "part; start the same longtail train command again, and it goes on"
        )
    stored = load_model(folder)
    target = building.build_target(recipe, Prior.of(stored.counts))
    before, held = next(iter(found.values())), found.get("validation")
    move = adjusted(recipe.target, before.carried, target, held)
    judged = Judged(
        before,
        before if move is None else move.move(before),
        target,
        held if "test" in found else None,
        names=(AS_TRAINED, UNDER_TARGET),
        tau=0.0 if move is None else move.tau,
    )
    history = read_log(folder)
    weight, counts = stored.model.head.rows.detach(), stored.counts
    page = scores_page(
        judged,
        footer,
        title=f"longtail report: {folder.resolve().name}",
        done=f"A model was trained for {recipe.epochs} epochs on {sum(counts):,} images.",
        sections=[
            training_section(history, recipe.optimizer.name, weight, counts),
            recipe_section(recipe),
        ],
        written=False,
    )
    return Report(page, judged)


def scores_report(
    name: str, before: Scores, after: Scores | None, target: Prior, footer: Footer
) -> Report:
    """The report on scores: beside them those after, or where it is known how, them moved.

    Args:
        name: Where the scores are from.
        before: Scores with labels.
        after: Scores of the same samples after something was done, if there are any.
        target: The prior to look under.
        footer: Where the page comes from.
    """
    done, moved, tau = f"Scores of {name}.", after, None
    if moved is not None:
        done = f"Scores of {name}, before and after."
    elif before.carried is not None and not before.carried.is_close(target):
        moved, tau = before.under(target), 1.0
        done = f"Scores of {name}, as they are and moved from the prior they carry to the target."
    if moved is None:
        judged = Judged(before, before, target, names=("as they are", "as they are"), tau=0.0)
    else:
        judged = Judged(before, moved, target, tau=tau)
    page = scores_page(
        judged, footer, title="longtail report", done=done, written=after is not None
    )
    return Report(page, judged)
