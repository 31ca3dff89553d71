"""The groups of classes that pictures are drawn for."""

import torch
from torch import Tensor

from longtail.report.judged import Judged


def groups_of(judged: Judged) -> dict[str, Tensor]:
    """Many, medium and few where training counts are known, else thirds of the classes."""
    known = {name: mask for name, mask in judged.groups.items() if mask.any()}
    if known:
        return {f"{name}-shot": mask for name, mask in known.items()}
    thirds = torch.empty_like(judged.order)
    thirds[judged.order] = torch.arange(judged.num_classes) * 3 // judged.num_classes
    named = zip(("head", "middle", "tail"), range(3), strict=True)
    found = {name: thirds == number for name, number in named}
    return {name: mask for name, mask in found.items() if mask.any()}
