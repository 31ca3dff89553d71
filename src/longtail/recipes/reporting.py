"""Reports after the fact: on a run folder, or on a file of scores, before and after a move."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from longtail.core import Prior, Scores
from longtail.flows.judge import Judgement, judge
from longtail.flows.run_sources import find_sources
from longtail.flows.samples import AS_TRAINED, UNDER_TARGET
from longtail.recipes.training import building
from longtail.recipes.training.model_file import load_model
from longtail.recipes.training.reading import read_recipe
from longtail.recipes.training.run_figures import read_log
from longtail.recipes.training.run_folder import RECIPE
from longtail.recipes.training.run_page import recipe_section, training_section
from longtail.recipes.training.run_scores import adjusted
from longtail.report import Footer, Page, scores_page


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
    judgement: Judgement


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
    judgement = judge(
        before,
        before if move is None else move.move(before),
        target,
        validation=held if "test" in found else None,
        names=(AS_TRAINED, UNDER_TARGET),
        tau=0.0 if move is None else move.tau,
    )
    history = read_log(folder)
    weight, counts = stored.model.head.rows.detach(), stored.counts
    page = scores_page(
        judgement,
        footer,
        title=f"longtail report: {folder.resolve().name}",
        done=f"A model was trained for {recipe.epochs} epochs on {sum(counts):,} images.",
        sections=[
            training_section(history, recipe.optimizer.name, weight, counts),
            recipe_section(recipe),
        ],
        written=False,
    )
    return Report(page, judgement)
