"""A head that was saved is the same head when it is loaded."""

import pytest
import torch
from safetensors.torch import save_file

from longtail import Prior, heads
from longtail.engine import load_head, save_head

C, D = 3, 4
X = torch.randn(12, D, generator=torch.Generator().manual_seed(0))
Y = torch.arange(12) % C


def made():
    torch.manual_seed(0)
    layer = torch.nn.Linear(D, C)
    moments = heads.class_moments(X, Y, C, "pooled")
    yield heads.Linear.from_linear(layer, carried=[5, 3, 2])
    yield heads.Linear(D, C, bias=False)
    yield heads.Cosine(D, C, scale=9.0)
    yield heads.LearnableScale.from_linear(layer)
    yield heads.TauNorm.from_linear(layer, tau=0.3, train=[5, 3, 2])
    yield heads.EmpiricalOffset.from_linear(layer, moments)
    yield heads.EstimatedOffset.from_linear(layer, use_offset=False)
    yield heads.CausalNorm.from_linear(layer, alpha=1.5)
    yield heads.WeightVectorNorm.from_linear(layer, train=Prior.of([0.5, 0.3, 0.2]), gamma=0.4)
    means = heads.class_moments(X, Y, C)
    for head in (
        heads.Generative(D, C, prior=[5, 3, 2]),
        heads.NearestClassMean(D, C, "cosine"),
        heads.LearnedNCM(D, C),
        heads.MultiNCM(D, C, num_displacements=2),
        heads.MetricNCM(D, C, rank=2, learn_centers=False),
    ):
        head.set_moments(moments if head.moment_options else means)
        yield head


@pytest.mark.parametrize("head", list(made()), ids=lambda head: type(head).__name__)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_it_gives_the_same_logits_and_carries_the_same(head, dtype, tmp_path):
    head = head.to(dtype).train(False)
    save_head(head, tmp_path / "head.safetensors", {"classes": ["a", "b", "c"]})
    again, about = load_head(tmp_path / "head.safetensors")
    assert type(again) is type(head)
    assert about == {"classes": ["a", "b", "c"]}
    assert again.carried == head.carried
    assert not again.training
    rows = X.to(dtype)
    assert torch.equal(again(rows), head(rows))


def test_a_head_of_ones_own_is_refused(tmp_path):
    class Mine(heads.Linear):
        pass

    with pytest.raises(ValueError, match=r"only heads of longtail\.heads"):
        save_head(Mine(D, C), tmp_path / "head.safetensors")


def test_another_file_is_refused(tmp_path):
    save_file({"weight": torch.zeros(2)}, tmp_path / "other.safetensors")
    with pytest.raises(ValueError, match="no head file"):
        load_head(tmp_path / "other.safetensors")
    with pytest.raises(FileNotFoundError, match="there is no file"):
        load_head(tmp_path / "nothing.safetensors")


def test_only_heads_are_made_from_a_file(tmp_path):
    header = '{"version":1,"head":"class_moments","made_with":{},"about":{}}'
    save_file({"weight": torch.zeros(2)}, tmp_path / "bad.safetensors", {"longtail_head": header})
    with pytest.raises(ValueError, match="not known here"):
        load_head(tmp_path / "bad.safetensors")
