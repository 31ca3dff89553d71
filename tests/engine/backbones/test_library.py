"""Backbones of torchvision and timm, with stand-ins for both: neither need be installed."""

import sys
from types import ModuleType

import pytest
import torch
from torch import nn

from longtail.engine import backbones
from longtail.engine.backbones import timm_backbone, torchvision_backbone


class Net(nn.Module):
    """A stand-in: pooled pixels, then whatever classifier a network of torchvision has."""

    def __init__(self, **classifier):
        super().__init__()
        self.attribute = next(iter(classifier))
        self.add_module(self.attribute, classifier[self.attribute])

    def forward(self, images):
        return getattr(self, self.attribute)(images.flatten(1)[:, :6])


def vgg_classifier():
    return nn.Sequential(nn.Linear(6, 5), nn.ReLU(), nn.Dropout(), nn.Linear(5, 1000))


NETS = {
    "resnet": (lambda: Net(fc=nn.Linear(6, 1000)), 6),
    "densenet": (lambda: Net(classifier=nn.Linear(6, 1000)), 6),
    "vgg": (lambda: Net(classifier=vgg_classifier()), 5),
    "convnext": (lambda: Net(classifier=nn.Sequential(nn.LayerNorm(6), nn.Linear(6, 1000))), 6),
    "vit": (lambda: Net(heads=nn.Sequential(nn.Linear(6, 1000))), 6),
    "swin": (lambda: Net(head=nn.Linear(6, 1000)), 6),
    "squeezenet": (lambda: Net(classifier=nn.Conv1d(6, 1000, 1)), None),
}


@pytest.fixture
def torchvision(monkeypatch):
    asked = []

    def get_model(name, **options):
        asked.append(options)
        return NETS[name][0]()

    package, models = ModuleType("torchvision"), ModuleType("torchvision.models")
    models.get_model = get_model
    monkeypatch.setitem(sys.modules, "torchvision", package)
    monkeypatch.setitem(sys.modules, "torchvision.models", models)
    return asked


@pytest.fixture
def timm(monkeypatch):
    asked = []

    def create_model(name, **options):
        asked.append((name, options))
        net = nn.Flatten()
        net.num_features = 12
        if name == "mobilenet":
            net.head_hidden_size = 48
        return net

    package = ModuleType("timm")
    package.create_model = create_model
    monkeypatch.setitem(sys.modules, "timm", package)
    return asked


@pytest.mark.parametrize("name", [name for name in NETS if NETS[name][1]])
def test_the_last_linear_layer_of_torchvision_is_taken_off(torchvision, name):
    net = torchvision_backbone(name, {"weights": "DEFAULT"})
    assert torchvision == [{"weights": "DEFAULT"}]
    assert net.dim == NETS[name][1]
    assert net(torch.randn(3, 3, 4, 4)).shape == (3, net.dim)
    assert all(value.shape[0] != 1000 for value in net.state_dict().values())


def test_a_network_without_a_linear_classifier_is_refused(torchvision):
    with pytest.raises(ValueError, match="squeezenet has no linear classifier"):
        torchvision_backbone("squeezenet")


def test_timm_makes_its_networks_without_a_classifier(timm):
    assert timm_backbone("resnet50", {"pretrained": True}).dim == 12
    assert timm == [("resnet50", {"num_classes": 0, "pretrained": True})]
    net = timm_backbone("mobilenet")
    assert net.dim == 48
    assert net(torch.randn(2, 3, 4, 4)).shape == (2, 48)


@pytest.mark.parametrize(
    ("name", "said"),
    [("torchvision", "built for your torch"), ("timm", r"longtail\[timm\]")],
)
def test_a_library_that_is_missing_is_named_with_what_to_install(monkeypatch, name, said):
    monkeypatch.setitem(sys.modules, name, None)
    with pytest.raises(ImportError, match=said):
        getattr(backbones, f"{name}_backbone")("resnet50")


@pytest.mark.parametrize("name", ["torchvision.models", "timm"])
def test_a_torchvision_that_does_not_fit_its_torch_is_explained(monkeypatch, name):
    def fails(wanted):
        assert wanted == name
        raise RuntimeError("operator torchvision::nms does not exist")

    monkeypatch.setattr("importlib.import_module", fails)
    with pytest.raises(ImportError, match=r"nms .*CPU .*resnet32"):
        getattr(backbones, f"{name.partition('.')[0]}_backbone")("resnet50")


def test_own_backbones_import_neither_library():
    import subprocess

    code = (
        "import sys; from longtail.engine.backbones import MLP; MLP(); "
        "sys.exit(bool({'torchvision', 'timm'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
