"""EO, figures 1 to 5. The figures themselves are not in the text: no number of theirs is known."""

from longtail.flows.reproduce.experiment import (
    Better,
    Cell,
    Column,
    Experiment,
    Missing,
    Quick,
    Train,
    Trend,
)
from longtail.recipes.experiments import runs

_FREE = ("loss.uniform_weight=0",)
_SETS = {
    "ImageNet-LT": ("imagenet-lt-eo-baseline", "imagenet-lt-eo"),
    "Places2-LT": ("places-lt-eo-baseline", "places-lt-eo"),
    "SUN397": ("sun397-eo-baseline", "sun397-eo"),
}
_NOTE = "CIFAR-100-LT, ratio 100, ResNet-32 in 40 epochs, for ImageNet-LT."


def _columns(measures: dict[str, str]) -> tuple[Column, ...]:
    """Each measure on each set: "ImageNet-LT, offsets"."""
    return tuple(
        Column(f"{data}, {name}", measure, data)
        for data in _SETS
        for name, measure in measures.items()
    )


def _on_all(name: str) -> tuple[str, ...]:
    return tuple(f"{data}, {name}" for data in _SETS)


_BASELINE = tuple(Cell("Baseline", data, Train(plain)) for data, (plain, _) in _SETS.items())
_OURS = tuple(Cell("Ours", data, Train(ours)) for data, (_, ours) in _SETS.items())
_QUICK = (
    Cell("Baseline", "ImageNet-LT", runs.CE),
    Cell("Ours", "ImageNet-LT", runs.OFFSET),
)

_FIGURE_1 = Experiment(
    name="eo-figure-1",
    paper="EO",
    item="Figure 1",
    about="Prior, trained offsets and empirical offsets of the classes of ImageNet-LT, ERM.",
    needs=("imagenet-lt",),
    columns=(
        Column("Trained offset", "bias", "ImageNet-LT"),
        Column("Empirical offset", "empirical_offset", "ImageNet-LT"),
    ),
    rows={"Baseline": (None, None)},
    cells=_BASELINE[:1],
    quick=Quick(cells=_QUICK[:1], needs=("cifar100",), note=_NOTE),
    claims=(
        Trend(
            "the trained offset follows the prior",
            rows=("Baseline",),
            columns=("Trained offset",),
            signs=(1,),
        ),
        Trend(
            "so does the empirical offset",
            rows=("Baseline",),
            columns=("Empirical offset",),
            signs=(1,),
        ),
    ),
)

_FIGURE_2 = Experiment(
    name="eo-figure-2",
    paper="EO",
    item="Figure 2",
    about="The boundary between two Gaussian classes passes midway and through the origin.",
    missing=(Missing("*", "It draws equation 4, which a test of the heads checks."),),
)

_FIGURE_3 = Experiment(
    name="eo-figure-3",
    paper="EO",
    item="Figure 3",
    about="Empirical and estimated offsets of the classes after training with the constraint.",
    needs=("imagenet-lt", "places-lt", "sun397"),
    columns=_columns(
        {
            "empirical": "empirical_offset",
            "estimated": "estimated_offset",
            "gap": "offset_gap",
            "spread": "offset_spread",
        }
    ),
    rows={"Baseline": (None,) * 12, "Ours": (None,) * 12},
    cells=(*_BASELINE, *_OURS),
    quick=Quick(cells=_QUICK, needs=("cifar100",), note=_NOTE),
    claims=(
        Trend(
            "the estimated offsets do not depend on the class size",
            rows=("Ours",),
            columns=_on_all("estimated"),
            signs=(0,),
        ),
        Trend(
            "nor do the empirical ones",
            rows=("Ours",),
            columns=("ImageNet-LT, empirical", "Places2-LT, empirical"),  # rare ones drop on SUN397
            signs=(0,),
        ),
        Trend(
            "the gap between the two is the same for all classes",
            rows=("Ours",),
            columns=("ImageNet-LT, gap", "Places2-LT, gap"),
            signs=(0,),
        ),
        Better(
            "the offsets are more uniform than those of the baseline",
            "Ours",
            "Baseline",
            _on_all("spread"),
        ),
    ),
)

_FIGURE_4 = Experiment(
    name="eo-figure-4",
    paper="EO",
    item="Figure 4",
    about="Accuracy of each class, and its geometric mean, of the baseline and of ours.",
    needs=("imagenet-lt", "places-lt", "sun397"),
    columns=_columns({"classes": "recall", "geometric mean": "geometric_mean"}),
    rows={"Baseline": (None,) * 6, "Ours": (None,) * 6},
    cells=(*_BASELINE, *_OURS),
    quick=Quick(cells=_QUICK, needs=("cifar100",), note=_NOTE),
    claims=(
        Better(
            "the geometric mean of the classes' accuracies is higher",
            "Ours",
            "Baseline",
            _on_all("geometric mean"),
        ),
        Trend(
            "the baseline recognises frequent classes better",
            rows=("Baseline",),
            columns=_on_all("classes"),
            signs=(1,),
        ),
        Trend(
            "ours recognises minority classes as well as majority ones",
            rows=("Ours",),
            columns=_on_all("classes"),
            signs=(0, -1),
        ),
    ),
)

# Which set is (c), where §4.4 says ours penalises too much, is not in the text: the third.
_FIGURE_5 = Experiment(
    name="eo-figure-5",
    paper="EO",
    item="Figure 5",
    about="Cumulative false positives over classes by falling frequency; straight is unbiased.",
    needs=("imagenet-lt", "places-lt", "sun397"),
    columns=_columns({"classes": "false_positives", "bend": "false_positive_bend"}),
    rows={"Baseline": (None,) * 6, "Ours w/o UC": (None,) * 6, "Ours": (None,) * 6},
    cells=(
        *_BASELINE,
        *(Cell("Ours w/o UC", data, Train(ours, _FREE)) for data, (_, ours) in _SETS.items()),
        *_OURS,
    ),
    quick=Quick(
        cells=(*_QUICK, Cell("Ours w/o UC", "ImageNet-LT", runs.OFFSET_FREE)),
        needs=("cifar100",),
        note=_NOTE,
    ),
    claims=(
        Trend(
            "the baseline mistakes samples for frequent classes",
            rows=("Baseline",),
            columns=_on_all("classes"),
            signs=(1,),
        ),
        Better("ours is straighter than the baseline", "Ours", "Baseline", _on_all("bend")),
        Better(
            "the offset alone is straighter than the baseline",
            "Ours w/o UC",
            "Baseline",
            _on_all("bend"),
        ),
        Trend(
            "on SUN397 ours penalises frequent classes too much",
            rows=("Ours",),
            columns=("SUN397, classes",),
            signs=(-1,),
        ),
    ),
)

FIGURES = (_FIGURE_1, _FIGURE_2, _FIGURE_3, _FIGURE_4, _FIGURE_5)
