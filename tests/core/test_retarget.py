"""Retargeting is a group action on logits: identity, inverse, path independence."""

import copy
import pickle

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from longtail import Prior, Scores, UnknownPriorError, measure_carried, retarget
from longtail.testing import FiniteWorld

counts = st.lists(st.integers(1, 1000), min_size=3, max_size=3)
LOGITS = torch.randn(5, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@given(counts)
def test_moving_to_where_one_is_changes_nothing(prior):
    assert_close(retarget(LOGITS, prior, prior), LOGITS)


@given(counts, counts)
def test_moving_there_and_back_changes_nothing(there, here):
    moved = retarget(retarget(LOGITS, here, there), there, here)
    assert_close(moved, LOGITS, rtol=0, atol=1e-12)


@given(counts, counts, counts)
def test_the_way_does_not_matter(a, b, c):
    assert_close(retarget(retarget(LOGITS, a, b), b, c), retarget(LOGITS, a, c))


def test_a_naive_loop_gives_the_same():
    carried, target = [0.7, 0.2, 0.1], [0.1, 0.1, 0.8]
    moved = retarget(LOGITS, Prior.of(carried), Prior.of(target))
    for i in range(5):
        for y in range(3):
            expected = float(LOGITS[i, y]) + np.log(target[y]) - np.log(carried[y])
            assert abs(float(moved[i, y]) - expected) < 1e-12


def test_lade_theorem_1_moved_logits_give_the_exact_target_posterior():
    world = FiniteWorld.long_tailed()
    noise = torch.randn(6, 1, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    logits = world.posterior(world.prior).log() + noise  # a softmax model of p_s(y|x)
    for target in ([1, 1, 1, 1], [1, 2, 3, 4], [1000, 1, 1, 1]):
        moved = torch.softmax(retarget(logits, world.prior, target), dim=1)
        assert_close(moved, world.posterior(target), rtol=0, atol=1e-14)


def test_a_class_that_the_target_rules_out_gets_probability_zero():
    moved = retarget(LOGITS, [1, 1, 1], Prior.of([1, 0, 1], zeros="keep"))
    assert (torch.softmax(moved, dim=1)[:, 1] == 0).all()


def test_halves_that_overflow_on_the_way_are_refused():
    rows = np.array([[0.0, 0.0], [65504.0, 0.0]], np.float16)
    grid = np.array([rows.T, rows.T])
    for logits in (rows, grid):
        with pytest.raises(ValueError, match=r"got inf in row [13], class 0"):
            retarget(logits, [1e-300, 1.0], [1.0, 1e-300])
    with pytest.raises(ValueError, match="got inf in row 1, class 0"):
        Scores(torch.tensor(rows), carried=[1e-300, 1.0]).under([1.0, 1e-300])


def test_the_class_axis_of_a_grid_is_axis_one():
    grid = LOGITS.view(5, 3, 1).expand(5, 3, 4)
    moved = retarget(grid, [3, 2, 1], [1, 1, 1])
    assert_close(moved[:, :, 2], retarget(LOGITS, [3, 2, 1], [1, 1, 1]))


def test_a_single_sample_is_moved_too():
    assert_close(
        retarget(LOGITS[0], [3, 2, 1], [1, 1, 1]), retarget(LOGITS, [3, 2, 1], [1, 1, 1])[0]
    )


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_numpy_in_numpy_out_and_the_dtype_is_kept(dtype):
    moved = retarget(LOGITS.numpy().astype(dtype), [3, 2, 1], [1, 1, 1])
    assert isinstance(moved, np.ndarray)
    assert moved.dtype == dtype


def test_gradients_flow_through():
    logits = LOGITS.clone().requires_grad_()
    retarget(logits, [3, 2, 1], [1, 1, 1]).sum().backward()
    assert_close(logits.grad, torch.ones_like(LOGITS))


def test_an_unknown_prior_is_refused_with_the_remedy():
    with pytest.raises(UnknownPriorError, match="measure_carried"):
        retarget(LOGITS, None, [1, 1, 1])


@pytest.mark.parametrize("again", [copy.copy, lambda e: pickle.loads(pickle.dumps(e))])  # noqa: S301
def test_a_copied_refusal_says_the_same(again):
    for error in (UnknownPriorError(), UnknownPriorError("these scores carry nothing")):
        assert str(again(error)) == str(error)
        assert str(error).count("measure_carried") == 1


@pytest.mark.parametrize(
    ("carried", "target", "sentence"),
    [
        ([1, 1], [1, 1, 1], r"carried prior has 2.*target prior has 3"),
        ([1, 1], [1, 1], "must have 2 classes on axis 1"),
        (Prior.of([1, 0, 1], zeros="keep"), [1, 1, 1], r"target prior.*zeros"),
        ([1, 1, 1], [1, 0, 1], "zeros='keep'"),
    ],
)
def test_priors_that_do_not_fit_are_refused(carried, target, sentence):
    with pytest.raises(ValueError, match=sentence):
        retarget(LOGITS, carried, target)


def test_integer_logits_are_refused():
    with pytest.raises(ValueError, match="floating type"):
        retarget(torch.ones(2, 3, dtype=torch.long), [1, 1, 1], [1, 1, 1])


@pytest.mark.parametrize("carried", [[1, 1, 1, 1], [96, 40, 16, 6], [1, 5, 10, 50]])
def test_measuring_finds_the_prior_that_logits_carry(carried):
    world = FiniteWorld.long_tailed()
    points, labels = world.samples()
    logits = retarget(world.posterior(world.prior).log(), world.prior, carried)
    measured = measure_carried(logits[points].numpy(), labels.numpy())
    assert measured.is_close(Prior.of(carried), 1e-5)


def test_measuring_needs_every_class_and_finite_logits():
    with pytest.raises(ValueError, match=r"every class.*1 of 3"):
        measure_carried(LOGITS, [0, 1, 0, 1, 0])
    for value, words in ((torch.nan, "got nan in row"), (-torch.inf, "must be finite")):
        with pytest.raises(ValueError, match=words):
            measure_carried(LOGITS.masked_fill(LOGITS > 1, value), [0, 1, 2, 1, 0])
    with pytest.raises(ValueError, match="5 rows of logits but 3 labels"):
        measure_carried(LOGITS, [0, 1, 2])


def test_measuring_works_where_gradients_are_off():
    world = FiniteWorld.long_tailed()
    points, labels = world.samples()
    with torch.no_grad():
        measured = measure_carried(world.posterior(world.prior).log()[points], labels)
    assert measured.is_close(world.prior, 1e-5)


def test_it_is_differentiable_and_traced_whole_by_compile_and_export():
    carried, target = Prior.of([70, 25, 5]), Prior.of([1, 2, 3])
    expected = retarget(LOGITS, carried, target)
    compiled = torch.compile(
        lambda logits: retarget(logits, carried, target), fullgraph=True, backend="eager"
    )
    logits = LOGITS.clone().requires_grad_()
    assert_close(compiled(logits), expected)
    compiled(logits).sum().backward()
    assert_close(logits.grad, torch.ones_like(LOGITS))

    class Moved(torch.nn.Module):
        def forward(self, logits):
            return retarget(logits, carried, target)

    assert_close(torch.export.export(Moved(), (LOGITS,)).module()(LOGITS), expected)


def test_jax_stays_jax():
    jax = pytest.importorskip("jax")
    logits = jax.numpy.asarray(LOGITS.numpy())
    moved = jax.jit(lambda rows: retarget(rows, [70, 25, 5], [1, 1, 1]))(logits)
    assert isinstance(moved, jax.Array)
    np.testing.assert_allclose(
        moved, retarget(LOGITS.numpy(), [70, 25, 5], [1, 1, 1]), rtol=1e-5, atol=1e-5
    )
