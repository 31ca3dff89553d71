r"""What every head has in common: from features to logits, and what those carry.

    f = head(Φ),        Φ of shape (..., D), f of shape (..., C)

A head that is trained carries what its loss and its sampler make of it: who trains it says so with
`carry`. A head that is set by class means says it itself.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from inspect import signature
from itertools import chain
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from longtail.core import Prior, PriorLike
from longtail.core.numbers import check_number
from longtail.core.prior import check_same_classes, full_prior
from longtail.core.tensors import as_tensor, wide_dtype
from longtail.heads.moments import ClassMoments, MomentOptions, check_moments
from longtail.ranges import Count, NonNegative, check_fields


@dataclass(frozen=True)
class SGDConfig:
    """How a head is trained on cached features by SGD, with the numbers its paper gives."""

    lr: NonNegative  # at the start
    momentum: NonNegative = 0.9
    weight_decay: NonNegative = 0.0
    clip_value: NonNegative | None = None  # entries of the gradient are cut to plus or minus this
    sampler: Literal["instance", "class_balanced"] = "class_balanced"
    epochs: Count = 10  # each of as many samples as there are
    batch_size: Count = 512
    schedule: Literal["cosine", "constant"] = "cosine"  # cosine falls to zero
    tau: NonNegative = 0.0  # above zero, the loss is logit-adjusted by so much (NCM eq. 9)

    def __post_init__(self) -> None:
        check_fields(self)


CRT = SGDConfig(lr=0.2, weight_decay=5e-4)  # classifier re-training (Kang et al., 2020)


class Head(nn.Module, ABC):
    """A classifier on features of dimension `dim`, called as `head(features)`.

    float16 and bfloat16 are computed in float32, and so are the logits. What is carried is saved
    with the weights, in float64; loading weights replaces it, by None if none was saved.
    """

    sgd: ClassVar[SGDConfig | None] = None  # how fit_head trains it; None: nothing to train
    needs_validation: ClassVar[bool] = False  # whether it is set by `choose_on` alone
    rows_name: ClassVar[str] = "weight"  # of the parameter or buffer with a row a class
    takes_prior: ClassVar[bool] = True  # False: trained, it does not carry what its loss says
    curved: ClassVar[str] = ""  # why no linear layer gives the same logits
    carried_log: Tensor | None
    unit: Tensor | None  # what features are divided by before anything else; None for 1
    made_with: dict[str, Any]  # the arguments it was made with, for a file to make it again

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """Remember the arguments."""
        head = super().__new__(cls)
        arguments = signature(cls.__init__).bind_partial(head, *args, **options).arguments
        arguments.pop("self")
        object.__setattr__(head, "made_with", arguments)
        return head

    if TYPE_CHECKING:  # nn.Module's own takes and returns anything

        def __call__(self, features: Tensor) -> Tensor:
            """The logits: `forward`."""

    def __init__(self, dim: int, num_classes: int) -> None:
        super().__init__()
        if dim < 1 or num_classes < 1:
            raise ValueError(
                f"a head needs at least one dimension and one class, got {dim} and {num_classes}"
            )
        self.dim, self.num_classes = dim, num_classes
        self._exact: list[str] = []
        self._is_set = True  # False: set_moments comes first
        self._hold("carried_log", None)
        self._hold("unit", None)

    @property
    def rows(self) -> Tensor:
        """The weights or centres, a row a class: they tell the head's dtype and device."""
        rows: Tensor = getattr(self, self.rows_name)
        return rows

    @property
    def carried(self) -> Prior | None:
        """The prior the logits carry; None where that is not known, or no prior."""
        return None if self.carried_log is None else Prior.from_log(self.carried_log)

    def carry(self, prior: PriorLike | None) -> None:
        """Say what the logits carry: a Prior, class counts, or None where it is not known."""
        carried = self._prior(prior, "carried")
        self._hold("carried_log", None if carried is None else as_tensor(carried.log))

    def _prior(self, prior: PriorLike | None, name: str) -> Prior | None:
        if prior is None:
            return None
        full = full_prior(prior, name)
        check_same_classes(self.num_classes, full, "the head has", f"the {name} prior")
        return full

    @property
    def moment_options(self) -> MomentOptions | None:
        """What `class_moments` is to compute for `set_moments`; None: it takes no moments."""
        return None

    @property
    def waits_for_moments(self) -> bool:
        """Whether training starts at class moments that are not set yet."""
        return not self._is_set

    def set_moments(self, moments: ClassMoments) -> None:
        """Set the head from class means, in closed form or as a start."""
        raise ValueError(f"{type(self).__name__} is not made from class means; train it instead")

    def choose_on(self, features: Iterable[Tensor], labels: Tensor) -> None:
        """Set what is chosen on validation samples, whose features come in blocks."""
        raise ValueError(f"{type(self).__name__} has nothing to choose; train it instead")

    def to_linear(self) -> nn.Linear:
        """A plain linear layer with the same predictions; a ValueError if there is none."""
        self._check_set()
        weight, bias = self.linear_map()
        if self.unit is not None:
            weight = weight / self.unit.to(weight)
        return as_linear(weight, bias, like=self.rows)

    def linear_map(self) -> tuple[Tensor, Tensor | None]:
        """Weight and bias, in float64, of a linear map with the same predictions."""
        name = type(self).__name__
        raise ValueError(f"no linear layer gives the logits of {name}: {self.curved}")

    def set_feature_scale(self, scale: float) -> None:
        """Say that the head was fitted on features divided by `scale`, so that it divides them."""
        if not check_number(scale, "scale") > 0:
            raise ValueError(f"the scale of features must be above zero, got {scale}")
        self._hold("unit", torch.tensor(scale, dtype=torch.float64))

    def _widened(self, features: Tensor) -> Tensor:
        """The features as they are computed with, checked at the door."""
        if not isinstance(features, Tensor):
            raise TypeError(f"a head takes torch tensors, got {type(features).__name__}")
        if not features.is_floating_point() or features.shape[-1:] != (self.dim,):
            raise ValueError(
                f"features must be of a floating type and shape (..., {self.dim}), "
                f"got {features.dtype} of shape {tuple(features.shape)}"
            )
        self._check_set()
        wide = features.to(wide_dtype(torch.promote_types(features.dtype, self.rows.dtype)))
        return wide if self.unit is None else wide / self.unit.to(wide)

    def _with_weight_of(self, linear: nn.Linear) -> Self:
        """The head in the dtype of a trained layer, with its weight, and its bias if it has one."""
        copy_rows(self.to(linear.weight).rows, linear.weight, "weight")
        bias: Tensor | None = getattr(self, "bias", None)
        if bias is not None:
            copy_rows(bias, linear.bias, "bias")
        return self

    def _check_set(self) -> None:
        if not self._is_set:
            raise RuntimeError(
                f"this {type(self).__name__} has no class means yet; call head.set_moments("
                "class_moments(features, labels, num_classes, **head.moment_options)) "
                "or load a state"
            )

    def _hold(self, name: str, values: Tensor | None) -> None:
        """Keep a constant as a float64 buffer that stays exact when the head is made half."""
        if name not in self._exact:
            self._exact.append(name)
        if values is not None:
            device = next((t.device for t in chain(self.parameters(), self.buffers())), None)
            values = values.detach().to(device, torch.float64, copy=True)
        self.register_buffer(name, values)

    def extra_repr(self) -> str:
        """Its sizes and what it carries, for print(head)."""
        return f"dim={self.dim}, num_classes={self.num_classes}, carried={self.carried!r}"

    def _apply(self, fn: Any, recurse: bool = True) -> Self:
        before = {name: self._buffers[name] for name in self._exact}
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        for name, old in before.items():
            new = self._buffers[name]
            if old is not None and new is not None and new.dtype != old.dtype:
                self._buffers[name] = old.to(new.device)
        return self

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        names = (*self._parameters, *self._buffers)
        if any(prefix + name in state_dict for name in names):
            carries = f"{prefix}carried_log" in state_dict
            self._hold("carried_log", torch.zeros(self.num_classes) if carries else None)
            self._hold("unit", torch.zeros(()) if f"{prefix}unit" in state_dict else None)
            self._is_set = True
        super()._load_from_state_dict(state_dict, prefix, *rest)


class CenterHead(Head):
    """A head with a centre a class; set to the class means, it carries uniform."""

    rows_name = "centers"
    centers: Tensor

    @property
    def moment_options(self) -> MomentOptions:
        """Class means alone."""
        return {}

    def set_moments(self, moments: ClassMoments) -> None:
        """Set the centres to the class means."""
        dtype = self.centers.dtype
        self._start_at(check_moments(moments, self.num_classes, self.dim, dtype=dtype))

    def _start_at(self, centers: Tensor) -> None:
        copy_rows(self.centers, centers, "class means")
        self._is_set = True
        self.carry(Prior.uniform(self.num_classes))


class LinearHead(Head):
    """A head that is linear in the features, whatever it learns."""

    @abstractmethod
    def affine(self, dtype: torch.dtype) -> tuple[Tensor, Tensor | None]:
        """Weight and bias of the linear map, in that dtype."""

    def forward(self, features: Tensor) -> Tensor:
        """The logits."""
        wide = self._widened(features)
        return F.linear(wide, *self.affine(wide.dtype))

    def linear_map(self) -> tuple[Tensor, Tensor | None]:
        """Those of the logits themselves."""
        return self.affine(torch.float64)


def as_linear(weight: Tensor, bias: Tensor | None, like: Tensor) -> nn.Linear:
    """A linear layer of these values, in the dtype and on the device of `like`."""
    # On "meta" nothing is drawn, so the random numbers that follow stay what they would have been.
    layer = nn.Linear(weight.shape[1], weight.shape[0], bias=bias is not None, device="meta")
    layer.weight = nn.Parameter(weight.detach().to(like, copy=True))
    if bias is not None:
        layer.bias = nn.Parameter(bias.detach().to(like, copy=True))
    return layer


@torch.no_grad()
def copy_rows(into: Tensor, values: Tensor, what: str) -> None:
    """Write one row a class, or a ValueError."""
    if into.shape != values.shape:
        raise ValueError(f"{what} must have shape {tuple(into.shape)}, got {tuple(values.shape)}")
    into.copy_(values)
