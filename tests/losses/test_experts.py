"""Experts: each carries its own prior, their mean carries the mean, and any target is exact."""

import pytest
import torch
import torch.nn.functional as F

from longtail import Prior, Scores, heads, losses, retarget
from longtail.posthoc import average
from longtail.testing import FiniteWorld

WORLD = FiniteWorld.long_tailed()
TARGETS = [Prior.uniform(4), WORLD.prior, Prior.of([1, 2, 3, 4]), Prior.of([6, 1, 1, 40])]


def minimisers(loss, world):
    """The logits (points, C, K): the experts share nothing, so each has its minimiser alone."""
    experts = len(loss.taus)

    def alone(at):
        def value(logits, labels):
            others = [torch.zeros_like(logits)] * experts
            return loss(torch.stack([*others[:at], logits, *others[at + 1 :]], dim=-1), labels)

        return world.minimise(value)

    return torch.stack([alone(at) for at in range(experts)], dim=-1)


@pytest.mark.parametrize("taus", [(0.0, 1.0, 2.0), (0.5,), (0.0, 0.5, 3.0)])
@pytest.mark.parametrize(
    "options", [{}, {"weight": [1.0, 3.0, 0.5, 7.0]}, {"label_smoothing": 0.2}]
)
def test_the_mean_of_the_experts_moved_to_any_target_is_the_exact_posterior(taus, options):
    loss = losses.Experts(WORLD.prior, taus, **options)
    logits = minimisers(loss, WORLD)
    for target in TARGETS:
        expected = WORLD.posterior(target, options.get("label_smoothing", 0.0))
        mean = retarget(logits.mean(dim=-1), loss.carried, target).softmax(dim=1)
        assert torch.allclose(mean, expected, atol=1e-6)
        alone = [
            Scores(logits[..., at], carried=carried)
            for at, carried in enumerate(loss.experts_carried)
        ]
        together = average(alone, target, of="logits").probs()
        assert torch.allclose(together, expected, atol=1e-6)


def test_each_expert_carries_its_own_prior():
    loss = losses.Experts([70, 25, 5], taus=(0.0, 1.0, 2.0))
    carried = [Prior.of([70, 25, 5]).tempered(1 - tau) for tau in (0.0, 1.0, 2.0)]
    assert all(a.is_close(b, 1e-12) for a, b in zip(loss.experts_carried, carried, strict=True))
    assert losses.Experts([70, 25, 5], taus=(0.0, 1.0)).carried.is_close(
        Prior.of([70, 25, 5]).tempered(0.5), 1e-12
    )


def test_the_value_is_the_mean_of_cross_entropies_shifted_by_each_tau():
    generator = torch.Generator().manual_seed(0)
    logits = torch.randn(7, 3, 2, generator=generator, dtype=torch.float64)
    labels, prior = torch.arange(7) % 3, torch.tensor([0.7, 0.25, 0.05], dtype=torch.float64)
    loss = losses.Experts([70, 25, 5], taus=(0.3, 1.7))
    expected = sum(
        F.cross_entropy(logits[..., at] + tau * prior.log(), labels)
        for at, tau in enumerate((0.3, 1.7))
    )
    assert loss(logits, labels).item() == pytest.approx(expected.item() / 2, abs=1e-12)
    soft = F.one_hot(labels, 3).double()
    assert loss(logits, soft).item() == pytest.approx(expected.item() / 2, abs=1e-12)
    each = losses.Experts([70, 25, 5], taus=(0.3, 1.7), reduction="none")(logits, labels)
    assert each.mean().item() == pytest.approx(expected.item() / 2, abs=1e-12)


def test_logits_of_another_number_of_experts_are_refused():
    with pytest.raises(ValueError, match="3 experts"):
        losses.Experts([3, 2, 1])(torch.zeros(2, 3), torch.tensor([0, 1]))
    with pytest.raises(ValueError, match="none"):
        losses.Experts([3, 2, 1], taus=())


@pytest.mark.parametrize("kind", ["cosine", "linear"])
def test_the_head_gives_each_expert_its_part_of_the_features_and_their_mean_in_evaluation(kind):
    torch.manual_seed(0)
    head = heads.Experts(6, 4, num_experts=3, kind=kind)
    features = torch.randn(5, 6)
    training = head(features)
    for at in range(3):
        weight, part = (rows[:, 2 * at : 2 * at + 2] for rows in (head.weight, features))
        if kind == "cosine":
            expected = 30 * F.cosine_similarity(part[:, None], weight[None], dim=-1)
        else:
            expected = part @ weight.T + head.bias[:, at]
        assert torch.allclose(training[..., at], expected, atol=1e-5)
    assert torch.equal(head.eval()(features), training.mean(dim=-1))
    assert torch.equal(head.each(features), training)


def test_features_that_do_not_split_into_experts_are_refused():
    with pytest.raises(ValueError, match="num_experts=3, got 64"):
        heads.Experts(64, 10, num_experts=3)


def test_weighted_experts_carry_the_weighted_mean_and_any_target_is_exact():
    loss = losses.Experts(WORLD.prior, (0.0, 1.0, 2.0))
    logits, weights = minimisers(loss, WORLD), torch.tensor([0.5, 0.2, 0.3], dtype=torch.float64)
    carried = Prior.of(WORLD.prior.probs ** (1 - (0.2 * 1 + 0.3 * 2)))
    for target in TARGETS:
        mean = retarget(logits @ weights, carried, target).softmax(dim=1)
        assert torch.allclose(mean, WORLD.posterior(target), atol=1e-6)


def test_a_head_keeps_the_weights_of_its_experts_in_its_state(tmp_path):
    head = heads.Experts(6, 4, num_experts=3)
    features = torch.randn(5, 6, generator=torch.Generator().manual_seed(0))
    equal = head.train(False)(features)
    head.carry([4, 3, 2, 1])
    head.weigh([2.0, 1.0, 1.0])
    assert head.carried is None  # that of the mean is no longer true
    weighted = head(features)
    assert torch.allclose(weighted, head.each(features) @ torch.tensor([0.5, 0.25, 0.25]))
    assert not torch.allclose(weighted, equal)
    assert head.train()(features).shape == (5, 4, 3)
    other = heads.Experts(6, 4, num_experts=3)
    other.load_state_dict(head.state_dict())
    assert torch.equal(other.train(False)(features), weighted)
    plain = {k: v for k, v in head.state_dict().items() if k != "expert_weights"}
    other.load_state_dict(plain)  # of a model whose experts all weigh alike
    assert torch.equal(other(features), equal)
    for wrong in ([1.0, 1.0], [1.0, -1.0, 1.0], [0.0, 0.0, 0.0]):
        with pytest.raises(ValueError, match="3 experts"):
            head.weigh(wrong)
