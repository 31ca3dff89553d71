r"""Losses on yes/no labels that a sample may have together: one logit a label.

    ℓ(y, z) = Σ_l  − w_l·y_l·log σ(s_l) − (1 − y_l)·log σ(−s_l),
    s_l = z_l + logit(train_l) − logit(carried_l)

the binary cross-entropy of logits moved from what they are to carry to the odds that the batches
follow. That is the softmax loss of `change_of_prior` on [0, z] for each label by itself. τ says
carried = odds^(1−τ): even odds at 1, those of the batches at 0, which is plain binary
cross-entropy. `pos_weight` w multiplies the odds that are carried by w, as it makes w samples of
every positive; keeping positives and negatives with different rates changes what the batches
follow, which is `train`: `LabelOdds.sampled`.

Carries: what is said above, exactly while p(x|y_l) of each label stays. Menon et al., ICLR 2021.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict, Unpack

import numpy as np
import torch.nn.functional as F
from torch import Tensor

from longtail.core.arrays import ArrayLike
from longtail.core.label_odds import LabelOdds, LabelOddsLike, check_same_labels
from longtail.core.numbers import check_choice, check_number, check_per_class, check_whole
from longtail.core.retarget import check_logits, label_offset
from longtail.core.tensors import along_classes, wide_dtype
from longtail.losses.loss import ConstantsModule, Reduction


class BinaryOptions(TypedDict, total=False):
    """The options that every loss on yes/no labels takes."""

    pos_weight: ArrayLike | None
    ignore_index: int
    reduction: Reduction


class BinaryLoss(ConstantsModule):
    """A loss on yes/no labels that says which odds a model trained with it carries.

    Logits have shape (N, L) or (N, L, d, ...), of a single label also (N,); labels are 0 or 1, or
    probabilities of yes, of the same shape. The mean is over all samples and labels, as in torch.
    Half precision is computed in float32.

    Args:
        train: The odds the batches follow, sampler included: `LabelOdds`, or a probability of yes
            a label.
        carried: What the logits are to carry; None if what they will carry is no odds.
        alpha: A weight for yes and one for no of each label, shape (2, L), that `carried` knows of.
        pos_weight: The user's weight of the positives of each label; it changes what is carried.
        ignore_index: Labels of this number, of an integer type, do not count: they are not known.
        reduction: "mean", "sum", or "none", a loss for each sample and label.
    """

    alpha: Tensor | None
    pos_weight: Tensor | None
    shift: Tensor
    carried_logit: Tensor | None
    batches_logit: Tensor

    if TYPE_CHECKING:  # nn.Module's own takes and returns anything

        def __call__(self, logits: Tensor, labels: Tensor) -> Tensor:
            """The reduced loss: `forward`."""

    def __init__(
        self,
        train: LabelOddsLike,
        carried: LabelOdds | None,
        alpha: ArrayLike | None = None,
        **options: Unpack[BinaryOptions],
    ) -> None:
        super().__init__()
        names = BinaryOptions.__annotations__
        if unknown := ", ".join(sorted(options.keys() - names.keys())):
            name = type(self).__name__
            raise TypeError(f"{name} takes the options {', '.join(names)}, got {unknown}")
        batches = LabelOdds.of(train)
        self.num_labels = batches.num_labels
        self.ignore_index = check_whole(options.get("ignore_index", -100), "ignore_index")
        if self.ignore_index in (0, 1):
            raise ValueError(
                f"ignore_index={self.ignore_index} is a label; mark labels that are not known by "
                "another number, such as -1"
            )
        self.reduction = options.get("reduction", "mean")
        check_choice(self.reduction, Reduction, "reduction")
        weight = options.get("pos_weight")
        shift = np.zeros(self.num_labels)
        if carried is not None:
            check_same_labels(self.num_labels, carried, "train has", "carried has")
            followed = batches if alpha is None else batches.reweighted(yes_to_no(alpha))
            shift = label_offset(carried, followed)
            carried = carried if weight is None else carried.reweighted(weight)
        if weight is not None:
            weight = np.broadcast_to(np.asarray(weight), (self.num_labels,))
            weight = check_per_class(weight, self.num_labels, "pos_weight", what="labels")
        self._hold("alpha", alpha)
        self._hold("pos_weight", weight)
        self._hold("shift", shift)
        self._hold("carried_logit", None if carried is None else carried.logit)
        self._hold("batches_logit", batches.logit)

    @property
    def carried(self) -> LabelOdds | None:
        """The odds a model trained with this loss carries; None where those are no odds."""
        return None if self.carried_logit is None else LabelOdds(_numbers(self.carried_logit))

    @property
    def batches(self) -> LabelOdds:
        """The odds the batches are to follow: what was given as `train`."""
        return LabelOdds(_numbers(self.batches_logit))

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """The reduced loss."""
        if not isinstance(logits, Tensor) or not isinstance(labels, Tensor):
            raise TypeError(
                "a loss takes torch tensors, got "
                f"{type(logits).__name__} and {type(labels).__name__}"
            )
        if logits.dim() == 1 and self.num_labels == 1:
            reduced = self(logits[:, None], labels[:, None] if labels.dim() == 1 else labels)
            return reduced.squeeze(1) if self.reduction == "none" else reduced
        check_logits(logits, self.num_labels)
        if labels.shape != logits.shape:
            raise ValueError(
                "yes/no labels must have the logits' shape "
                f"{tuple(logits.shape)}, got {tuple(labels.shape)}; class indices belong to losses "
                "such as LogitAdjusted"
            )
        kept = None if labels.is_floating_point() else labels != self.ignore_index
        yes = labels if kept is None else labels * kept
        wide = logits.to(wide_dtype(logits.dtype))
        positive, negative = self.both(wide)
        for_yes, for_no = self._factors(wide)
        truth = yes.to(wide.dtype)
        losses = truth * for_yes * positive + (1 - truth) * for_no * negative
        if kept is not None:
            losses = losses.masked_fill(~kept, 0.0)
        if self.reduction == "mean":
            return losses.sum() / (losses.numel() if kept is None else kept.sum())
        return losses if self.reduction == "none" else losses.sum()

    def both(self, logits: Tensor) -> tuple[Tensor, Tensor]:
        """The loss of yes and that of no for every logit, without weights."""
        moved = logits + along_classes(self._cast("shift", logits), logits)
        return -F.logsigmoid(moved), -F.logsigmoid(-moved)

    def _factors(self, logits: Tensor) -> tuple[Tensor | float, Tensor | float]:
        """What yes and no of each label weigh."""
        for_yes: Tensor | float = 1.0
        for_no: Tensor | float = 1.0
        if self.alpha is not None:
            both = self._cast("alpha", logits)
            for_yes, for_no = (along_classes(weights, logits) for weights in both)
        if self.pos_weight is not None:
            for_yes = for_yes * along_classes(self._cast("pos_weight", logits), logits)
        return for_yes, for_no

    def extra_repr(self) -> str:
        """What it carries, for print(loss)."""
        return f"num_labels={self.num_labels}, carried={self.carried!r}"


class BinaryLogitAdjusted(BinaryLoss):
    """Binary cross-entropy of logits moved from the odds that they are to carry.

    By default these are even, so that σ(z) > ½ has the least balanced error of each label; say
    `carried` for others, or τ for odds^(1−τ): 0 is plain binary cross-entropy.

    >>> import torch
    >>> loss = BinaryLogitAdjusted([0.01, 0.5])
    >>> loss(torch.tensor([[2.0, -1.0]]), torch.tensor([[1, 0]]))
    tensor(1.490)
    >>> loss.carried
    LabelOdds([0.5, 0.5])
    >>> BinaryLogitAdjusted([0.01, 0.5], tau=0, pos_weight=[99, 1]).carried
    LabelOdds([0.5, 0.5])
    """

    def __init__(
        self,
        train: LabelOddsLike,
        tau: float | None = None,
        carried: LabelOddsLike | None = None,
        **options: Unpack[BinaryOptions],
    ) -> None:
        odds = LabelOdds.of(train)
        if carried is not None and tau is not None:
            raise ValueError(
                "what logits are to carry is said by carried or by tau, carried = odds^(1−tau): "
                "give one of them"
            )
        if carried is None:
            goal = odds.tempered(1 - check_number(1.0 if tau is None else tau, "tau"))
        else:
            goal = LabelOdds.of(carried)
        super().__init__(odds, goal, **options)


def yes_to_no(alpha: ArrayLike) -> Any:
    """What weights of yes and of no, shape (2, L), make of the odds."""
    both = np.asarray(alpha, np.float64)
    return both[0] / both[1]


def _numbers(tensor: Tensor) -> Any:
    return tensor.detach().cpu().numpy()
