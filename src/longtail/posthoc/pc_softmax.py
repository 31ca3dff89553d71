r"""PC Softmax (LADE eq. 4): post-compensate logits for a known target prior.

    f_y − log p_s(y) + log p_t(y),        or  f_y + log p_t(y) − log p_u(y)  where f carries p_u

Both are one move, from whatever the scores carry to the target: exact by LADE's theorem 1.

Carries: the target.
"""

from dataclasses import dataclass

import torch

from longtail.core import Prior, PriorLike, Scores
from longtail.core.retarget import prior_offset
from longtail.core.tensors import as_tensor
from longtail.posthoc.adjuster import Affine, AffineAdjuster


@dataclass(frozen=True, init=False, eq=False)
class PCSoftmax(AffineAdjuster):
    """`scores.under(target)` as an adjuster, to stand in a row with others.

    >>> from longtail import Scores
    >>> scores = Scores([[0.0, 0.0]], carried=[50, 50])
    >>> PCSoftmax([20, 80])(scores).probs().tolist()
    [[0.200, 0.800]]
    """

    target: Prior

    def __init__(self, target: PriorLike) -> None:
        vars(self).update(target=Prior.of(target))

    def affine(self, carried: Prior | None, num_classes: int) -> Affine:
        """The move from what is carried to the target."""
        shift = as_tensor(prior_offset(carried, self.target))
        return Affine(torch.ones_like(shift), shift, self.target)

    def __call__(self, scores: Scores) -> Scores:
        """The scores under the target."""
        return scores.under(self.target)
