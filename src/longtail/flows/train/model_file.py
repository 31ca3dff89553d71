"""A trained model in one safetensors file: weights, recipe, classes and counts. No pickle."""

from __future__ import annotations

import os
from typing import Any, NamedTuple

import msgspec

from longtail.core import Prior
from longtail.core.tensor_file import Format, Versioned, decode_header, save_tensors
from longtail.data.tables.errors import reading
from longtail.engine.head_file import read_state
from longtail.engine.training import Model
from longtail.flows.train.building import build_model
from longtail.flows.train.reading import RecipeError, plain, recipe_from
from longtail.flows.train.recipe import Recipe
from longtail.flows.train.run_folder import model_path, start_file
from longtail.images.augment import Normalize

_KEY, _FORMAT = "longtail_model", Format("model", "`longtail train`")


class _Header(Versioned):
    recipe: dict[str, Any]
    classes: tuple[str, ...]
    counts: tuple[int, ...]
    mean: tuple[float, ...]
    std: tuple[float, ...]


class StoredModel(NamedTuple):
    """A model and what it was trained with."""

    model: Model  # in evaluation mode, on the CPU; it knows what it carries
    recipe: Recipe
    classes: tuple[str, ...]
    counts: tuple[int, ...]  # training images of each class
    normalize: Normalize  # what its images go through


def save_model(path: str | os.PathLike[str], stored: StoredModel) -> None:
    """Write the file, whole or not at all."""
    recipe, moments = plain(stored.recipe), (stored.normalize.mean, stored.normalize.std)
    header = _Header(_FORMAT.versions[-1], recipe, stored.classes, stored.counts, *moments)
    metadata = {"format": "pt", _KEY: msgspec.json.encode(header).decode()}
    save_tensors(path, stored.model.state_dict(), metadata)


def load_model(source: str | os.PathLike[str]) -> StoredModel:
    """Read what `save_model` wrote; `source` may be a run folder too."""
    file = model_path(source)
    text, state = read_state(file, _KEY, "train one, or name another")
    header = decode_header(text, _Header, file, _FORMAT)
    with reading(file, "a model of `longtail train`"):
        recipe = recipe_from(header.recipe)
        model = build_model(_without_downloads(recipe), Prior.of(header.counts, zeros="smooth"))
        model.load_state_dict(state)
        normalize = Normalize(header.mean, header.std)
    model.train(False)
    return StoredModel(model, recipe, header.classes, header.counts, normalize)


def load_start(model: Model, recipe: Recipe) -> None:
    """Give the model the trained backbone that the recipe starts from, if it names one."""
    file, prefix = start_file(recipe), "backbone."
    if file is None:
        return
    try:
        _, state = read_state(file, _KEY, "name a model of `longtail train`")
        trained = {key.removeprefix(prefix): state[key] for key in state if key.startswith(prefix)}
        model.backbone.load_state_dict(trained)
    except (ValueError, RuntimeError) as error:
        raise RecipeError(
            f"start: {file} does not hold the backbone of this recipe, {recipe.backbone.tag} "
            f"({str(error).splitlines()[-1].strip()}); set backbone as that run has it"
        ) from error


def _without_downloads(recipe: Recipe) -> Recipe:
    """The same network without the weights it started from: the file has those it ended with."""
    options = getattr(recipe.backbone, "options", None)
    if options is None:
        return recipe
    kept = {key: value for key, value in options.items() if key not in ("weights", "pretrained")}
    backbone = msgspec.structs.replace(recipe.backbone, options=kept)
    return msgspec.structs.replace(recipe, backbone=backbone)
