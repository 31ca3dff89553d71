"""Backbones: sizes as published, features of the right shape, and one net re-derived by hand."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

from longtail.engine import backbones
from longtail.engine.backbones import MLP, ResNet32, SmallCNN

IMAGE_NETS = {"resnet32": ResNet32, "small_cnn": SmallCNN}


def parameters(net):
    return sum(parameter.numel() for parameter in net.parameters())


def test_resnet32_has_the_parameters_it_is_known_for():
    # 464,154 with a linear layer to the ten classes of CIFAR-10.
    assert parameters(ResNet32()) + 64 * 10 + 10 == 464_154


def test_the_wider_net_has_one_more_block():
    block = 2 * 64 * 64 * 9 + 2 * 2 * 64
    assert parameters(ResNet32(dim=128)) == parameters(ResNet32()) + block


def test_resnet32_has_31_convolutions_and_its_maps_halve_twice():
    net = ResNet32()
    convolutions = [module for module in net.modules() if isinstance(module, nn.Conv2d)]
    assert len(convolutions) == 31  # the linear layer of a head is the 32nd
    assert [conv.stride for conv in convolutions].count((2, 2)) == 2
    assert net.stages(net.stem(torch.zeros(1, 3, 32, 32))).shape == (1, 64, 8, 8)


def naive_block(block, maps):
    """A block by its formula; the shortcut with loops over pixels and channels."""
    inner = F.relu(block.norm1(block.conv1(maps)))
    residual = block.norm2(block.conv2(inner))
    inputs, outputs = maps.shape[1], residual.shape[1]
    if inputs == outputs:
        return F.relu(residual + maps)
    shortcut = torch.zeros_like(residual)
    for y in range(residual.shape[2]):
        for x in range(residual.shape[3]):
            for channel in range(inputs):
                place = channel + (outputs - inputs) // 2
                shortcut[:, place, y, x] = maps[:, channel, 2 * y, 2 * x]
    return F.relu(residual + shortcut)


@pytest.mark.parametrize("dim", [64, 128])
def test_resnet32_is_its_blocks_one_after_the_other(dim):
    net, images = ResNet32(dim).double().eval(), torch.randn(2, 3, 12, 12).double()
    maps = net.stem(images)
    for block in net.stages:
        maps = naive_block(block, maps)
    expected = [naive_block(block, maps).mean(dim=(2, 3)) for block in net.last]
    assert_close(net(images), torch.cat(expected, dim=1))
    if dim == 128:
        assert not torch.allclose(*expected)  # two blocks, not one twice


def test_convolutions_start_with_the_variance_of_he_et_al():
    for conv in (m for m in ResNet32().modules() if isinstance(m, nn.Conv2d)):
        fan_in = conv.weight[0].numel()
        assert conv.bias is None
        assert conv.weight.std().item() == pytest.approx((2 / fan_in) ** 0.5, rel=0.1)


@pytest.mark.parametrize("norm", ["batch", "group", "none"])
@pytest.mark.parametrize("make", IMAGE_NETS.values(), ids=IMAGE_NETS)
def test_every_norm_gives_finite_features_and_gradients_to_all_weights(make, norm):
    net = make(norm=norm, channels=2)
    features = net(torch.randn(4, 2, 32, 32))
    assert features.shape == (4, net.dim)
    assert features.isfinite().all()
    assert 0.01 < features.std() < 100
    features.square().mean().backward()
    assert all(p.grad is not None and p.grad.isfinite().all() for p in net.parameters())
    normed = any(isinstance(m, nn.BatchNorm2d | nn.GroupNorm) for m in net.modules())
    assert normed == (norm != "none")


@pytest.mark.parametrize("norm", ["group", "none"])
@pytest.mark.parametrize("make", IMAGE_NETS.values(), ids=IMAGE_NETS)
def test_without_batch_norm_an_image_does_not_see_its_batch(make, norm):
    net, images = make(norm=norm).double(), torch.randn(6, 3, 16, 16).double()
    assert_close(net(images), torch.cat([net(images[:2]), net(images[2:])]))
    batch_norm = make().double()
    parts = torch.cat([batch_norm(images[:2]), batch_norm(images[2:])])
    assert not torch.allclose(batch_norm(images), parts)


def test_a_net_without_norm_learns():
    torch.manual_seed(0)
    net, head = ResNet32(norm="none"), nn.Linear(64, 2)
    optimizer = torch.optim.SGD([*net.parameters(), *head.parameters()], lr=0.02, momentum=0.9)
    labels = torch.arange(16) % 2
    images = torch.randn(16, 3, 8, 8) + labels.view(-1, 1, 1, 1)
    losses = []
    for _ in range(12):
        loss = F.cross_entropy(head(net(images)), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.3 * losses[0]


@pytest.mark.parametrize("name", ["ResNet32", "SmallCNN", "MLP"])
def test_one_seed_makes_one_net(name):
    states = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        states.append(torch.cat([p.flatten() for p in getattr(backbones, name)().parameters()]))
    assert torch.equal(states[0], states[1])
    assert not torch.equal(states[0], states[2])


def test_weights_stay_as_a_file_wants_them():
    # Inputs are laid out anew, not weights: safetensors refuses what is not contiguous.
    net = SmallCNN()
    net(torch.randn(2, 3, 8, 8)).sum().backward()
    assert all(value.is_contiguous() for value in net.state_dict().values())


def test_the_perceptron_of_elm_has_16_8_and_2_units():
    net = MLP()
    assert [p.numel() for p in net.parameters()] == [32, 16, 128, 8, 16, 2]
    assert net.dim == 2
    assert (net(torch.randn(50, 2)) >= 0).all()
    points = torch.randn(5, 3)
    linear = MLP(inputs=3, hidden=[4], rectified=False)
    assert_close(linear(points), points @ linear.layers[0].weight.T + linear.layers[0].bias)


def test_the_perceptron_flattens_images():
    assert MLP(inputs=12, hidden=(5,))(torch.randn(2, 3, 2, 2)).shape == (2, 5)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: ResNet32(dim=32), "64 features, or 128"),
        (lambda: ResNet32(norm="layer"), '"batch", "group", "none"'),
        (lambda: SmallCNN(dim=100), "multiple of 32"),
        (lambda: MLP(hidden=()), "at least one hidden layer"),
        (lambda: MLP(hidden=(4, 0)), "1 or more"),
    ],
)
def test_what_is_no_backbone_is_refused(call, said):
    with pytest.raises(ValueError, match=said):
        call()
