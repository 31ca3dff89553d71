"""The folder of a run: its recipe and versions, and whether it is the run that is asked for.

What is wrong with a folder is told without importing torch.
"""

from __future__ import annotations

import csv
import os
import platform
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from longtail import __version__
from longtail.flows.json_text import write_json
from longtail.flows.train.checking import RecipeError, plain
from longtail.flows.train.data_sets import Data, HuggingFace
from longtail.flows.train.reading import read_recipe_file
from longtail.flows.train.recipe import Recipe
from longtail.flows.train.yaml_text import write_yaml

RECIPE, VERSIONS, METRICS, LOG = "recipe.yaml", "versions.json", "metrics.json", "log.csv"
CHECKPOINT = "checkpoint"
RECIPE_NAME = "recipe"  # the key of VERSIONS under which it is
_PACKAGES = ("torch", "numpy", "safetensors", "msgspec", "pyyaml", "pillow", "torchvision", "timm")
# Change nothing of what is learned.
_FREE = (
    "about",
    "source",
    "num_workers",
    "compile",
    "parallel",
    "checkpoint_every",
    "tensorboard",
)


def check_data(data: Data) -> str:
    """Where the images are; a RecipeError unless the recipe says so, and there is something."""
    if data.path is None:
        raise RecipeError(
            "the recipe does not say where the images are: give --data PATH, or data.path=PATH"
        )
    # A Hugging Face set may be a name on the hub.
    if not isinstance(data, HuggingFace) and not os.path.exists(data.path):
        raise RecipeError(f"there is no {data.path}; give the place of the images with --data")
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
    before = _flat(task_values(read_recipe_file(folder / RECIPE)))
    after = _flat(task_values(recipe))
    differing = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    if differing:
        changes = [f"{key}: {before.get(key)!r} there, {after.get(key)!r} now" for key in differing]
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


def write_start(folder: Path, recipe: Recipe, name: str) -> None:
    """The recipe, its name and the versions, before anything is trained."""
    folder.mkdir(parents=True, exist_ok=True)
    if not is_recipe_of(folder, recipe):
        write_text(folder / RECIPE, write_yaml(plain(recipe)))
    write_json(folder / VERSIONS, {RECIPE_NAME: name} | versions())


def is_recipe_of(folder: Path, recipe: Recipe) -> bool:
    """Whether the folder holds just this recipe."""
    place = folder / RECIPE
    written = place.read_text(encoding="utf-8") if place.is_file() else None
    return written == write_yaml(plain(recipe))


def versions() -> dict[str, str | int]:
    """Of longtail and what it stands on, and how many threads compute."""
    import torch

    found: dict[str, str | int] = {
        "longtail": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "threads": torch.get_num_threads(),
        "processes": int(os.environ.get("WORLD_SIZE", "1")),
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "command": " ".join(sys.argv),
    }
    for name in _PACKAGES:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def read_log(folder: str | os.PathLike[str]) -> list[dict[str, float | None]]:
    """The rows of a run's log.csv; empty cells are None."""
    from longtail.data.tables.errors import reading

    place = Path(folder) / LOG
    if not place.is_file():
        raise FileNotFoundError(f"there is no {place}; give a run folder of `longtail train`")
    with reading(place, "the log of a run"), place.open(newline="", encoding="utf-8") as file:
        return [
            {key: float(value) if value else None for key, value in row.items()}
            for row in csv.DictReader(file)
        ]


def write_text(place: Path, text: str) -> None:
    """A text file, whole or not at all."""
    from longtail.core.files import written_whole  # the package imports torch

    with written_whole(place) as part:
        part.write_text(text, encoding="utf-8")


def _flat(tree: Mapping[str, Any]) -> dict[str, Any]:
    return dict(_pairs(tree, ""))


def _pairs(tree: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in tree.items():
        if isinstance(value, Mapping):
            yield from _pairs(value, f"{prefix}{key}.")
        else:
            yield prefix + key, list(value) if isinstance(value, tuple) else value
