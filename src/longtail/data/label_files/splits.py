"""What people call the parts of a data set, and what we call them."""

from collections.abc import Mapping

WHOLE = "all"  # the only part of a file that has no parts

SPLITS: Mapping[str, str] = {
    "train": "train",
    "training": "train",
    "val": "validation",
    "valid": "validation",
    "validation": "validation",
    "dev": "validation",
    "test": "test",
    "testing": "test",
}


def split_named(name: str) -> str | None:
    """Our name of the part: train, validation or test; None if it is no name of a part."""
    return SPLITS.get(name.strip().lower())
