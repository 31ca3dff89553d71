"""AutoAugment: to every image one of 25 pairs of operations (Cubuk et al., CVPR 2019).

Which pair, whether each of its two operations happens, and with which sign, is drawn for each image
alone. Images that get the same operation are changed together.

At level l of 0 ... 9 operations shear by ±0.3·l/9, move by ±(150/331)·l/9 of the width, rotate by
±30·l/9 degrees, have the factor 1 ± 0.1·l (brightness, color, contrast, sharpness), keep
round(8 − 4·l/9) bits (posterize), and invert from 256 − 256·l/9 on (solarize). The paper's own code
moved CIFAR by up to 10 pixels and enlarged factors only; these are the ranges of the paper's table,
read as most later code reads them, that of balanced meta-softmax among it, whose recipe learned NCM
follows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Generator, Tensor

from longtail.images.augment import affine, tones
from longtail.images.augment.augmentation import check_bytes, draw_integers, draw_uniform
from longtail.ranges import Byte, check_fields


class Operation(NamedTuple):
    """One of the two steps of a pair."""

    name: str
    probability: float
    level: int = 0


def _pair(first: tuple[str, float, int], second: tuple[str, float, int]) -> tuple[Operation, ...]:
    return Operation(*first), Operation(*second)


CIFAR_POLICY = (
    _pair(("invert", 0.1, 7), ("contrast", 0.2, 6)),
    _pair(("rotate", 0.7, 2), ("translate_x", 0.3, 9)),
    _pair(("sharpness", 0.8, 1), ("sharpness", 0.9, 3)),
    _pair(("shear_y", 0.5, 8), ("translate_y", 0.7, 9)),
    _pair(("autocontrast", 0.5, 8), ("equalize", 0.9, 2)),
    _pair(("shear_y", 0.2, 7), ("posterize", 0.3, 7)),
    _pair(("color", 0.4, 3), ("brightness", 0.6, 7)),
    _pair(("sharpness", 0.3, 9), ("brightness", 0.7, 9)),
    _pair(("equalize", 0.6, 5), ("equalize", 0.5, 1)),
    _pair(("contrast", 0.6, 7), ("sharpness", 0.6, 5)),
    _pair(("color", 0.7, 7), ("translate_x", 0.5, 8)),
    _pair(("equalize", 0.3, 7), ("autocontrast", 0.4, 8)),
    _pair(("translate_y", 0.4, 3), ("sharpness", 0.2, 6)),
    _pair(("brightness", 0.9, 6), ("color", 0.2, 8)),
    _pair(("solarize", 0.5, 2), ("invert", 0.0, 3)),
    _pair(("equalize", 0.2, 0), ("autocontrast", 0.6, 0)),
    _pair(("equalize", 0.2, 8), ("equalize", 0.6, 4)),
    _pair(("color", 0.9, 9), ("equalize", 0.6, 6)),
    _pair(("autocontrast", 0.8, 4), ("solarize", 0.2, 8)),
    _pair(("brightness", 0.1, 3), ("color", 0.7, 0)),
    _pair(("solarize", 0.4, 5), ("autocontrast", 0.9, 3)),
    _pair(("translate_y", 0.9, 9), ("translate_y", 0.7, 9)),
    _pair(("autocontrast", 0.9, 2), ("solarize", 0.8, 3)),
    _pair(("equalize", 0.8, 8), ("invert", 0.1, 3)),
    _pair(("translate_y", 0.7, 9), ("autocontrast", 0.9, 1)),
)


_MOVES: dict[str, tuple[Callable[[Tensor, Tensor, float], Tensor], float]] = {
    "shear_x": (affine.shear_x, 0.3),
    "shear_y": (affine.shear_y, 0.3),
    "translate_x": (affine.translate_x, 150 / 331),
    "translate_y": (affine.translate_y, 150 / 331),
    "rotate": (affine.rotate, 30.0),
}
_MIXES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "brightness": tones.brightness,
    "color": tones.color,
    "contrast": tones.contrast,
    "sharpness": tones.sharpness,
}
_PLAIN: dict[str, Callable[[Tensor], Tensor]] = {
    "invert": tones.invert,
    "autocontrast": tones.autocontrast,
    "equalize": tones.equalize,
}


@dataclass(frozen=True)
class AutoAugment:
    """The policy found on CIFAR-10, also used for CIFAR-100, on uint8 images of 1 or 3 channels.

    It comes after crop and flip, and before `Cutout` and `Normalize`.

    Args:
        fill: What pixels are filled with that come from outside of an image.

    >>> images = torch.arange(256, dtype=torch.uint8).view(1, 1, 16, 16).repeat(4, 1, 1, 1)
    >>> AutoAugment()(images, torch.Generator().manual_seed(0))[:, 0, 8, 8]
    tensor([136, 136, 136, 142], dtype=torch.uint8)
    """

    fill: Byte = 128

    def __post_init__(self) -> None:
        check_fields(self)

    def __call__(self, images: Tensor, generator: Generator) -> Tensor:
        """Every image changed by a pair of its own."""
        many = len(check_bytes(images, "AutoAugment"))
        pairs = draw_integers(len(CIFAR_POLICY), (many,), generator).tolist()
        draws = draw_uniform((2, many), generator).tolist()
        signs = (2 * draw_integers(2, (2, many), generator) - 1).to(images.device)
        images = images.clone(memory_format=torch.contiguous_format)
        for step in (0, 1):
            for name, at, levels in _grouped(pairs, step, draws[step]):
                where = torch.tensor(at, device=images.device)
                level = torch.tensor(levels, device=images.device, dtype=torch.float64) / 9
                images[where] = _changed(name, images[where], level, signs[step, where], self.fill)
        return images


def _grouped(
    pairs: list[int], step: int, draws: list[float]
) -> list[tuple[str, list[int], list[int]]]:
    """For each operation: which images get it, and at which level."""
    groups: dict[str, tuple[list[int], list[int]]] = {}
    for i, (pair, draw) in enumerate(zip(pairs, draws, strict=True)):
        operation = CIFAR_POLICY[pair][step]
        if draw < operation.probability:
            at, levels = groups.setdefault(operation.name, ([], []))
            at.append(i)
            levels.append(operation.level)
    return [(name, *groups[name]) for name in sorted(groups)]


def _changed(name: str, images: Tensor, level: Tensor, sign: Tensor, fill: int) -> Tensor:
    """The images after one operation, at levels from 0 to 1."""
    if name in _MOVES:
        move, most = _MOVES[name]
        return move(images, most * level * sign, fill)
    if name in _MIXES:
        return _MIXES[name](images, 1 + 0.9 * level * sign)
    if name == "posterize":
        return tones.posterize(images, (8 - 4 * level).round())
    if name == "solarize":
        return tones.solarize(images, 256 - 256 * level)
    return _PLAIN[name](images)
