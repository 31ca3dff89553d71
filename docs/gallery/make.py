"""Makes docs/gallery.md and docs/gallery/*.svg by running every figure, with a card for each.

All data come with the package: features of Caltech-101 cut to a long tail. The call shown in the
page is the source of the function that drew the figure.
"""

import inspect
import sys
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import TypeAlias

import longtail as lt
from longtail.flows.tsne import tsne
from longtail.report import Chart, figures

HERE = Path(__file__).parent
Draw: TypeAlias = Callable[[SimpleNamespace], Chart]
INTRO = """\
# Gallery

Every figure of the papers as a function of `lt.figures`. Each takes values, most of them from the
function of `lt.metrics` with the same name, and returns a `Chart`. A notebook shows it,
`chart.save("name.svg")` and `chart.save("name.pdf")` write vector graphics for papers (PDF needs
`pip install longtail[plot]`), and `report.Figure(chart, caption)` puts it into a page, where it
follows light and dark mode.

This page was made by `python docs/gallery/make.py` on the features in the package: Caltech-101 cut
to a long tail, 101 classes with 300 to 3 training images. `scores` are those of a linear classifier
trained with cross-entropy, on the test set; `adjusted` are the same scores moved to the uniform
prior; `counts` are the training images of each class. The script makes all other values. The README
says [which papers](../README.md#papers) LA, LADE, EO, ELM and NCM are. The head are the frequent
classes, the tail the rare ones; many, medium and few are the classes with more than 100, with 20 to
100, and with fewer than 20 training images.
"""


@dataclass(frozen=True)
class Card:
    """A figure: what it shows, when to look at it, and the function that draws it."""

    papers: str
    look: str
    draw: Draw

    @property
    def name(self) -> str:
        """The figure's function in `lt.figures`."""
        return self.draw.__name__

    @property
    def says(self) -> str:
        """What the figure shows, in one sentence."""
        return inspect.getdoc(self.draw) or ""

    @property
    def call(self) -> str:
        """The call as it ran, without the namespace the script keeps its values in."""
        source = inspect.getsource(self.draw).partition("    return ")[2]
        return textwrap.dedent(source).replace("w.", "").replace("\n    ", "\n").strip()

    def markdown(self) -> str:
        """The card as the page shows it."""
        return (
            f"## {self.name}\n\n{self.says}\n\n"
            f"- Paper: {self.papers}\n- Look at it: {self.look}\n\n"
            f"```python\n{self.call}\n```\n\n![{self.says}](gallery/{self.name}.svg)\n"
        )


CARDS: list[Card] = []


def card(papers: str, look: str) -> Callable[[Draw], Draw]:
    """Put the figure into the gallery, in the order of this file."""

    def keep(draw: Draw) -> Draw:
        CARDS.append(Card(papers, look, draw))
        return draw

    return keep


@card(
    "EO fig. 1a",
    "first: it shows how long the tail is and how many classes are in it",
)
def counts_chart(w: SimpleNamespace) -> Chart:
    """How many samples each class has, and which classes count as many, medium and few."""
    return figures.counts_chart(w.counts, classes=w.classes)


@card(
    "EO fig. 4",
    "to see whether rare classes gain at the expense of frequent ones, and which stay behind",
)
def class_accuracy_chart(w: SimpleNamespace) -> Chart:
    """The accuracy of every class along the tail: a dot per class, and their running mean."""
    return figures.class_accuracy_chart(w.recalls, w.counts, classes=w.classes)


@card(
    "EO fig. 5",
    "to see in one curve whether a classifier favours the head (concave) or the tail (convex)",
)
def false_positives_chart(w: SimpleNamespace) -> Chart:
    """Mistakes by predicted class: above the dotted line, frequent classes attract them."""
    return figures.false_positives_chart(w.false_positives, w.counts)


@card(
    "LADE fig. 4 and 6",
    "before using probabilities for decisions; above the diagonal a model is underconfident",
)
def reliability_chart(w: SimpleNamespace) -> Chart:
    """How often predictions of each confidence are right, under a uniform prior."""
    return figures.reliability_chart(w.reliability, ece=w.ece)


@card(
    "LA fig. 3",
    "to choose τ, and to see how much depends on it",
)
def tau_error_chart(w: SimpleNamespace) -> Chart:
    """The balanced error for every strength τ of the adjustment, exact, the best one marked."""
    return figures.tau_error_chart(
        {
            "logit adjustment": lt.posthoc.tau_curve(w.scores.logits, w.labels, w.counts),
            "weight normalisation": lt.posthoc.weight_norm_curve(
                w.scores.logits, w.labels, w.norms
            ),
        },
        high=3.0,
    )


@card(
    "none; NCM fig. 5 has the τ of a loss, as the next figure",
    "if many, medium and few are not equally important to you",
)
def tau_groups_chart(w: SimpleNamespace) -> Chart:
    """What each group of classes gains and loses as the τ of post-hoc adjustment grows."""
    return figures.tau_groups_chart(
        lt.posthoc.tau_curve(w.scores.logits, w.labels, w.counts), w.counts, high=3.0
    )


@card(
    "NCM fig. 5",
    "to choose the τ of a loss, which takes a training for each: here learned NCM by NCM eq. 9",
)
def trained_tau_chart(w: SimpleNamespace) -> Chart:
    """What each group of classes gains and loses as the τ of the loss grows."""
    return figures.trained_tau_chart(w.by_tau, w.counts)


@card(
    "ELM fig. 3",
    "to see whether tail samples are missed narrowly, which adjustment corrects, or by far",
)
def margins_chart(w: SimpleNamespace) -> Chart:
    """How the margins of samples are distributed in each group; below zero is a mistake."""
    return figures.margins_chart(w.margins, w.labels, w.counts)


@card(
    "ELM fig. 6",
    "to compare methods over the whole range: the curve further right is better",
)
def margin_cdf_chart(w: SimpleNamespace) -> Chart:
    """The share of samples below each margin; at zero it is the group's error."""
    return figures.margin_cdf_chart(w.margins, w.labels, w.counts)


@card(
    "LADE fig. 2",
    "to see whether probabilities still follow the training prior on a balanced test set",
)
def mean_probability_chart(w: SimpleNamespace) -> Chart:
    """The mean probability of each class, beside the training prior and the uniform one."""
    return figures.mean_probability_chart(w.probabilities, w.counts, classes=w.classes)


@card(
    "LADE fig. 3",
    "to see whether logits of the tail are kept low, and whether they grow without bound",
)
def class_logits_chart(w: SimpleNamespace) -> Chart:
    """The logit of each class on its own samples and on all others, compared with log C."""
    return figures.class_logits_chart(w.class_logits, w.counts, classes=w.classes)


@card(
    "EO fig. 1 and 3",
    "to see where a linear layer stores the prior",
)
def offsets_chart(w: SimpleNamespace) -> Chart:
    """What the classifier adds to a class: its bias, and half its weight times the class mean."""
    return figures.offsets_chart(
        {"trained offset b": w.bias, "empirical offset ½ μ·w": w.offsets}, w.counts
    )


@card(
    "LA fig. 1",
    "before dividing by norms: that helps only if they follow the class frequencies",
)
def weight_norms_chart(w: SimpleNamespace) -> Chart:
    """The norm of each class's weights; bands are one standard deviation over three seeds."""
    return figures.weight_norms_chart({"SGD": w.sgd, "Adam": w.adam})


@card(
    "NCM fig. 4",
    "while training, to see whether the tail is still being learned",
)
def group_curves_chart(w: SimpleNamespace) -> Chart:
    """Accuracy of the groups after each epoch: many first, then medium, then few."""
    return figures.group_curves_chart(w.log)


@card(
    "NCM fig. 1, ELM fig. 5",
    "to see whether a rare class forms its own cluster. Distances in t-SNE mean little",
)
def tsne_chart(w: SimpleNamespace) -> Chart:
    """The features of two frequent and two rare classes in the plane."""
    return figures.tsne_chart(tsne(w.train_features, w.train_labels, most=100), classes=w.classes)


@card(
    "NCM fig. 2",
    "to see whether the representation itself is worse for the tail",
)
def variance_chart(w: SimpleNamespace) -> Chart:
    """How far each class spreads in feature space, by its number of training samples."""
    return figures.variance_chart(w.test_variances, w.counts, classes=w.classes)


@card(
    "ELM fig. 4",
    "to compare how compact classes are in two representations",
)
def largest_distances_chart(w: SimpleNamespace) -> Chart:
    """How far away the farthest sample of the same class is, in each group of classes."""
    return figures.largest_distances_chart(w.distances, w.labels, w.counts)


@card(
    "NCM fig. 3",
    "to see which directions a local metric discards, and for which classes",
)
def projections_chart(w: SimpleNamespace) -> Chart:
    """How much each direction of a class counts in the learned distance to its mean."""
    return figures.projections_chart(w.projections, w.counts)


@card(
    "NCM fig. 6, left",
    "to see whether learning corrects the means of rare classes more than others",
)
def displacement_chart(w: SimpleNamespace) -> Chart:
    """How far learned centroids moved from the class means where they started."""
    return figures.displacement_chart(w.displacement, w.counts, classes=w.classes)


@card(
    "NCM fig. 6, right",
    "to see whether training still separates the classes: the lower, the better",
)
def cdnv_chart(w: SimpleNamespace) -> Chart:
    """The spread of classes relative to the distance of their centroids, epoch by epoch."""
    return figures.cdnv_chart(w.cdnv)


def page() -> str:
    """The text of gallery.md."""
    return "\n".join([INTRO, *(each.markdown() for each in CARDS)])


def make(folder: Path) -> None:
    """Write gallery.md and gallery/*.svg into the folder."""
    from drawn_values import world  # beside this file, where only a script that is run looks

    values = world()
    (folder / "gallery").mkdir(exist_ok=True)
    for each in CARDS:
        each.draw(values).save(folder / "gallery" / f"{each.name}.svg")
    (folder / "gallery.md").write_text(page(), encoding="utf-8", newline="\n")


if __name__ == "__main__":
    make(Path(sys.argv[1]) if len(sys.argv) > 1 else HERE.parent)
