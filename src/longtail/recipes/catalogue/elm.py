"""The recipes of ELM (Jitkrittum et al., 2022): table 3, appendices A.1 and A.2.

Table 3 says "SGD with momentum"; 0.9 is the usual one. Networks, rates, epochs, batches, schedules
and weight decay are its; crops of 4 pixels and flips are of A.1, margins and strengths of A.2.
The mean and deviation of the channels are those of most released code: the paper names none.
"""

from longtail.recipes.catalogue import logit_adjustment, sets
from longtail.recipes.catalogue.registry import named

# Table 3, first column.
_ON_CIFAR = sets.RESNET32_ON_CIFAR | dict(
    optimizer=dict(lr=0.4, momentum=0.9, weight_decay=1e-4),
    schedule=dict(name="steps", milestones=(96, 192, 224), decay=0.1, warmup=15),
    epochs=256,
)


def _on_cifar(classes: int, margins: str, formula: str, accuracies: tuple[str, str, str]) -> None:
    """ELM, and what table 2 has beside it."""
    setting = _ON_CIFAR | dict(data=sets.cifar(classes))
    data = f"CIFAR-{classes}-LT, ratio 100."
    elm, cross_entropy, adjusted = accuracies
    named(
        f"cifar{classes}-lt-elm",
        f"ELM on {data}",
        f"Table 3; A.2: margins {formula}, lambda 0.01. Accuracy {elm} (table 2).",
        setting | dict(loss=dict(name="elm", lam=0.01, margins=margins)),
    )
    named(
        f"cifar{classes}-lt-elm-ce",
        f"Cross-entropy in the setting of ELM on {data}",
        f"Table 3; accuracy {cross_entropy} (table 2).",
        setting | dict(loss="cross_entropy"),
    )
    named(
        f"cifar{classes}-lt-elm-adjusted",
        f"Logit adjustment in the setting of ELM on {data}",
        f"Table 3; accuracy {adjusted} (table 2).",
        setting | dict(loss=dict(name="logit_adjusted", tau=1.0)),
    )


_on_cifar(10, "prior", "P(y)", ("77.95", "72.84", "77.67"))
_on_cifar(100, "sqrt_count", "sqrt(n)", ("45.77", "38.36", "43.89"))
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
