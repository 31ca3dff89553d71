"""What metrics and axes are called, on every page and in every table."""

from longtail.flows.samples import BeforeAfter
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
HEADLINES = {
    "accuracy": "Accuracy",
    "accuracy_under_target": "Accuracy under the target",
    "balanced_accuracy": "Balanced accuracy",
}
_ORDERS = {
    "counts": "class, from most to fewest training samples",
    "source": "class, from most to least likely before",
    "labels": "class, from most to fewest samples",
}


def order_title(samples: BeforeAfter) -> str:
    """What an axis of the ordered classes says."""
    return _ORDERS[samples.ordered_by]


def percent(share: float | None) -> str:
    """A share in percent."""
    return "none" if share is None else f"{100 * share:.1f}"


def points(share: float | None) -> str:
    """A difference of shares in points, with its sign."""
    return "none" if share is None else f"{100 * share:+.1f}".replace("-", "−")


def with_interval(share: Interval) -> str:
    """A share in percent, with its interval where there is one."""
    if share.low is None or share.high is None:
        return percent(share.value)
    return f"{percent(share.value)} [{percent(share.low)},\u00a0{percent(share.high)}]"


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
