"""The policy that AutoAugment found on CIFAR-10: 25 pairs of (operation, probability, level).

Cubuk et al., CVPR 2019, appendix. The levels 0 ... 9 divide the ranges of their Table 1 evenly.
Invert, AutoContrast and Equalize have no level.
"""

from __future__ import annotations

from typing import NamedTuple


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
