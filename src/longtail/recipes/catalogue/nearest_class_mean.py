"""The recipes of NCM (learned nearest class mean): stage one, and the heads of stage two.

§5.2 says: SGD, half a cosine, instance sampling, ResNet-32 for CIFAR, ResNet-10 for ImageNet-LT;
stage two: rate 5, momentum 0.9, gradients cut at 0.1, which `fit_head` takes by itself. The rest
of stage one follows the code of balanced meta-softmax (Ren et al., NeurIPS 2020), which the paper
names as prior work: batch 512, 13,000 steps, a warm-up from 0.05 to 0.1 over 800 of them, weight
decay 5e-4, AutoAugment and Cutout. Steps are made epochs of 22 (CIFAR-100) and 25 (CIFAR-10).
"""

from longtail.recipes.catalogue import sets
from longtail.recipes.catalogue.registry import Values, named

# The rows of NCM table 1: means, learned means, both with logit adjustment, displacements.
HEADS = dict(
    heads=(
        "nearest_class_mean",
        "learned_ncm",
        dict(name="learned_ncm", tau=0.125),
        dict(name="multi_ncm", num_displacements=20),
        dict(name="multi_ncm", tau=0.125, num_displacements=20),
    )
)


def on_cifar(data: object, epochs: int, warmup: int) -> Values:
    """Stage one and two."""
    return dict(
        data=data,
        backbone="resnet32",
        augment=(dict(name="crop", padding=4), "flip", "autoaugment", dict(name="cutout", size=16)),
        normalize=sets.CIFAR,
        optimizer=dict(lr=0.1, momentum=0.9, weight_decay=5e-4),
        schedule=dict(name="cosine", warmup=warmup, warmup_start=0.5),
        epochs=epochs,
        batch_size=512,
        second_stage=HEADS,
    )


named(
    "cifar10-lt-ncm",
    "Learned NCM on CIFAR-10-LT, ratio 100: cross-entropy first, then the heads of NCM.",
    "§5.2 and, for what it does not say (batch, steps, warm-up, decay, augmentation), the "
    "code of balanced meta-softmax. Accuracy 81.6 (table 2). Batch-norm anew (A.4): "
    "second_stage.batch_norm=reestimate.",
    on_cifar(sets.cifar(10), epochs=520, warmup=32),
)
named(
    "cifar100-lt-ncm",
    "Learned NCM on CIFAR-100-LT, ratio 100: cross-entropy first, then the heads of NCM.",
    "§5.2 and, for what it does not say (batch, steps, warm-up, decay, augmentation), the code of "
    "balanced meta-softmax. Accuracy 46.0 softmax, 48.7 means, 50.7 learned, 50.9 with adjustment, "
    "51.0 with displacements too (table 1). Figure 4: data.imbalance_ratio=200 "
    "data.validation_share=0.1.",
    on_cifar(sets.cifar(100), epochs=591, warmup=36),
)
named(
    "imagenet-lt-ncm",
    "Learned NCM on ImageNet-LT, ResNet-10: cross-entropy first, then the heads of NCM.",
    "§5.2 names network, SGD and half a cosine. Rate 0.2, batch 512, 90 epochs, decay 5e-4 "
    "and augmentation are those of Kang et al. (ICLR 2020): the paper does not say.",
    dict(
        data=sets.imagenet_lt(),
        backbone=sets.RESNET10,
        augment=sets.FLIP_AND_JITTER,
        normalize=sets.IMAGENET,
        optimizer=dict(lr=0.2, momentum=0.9, weight_decay=5e-4),
        schedule="cosine",
        epochs=90,
        batch_size=512,
        num_workers=8,
        second_stage=HEADS,
    ),
)
