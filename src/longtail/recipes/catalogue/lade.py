"""The recipes of LADE (Hong et al., CVPR 2021): appendix, "Implementation details" and table 7.

SGD with momentum 0.9 and weight decay 5e-4 throughout. The warm-up from a third of the rate, rates
that stay the same within an epoch and crops of random size (the appendix has them of 224 out of 256
pixels) are those of the released code. "Softmax" is what PC Softmax starts from: its scores carry
the training prior and are moved to the target afterwards.
"""

from longtail.recipes.catalogue import sets
from longtail.recipes.catalogue.registry import Values, named


def on_cifar(imbalance_ratio: float, loss: object) -> Values:
    """200 epochs, rate 0.2, times 0.01 at 120 and 160."""
    warmup = dict(warmup=5, warmup_start=1 / 3)
    return dict(
        data=sets.cifar100(imbalance_ratio),
        backbone=dict(name="resnet32", dim=128),
        loss=loss,
        augment=sets.CROP_AND_FLIP,
        normalize=sets.CIFAR,
        optimizer=dict(lr=0.2, momentum=0.9, weight_decay=5e-4),
        schedule=dict(name="steps", milestones=(120, 160), decay=0.01, by_epoch=True, **warmup),
        epochs=200,
        batch_size=256,
    )


def on_places(loss: object) -> Values:
    """ResNet-152 trained on ImageNet, 30 epochs, times 0.1 every 10."""
    return dict(
        data=sets.places_lt(),
        backbone=sets.RESNET152,
        loss=loss,
        augment=sets.FLIP_AND_JITTER,
        normalize=sets.IMAGENET,
        optimizer=dict(lr=0.001, head_lr=0.05, momentum=0.9, weight_decay=5e-4),
        schedule=sets.THIRTY_EPOCHS,
        epochs=30,
        batch_size=128,
        num_workers=8,
    )


def on_imagenet(loss: object) -> Values:
    """ResNeXt-50-32x4d, 180 epochs, half a cosine from 0.05."""
    setting = _half_a_cosine("resnext50_32x4d", loss, lr=0.05, epochs=180)
    augment = dict(augment=sets.FLIP_AND_JITTER, normalize=sets.IMAGENET)
    return dict(data=sets.imagenet_lt(), **augment, **setting)


def on_inaturalist(loss: object) -> Values:
    """ResNet-50, 200 epochs, half a cosine from 0.1."""
    setting = _half_a_cosine("resnet50", loss, lr=0.1, epochs=200)
    augment = dict(augment=("flip",), normalize=sets.INATURALIST)
    return dict(data=sets.inaturalist(), **augment, **setting)


def _half_a_cosine(network: str, loss: object, lr: float, epochs: int) -> Values:
    return dict(
        backbone=dict(name="torchvision", network=network),
        loss=loss,
        optimizer=dict(lr=lr, momentum=0.9, weight_decay=5e-4),
        schedule=dict(name="cosine", by_epoch=True),
        epochs=epochs,
        batch_size=256,
        num_workers=8,
    )


named(
    "cifar100-lt-lade",
    "LADE on CIFAR-100-LT, ratio 100.",
    "Appendix and table 7 (alpha 0.1, lambda 0.01, batch 256); accuracy 45.4 (table 2). The "
    "network is the 128-dimensional one of the released code, which the paper calls ResNet-32.",
    on_cifar(100.0, dict(name="lade", alpha=0.1, lam=0.01)),
)
named(
    "cifar100-lt50-lade",
    "LADE on CIFAR-100-LT, ratio 50.",
    "As at ratio 100 but alpha 0.01 (table 7); accuracy 50.5 (table 2).",
    on_cifar(50.0, dict(name="lade", alpha=0.01, lam=0.01)),
)
named(
    "cifar100-lt10-lade",
    "LADE on CIFAR-100-LT, ratio 10.",
    "As at ratio 100 but alpha 0.01 (table 7); accuracy 61.7 (table 2).",
    on_cifar(10.0, dict(name="lade", alpha=0.01, lam=0.01)),
)
named(
    "cifar100-lt-lade-softmax",
    "Softmax and PC Softmax of LADE on CIFAR-100-LT, ratio 100.",
    "Appendix; accuracy 41.0 as it is and 45.3 under the uniform prior (table 2).",
    on_cifar(100.0, "cross_entropy"),
)
named(
    "places-lt-lade",
    "LADE on Places-LT, ResNet-152 trained on ImageNet.",
    "Appendix and table 7 (alpha 0.005, lambda 0.1, batch 128); accuracy 38.8 (table 3). The "
    "classifier has a rate of its own. Crops of random size and how strong the jitter is are "
    "of released code.",
    on_places(dict(name="lade", alpha=0.005, lam=0.1)),
)
named(
    "places-lt-lade-softmax",
    "Softmax and PC Softmax of LADE on Places-LT, ResNet-152 trained on ImageNet.",
    "Appendix; the setting of places-lt-lade.",
    on_places("cross_entropy"),
)
named(
    "imagenet-lt-lade",
    "LADE on ImageNet-LT, ResNeXt-50-32x4d, 180 epochs.",
    "Appendix and table 7 (alpha 0.05, lambda 0.5, batch 256); accuracy 53.0 (table 4). Crops "
    "of random size and how strong the jitter is are of released code.",
    on_imagenet(dict(name="lade", alpha=0.05, lam=0.5)),
)
named(
    "imagenet-lt-lade-softmax",
    "Softmax and PC Softmax of LADE on ImageNet-LT, ResNeXt-50-32x4d, 180 epochs.",
    "Appendix; accuracy 48.2 as it is and 52.8 under the uniform prior (table 4).",
    on_imagenet("cross_entropy"),
)
named(
    "inaturalist-lade",
    "LADE on iNaturalist 2018, ResNet-50, 200 epochs.",
    "Appendix and table 7 (alpha 0.05, lambda 0.5, batch 256); accuracy 70.0 (table 5). Crops "
    "of random size and no jitter, as in released code.",
    on_inaturalist(dict(name="lade", alpha=0.05, lam=0.5)),
)
named(
    "inaturalist-lade-softmax",
    "Softmax and PC Softmax of LADE on iNaturalist 2018, ResNet-50, 200 epochs.",
    "Appendix; accuracy 65.0 as it is and 69.3 under the uniform prior (table 5).",
    on_inaturalist("cross_entropy"),
)
