"""What metrics and axes are called, on every page and in every table."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING

from longtail.core import GroupEdges
from longtail.flows.samples import BeforeAfter

if TYPE_CHECKING:
    from longtail.metrics import Interval

ACCURACIES = {
    "accuracy_under_target": "accuracy under the target",
    "balanced_accuracy": "balanced accuracy",
    "accuracy": "accuracy, samples as they are",
}
GROUPS = {name: f"{name}-shot classes" for name in ("many", "medium", "few")}
METRICS = (
    ACCURACIES
    | GROUPS
    | {"worst_class": "worst class", "ece": "calibration error (ECE)", "nll": "log-loss"}
)
HEADLINES = {key: name.partition(",")[0].capitalize() for key, name in ACCURACIES.items()}
ORDERS = {
    "counts": "class, from most to fewest training samples",
    "source": "class, from most to least likely before",
    "labels": "class, from most to fewest samples",
}


def order_title(samples: BeforeAfter) -> str:
    """What an axis of the ordered classes says."""
    return ORDERS[samples.ordered_by]


def group_ranges(edges: GroupEdges) -> dict[str, str]:
    """How many training samples a class of many, medium and few has.

    >>> group_ranges(GroupEdges())
    {'many': 'more than 100', 'medium': '20 to 100', 'few': 'fewer than 20'}
    >>> group_ranges(GroupEdges.of("many=100,few=20,inclusive"))
    {'many': '100 or more', 'medium': '20 to 99', 'few': 'fewer than 20'}
    """
    many, few = edges.many, edges.few
    return {
        "many": f"{many} or more" if edges.many_inclusive else f"more than {many}",
        "medium": f"{few + edges.few_inclusive} to {many - edges.many_inclusive}",
        "few": f"{few} or fewer" if edges.few_inclusive else f"fewer than {few}",
    }


def groups_in_words(edges: GroupEdges) -> str:
    """The edges in one sentence."""
    each = group_ranges(edges)
    return (
        f"Many, medium and few are classes of {each['many']}, {each['medium']} and {each['few']} "
        "training samples."
    )


def number(value: float | None, key: str = "", sign: str = "") -> str:
    """A share in percent, or a log-loss, which is infinite where a sample's class was ruled out."""
    if value is None:
        return "none"
    text = f"{value:{sign}.3f}" if key == "nll" else f"{100 * value:{sign}.1f}"
    return text.replace("-", "−").replace("inf", "∞")


def percent(share: float | None) -> str:
    """A share in percent."""
    return number(share)


def points(share: float | None) -> str:
    """A difference of shares in points, with its sign."""
    return number(share, sign="+")


def with_interval(measured: Interval, key: str = "") -> str:
    """A share in percent or a log-loss, with its interval where there is one."""
    value, low, high = measured.value, measured.low, measured.high
    if value is None or low is None or high is None or not isfinite(value):
        return number(value, key)
    return f"{number(value, key)} [{number(low, key)},\u00a0{number(high, key)}]"


def points_with_interval(gain: Interval) -> str:
    """A difference of shares in points, with its interval."""
    if gain.low is None or gain.high is None:
        return "none"
    return f"{points(gain.value)} [{points(gain.low)},\u00a0{points(gain.high)}]"


def how_many(number: int, word: str, several: str = "") -> str:
    """So many of something: 1 class, 2,000 classes.

    >>> how_many(1, "class", "classes"), how_many(2000, "sample")
    ('1 class', '2,000 samples')
    """
    return f"{number:,} {word if number == 1 else several or f'{word}s'}"
