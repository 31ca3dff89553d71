"""EM on a stream: the same as in one go, and up to date."""

import numpy as np
import pytest

from longtail import Prior, Scores, UnknownPriorError
from longtail.shift import StreamingPrior, estimate_prior


def batches(scores, size):
    for start in range(0, len(scores), size):
        yield Scores(scores.logits[start : start + size], carried=scores.carried)


@pytest.mark.parametrize("size", [1, 7, 100, 1000])
def test_batches_give_what_all_samples_give_at_once(gaussian_scores, size):
    scores = gaussian_scores([1, 2, 6, 1], 400, seed=1, carried=[5, 3, 1, 1])
    stream = StreamingPrior(4)
    for batch in batches(scores, size):
        stream.update(batch)
    expected = estimate_prior(scores, intervals=False).prior
    np.testing.assert_allclose(stream.prior.probs, expected.probs, rtol=0, atol=1e-6)
    assert stream.num_samples == 400


def test_only_the_window_counts_so_that_a_change_is_followed(gaussian_scores):
    before = gaussian_scores([6, 1, 1], 500, seed=1)
    after = gaussian_scores([1, 1, 6], 500, seed=2)
    stream = StreamingPrior(3, window=500)
    for scores in (before, after):
        for batch in batches(scores, 64):
            stream.update(batch)
    expected = estimate_prior(after, intervals=False).prior
    np.testing.assert_allclose(stream.prior.probs, expected.probs, rtol=0, atol=1e-6)
    assert stream.num_samples == 500


def test_batches_may_carry_different_priors(gaussian_scores):
    scores = gaussian_scores([1, 2, 6], 200, seed=1)
    stream = StreamingPrior(3)
    for number, batch in enumerate(batches(scores, 50)):
        stream.update(batch.under([1 + number, 1, 1]))
    expected = estimate_prior(scores, intervals=False).prior
    np.testing.assert_allclose(stream.prior.probs, expected.probs, rtol=0, atol=1e-6)


def test_before_the_first_sample_it_is_uniform():
    stream = StreamingPrior(3)
    assert stream.prior == Prior.uniform(3)
    assert stream.update(Scores(np.empty((0, 3)), carried=[1, 1, 1])) == Prior.uniform(3)


@pytest.mark.parametrize(
    ("call", "sentence"),
    [
        (lambda: StreamingPrior(3, window=0), "window must be 1 or more"),
        (lambda: StreamingPrior(3, pseudo_count=-1), "pseudo_count must be"),
        (lambda: StreamingPrior(0), "num_classes"),
        (
            lambda: StreamingPrior(3).update(Scores([[0.0, 2.0]], carried=[1, 1])),
            r"3 classes.*scores have 2",
        ),
    ],
)
def test_wrong_input_gives_one_clear_sentence(call, sentence):
    with pytest.raises(ValueError, match=sentence):
        call()


def test_scores_of_unknown_prior_are_refused_and_change_nothing():
    stream = StreamingPrior(2)
    with pytest.raises(UnknownPriorError):
        stream.update(Scores([[0.0, 2.0]]))
    assert stream.num_samples == 0
