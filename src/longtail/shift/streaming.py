"""EM on a stream: the prior of the last samples seen, kept up to date batch by batch."""

from __future__ import annotations

import numpy as np

from longtail.core import Prior, Scores
from longtail.core.arrays import as_numpy
from longtail.core.numbers import check_number, check_whole
from longtail.core.retarget import retarget
from longtail.shift.draws import full
from longtail.shift.em import climb, free_step, likelihoods


class StreamingPrior:
    """Watches scores go by and knows the prior of the last `window` samples.

    The likelihoods of those samples are kept, and each update goes on with EM from where the last
    one ended, which takes few rounds. So `prior` is that of `estimate_prior` on the window, without
    validation scores, up to the tolerance of EM; old samples leave it, and it follows a prior that
    changes. Calibrate the scores before, if there are validation scores to fit on.

    Attributes:
        prior: The estimate; uniform before the first update.
        num_samples: How many samples are in the window.

    >>> stream = StreamingPrior(num_classes=2)
    >>> for _ in range(3):
    ...     batch = Scores([[3.0, 0.0], [0.0, 3.0], [0.0, 3.0]] * 20, carried=[1, 1])
    ...     prior = stream.update(batch)
    >>> prior
    Prior([0.318, 0.682])
    >>> stream.num_samples
    180
    """

    def __init__(self, num_classes: int, window: int = 10_000, pseudo_count: float = 1.0) -> None:
        self._window = check_whole(window, "window", least=1)
        added = check_number(pseudo_count, "pseudo_count", least=0)
        self._step = free_step(np.float64(added))
        self._likelihood = np.empty((0, num_classes))
        self._prior = Prior.uniform(num_classes)

    @property
    def prior(self) -> Prior:
        """The estimate from the samples in the window."""
        return self._prior

    @property
    def num_samples(self) -> int:
        """How many samples are in the window."""
        return len(self._likelihood)

    def update(self, scores: Scores) -> Prior:
        """Take in a batch, forget what falls out of the window, and return the new estimate."""
        if scores.num_classes != self._prior.num_classes:
            raise ValueError(
                f"this stream has {self._prior.num_classes} classes, but the scores have "
                f"{scores.num_classes}; use one stream for each model"
            )
        exact = as_numpy(scores.logits).astype(np.float64)
        moved = retarget(exact, scores.carried, Prior.uniform(scores.num_classes))
        window = np.concatenate([self._likelihood, likelihoods(moved)])
        self._likelihood = window[-self._window :]
        if self.num_samples:
            weights = np.ones((self.num_samples, 1))
            end = climb(self._likelihood, weights, self._prior.probs[:, None], self._step)
            self._prior = full(end.priors[:, 0])
        return self._prior
