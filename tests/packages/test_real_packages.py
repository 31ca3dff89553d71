"""timm, torchvision, datasets, LightGBM and JAX themselves, not stand-ins for them."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import longtail as lt
from longtail.engine.backbones import timm_backbone, torchvision_backbone
from longtail.images import labels_of
from longtail.integrations.hf import from_hugging_face
from longtail.integrations.sklearn import LogitAdjustedClassifier

IMAGES = torch.rand(2, 3, 64, 64)


@pytest.mark.parametrize("name", ["resnet18", "mobilenet_v3_small", "vit_b_16", "convnext_tiny"])
def test_a_network_of_torchvision_is_a_backbone(name):
    pytest.importorskip("torchvision", exc_type=ImportError)
    size = 224 if name.startswith("vit") else 64
    network = torchvision_backbone(name).eval()
    assert network(torch.rand(2, 3, size, size)).shape == (2, network.dim)


@pytest.mark.parametrize("name", ["resnet18", "mobilenetv3_small_050"])
def test_a_network_of_timm_is_a_backbone_whose_features_a_head_is_fitted_on(name):
    pytest.importorskip("timm")
    network = timm_backbone(name).eval()
    with torch.no_grad():
        features = network(IMAGES)
    assert features.shape == (2, network.dim)
    head = lt.heads.Linear(network.dim, 2)
    lt.fit_head(head, features, torch.tensor([0, 1]), solver="lbfgs")
    assert head(features).argmax(dim=1).tolist() == [0, 1]


def test_a_loss_trains_a_model_of_timm():
    timm = pytest.importorskip("timm")
    optim = pytest.importorskip("timm.optim")
    torch.manual_seed(0)
    model = timm.create_model("resnet18", num_classes=3)
    optimizer = optim.create_optimizer_v2(model, "adamw", lr=1e-3)
    loss, labels = lt.losses.LogitAdjusted([70, 25, 5]), torch.tensor([0, 2])
    before = loss(model(IMAGES), labels)
    for _ in range(10):
        optimizer.zero_grad()
        loss(model(IMAGES), labels).backward()
        optimizer.step()
    assert loss(model(IMAGES), labels) < before


def test_labels_of_sets_of_torchvision_are_read_without_decoding(tmp_path):
    datasets = pytest.importorskip("torchvision.datasets")
    for name, count in (("cat", 3), ("dog", 2)):
        (tmp_path / name).mkdir()
        for at in range(count):
            (tmp_path / name / f"{at}.png").write_bytes(b"no picture")
    folder = datasets.ImageFolder(tmp_path)
    assert labels_of(folder).tolist() == folder.targets == [0, 0, 0, 1, 1]
    assert labels_of(torch.utils.data.Subset(folder, [4, 0])).tolist() == [1, 0]


def test_rows_of_datasets_are_labelled_images():
    datasets = pytest.importorskip("datasets")
    images = pytest.importorskip("PIL.Image")
    pictures = [images.fromarray(np.full((8, 8, 3), value, np.uint8)) for value in (0, 90, 250)]
    features = datasets.Features(
        {"image": datasets.Image(), "label": datasets.ClassLabel(names=["cat", "dog"])}
    )
    rows = datasets.Dataset.from_dict({"image": pictures, "label": [1, 0, 1]}, features=features)
    labelled = from_hugging_face(rows)
    assert labelled.classes == ("cat", "dog")
    assert labelled.labels.tolist() == [1, 0, 1]
    picture, label = labelled[2]
    assert (picture.shape, int(picture.max()), label) == ((3, 8, 8), 250, 1)
    assert labelled.subset([2, 1]).labels.tolist() == [1, 0]


@pytest.mark.parametrize("options", [{}, {"class_weight": "balanced"}, {"is_unbalance": True}])
def test_a_classifier_of_lightgbm_is_moved_to_the_uniform_prior(options):
    lightgbm = pytest.importorskip("lightgbm")
    random = np.random.default_rng(0)
    labels = np.repeat(np.arange(3), [600, 150, 40])
    rows = random.normal(size=(len(labels), 5)) + 1.2 * np.eye(3, 5)[labels]
    test = np.repeat(np.arange(3), 300)
    others = random.normal(size=(900, 5)) + 1.2 * np.eye(3, 5)[test]
    model = lightgbm.LGBMClassifier(n_estimators=20, verbose=-1, n_jobs=1, **options)
    plain = model.fit(rows, labels).predict(others)
    moved = LogitAdjustedClassifier(model, random_state=0).fit(rows, labels).predict(others)
    balanced = [np.mean([(p[test == c] == c).mean() for c in range(3)]) for p in (plain, moved)]
    assert balanced[1] > balanced[0] - 0.02
    assert balanced[1] > 0.6


def test_jax_goes_through_the_scores_half_as_jax():
    jax = pytest.importorskip("jax")
    rows = np.random.default_rng(0).normal(size=(6, 3))
    scores = lt.Scores(jax.numpy.asarray(rows), labels=[0, 1, 2, 0, 1, 2], carried=[70, 25, 5])
    adjusted = lt.posthoc.LogitAdjustment([70, 25, 5])(scores)
    for array in (adjusted.logits, adjusted.probs(), adjusted.predict(), scores.take([1]).logits):
        assert isinstance(array, jax.Array)
    same = lt.Scores(rows, labels=[0, 1, 2, 0, 1, 2], carried=[70, 25, 5]).under([1, 1, 1])
    np.testing.assert_allclose(adjusted.probs(), same.probs(), atol=1e-6)
    assert lt.metrics.accuracy(adjusted) == lt.metrics.accuracy(same)
    sets = lt.posthoc.ConformalSets.fit(adjusted, coverage=0.6)
    for costs in ([1, 2, 5], [[0, 1, 2], [3, 0, 4], [5, 6, 0]]):
        decided = adjusted.decide(costs, abstain=0.9)
        assert isinstance(decided, jax.Array)
        assert decided.tolist() == same.decide(costs, abstain=0.9).tolist()
    assert isinstance(sets(adjusted), jax.Array)
    assert sets(adjusted).shape == (6, 3)


def test_a_second_type_checker_knows_every_door_and_no_other(tmp_path):
    checker = Path(sys.executable).with_name("basedpyright")
    if not checker.is_file():
        pytest.skip("basedpyright is not installed")
    written = (Path(__file__).parent.parent / "typing/client.py").read_text()
    lines = [line.partition("  # type: ignore")[0] for line in written.splitlines()]
    client = tmp_path / "client.py"
    client.write_text("\n".join(lines))
    command = [checker, "--pythonpath", sys.executable, "--level", "error", "--outputjson", client]
    checked = subprocess.run(command, capture_output=True, check=False, cwd=tmp_path)
    errors = json.loads(checked.stdout)["generalDiagnostics"]
    assert [lines[error["range"]["start"]["line"]].strip() for error in errors] == ["lt.nope"]
