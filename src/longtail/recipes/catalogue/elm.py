"""The recipes of ELM (Jitkrittum et al., 2022): table 3, appendices A.1 and A.2.

Table 3 says "SGD with momentum"; 0.9 is the usual one. Networks, rates, epochs, batches, schedules
and weight decay are its; crops of 4 pixels and flips are of A.1, margins and strengths of A.2.
The mean and deviation of the channels are those of most released code: the paper names none.
"""

from longtail.recipes.catalogue import logit_adjustment, sets
from longtail.recipes.catalogue.registry import Values, named


def on_cifar(data: object, loss: object) -> Values:
    """Table 3, first column."""
    return dict(
        data=data,
        backbone="resnet32",
        loss=loss,
        augment=sets.CROP_AND_FLIP,
        normalize=sets.CIFAR,
        optimizer=dict(lr=0.4, momentum=0.9, weight_decay=1e-4),
        schedule=dict(name="steps", milestones=(96, 192, 224), decay=0.1, warmup=15),
        epochs=256,
        batch_size=128,
    )


named(
    "cifar10-lt-elm",
    "ELM on CIFAR-10-LT, ratio 100.",
    "Table 3; A.2: margins P(y), lambda 0.01. Accuracy 77.95 (table 2).",
    on_cifar(sets.cifar10(), dict(name="elm", lam=0.01, margins="prior")),
)
named(
    "cifar10-lt-elm-ce",
    "Cross-entropy in the setting of ELM on CIFAR-10-LT, ratio 100.",
    "Table 3; accuracy 72.84 (table 2).",
    on_cifar(sets.cifar10(), "cross_entropy"),
)
named(
    "cifar10-lt-elm-adjusted",
    "Logit adjustment in the setting of ELM on CIFAR-10-LT, ratio 100.",
    "Table 3; accuracy 77.67 (table 2).",
    on_cifar(sets.cifar10(), dict(name="logit_adjusted", tau=1.0)),
)
named(
    "cifar100-lt-elm",
    "ELM on CIFAR-100-LT, ratio 100.",
    "Table 3; A.2: margins sqrt(n), lambda 0.01. Accuracy 45.77 (table 2).",
    on_cifar(sets.cifar100(), dict(name="elm", lam=0.01, margins="sqrt_count")),
)
named(
    "cifar100-lt-elm-ce",
    "Cross-entropy in the setting of ELM on CIFAR-100-LT, ratio 100.",
    "Table 3; accuracy 38.36 (table 2).",
    on_cifar(sets.cifar100(), "cross_entropy"),
)
named(
    "cifar100-lt-elm-adjusted",
    "Logit adjustment in the setting of ELM on CIFAR-100-LT, ratio 100.",
    "Table 3; accuracy 43.89 (table 2).",
    on_cifar(sets.cifar100(), dict(name="logit_adjusted", tau=1.0)),
)
named(
    "imagenet-lt-elm",
    "ELM on ImageNet-LT, ResNet-50.",
    "Table 3; A.2: margins 10 sqrt(P(y)), lambda 0.001. Accuracy 50.60 (table 2).",
    logit_adjustment.on_imagenet(dict(name="elm", lam=0.001, margins="sqrt_prior", scale=10.0)),
)
named(
    "inaturalist-elm",
    "ELM on iNaturalist 2018, ResNet-50.",
    "Table 3; A.2: margins sqrt(n), lambda 0.01. Accuracy 68.71 (table 2).",
    logit_adjustment.on_inaturalist(dict(name="elm", lam=0.01, margins="sqrt_count")),
)
