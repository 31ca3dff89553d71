"""The recipes of EO (de-biasing with an estimated offset), §4.1.

The paper says: ResNet-10 from scratch on ImageNet-LT, ResNet-152 trained on ImageNet for Places-LT
and SUN397, SGD with momentum 0.9, images of 224 pixels, λ₁ = λ₂ = 1. It does not say the rate, the
schedule, the batch, the epochs or the weight decay: on ImageNet-LT they are those of Kang et al.
(ICLR 2020; rate 0.2, batch 512, 90 epochs, half a cosine, 5e-4), on the other two those of LADE on
Places-LT with one rate for all weights.
"""

from longtail.recipes.catalogue import sets
from longtail.recipes.catalogue.registry import named

_SETTING = dict(augment=sets.FLIP_AND_JITTER, normalize=sets.IMAGENET, num_workers=8)
_ON_IMAGENET = _SETTING | dict(
    data=sets.imagenet_lt(),
    backbone=sets.RESNET10,
    optimizer=dict(lr=0.2, momentum=0.9, weight_decay=5e-4),
    schedule=dict(name="cosine", by_epoch=True),
    epochs=90,
    batch_size=512,
)
_FINE_TUNED = _SETTING | dict(
    backbone=sets.RESNET152,
    optimizer=dict(lr=0.01, momentum=0.9, weight_decay=5e-4),
    schedule=sets.THIRTY_EPOCHS,
    epochs=30,
    batch_size=128,
)


def _with_baseline(
    name: str, data: str, start: str, setting: dict[str, object], source: str, accuracy: str
) -> None:
    """With the offset, and as plain cross-entropy, which has this accuracy."""
    loss = dict(name="estimated_offset", center_weight=1.0, uniform_weight=1.0)
    named(
        name,
        f"Estimated offset on {data}{start}.",
        f"EO §4.1: network, momentum, lambda. {source}",
        setting | dict(head="estimated_offset", loss=loss),
    )
    named(
        f"{name}-baseline",
        f"The baseline of EO on {data} with cross-entropy.",
        f"EO §4.1, the rest as in {name}. Accuracy {accuracy}.",
        setting | dict(head="linear", loss="cross_entropy"),
    )


_with_baseline(
    "imagenet-lt-eo",
    "ImageNet-LT, ResNet-10",
    "",
    _ON_IMAGENET,
    "Rate, schedule, batch, epochs and decay are not said: those of Kang et al. Accuracy 42.9 "
    "(table 1). Without the uniform constraint: loss.uniform_weight=0; the constraint alone: "
    "head.use_offset=false.",
    "21.9 (table 1)",
)
_with_baseline(
    "places-lt-eo",
    "Places-LT, ResNet-152",
    " trained on ImageNet",
    _FINE_TUNED | dict(data=sets.places_lt()),
    "The rest is not said: schedule, batch, epochs and decay are LADE's, the rate is ours. "
    "Accuracy 39.4 (table 1), on an earlier version of the set.",
    "28.2 (table 1)",
)
_with_baseline(
    "sun397-eo",
    "SUN397, ResNet-152",
    " trained on ImageNet",
    _FINE_TUNED | dict(data=sets.sun397()),
    "The rest is not said: as in places-lt-eo. Accuracy 58.9 (table 2). The split is not published "
    "as lists: name yours train.txt and test.txt.",
    "48.0 (table 2)",
)
