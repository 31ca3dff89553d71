"""ELM, figures 1 to 7. The figures themselves are not in the text: no number of theirs is known.

Head, torso and tail are classes of ≥ 100, 20 to 99 and < 20 training samples. Where a figure shows
one class of each, the mean over the group stands for it.
"""

from longtail.flows.reproduce.experiment import (
    Better,
    Cell,
    Close,
    Column,
    Experiment,
    Missing,
    Quick,
    Synthetic,
    Train,
    Trend,
    by_group,
)
from longtail.recipes.experiments import runs

_GROUPS = ("Head", "Torso", "Tail")
_DATA = "cifar100-lt"
_CELLS = (
    Cell("CE", _DATA, Train("cifar100-lt-elm-ce")),
    Cell("LogAdj", _DATA, Train("cifar100-lt-elm-adjusted")),
    Cell("ELM", _DATA, Train("cifar100-lt-elm")),
)
_QUICK = Quick(
    cells=(
        Cell("CE", _DATA, runs.CE),
        Cell("LogAdj", _DATA, runs.ADJUSTED),
        Cell("ELM", _DATA, runs.ELM),
    ),
    needs=("cifar100",),
    note="CIFAR-100-LT in 40 epochs.",
)
_NO_DRO = (Missing("DRO-LT", "The term is in longtail.losses, but no recipe can name it yet."),)


def _empty(columns: int, *rows: str) -> dict[str, tuple[None, ...]]:
    return {row: (None,) * columns for row in rows}


_MOONS = Synthetic("two-moons", trials=10)
_FIGURE_1 = Experiment(
    name="elm-figure-1",
    paper="ELM",
    item="Figure 1",
    about="Embeddings of an imbalanced two-moons problem: logit margin alone, and ELM.",
    columns=(
        Column("Variance, both classes", "total_variance"),
        Column("Variance, rare class", "total_variance", group="few"),
        Column("Accuracy", "accuracy"),
    ),
    rows=_empty(3, "LogAdj", "ELM"),
    cells=(
        Cell("LogAdj", "", _MOONS, head="logit-adjusted"),
        Cell("ELM", "", _MOONS, head="elm"),
    ),
    claims=(
        Better(
            "embeddings are more compact with ELM", "ELM", "LogAdj", ("Variance, both classes",)
        ),
        Better(
            "those of the rare class are pulled together more tightly",
            "ELM",
            "LogAdj",
            ("Variance, rare class",),
        ),
        Close(
            "the logit margin alone has near perfect accuracy", "LogAdj", 100.0, 3.0, ("Accuracy",)
        ),
    ),
)

_SETS = {
    "CIFAR100-LT ": "cifar100-lt",
    "Imagenet-LT ": "imagenet-lt",
    "iNaturalist ": "inaturalist",
}
_BY_GROUP = {group: tuple(f"{name}{group}" for name in _SETS) for group in _GROUPS}
_FIGURE_2 = Experiment(
    name="elm-figure-2",
    paper="ELM",
    item="Figure 2",
    about="Accuracy of head, torso and tail classes.",
    needs=("cifar100", "imagenet-lt", "inaturalist"),
    columns=tuple(
        column
        for name, data in _SETS.items()
        for column in by_group("accuracy", data, _GROUPS, name)
    ),
    rows=_empty(9, "CE", "LogAdj", "ELM"),
    cells=(
        *_CELLS,
        Cell("CE", "imagenet-lt", Train("imagenet-lt-la-ce")),
        Cell("LogAdj", "imagenet-lt", Train("imagenet-lt-la-adjusted")),
        Cell("ELM", "imagenet-lt", Train("imagenet-lt-elm")),
        Cell("CE", "inaturalist", Train("inaturalist-la-ce")),
        Cell("LogAdj", "inaturalist", Train("inaturalist-la-adjusted")),
        Cell("ELM", "inaturalist", Train("inaturalist-elm")),
    ),
    seeds=(0, 1, 2),
    quick=_QUICK,
    claims=(
        Better("LogAdj gains on the torso", "LogAdj", "CE", _BY_GROUP["Torso"]),
        Better("LogAdj gains on the tail", "LogAdj", "CE", _BY_GROUP["Tail"]),
        Better("LogAdj loses on the head", "CE", "LogAdj", _BY_GROUP["Head"]),
        Better("ELM gains further on the torso", "ELM", "LogAdj", _BY_GROUP["Torso"]),
        Better("ELM gains further on the tail", "ELM", "LogAdj", _BY_GROUP["Tail"]),
        Better("on iNaturalist ELM gains on the head too", "ELM", "LogAdj", ("iNaturalist Head",)),
    ),
)

_FIGURE_3 = Experiment(
    name="elm-figure-3",
    paper="ELM",
    item="Figure 3",
    about="Densities of the margins of a head, a torso and a tail class of CIFAR100-LT.",
    needs=("cifar100",),
    columns=(
        *by_group("margin_std", _DATA, _GROUPS, "Spread, "),
        *by_group("margin_mean", _DATA, _GROUPS, "Mean, "),
    ),
    rows=_empty(6, "CE", "LogAdj", "ELM", "DRO-LT"),
    cells=_CELLS,
    quick=_QUICK,
    claims=(
        Better(
            "ELM consistently reduces the spread of the margins",
            "ELM",
            "CE",
            tuple(f"Spread, {group}" for group in _GROUPS),
        ),
        Better(
            "they vary less than with the logit margin alone",
            "ELM",
            "LogAdj",
            tuple(f"Spread, {group}" for group in _GROUPS),
        ),
        Better("on the tail ELM shifts margins up over CE", "ELM", "CE", ("Mean, Tail",)),
    ),
    missing=_NO_DRO,
)

_FIGURE_4 = Experiment(
    name="elm-figure-4",
    paper="ELM",
    item="Figure 4",
    about="Largest distances within a class of CIFAR100-LT, over the largest norm.",
    needs=("cifar100",),
    columns=by_group("largest_distance", _DATA, _GROUPS),
    rows=_empty(3, "CE", "LogAdj", "ELM", "DRO-LT"),
    cells=_CELLS,
    quick=_QUICK,
    claims=(
        Better("ELM keeps the distances smaller than CE", "ELM", "CE"),
        Better("its clusters are tighter on the tail", "ELM", "LogAdj", ("Tail",)),
        Better("DRO-LT increases the distances slightly", "CE", "DRO-LT"),
    ),
    missing=_NO_DRO,
)

_FIGURE_5 = Experiment(
    name="elm-figure-5",
    paper="ELM",
    item="Figure 5",
    about="t-SNE of the training embeddings of some classes of CIFAR100-LT.",
    needs=("cifar100",),
    # How compact and separate clusters are, in the embeddings themselves rather than by the eye.
    columns=(Column("CDNV", "cdnv", _DATA),),
    rows=_empty(1, "LogAdj", "ELM", "DRO-LT"),
    cells=_CELLS[1:],
    quick=Quick(cells=_QUICK.cells[1:], needs=_QUICK.needs, note=_QUICK.note),
    claims=(
        Better("embeddings of ELM are more compact and separated than LogAdj's", "ELM", "LogAdj"),
        Better("and than those of DRO-LT", "ELM", "DRO-LT"),
    ),
    missing=_NO_DRO,
)

_FIGURE_6 = Experiment(
    name="elm-figure-6",
    paper="ELM",
    item="Figure 6",
    about="Cumulative distributions of the margins on CIFAR100-LT.",
    needs=("cifar100",),
    columns=by_group("margin_mean", _DATA, _GROUPS),
    rows=_empty(3, "CE", "LogAdj", "ELM", "DRO-LT"),
    cells=_CELLS,
    quick=_QUICK,
    claims=(
        Better("LogAdj shifts margins favourably on the tail", "LogAdj", "CE", ("Tail",)),
        Better("at some expense on the head", "CE", "LogAdj", ("Head",)),
        Better("the embedding margin betters the logit margin", "ELM", "LogAdj", ("Tail",)),
    ),
    missing=_NO_DRO,
)

# Which λ the figure has is not in the text, nor the set; 0.01 is that of A.2.
_LAMBDAS = ("0", "0.0001", "0.001", "0.01", "0.1", "1")


def _strength(run: Train, lam: str) -> Train:
    return Train(run.recipe, (*run.overrides, f"loss.lam={lam}"), run.hours)


_FIGURE_7 = Experiment(
    name="elm-figure-7",
    paper="ELM",
    item="Figure 7",
    about="Balanced accuracy of ELM against its strength λ.",
    needs=("cifar100",),
    columns=(Column("Balanced accuracy", "accuracy", _DATA),),
    rows=_empty(1, "CE", *(f"λ = {lam}" for lam in _LAMBDAS)),
    cells=(
        _CELLS[0],
        *(Cell(f"λ = {lam}", _DATA, _strength(Train("cifar100-lt-elm"), lam)) for lam in _LAMBDAS),
    ),
    quick=Quick(
        cells=(
            Cell("CE", _DATA, runs.CE),
            Cell("λ = 0", _DATA, runs.ADJUSTED),
            Cell("λ = 0.01", _DATA, runs.ELM),
            Cell("λ = 0.0001", _DATA, _strength(runs.ELM, "0.0001")),
            Cell("λ = 0.1", _DATA, _strength(runs.ELM, "0.1")),
            Cell("λ = 1", _DATA, _strength(runs.ELM, "1")),
        ),
        needs=("cifar100",),
        note="40 epochs; five of the six λ.",
    ),
    claims=(
        Better("an intermediate λ gains over none", "λ = 0.01", "λ = 0"),
        Better("an intermediate λ gains over cross-entropy", "λ = 0.01", "CE"),
        Better("too large a λ hurts considerably", "λ = 0.01", "λ = 1", by=1.0),
        Close(
            "too small a λ cannot be told from cross-entropy",
            "λ = 0.0001",
            "CE",
            within=1.0,
            doubt="With λ = 0 the loss is logit adjustment, five points above in table 2.",
        ),
        Trend(
            "from 0.01 on accuracy falls with λ",
            rows=("λ = 0.01", "λ = 0.1", "λ = 1"),
            columns=("Balanced accuracy",),
            signs=(-1,),
            against="rows",
        ),
    ),
)

FIGURES = (_FIGURE_1, _FIGURE_2, _FIGURE_3, _FIGURE_4, _FIGURE_5, _FIGURE_6, _FIGURE_7)
