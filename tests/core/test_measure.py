"""Measuring what logits carry: exact where the data say it, refused where they do not."""

import numpy as np
import pytest
import torch

from longtail import Prior, measure_carried
from longtail.core import measure
from longtail.core.minimise import UnsettledError
from longtail.testing import FiniteWorld

WORLD = FiniteWorld.long_tailed()
POINTS, LABELS = WORLD.samples()
LOGITS = WORLD.posterior(WORLD.prior).log()[POINTS]


def test_data_that_a_model_tells_apart_perfectly_do_not_determine_the_prior():
    labels = torch.tensor([0, 0, 0, 1, 1, 2])
    logits = 50 * torch.nn.functional.one_hot(labels, 3).double()
    with pytest.raises(ValueError, match=r"not determine.*class \d"):
        measure_carried(logits, labels)


def test_one_class_that_is_told_apart_perfectly_is_named():
    apart = torch.full((4, 4), -60.0, dtype=torch.float64)
    apart = torch.cat([LOGITS, apart], dim=0)
    logits = torch.cat([apart, torch.full((len(apart), 1), -60.0, dtype=torch.float64)], dim=1)
    logits[-4:, 4] = 60.0
    labels = torch.cat([LABELS, torch.full((4,), 4)])
    with pytest.raises(ValueError, match=r"class 4 is told apart perfectly"):
        measure_carried(logits, labels)


def test_a_fit_that_does_not_settle_is_reported(monkeypatch):
    monkeypatch.setattr(measure, "_MAX_ITER", 1)
    with pytest.raises(UnsettledError, match="did not settle in 1 iterations"):
        measure_carried(LOGITS + torch.tensor([5.0, 0.0, 0.0, -5.0]), LABELS)


@pytest.mark.parametrize("size", [10.0, 1e4])
def test_priors_beyond_the_range_of_probabilities_are_measured_by_their_logarithms(size):
    far = torch.tensor([size, 0.0, 0.0, -size], dtype=torch.float64)
    measured = measure_carried(LOGITS + far, LABELS)
    assert measured.is_close(Prior.from_log(WORLD.prior.log + far.numpy()), 1e-6)


def test_it_works_in_inference_mode():
    with torch.inference_mode():
        measured = measure_carried(LOGITS.clone(), LABELS.clone())
    assert measured.is_close(WORLD.prior, 1e-5)


def test_probabilities_are_refused_as_logits():
    probs = np.array([[0.7, 0.3], [0.4, 0.6], [0.2, 0.8], [0.9, 0.1]])
    with pytest.raises(ValueError, match="these logits are probabilities"):
        measure_carried(probs, [0, 1, 0, 1])
    measure_carried(np.log(probs), [0, 1, 0, 1])


def test_an_error_calls_a_class_by_its_name_and_never_by_a_bare_number():
    logits, labels = torch.randn(4, 3, dtype=torch.float64), [0, 1, 0, 1]
    with pytest.raises(ValueError, match=r"\(the first is class 2\)"):
        measure_carried(logits, labels)
    with pytest.raises(ValueError, match=r"\(the first is 'fox'\)"):
        measure_carried(logits, labels, classes=("cat", "dog", "fox"))
