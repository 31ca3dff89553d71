"""EO, de-biasing with an estimated offset: tables 1 to 3. Its figures are in a file beside this."""

from longtail.flows.reproduce.experiment import (
    Better,
    Cell,
    Column,
    Experiment,
    Missing,
    Quick,
    Train,
    Trend,
    by_group,
)
from longtail.recipes.experiments import runs

_SHOTS = ("Many", "Medium", "Few", "All")
_IMAGENET, _IMAGENET_EO = Train("imagenet-lt-eo-baseline"), Train("imagenet-lt-eo")
_PLACES, _PLACES_EO = Train("places-lt-eo-baseline"), Train("places-lt-eo")
_SUN, _SUN_EO = Train("sun397-eo-baseline"), Train("sun397-eo")
_FREE, _ALONE = ("loss.uniform_weight=0",), ("head.use_offset=false",)
_WVN = ("head=weight_vector_norm", "sampler=class_balanced")
_ALL = ("ImageNet-LT All", "Places2-LT All")
_FEW = ("ImageNet-LT Few", "Places2-LT Few")
_BOTH_SETS = (
    *by_group("accuracy", "imagenet-lt", _SHOTS, "ImageNet-LT "),
    *by_group("accuracy", "places-lt", _SHOTS, "Places2-LT "),
)
_NETWORK_NOTE = "CIFAR-100-LT, ratio 100, ResNet-32 in 40 epochs, for ImageNet-LT"


def _changed(run: Train, *overrides: str) -> Train:
    return Train(run.recipe, (*run.overrides, *overrides), run.hours)


def _decoupled(data: str, run: Train) -> tuple[Cell, ...]:
    return (
        Cell("Baseline", data, run),
        Cell("Focal Loss", data, _changed(run, "loss=focal")),
        Cell("Baseline+RS", data, _changed(run, "sampler=class_balanced")),
        Cell("WVN+RS", data, _changed(run, *_WVN)),
        Cell("cRT", data, run, head="crt"),
        Cell("τ-norm", data, run, "best weight norm"),
        Cell("LWS", data, run, head="lws"),
    )


def _ours(data: str, run: Train) -> tuple[Cell, ...]:
    return (
        Cell("Ours w/o UC", data, _changed(run, *_FREE)),
        Cell("Ours", data, run),
    )


_ON_FEATURES = (
    ("Baseline", "linear"),
    ("WVN+RS", "wvn"),
    ("cRT", "crt"),
    ("τ-norm", "tau_norm"),
    ("LWS", "lws"),
    ("Ours", "estimated_offset"),
)
_NO_TERM = "The term is in longtail.losses, but no recipe can name it yet."
_MISSING = {
    "OLTR": "OLTR attends over a memory of class centres, which no part of ours does.",
    "FSLwF": "FSLwF generates classifier weights for new classes; it is no long-tailed training.",
    "Lifted Loss": _NO_TERM,
    "Range Loss": _NO_TERM,
    "Model Reg.": "Model regression learns a map from few-shot to many-shot weights: not ours.",
    "MetaModelNet": "MetaModelNet learns to transfer weights from head to tail: not ours.",
}

# The set has 184,500 images and up to 4,980 a class here: an earlier version of Places-LT.
_TABLE_1 = Experiment(
    name="eo-table-1",
    paper="EO",
    item="Table 1",
    about="Accuracy on ImageNet-LT (ResNet-10) and Places-LT (ResNet-152) by group.",
    needs=("imagenet-lt", "places-lt"),
    columns=_BOTH_SETS,
    rows={
        "Baseline": (47.4, 7.9, 0.1, 21.9, 45.2, 23.8, 8.1, 28.2),
        "Lifted Loss": (35.8, 30.4, 17.9, 30.8, 41.1, 35.4, 24.0, 35.2),
        "Focal Loss": (36.4, 29.9, 16.0, 30.5, 41.1, 34.8, 22.4, 34.6),
        "Range Loss": (35.8, 30.3, 17.6, 30.7, 41.1, 35.4, 23.2, 35.1),
        "FSLwF": (40.9, 22.1, 15.0, 28.4, 43.9, 29.9, 29.5, 34.9),
        "OLTR": (43.2, 35.1, 18.5, 35.6, 44.7, 37.0, 25.3, 35.9),
        "Baseline+RS": (46.6, 36.9, 22.2, 38.5, 40.8, 38.3, 25.8, 36.6),
        "WVN+RS": (47.8, 38.8, 34.0, 41.6, 41.2, 39.4, 28.8, 38.2),
        "cRT": (None, None, None, 41.8, 42.0, 37.6, 24.9, 36.7),
        "τ-norm": (None, None, None, 40.6, 37.8, 40.7, 31.8, 37.9),
        "LWS": (None, None, None, 41.4, 40.6, 39.1, 28.6, 37.6),
        "Ours w/o UC": (56.6, 30.8, 9.4, 37.7, 45.9, 35.2, 21.1, 36.0),
        "Ours": (49.9, 40.6, 31.4, 42.9, 38.0, 39.9, 40.7, 39.4),
    },
    cells=(
        *_decoupled("imagenet-lt", _IMAGENET),
        *_ours("imagenet-lt", _IMAGENET_EO),
        *_decoupled("places-lt", _PLACES),
        *_ours("places-lt", _PLACES_EO),
    ),
    quick=Quick(
        cells=(
            Cell("Baseline", "imagenet-lt", runs.CE),
            Cell("cRT", "imagenet-lt", runs.CE, head="crt"),
            Cell("τ-norm", "imagenet-lt", runs.CE, "best weight norm"),
            Cell("LWS", "imagenet-lt", runs.CE, head="lws"),
            Cell("Ours", "imagenet-lt", runs.OFFSET),
            Cell("Ours w/o UC", "imagenet-lt", runs.OFFSET_FREE),
            *runs.fitted("places-lt", runs.FEATURES, *_ON_FEATURES),
        ),
        needs=("cifar100", "cifar100-features"),
        note=f"{_NETWORK_NOTE}; heads on CIFAR-100-LT features for Places-LT.",
    ),
    claims=(
        Better("the estimated offset beats the baseline", "Ours", "Baseline", _ALL),
        Better("it beats WVN+RS", "Ours", "WVN+RS", _ALL),
        Better("it beats cRT", "Ours", "cRT", _ALL),
        Better("it beats τ-normalisation", "Ours", "τ-norm", _ALL),
        Better("it beats LWS", "Ours", "LWS", _ALL),
        Better(
            "without the uniform constraint it improves on the baseline across the board",
            "Ours w/o UC",
            "Baseline",
        ),
        Better("the constraint helps infrequent classes", "Ours", "Ours w/o UC", _FEW),
        Better(
            "the constraint costs many-shot classes",
            "Ours w/o UC",
            "Ours",
            ("ImageNet-LT Many", "Places2-LT Many"),
        ),
    ),
    missing=tuple(
        Missing(row, _MISSING[row]) for row in ("Lifted Loss", "Range Loss", "FSLwF", "OLTR")
    ),
)

_DEEP = {
    "resnet10": (),
    "resnext50": ("backbone={name: torchvision, network: resnext50_32x4d}",),
    "resnext152": (
        "backbone={name: timm, network: resnext50_32x4d, options: {layers: [3, 8, 36, 3]}}",
    ),
}
_DEPTHS = ("ResNet-10", "ResNeXt-50", "ResNeXt-152")
_TABLE_2 = Experiment(
    name="eo-table-2",
    paper="EO",
    item="Table 2",
    about="Accuracy on ImageNet-LT with deeper networks (left), and on SUN397 (right).",
    needs=("imagenet-lt", "sun397"),
    columns=(
        Column("ResNet-10", "accuracy", "resnet10"),
        Column("ResNeXt-50", "accuracy", "resnext50"),
        Column("ResNeXt-152", "accuracy", "resnext152"),
        Column("SUN397", "accuracy", "sun397"),
    ),
    rows={
        "Baseline": (21.9, 39.5, 43.1, 48.0),
        "OLTR": (37.3, 46.3, 50.3, 58.7),  # 35.6 with ResNet-10 in table 1
        "WVN+RS": (41.6, 47.7, 52.2, 53.0),
        "cRT": (41.8, 49.5, 52.4, None),
        "τ-norm": (40.6, 49.4, 52.8, None),
        "LWS": (41.4, 49.9, 53.3, None),
        "Cost-Sensitive": (None, None, None, 52.4),
        "Model Reg.": (None, None, None, 54.7),
        "MetaModelNet": (None, None, None, 57.3),
        "Ours": (42.9, 51.6, 57.1, 58.9),
    },
    cells=(
        *(
            cell
            for data, deep in _DEEP.items()
            for cell in _decoupled(data, _changed(_IMAGENET, *deep))
            if cell.row not in ("Focal Loss", "Baseline+RS")
        ),
        *(Cell("Ours", data, _changed(_IMAGENET_EO, *deep)) for data, deep in _DEEP.items()),
        Cell("Baseline", "sun397", _SUN),
        Cell("WVN+RS", "sun397", _changed(_SUN, *_WVN)),
        Cell("Cost-Sensitive", "sun397", _changed(_SUN, "loss=balanced")),
        Cell("Ours", "sun397", _SUN_EO),
    ),
    quick=Quick(
        cells=runs.fitted(
            "sun397",
            runs.CALTECH,
            ("Baseline", "linear"),
            ("WVN+RS", "wvn"),
            ("Ours", "estimated_offset"),
        ),
        needs=("caltech-features",),
        note="Heads on Caltech-101 features of a frozen network for SUN397; no deeper networks.",
        seeds=runs.FIVE,
    ),
    claims=(
        Better("it beats LWS at every depth", "Ours", "LWS", _DEPTHS),
        Better("it beats cRT at every depth", "Ours", "cRT", _DEPTHS),
        Trend(
            "the deeper the network, the larger the gain over LWS",
            rows=("Ours",),
            columns=_DEPTHS,
            signs=(1,),
            against="columns",
            minus="LWS",
        ),
        Better("it beats the baseline on SUN397", "Ours", "Baseline", ("SUN397",)),
        Better("it beats WVN+RS on SUN397", "Ours", "WVN+RS", ("SUN397",)),
        Better("it is marginally better than OLTR on SUN397", "Ours", "OLTR", ("SUN397",)),
    ),
    missing=tuple(Missing(row, _MISSING[row]) for row in ("OLTR", "Model Reg.", "MetaModelNet")),
)

_TABLE_3 = Experiment(
    name="eo-table-3",
    paper="EO",
    item="Table 3",
    about="Ablations: the uniform constraint alone, and the estimated offset without it.",
    needs=("imagenet-lt", "places-lt"),
    columns=_BOTH_SETS,
    rows={
        "Baseline": (47.4, 7.9, 0.1, 21.9, 45.2, 23.8, 8.1, 28.2),
        "UC only": (56.5, 28.3, 9.1, 36.5, 43.2, 28.5, 24.2, 32.9),
        "Ours w/o UC": (56.6, 30.8, 9.4, 37.7, 45.9, 35.2, 21.1, 36.0),
        "Ours": (49.9, 40.6, 31.4, 42.9, 38.0, 39.9, 40.7, 39.4),
    },
    cells=(
        Cell("Baseline", "imagenet-lt", _IMAGENET),
        Cell("UC only", "imagenet-lt", _changed(_IMAGENET_EO, *_ALONE)),
        *_ours("imagenet-lt", _IMAGENET_EO),
        Cell("Baseline", "places-lt", _PLACES),
        Cell("UC only", "places-lt", _changed(_PLACES_EO, *_ALONE)),
        *_ours("places-lt", _PLACES_EO),
    ),
    quick=Quick(
        cells=(
            Cell("Baseline", "imagenet-lt", runs.CE),
            Cell("Ours", "imagenet-lt", runs.OFFSET),
            Cell("Ours w/o UC", "imagenet-lt", runs.OFFSET_FREE),
            Cell("UC only", "imagenet-lt", runs.OFFSET_NONE),
        ),
        needs=("cifar100",),
        note=f"{_NETWORK_NOTE}.",
    ),
    claims=(
        Better("the uniform constraint improves by itself", "UC only", "Baseline", _ALL),
        Better("the estimated offset is more effective", "Ours w/o UC", "UC only", _ALL),
        Better("both together beat the constraint alone", "Ours", "UC only", _ALL),
        Better("both together beat the offset alone", "Ours", "Ours w/o UC", _ALL),
        Better(
            "few-shot accuracy is remarkably better with both than with the constraint alone",
            "Ours",
            "UC only",
            _FEW,
            by=5.0,
        ),
    ),
)

TABLES = (_TABLE_1, _TABLE_2, _TABLE_3)
