"""What every adjuster is: a function from Scores to Scores, so that what is carried moves along."""

from typing import Protocol

from longtail.core import Scores


class Adjuster(Protocol):
    """Takes scores and returns adjusted ones that say what they carry."""

    def __call__(self, scores: Scores) -> Scores:
        """The adjusted scores."""
        ...
