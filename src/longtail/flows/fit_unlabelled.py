"""What unlabelled features that follow the target add to a fit: matching and self-training.

Matching moves a linear layer by what it says of them (`posthoc.MarginalMatching`). Self-training
labels them: by the layer, each with a share of its nearest neighbours, offsets matched to the
target, and the layer is trained again on both. As p(x|y) is the same in both, the samples together
are some of another prior, that of all labels, and cross-entropy carries it. A few rounds of that.
Both give a plain linear layer for any sample, and look at no label of an unlabelled one.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from typing import TypeAlias

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from longtail.core import Prior, Scores
from longtail.core.arrays import as_numpy
from longtail.core.carried import matched_offsets
from longtail.core.neighbours import Neighbours, nearest
from longtail.data import Features, read_feature_rows
from longtail.engine import FeatureRows
from longtail.flows.fit_samples import LOOKED_AT, FeaturesLike, Samples, linear_layer
from longtail.metrics import paired_gain
from longtail.posthoc import MarginalMatching, PCSoftmax, fold
from longtail.stats import NORMAL

Right: TypeAlias = npt.NDArray[np.bool_]  # which samples a method is right on

_ROUNDS = 3
_TOLERANCE = 1e-4  # labels that are guessed need no more


@dataclass(frozen=True, eq=False)
class Unlabelled:
    """Features without labels, divided by the unit, and the prior that they follow."""

    features: Tensor
    prior: Prior

    @cached_property
    def neighbours(self) -> Neighbours:
        """Of each of them, for all rounds of all folds."""
        return nearest(self.features.numpy())

    def labels(self, layer: nn.Linear, carried: Prior) -> Tensor:
        """What they are by the layer, by their neighbours, and by how frequent each class is."""
        scores = Scores(layer(self.features), carried=carried).under(self.prior)
        smoothed = self.neighbours.smoothed(scores.logits.numpy())
        offset = matched_offsets(smoothed, self.prior).offset
        return torch.from_numpy((smoothed + offset).argmax(axis=1))


def unlabelled_features(features: FeaturesLike, train: Features) -> Tensor:
    """All rows of an array or a file, in float32 or float64; their labels are not looked at."""
    if isinstance(features, Features):
        rows = np.concatenate([part.features for part in features.parts.values()])
    elif isinstance(features, str | os.PathLike):
        rows = read_feature_rows(features)
    else:
        rows = as_numpy(features)
    if rows.ndim != 2 or rows.dtype.kind != "f" or rows.shape[1] != train.dim or len(rows) < 2:
        raise ValueError(
            f"unlabelled features must be two rows or more of {train.dim} floating-point numbers, "
            f"as the labelled ones are, got {rows.dtype} of shape {rows.shape}"
        )
    FeatureRows(rows).check_finite("unlabelled features")
    own = train.part("train").features[: min(LOOKED_AT, len(rows))]
    if np.array_equal(rows[: len(own)], own):
        raise ValueError(
            "the unlabelled samples are those of the train part, which say nothing new; give others"
        )
    return torch.from_numpy(rows.astype(np.float64 if rows.dtype == np.float64 else np.float32))


def matched(layer: nn.Linear, carried: Prior, unlabelled: Unlabelled) -> nn.Linear:
    """The layer moved to the prior of the unlabelled samples, by what these say it carries."""
    scores = Scores(layer(unlabelled.features), carried=carried)
    return fold(layer, MarginalMatching.fit(scores, unlabelled.prior))


def self_trained(
    samples: Samples, layer: nn.Linear, decay: float, unlabelled: Unlabelled
) -> nn.Linear:
    """A layer trained on both, from one that was trained on the labelled samples alone."""
    num_classes = layer.out_features
    carried = Prior.from_labels(samples.labels, num_classes)
    features = torch.cat([samples.features, unlabelled.features])
    for _ in range(_ROUNDS):
        both = Samples(features, torch.cat([samples.labels, unlabelled.labels(layer, carried)]))
        layer = linear_layer(both, num_classes, decay, layer, _TOLERANCE)
        carried = Prior.from_labels(both.labels, num_classes)
    return fold(layer, PCSoftmax(unlabelled.prior), carried=carried)


def is_worth(before: Right, after: Right, labels: Tensor, target: Prior) -> bool:
    """Whether a method gains on the same samples by more than a standard error.

    Methods that learn from unlabelled samples trust in more, that these follow the target; so they
    are preferred only if they are better by more than chance often gives.
    """
    gain = paired_gain(before, after, labels, target=target)
    if gain.value is None or gain.low is None or gain.high is None:
        return False
    return gain.value > (gain.high - gain.low) / (2 * NORMAL)
