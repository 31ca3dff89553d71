"""NCM, figures 1 to 8. The figures themselves are not in the text: no number of theirs is known."""

from longtail.flows.reproduce.experiment import (
    Cell,
    Column,
    Experiment,
    Missing,
    Quick,
    Sign,
    Train,
    Trend,
    by_group,
)
from longtail.recipes.experiments import runs
from longtail.recipes.experiments.nearest_class_mean import NETWORKS

_RATIOS = ("200", "100", "10")


def _quick(recipe: str, hours: float, *overrides: str) -> Train:
    return Train(recipe, (*overrides, *runs.WHOLE), hours)


def _variance(number: int, title: str, networks: dict[str, Train], quick: Quick) -> Experiment:
    """Figures 2, 7 and 8: the variance of the classes at three ratios."""
    columns = tuple(f"Imba {ratio}" for ratio in networks)
    return Experiment(
        name=f"ncm-figure-{number}",
        paper="NCM",
        item=f"Figure {number}",
        about=f"Variance within a class against its training samples, {title}.",
        needs=quick.needs,
        columns=tuple(
            Column(name, "intra_class_variance", ratio)
            for name, ratio in zip(columns, networks, strict=True)
        ),
        rows={"Softmax": (None,) * len(columns)},
        cells=tuple(Cell("Softmax", ratio, run) for ratio, run in networks.items()),
        quick=quick,
        claims=tuple(
            Trend(
                f"the variance is negatively correlated with the class size, {title}, {ratio}",
                rows=("Softmax",),
                columns=(f"Imba {ratio}",),
                signs=(-1,),
            )
            for ratio in networks
        ),
    )


# Neither ratio nor classes are said: ratio 100, and all classes rather than three.
_FIGURE_1 = Experiment(
    name="ncm-figure-1",
    paper="NCM",
    item="Figure 1",
    about="t-SNE of a tail class and two head classes of CIFAR10-LT.",
    needs=("cifar10",),
    columns=(Column("Variance", "intra_class_variance", "100"),),
    rows={"Softmax": (None,)},
    cells=(Cell("Softmax", "100", NETWORKS["cifar10-lt-100"]),),
    quick=Quick(cells=(Cell("Softmax", "100", runs.CE_10),), needs=("cifar10",), note="40 epochs."),
    claims=(
        Trend(
            "head classes are compact, tail classes are scattered",
            rows=("Softmax",),
            columns=("Variance",),
            signs=(-1,),
        ),
    ),
)

_FIGURE_2 = _variance(
    2,
    "CIFAR10-LT",
    {ratio: NETWORKS[f"cifar10-lt-{ratio}"] for ratio in _RATIOS},
    Quick(
        cells=(
            Cell("Softmax", "100", runs.CE_10),
            Cell("Softmax", "200", _quick(runs.CE_10.recipe, 1.1, "data.imbalance_ratio=200")),
            Cell("Softmax", "10", _quick(runs.CE_10.recipe, 1.9, "data.imbalance_ratio=10")),
        ),
        needs=("cifar10",),
        note="40 epochs.",
    ),
)

_FIGURE_3 = Experiment(
    name="ncm-figure-3",
    paper="NCM",
    item="Figure 3",
    about="Learned weights of the directions of each class's covariance, CIFAR10-LT, ratio 200.",
    needs=("cifar10",),
    columns=(Column("Weight of high variance", "projection_weight", "200"),),
    rows={"Local projection": (None,)},
    quick=Quick(
        cells=(Cell("Local projection", "200", runs.FEATURES_200, head="metric_ncm_eigen"),),
        needs=("cifar100-features",),
        note="CIFAR-100-LT features of a frozen network, ratio 200, for CIFAR10-LT.",
    ),
    claims=(
        Trend(
            "directions of high variance are thrown away for tail classes only",
            rows=("Local projection",),
            columns=("Weight of high variance",),
            signs=(1,),
        ),
    ),
    missing=(
        Missing(
            "Local projection",
            "Metric NCM is a head and a method of `longtail fit`, but no second stage of a recipe.",
        ),
    ),
)

_SHOTS = ("Many", "Medium", "Few")
_FIGURE_4 = Experiment(
    name="ncm-figure-4",
    paper="NCM",
    item="Figure 4",
    about="Accuracy of many-, medium- and few-shot classes during training, ratio 200.",
    needs=("cifar100",),
    columns=by_group("rise_time", "200", _SHOTS),
    rows={"Instance sampling": (None,) * 3},
    cells=(
        Cell(
            "Instance sampling",
            "200",
            Train(
                "cifar100-lt-ncm",
                (*NETWORKS["cifar100-lt-200"].overrides, "data.validation_share=0.1"),
            ),
        ),
    ),
    quick=Quick(
        # A tenth of each class is for validation, so that there is a curve.
        cells=(
            Cell(
                "Instance sampling",
                "200",
                Train("cifar100-lt-ce-quick", ("data.imbalance_ratio=200",), 0.9),
            ),
        ),
        needs=("cifar100",),
        note="40 epochs.",
    ),
    claims=(
        Trend(
            "many-shot accuracy goes up first, then medium, then few",
            rows=("Instance sampling",),
            columns=_SHOTS,
            signs=(1,),
            against="columns",
        ),
    ),
)

# Which τ and which ratio the figure has is not in the text; 1/8 is the one that is chosen. It is τ
# of equation 9 at training time, not one that is applied afterwards.
_TAUS = {"0": 0.0, "1/16": 0.0625, "1/8": 0.125, "1/4": 0.25, "1/2": 0.5}
_TRADE_OFF: dict[str, Sign] = {"Few": 1, "Many": -1, "Med": -1, "All": -1}
_TAU_ROWS = tuple(f"τ = {name}" for name in _TAUS)


def _adjusted(run: Train) -> tuple[Cell, ...]:
    return tuple(
        Cell(row, "100", run, head=f"{{name: learned_ncm, tau: {tau}}}")
        for row, tau in zip(_TAU_ROWS, _TAUS.values(), strict=True)
    )


_FIGURE_5 = Experiment(
    name="ncm-figure-5",
    paper="NCM",
    item="Figure 5",
    about="Accuracy by group against the τ of logit adjustment in the loss of learned NCM.",
    needs=("cifar100",),
    columns=by_group("accuracy", "100", ("All", "Many", "Med", "Few")),
    rows={row: (None,) * 4 for row in _TAU_ROWS},
    cells=_adjusted(NETWORKS["cifar100-lt-100"]),
    quick=Quick(cells=_adjusted(runs.CE), needs=("cifar100",), note="40 epochs."),
    claims=tuple(
        Trend(
            f"a higher weight {'raises' if sign > 0 else 'lowers'} the accuracy, {group}",
            rows=_TAU_ROWS,
            columns=(group,),
            signs=(sign,),
            against="rows",
        )
        for group, sign in _TRADE_OFF.items()
    ),
)

_FIGURE_6 = Experiment(
    name="ncm-figure-6",
    paper="NCM",
    item="Figure 6",
    about="How far centroids are moved by learning, and CDNV after each epoch of it.",
    needs=("cifar100",),
    columns=(
        Column("Displacement", "centroid_displacement", "100"),
        Column("CDNV", "cdnv_curve", "100"),
    ),
    rows={"Learned NCM": (None, None)},
    cells=(Cell("Learned NCM", "100", NETWORKS["cifar100-lt-100"], head="learned_ncm"),),
    quick=Quick(
        cells=(Cell("Learned NCM", "100", runs.CE, head="learned_ncm"),),
        needs=("cifar100",),
        note="40 epochs.",
    ),
    claims=(
        Trend(
            "the displacement of a centroid does not depend on the class size",
            rows=("Learned NCM",),
            columns=("Displacement",),
            signs=(0,),
        ),
        Trend(
            "CDNV decreases as training proceeds",
            rows=("Learned NCM",),
            columns=("CDNV",),
            signs=(-1,),
            against="point",
        ),
    ),
)

_FIGURE_7 = _variance(
    7,
    "CIFAR100-LT",
    {ratio: NETWORKS[f"cifar100-lt-{ratio}"] for ratio in _RATIOS},
    Quick(
        cells=(
            Cell("Softmax", "100", runs.CE),
            Cell("Softmax", "200", _quick(runs.CE.recipe, 0.9, "data.imbalance_ratio=200")),
            Cell("Softmax", "10", _quick(runs.CE.recipe, 1.8, "data.imbalance_ratio=10")),
        ),
        needs=("cifar100",),
        note="40 epochs.",
    ),
)

# 10,225, 11,514 and 19,954 images in 20, 23 and 39 batches.
_COARSE = {"200": (650, 40), "100": (565, 35), "10": (333, 21)}
_FIGURE_8 = _variance(
    8,
    "CIFAR20-LT",
    {
        ratio: Train(
            "cifar100-lt-ncm",
            (
                "data.kind=cifar20",
                f"data.imbalance_ratio={ratio}",
                "data.validation_share=0",
                f"epochs={epochs}",
                f"schedule.warmup={warmup}",
            ),
        )
        for ratio, (epochs, warmup) in _COARSE.items()
    },
    Quick(
        cells=tuple(
            Cell(
                "Softmax",
                ratio,
                _quick(runs.CE.recipe, hours, "data.kind=cifar20", f"data.imbalance_ratio={ratio}"),
            )
            for ratio, hours in (("100", 1.1), ("200", 1.0), ("10", 1.9))
        ),
        needs=("cifar100",),
        note="40 epochs.",
    ),
)

FIGURES = (
    _FIGURE_1,
    _FIGURE_2,
    _FIGURE_3,
    _FIGURE_4,
    _FIGURE_5,
    _FIGURE_6,
    _FIGURE_7,
    _FIGURE_8,
)
