"""The data sets of the papers, as published: nothing held out where the figures held nothing out.

Class counts and list names are those of Liu et al. (CVPR 2019) for ImageNet-LT and Places-LT, and
of Kang et al. (ICLR 2020) for iNaturalist 2018, which has no test labels: its validation part is
what papers report on. SUN397 in its long-tailed split (Wang et al., NeurIPS 2017) has no lists
under one name: call yours train.txt and test.txt. Training sees rectangles of random place and
size, scaled to 224 pixels, as in released code.
"""

from longtail.recipes.catalogue.registry import Values

# Mean and standard deviation of each channel, of values in 0 to 1.
CIFAR = dict(mean=(0.4914, 0.4822, 0.4465), std=(0.2023, 0.1994, 0.2010))
IMAGENET = dict(mean=(0.485, 0.456, 0.406), std=(0.229, 0.224, 0.225))
INATURALIST = dict(mean=(0.466, 0.471, 0.380), std=(0.195, 0.194, 0.192))
# Padded by 4 pixels and flipped: LDAM's code, LADE's, ELM appendix A.1.
CROP_AND_FLIP = (dict(name="crop", padding=4), "flip")
# What most papers do on CIFAR.
RESNET32_ON_CIFAR = dict(
    backbone="resnet32", augment=CROP_AND_FLIP, normalize=CIFAR, batch_size=128
)
# LADE appendix, "Data Pre-processing"; its strength from the released code.
FLIP_AND_JITTER = ("flip", dict(name="color_jitter", brightness=0.4, contrast=0.4, color=0.4))
# One block a stage: the ResNet-10 of the long-tailed literature.
RESNET10 = dict(name="timm", network="resnet18", options={"layers": [1, 1, 1, 1]})
RESNET152 = dict(name="torchvision", network="resnet152", options={"weights": "IMAGENET1K_V1"})
THIRTY_EPOCHS = dict(name="steps", milestones=(10, 20), decay=0.1, by_epoch=True)


def cifar(classes: int, imbalance_ratio: float = 100.0) -> Values:
    """All of the cut is trained on: at ratio 100 12,406 images of CIFAR-10, 10,847 of CIFAR-100."""
    return dict(kind=f"cifar{classes}", imbalance_ratio=imbalance_ratio, validation_share=0.0)


def imagenet_lt() -> Values:
    """115,846 images of 1,000 classes, 20 a class for validation, 50 for the test."""
    return _lists("ImageNet_LT_", 1000, validation="ImageNet_LT_val.txt")


def places_lt() -> Values:
    """62,500 images of 365 classes, 20 a class for validation, 100 for the test."""
    return _lists("Places_LT_", 365, validation="Places_LT_val.txt")


def inaturalist() -> Values:
    """437,513 images of 8,142 classes, 3 a class for the test."""
    return _lists("iNaturalist18_", 8142, test="val")


def sun397() -> Values:
    """397 classes of 1 to 1,132 images (EO §4.1)."""
    return _lists("", 397)


def _lists(
    prefix: str, num_classes: int, validation: str | None = None, test: str = "test"
) -> Values:
    return dict(
        kind="lists",
        train=f"{prefix}train.txt",
        validation=validation,
        test=f"{prefix}{test}.txt",
        num_classes=num_classes,
        validation_share=0.0,
        size=224,
        resize=256,
        random_crop=True,
    )
