r"""How far the samples may take τ from 1, where the move is exact.

If the logits carry what they declare, τ = 1 is right whatever the samples say; a model that departs
from that needs a τ near 1. So before the samples are looked at τ is normal around 1 with standard
deviation ½, which has 95 % of it between 0, no move, and 2, twice the move. They add an optimum τ̂
with a standard error s, and what follows from both is

    τ = 1 + trust·(τ̂ − 1),        1/trust = 1 + (s/½)² + (0.05/(½·length))².

s says how much of τ the samples see. The last term is what they cannot: no model's logits are right
to better than a twentieth, and τ̂ mends that as far as it happens to lie along the move. `length`
is the deviation of log t − log c over the classes, in units of the logits' own where a temperature
has made these smaller than 1 (`choice`). Where target and carried prior are near each
other it is next to nothing, any τ does about the same, and τ stays at 1. With many samples and a
move that changes decisions τ is the optimum. For weight normalisation no τ is exact and 1 is but
where it starts from, so there it is let go further: the standard deviation is 2 in place of the
first ½.

½ and 2 were chosen on the simulated worlds of `benchmarks/tau_shrinkage.py`, whose table of other
constants shows what those would give. These worlds do not tell a twentieth from nothing or a tenth:
it stands for what they do not have, models that are wrong in other ways.
"""

from math import inf
from typing import NamedTuple

SPREAD, WIDE_SPREAD = 0.5, 2.0
_MISFIT = 0.05
_NO_MOVE = 1e-9  # what rounding leaves between two priors that are the same


class HeldNearOne(NamedTuple):
    """A τ between 1 and the optimum, and how far it was let go: 0 not at all, 1 all the way."""

    tau: float
    trust: float


def least_error(samples: float, reach: float) -> float:
    """What the standard error of τ is at least, also where a handful of samples all agree.

    The information of one sample on τ is the variance of what a unit of τ adds to its logits, over
    the classes as the model expects them. That is at most (reach/2)², where it expects the class
    that is moved up most and the one that is moved down most, half each: so n samples do not know
    τ better than to 2/(√n·reach) (Cramér and Rao).

    Args:
        samples: How many there are.
        reach: How far a unit of τ moves two logits against each other at most.

    >>> least_error(100, reach=4.0)
    0.05
    """
    return 2 / (samples**0.5 * reach) if reach > 0 else inf


def held_near_one(
    optimum: float, standard_error: float, length: float, spread: float = SPREAD
) -> HeldNearOne:
    """The τ that follows from an optimum.

    Args:
        optimum: The best τ of some samples.
        standard_error: Its own; infinite if nothing is known.
        length: How far a unit of τ moves logits against each other.
        spread: The standard deviation of τ around 1 before samples are looked at.

    >>> held_near_one(1.4, 0.1, length=2.0), held_near_one(-22.0, 8.0, length=0.05)
    (HeldNearOne(tau=1.384, trust=0.959), HeldNearOne(tau=0.912, trust=0.00383))
    """
    if not length > _NO_MOVE:
        return HeldNearOne(1.0, 0.0)  # no τ differs from another
    unknown = (standard_error / spread) ** 2 + (_MISFIT / length / SPREAD) ** 2
    trust = 1 / (1 + unknown)
    return HeldNearOne(1 + trust * (optimum - 1), trust)
