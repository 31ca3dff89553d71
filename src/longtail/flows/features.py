"""features: what a trained backbone makes of a set of images, in one file."""

from __future__ import annotations

import os
from collections.abc import Sequence

import msgspec
import numpy as np
import numpy.typing as npt

from longtail.core.scores import Split
from longtail.data import Features, pack_features
from longtail.engine.training import predict, processes
from longtail.flows.train.building import read_data
from longtail.flows.train.model_file import load_model
from longtail.flows.train.reading import RecipeError, overridden
from longtail.flows.train.recipe import BatchNorm
from longtail.flows.train.scores import all_parts, with_new_statistics


def features(
    source: str | os.PathLike[str],
    data: str | os.PathLike[str],
    output: str | os.PathLike[str],
    settings: Sequence[str] = (),
    *,
    batch_norm: BatchNorm = "keep",
    batch_size: int = 256,
) -> Features:
    """Write the features of all parts of a set to a .safetensors file.

    `source` is a run folder, or its model. The images at `data` are read as the run's recipe says
    but for `settings`, such as "data.kind=folder". Batch-norm statistics stay, or are estimated
    again on the training part, image by image or of all classes alike (NCM A.4).
    """
    for setting in settings:
        if not setting.startswith(("data.", "data=", "num_workers=")):
            raise RecipeError(
                f"only data and num_workers can be changed after training, got {setting!r}"
            )
    stored = load_model(source)
    recipe = overridden(stored.recipe, [f"data.path={os.fspath(data)}", *settings])
    images = read_data(recipe.data)
    if images.train.classes != stored.classes:
        raise ValueError(
            f"the model knows {len(stored.classes)} classes, the first called "
            f"{stored.classes[0]!r}, but {os.fspath(data)} has {images.train.num_classes}, the "
            f"first called {images.train.classes[0]!r}; give data with the same classes"
        )
    with processes() as these:
        model = stored.model.to(these.device)
        if batch_norm != "keep":
            model = with_new_statistics(model, images.train, stored.normalize, batch_norm)
        workers = recipe.num_workers
        parts: dict[Split, tuple[npt.NDArray[np.float32], npt.NDArray[np.int64]]] = {}
        for split, part in all_parts(images).items():
            outputs = predict(model, part, stored.normalize, batch_size, num_workers=workers)
            parts[split] = outputs.features.numpy(), part.labels.numpy()
        network = msgspec.json.encode(stored.recipe.backbone).decode()
        made_by = f"longtail train: {network}, batch-norm statistics: {batch_norm}"
        return pack_features(output, parts, classes=stored.classes, made_by=made_by)
