"""What the calibrators share: scale and shift without a change of prior, in the right order."""

from typing import Literal

from torch import Tensor

from longtail.core import Prior, PriorLike, UnknownPriorError
from longtail.core.arrays import ArrayLike
from longtail.core.measure import class_named
from longtail.core.prior import full_prior
from longtail.core.tensors import as_tensor, per_class_tensor
from longtail.posthoc.adjuster import AffineAdjuster
from longtail.posthoc.held_out import HeldOut


class Calibrator(AffineAdjuster):
    """Makes scores as sure as they should be, under the prior that they carry.

    One that was fitted remembers what the scores carried and refuses others: calibrate first, then
    move to another prior. Made by hand it remembers nothing and leaves what is carried as it is.
    Whether it was applied before it sees only if it was fitted on scores of unknown prior: else the
    scores carry the same before and after, so apply it once.

    Attributes:
        source: What the scores it was fitted on carried; None if unknown, or made by hand.
        carried: What the result carries; None if made by hand.
    """

    source: Prior | None
    carried: Prior | None

    def carried_after(self, carried: Prior | None) -> Prior | None:
        """What the result carries if the scores carry `carried`, or a ValueError."""
        name = type(self).__name__
        if self.carried is None:
            return carried
        if self.source is None:
            if carried is not None:
                raise ValueError(
                    f"this {name} was fitted on scores that carry no known prior, but these carry "
                    f"{carried!r}: they were calibrated already, or another model made them; "
                    "apply it once, to scores as its model gives them"
                )
            return self.carried
        if carried is None:
            raise UnknownPriorError(
                f"this {name} was fitted on scores that carry {self.source!r}, "
                "but these carry no known prior"
            )
        if not carried.is_close(self.source):
            raise ValueError(
                f"this {name} was fitted on scores that carry {self.source!r}, but these carry "
                f"{carried!r}: calibrate first and move to another prior after that, "
                f"or fit it on scores that carry {carried!r}"
            )
        return self.carried


def kept_priors(source: PriorLike | None, carried: PriorLike | None) -> dict[str, Prior | None]:
    """The two priors a calibrator remembers; one that starts from a known prior keeps it."""
    known = None if source is None else full_prior(source, "source")
    reached = known if carried is None else full_prior(carried, "carried")
    return {"source": known, "carried": reached}


def fitted_priors(held: HeldOut) -> tuple[Prior | None, Prior]:
    """What the samples carry, and what they carry once calibrated with a free bias a class."""
    if held.carried is not None:
        return held.carried, held.carried
    absent = as_tensor(held.prior.log).isinf().nonzero().flatten().tolist()
    if absent:
        first = class_named(absent[0], held.classes)
        raise ValueError(
            "where it is not known what scores carry, every class must occur in the held-out "
            f"labels, {len(absent)} of {held.prior.num_classes} do not (the first is {first}); "
            "say what the scores carry, or add samples of these classes"
        )
    return None, held.prior


def one_a_class(
    values: ArrayLike | None, name: str, least: Literal["positive", "any"]
) -> Tensor | None:
    """The numbers of as many classes as there are, or None for what was not given."""
    if values is None:
        return None
    return per_class_tensor(values, as_tensor(values).numel(), name, least)


def filled(values: Tensor | None, name: str, default: Tensor) -> Tensor:
    """The numbers, or the default; a ValueError if they are not as many."""
    if values is None:
        return default
    if len(values) != len(default):
        raise ValueError(f"{name} has {len(values)} classes, the scores have {len(default)}")
    return values
