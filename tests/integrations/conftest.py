import numpy as np
import pytest


@pytest.fixture(scope="session")
def three_classes():
    """Overlapping Gaussians in the plane, 240, 45 and 15 of them, with labels that are words."""
    random = np.random.default_rng(0)
    counts, centres = [240, 45, 15], np.array([[0.0, 0.0], [1.5, 0.0], [0.0, 1.5]])
    labels = np.repeat(["ant", "bee", "cat"], counts)
    X = np.repeat(centres, counts, axis=0) + random.normal(size=(300, 2))
    order = random.permutation(300)
    return X[order], labels[order]


@pytest.fixture(scope="session")
def two_gaussians():
    """Of one dimension, one in ten positive: many to train on, many to test with."""
    random = np.random.default_rng(1)

    def draw(size):
        y = (random.random(size) < 0.1).astype(int)
        return random.normal(size=(size, 1)) + 1.5 * y[:, None], y

    return draw(20_000), draw(20_000)
