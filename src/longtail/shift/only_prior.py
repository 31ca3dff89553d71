r"""Whether only the prior changed: do new scores fit a mixture of the classes' validation scores?

Moving a prior is exact while p(x|y) stays. Then new scores are distributed as Σ_y q_y F_y, with F_y
the scores of validation samples of class y. Samples are counted by what is predicted and by how
sure the model is, in five bins. F is the share of each cell among the validation samples of a
class, and one sample's worth of what the model says of it; q is fitted to the predictions. Tested
is how sure the model is: over the bins,

    Σ (new − F q)² / (F q / N + Σ_y q_y² F_y (1 − F_y) / n_y)

beside the same of counts that are drawn from F* q, with F* drawn from what the validation samples
leave open, a Dirichlet distribution around F. A change after which the model is as
sure as it should be for some prior is not seen.

Most cells of F are all but empty, and are drawn as one: a part of a Dirichlet distribution has the
sum of their parameters.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from longtail.core import Prior, Scores, UnknownPriorError
from longtail.core.arrays import Floats, Indices, as_numpy
from longtail.core.numbers import check_whole
from longtail.core.retarget import prior_offset
from longtail.core.softmax import softmax
from longtail.posthoc.validation import Validation, check_validation
from longtail.shift.prepared import check_same_names

_BINS, _STEPS = 5, 100
_LEVEL = 0.01
MOST_CLASSES = 640  # beyond which it would take minutes
_EMPTY = 0.01  # how many samples an all but empty cell has at most


class ShiftCheck(NamedTuple):
    """How well new scores fit a change of the prior alone."""

    p_value: float  # how often chance alone fits as badly
    worst: tuple[int, ...]  # the classes whose predictions fit worst, the worst first

    @property
    def is_doubtful(self) -> bool:
        """Whether more than the prior changed, beyond a chance of one in a hundred."""
        return self.p_value <= _LEVEL


def check_only_prior_changed(
    scores: Scores, validation: Scores, *, resamples: int = 199, seed: int = 0
) -> ShiftCheck | None:
    """Whether scores differ from labelled ones of the same model by their prior alone.

    Both must say what they carry, and may carry different priors; the labels of the scores are not
    looked at. None for more than 640 classes, of which it would take minutes.

    >>> random = np.random.default_rng(0)
    >>> labels = random.integers(0, 3, size=2000)
    >>> logits = 2 * (random.normal(size=(2000, 3)) + np.eye(3)[labels])
    >>> validation = Scores(logits[:1000], labels[:1000], carried=[1, 1, 1])
    >>> new = logits[1000:][labels[1000:] < 2]
    >>> check_only_prior_changed(Scores(new, carried=[1, 1, 1]), validation).is_doubtful
    False
    >>> check_only_prior_changed(Scores(2 * new, carried=[1, 1, 1]), validation).is_doubtful
    True
    """
    check_whole(resamples, "resamples", least=99)  # of fewer none is one in a hundred
    labelled, size = check_validation(validation, "a check of the shift"), scores.num_classes
    if labelled.prior.num_classes != size or not len(scores):
        raise ValueError(
            f"the validation scores have {labelled.prior.num_classes} classes, and the new ones "
            f"are {len(scores)} of {size}; both must be of the same model, and there must be some"
        )
    check_same_names(scores, validation)
    moved = _moved(scores, labelled.carried)
    if size > MOST_CLASSES:
        return None
    new, old, said = _cells(moved, labelled)
    counts, total = old.sum(axis=0), int(new.sum())
    random = np.random.default_rng(check_whole(seed, "seed", least=0))
    classes = (old + said) / (counts + 1)
    found, q = _misfit(new[:, None], classes, counts)
    mixed = _drawn_mixtures(random, old + said, q[:, 0], resamples)
    drawn = random.multinomial(total, mixed.T).T
    beyond = int((_misfit(drawn, classes, counts)[0] >= found).sum())
    by_cell = _squares(new[:, None] / total, classes, counts, total, q)
    by_class = by_cell.reshape(size, _BINS).sum(axis=1)
    worst = np.argsort(-by_class)[:3].tolist()
    return ShiftCheck((1 + beyond) / (1 + resamples), tuple(worst))


def _moved(scores: Scores, carried: Prior | None) -> Scores:
    """The scores under what the validation scores carry: how sure a model is depends on it."""
    for prior, whose in ((scores.carried, "scores"), (carried, "validation scores")):
        if prior is None:
            raise UnknownPriorError(f"the {whose} carry no known prior")
    assert carried is not None
    return scores if scores.carried == carried else scores.under(carried)


def _cells(scores: Scores, labelled: Validation) -> tuple[Indices, Indices, Floats]:
    """New samples in each cell, labelled ones by label too, and the shares the model says.

    The cells of a predicted class stand together.
    """
    logits, size = labelled.logits, labelled.prior.num_classes
    both = [softmax(rows) for rows in (logits, as_numpy(scores.logits))]
    tops = [probs.max(axis=1) for probs in both]
    cuts = np.quantile(np.concatenate(tops), np.arange(1, _BINS) / _BINS)
    at, new_at = (
        probs.argmax(axis=1) * _BINS + np.searchsorted(cuts, top)
        for probs, top in zip(both, tops, strict=True)
    )
    old = np.bincount(at * size + labelled.labels, minlength=_BINS * size**2)
    # Under the samples' own prior; where it rules a class out nothing is said of it.
    own = softmax(logits + prior_offset(labelled.carried, labelled.prior))
    sums = [np.bincount(at, column, minlength=_BINS * size) for column in own.T]
    said = np.stack(sums, axis=1) + np.finfo(np.float64).tiny
    return np.bincount(new_at, minlength=_BINS * size), old.reshape(-1, size), said / said.sum(0)


def _drawn_mixtures(
    random: np.random.Generator, concentration: Floats, q: Floats, resamples: int
) -> Floats:
    """F* q, a column for each of the F* that are drawn."""
    cells, of_class = np.nonzero(concentration > _EMPTY)
    full = concentration[cells, of_class]
    empty = np.where(concentration > _EMPTY, 0.0, concentration)
    rest = empty.sum(axis=0)
    shares = np.divide(empty, rest, out=np.zeros_like(empty), where=rest > 0)
    mixed = np.empty((len(concentration), resamples))
    parts_of_rest = np.empty((len(q), resamples))
    for each in range(resamples):
        parts, rests = random.standard_gamma(full), random.standard_gamma(rest)
        weights = q / (np.bincount(of_class, parts, len(q)) + rests)
        mixed[:, each] = np.bincount(cells, parts * weights[of_class], len(concentration))
        parts_of_rest[:, each] = rests * weights
    mixed += shares @ parts_of_rest
    return np.asarray(mixed / mixed.sum(axis=0))


def _misfit(new: Indices, classes: Floats, counts: Indices) -> tuple[Floats, Floats]:
    """How badly the bins fit, with the q that fits the predictions best, of each column of new."""
    total, size = int(new[:, 0].sum()), classes.shape[1]
    cells, shares = classes.reshape(size, _BINS, size), (new / total).reshape(size, _BINS, -1)
    predicted, told = cells.sum(axis=1), shares.sum(axis=1)
    q = np.full(told.shape, 1 / size)
    for _ in range(_STEPS):  # EM
        fitted = np.maximum(predicted @ q, np.finfo(np.float64).tiny)
        q *= predicted.T @ (told / fitted)
    return _squares(shares.sum(axis=0), cells.sum(axis=0), counts, total, q).sum(axis=0), q


def _squares(share: Floats, classes: Floats, counts: Indices, total: int, q: Floats) -> Floats:
    """The square of each difference, divided by its variance; a column for each of q."""
    fitted = classes @ q
    noise = (classes * (1 - classes) / (counts + 1)) @ q**2
    return np.asarray((share - fitted) ** 2 / ((fitted + 1 / total) / total + noise))
