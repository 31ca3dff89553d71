"""AutoAugment: to every image one of 25 pairs of operations (Cubuk et al., CVPR 2019).

Which pair, whether each of its two operations happens, and with which sign, is drawn for each image
alone. Images that get the same operation are changed together.

At level l of 0 ... 9 operations shear by ±0.3·l/9, move by ±(150/331)·l/9 of the width, rotate by
±30·l/9 degrees, have the factor 1 ± 0.1·l (brightness, color, contrast, sharpness), keep
round(8 − 4·l/9) bits (posterize), and invert from 256 − 256·l/9 on (solarize): the ranges of the
paper's table, read as most later code reads them. The paper's own code moved CIFAR by up to 10
pixels and enlarged factors only.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Generator, Tensor

from longtail.images.augment import operations
from longtail.images.augment.augmentation import (
    CheckedFields,
    check_bytes,
    draw_integers,
    draw_uniform,
)
from longtail.ranges import Byte

# The name, the probability and the level of both operations.
CIFAR_POLICY: tuple[tuple[tuple[str, float, int], tuple[str, float, int]], ...] = (
    (("invert", 0.1, 7), ("contrast", 0.2, 6)),
    (("rotate", 0.7, 2), ("translate_x", 0.3, 9)),
    (("sharpness", 0.8, 1), ("sharpness", 0.9, 3)),
    (("shear_y", 0.5, 8), ("translate_y", 0.7, 9)),
    (("autocontrast", 0.5, 8), ("equalize", 0.9, 2)),
    (("shear_y", 0.2, 7), ("posterize", 0.3, 7)),
    (("color", 0.4, 3), ("brightness", 0.6, 7)),
    (("sharpness", 0.3, 9), ("brightness", 0.7, 9)),
    (("equalize", 0.6, 5), ("equalize", 0.5, 1)),
    (("contrast", 0.6, 7), ("sharpness", 0.6, 5)),
    (("color", 0.7, 7), ("translate_x", 0.5, 8)),
    (("equalize", 0.3, 7), ("autocontrast", 0.4, 8)),
    (("translate_y", 0.4, 3), ("sharpness", 0.2, 6)),
    (("brightness", 0.9, 6), ("color", 0.2, 8)),
    (("solarize", 0.5, 2), ("invert", 0.0, 3)),
    (("equalize", 0.2, 0), ("autocontrast", 0.6, 0)),
    (("equalize", 0.2, 8), ("equalize", 0.6, 4)),
    (("color", 0.9, 9), ("equalize", 0.6, 6)),
    (("autocontrast", 0.8, 4), ("solarize", 0.2, 8)),
    (("brightness", 0.1, 3), ("color", 0.7, 0)),
    (("solarize", 0.4, 5), ("autocontrast", 0.9, 3)),
    (("translate_y", 0.9, 9), ("translate_y", 0.7, 9)),
    (("autocontrast", 0.9, 2), ("solarize", 0.8, 3)),
    (("equalize", 0.8, 8), ("invert", 0.1, 3)),
    (("translate_y", 0.7, 9), ("autocontrast", 0.9, 1)),
)

_MOVES: dict[str, tuple[Callable[[Tensor, Tensor, float], Tensor], float]] = {
    "shear_x": (operations.shear_x, 0.3),
    "shear_y": (operations.shear_y, 0.3),
    "translate_x": (operations.translate_x, 150 / 331),
    "translate_y": (operations.translate_y, 150 / 331),
    "rotate": (operations.rotate, 30.0),
}
_MIXES: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "brightness": operations.brightness,
    "color": operations.color,
    "contrast": operations.contrast,
    "sharpness": operations.sharpness,
}
_PLAIN: dict[str, Callable[[Tensor], Tensor]] = {
    "invert": operations.invert,
    "autocontrast": operations.autocontrast,
    "equalize": operations.equalize,
}


@dataclass(frozen=True)
class AutoAugment(CheckedFields):
    """The policy found on CIFAR-10, also used for CIFAR-100, on uint8 images of 1 or 3 channels.

    It comes after crop and flip, and before `Cutout` and `Normalize`. Pixels that come from outside
    of an image are filled.

    >>> images = torch.arange(256, dtype=torch.uint8).view(1, 1, 16, 16).repeat(4, 1, 1, 1)
    >>> AutoAugment()(images, torch.Generator().manual_seed(0))[:, 0, 8, 8]
    tensor([136, 136, 136, 142], dtype=torch.uint8)
    """

    fill: Byte = 128

    def __call__(self, images: Tensor, generator: Generator) -> Tensor:
        """Every image changed by a pair of its own."""
        many = len(check_bytes(images, "AutoAugment"))
        pairs = draw_integers(len(CIFAR_POLICY), (many,), generator).tolist()
        draws = draw_uniform((2, many), generator).tolist()
        signs = (2 * draw_integers(2, (2, many), generator) - 1).to(images.device)
        images = images.clone(memory_format=torch.contiguous_format)
        for step in (0, 1):
            for name, at, levels in _grouped(pairs, step, draws[step]):
                level = torch.tensor(levels, device=images.device, dtype=torch.float64) / 9
                images[at] = _changed(name, images[at], level, signs[step, at], self.fill)
        return images


def _grouped(
    pairs: list[int], step: int, draws: list[float]
) -> list[tuple[str, list[int], list[int]]]:
    """For each operation: which images get it, and at which level."""
    groups: dict[str, tuple[list[int], list[int]]] = {}
    for i, (pair, draw) in enumerate(zip(pairs, draws, strict=True)):
        name, probability, level = CIFAR_POLICY[pair][step]
        if draw < probability:
            at, levels = groups.setdefault(name, ([], []))
            at.append(i)
            levels.append(level)
    return [(name, *groups[name]) for name in sorted(groups)]


def _changed(name: str, images: Tensor, level: Tensor, sign: Tensor, fill: int) -> Tensor:
    """The images after one operation, at levels from 0 to 1."""
    if name in _MOVES:
        move, most = _MOVES[name]
        return move(images, most * level * sign, fill)
    if name in _MIXES:
        return _MIXES[name](images, 1 + 0.9 * level * sign)
    if name == "posterize":
        return operations.posterize(images, (8 - 4 * level).round())
    if name == "solarize":
        return operations.solarize(images, 256 - 256 * level)
    return _PLAIN[name](images)
