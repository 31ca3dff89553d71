"""The two moons of ELM §2.3: how compact embeddings are that logit margins alone learn, and ELM's.

A network with {16, 8, 2} hidden units is trained on two half circles, of whose points 5 % are of
the tail, with ReLU after the first two layers. The last two units, without one, are the embedding
Φ, so that it can be drawn; a linear layer follows. Of the training the paper says no more:
`MoonsExperiment` has the rest, ELM the λ and α of its CIFAR-10. A variance falls if all of Φ
shrinks, so that the class-distance normalised variance, which then stays, is measured too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from longtail.core import Prior
from longtail.core.blocks import slices
from longtail.core.tensors import as_tensor
from longtail.data import two_moons
from longtail.flows.two_gaussians import joined_trials
from longtail.heads.starts import drawn_from, random_layer
from longtail.losses import ELM, CrossEntropy, LogitAdjusted, Loss
from longtail.metrics import recalls
from longtail.metrics.representations import class_means, intra_class_variance, mean_cdnv

Floats = npt.NDArray[np.float64]

_HIDDEN = (16, 8, 2)


class MoonsExperiment(NamedTuple):
    """What is tried in each trial."""

    losses: Mapping[str, Callable[[Prior], Loss]]
    samples: int = 1000  # of the training set
    test_samples: int = 4000  # half of them of the tail
    epochs: int = 60
    batch_size: int = 128
    lr: float = 0.01  # of Adam


ELM_FIGURE_1 = MoonsExperiment(
    {
        "cross-entropy": CrossEntropy,
        "logit-adjusted": LogitAdjusted,
        "elm": partial(ELM, lam=0.01, margins="prior"),
    }
)


@dataclass(frozen=True, eq=False)
class TwoMoons:
    """Numbers of each method, one for each trial, on test samples."""

    recalls: Mapping[str, Floats]  # in percent; the second axis is for head and tail
    variances: Mapping[str, Floats]  # traces of the covariance of Φ, of head and tail
    cdnv: Mapping[str, Floats]
    embeddings: Mapping[str, Floats]  # the first trial's Φ of test samples, for the picture
    labels: npt.NDArray[np.int64]
    separators: Mapping[str, Floats]  # the first trial's a, b, c of a·Φ₁ + b·Φ₂ + c > 0: the tail

    @property
    def trials(self) -> int:
        """How many there are."""
        return len(next(iter(self.cdnv.values())))


def run_trials(
    experiment: MoonsExperiment,
    trials: int,
    seed: int,
    progress: Callable[[], None] = lambda: None,
) -> TwoMoons:
    """All trials; `progress` is called after each."""
    results = []
    for trial in range(trials):
        results.append(_trial(experiment, seed + trial))
        progress()

    return joined_trials(results, "recalls", "variances", "cdnv")


def _trial(experiment: MoonsExperiment, seed: int) -> TwoMoons:
    features, labels = map(as_tensor, two_moons(experiment.samples, 2 * seed))
    points, truth = two_moons(experiment.test_samples, 2 * seed + 1, tail=0.5)
    prior = Prior.from_labels(labels, num_classes=2)
    right, variances, spread, embeddings, separators = {}, {}, {}, {}, {}
    for name, make in experiment.losses.items():
        embed, head = trained(experiment, make(prior), features, labels, seed)
        with torch.no_grad():
            embedded = embed(as_tensor(points))
            right[name] = 100 * np.asarray(recalls(head(embedded).numpy(), truth))[None]
        rows = embedded.double().numpy()
        variance = intra_class_variance(rows, truth, 2, "trace")
        variances[name] = variance[None]
        spread[name] = np.array([mean_cdnv(variance, class_means(rows, truth, 2))])
        embeddings[name] = rows
        difference = [head.weight[1] - head.weight[0], (head.bias[1] - head.bias[0])[None]]
        separators[name] = torch.cat(difference).detach().double().numpy()
    return TwoMoons(right, variances, spread, embeddings, truth, separators)


def trained(
    experiment: MoonsExperiment, loss: Loss, features: Tensor, labels: Tensor, seed: int
) -> tuple[nn.Sequential, nn.Linear]:
    """The embedding and the layer on it, after all epochs; each loss starts from the same."""
    generator = torch.Generator().manual_seed(seed)
    with drawn_from(generator):
        embed, head = _network()
    optimizer = torch.optim.Adam([*embed.parameters(), *head.parameters()], experiment.lr)
    for _ in range(experiment.epochs):
        order = torch.randperm(len(labels), generator=generator)
        for at in slices(len(order), 1, experiment.batch_size):
            batch = order[at]
            embedded = embed(features[batch])
            value = loss(head(embedded), labels[batch], features=embedded)
            optimizer.zero_grad()
            torch.autograd.backward(value)
            optimizer.step()
    return embed, head


def _network() -> tuple[nn.Sequential, nn.Linear]:
    """No ReLU after the last hidden layer, whose two units would else die in some trials."""
    layers: list[nn.Module] = []
    for width, units in zip((2, *_HIDDEN), _HIDDEN, strict=False):
        layers += [random_layer(width, units, bias=True), nn.ReLU()]
    return nn.Sequential(*layers[:-1]), random_layer(_HIDDEN[-1], 2, bias=True)
