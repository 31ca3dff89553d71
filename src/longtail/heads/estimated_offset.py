r"""The estimated-offset head: the boundary between two classes runs midway between their centres.

    f_k = w_k·Φ − ½ c_k·w_k                                                            (EO §2.4)

With w = Σ⁻¹c, as in linear discriminant analysis, both centres are equally far from the boundary
(EO eq. 4), however many samples each class had. The centres c stand for the class means and are
moved by `losses.EstimatedOffset`, not by gradients.

Carries: uniform when set by class means; once trained, what its loss says. That of
`losses.EstimatedOffset` is None, so measure it.
"""

from __future__ import annotations

from torch import nn

from longtail.heads.head import copy_rows
from longtail.heads.offset import OffsetHead
from longtail.heads.recipe import Recipe


class EstimatedOffset(OffsetHead):
    """Linear logits with an offset from the class centres, in place of a bias.

    Args:
        dim: The features' dimension.
        num_classes: How many classes there are.
        use_offset: False leaves the offset out of the logits: with the uniform constraint of the
            loss, the ablation "UC only".

    >>> import torch
    >>> head = EstimatedOffset(2, 2)
    >>> _ = head.weight.data.copy_(torch.tensor([[3.0, 0.0], [1.0, 0.0]]))
    >>> _ = head.centers.copy_(torch.tensor([[3.0, 0.0], [1.0, 0.0]]))
    >>> head(torch.tensor([[2.0, 5.0]])).tolist()        # midway: the logits are equal
    [[1.5, 1.5]]
    """

    recipe = Recipe(lr=0.1, sampler="instance")

    @classmethod
    def from_linear(cls, linear: nn.Linear, use_offset: bool = True) -> EstimatedOffset:
        """Start from trained weights; the bias, which carries the training prior, is dropped."""
        head = cls(linear.in_features, linear.out_features, use_offset).to(linear.weight)
        copy_rows(head.weight, linear.weight, "weight")
        return head
