"""The recipes of EO (de-biasing with an estimated offset), §4.1.

The paper says: ResNet-10 from scratch on ImageNet-LT, ResNet-152 trained on ImageNet for Places-LT
and SUN397, SGD with momentum 0.9, images of 224 pixels, λ₁ = λ₂ = 1. It does not say the rate, the
schedule, the batch, the epochs or the weight decay: on ImageNet-LT they are those of Kang et al.
(ICLR 2020; rate 0.2, batch 512, 90 epochs, half a cosine, 5e-4), on the other two those of LADE on
Places-LT with one rate for all weights.
"""

from longtail.recipes.catalogue import sets
from longtail.recipes.catalogue.registry import Values, named


def _setting(offset: bool, data: object, **options: object) -> Values:
    """With the offset, or as plain cross-entropy."""
    loss = dict(name="estimated_offset", center_weight=1.0, uniform_weight=1.0)
    return dict(
        data=data,
        head="estimated_offset" if offset else "linear",
        loss=loss if offset else "cross_entropy",
        augment=sets.FLIP_AND_JITTER,
        normalize=sets.IMAGENET,
        num_workers=8,
        **options,
    )


def on_imagenet(offset: bool) -> Values:
    """From scratch."""
    return _setting(
        offset,
        sets.imagenet_lt(),
        backbone=sets.RESNET10,
        optimizer=dict(lr=0.2, momentum=0.9, weight_decay=5e-4),
        schedule=dict(name="cosine", by_epoch=True),
        epochs=90,
        batch_size=512,
    )


def fine_tuned(data: object, offset: bool) -> Values:
    """From weights trained on ImageNet."""
    return _setting(
        offset,
        data,
        backbone=sets.RESNET152,
        optimizer=dict(lr=0.01, momentum=0.9, weight_decay=5e-4),
        schedule=sets.THIRTY_EPOCHS,
        epochs=30,
        batch_size=128,
    )


named(
    "imagenet-lt-eo",
    "Estimated offset on ImageNet-LT, ResNet-10.",
    "EO §4.1: network, momentum, lambda. Rate, schedule, batch, epochs and decay are not "
    "said: those of Kang et al. Accuracy 42.9 (table 1). Without the uniform constraint: "
    "loss.uniform_weight=0; the constraint alone: head.use_offset=false.",
    on_imagenet(offset=True),
)
named(
    "imagenet-lt-eo-baseline",
    "The baseline of EO on ImageNet-LT, ResNet-10 with cross-entropy.",
    "EO §4.1, the rest as in imagenet-lt-eo. Accuracy 21.9 (table 1).",
    on_imagenet(offset=False),
)
named(
    "places-lt-eo",
    "Estimated offset on Places-LT, ResNet-152 trained on ImageNet.",
    "EO §4.1: network, momentum, lambda. The rest is not said: schedule, batch, epochs and decay "
    "are LADE's, the rate is ours. Accuracy 39.4 (table 1), on an earlier version of the set.",
    fine_tuned(sets.places_lt(), offset=True),
)
named(
    "places-lt-eo-baseline",
    "The baseline of EO on Places-LT, ResNet-152 with cross-entropy.",
    "EO §4.1, the rest as in places-lt-eo. Accuracy 28.2 (table 1).",
    fine_tuned(sets.places_lt(), offset=False),
)
named(
    "sun397-eo",
    "Estimated offset on SUN397, ResNet-152 trained on ImageNet.",
    "EO §4.1: network, momentum, lambda. The rest is not said: as in places-lt-eo. Accuracy "
    "58.9 (table 2). The split is not published as lists: name yours train.txt and test.txt.",
    fine_tuned(sets.sun397(), offset=True),
)
named(
    "sun397-eo-baseline",
    "The baseline of EO on SUN397, ResNet-152 with cross-entropy.",
    "EO §4.1, the rest as in sun397-eo. Accuracy 48.0 (table 2).",
    fine_tuned(sets.sun397(), offset=False),
)
