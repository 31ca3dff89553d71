import numpy as np
import pytest

COUNTS = (60, 30, 12, 6)


def write_images(place, counts=COUNTS, size=8, of_test=20):
    """An npz file of small images, each class of a colour of its own under much noise."""
    random = np.random.default_rng(0)
    colors = random.integers(40, 216, (len(counts), 3))

    def part(numbers):
        labels = random.permutation(np.repeat(np.arange(len(numbers)), numbers))
        noise = random.normal(0, 40, (len(labels), 3, size, size))
        pixels = colors[labels][:, :, None, None] + noise
        return np.clip(pixels, 0, 255).astype(np.uint8), labels

    images, labels = part(counts)
    test_images, test_labels = part([of_test] * len(counts))
    np.savez(
        place,
        train_images=images,
        train_labels=labels,
        test_images=test_images,
        test_labels=test_labels,
    )
    return place


@pytest.fixture(scope="session")
def images(tmp_path_factory):
    return write_images(tmp_path_factory.mktemp("data") / "images.npz")
