"""The folder of a run: its recipe and versions, and whether it is the run that is asked for.

What is wrong with a folder is told without importing torch.
"""

from __future__ import annotations

import csv
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from longtail import __version__
from longtail.flows.file_names import LOG, METRICS, RECIPE, VERSIONS
from longtail.flows.results import write_json
from longtail.flows.train.reading import RecipeError, plain, read_recipe_file
from longtail.flows.train.recipe import Data, HuggingFace, Recipe
from longtail.flows.train.yaml_text import write_yaml

CHECKPOINT = "checkpoint"
RECIPE_NAME = "recipe"  # the key of VERSIONS under which it is
_PACKAGES = ("torch", "numpy", "safetensors", "msgspec", "pyyaml", "pillow", "torchvision", "timm")
# Change nothing of what is learned.
_FREE = (
    *("about", "source", "num_workers", "compile", "parallel", "checkpoint_every", "tensorboard"),
    "groups",
)


def check_data(data: Data) -> str:
    """Where the images are; a RecipeError unless the recipe says so, and there is something."""
    if data.path is None:
        raise RecipeError(
            "the recipe does not say where the images are: give --data PATH, or data.path=PATH"
        )
    # A Hugging Face set may be a name on the hub.
    if not isinstance(data, HuggingFace) and not os.path.exists(data.path):
        raise RecipeError(f"there is no {data.path}; say where the images are with --data")
    return data.path


def check_folder(folder: Path, recipe: Recipe, resume: Literal["auto", "never"] = "auto") -> bool:
    """Whether there is a run of this recipe to go on with; a RecipeError if it is of another."""
    if folder.exists() and not folder.is_dir():
        raise RecipeError(f"{folder} is a file; the run needs a folder")
    # What broke off before its first checkpoint left nothing to go on with, or to lose.
    if not (folder / RECIPE).is_file() or not (folder / CHECKPOINT).exists():
        if (folder / METRICS).exists():
            raise RecipeError(
                f"{folder} holds results without the checkpoint they came from; take another "
                "folder, or remove this one"
            )
        return False
    if resume == "never":
        raise RecipeError(
            f"{folder} holds a run already; take another folder, or go on with --resume auto"
        )
    from longtail.core.nested import differences, flat  # core imports NumPy

    before, after = (task_values(r) for r in (read_recipe_file(folder / RECIPE), recipe))
    differing = differences(flat(before), flat(after))
    if differing:
        changes = [f"{key}: {old!r} there, {new!r} now" for key, (old, new) in differing.items()]
        raise RecipeError(
            f"{folder} holds a run of another recipe; take another folder: "
            f"{'; '.join(changes[:10])}"
        )
    return True


def task_values(recipe: Recipe) -> dict[str, Any]:
    """What of a recipe decides what is learned; where the data lie does not."""
    values = {key: value for key, value in plain(recipe).items() if key not in _FREE}
    values["data"] = {key: value for key, value in values["data"].items() if key != "path"}
    return values


def write_start(folder: Path, recipe: Recipe, name: str, command: str) -> None:
    """The recipe, its name, the command and the versions, before anything is trained."""
    from longtail.core.files import written_whole

    folder.mkdir(parents=True, exist_ok=True)
    if not is_recipe_of(folder, recipe):
        with written_whole(folder / RECIPE) as part:
            part.write_text(write_yaml(plain(recipe)), encoding="utf-8")
    write_json(folder / VERSIONS, {RECIPE_NAME: name, "command": command} | versions())


def is_recipe_of(folder: Path, recipe: Recipe) -> bool:
    """Whether the folder holds just this recipe."""
    file = folder / RECIPE
    written = file.read_text(encoding="utf-8") if file.is_file() else None
    return written == write_yaml(plain(recipe))


def versions() -> dict[str, str | int]:
    """Of longtail and what it stands on, and how many threads compute."""
    import torch

    values: dict[str, str | int] = {
        "longtail": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "threads": torch.get_num_threads(),
        "processes": int(os.environ.get("WORLD_SIZE", "1")),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
    }
    for name in _PACKAGES:
        try:
            values[name] = version(name)
        except PackageNotFoundError:
            continue
    return values


def read_log(folder: str | os.PathLike[str]) -> list[dict[str, float | None]]:
    """The rows of a run's log.csv; empty cells are None."""
    from longtail.data.tables.errors import reading

    file = Path(folder) / LOG
    if not file.is_file():
        raise FileNotFoundError(f"there is no {file}; give a run folder of `longtail train`")
    with reading(file, "the log of a run"), file.open(newline="", encoding="utf-8") as opened:
        return [
            {key: float(value) if value else None for key, value in row.items()}
            for row in csv.DictReader(opened)
        ]
