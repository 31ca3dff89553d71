"""Everything that a recipe can name is built, and trains a step."""

import pytest
import torch

from longtail import Prior
from longtail.flows.train import building, parts
from longtail.flows.train.reading import RecipeError, overridden, recipe_from
from longtail.images import ImageArrays

COUNTS = [30, 12, 6]
LABELS = torch.arange(3).repeat_interleave(torch.tensor(COUNTS))
IMAGES = ImageArrays(torch.randint(256, (48, 3, 8, 8), dtype=torch.uint8), LABELS)
PRIOR = Prior.of(COUNTS)


def recipe(**values):
    backbone = {"name": "mlp", "inputs": 192, "hidden": [12]}
    return recipe_from({"data": "cifar10", "backbone": backbone} | values)


def gradients(made):
    model = building.build_model(made, PRIOR)
    loss = building.build_loss(made, PRIOR, model.head)
    outputs = model(building.build_normalize(made, IMAGES)(IMAGES.images))
    loss(outputs.logits, LABELS, features=outputs.features).backward()
    return [weight.grad for weight in model.parameters()]


@pytest.mark.parametrize("name", parts.LOSSES)
def test_every_loss_moves_the_backbone(name):
    head = {
        "ldam": {"name": "cosine", "scale": 1.0},
        "estimated_offset": "estimated_offset",
        "experts": "experts",
    }.get(name, "linear")
    found = gradients(recipe(loss=name, head=head))
    assert all(grad is not None and grad.isfinite().all() for grad in found)
    assert found[0].abs().max() > 0


@pytest.mark.parametrize("name", parts.TERMS)
def test_every_term_moves_the_backbone_and_not_the_head(name):
    plain = gradients(recipe())
    beside = gradients(recipe(terms=[{"name": name, "weight": 3.0}]))
    later = gradients(recipe(terms=[{"name": name, "weight": 3.0, "start": 1}]))
    assert not torch.equal(plain[0], beside[0])
    assert torch.equal(plain[0], later[0])
    for before, after in zip(plain[-2:], beside[-2:], strict=True):  # weight and bias of the head
        assert torch.equal(before, after)


@pytest.mark.parametrize("name", parts.HEADS)
def test_a_term_is_beside_any_head(name):
    loss = name if name in ("estimated_offset", "experts") else "logit_adjusted"
    made = recipe(head=name, loss=loss, terms=[{"name": "center", "weight": 0.1}])
    assert gradients(made)[0].abs().max() > 0


def test_what_a_term_needs_of_the_data_is_named():
    made = recipe(terms=[{"name": "pull", "weight": 1, "margins": "count"}])
    head = building.build_model(made, PRIOR).head
    with pytest.raises(RecipeError, match=r"terms\[0\]: margins='count' needs class counts"):
        building.build_loss(made, Prior.of([0.5, 0.3, 0.2]), head)


@pytest.mark.parametrize("name", parts.HEADS)
def test_every_head_takes_gradients(name):
    loss = name if name in ("estimated_offset", "experts") else "cross_entropy"
    assert gradients(recipe(head=name, loss=loss))[0].abs().max() > 0


@pytest.mark.parametrize("name", parts.SAMPLERS)
def test_every_sampler_draws_positions_of_the_images(name):
    option = {"name": name, "m": 2} if name == "m_per_class" else {"name": name}
    sampler = building.build_sampler(recipe(sampler=option), IMAGES)
    drawn = list(sampler)
    assert len(drawn) == len(IMAGES)
    assert set(drawn) <= set(range(len(IMAGES)))
    batches = sampler.induced(PRIOR)
    assert batches.is_close(PRIOR.reweighted(sampler.weights()))
    assert (batches.counts is not None) == (name == "instance")


def test_the_seed_decides_the_weights():
    first, again, other = (
        building.build_model(recipe(seed=seed), PRIOR).state_dict() for seed in (1, 1, 2)
    )
    assert all(torch.equal(first[key], again[key]) for key in first)
    assert not torch.equal(first["head.weight"], other["head.weight"])


def test_weights_are_drawn_from_no_generator_of_others():
    torch.manual_seed(0)
    expected = torch.rand(3)
    torch.manual_seed(0)
    building.build_model(recipe(seed=1), PRIOR)
    assert torch.equal(torch.rand(3), expected)


def test_channels_are_measured_where_the_recipe_says_no_numbers():
    measured = building.build_normalize(recipe(), IMAGES)
    values = IMAGES.images.double() / 255
    assert measured.mean == pytest.approx(values.mean(dim=(0, 2, 3)).tolist())
    told = building.build_normalize(recipe(normalize={"mean": [0.5], "std": [2]}), IMAGES)
    assert (told.mean, told.std) == ((0.5,), (2.0,))


@pytest.mark.parametrize("value", [0, 51, 100])
def test_a_channel_that_is_the_same_everywhere_is_told_with_numbers_that_do(value):
    pixels = IMAGES.images.clone()
    pixels[:, 1] = value
    plain = ImageArrays(pixels, IMAGES.labels)
    with pytest.raises(RecipeError, match=r"channel 1 .*'normalize=") as raised:
        building.build_normalize(recipe(), plain)
    setting = str(raised.value).rpartition(" set ")[2].strip("'")
    told = building.build_normalize(overridden(recipe(), [setting]), plain)
    assert told.std[1] == 1
    assert told(pixels)[:, 1].abs().max() < 1e-3
