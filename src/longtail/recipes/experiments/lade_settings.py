"""LADE: the sets (table 1), settings (table 7), ablations (table 8), and figures 1 to 3."""

from longtail.flows.reproduce.experiment import (
    Better,
    Cell,
    Close,
    Column,
    Correction,
    Experiment,
    Inspect,
    Missing,
    Quick,
    Train,
    Trend,
)
from longtail.recipes.experiments import runs

_TABLE_1 = Experiment(
    name="lade-table-1",
    paper="LADE",
    item="Table 1",
    about="The training sets.",
    needs=("cifar100", "places-lt", "imagenet-lt", "inaturalist"),
    columns=(
        Column("# of classes", "statistic", key="classes"),
        Column("# of samples", "statistic", key="samples"),
        Column("Imbalance ratio", "statistic", key="imbalance_ratio"),
    ),
    rows={
        "CIFAR-100-LT": (100, "50K", "{10, 50, 100}"),
        "Places-LT": (365, "62.5K", 996),
        "ImageNet-LT": ("1K", "186K", 256),
        "iNaturalist 2018": ("8K", "437K", 500),
    },
    cells=(
        Cell("CIFAR-100-LT", "", Inspect("cifar100-lt-lade")),
        Cell("Places-LT", "", Inspect("places-lt-lade")),
        Cell("ImageNet-LT", "", Inspect("imagenet-lt-lade")),
        Cell("iNaturalist 2018", "", Inspect("inaturalist-lade")),
    ),
    corrections=(
        Correction("ImageNet-LT", "# of samples", 115_846, "Liu et al. (2019), EO and NCM say so."),
        Correction(
            "CIFAR-100-LT",
            "# of samples",
            "10,847 / 12,608 / 19,573",
            "50,000 is the set before it is cut to ratio 100, 50 and 10.",
        ),
    ),
)


_RECIPES = {
    "CIFAR-100-LT (IB 10)": "cifar100-lt10-lade",
    "CIFAR-100-LT (IB 50)": "cifar100-lt50-lade",
    "CIFAR-100-LT (IB 100)": "cifar100-lt-lade",
    "Places-LT": "places-lt-lade",
    "ImageNet-LT": "imagenet-lt-lade",
    "iNaturalist 2018": "inaturalist-lade",
}
_TABLE_7 = Experiment(
    name="lade-table-7",
    paper="LADE",
    item="Table 7",
    about="The settings of LADE: λ, α and batch size on each set.",
    columns=(
        Column("λ", "setting", key="loss.lam"),
        Column("α", "setting", key="loss.alpha"),
        Column("Batch size", "setting", key="batch_size"),
    ),
    rows={
        "CIFAR-100-LT (IB 10)": (0.01, 0.01, 256),
        "CIFAR-100-LT (IB 50)": (0.01, 0.01, 256),
        "CIFAR-100-LT (IB 100)": (0.01, 0.1, 256),
        "Places-LT": (0.1, 0.005, 128),
        "ImageNet-LT": (0.5, 0.05, 256),
        "iNaturalist 2018": (0.5, 0.05, 256),
    },
    cells=tuple(Cell(row, "", Inspect(recipe)) for row, recipe in _RECIPES.items()),
)

# Printed with a row for each set: here methods are the rows, as in all other tables.
_LADE, _NO_SQUARE, _NO_LADER = "LADE (Ours)", "λ = 0", "α = 0"
_TABLE_8 = Experiment(
    name="lade-table-8",
    paper="LADE",
    item="Table 8",
    about="LADE without the square of its regulariser (λ = 0), and without all of it (α = 0).",
    needs=("cifar100", "places-lt", "imagenet-lt", "inaturalist"),
    columns=tuple(Column(row, "accuracy", row) for row in _RECIPES),
    rows={
        _LADE: (61.7, 50.5, 45.4, 38.8, 53.0, 70.0),
        _NO_SQUARE: (61.5, 49.5, 45.2, 38.5, 47.0, 58.3),
        _NO_LADER: (61.6, 49.9, 45.1, 38.6, 52.1, 69.8),
    },
    cells=tuple(
        Cell(row, data, Train(recipe, overrides))
        for data, recipe in _RECIPES.items()
        for row, overrides in (
            (_LADE, ()),
            (_NO_SQUARE, ("loss.lam=0",)),
            (_NO_LADER, ("loss.alpha=0",)),
        )
    ),
    quick=Quick(
        cells=(
            Cell(_LADE, "CIFAR-100-LT (IB 100)", runs.LADE),
            # With α = 0 the loss is logit adjustment.
            Cell(_NO_LADER, "CIFAR-100-LT (IB 100)", runs.ADJUSTED),
            Cell(
                _NO_SQUARE,
                "CIFAR-100-LT (IB 100)",
                Train(runs.LADE.recipe, ("loss.lam=0", *runs.WHOLE), 1.0),
            ),
        ),
        needs=("cifar100",),
        note="CIFAR-100-LT, ratio 100, in 40 epochs.",
    ),
    claims=(
        Better("without LADER the accuracy is lower", _LADE, _NO_LADER),
        Better("without the square of the regulariser it is lower", _LADE, _NO_SQUARE),
        Better(
            "without the square it drops severely on ImageNet-LT and iNaturalist",
            _LADE,
            _NO_SQUARE,
            columns=("ImageNet-LT", "iNaturalist 2018"),
            by=5.0,
        ),
    ),
)

_FIGURE_1 = Experiment(
    name="lade-figure-1",
    paper="LADE",
    item="Figure 1",
    about="What is entangled by cross-entropy and what LADE injects: a drawing.",
    missing=(Missing("*", "It draws the idea; nothing is measured."),),
)

# Neither the ratio nor the target of the caption's network is said: ratio 100.
_FIGURE_2 = Experiment(
    name="lade-figure-2",
    paper="LADE",
    item="Figure 2",
    about="Mean probability of each class on the balanced test set, cross-entropy and LADE.",
    needs=("cifar100",),
    columns=(Column("Average probability", "mean_probability", "cifar100-lt-100"),),
    rows={"Cross-entropy": (None,), "LADE": (None,)},
    cells=(
        Cell("Cross-entropy", "cifar100-lt-100", Train("cifar100-lt-lade-softmax")),
        Cell("LADE", "cifar100-lt-100", Train("cifar100-lt-lade")),
    ),
    quick=Quick(
        cells=(
            Cell("Cross-entropy", "cifar100-lt-100", runs.CE),
            Cell("LADE", "cifar100-lt-100", runs.LADE),
        ),
        needs=("cifar100",),
        note="40 epochs.",
    ),
    claims=(
        Trend(
            "after cross-entropy the mean probability follows the training frequency",
            rows=("Cross-entropy",),
            columns=("Average probability",),
            signs=(1,),
        ),
        Trend(
            "after LADE it does not",
            rows=("LADE",),
            columns=("Average probability",),
            signs=(0,),
        ),
    ),
)

# Which α the panels have is not in the text; 0.1 is table 7's.
_ALPHAS = ("0", "0.01", "0.1", "1")
_FIGURE_3 = Experiment(
    name="lade-figure-3",
    paper="LADE",
    item="Figure 3",
    about="Logits of positive and negative samples of each class, for rising α, against log 100.",
    needs=("cifar100",),
    columns=(
        Column("Positive logit", "positive_logit", "cifar100-lt-100"),
        Column("Distance from log C", "positive_logit_gap", "cifar100-lt-100"),
    ),
    rows={f"α = {alpha}": (None, None) for alpha in _ALPHAS},
    cells=tuple(
        Cell(f"α = {alpha}", "cifar100-lt-100", Train("cifar100-lt-lade", (f"loss.alpha={alpha}",)))
        for alpha in _ALPHAS
    ),
    quick=Quick(
        cells=(
            Cell("α = 0", "cifar100-lt-100", runs.ADJUSTED),
            Cell("α = 0.1", "cifar100-lt-100", runs.LADE),
            Cell(
                "α = 1",
                "cifar100-lt-100",
                Train(runs.LADE.recipe, ("loss.alpha=1", *runs.WHOLE), 1.0),
            ),
        ),
        needs=("cifar100",),
        note="40 epochs; three of the four α.",
    ),
    claims=(
        Trend(
            "as α rises the logits of positive samples come closer to log C",
            rows=tuple(f"α = {alpha}" for alpha in _ALPHAS),
            columns=("Distance from log C",),
            signs=(-1,),
            against="rows",
        ),
        Close(
            "with a strong regulariser they are at log C",
            row="α = 1",
            to=4.605,
            within=0.5,
            columns=("Positive logit",),
        ),
    ),
)

SETTINGS = (_TABLE_1, _TABLE_7, _TABLE_8, _FIGURE_1, _FIGURE_2, _FIGURE_3)
