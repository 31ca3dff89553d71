"""Class moments: by loops, in blocks of any size, from files, in half precision."""

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from longtail.heads import MomentSums, class_moments


def naive(features, labels, num_classes):
    """Counts, means, scatter of each class and the fourth moment, with loops."""
    rows, dim = features.tolist(), features.shape[1]
    counts, means, scatters, fourth = [], [], [], 0.0
    for label in range(num_classes):
        own = [row for row, y in zip(rows, labels.tolist(), strict=True) if y == label]
        mean = [sum(row[j] for row in own) / len(own) for j in range(dim)] if own else None
        scatter = np.zeros((dim, dim))
        for row in own:
            gap = [a - b for a, b in zip(row, mean, strict=True)]
            fourth += sum(g * g for g in gap) ** 2
            for j in range(dim):
                for k in range(dim):
                    scatter[j, k] += gap[j] * gap[k]
        counts.append(len(own))
        means.append(mean or [float("nan")] * dim)
        scatters.append(scatter)
    return (
        counts,
        torch.tensor(means, dtype=torch.float64),
        torch.tensor(np.array(scatters)),
        fourth,
    )


@pytest.mark.parametrize("block", [None, 1, 7, 44, 1000])
def test_blocks_of_any_size_give_what_loops_give(features, labels, block):
    counts, means, scatters, fourth = naive(features, labels, 6)  # of class 5 there are none
    per_class = class_moments(features, labels, 6, "per_class", fourth=True, block=block)
    assert per_class.counts.tolist() == counts
    assert_close(per_class.means, means, rtol=0, atol=1e-10, equal_nan=True)
    assert_close(per_class.scatters, scatters, rtol=0, atol=1e-10)
    assert_close(per_class.scatter, scatters.sum(0), rtol=0, atol=1e-10)
    assert per_class.fourth == pytest.approx(fourth, abs=1e-8)
    pooled = class_moments(features, labels, 6, "pooled", block=block)
    assert_close(pooled.scatter, scatters.sum(0), rtol=0, atol=1e-10)
    assert pooled.scatters is None
    assert pooled.fourth is None
    assert class_moments(features, labels, 6).scatter is None


def test_the_order_of_the_samples_does_not_matter(features, labels):
    order = torch.randperm(len(labels), generator=torch.Generator().manual_seed(0))
    given = class_moments(features, labels, 5, "pooled", block=5)
    mixed = class_moments(features[order], labels[order], 5, "pooled", block=5)
    assert_close(mixed.means, given.means)
    assert_close(mixed.scatter, given.scatter)


def test_centred_and_scaled_features(features, labels):
    origin = features.mean(0)
    rows = torch.stack([(row - origin) / (row - origin).norm() for row in features])
    moments = class_moments(features, labels, 5, "pooled", normalise=True, fourth=True, block=9)
    _, means, scatters, fourth = naive(rows, labels, 5)
    assert_close(moments.origin, origin)
    assert_close(moments.means, means, rtol=0, atol=1e-10)
    assert_close(moments.scatter, scatters.sum(0), rtol=0, atol=1e-10)
    assert moments.fourth == pytest.approx(fourth, abs=1e-8)


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_a_memory_mapped_file_is_read_block_by_block(features, labels, dtype, tmp_path):
    path = tmp_path / "features.npy"
    np.save(path, features.numpy().astype(dtype))
    mapped = np.load(path, mmap_mode="r")
    read = []

    class Spy(np.ndarray):
        def __getitem__(self, at):
            read.append(at)
            return np.asarray(self).__getitem__(at)

    moments = class_moments(mapped.view(Spy), labels.numpy(), 5, "pooled", block=10)
    exact = class_moments(np.load(path).astype(np.float64), labels.numpy(), 5, "pooled")
    assert read == [slice(start, min(start + 10, 44)) for start in range(0, 44, 10)]
    assert_close(moments.means, exact.means, rtol=0, atol=1e-12)
    assert_close(moments.scatter, exact.scatter, rtol=0, atol=1e-10)


def test_sums_are_in_float64_even_far_from_zero():
    generator = torch.Generator().manual_seed(0)
    rows = (1000 + torch.randn(5000, 2, generator=generator)).float()
    labels = torch.zeros(5000, dtype=torch.long)
    moments = class_moments(rows, labels, 1, "pooled", block=100)
    centred = rows.double() - rows.double().mean(0)
    assert_close(moments.scatter, centred.T @ centred, rtol=1e-11, atol=0)


def test_another_default_device_changes_nothing(features, labels):
    with torch.device("meta"):
        moments = class_moments(features, labels, 5, "per_class", normalise=True, fourth=True)
    plain = class_moments(features, labels, 5, "per_class", normalise=True, fourth=True)
    assert_close(moments.scatters, plain.scatters)
    assert moments.fourth == plain.fourth


def test_a_stream_says_what_it_expected(features, labels):
    with pytest.raises(ValueError, match=r"\(44, 3\).*got \(44, 6\)"):
        MomentSums(5, 3).add(features, labels)


def test_bfloat16_and_a_stream_of_batches(features, labels):
    sums = MomentSums(5, 6, "pooled")
    for start in range(0, 44, 11):
        at = slice(start, start + 11)
        sums.add(features[at].bfloat16(), labels[at])
    streamed = sums.moments()
    whole = class_moments(features.bfloat16(), labels, 5, "pooled")
    assert streamed.total == 44
    assert_close(streamed.means, whole.means)
    assert_close(streamed.scatter, whole.scatter)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"scatter": "full"}, r'scatter.*"pooled"'),
        ({"block": 0}, r"block.*got 0"),
        ({"features": torch.zeros(3)}, r"\(N, D\).*44 labels"),
        ({"features": torch.zeros(3, 2)}, r"44 labels.*got \(3, 2\)"),
        ({"labels": torch.full((44,), 5)}, r"0 to 4.*got 5"),
        ({"features": torch.full((44, 2), torch.nan)}, "must be finite, but row 0"),
    ],
)
def test_wrong_input_gives_one_clear_sentence(features, labels, change, sentence):
    given = {"features": features, "labels": labels, "num_classes": 5} | change
    with pytest.raises(ValueError, match=sentence):
        class_moments(**given)
