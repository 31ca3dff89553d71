"""Averages of weights and of batch-norm statistics, re-derived with loops."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from longtail.engine.averaging import moving_average, reestimate_batch_norm


def small_net():
    return nn.Sequential(
        nn.Conv2d(3, 4, 3, bias=False), nn.BatchNorm2d(4), nn.ReLU(), nn.Dropout(0.5)
    )


def train_a_step(net, generator):
    net.train()
    net(torch.randn(8, 3, 5, 5, generator=generator))
    with torch.no_grad():
        for parameter in net.parameters():
            parameter += torch.randn(parameter.shape, generator=generator)


@pytest.mark.parametrize("warmup", [False, True])
def test_the_moving_average_is_the_recursion_it_says(warmup):
    net, generator = small_net(), torch.Generator().manual_seed(0)
    average = moving_average(net, decay=0.6, warmup=warmup)
    expected = None
    for step in range(12):
        train_a_step(net, generator)
        average.update_parameters(net)
        state = {name: value.clone() for name, value in net.state_dict().items()}
        if expected is None:
            expected = state
        kept = min(0.6, (1 + step) / (10 + step)) if warmup else 0.6
        for name, value in state.items():
            if value.is_floating_point():
                expected[name] = kept * expected[name] + (1 - kept) * value
            else:
                expected[name] = value
    assert int(net[1].num_batches_tracked) == 12
    assert_close(dict(average.module.state_dict()), expected)


def test_the_moving_average_goes_on_from_its_state_dict():
    nets = [small_net(), small_net()]
    nets[1].load_state_dict(nets[0].state_dict())
    whole, first = (moving_average(net) for net in nets)
    for net, average in zip(nets, (whole, first), strict=True):
        generator = torch.Generator().manual_seed(0)
        for _ in range(3):
            train_a_step(net, generator)
            average.update_parameters(net)
    again = moving_average(small_net())
    again.load_state_dict(first.state_dict())
    for net, average in ((nets[0], whole), (nets[1], again)):
        generator = torch.Generator().manual_seed(1)
        train_a_step(net, generator)
        average.update_parameters(net)
    assert_close(again.state_dict(), whole.state_dict(), rtol=0, atol=0)


def test_the_moving_average_leaves_the_model_alone_and_asks_for_no_gradient():
    net = small_net()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    average = moving_average(net)
    average.update_parameters(net)
    assert_close(dict(net.state_dict()), before, rtol=0, atol=0)
    assert all(parameter.requires_grad for parameter in net.parameters())
    assert not any(parameter.requires_grad for parameter in average.parameters())


@pytest.mark.parametrize("decay", [-0.1, 1.0])
def test_a_decay_that_averages_nothing_is_refused(decay):
    with pytest.raises(ValueError, match="decay must lie in"):
        moving_average(small_net(), decay)


def test_statistics_are_the_averages_over_batches_weighted_by_their_size():
    net = small_net()
    train_a_step(net, torch.Generator().manual_seed(0))
    batches = [torch.randn(n, 3, 5, 5) + n for n in (6, 6, 2)]
    reestimate_batch_norm(net, batches)
    mean, variance = torch.zeros(4), torch.zeros(4)
    for batch in batches:
        maps = net[0](batch).detach()
        for channel in range(4):
            values = maps[:, channel].flatten()
            centre = values.sum() / len(values)
            mean[channel] += centre * len(batch) / 14
            spread = ((values - centre) ** 2).sum() / (len(values) - 1)
            variance[channel] += spread * len(batch) / 14
    assert_close(net[1].running_mean, mean)
    assert_close(net[1].running_var, variance)
    assert int(net[1].num_batches_tracked) == 3


def test_batches_of_one_size_give_what_torch_gives():
    ours, theirs = small_net()[:3], small_net()[:3]
    theirs.load_state_dict(ours.state_dict())
    batches = [torch.randn(4, 3, 5, 5) for _ in range(5)]
    reestimate_batch_norm(ours, batches)
    torch.optim.swa_utils.update_bn(batches, theirs)
    assert_close(ours.state_dict(), theirs.state_dict())


def test_a_second_norm_sees_what_the_first_makes_of_the_same_batch():
    net = nn.Sequential(nn.BatchNorm1d(2), nn.Linear(2, 2), nn.BatchNorm1d(2))
    batch = 5 + 3 * torch.randn(64, 2)
    reestimate_batch_norm(net, [batch])
    normed = (batch - batch.mean(0)) / (batch.var(0, correction=0) + 1e-5).sqrt()
    assert_close(net[2].running_mean, net[1](normed).mean(0).detach())


def test_flags_and_momenta_are_put_back_and_dropout_is_off():
    net = nn.Sequential(nn.Dropout(0.9), nn.BatchNorm1d(3, momentum=0.3), nn.BatchNorm1d(3))
    net[2].momentum = None
    net.train()
    net[1].eval()
    net[1].running_mean.fill_(torch.nan)  # nothing of what was there is left
    batch = torch.randn(10, 3)
    state = torch.random.get_rng_state()
    reestimate_batch_norm(net, [batch])
    assert torch.equal(torch.random.get_rng_state(), state)
    assert_close(net[1].running_mean, batch.mean(0))
    assert [module.training for module in net.modules()] == [True, True, False, True]
    assert [net[1].momentum, net[2].momentum] == [0.3, None]
    assert int(net[2].num_batches_tracked) == 1


def test_flags_are_put_back_even_if_a_batch_fails():
    net = nn.Sequential(nn.BatchNorm1d(3, momentum=0.3))
    with pytest.raises(ValueError, match="more than 1 value"):
        reestimate_batch_norm(net.train(), [torch.randn(1, 3)])
    assert net.training
    assert net[0].momentum == 0.3


def test_a_model_without_batch_norm_is_left_alone_and_no_batches_are_an_error():
    batches = iter([torch.randn(4, 3)])
    reestimate_batch_norm(nn.Linear(3, 3), batches)
    assert next(batches).shape == (4, 3)
    norm = nn.BatchNorm1d(3)
    norm.running_mean.fill_(2.0)
    with pytest.raises(ValueError, match="at least one batch"):
        reestimate_batch_norm(norm, [])
    assert norm.running_mean.tolist() == [2.0, 2.0, 2.0]
