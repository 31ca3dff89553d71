"""The metrics that methods are compared by: what each is called, and which end of it is good."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Metric:
    """A column of the comparison.

    Attributes:
        key: Its name in `lt.metrics.evaluate`.
        name: What it is called.
        short: One word, for a terminal.
        percent: Whether it is a share, shown in %.
        digits: Decimals it is shown with.
        best: Which end of it is good.
        tested: Whether differences in it are tested. A minimum over classes is not: the sample
            that decides it is found by looking.
    """

    key: str
    name: str
    short: str
    percent: bool = True
    digits: int = 1
    best: Literal["high", "low"] = "high"
    tested: bool = True

    @property
    def factor(self) -> float:
        """What a value is multiplied by to be shown."""
        return 100.0 if self.percent else 1.0

    @property
    def unit(self) -> str:
        """What a difference is counted in."""
        return " points" if self.percent else ""

    def ahead(self, value: float) -> float:
        """The value turned so that more is better."""
        return value if self.best == "high" else -value


METRICS = (
    Metric("accuracy_under_target", "accuracy under the target", "under target"),
    Metric("balanced_accuracy", "balanced accuracy", "balanced"),
    Metric("accuracy", "accuracy, samples as they are", "accuracy"),
    Metric("many", "many", "many"),
    Metric("medium", "medium", "medium"),
    Metric("few", "few", "few"),
    Metric("worst_class", "worst class", "worst", tested=False),
    Metric("ece", "ECE", "ECE", best="low"),
    Metric("nll", "NLL", "NLL", percent=False, digits=3, best="low"),
)
BY_KEY = {metric.key: metric for metric in METRICS}
