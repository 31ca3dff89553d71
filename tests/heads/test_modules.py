"""Heads as modules: what they accept and refuse, precision, compilation, state, what is carried."""

import copy

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from longtail import Prior, heads

LINEAR = (
    heads.Linear,
    heads.TauNorm,
    heads.LearnableScale,
    heads.EmpiricalOffset,
    heads.EstimatedOffset,
    heads.Generative,
    heads.WeightVectorNorm,
)


def test_every_public_head_is_tried(every_name):
    public = {
        name
        for name, thing in vars(heads).items()
        if isinstance(thing, type) and issubclass(thing, heads.Head)
    }
    assert public - {"Head", "LinearHead"} == {name.split()[0].strip(",") for name in every_name}


def test_features_with_more_axes_give_logits_with_more_axes(make, features):
    head = make()
    logits = head(features)
    assert logits.shape == (len(features), head.num_classes)
    assert_close(head(features.reshape(4, 11, -1)), logits.reshape(4, 11, -1))
    assert_close(head(features[3]), logits[3])
    assert head(features[:0]).shape == (0, head.num_classes)


def test_a_state_is_loaded_into_a_new_head_with_what_it_carries(make, features):
    head, other = make(), make()
    head.carry([5, 4, 3, 2, 1])
    with torch.no_grad():
        for tensor in other.state_dict().values():
            tensor.mul_(0.5)
    other.load_state_dict(head.state_dict())
    assert_close(other(features), head(features), rtol=0, atol=0)
    assert other.carried == Prior.of([5, 4, 3, 2, 1])
    head.carry(None)
    other.load_state_dict(head.state_dict())
    assert other.carried is None


def test_a_state_goes_through_a_larger_model(make, features):
    head = make()
    head.carry([5, 4, 3, 2, 1])
    model, other = nn.Sequential(nn.Identity(), head), nn.Sequential(nn.Identity(), make())
    other.load_state_dict(model.state_dict())
    assert other[1].carried == head.carried
    for unrelated in (other, other[1]):
        unrelated.load_state_dict({"2.weight": torch.zeros(1)}, strict=False)
    assert other[1].carried == head.carried


def test_what_is_carried_stays_exact_in_half_precision(make):
    head = make()
    head.carry([5, 4, 3, 2, 1])
    assert head.half().carried_log.dtype == torch.float64
    assert head.carried.is_close(Prior.of([5, 4, 3, 2, 1]), 1e-15)
    assert head.rows.dtype == torch.float16


def test_a_copy_is_a_head_of_its_own(make, features):
    head = make()
    clone = copy.deepcopy(head)
    assert_close(clone(features), head(features), rtol=0, atol=0)
    clone.carry(None)
    with torch.no_grad():
        clone.rows.add_(1.0)
    assert not torch.equal(clone.rows, head.rows)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_computed_in_float32(make, features, dtype):
    rows = features.to(dtype)
    exact = make()(rows.double())
    mixed = make().float()(rows)
    assert mixed.dtype == torch.float32
    assert_close(mixed.double(), exact, rtol=1e-3, atol=1e-3)
    assert make().to(dtype)(rows).dtype == torch.float32


def test_autocast_does_not_spoil_distances(make, features):
    head = make().float()
    multiplies = isinstance(
        head, heads.LinearHead | heads.Cosine | heads.CausalNorm | heads.Experts
    )
    tolerance = 0.1 if multiplies else 1e-6  # a product under autocast is what it is elsewhere
    with torch.autocast("cpu", dtype=torch.bfloat16):
        logits = head(features.float())
    assert_close(logits.float(), head(features.float()), rtol=tolerance, atol=2 * tolerance)


def test_a_linear_head_is_a_linear_layer(make, features):
    head = make().eval()
    logits = head(features)
    if isinstance(head, LINEAR):
        assert_close(head.to_linear()(features), logits, rtol=1e-12, atol=1e-12)
    elif getattr(head, "metric", None) in ("euclidean", "global"):
        moved = head.to_linear()(features) - logits
        assert_close(moved, moved[:, :1].expand_as(moved), rtol=1e-10, atol=1e-10)
    else:
        sentence = rf"no linear layer gives the logits of {type(head).__name__}: \w+ "
        with pytest.raises(ValueError, match=sentence):
            head.to_linear()


def test_a_linear_layer_is_a_copy(make):
    head = make()
    if not isinstance(head, LINEAR):
        return
    layer = head.to_linear()
    before = head.rows.clone()
    with torch.no_grad():
        layer.weight.add_(1.0)
    assert torch.equal(head.rows, before)
    assert type(layer) is nn.Linear


def test_gradients_agree_with_finite_differences(make, features):
    head = make()
    names = [name for name, p in head.named_parameters() if p.requires_grad]
    values = [dict(head.named_parameters())[name].detach().requires_grad_() for name in names]
    rows = features[:4].clone().requires_grad_()

    def logits(rows, *values):
        return torch.func.functional_call(head, dict(zip(names, values, strict=True)), (rows,))

    assert torch.autograd.gradcheck(logits, (rows, *values))
    assert torch.autograd.gradgradcheck(logits, (rows[:2], *values))


def test_zero_features_have_finite_logits_and_gradients_of_both_orders(make):
    head = make()
    rows = torch.zeros(2, head.dim, dtype=torch.float64, requires_grad=True)
    logits = head(rows)
    (gradient,) = torch.autograd.grad(logits.square().sum(), rows, create_graph=True)
    assert logits.isfinite().all()
    assert gradient.isfinite().all()
    if gradient.requires_grad:
        gradient.sum().backward()
        assert rows.grad.isfinite().all()


def test_features_that_are_not_numbers_give_logits_that_are_not(make, features):
    features[1, 2] = torch.nan
    logits = make()(features)
    assert logits[1].isnan().all()
    assert logits[0].isfinite().all()


def test_a_compiled_head_gives_the_same(make, features):
    head = make()
    torch._dynamo.reset()
    compiled = torch.compile(head, backend="aot_eager", fullgraph=True)
    rows = features.clone().requires_grad_()
    logits = compiled(rows)
    assert_close(logits, head(features), rtol=1e-12, atol=1e-12)
    logits.square().sum().backward()
    assert rows.grad.isfinite().all()


@pytest.mark.parametrize(
    ("wrong", "error", "sentence"),
    [
        (lambda x: x[:, :3], ValueError, r"\(\.\.\., 6\), got.*\(44, 3\)"),
        (lambda x: x.long(), ValueError, "floating type"),
        (lambda x: x.numpy(), TypeError, "takes torch tensors, got ndarray"),
    ],
)
def test_wrong_features_give_one_clear_sentence(make, features, wrong, error, sentence):
    with pytest.raises(error, match=sentence):
        make()(wrong(features))


def test_a_carried_prior_has_the_head_s_classes(make):
    with pytest.raises(ValueError, match=r"5 classes.*carried prior has 2"):
        make().carry([1, 1])


UNIFORM = (
    "EmpiricalOffset",
    "EstimatedOffset",
    "Generative",
    "NearestClassMean",
    "LearnedNCM",
    "MultiNCM",
    "MetricNCM",
)


def test_what_was_set_by_class_means_carries_uniform_and_the_rest_nothing_yet(make):
    carried = make().carried
    if make.name == "Generative with prior":
        assert carried == Prior.of([20, 12, 8, 3, 1])
    elif make.name.startswith(UNIFORM) and make.name != "EstimatedOffset, UC only":
        assert carried == Prior.uniform(5)
    else:
        assert carried is None


def test_a_trained_layer_brings_what_it_carries(layer):
    assert heads.Linear.from_linear(layer, carried=[5, 4, 3, 2, 1]).carried.counts is None
    head = heads.Linear.from_linear(layer, carried=Prior.of([5, 4, 3, 2, 1]).tempered(0.5))
    assert head.carried == Prior.of([5, 4, 3, 2, 1]).tempered(0.5)
    assert "Prior([" in repr(head)


@pytest.mark.parametrize(
    "head",
    [
        heads.EmpiricalOffset(6, 5),
        heads.Generative(6, 5),
        heads.NearestClassMean(6, 5),
        heads.LearnedNCM(6, 5),
        heads.MultiNCM(6, 5),
        heads.MetricNCM(6, 5),
    ],
    ids=lambda head: type(head).__name__,
)
def test_a_head_that_needs_class_means_says_so(head, moments):
    with pytest.raises(RuntimeError, match=r"class means.*head\.set_moments"):
        head(torch.zeros(1, 6))
    if isinstance(head, heads.LinearHead | heads.NearestClassMean | heads.MetricNCM):
        with pytest.raises(RuntimeError, match="has no class means yet"):
            head.to_linear()
    few = heads.class_moments(torch.zeros(2, 6), [0, 1], 5, **head.moment_options)
    with pytest.raises(ValueError, match=r"classes \[2, 3, 4\] have none"):
        head.set_moments(few)
    with pytest.raises(ValueError, match=r"5 classes and dimension 6, .* shape \(2, 6\)"):
        head.set_moments(heads.class_moments(torch.zeros(2, 6), [0, 1], 2))
    with pytest.raises(ValueError, match=r"without centring.*False"):
        head.set_moments(moments(normalise=True))


@pytest.mark.parametrize("kind", [heads.Generative, heads.NearestClassMean, heads.LearnedNCM])
def test_a_loaded_state_takes_the_place_of_class_means(kind, features, moments):
    head, fresh = kind(6, 5), kind(6, 5)
    head.set_moments(moments(**head.moment_options))
    fresh.load_state_dict(head.state_dict())
    assert_close(fresh(features), head(features), rtol=0, atol=0)


@pytest.mark.parametrize("kind", [heads.Linear, heads.Cosine, heads.TauNorm, heads.CausalNorm])
def test_a_head_without_use_for_moments_refuses_them(kind, moments):
    head = kind(6, 5)
    assert head.moment_options is None
    with pytest.raises(ValueError, match="class means"):
        head.set_moments(moments())


@pytest.mark.parametrize("kind", [heads.Linear, heads.NearestClassMean, heads.CausalNorm])
@pytest.mark.parametrize("sizes", [(0, 5), (6, 0)])
def test_sizes_are_checked(kind, sizes):
    with pytest.raises(ValueError, match="one dimension and one class"):
        kind(*sizes)


def test_the_recipes_have_the_papers_numbers():
    assert heads.LearnedNCM.sgd == heads.SGDConfig(
        lr=5.0, momentum=0.9, clip_value=0.1, sampler="class_balanced", schedule="constant"
    )
    assert heads.LearnedNCM.adjusted_sgd.tau == heads.MultiNCM.adjusted_sgd.tau == 1 / 8
    assert heads.Linear.sgd.lr == heads.LearnableScale.sgd.lr == 0.2
    assert (heads.Linear.sgd.epochs, heads.LearnableScale.sgd.epochs) == (10, 5)
    closed = (heads.NearestClassMean, heads.Generative, heads.TauNorm, heads.EmpiricalOffset)
    assert all(head.sgd is None for head in closed)


def test_heads_have_parameters_only_where_something_is_trained():
    trained = {
        heads.TauNorm: [],
        heads.NearestClassMean: [],
        heads.Generative: [],
        heads.LearnableScale: ["scale"],
        heads.LearnedNCM: ["centers"],
        heads.MultiNCM: ["displacements"],
        heads.CausalNorm: ["weight"],
    }
    for kind, names in trained.items():
        assert [name for name, _ in kind(6, 5).named_parameters()] == names
