"""LADE, disentangling label distribution: tables 2 to 5. The rest is in files beside this one."""

from longtail.flows.reproduce.experiment import (
    Better,
    Cell,
    Close,
    Column,
    Experiment,
    Missing,
    Quick,
    Train,
    by_group,
)
from longtail.recipes.experiments import runs

_BBN = Missing("BBN", "BBN trains two branches with samplers of their own, which no recipe has.")
_OLTR = "OLTR attends over a memory of class centres, which no part of ours does."
_SHOTS = ("Many", "Medium", "Few", "All")
_TEN = ("data.imbalance_ratio=10",)
_FIFTY = ("data.imbalance_ratio=50",)
CAUSAL = ("head=causal_norm",)
BALANCED = ("loss=balanced_softmax",)
_LDAM = ("loss=ldam", "loss.scale_in=head", "head=cosine", "head.scale=30")


def plain_cells(data: str, recipe: str, overrides: tuple[str, ...] = ()) -> tuple[Cell, ...]:
    """Causal Norm, Balanced Softmax, Softmax and PC Softmax in one setting."""
    softmax = Train(recipe, overrides)
    return (
        Cell("Causal Norm", data, Train(recipe, (*overrides, *CAUSAL))),
        Cell("Balanced Softmax", data, Train(recipe, (*overrides, *BALANCED))),
        Cell("Softmax", data, softmax),
        Cell("PC Softmax", data, softmax, "under the target"),
    )


def quick_cells(data: str) -> tuple[Cell, ...]:
    """The same and LADE, by the quick runs on CIFAR-100-LT, ratio 100."""
    return (
        Cell("Softmax", data, runs.CE),
        Cell("PC Softmax", data, runs.CE, "under the target"),
        Cell("Balanced Softmax", data, runs.ADJUSTED),
        Cell("LADE", data, runs.LADE, "under the target"),
        Cell("Causal Norm", data, runs.CAUSAL),
    )


ON_FEATURES = (
    ("Softmax", "linear"),
    ("PC Softmax", "pc"),
    ("LADE", "lade"),
    ("Causal Norm", "causal_norm"),
)

_TABLE_2 = Experiment(
    name="lade-table-2",
    paper="LADE",
    item="Table 2",
    about="Accuracy on CIFAR-100-LT with imbalance ratios 100, 50 and 10.",
    needs=("cifar100",),
    columns=(
        Column("100", "accuracy", "cifar100-lt-100"),
        Column("50", "accuracy", "cifar100-lt-50"),
        Column("10", "accuracy", "cifar100-lt-10"),
    ),
    rows={
        "Focal Loss": (38.4, 44.3, 55.8),
        "LDAM": (42.0, 46.6, 58.7),
        "BBN": (42.6, 47.0, 59.1),
        "Causal Norm": (44.1, 50.3, 59.6),
        "Balanced Softmax": (45.1, 49.9, 61.6),
        "Softmax": (41.0, 45.5, 59.0),
        "PC Softmax": (45.3, 49.5, 61.2),
        "LADE": (45.4, 50.5, 61.7),
    },
    cells=(
        *plain_cells("cifar100-lt-100", "cifar100-lt-lade-softmax"),
        *plain_cells("cifar100-lt-50", "cifar100-lt-lade-softmax", _FIFTY),
        *plain_cells("cifar100-lt-10", "cifar100-lt-lade-softmax", _TEN),
        Cell("LADE", "cifar100-lt-100", Train("cifar100-lt-lade")),
        Cell("LADE", "cifar100-lt-50", Train("cifar100-lt50-lade")),
        Cell("LADE", "cifar100-lt-10", Train("cifar100-lt10-lade")),
        *(
            cell
            for data, ratio in (
                ("cifar100-lt-100", ()),
                ("cifar100-lt-50", _FIFTY),
                ("cifar100-lt-10", _TEN),
            )
            for cell in (
                Cell("Focal Loss", data, Train("cifar100-lt-lade-softmax", (*ratio, "loss=focal"))),
                # 42.0 is the number of LDAM with DRW in LDAM's paper.
                Cell("LDAM", data, Train("cifar100-lt-ldam-drw", ratio)),
            )
        ),
    ),
    quick=Quick(
        cells=(
            *quick_cells("cifar100-lt-100"),
            Cell("LDAM", "cifar100-lt-100", runs.LDAM),
            Cell("Focal Loss", "cifar100-lt-100", runs.FOCAL),
            *runs.fitted("cifar100-lt-50", runs.FEATURES_50, *ON_FEATURES),
            *runs.fitted("cifar100-lt-10", runs.FEATURES_10, *ON_FEATURES),
        ),
        needs=("cifar100", "cifar100-features"),
        note="Ratio 100 in 40 epochs; ratios 50 and 10 by heads on features of a frozen network.",
    ),
    claims=(
        Better("PC Softmax beats Softmax", "PC Softmax", "Softmax"),
        Better("LADE beats PC Softmax", "LADE", "PC Softmax"),
        Better("LADE beats Balanced Softmax", "LADE", "Balanced Softmax"),
        Better("LADE beats LDAM", "LADE", "LDAM"),
        Better("LADE beats the focal loss", "LADE", "Focal Loss"),
        Better("LADE beats Causal Norm", "LADE", "Causal Norm"),
        Better("PC Softmax beats LDAM", "PC Softmax", "LDAM"),
        Better(
            "PC Softmax beats Causal Norm",
            "PC Softmax",
            "Causal Norm",
            doubt="At ratio 50 it does not: 49.5 against 50.3.",
        ),
    ),
    missing=(_BBN,),
)

_TABLE_3 = Experiment(
    name="lade-table-3",
    paper="LADE",
    item="Table 3",
    about="Accuracy on Places-LT by group, starting from a ResNet-152 trained on ImageNet.",
    needs=("places-lt",),
    columns=by_group("accuracy", "places-lt", _SHOTS),
    rows={
        "Focal Loss": (41.1, 34.8, 22.4, 34.6),
        "OLTR": (44.7, 37.0, 25.3, 35.9),
        "Decouple-τ-norm": (37.8, 40.7, 31.8, 37.9),
        "Decouple-LWS": (40.6, 39.1, 28.6, 37.6),
        "Causal Norm": (23.8, 35.8, 40.4, 32.4),
        "Balanced Softmax": (42.0, 39.3, 30.5, 38.6),
        "Softmax": (46.4, 27.9, 12.5, 31.5),
        "PC Softmax": (43.0, 39.1, 29.6, 38.7),
        "LADE": (42.8, 39.0, 31.2, 38.8),
    },
    cells=(
        *plain_cells("places-lt", "places-lt-lade-softmax"),
        Cell("LADE", "places-lt", Train("places-lt-lade")),
        Cell("Focal Loss", "places-lt", Train("places-lt-lade-softmax", ("loss=focal",))),
        Cell("Decouple-τ-norm", "places-lt", Train("places-lt-lade-softmax"), "best weight norm"),
        Cell("Decouple-LWS", "places-lt", Train("places-lt-lade-softmax"), head="lws"),
    ),
    quick=Quick(
        cells=runs.fitted(
            "places-lt",
            runs.FEATURES,
            *ON_FEATURES,
            ("Decouple-τ-norm", "tau_norm"),
            ("Decouple-LWS", "lws"),
        ),
        needs=("cifar100-features",),
        note="Heads on CIFAR-100-LT features of a frozen network, ratio 100, for Places-LT.",
        seeds=runs.FIVE,
    ),
    claims=(
        Better("LADE beats Decouple-τ-norm", "LADE", "Decouple-τ-norm", ("All",)),
        Better("LADE beats Decouple-LWS", "LADE", "Decouple-LWS", ("All",)),
        Better("PC Softmax beats Decouple-τ-norm", "PC Softmax", "Decouple-τ-norm", ("All",)),
        Better("PC Softmax beats Softmax, the same network", "PC Softmax", "Softmax", ("All",)),
    ),
    missing=(Missing("OLTR", _OLTR),),
)

_LONG, _SHORT = "imagenet-lt-lade-softmax", ("epochs=90",)
_TABLE_4 = Experiment(
    name="lade-table-4",
    paper="LADE",
    item="Table 4",
    about="Accuracy on ImageNet-LT by group, ResNeXt-50, 90 and 180 epochs.",
    needs=("imagenet-lt",),
    columns=by_group("accuracy", "imagenet-lt", _SHOTS),
    rows={
        "Focal Loss, 90 epochs": (64.3, 37.1, 8.2, 43.7),
        "OLTR, 90 epochs": (51.0, 40.8, 20.8, 41.9),
        "Decouple-cRT, 90 epochs": (61.8, 46.2, 27.4, 49.6),
        "Decouple-τ-norm, 90 epochs": (59.1, 46.9, 30.7, 49.4),
        "Decouple-LWS, 90 epochs": (60.2, 47.2, 30.3, 49.9),
        "Causal Norm, 90 epochs": (62.7, 48.8, 31.6, 51.8),
        "Balanced Softmax, 90 epochs": (62.2, 48.8, 29.8, 51.4),
        "Softmax, 90 epochs": (65.1, 35.7, 6.6, 43.1),
        "PC Softmax, 90 epochs": (60.4, 46.7, 23.8, 48.9),
        "LADE, 90 epochs": (62.3, 49.3, 31.2, 51.9),
        "Causal Norm": (65.2, 47.7, 29.8, 52.0),
        "Balanced Softmax": (63.6, 48.4, 32.9, 52.1),
        "Softmax": (68.1, 41.9, 14.4, 48.2),
        "PC Softmax": (63.9, 49.1, 34.3, 52.8),
        "LADE": (65.1, 48.9, 33.4, 53.0),
    },
    cells=(
        *(
            Cell(f"{cell.row}, 90 epochs", cell.data, cell.run, cell.variant)
            for cell in plain_cells("imagenet-lt", _LONG, _SHORT)
        ),
        Cell("Focal Loss, 90 epochs", "imagenet-lt", Train(_LONG, (*_SHORT, "loss=focal"))),
        Cell("Decouple-cRT, 90 epochs", "imagenet-lt", Train(_LONG, _SHORT), head="crt"),
        Cell("Decouple-LWS, 90 epochs", "imagenet-lt", Train(_LONG, _SHORT), head="lws"),
        Cell("Decouple-τ-norm, 90 epochs", "imagenet-lt", Train(_LONG, _SHORT), "best weight norm"),
        Cell("LADE, 90 epochs", "imagenet-lt", Train("imagenet-lt-lade", _SHORT)),
        *plain_cells("imagenet-lt", _LONG),
        Cell("LADE", "imagenet-lt", Train("imagenet-lt-lade")),
    ),
    quick=Quick(
        cells=runs.fitted(
            "imagenet-lt",
            runs.CALTECH,
            ("Decouple-cRT, 90 epochs", "crt"),
            ("Decouple-LWS, 90 epochs", "lws"),
            ("Decouple-τ-norm, 90 epochs", "tau_norm"),
            ("LADE, 90 epochs", "lade"),
            *ON_FEATURES,
        ),
        needs=("caltech-features",),
        note="Heads on Caltech-101 features of a frozen network; 90 and 180 epochs are alike.",
        seeds=runs.FIVE,
    ),
    claims=(
        Better("LADE beats Causal Norm, 180 epochs", "LADE", "Causal Norm", ("All",)),
        Better("PC Softmax beats Causal Norm, 180 epochs", "PC Softmax", "Causal Norm", ("All",)),
        Better("LADE beats PC Softmax, 180 epochs", "LADE", "PC Softmax", ("All",)),
        Better(
            "LADE beats Causal Norm, 90 epochs",
            "LADE, 90 epochs",
            "Causal Norm, 90 epochs",
            ("All",),
        ),
        Better("LADE beats cRT, 90 epochs", "LADE, 90 epochs", "Decouple-cRT, 90 epochs", ("All",)),
        Better("LADE under-fits at 90 epochs", "LADE", "LADE, 90 epochs", ("All",)),
    ),
    missing=(Missing("OLTR, 90 epochs", _OLTR),),
)

_INAT = "inaturalist-lade-softmax"
_TABLE_5 = Experiment(
    name="lade-table-5",
    paper="LADE",
    item="Table 5",
    about="Accuracy on iNaturalist 2018, ResNet-50, 200 epochs.",
    needs=("inaturalist",),
    columns=(Column("Top-1 Accuracy", "accuracy", "inaturalist"),),
    rows={
        "CB-Focal": (61.1,),
        "LDAM": (64.6,),
        "LDAM+DRW": (68.0,),
        "Decouple-τ-norm": (69.3,),
        "Decouple-LWS": (69.5,),
        "BBN": (69.6,),
        "Causal Norm": (63.9,),
        "Balanced Softmax": (69.8,),
        "Softmax": (65.0,),
        "PC Softmax": (69.3,),
        "LADE": (70.0,),
    },
    cells=(
        *plain_cells("inaturalist", _INAT),
        Cell("LADE", "inaturalist", Train("inaturalist-lade")),
        Cell("CB-Focal", "inaturalist", Train(_INAT, ("loss=class_balanced", "loss.gamma=1"))),
        Cell("LDAM", "inaturalist", Train(_INAT, (*_LDAM, "loss.max_margin=0.3"))),
        Cell(
            "LDAM+DRW",
            "inaturalist",
            Train(_INAT, (*_LDAM, "loss.max_margin=0.3", "drw.start=160")),
        ),
        Cell("Decouple-τ-norm", "inaturalist", Train(_INAT), "best weight norm"),
        Cell("Decouple-LWS", "inaturalist", Train(_INAT), head="lws"),
    ),
    claims=(
        Better("LADE surpasses PC Softmax with a large gap, 0.7", "LADE", "PC Softmax", by=0.5),
        Better("LADE beats Decouple-LWS", "LADE", "Decouple-LWS"),
        Better("LADE beats BBN", "LADE", "BBN"),
        Close("PC Softmax is competitive", "PC Softmax", "Decouple-τ-norm", within=0.5),
    ),
    missing=(_BBN,),
)

TABLES = (_TABLE_2, _TABLE_3, _TABLE_4, _TABLE_5)
