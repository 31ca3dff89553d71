"""LA, long-tail learning via logit adjustment: tables 1, 2 and 4.

Table 3 and the appendices are not in the text that we have; of table 4 the text quotes two numbers.
"""

from longtail.flows.reproduce.experiment import (
    Better,
    Cell,
    Close,
    Column,
    Experiment,
    Quick,
    Synthetic,
    Train,
)
from longtail.recipes.experiments import runs

_CE10, _CE100 = Train("cifar10-lt-la-ce"), Train("cifar100-lt-la-ce")
_CE_IMAGENET, _CE_INATURALIST = Train("imagenet-lt-la-ce"), Train("inaturalist-la-ce")
_ADJUSTED = {
    "cifar10-lt": Train("cifar10-lt-la-adjusted"),
    "cifar100-lt": Train("cifar100-lt-la-adjusted"),
    "imagenet-lt": Train("imagenet-lt-la-adjusted"),
    "inaturalist": Train("inaturalist-la-adjusted"),
}
_PLAIN = {
    "cifar10-lt": _CE10,
    "cifar100-lt": _CE100,
    "imagenet-lt": _CE_IMAGENET,
    "inaturalist": _CE_INATURALIST,
}
_GAUSSIANS = Synthetic("two-gaussians", trials=100, hours=0.1)
_BAYES = 7.86  # 100·Φ(−√2)

_ERM, _NORM = "ERM", "Weight normalisation (τ = τ*)"
_BALANCED, _ADAPTIVE, _DRW = "Class-balanced", "Adaptive", "Adaptive + DRW"
_EQUALISED = "Equalised"
_POSTHOC, _POSTHOC_BEST = "Logit adjustment post-hoc (τ = 1)", "Logit adjustment post-hoc (τ = τ*)"
_LOSS, _BOTH = "Logit adjustment loss (τ = 1)", "Logit adjustment plus adaptive loss (τ = 1)"


def _changed(run: Train, *overrides: str) -> Train:
    return Train(run.recipe, (*run.overrides, *overrides), run.hours)


def _corrected(data: str, run: Train) -> tuple[Cell, ...]:
    """The rows of table 2 that one network trained by cross-entropy makes."""
    return (
        Cell(_ERM, data, run),
        Cell(_NORM, data, run, "best weight norm"),
        Cell(_POSTHOC, data, run, "under the target"),
        Cell(_POSTHOC_BEST, data, run, "best tau"),
    )


_TABLE_1 = Experiment(
    name="la-table-1",
    paper="LA",
    item="Table 1",
    about="Which methods are consistent for the balanced error, shown on two Gaussians.",
    columns=(
        Column("Procedure", "property"),
        Column("Consistent?", "property"),
        Column("Balanced error on two Gaussians", "balanced_error"),  # not printed
    ),
    rows={
        "Weight normalisation": ("Post-hoc weight scaling", False, None),
        "Adaptive margin": ("Softmax with rare +ve upweighting", False, None),
        "Equalised margin": ("Softmax with rare -ve downweighting", False, None),
        "Logit-adjusted threshold": ("Post-hoc logit translation", True, None),
        "Logit-adjusted loss": ("Softmax with logit translation", True, None),
    },
    cells=(
        Cell("Weight normalisation", "", _GAUSSIANS, "best weight norm", "ERM"),
        Cell("Adaptive margin", "", _GAUSSIANS, head="adaptive"),
        Cell("Equalised margin", "", _GAUSSIANS, head="equalised"),
        Cell("Logit-adjusted threshold", "", _GAUSSIANS, "under the target", "ERM"),
        Cell("Logit-adjusted loss", "", _GAUSSIANS, head="logit-adjusted"),
    ),
    claims=(
        Close(
            "the logit-adjusted threshold is consistent: it reaches the least error there is",
            row="Logit-adjusted threshold",
            to=_BAYES,
            within=0.1,
            columns=("Balanced error on two Gaussians",),
        ),
        *(
            Better(
                f"{row.lower()} is not consistent: it stays above the logit-adjusted loss",
                better="Logit-adjusted loss",
                worse=row,
                columns=("Balanced error on two Gaussians",),
                by=0.1,
            )
            for row in ("Weight normalisation", "Adaptive margin", "Equalised margin")
        ),
    ),
)

_TABLE_2 = Experiment(
    name="la-table-2",
    paper="LA",
    item="Table 2",
    about="Balanced test error of logit adjustment and its rivals on four sets, mean of 5 trials.",
    needs=("cifar10", "cifar100", "imagenet-lt", "inaturalist"),
    columns=(
        Column("CIFAR-10-LT", "balanced_error", "cifar10-lt"),
        Column("CIFAR-100-LT", "balanced_error", "cifar100-lt"),
        Column("ImageNet-LT", "balanced_error", "imagenet-lt"),
        Column("iNaturalist", "balanced_error", "inaturalist"),
    ),
    rows={
        _ERM: (27.16, 61.64, 53.11, 38.66),
        _NORM: (21.50, 58.76, 49.37, 34.45),
        _BALANCED: (25.43, 60.40, None, 35.84),
        _ADAPTIVE: (26.65, 60.40, 52.15, 33.31),
        _DRW: (22.97, 57.96, None, 32.00),
        _EQUALISED: (26.02, 57.26, 54.02, 38.37),
        _POSTHOC: (22.60, 58.24, 49.66, 33.98),
        _POSTHOC_BEST: (19.08, 57.90, 49.56, 33.80),
        _LOSS: (22.33, 56.11, 48.89, 33.64),
        _BOTH: (22.42, 55.92, 51.25, 31.56),
    },
    cells=(
        *(cell for data, run in _PLAIN.items() for cell in _corrected(data, run)),
        *(
            Cell(_BALANCED, data, _changed(run, "loss=class_balanced"))
            for data, run in _PLAIN.items()
            if data != "imagenet-lt"
        ),
        # Quoted from LDAM's paper on CIFAR, hence its setting there. The threshold of the equalised
        # loss is not said: the smooth form of §6.1.
        Cell(_ADAPTIVE, "cifar10-lt", Train("cifar10-lt-ldam-drw", ("drw=null",))),
        Cell(_ADAPTIVE, "cifar100-lt", Train("cifar100-lt-ldam-drw", ("drw=null",))),
        Cell(_ADAPTIVE, "imagenet-lt", _changed(_CE_IMAGENET, "loss=adaptive")),
        Cell(_ADAPTIVE, "inaturalist", _changed(_CE_INATURALIST, "loss=adaptive")),
        Cell(_DRW, "cifar10-lt", Train("cifar10-lt-ldam-drw")),
        Cell(_DRW, "cifar100-lt", Train("cifar100-lt-ldam-drw")),
        Cell(_DRW, "inaturalist", _changed(_CE_INATURALIST, "loss=adaptive", "drw.start=72")),
        *(Cell(_EQUALISED, data, _changed(run, "loss=equalized")) for data, run in _PLAIN.items()),
        *(Cell(_LOSS, data, run) for data, run in _ADJUSTED.items()),
        *(
            Cell(_BOTH, data, _changed(run, "loss=logit_adjusted_adaptive"))
            for data, run in _ADJUSTED.items()
        ),
    ),
    seeds=runs.FIVE,
    quick=Quick(
        cells=(
            *_corrected("cifar100-lt", runs.CE),
            Cell(_LOSS, "cifar100-lt", runs.ADJUSTED),
            Cell(_DRW, "cifar100-lt", runs.LDAM),
            *_corrected("cifar10-lt", runs.CE_10),
            Cell(_LOSS, "cifar10-lt", runs.ADJUSTED_10),
            Cell(_ADAPTIVE, "cifar100-lt", runs.LDAM_ALONE),
            Cell(_BALANCED, "cifar100-lt", _changed(runs.CE, "loss=class_balanced")),
            Cell(_EQUALISED, "cifar100-lt", _changed(runs.CE, "loss=equalized")),
            Cell(_BOTH, "cifar100-lt", _changed(runs.CE, "loss=logit_adjusted_adaptive")),
        ),
        needs=("cifar10", "cifar100"),
        note="Both CIFAR sets in 40 epochs; ImageNet-LT and iNaturalist are left out.",
    ),
    claims=(
        Better("weight normalisation gains over ERM", _NORM, _ERM),
        Better("post-hoc logit adjustment gains over ERM", _POSTHOC, _ERM),
        Better(
            "post-hoc logit adjustment, scaled, improves on weight normalisation",
            _POSTHOC_BEST,
            _NORM,
            doubt="On ImageNet-LT it does not: 49.56 against 49.37.",
        ),
        Better("scaling by τ improves post-hoc adjustment further", _POSTHOC_BEST, _POSTHOC),
        Better("the logit-adjusted loss gains over ERM", _LOSS, _ERM),
        Better(
            "the logit-adjusted loss beats class-balanced weights",
            _LOSS,
            _BALANCED,
            columns=("CIFAR-10-LT", "CIFAR-100-LT", "iNaturalist"),
        ),
        Better(
            "the logit-adjusted loss beats the adaptive margin",
            _LOSS,
            _ADAPTIVE,
            doubt="On iNaturalist it does not: 33.64 against 33.31.",
        ),
        Better("the logit-adjusted loss beats the equalised loss", _LOSS, _EQUALISED),
        Better("the loss has a slight advantage over adjustment post hoc", _LOSS, _POSTHOC),
        Better(
            "a variant of logit adjustment beats deferred re-weighting",
            _BOTH,
            _DRW,
            columns=("CIFAR-10-LT", "CIFAR-100-LT", "iNaturalist"),
        ),
    ),
)

_TABLE_4 = Experiment(
    name="la-table-4",
    paper="LA",
    item="Table 4",
    about="Balanced error on iNaturalist with a ResNet-152 and 200 epochs; quoted in §6.2.",
    needs=("inaturalist",),
    columns=(Column("iNaturalist", "balanced_error", "inaturalist"),),
    rows={
        "ResNet-50": (33.64,),  # from table 2, to compare with
        "ResNet-152": (30.12,),
        "ResNet-152, plus adaptive": (28.02,),
    },
    cells=(
        Cell("ResNet-50", "inaturalist", _ADJUSTED["inaturalist"]),
        *(
            Cell(
                row,
                "inaturalist",
                _changed(
                    _ADJUSTED["inaturalist"],
                    "backbone.network=resnet152",
                    "epochs=200",
                    *overrides,
                ),
            )
            for row, overrides in (
                ("ResNet-152", ()),
                ("ResNet-152, plus adaptive", ("loss=logit_adjusted_adaptive",)),
            )
        ),
    ),
    claims=(
        Better("a deeper network, trained longer, is better", "ResNet-152", "ResNet-50"),
        Better("the adaptive margin adds to it there", "ResNet-152, plus adaptive", "ResNet-152"),
    ),
)

TABLES = (_TABLE_1, _TABLE_2, _TABLE_4)
