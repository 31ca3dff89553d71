"""A finished run of `longtail train`, read from its folder."""

from __future__ import annotations

import json
import os
from pathlib import Path

from longtail.core import Prior, Scores
from longtail.core.scores import Split
from longtail.engine import load_head
from longtail.engine.training import Trained
from longtail.flows.samples import AS_TRAINED
from longtail.flows.train import building
from longtail.flows.train.model_file import load_model
from longtail.flows.train.result import TrainResult, Variant
from longtail.flows.train.run_folder import METRICS, read_log
from longtail.flows.train.scores import under_target


def read_run(folder: str | os.PathLike[str], command: str = "longtail.report") -> TrainResult:
    """The result of a run, as `train` returned it.

    Args:
        folder: Of the run.
        command: What the page says has made it.
    """
    run = Path(folder)
    scores = _scores(run, "")
    if not scores:
        raise ValueError(
            f"{run} has no scores: the run has not finished, or has no validation and no test "
            "part; start the same longtail train command again, and it goes on"
        )
    stored = load_model(run)
    recipe, carried = stored.recipe, stored.model.carried
    target = building.build_target(recipe, Prior.of(stored.counts))
    moved = under_target(recipe.target, carried, target, scores)
    heads = [
        Variant(name, _scores(run, f"-{name}"), load_head(file).head)
        for file in sorted(run.glob("head-*.safetensors"))
        if (name := file.stem.removeprefix("head-"))
    ]
    metrics = json.loads((run / METRICS).read_text(encoding="utf-8"))
    return TrainResult(
        model=stored,
        folder=run,
        target=target,
        trained=Trained(carried, metrics.get("best_epoch"), read_log(run), finished=True),
        variants=(Variant(AS_TRAINED, scores), *([] if moved is None else [moved]), *heads),
        weight=stored.model.head.rows.detach(),
        command=command,
    )


def _scores(folder: Path, name: str) -> dict[Split, Scores]:
    splits: tuple[Split, ...] = ("validation", "test")
    files = {split: folder / f"scores-{split}{name}.safetensors" for split in splits}
    return {split: Scores.load(file) for split, file in files.items() if file.is_file()}
