"""Gaussian classes: samples of any label prior, with logits that are right by construction."""

import numpy as np
import pytest

from longtail import Prior, Scores


def class_means(num_classes):
    """Means far enough apart to tell the classes, near enough to confuse them."""
    return 1.5 * np.random.default_rng(7).normal(size=(num_classes, 4))


@pytest.fixture
def gaussian_scores():
    """A function that draws scores of a label prior; `bias` makes the model wrong about classes."""

    def make(prior, num_samples, seed, carried=None, bias=0.0, **known):
        probs = np.asarray(prior, dtype=float) / np.sum(prior)
        means = class_means(len(probs))
        stream = np.random.default_rng(seed)
        labels = stream.choice(len(probs), size=num_samples, p=probs)
        points = means[labels] + stream.normal(size=(num_samples, means.shape[1]))
        logits = points @ means.T - 0.5 * (means**2).sum(axis=1) + bias
        scores = Scores(logits, labels, carried=Prior.uniform(len(probs)), **known)
        return scores if carried is None else scores.under(carried)

    return make
