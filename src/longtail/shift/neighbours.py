"""How much neighbours tell of a sample: found out on simulated shifts, and may be nothing."""

from __future__ import annotations

import numpy as np

from longtail.core.arrays import Numbers
from longtail.core.neighbours import nearest
from longtail.core.softmax import log_softmax
from longtail.posthoc.validation import Validation
from longtail.shift.simulated import STRENGTHS, Simulated

SHARES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)


def best_share(validation: Validation, features: Numbers, shifts: Simulated) -> float:
    """That of the least log-loss under the true priors of the shifts."""
    losses = np.zeros(len(SHARES))
    step = len(shifts.truths.T) // len(STRENGTHS)  # one of each strength is enough
    for times, truth in zip(shifts.times.T[::step], shifts.truths.T[::step], strict=True):
        there = shifts.rows[times > 0]
        counted, near = times[times > 0], nearest(features[there], times=times[times > 0])
        own = np.arange(len(there)), validation.labels[there]
        with np.errstate(divide="ignore"):
            move = np.log(truth)
        for k, share in enumerate(SHARES):
            rows = near.smoothed(validation.logits[there], share)
            losses[k] -= counted @ log_softmax(rows + move)[own]
    return SHARES[int(losses.argmin())]
