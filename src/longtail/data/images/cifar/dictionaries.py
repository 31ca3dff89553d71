"""The python version: pickled dictionaries of labels and pixels, read without unpickling."""

from typing import Any

import numpy as np

from longtail.data.files.pickled import ByteArray, read_plain_data
from longtail.data.images.cifar.layout import PIXELS, LabelKind, Name
from longtail.data.images.cifar.part import CifarPart

_LABELS: dict[tuple[Name, LabelKind], str] = {
    ("cifar10", "fine"): "labels",
    ("cifar100", "fine"): "fine_labels",
    ("cifar100", "coarse"): "coarse_labels",
}
_NAMES: dict[tuple[Name, LabelKind], str] = {
    ("cifar10", "fine"): "label_names",
    ("cifar100", "fine"): "fine_label_names",
    ("cifar100", "coarse"): "coarse_label_names",
}
_MOST_CLASSES = 100


def read_dictionary(data: bytes, name: Name, labels: LabelKind, where: str) -> CifarPart:
    """Images of shape (N, 3, 32, 32) and their labels."""
    stored = _entries(data, where)
    pixels = _entry(stored, "data", where)
    found = _entry(stored, _LABELS[name, labels], where)
    values = pixels.values if isinstance(pixels, ByteArray) else None
    if values is None or values.ndim != 2 or values.shape[1] != PIXELS:
        raise ValueError(f"{where} must have data as rows of {PIXELS} bytes; download it again")
    are_labels = isinstance(found, list) and all(
        type(label) is int and 0 <= label < _MOST_CLASSES for label in found
    )
    if not are_labels or len(found) != len(values):
        raise ValueError(
            f"{where} must have a number below {_MOST_CLASSES} for each of {len(values)} images as "
            "labels; download it again"
        )
    return CifarPart(values.reshape(-1, 3, 32, 32), np.array(found, dtype=np.int64))


def read_meta(data: bytes, name: Name, labels: LabelKind, where: str) -> tuple[str, ...]:
    """The class names."""
    found = _entry(_entries(data, where), _NAMES[name, labels], where)
    if not isinstance(found, list) or not all(isinstance(text, str | bytes) for text in found):
        raise ValueError(f"{where} must have a list of texts as class names; download it again")
    return tuple(map(_text, found))


def _entries(data: bytes, where: str) -> dict[str, Any]:
    stored = read_plain_data(data, where)
    if not isinstance(stored, dict):
        raise ValueError(f"{where} must hold a dictionary, got a {type(stored).__name__}")
    return {_text(key): value for key, value in stored.items()}


def _entry(stored: dict[str, Any], key: str, where: str) -> Any:
    if key not in stored:
        raise ValueError(
            f"{where} has no {key}, only {', '.join(sorted(stored)[:8])}; is it of another set?"
        )
    return stored[key]


def _text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value
