"""Nearest class means, plain, learned, several and under a metric: by loops over the equations."""

import math

import numpy as np
import pytest
import torch
from torch.testing import assert_close

from longtail import Prior, heads, losses

COUNTS = [20, 12, 8, 3, 1]


def distance(a, b):
    return math.sqrt(sum((x - y) ** 2 for x, y in zip(a, b, strict=True)))


def made(kind, moments, *options):
    head = kind(6, 5, *options).double()
    head.set_moments(moments(**head.moment_options))
    return head


def same(logits, expected):
    assert_close(logits, torch.tensor(np.array(expected)), rtol=0, atol=1e-10)


def shifted(head, seed=4, size=0.3):
    """The head with all that is trained moved a little."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter += size * torch.randn(parameter.shape, generator=generator).double()
    return head


@pytest.mark.parametrize("options", [{}, {"metric": "cosine"}, {"metric": "cl2n"}])
def test_features_whose_squares_are_beyond_the_type_are_refused(options):
    """Or logits would be NaN, or all the same."""
    features = 1e30 * torch.tensor([[1.0, 0.0], [0.0, 1.0]])
    head = heads.NearestClassMean(2, 2, **options)
    moments = heads.class_moments(features, [0, 1], 2, **head.moment_options)
    with pytest.raises(ValueError, match="beyond float32"):
        head.set_moments(moments)
    head.double().set_moments(moments)
    assert head(features.double()).argmax(1).tolist() == [0, 1]


def test_nearest_class_mean_by_loops(features, labels, moments):
    means = [features[labels == y].mean(0).tolist() for y in range(5)]
    head = made(heads.NearestClassMean, moments)
    same(head(features), [[-0.5 * distance(x, m) ** 2 for m in means] for x in features.tolist()])


def test_cosine_nearest_class_mean_by_loops(features, labels, moments):
    means = [features[labels == y].mean(0).tolist() for y in range(5)]
    zero = [0.0] * 6
    expected = [
        [
            sum(a * b for a, b in zip(x, m, strict=True)) / distance(x, zero) / distance(m, zero)
            - 1
            for m in means
        ]
        for x in features.tolist()
    ]
    same(made(heads.NearestClassMean, moments, "cosine")(features), expected)


def test_centred_and_normalised_nearest_class_mean_by_loops(features, labels, moments):
    origin = features.mean(0).tolist()

    def transformed(x):
        gap = [a - b for a, b in zip(x, origin, strict=True)]
        return [g / distance(gap, [0.0] * 6) for g in gap]

    rows = [transformed(x) for x in features.tolist()]
    own = [[r for r, y in zip(rows, labels.tolist(), strict=True) if y == k] for k in range(5)]
    means = [np.mean(each, axis=0).tolist() for each in own]
    head = made(heads.NearestClassMean, moments, "cl2n")
    same(head(features), [[-0.5 * distance(x, m) ** 2 for m in means] for x in rows])


def test_the_nearest_class_mean_is_logistic_regression(features, labels, moments):
    """NCM equation 7: weight μ and bias −½ μ·μ."""
    means = torch.stack([features[labels == y].mean(0) for y in range(5)])
    regression = features @ means.T - 0.5 * means.square().sum(1)
    ours = made(heads.NearestClassMean, moments)
    assert_close(torch.softmax(ours(features), 1), torch.softmax(regression, 1))
    assert_close(torch.softmax(ours.to_linear()(features), 1), torch.softmax(regression, 1))


def test_under_a_metric_it_is_logistic_regression_too(features, moments):
    """NCM equation 7: weight WᵀWμ and bias −½ μᵀWᵀWμ."""
    head = shifted(made(heads.MetricNCM, moments))
    w, means = head.map.detach(), head.centers.detach()
    metric = w.T @ w
    regression = features @ metric @ means.T - 0.5 * (means @ metric * means).sum(1)
    assert_close(torch.softmax(head(features), 1), torch.softmax(regression, 1))


def test_the_nearest_mean_of_gaussians_is_the_generative_head_with_one_variance(features, moments):
    generative = heads.Generative(6, 5, shrinkage=1.0).double()
    generative.set_moments(moments(scatter="pooled"))
    variance = moments(scatter="pooled").scatter.trace() / 44 / 6
    nearest = made(heads.NearestClassMean, moments)(features) / variance
    assert_close(torch.softmax(generative(features), 1), torch.softmax(nearest, 1))


def test_learned_ncm_is_half_the_distance_not_squared(features, moments):
    head = shifted(made(heads.LearnedNCM, moments))
    centers = head.centers.tolist()
    same(head(features), [[-0.5 * distance(x, m) for m in centers] for x in features.tolist()])
    nearest = heads.nearest_linear(head.centers)(features)
    assert torch.equal(nearest.argmax(1), head(features).argmax(1))


def test_learned_ncm_starts_at_the_class_means_where_it_predicts_the_nearest(features, moments):
    learned, plain = made(heads.LearnedNCM, moments), made(heads.NearestClassMean, moments)
    assert_close(learned.centers.detach(), moments().means)
    assert torch.equal(learned(features).argmax(1), plain(features).argmax(1))


def test_a_sample_moves_centres_as_equation_six_says(features, labels, moments):
    """With the ½ that the logits have: ½ (δ − p)·(μ − x)/d, of length ½ |δ − p| near and far."""
    head = shifted(made(heads.LearnedNCM, moments))
    for x, y in zip(features[::7], labels[::7], strict=True):
        head.zero_grad()
        logits = head(x[None])
        torch.nn.functional.cross_entropy(logits, y[None]).backward()
        shares = torch.softmax(logits[0], 0).tolist()
        for z in range(5):
            gap = head.centers[z].detach() - x
            expected = 0.5 * ((z == y.item()) - shares[z]) * gap / gap.norm()
            assert_close(head.centers.grad[z], expected, rtol=0, atol=1e-10)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32])
def test_on_its_centre_a_sample_has_distance_zero_and_gradients_that_are_finite(dtype, moments):
    """The class with a single sample has it for its mean."""
    generator = torch.Generator().manual_seed(0)
    rows = 10 * torch.randn(40, 512, generator=generator, dtype=dtype) + 100
    for kind in (heads.LearnedNCM, heads.MultiNCM):
        head = kind(512, 40).to(dtype)
        head.set_moments(heads.class_moments(rows, range(40), 40))
        at = rows.clone().requires_grad_()
        logits = head(at)
        assert_close(logits.diag(), torch.zeros(40, dtype=dtype), rtol=0, atol=0.05)
        (gradient,) = torch.autograd.grad(logits.diag().sum(), at, create_graph=True)
        assert gradient.norm(dim=1).max() < 1e-2
        gradient.square().sum().backward()
        for tensor in (at, *head.parameters()):
            assert tensor.grad is None or tensor.grad.isfinite().all()


def test_exactly_on_the_centre_the_gradient_is_zero():
    head = heads.LearnedNCM(2, 2)
    head.load_state_dict({"centers": torch.tensor([[1.0, 2.0], [3.0, 4.0]])})
    x = torch.tensor([[1.0, 2.0]], requires_grad=True)
    (gradient,) = torch.autograd.grad(head(x)[0, 0], x, create_graph=True)
    assert head(x)[0, 0] == 0
    assert gradient.tolist() == [[0.0, 0.0]]


def test_the_adjustment_belongs_to_the_loss(features, labels, moments):
    """NCM equation 9 with loops; the head itself stays the nearest centre."""
    head, tau = made(heads.LearnedNCM, moments), heads.LearnedNCM.adjusted_sgd.tau
    centers = head.centers.tolist()
    total = 0.0
    for x, y in zip(features.tolist(), labels.tolist(), strict=True):
        scores = [
            -0.5 * distance(x, m) + tau * math.log(n) for m, n in zip(centers, COUNTS, strict=True)
        ]
        total += math.log(sum(math.exp(s) for s in scores)) - scores[y]
    value = losses.LogitAdjusted(COUNTS, tau=tau)(head(features), labels)
    assert value.item() == pytest.approx(total / 44, abs=1e-10)


def test_what_the_adjusted_loss_on_balanced_batches_carries_is_a_negative_power():
    train, batches = Prior.of(COUNTS), Prior.uniform(5)
    loss = losses.LogitAdjusted(train, tau=1 / 8)
    carried = loss.carried.reweighted(batches.probs / train.probs)
    assert carried == train.tempered(-1 / 8)


def test_multi_ncm_is_the_least_over_displacements_and_none(features, moments):
    head = shifted(made(heads.MultiNCM, moments, 4), size=1.0)
    centers, shifts = head.centers.tolist(), [[0.0] * 6, *head.displacements.tolist()]
    expected = [
        [
            -0.5 * min(distance(x, [a + b for a, b in zip(m, d, strict=True)]) for d in shifts)
            for m in centers
        ]
        for x in features.tolist()
    ]
    same(head(features), expected)
    chosen = torch.tensor(expected, dtype=torch.float64) - made(heads.LearnedNCM, moments)(features)
    assert (chosen >= -1e-12).all()
    assert (chosen > 0).any()


def test_multi_ncm_takes_the_centres_of_a_learned_one_and_keeps_them(features, moments):
    learned = shifted(made(heads.LearnedNCM, moments))
    learned.carry(Prior.of(COUNTS).tempered(-1 / 8))
    head = heads.MultiNCM.from_learned(learned)
    assert len(head.displacements) == 20
    assert head.carried == learned.carried
    assert torch.equal(head.centers, learned.centers)
    assert [name for name, _ in head.named_parameters()] == ["displacements"]
    head(features).sum().backward()
    assert learned.centers.grad is None
    with torch.no_grad():
        learned.centers.add_(1.0)
        head.displacements.fill_(1e6)
    assert not torch.equal(head.centers, learned.centers)
    assert_close(head(features), -0.5 * torch.cdist(features, head.centers))


def test_displacements_start_small_different_and_in_the_scale_of_the_centres(moments):
    small, large = made(heads.MultiNCM, moments), heads.MultiNCM(6, 5).double()
    given = moments()
    large.set_moments(heads.ClassMoments(given.counts, 100 * given.means))
    ratio = large.displacements.norm() / small.displacements.norm()
    assert 70 < ratio < 140
    assert len({tuple(row) for row in small.displacements.tolist()}) == 20
    spread = (given.means - given.means.mean(0)).norm(dim=1).mean()
    assert small.displacements.norm(dim=1).max() < 0.5 * spread


def metric_loops(features, centers, matrices):
    """(x − μ)ᵀ M_y (x − μ) with loops."""
    rows = []
    for x in features.numpy():
        gaps = [x - m for m in centers]
        rows.append([-0.5 * g @ m @ g for g, m in zip(gaps, matrices, strict=True)])
    return rows


@pytest.mark.parametrize("rank", [None, 2])
def test_a_global_metric_by_loops(features, moments, rank):
    head = shifted(made(heads.MetricNCM, moments, "global", rank))
    w = head.map.detach().numpy()
    same(head(features), metric_loops(features, head.centers.detach().numpy(), [w.T @ w] * 5))


@pytest.mark.parametrize("rank", [None, 2])
def test_a_metric_of_each_class_by_loops(features, moments, rank):
    head = shifted(made(heads.MetricNCM, moments, "per_class", rank))
    matrices = [w.T @ w for w in head.map.detach().numpy()]
    same(head(features), metric_loops(features, head.centers.detach().numpy(), matrices))


def test_the_local_projection_by_loops(features, labels, moments):
    """NCM equation 4, with Q of equation 1: Σ = QΔQᵀ, so QΔ̂Qᵀ."""
    head = shifted(made(heads.MetricNCM, moments, "eigenbasis"))
    matrices = []
    for y in range(5):
        rows = features[labels == y].numpy()
        values, q = np.linalg.eigh((rows - rows.mean(0)).T @ (rows - rows.mean(0)))
        assert np.all(np.diff(values) >= -1e-9)
        if y < 2:  # with fewer samples than dimensions some eigenvectors are any
            assert_close(head.basis[y].abs(), torch.from_numpy(np.abs(q)), rtol=0, atol=1e-8)
        q = head.basis[y].numpy()
        shares = 1 / (1 + np.exp(-head.projection[y].detach().numpy()))
        same(head.projections[y].detach(), shares)
        matrices.append(q @ np.diag(shares) @ q.T)
    same(head(features), metric_loops(features, head.centers.detach().numpy(), matrices))


def test_projections_measure_along_the_eigenvectors_of_the_covariance():
    """The variance of a class along its last direction is the largest."""
    generator = torch.Generator().manual_seed(0)
    turn, _ = torch.linalg.qr(torch.randn(3, 3, generator=generator).double())
    rows = torch.randn(500, 3, generator=generator).double() * torch.tensor([1.0, 5.0, 0.1])
    rows = rows @ turn.T
    head = heads.MetricNCM(3, 1, "eigenbasis").double()
    head.set_moments(heads.class_moments(rows, [0] * 500, 1, "per_class"))
    along = (rows - rows.mean(0)) @ head.basis[0]
    assert_close(along.var(0).sqrt(), torch.tensor([0.1, 1.0, 5.0]).double(), rtol=0.1, atol=0)
    with torch.no_grad():
        head.projection.copy_(torch.tensor([[-50.0, -50.0, 50.0]]))
    assert_close(head(rows)[:, 0], -0.5 * along[:, 2].square(), rtol=1e-9, atol=1e-9)


def test_metrics_start_as_the_nearest_class_mean(features, moments):
    plain = made(heads.NearestClassMean, moments)(features)
    assert_close(made(heads.MetricNCM, moments)(features), plain)
    assert_close(made(heads.MetricNCM, moments, "per_class")(features), plain)
    assert_close(made(heads.MetricNCM, moments, "eigenbasis")(features), 0.5 * plain)


def test_classes_are_walked_a_few_at_a_time(features, moments, monkeypatch):
    from longtail.heads import metric_ncm

    head = shifted(made(heads.MetricNCM, moments, "per_class"))
    whole = head(features)
    (gradient,) = torch.autograd.grad(whole.square().sum(), head.map)
    monkeypatch.setattr(metric_ncm, "BLOCK", 44 * 6 * 2)
    sizes = []
    plain = metric_ncm._squares
    monkeypatch.setattr(
        metric_ncm, "_squares", lambda *given: sizes.append(len(given[1])) or plain(*given)
    )
    in_parts = head(features)
    (again,) = torch.autograd.grad(in_parts.square().sum(), head.map)
    assert sizes == [2, 2, 1, 1, 2, 2]  # and backward once more, from the last
    assert_close(in_parts, whole)
    assert_close(again, gradient)
    with torch.no_grad():
        assert_close(head(features), whole)


def test_centres_can_stay_where_they_are(features, moments):
    head = heads.MetricNCM(6, 5, learn_centers=False).double()
    head.set_moments(moments())
    head(features).sum().backward()
    assert head.centers.grad is None
    assert head.map.grad is not None


def test_centring_keeps_digits_far_from_zero(features, labels):
    """In float32, a common mean of 10,000 leaves nothing of a plain expansion of the square."""
    far = (features + 1e4).float()
    head = heads.LearnedNCM(6, 5)
    head.set_moments(heads.class_moments(far, labels, 5))
    exact = torch.cdist(far.double(), head.centers.detach().double())
    assert_close(-2 * head(far).double(), exact, rtol=1e-4, atol=2e-3)


@pytest.mark.parametrize(
    ("make", "sentence"),
    [
        (lambda: heads.NearestClassMean(6, 5, "l1"), '"euclidean", "cosine" or "cl2n"'),
        (lambda: heads.MultiNCM(6, 5, 0), "num_displacements must be 1 or more, got 0"),
        (lambda: heads.MetricNCM(6, 5, "local"), r'metric.*"per_class"'),
        (lambda: heads.MetricNCM(6, 5, rank=7), r"rank.*dim=6"),
        (lambda: heads.MetricNCM(6, 5, "eigenbasis", rank=2), "eigenbasis has none, got 2"),
    ],
)
def test_wrong_options_give_one_clear_sentence(make, sentence):
    with pytest.raises(ValueError, match=sentence):
        make()


def test_moments_of_the_wrong_kind_are_refused(moments):
    with pytest.raises(ValueError, match=r"with centring.*True"):
        heads.NearestClassMean(6, 5, "cl2n").set_moments(moments())
    with pytest.raises(ValueError, match="'per_class'"):
        heads.MetricNCM(6, 5, "eigenbasis").set_moments(moments(scatter="pooled"))
