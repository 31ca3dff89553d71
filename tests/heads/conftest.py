"""A small long-tailed set of features, and every head set up on it in float64."""

import pytest
import torch
from torch import nn

from longtail import heads

DIM, CLASSES = 6, 5
LABELS = torch.tensor([0] * 20 + [1] * 12 + [2] * 8 + [3] * 3 + [4])
COUNTS = [20, 12, 8, 3, 1]


def drawn_features():
    generator = torch.Generator().manual_seed(0)
    means = 2 * torch.randn(CLASSES, DIM, generator=generator, dtype=torch.float64)
    noise = torch.randn(len(LABELS), DIM, generator=generator, dtype=torch.float64)
    return means[LABELS] + noise + 3.0


def trained_layer():
    layer = nn.Linear(DIM, CLASSES).double()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        layer.weight.normal_(generator=generator)
        layer.bias.normal_(generator=generator)
    return layer


def from_means(head):
    head = head.double()
    head.set_moments(heads.class_moments(drawn_features(), LABELS, CLASSES, **head.moment_options))
    generator = torch.Generator().manual_seed(2)
    with torch.no_grad():
        for parameter in head.parameters():
            parameter += 0.1 * torch.randn(parameter.shape, generator=generator).double()
    return head


def causal(**options):
    head = heads.CausalNorm(DIM, CLASSES, **options).double()
    head(drawn_features())  # the running mean has followed something
    return head.eval()


MAKE = {
    "Linear": lambda: heads.Linear.from_linear(trained_layer()),
    "Linear without bias": lambda: heads.Linear(DIM, CLASSES, bias=False).double(),
    "Cosine": lambda: heads.Cosine.from_linear(trained_layer()),
    "Cosine with learned scale": lambda: heads.Cosine(DIM, CLASSES, learn_scale=True).double(),
    "TauNorm": lambda: heads.TauNorm.from_linear(trained_layer(), tau=0.7),
    "TauNorm by prior": lambda: heads.TauNorm.from_linear(trained_layer(), 0.7, COUNTS),
    "LearnableScale": lambda: heads.LearnableScale.from_linear(trained_layer()),
    "EmpiricalOffset": lambda: from_means(heads.EmpiricalOffset(DIM, CLASSES)),
    "EstimatedOffset": lambda: from_means(heads.EstimatedOffset(DIM, CLASSES)),
    "EstimatedOffset, UC only": lambda: heads.EstimatedOffset(DIM, CLASSES, False).double(),
    "Generative": lambda: from_means(heads.Generative(DIM, CLASSES)),
    "Generative with prior": lambda: from_means(
        heads.Generative(DIM, CLASSES, COUNTS, "ledoit_wolf")
    ),
    "NearestClassMean": lambda: from_means(heads.NearestClassMean(DIM, CLASSES)),
    "NearestClassMean, cosine": lambda: from_means(heads.NearestClassMean(DIM, CLASSES, "cosine")),
    "NearestClassMean, cl2n": lambda: from_means(heads.NearestClassMean(DIM, CLASSES, "cl2n")),
    "LearnedNCM": lambda: from_means(heads.LearnedNCM(DIM, CLASSES)),
    "MultiNCM": lambda: from_means(heads.MultiNCM(DIM, CLASSES, 3)),
    "MetricNCM": lambda: from_means(heads.MetricNCM(DIM, CLASSES)),
    "MetricNCM of low rank": lambda: from_means(heads.MetricNCM(DIM, CLASSES, rank=2)),
    "MetricNCM per class": lambda: from_means(heads.MetricNCM(DIM, CLASSES, "per_class")),
    "MetricNCM, eigenbasis": lambda: from_means(heads.MetricNCM(DIM, CLASSES, "eigenbasis")),
    "Experts": lambda: heads.Experts(DIM, CLASSES, num_experts=2).double().eval(),
    "Experts, linear": lambda: heads.Experts(DIM, CLASSES, 3, "linear").double().eval(),
    "CausalNorm": causal,
    "WeightVectorNorm": lambda: heads.WeightVectorNorm.from_linear(trained_layer()),
    "WeightVectorNorm + RS": lambda: heads.WeightVectorNorm.from_linear(
        trained_layer(), COUNTS, gamma=0.5
    ).eval(),
}


@pytest.fixture
def features():
    return drawn_features()


@pytest.fixture
def labels():
    return LABELS


@pytest.fixture
def layer():
    return trained_layer()


@pytest.fixture
def moments():
    def make(**options):
        return heads.class_moments(drawn_features(), LABELS, CLASSES, **options)

    return make


@pytest.fixture(params=MAKE)
def make(request):
    """A function that makes one kind of head, for tests that hold for all."""

    def function():
        torch.manual_seed(3)
        return MAKE[request.param]()

    function.name = request.param
    return function


@pytest.fixture
def every_name():
    """The names of all examples."""
    return list(MAKE)
