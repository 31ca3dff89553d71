"""The quick runs, which many experiments share: ResNet-32 in 40 epochs, and fits on features.

An epoch of 10,847 images takes about 92 s on one thread, so a run at ratio 100 about an hour.
"""

from longtail.flows.reproduce.experiment import Cell, Fit, Train, Variant

# All training images, the last epoch as it is: nothing is chosen, so nothing is looked at.
WHOLE = ("data.validation_share=0", "evaluate_every=40")
_COSINE = ("head=cosine", "head.scale=30")

CE = Train("cifar100-lt-ce-quick", WHOLE, 1.0)
ADJUSTED = Train("cifar100-lt-la-quick", WHOLE, 1.0)
LADE = Train("cifar100-lt-lade-quick", WHOLE, 1.0)
ELM = Train("cifar100-lt-la-quick", ("loss=elm", "loss.margins=sqrt_count", *WHOLE), 1.0)
LDAM = Train(
    "cifar100-lt-la-quick",
    ("loss=ldam", "loss.scale_in=head", *_COSINE, "drw.start=32", "drw.beta=0.9999", *WHOLE),
    1.0,
)
LDAM_ALONE = Train(
    "cifar100-lt-la-quick", ("loss=ldam", "loss.scale_in=head", *_COSINE, *WHOLE), 1.0
)
FOCAL = Train("cifar100-lt-ce-quick", ("loss=focal", *WHOLE), 1.0)
CAUSAL = Train("cifar100-lt-ce-quick", ("head=causal_norm", *WHOLE), 1.0)
# The objective as printed collapses small networks; a recipe that works takes its place here.
OFFSET = Train(
    "cifar100-lt-ce-quick", ("head=estimated_offset", "loss=estimated_offset", *WHOLE), 1.0
)
OFFSET_FREE = Train(OFFSET.recipe, (*OFFSET.overrides[:2], "loss.uniform_weight=0", *WHOLE), 1.0)
OFFSET_NONE = Train(OFFSET.recipe, (*OFFSET.overrides[:2], "head.use_offset=false", *WHOLE), 1.0)
CE_ADAM = Train(
    "cifar100-lt-ce-quick",
    ("optimizer.name=adamw", "optimizer.lr=0.001", "optimizer.weight_decay=0", *WHOLE),
    1.0,
)

CE_10 = Train("cifar10-lt-ce-quick", WHOLE, 1.2)
CE_10_ADAM = Train("cifar10-lt-ce-quick", CE_ADAM.overrides, 1.2)
ADJUSTED_10 = Train("cifar10-lt-la-quick", WHOLE, 1.2)
ELM_10 = Train("cifar10-lt-la-quick", ("loss=elm", "loss.margins=prior", *WHOLE), 1.2)

FEATURES = Fit("cifar100", 100.0)
FEATURES_200 = Fit("cifar100", 200.0)
FEATURES_50 = Fit("cifar100", 50.0)
FEATURES_10 = Fit("cifar100", 10.0, 0.2)
CALTECH = Fit("caltech", 100.0)
FIVE = (0, 1, 2, 3, 4)


def fitted(data: str, run: Fit, *methods: tuple[str, str]) -> tuple[Cell, ...]:
    """A row for each method of a fit; "pc" is the linear layer moved to the test set's prior."""

    def cell(row: str, method: str) -> Cell:
        variant: Variant = "under the target" if method == "pc" else "as trained"
        return Cell(row, data, run, variant, "linear" if method == "pc" else method)

    return tuple(cell(row, method) for row, method in methods)
