"""Samplers draw each class as often as they say, from the seed and the epoch alone."""

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from longtail import Prior
from longtail.images import SAMPLERS

COUNTS = torch.tensor([50, 10, 2, 1])
LABELS = torch.repeat_interleave(torch.arange(4), COUNTS)[
    torch.randperm(63, generator=torch.Generator().manual_seed(1))
]
OPTIONS = {"progressive": {"num_epochs": 5}, "m_per_class": {"m": 3}}
NAMES = list(SAMPLERS)


def made(name, **more):
    return SAMPLERS[name](LABELS, 4, **{**OPTIONS.get(name, {}), **more})


def drawn(sampler):
    return LABELS[list(sampler)].bincount(minlength=4)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("epoch", [0, 2, 4])
def test_the_batches_follow_the_induced_prior_to_within_a_draw_a_class(name, epoch):
    sampler = made(name)
    sampler.set_epoch(epoch)
    number = drawn(sampler)
    expected = torch.as_tensor(sampler.induced(Prior.of(COUNTS)).probs) * number.sum()
    most = sampler.together  # m per class draws whole groups
    assert (number - expected).abs().max() <= most
    assert len(sampler) == number.sum()


@pytest.mark.parametrize("name", NAMES)
def test_in_the_mean_over_epochs_they_follow_it_exactly(name):
    sampler = made(name)
    total = torch.zeros(4)
    for epoch in range(300):
        sampler.set_epoch(epoch)
        if name == "progressive":
            sampler.num_epochs = 2 * epoch + 1 if epoch else 2  # stay at one half
        total += drawn(sampler)
    if name == "progressive":
        sampler.num_epochs = 2 * sampler.epoch + 1
    expected = torch.as_tensor(sampler.induced(COUNTS).probs)
    assert (total / total.sum() - expected).abs().max() < 0.004


@pytest.mark.parametrize(
    ("name", "weight"),
    [
        ("instance", lambda n: 1.0),
        ("class_balanced", lambda n: 1 / n),
        ("square_root", lambda n: n**-0.5),
        ("reversed", lambda n: n**-2.0),
        ("effective_number", lambda n: (1 - 0.9999) / (1 - 0.9999**n)),
        ("m_per_class", lambda n: 1 / n),
    ],
)
def test_the_induced_prior_is_the_formula(name, weight):
    shares = torch.tensor([n * weight(n) for n in COUNTS.tolist()], dtype=torch.float64)
    assert made(name).induced(COUNTS).is_close(Prior.of(shares))


def test_induced_moves_any_prior_by_the_same_weights():
    other = Prior.of([0.4, 0.3, 0.2, 0.1])
    expected = torch.as_tensor(other.probs) / COUNTS
    assert made("class_balanced").induced(other).is_close(Prior.of(expected))


def test_progressive_goes_from_instance_to_class_balanced():
    sampler = made("progressive")
    shares = []
    for epoch in (0, 2, 4, 9):
        sampler.set_epoch(epoch)
        shares.append(sampler.induced(COUNTS))
    assert shares[0] == Prior.of(COUNTS)
    assert shares[1].is_close(Prior.of((Prior.of(COUNTS).probs + 0.25) / 2))
    assert shares[2].is_close(Prior.uniform(4))
    assert shares[3].is_close(Prior.uniform(4))


def test_an_instance_epoch_is_a_permutation():
    assert sorted(made("instance")) == list(range(63))


@pytest.mark.parametrize("name", NAMES)
def test_no_sample_comes_again_before_all_of_its_class_came(name):
    times = torch.tensor(list(made(name))).bincount(minlength=63)
    for label in range(4):
        of_class = times[label == LABELS]
        assert of_class.max() - of_class.min() <= 1


@pytest.mark.parametrize("name", NAMES)
def test_the_order_is_that_of_seed_and_epoch_whatever_came_before(name):
    first, second = made(name, seed=7), made(name, seed=7)
    second.set_epoch(3)
    list(second)
    second.set_epoch(0)
    assert list(first) == list(second)
    first.set_epoch(1)
    assert list(first) != list(second)
    assert list(made(name, seed=8)) != list(second)


def test_neighbouring_seeds_and_epochs_share_no_order():
    seen = set()
    for seed in range(6):
        sampler = made("instance", seed=seed)
        for epoch in range(6):
            sampler.set_epoch(epoch)
            seen.add(tuple(sampler))
    assert len(seen) == 36


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("num_replicas", [2, 3, 5])
def test_processes_share_an_epoch_without_loss(name, num_replicas):
    parts = [list(made(name, num_replicas=num_replicas, rank=r)) for r in range(num_replicas)]
    assert len({len(part) for part in parts}) == 1
    assert len(parts[0]) == len(made(name, num_replicas=num_replicas, rank=0))
    whole = sorted(made(name))
    together = sorted(position for part in parts for position in part)
    for position in together:
        if whole and position == whole[0]:
            whole.pop(0)
    assert not whole  # all that one process draws is there; what is more fills up the last turn
    assert len(together) - 63 < 3 * num_replicas


@pytest.mark.parametrize("name", NAMES)
def test_a_state_goes_on_where_it_was_taken(name):
    sampler = made(name, seed=5)
    sampler.set_epoch(2, start=20)
    again = made(name)
    again.load_state_dict(sampler.state_dict())
    whole = made(name, seed=5)
    whole.set_epoch(2)
    assert list(again) == list(whole)[20:]
    assert len(again) == len(list(again))


def test_m_per_class_fills_batches_with_different_classes():
    batches = DataLoader(TensorDataset(LABELS), batch_size=12, sampler=made("m_per_class"))
    for (labels,) in batches:
        groups = labels.view(-1, 3)
        assert (groups == groups[:, :1]).all()
        assert len(groups.unique()) == len(groups)  # a batch is a turn of the four classes


@pytest.mark.parametrize("name", NAMES)
def test_a_class_without_samples_is_never_drawn(name):
    labels = torch.tensor([0, 0, 2, 2, 2, 0])
    sampler = SAMPLERS[name](labels, 4, **OPTIONS.get(name, {}))
    assert set(labels[list(sampler)].tolist()) <= {0, 2}


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("instance", {"rank": 2, "num_replicas": 2}, r"rank.*got 2"),
        ("effective_number", {"beta": 1.0}, r"beta must lie in \[0, 1\), got 1.0"),
        ("progressive", {"num_epochs": 1}, "num_epochs must be at least 2"),
        ("m_per_class", {"m": 0}, "m must lie in 1 to 63"),
    ],
)
def test_wrong_options_are_named(name, options, message):
    with pytest.raises(ValueError, match=message):
        made(name, **options)


def test_no_samples_are_an_error():
    with pytest.raises(ValueError, match="at least one sample"):
        SAMPLERS["instance"](torch.zeros(0, dtype=torch.long), 3)
