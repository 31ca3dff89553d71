"""ELM, embedding and logit margins: tables 1 to 3. Its figures are in a file beside this."""

from longtail.flows.reproduce.experiment import (
    Better,
    Cell,
    Close,
    Column,
    Experiment,
    Inspect,
    Missing,
    Quick,
    Train,
)
from longtail.recipes.experiments import runs

_THREE = (0, 1, 2)
_LDAM = ("loss=ldam", "loss.scale_in=head", "head=cosine", "head.scale=30", "drw.start=72")
_FOCAL = ("loss=class_balanced", "loss.gamma=1")
_PLAIN = {
    "cifar10-lt": Train("cifar10-lt-elm-ce"),
    "cifar100-lt": Train("cifar100-lt-elm-ce"),
    "imagenet-lt": Train("imagenet-lt-la-ce"),
    "inaturalist": Train("inaturalist-la-ce"),
}

_TABLE_1 = Experiment(
    name="elm-table-1",
    paper="ELM",
    item="Table 1",
    about="Which methods have margins on logits and on embeddings, and know of the long tail.",
    columns=tuple(
        Column(name, "property")
        for name in (
            "Long tail?",
            "Logit loss?",
            "Logit margin?",
            "Embedding loss?",
            "Embedding margin?",
        )
    ),
    rows={
        "Contrastive loss": (None, None, None, True, False),
        "Supervised contrastive loss": (False, False, None, True, False),
        "Triplet loss": (False, False, None, True, True),
        "Spreadout": (False, True, False, True, False),
        "Center loss": (False, True, False, True, False),
        "Hybrid contrastive learning": (False, True, False, True, False),
        "Softmax with margin": (True, True, True, False, None),
        "Range loss": (True, True, False, True, True),
        "DRO-LT": (True, True, False, True, True),
        "Ours": (True, True, True, True, True),
    },
    missing=(Missing("*", "It lists properties of methods; nothing is measured."),),
)

_CE, _ADJUSTED, _ELM = "Cross-entropy (CE)", "LogAdj", "ELM (proposed, one-stage)"
_NORM = "CE + weight normalisation (multi-stage)"
_ONE_STAGE, _MULTI_STAGE = "CE + DRO-LT (one-stage)", "CE + DRO-LT (multi-stage)"
_TABLE_2 = Experiment(
    name="elm-table-2",
    paper="ELM",
    item="Table 2",
    about="Balanced test accuracy of ELM and its rivals on four sets, mean of 3 trials.",
    needs=("cifar10", "cifar100", "imagenet-lt", "inaturalist"),
    columns=(
        Column("CIFAR10-LT", "accuracy", "cifar10-lt"),
        Column("CIFAR100-LT", "accuracy", "cifar100-lt"),
        Column("ImageNet-LT", "accuracy", "imagenet-lt"),
        Column("iNaturalist", "accuracy", "inaturalist"),
    ),
    # CE and LogAdj are LA's numbers but on ImageNet-LT, where LA has 46.89 and 51.11.
    rows={
        _CE: (72.84, 38.36, 45.20, 61.34),
        "CB Focal": (74.57, 39.60, 46.79, 64.16),
        "LDAM + DRW": (77.03, 42.04, 50.15, 68.00),
        _ADJUSTED: (77.67, 43.89, 50.37, 66.36),
        _ONE_STAGE: (72.70, 41.98, 45.70, 62.05),
        _NORM: (78.50, 41.34, 50.63, 65.60),  # LA: 58.76 of errors, which is 41.24
        _MULTI_STAGE: (80.50, 46.92, 53.00, 69.70),
        _ELM: (77.95, 45.77, 50.60, 68.71),
    },
    cells=(
        *(Cell(_CE, data, run) for data, run in _PLAIN.items()),
        *(Cell(_NORM, data, run, "best weight norm") for data, run in _PLAIN.items()),
        *(Cell("CB Focal", data, Train(run.recipe, _FOCAL)) for data, run in _PLAIN.items()),
        Cell("LDAM + DRW", "cifar10-lt", Train("cifar10-lt-ldam-drw")),
        Cell("LDAM + DRW", "cifar100-lt", Train("cifar100-lt-ldam-drw")),
        Cell("LDAM + DRW", "imagenet-lt", Train("imagenet-lt-la-ce", _LDAM)),
        Cell(
            "LDAM + DRW",
            "inaturalist",
            Train("inaturalist-la-ce", (*_LDAM, "loss.max_margin=0.3")),
        ),
        Cell(_ADJUSTED, "cifar10-lt", Train("cifar10-lt-elm-adjusted")),
        Cell(_ADJUSTED, "cifar100-lt", Train("cifar100-lt-elm-adjusted")),
        Cell(_ADJUSTED, "imagenet-lt", Train("imagenet-lt-la-adjusted")),
        Cell(_ADJUSTED, "inaturalist", Train("inaturalist-la-adjusted")),
        Cell(_ELM, "cifar10-lt", Train("cifar10-lt-elm")),
        Cell(_ELM, "cifar100-lt", Train("cifar100-lt-elm")),
        Cell(_ELM, "imagenet-lt", Train("imagenet-lt-elm")),
        Cell(_ELM, "inaturalist", Train("inaturalist-elm")),
    ),
    seeds=_THREE,
    quick=Quick(
        cells=(
            Cell(_CE, "cifar100-lt", runs.CE),
            Cell(_NORM, "cifar100-lt", runs.CE, "best weight norm"),
            Cell(_ADJUSTED, "cifar100-lt", runs.ADJUSTED),
            Cell(_ELM, "cifar100-lt", runs.ELM),
            Cell("LDAM + DRW", "cifar100-lt", runs.LDAM),
            Cell("CB Focal", "cifar100-lt", Train(runs.CE.recipe, (*_FOCAL, *runs.WHOLE), 1.0)),
            Cell(_CE, "cifar10-lt", runs.CE_10),
            Cell(_NORM, "cifar10-lt", runs.CE_10, "best weight norm"),
            Cell(_ADJUSTED, "cifar10-lt", runs.ADJUSTED_10),
            Cell(_ELM, "cifar10-lt", runs.ELM_10),
        ),
        needs=("cifar10", "cifar100"),
        note="Both CIFAR sets in 40 epochs; ImageNet-LT and iNaturalist are left out.",
    ),
    claims=(
        Better("a logit margin helps: LogAdj beats cross-entropy", _ADJUSTED, _CE),
        Better("a logit margin helps: LDAM + DRW beats cross-entropy", "LDAM + DRW", _CE),
        Better(
            "an embedding margin helps: one-stage DRO-LT consistently beats cross-entropy",
            _ONE_STAGE,
            _CE,
            doubt="On CIFAR10-LT it does not: 72.70 against 72.84.",
        ),
        Better("both margins together beat the logit margin: ELM over LogAdj", _ELM, _ADJUSTED),
        Better("ELM beats LDAM + DRW", _ELM, "LDAM + DRW"),
        Better("ELM beats one-stage DRO-LT", _ELM, _ONE_STAGE),
        Close(
            "the difference to multi-stage DRO-LT is small across all sets",
            _ELM,
            _MULTI_STAGE,
            within=3.0,
        ),
    ),
    missing=(
        Missing(_ONE_STAGE, "The term is in longtail.losses, but no recipe can name it yet."),
        Missing(_MULTI_STAGE, "No recipe has its stages: centroids, the term, a balanced head."),
    ),
)

_STEPS = (
    "Linear warmup for the first 15 epochs, and a decay of 0.1 at the 96th, 192nd, and 224th epoch"
)
_SGD = "SGD with momentum"
# Printed with a column for each set: here the sets are the rows.
_TABLE_3 = Experiment(
    name="elm-table-3",
    paper="ELM",
    item="Table 3",
    about="The settings of training.",
    columns=(
        Column("Model", "setting", key="backbone"),
        Column("Optimiser", "setting", key="optimizer.name"),
        Column("Base learning rate", "setting", key="optimizer.lr"),
        Column("Epochs", "setting", key="epochs"),
        Column("Batch size", "setting", key="batch_size"),
        Column("Schedule", "setting", key="schedule"),
        Column("Weight decay", "setting", key="optimizer.weight_decay"),
    ),
    rows={
        "CIFAR*-LT": ("CIFAR ResNet-32", _SGD, 0.4, 256, 128, _STEPS, 1e-4),
        "ImageNet-LT": ("ResNet-50", _SGD, 0.4, 90, 512, "Cosine", 5e-4),
        "iNaturalist": ("ResNet-50", _SGD, 0.4, 90, 1024, "Cosine", 1e-4),
    },
    cells=(
        Cell("CIFAR*-LT", "", Inspect("cifar100-lt-elm")),
        Cell("ImageNet-LT", "", Inspect("imagenet-lt-elm")),
        Cell("iNaturalist", "", Inspect("inaturalist-elm")),
    ),
)

TABLES = (_TABLE_1, _TABLE_2, _TABLE_3)
