"""Baselines of the papers: LDAM with deferred re-weighting, and experts.

LDAM is from Cao et al. (NeurIPS 2019), the experts are from Aimar et al. (CVPR 2023), without
AutoAugment. The numbers of LDAM are those of the released code: rate 0.1 after 5 epochs of warm-up,
times 0.01 at epochs 160 and 180 of 200, batch 128, weight decay 2e-4, margins up to 0.5, scale 30,
class-balanced weights with β = 0.9999 from epoch 160 on.
"""

from longtail.recipes.catalogue import sets
from longtail.recipes.catalogue.registry import named

_ON_CIFAR = sets.RESNET32_ON_CIFAR | dict(
    schedule=dict(name="steps", milestones=(160, 180), decay=0.01, warmup=5, by_epoch=True),
    epochs=200,
)


def _ldam(classes: int, error: str) -> None:
    named(
        f"cifar{classes}-lt-ldam-drw",
        f"LDAM-DRW on CIFAR-{classes}-LT, ratio 100.",
        f"Released code. LA table 2 quotes a balanced error of {error}.",
        _ON_CIFAR
        | dict(
            data=sets.cifar(classes),
            # The head multiplies by the scale: the softmax of the logits is what is predicted.
            head=dict(name="cosine", scale=30.0),
            loss=dict(name="ldam", max_margin=0.5, scale=30.0, scale_in="head"),
            drw=dict(start=160, beta=0.9999),
            optimizer=dict(lr=0.1, momentum=0.9, weight_decay=2e-4),
        ),
    )


_ldam(10, "22.97")
_ldam(100, "57.96")
named(
    "cifar100-lt-experts",
    "Three experts on CIFAR-100-LT, ratio 100, that carry different priors.",
    "Without AutoAugment. Accuracy 52.0 over five seeds, of the best epoch by test accuracy; "
    "here it is the last epoch. The decay at the steps is that of LDAM's released code.",
    _ON_CIFAR
    | dict(
        data=sets.cifar(100),
        backbone=dict(name="resnet32_experts", num_experts=3, shared_stages=1),
        head=dict(name="experts", num_experts=3, kind="cosine", scale=30.0),
        loss=dict(name="experts", taus=(0.0, 1.0, 2.0)),
        mixup=0.4,
        optimizer=dict(lr=0.1, momentum=0.9, nesterov=True, weight_decay=5e-4),
    ),
)
