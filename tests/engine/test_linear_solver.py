"""The solver behind fit_linear: the same minimum for every loss, block, file and curvature."""

import warnings
from functools import partial

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from longtail import Prior, heads, losses
from longtail.engine import FeatureRows, feature_rows, fit_linear, linear_objective

CLASSES, DIM = 7, 5
RNG = np.random.default_rng(0)
LABELS = torch.from_numpy(RNG.choice(CLASSES, 400, p=np.arange(1, CLASSES + 1) / 28))
CENTRES = torch.from_numpy(RNG.standard_normal((CLASSES, DIM)))
# Of several scales and far from zero, as features after a ReLU are.
FEATURES = CENTRES[LABELS] + torch.from_numpy(RNG.standard_normal((400, DIM)))
FEATURES = (FEATURES + 1) * torch.tensor([0.5, 1.0, 1.0, 1.5, 2.0], dtype=torch.float64)
PRIOR = Prior.from_labels(LABELS, CLASSES)
WEIGHT = [1.0, 2.0, 0.5, 1.0, 3.0, 1.0, 0.2]

LOSSES = {
    "cross-entropy": losses.CrossEntropy,
    "logit-adjusted": losses.LogitAdjusted,
    "logit-adjusted, tau 0.5": partial(losses.LogitAdjusted, tau=0.5),
    "balanced": losses.Balanced,
    "class-balanced": losses.ClassBalanced,
    "weights of the user": partial(losses.CrossEntropy, weight=WEIGHT),
    "both weights": partial(losses.Balanced, weight=WEIGHT),
    "a class ignored": partial(losses.CrossEntropy, weight=WEIGHT, ignore_index=2),
    "summed": partial(losses.Balanced, weight=WEIGHT, reduction="sum"),
    "factors on the logits": losses.CDT,
    "margin and factor": losses.LDAM,
    "any margins": partial(losses.PairwiseMargin, delta_matrix=RNG.random((CLASSES, CLASSES))),
}


def objective(weight, bias, loss, decay, features=FEATURES):
    """The definition, over all samples at once."""
    logits = features @ weight.T + (0 if bias is None else bias)
    return loss(logits, LABELS) + 0.5 * decay * weight.square().sum()


def naive_minimum(loss, decay, bias=True):
    """The least value that plain L-BFGS in float64 finds, and the weight there."""
    weight = torch.zeros(CLASSES, DIM, dtype=torch.float64, requires_grad=True)
    offset = torch.zeros(CLASSES, dtype=torch.float64, requires_grad=True) if bias else None
    moved = [weight] + ([offset] if bias else [])
    solver = torch.optim.LBFGS(
        moved,
        max_iter=1000,
        history_size=20,
        tolerance_grad=1e-10,
        tolerance_change=0,
        line_search_fn="strong_wolfe",
    )

    def closure():
        solver.zero_grad()
        value = objective(weight, offset, loss, decay)
        value.backward()
        return value

    solver.step(closure)
    return closure().item(), weight.detach()


@pytest.mark.parametrize(
    ("name", "bias"), [*((name, True) for name in LOSSES), ("balanced", False), ("summed", False)]
)
def test_it_finds_the_minimum_that_plain_lbfgs_on_the_whole_objective_finds(name, bias):
    loss = LOSSES[name](PRIOR)
    size = 1.0 if loss.reduction == "mean" else 400.0
    value, weight = naive_minimum(loss, 0.05 * size, bias)
    found = fit_linear(
        FEATURES, LABELS, loss, weight_decay=0.05 * size, bias=bias, tolerance=1e-9 * size
    )
    assert (found.bias is not None) == bias
    assert objective(found.weight, found.bias, loss, 0.05 * size).item() <= value * (1 + 1e-10)
    assert_close(found.weight, weight, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["cross-entropy", "balanced", "a class ignored"])
def test_value_and_gradient_are_those_of_autograd_on_the_whole_for_blocks_of_any_size(
    name, monkeypatch
):
    loss, decay = LOSSES[name](PRIOR), 0.1
    layer = torch.from_numpy(RNG.standard_normal((CLASSES, DIM + 1)))
    whole = layer.clone().requires_grad_()
    value = objective(whole[:, :DIM], whole[:, DIM], loss, decay)
    value.backward()
    shares = linear_objective.loss_shares(loss, LABELS)
    rows = FeatureRows(FEATURES)
    ours = linear_objective.LinearObjective(rows, LABELS, shares, loss, decay, bias=True)
    for block in (1, 7 * 13, 2**22):
        monkeypatch.setattr(feature_rows, "BLOCK", block)
        found, gradient = ours(layer)
        assert found == pytest.approx(value.item(), rel=1e-13)
        assert_close(gradient, whole.grad, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("block", [150, 1000])
def test_blocks_of_any_size_give_the_same_layer(block, monkeypatch):
    fit = partial(fit_linear, FEATURES, LABELS, losses.LogitAdjusted(PRIOR), weight_decay=0.01)
    expected = fit(tolerance=1e-10)
    monkeypatch.setattr(feature_rows, "BLOCK", block)
    assert_close(fit(tolerance=1e-10).weight, expected.weight, rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize(
    ("constant", "value"),
    [("BLOCKS", CLASSES), ("BLOCKS", 9 * CLASSES), ("SAMPLE", 7), ("SAMPLE", 350)],
)
@pytest.mark.parametrize("bias", [True, False])
def test_less_memory_for_curvature_gives_the_same_layer(constant, value, bias, monkeypatch):
    loss = losses.CrossEntropy(PRIOR)
    fit = partial(fit_linear, labels=LABELS, loss=loss, weight_decay=0.01, bias=bias)
    expected = fit(FEATURES, tolerance=1e-9)
    monkeypatch.setattr(linear_objective, constant, value)
    mapped = FEATURES.numpy().copy()
    mapped.setflags(write=False)  # so that it is read in blocks, as a file is
    for features in (FEATURES, mapped):
        layer = fit(features, tolerance=1e-8, max_iter=2000)
        assert_close(layer.weight, expected.weight, rtol=1e-4, atol=1e-6)


def test_the_inverse_hessian_is_symmetric_positive_and_right_where_it_can_be():
    labels = (LABELS > 4).long()
    loss, decay = losses.CrossEntropy(Prior.from_labels(labels, 2)), 0.3
    shares = linear_objective.loss_shares(loss, labels)
    rows = FeatureRows(FEATURES)
    ours = linear_objective.LinearObjective(rows, labels, shares, loss, decay, bias=False)
    layer = 0.1 * torch.from_numpy(RNG.standard_normal((2, DIM)))

    def value(flat):
        weight = flat.view(2, DIM)
        return loss(FEATURES @ weight.T, labels) + 0.5 * decay * weight.square().sum()

    hessian = torch.autograd.functional.hessian(value, layer.flatten())
    inverse = linear_objective.Curvature.of(ours, 2).inverse(layer)
    eye = torch.eye(2 * DIM, dtype=torch.float64)
    columns = torch.stack([inverse(row.view(2, DIM)).flatten() for row in eye], dim=1)
    assert_close(columns, columns.T, rtol=1e-9, atol=1e-12)
    eigenvalues = torch.linalg.eigvals(columns @ hessian).real
    # Two classes share their curvature, q each where the Hessian has 2q between them.
    assert 0.9 <= eigenvalues.min() <= eigenvalues.max() <= 2.2


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("mode", ["r", "r+"])
def test_a_file_on_the_disk_gives_the_layer_of_the_widened_array(dtype, mode, tmp_path):
    stored = FEATURES.numpy().astype(dtype)
    np.save(tmp_path / "features.npy", stored)
    mapped = np.load(tmp_path / "features.npy", mmap_mode=mode)
    wide = torch.from_numpy(stored.astype(np.float64 if dtype == np.float64 else np.float32))
    fit = partial(fit_linear, loss=losses.CrossEntropy(PRIOR), weight_decay=0.01, tolerance=1e-5)
    layer, expected = fit(mapped, LABELS.numpy()), fit(wide, LABELS)
    assert layer.weight.dtype == expected.weight.dtype == wide.dtype
    assert torch.equal(layer.weight, expected.weight)
    assert torch.equal(layer.bias, expected.bias)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_a_short_tensor_gives_the_layer_of_the_widened_one(dtype):
    fit = partial(fit_linear, labels=LABELS, loss=losses.CrossEntropy(PRIOR), weight_decay=0.01)
    short = FEATURES.to(dtype)
    assert torch.equal(fit(short).weight, fit(short.float()).weight)


def test_a_list_gives_the_layer_of_the_array():
    fit = partial(fit_linear, labels=LABELS, loss=losses.CrossEntropy(PRIOR), weight_decay=0.01)
    assert torch.equal(fit(FEATURES.tolist()).weight, fit(FEATURES).weight)


class Recorder:
    """Features somewhere else: it hands out slices of rows, and says how many numbers at most."""

    def __init__(self, values):
        self.values, self.shape, self.dtype = values, values.shape, values.dtype
        self.most = 0

    def __len__(self):
        return len(self.values)

    def __getitem__(self, rows):
        self.most = max(self.most, self.values[rows].size)
        return self.values[rows]


def test_rows_on_the_disk_are_read_in_blocks(monkeypatch):
    monkeypatch.setattr(feature_rows, "BLOCK", 210)
    monkeypatch.setattr(linear_objective, "SAMPLE", 700)
    features = Recorder(FEATURES.numpy())
    layer = fit_linear(features, LABELS, losses.CrossEntropy(PRIOR), weight_decay=0.01)
    assert 0 < features.most <= 210
    monkeypatch.undo()
    expected = fit_linear(FEATURES, LABELS, losses.CrossEntropy(PRIOR), weight_decay=0.01)
    assert_close(layer.weight, expected.weight, rtol=1e-3, atol=1e-4)


def test_a_strided_or_read_only_array_will_do_and_is_not_written_to():
    wide = np.repeat(FEATURES.numpy(), 2, axis=1)
    wide.setflags(write=False)
    loss = losses.CrossEntropy(PRIOR)
    expected = fit_linear(FEATURES, LABELS, loss, weight_decay=0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layer = fit_linear(wide[:, ::2], LABELS.numpy(), loss, weight_decay=0.01)
    assert torch.equal(layer.weight, expected.weight)


def test_the_same_call_gives_the_same_bits():
    fit = partial(fit_linear, FEATURES.float(), LABELS, losses.Balanced(PRIOR), weight_decay=0.01)
    assert torch.equal(fit().weight, fit().weight)


def test_a_start_at_the_minimum_stays_there_and_any_other_comes_there():
    steps = []
    fit = partial(
        fit_linear,
        FEATURES,
        LABELS,
        losses.CrossEntropy(PRIOR),
        weight_decay=0.01,
        progress=lambda iteration, value: steps.append((iteration, value)),
    )
    layer = fit(tolerance=1e-9)
    assert [iteration for iteration, _ in steps] == list(range(1, len(steps) + 1))
    values = [value for _, value in steps]
    assert values == sorted(values, reverse=True)
    at_minimum = objective(layer.weight, layer.bias, losses.CrossEntropy(PRIOR), 0.01)
    assert values[-1] == pytest.approx(at_minimum.item(), rel=1e-12)
    steps.clear()
    assert torch.equal(fit(start=layer, tolerance=1e-8).weight, layer.weight)
    assert not steps
    torch.manual_seed(0)
    far = torch.nn.Linear(DIM, CLASSES, dtype=torch.float64)
    torch.nn.init.normal_(far.weight, mean=3.0)
    assert_close(fit(start=far, tolerance=1e-9).weight, layer.weight, rtol=1e-5, atol=1e-6)


def test_without_weight_decay_the_sum_over_classes_stays_where_it_began():
    torch.manual_seed(0)
    start = torch.nn.Linear(DIM, CLASSES, dtype=torch.float64)
    layer = fit_linear(FEATURES, LABELS, losses.CrossEntropy(PRIOR), start=start)
    assert_close(layer.weight.sum(0), start.weight.detach().sum(0), rtol=0, atol=1e-6)


def test_separable_classes_without_weight_decay_have_no_minimum_and_it_stops():
    features = torch.eye(3)[torch.arange(30) % 3]
    labels = torch.arange(30) % 3
    with pytest.warns(RuntimeWarning, match="has not reached a minimum"):
        layer = fit_linear(
            features, labels, losses.CrossEntropy([1, 1, 1]), max_iter=15, tolerance=0.0
        )
    assert layer.weight.isfinite().all()
    assert torch.equal(layer(features).argmax(1), labels)


@pytest.mark.parametrize(
    "make",
    [
        losses.LADE,
        losses.ELM,
        lambda prior: losses.EstimatedOffset(prior, head=heads.EstimatedOffset(DIM, CLASSES)),
        lambda prior: losses.deferred_reweighting(losses.CrossEntropy, prior, start=1),
    ],
)
def test_a_loss_that_is_no_sum_over_samples_is_refused(make):
    with pytest.raises(ValueError, match=r"lt\.fit_head"):
        fit_linear(FEATURES, LABELS, make(PRIOR))


def test_samples_that_are_all_ignored_are_refused():
    loss = losses.CrossEntropy(PRIOR, ignore_index=1)
    with pytest.raises(ValueError, match="all labels are ignore_index=1"):
        fit_linear(FEATURES, torch.ones_like(LABELS), loss)


@pytest.mark.parametrize(
    ("features", "sentence"),
    [
        (FEATURES.numpy().astype(np.int32), "float64, got int32"),
        (FEATURES.numpy()[0], r"shape \(N, D\)"),
        (
            np.where(np.arange(400)[:, None] == 399, np.nan, FEATURES.numpy()),
            "NaN or infinity in row 399",
        ),
    ],
)
def test_wrong_arrays_give_one_clear_sentence(features, sentence):
    with pytest.raises(ValueError, match=sentence):
        fit_linear(features, LABELS, losses.CrossEntropy(PRIOR))


def test_a_start_with_a_bias_for_a_layer_without_is_refused():
    start = torch.nn.Linear(DIM, CLASSES)
    with pytest.raises(ValueError, match=r"no bias, got \(7, 5\) with"):
        fit_linear(FEATURES, LABELS, losses.CrossEntropy(PRIOR), bias=False, start=start)
