"""All splits of a Hugging Face data set, from the hub or from a folder."""

from importlib import import_module
from pathlib import Path
from typing import Any

from longtail.images import ImageSplits
from longtail.integrations.hf.images import from_hugging_face

_NAMES = {"validation": ("validation", "val", "valid", "dev"), "test": ("test",)}


def read_hugging_face(
    path: str, image_column: str = "image", label_column: str = "label"
) -> ImageSplits[Any]:
    """Train, and validation and test where there are such.

    Args:
        path: A folder that `save_to_disk` wrote, or what `datasets.load_dataset` takes.
        image_column: The column of images.
        label_column: The column of labels.
    """
    try:
        datasets = import_module("datasets")
    except ImportError as error:
        raise ImportError(
            "Hugging Face data sets are read by the package datasets: pip install longtail[hf]"
        ) from error
    stored = (Path(path) / "dataset_dict.json").is_file()
    found = datasets.load_from_disk(path) if stored else datasets.load_dataset(path)
    if "train" not in found:
        raise ValueError(f"the data set {path} has no train split, only {', '.join(found)}")

    train = from_hugging_face(found["train"], image_column, label_column)

    def read(names: tuple[str, ...]) -> Any:
        name = next((name for name in names if name in found), None)
        if name is None:
            return None
        return from_hugging_face(found[name], image_column, label_column, train.classes)

    return ImageSplits(train, read(_NAMES["validation"]), read(_NAMES["test"]))
