"""Margins, offsets and weight norms: by loops, and against SciPy."""

import math
from functools import partial

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from torch.testing import assert_close

from longtail import metrics
from longtail.core.blocks import blocks
from longtail.metrics import representations


@pytest.mark.parametrize("entries", [7, 2**22])
def test_margins_by_loops_in_blocks(draw, monkeypatch, entries):
    monkeypatch.setattr("longtail.metrics.logits.blocks", partial(blocks, numbers=entries))
    logits, labels = draw(num_samples=60)
    ours = metrics.margins(logits, labels)
    for f, y, margin in zip(logits.tolist(), labels.tolist(), ours.tolist(), strict=True):
        best = max(v for j, v in enumerate(f) if j != y)
        assert margin == pytest.approx(f[y] - best, abs=1e-12)
    right = logits.argmax(1) == labels
    assert torch.equal(ours > 0, right)


def test_the_share_of_margins_below_a_point_by_loops(draw):
    logits, labels = draw(num_samples=60)
    wide = torch.cat([logits, torch.full((60, 1), -9e9)], 1)  # a class without samples
    margins = metrics.margins(logits, labels)
    at = [-1.0, 0.0, margins[3].item(), 100.0]
    ours = metrics.margin_cdf(wide, labels, at=at)
    for y in range(5):
        own = margins[labels == y].tolist()
        for k, point in enumerate(at):
            assert ours[y, k].item() == pytest.approx(sum(m <= point for m in own) / len(own))
    assert ours[5].isnan().all()


def test_at_zero_the_share_is_the_error_of_the_class(draw):
    logits, labels = draw()
    recalls = metrics.recalls(logits.argmax(1), labels, 5)
    wrong = metrics.margin_cdf(logits, labels, at=[0.0])
    assert_close(wrong[:, 0], 1 - recalls)


def test_offsets_by_loops_and_nan_without_a_centre():
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(4, 3, generator=generator, dtype=torch.float64)
    features = torch.randn(20, 3, generator=generator, dtype=torch.float64)
    labels = torch.arange(20) % 3
    ours = representations.class_offsets(weight, representations.class_means(features, labels, 4))
    for y in range(3):
        mean = features[labels == y].mean(0)
        expected = 0.5 * sum(a * b for a, b in zip(mean.tolist(), weight[y].tolist(), strict=True))
        assert ours[y].item() == pytest.approx(expected, abs=1e-12)
    assert ours[3].isnan()


def test_weight_norms_by_loops_in_half_precision():
    weight = torch.randn(4, 300, generator=torch.Generator().manual_seed(0)).half()
    expected = [math.sqrt(sum(v * v for v in row)) for row in weight.double().tolist()]
    assert_close(representations.weight_norms(weight), torch.tensor(expected, dtype=torch.float64))


@pytest.mark.parametrize("seed", range(5))
def test_the_correlation_with_frequency_is_spearman_s_with_ties(seed):
    generator = np.random.default_rng(seed)
    values, counts = generator.integers(0, 6, 20).astype(float), generator.integers(1, 8, 20)
    expected = spearmanr(values, counts).statistic
    assert representations.frequency_correlation(values, counts) == pytest.approx(
        expected, abs=1e-12
    )
    values[3] = math.nan
    kept = np.arange(20) != 3
    expected = spearmanr(values[kept], counts[kept]).statistic
    assert representations.frequency_correlation(values, counts) == pytest.approx(
        expected, abs=1e-12
    )


@pytest.mark.parametrize("values", [[1.0, math.nan, math.nan], [2.0, 2.0, 2.0]])
def test_a_correlation_that_does_not_exist_is_nan(values):
    assert math.isnan(representations.frequency_correlation(values, [3, 2, 1]))


def test_numpy_gives_numpy(draw):
    logits, labels = (each.numpy() for each in draw(num_samples=10))
    margins = metrics.margins(logits, labels)
    for ours in (
        margins,
        metrics.margin_cdf(logits, labels, at=[0.0]),
        representations.weight_norms(logits),
        representations.class_offsets(logits, logits),
    ):
        assert type(ours) is np.ndarray


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: metrics.margins([[1.0]], [0]), "the logits have only one"),
        (lambda: metrics.margin_cdf([[1.0, 2.0]], [0], at=0.0), "at must be a list"),
        (lambda: representations.class_offsets([[1.0]], [[1.0, 2.0]]), "must have one shape"),
        (lambda: representations.weight_norms([1.0]), r"weight.*\(C, D\)"),
        (lambda: representations.frequency_correlation([1.0], [1, 2]), "one number for each of 1"),
    ],
)
def test_wrong_input_gives_one_clear_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


@pytest.mark.parametrize("counts", [[5, math.nan, 1], [5, -1, 1], [5, math.inf, 1], [5, 1]])
def test_counts_that_are_none_are_refused_by_the_correlation_with_frequency(counts):
    with pytest.raises(ValueError, match="counts must"):
        representations.frequency_correlation([0.1, 0.2, 0.3], counts)
