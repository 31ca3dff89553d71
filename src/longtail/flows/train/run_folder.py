"""The folder of a run: its recipe and versions, and whether it is the run that is asked for.

A wrong folder is refused without importing torch.
"""

from __future__ import annotations

import csv
import hashlib
import json
import os
import platform
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, Literal

from longtail import __version__
from longtail.flows.file_names import LOG, METRICS, MODEL, RECIPE, TRAIN, VERSIONS
from longtail.flows.generation import check_kind, is_run
from longtail.flows.results import write_json
from longtail.flows.train.reading import RecipeError, plain, read_recipe_file
from longtail.flows.train.recipe import Data, HuggingFace, ImageFolder, Recipe
from longtail.flows.train.yaml_text import write_yaml

CHECKPOINT = "checkpoint"
RECIPE_NAME, START = "recipe", "start"  # the keys of VERSIONS under which they are
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


def start_file(recipe: Recipe) -> Path | None:
    """The model whose backbone training begins with, if any; a RecipeError if it is not there."""
    if recipe.start is None:
        return None
    try:
        return model_path(recipe.start)
    except FileNotFoundError as error:
        raise RecipeError(f"start: {error}") from error


def model_path(source: str | os.PathLike[str]) -> Path:
    """The model file of a run folder, or the file itself."""
    file = Path(source)
    file = file / MODEL if file.is_dir() else file
    if not file.is_file():
        raise FileNotFoundError(
            f"there is no model {file}; give a run folder of `longtail train`, or its {MODEL}"
        )
    return file


def check_folder(folder: Path, recipe: Recipe, resume: Literal["auto", "never"] = "auto") -> bool:
    """Whether there is a run of this recipe to resume; a RecipeError if it is of another."""
    if folder.exists() and not folder.is_dir():
        raise RecipeError(f"{folder} is a file; the run needs a folder")
    _check_apart(folder, recipe.data)
    check_kind(folder, "train")
    # Looked for before VERSIONS: another process may just be writing what it begins with.
    others = _names_of_runs(folder, recipe)
    if not is_run(folder):
        if others:
            raise RecipeError(
                f"{folder / others[0]} is there and was not written by longtail train, which would "
                "write over it; take another folder, or move it"
            )
        return False
    # What broke off before its first checkpoint left nothing to resume, or to lose.
    if not (folder / RECIPE).is_file() or not (folder / CHECKPOINT).exists():
        if (folder / METRICS).exists():
            raise RecipeError(
                f"{folder} holds results without the checkpoint they came from; take another "
                "folder, or remove this one"
            )
        return False
    if resume == "never":
        raise RecipeError(
            f"{folder} holds a run already; take another folder, or resume it with --resume auto"
        )
    differing = differences_from(folder, recipe)
    if differing:
        changes = [f"{key}: {old!r} there, {new!r} now" for key, (old, new) in differing.items()]
        raise RecipeError(
            f"{folder} holds a run of another recipe; take another folder: "
            f"{'; '.join(changes[:10])}"
        )
    return True


def differences_from(folder: Path, recipe: Recipe) -> dict[str, tuple[Any, Any]]:
    """What the recipe of a run says of what is learned, and another does, where they differ."""
    from longtail.core.nested import differences, flat  # core imports NumPy

    stored = read_recipe_file(folder / RECIPE)
    before, after = task_values(stored), task_values(recipe)
    if stored.start is not None and after["start"] != recipe.start:  # that asked for is there
        beside = folder.parent / Path(stored.start).name  # of a run that said no more than a path
        digest = _said(folder, START) or _digest(stored.start) or _digest(beside)
        before["start"] = digest or stored.start
    return differences(flat(before), flat(after))


def _names_of_runs(folder: Path, recipe: Recipe) -> list[str]:
    """What is in the folder under a name that a run writes to, but for just this recipe."""
    names = [name for name in (*TRAIN, CHECKPOINT) if os.path.lexists(folder / name)]
    if os.path.lexists(folder / RECIPE) and not is_recipe_of(folder, recipe):
        names.append(RECIPE)
    return names + [
        file.name for kind in ("scores", "head") for file in folder.glob(f"{kind}-*.safetensors")
    ]


def _check_apart(folder: Path, data: Data) -> None:
    """A RecipeError if the run would be among the images."""
    if data.path is None or not os.path.isdir(data.path):
        return
    from longtail.data.tables.names import split_named, subfolders

    root, run = Path(data.path).resolve(), folder.resolve()
    is_among = run == root
    if isinstance(data, ImageFolder):
        inside = subfolders(root)
        parts = [name for name in inside if split_named(name)]
        is_among |= any(run.is_relative_to((root / name).resolve()) for name in parts or inside)
        if not parts and root in run.parents:
            is_among |= not run.relative_to(root).parts[0].startswith(".")  # a class to be
    if is_among:
        raise RecipeError(
            f"{folder} is or lies in {data.path}, where the images are; take a folder beside them "
            "for the run"
        )


def task_values(recipe: Recipe) -> dict[str, Any]:
    """What of a recipe decides what is learned; where data and starting model lie does not."""
    values = {key: value for key, value in plain(recipe).items() if key not in _FREE}
    values["data"] = {key: value for key, value in values["data"].items() if key != "path"}
    if recipe.start is not None:
        values["start"] = _digest(recipe.start) or recipe.start
    return values


def _digest(start: str | Path) -> str:
    """Of the model that training begins with; "" if it is not there."""
    try:
        with model_path(start).open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except FileNotFoundError:
        return ""


def write_start(folder: Path, recipe: Recipe, name: str, command: str) -> None:
    """The recipe, its name, the command and the versions, before anything is trained."""
    from longtail.core.files import written_whole

    folder.mkdir(parents=True, exist_ok=True)
    # First, since by it the folder is known to be of a run.
    notes = {RECIPE_NAME: name, "command": command}
    if recipe.start is not None:
        notes[START] = _digest(recipe.start)
    write_json(folder / VERSIONS, notes | versions())
    if not is_recipe_of(folder, recipe):
        with written_whole(folder / RECIPE) as part:
            part.write_bytes(write_yaml(plain(recipe)).encode())


def name_of_run(folder: Path) -> str:
    """What its recipe is called, as the run has kept it; empty in folders that have not."""
    return _said(folder, RECIPE_NAME)


def _said(folder: Path, key: str) -> str:
    from longtail.core.files import read_whole

    try:
        values = json.loads(read_whole(folder / VERSIONS))
    except (OSError, ValueError, RecursionError):  # it has no more than a word to give
        return ""
    word = values.get(key) if isinstance(values, dict) else None
    return word if isinstance(word, str) else ""


def is_recipe_of(folder: Path, recipe: Recipe) -> bool:
    """Whether the folder holds just this recipe."""
    file, text = folder / RECIPE, write_yaml(plain(recipe)).encode()
    return file.is_file() and file.stat().st_size == len(text) and file.read_bytes() == text


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
        table = csv.DictReader(opened)
        missing = {"epoch", "train_loss", "seconds"}.difference(table.fieldnames or ())
        if missing:
            raise ValueError(f"it has no column {min(missing)}")
        return [
            {key: float(value) if value else None for key, value in row.items()} for row in table
        ]
