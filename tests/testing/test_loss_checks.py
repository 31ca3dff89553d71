"""The checks themselves: each catches a loss that breaks exactly what it checks."""

import pytest
import torch

from longtail import losses, testing
from longtail.testing import ContractError, check_loss, loss_checks


def broken(**methods):
    """A cross-entropy class with some methods replaced."""
    return type("Broken", (losses.CrossEntropy,), methods)


def forward_with(change):
    def forward(self, logits, labels, features=None):
        return change(self, super(type(self), self).forward(logits, labels), logits, labels)

    return forward


BREAKS = {
    "check_reduction": broken(
        forward=forward_with(lambda self, v, *_: 2 * v if self.reduction == "mean" else v)
    ),
    "check_soft_labels": broken(class_losses=lambda self, logits: torch.zeros_like(logits)),
    "check_label_smoothing": broken(  # smooths labels, and declares the prior of the true ones
        __init__=lambda self, train, **options: (
            losses.CrossEntropy.__init__(self, train, **options),
            setattr(self, "carried_log", torch.as_tensor(train.log)),
        )[0]
    ),
    "check_class_dim": broken(
        __init__=lambda self, train, class_dim=None, **options: losses.CrossEntropy.__init__(
            self, train, class_dim=1 if class_dim else None, **options
        )
    ),
    "check_ignore_index": broken(
        forward=forward_with(lambda self, v, f, y: v + (y == -100).sum() * f.sum())
    ),
    "check_positions": broken(
        forward=forward_with(lambda self, v, f, y: v if f.dim() == 2 else v + 1)
    ),
    "check_half_precision": broken(
        forward=forward_with(lambda self, v, f, y: v.half() if f.dtype == torch.float16 else v)
    ),
    "check_extremes": broken(
        forward=forward_with(lambda self, v, f, y: v + 0 * f.exp().sum().log())
    ),
    "check_gradients": broken(
        forward=forward_with(lambda self, v, f, y: v + f.detach().square().sum())
    ),
    "check_options": broken(
        __init__=lambda self, train, **options: losses.CrossEntropy.__init__(self, train)
    ),
    "check_state": broken(
        forward=forward_with(lambda self, v, f, y: v * self.hidden),
        __init__=lambda self, train, **options: (
            losses.CrossEntropy.__init__(self, train, **options),
            setattr(self, "hidden", float(train.probs[0])),  # not in the state dict
        )[0],
    ),
}


@pytest.mark.parametrize("name", BREAKS)
def test_a_check_catches_what_it_is_for(name):
    with pytest.raises(ContractError):
        getattr(loss_checks, name)(BREAKS[name])


def test_every_check_is_run_by_check_loss():
    named = {n for n in vars(loss_checks) if n.startswith("check_")} - {"check_loss"}
    imported = {"check_labels"}
    assert {check.__name__ for check in testing.LOSS_CHECKS} == named - imported


def test_check_loss_passes_a_sound_loss_and_fails_a_broken_one():
    check_loss(losses.CrossEntropy)
    with pytest.raises(ContractError):
        check_loss(BREAKS["check_reduction"])
