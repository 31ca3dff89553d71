r"""Post-hoc logit adjustment (LA eq. 9): subtract τ·log π from the logits of a trained model.

    f_y − τ·log π_y

Carries: π^(1−τ), uniform at τ = 1, if the logits carried π before. Logits that carry anything
else were adjusted already or trained by an adjusting loss, and are refused.
"""

from dataclasses import dataclass

import torch

from longtail.core import Prior, PriorLike, UnknownPriorError
from longtail.core.numbers import check_number
from longtail.core.prior import full_prior
from longtail.core.retarget import prior_offset
from longtail.posthoc.adjuster import Affine, AffineAdjuster


@dataclass(frozen=True, init=False, eq=False)
class LogitAdjustment(AffineAdjuster):
    """Moves scores that carry the training prior away from it, by τ.

    Attributes:
        prior: The training prior π: a Prior or class counts.
        tau: 1 reaches the uniform prior, 0 changes nothing.

    >>> from longtail import Scores
    >>> scores = Scores([[2.0, 1.0]], carried=[90, 10])
    >>> adjusted = LogitAdjustment([90, 10])(scores)
    >>> adjusted.predict().tolist(), adjusted.carried
    ([1], Prior([0.5, 0.5]))
    """

    prior: Prior
    tau: float

    def __init__(self, prior: PriorLike, tau: float = 1.0) -> None:
        vars(self).update(prior=full_prior(prior, "training"), tau=check_number(tau, "tau"))

    def affine(self, carried: Prior | None, num_classes: int) -> Affine:
        """The move; a ValueError if it would count the prior twice."""
        if carried is None:
            raise UnknownPriorError("these scores carry no known prior")
        if not carried.is_close(self.prior):
            raise ValueError(
                f"logit adjustment starts from scores that carry {self.prior!r}, but these carry "
                f"{carried!r}: they were adjusted already, or trained by a loss that does "
                "it; adjusting again would count the prior twice. Use scores.under(target)"
            )
        reached = self.prior.tempered(1 - self.tau)
        shift = prior_offset(self.prior, reached)
        return Affine(torch.ones_like(shift), shift, reached)
