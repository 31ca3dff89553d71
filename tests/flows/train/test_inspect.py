"""What figures measure of a finished run, each against a re-derivation with loops."""

import numpy as np
import pytest
import torch

from longtail import Scores, heads
from longtail.engine import fit_head
from longtail.flows import tsne as tsne_flow
from longtail.flows.features import features as extract
from longtail.flows.reproduce.inspect import FEATURES, RUN_MEASURES, measure
from longtail.flows.train.model_file import load_model
from longtail.flows.train.reading import recipe_from
from longtail.flows.train.run_folder import read_log
from longtail.flows.train.train import train

SIZE = 4


def run_of(images, folder, **values):
    recipe = {
        "data": {"kind": "npz", "path": str(images), "validation_share": 0.2},
        "backbone": {"name": "mlp", "inputs": 192, "hidden": [16]},
        "optimizer": {"lr": 0.02},
        "epochs": 3,
        "batch_size": 32,
        "groups": "many=24,few=10",
    }
    train(recipe_from(recipe | values), folder)
    return folder


@pytest.fixture(scope="module")
def run(images, tmp_path_factory):
    return run_of(images, tmp_path_factory.mktemp("runs") / "ce")


@pytest.fixture(scope="module")
def offset_run(images, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "eo"
    data = {"kind": "npz", "path": str(images), "validation_share": 0}
    parts = {"head": "estimated_offset", "loss": "estimated_offset"}
    return run_of(images, folder, data=data, **parts)


@pytest.fixture(scope="module")
def features(run, images, tmp_path_factory):
    return extract(run, images, tmp_path_factory.mktemp("features") / FEATURES)


@pytest.fixture(scope="module")
def values(run, features):
    pytest.importorskip("sklearn")
    return measure(run, [*RUN_MEASURES, "recall"], features=features)


@pytest.fixture(scope="module")
def rows(features):
    """The training features of each class, as lists."""
    part = features.part("train")
    return [np.asarray(part.features[part.labels == k], np.float64) for k in range(SIZE)]


def means(rows):
    return [each.mean(axis=0) for each in rows]


def test_features_are_computed_from_model_and_images_or_read_where_they_lie(
    run, features, images, tmp_path
):
    first = measure(run, ["total_variance"])["total_variance"]
    assert sorted(each.name for each in run.iterdir() if "features" in each.name) == []
    moved = tmp_path / "elsewhere.npz"
    moved.write_bytes(images.read_bytes())
    assert measure(run, ["total_variance"], data=moved)["total_variance"] == pytest.approx(first)
    part = features.part("train")
    beside = tmp_path / "run"
    beside.mkdir()
    extract(run, images, beside / FEATURES)
    assert measure(beside, ["total_variance"])["total_variance"] == pytest.approx(first)
    assert measure(beside, ["counts"])["counts"].tolist() == np.bincount(part.labels).tolist()


def test_the_variance_is_of_the_widest_direction_and_the_total_of_all(values, rows):
    for label, own in enumerate(rows):
        apart = own - own.mean(axis=0)
        covariance = sum(np.outer(row, row) for row in apart) / len(own)
        largest = np.linalg.eigvalsh(covariance).max()
        assert values["intra_class_variance"][label] == pytest.approx(largest, rel=1e-6)
        assert values["total_variance"][label] == pytest.approx(np.trace(covariance), rel=1e-6)


def naive_cdnv(rows, centers):
    spread = [((own - own.mean(axis=0)) ** 2).sum(axis=1).mean() for own in rows]
    pairs = [
        (spread[a] + spread[b]) / (2 * ((centers[a] - centers[b]) ** 2).sum())
        for a in range(SIZE)
        for b in range(SIZE)
        if a != b
    ]
    return sum(pairs) / len(pairs)


def test_cdnv_is_the_mean_over_pairs_about_class_means_and_learned_centroids(
    values, rows, features
):
    assert values["cdnv"] == pytest.approx(naive_cdnv(rows, means(rows)), rel=1e-6)
    part = features.part("train")
    head = heads.LearnedNCM(features.dim, SIZE)
    centers = []
    fit_head(
        head,
        part.features,
        part.labels,
        progress=lambda _: centers.append(head.centers.detach().numpy().copy()),
    )
    curve = [naive_cdnv(rows, each) for each in (means(rows), *centers)]
    assert values["cdnv_curve"] == pytest.approx(curve, rel=1e-4)
    moved = [np.linalg.norm(centers[-1][k] - means(rows)[k]) for k in range(SIZE)]
    assert values["centroid_displacement"] == pytest.approx(moved, rel=1e-4)


def test_projections_are_learned_about_fixed_means_and_the_last_tenth_varies_most(
    values, features, rows
):
    shares = values["projections"]
    assert shares.shape == (SIZE, features.dim)
    tenth = max(1, round(features.dim / 10))
    expected = [sum(row[-tenth:]) / tenth for row in shares]
    assert values["projection_weight"] == pytest.approx(expected)
    part = features.part("train")
    head = heads.MetricNCM(features.dim, SIZE, metric="eigenbasis", learn_centers=False)
    fit_head(head, part.features, part.labels, sgd=heads.LearnedNCM.sgd)
    assert shares == pytest.approx(torch.sigmoid(head.projection).detach().numpy())
    assert head.centers.detach().numpy() == pytest.approx(np.array(means(rows)), rel=1e-4)


def test_distances_are_to_the_farthest_of_the_class_over_the_largest_norm(values, features, rows):
    norm = max(np.linalg.norm(row) for own in rows for row in own)
    farthest = [
        np.mean([max(np.linalg.norm(a - b) for b in own) for a in own]) / norm for own in rows
    ]
    assert values["largest_distance"] == pytest.approx(farthest, rel=1e-5)
    labels = np.sort(features.part("train").labels)
    assert values["largest_distances"][labels == 2].mean() == pytest.approx(farthest[2], rel=1e-5)


def test_offsets_of_a_linear_layer_are_its_bias_and_half_of_weight_times_mean(run, values, rows):
    head = load_model(run).model.head
    weight = head.weight.detach().double().numpy()
    offsets = [0.5 * weight[k] @ means(rows)[k] for k in range(SIZE)]
    assert values["bias"] == pytest.approx(head.bias.detach().numpy())
    assert values["empirical_offset"] == pytest.approx(offsets, rel=1e-5)
    middle = sum(offsets) / SIZE
    spread = (sum((each - middle) ** 2 for each in offsets) / SIZE) ** 0.5
    assert values["offset_spread"] == pytest.approx(spread, rel=1e-5)
    norms = [sum(w**2 for w in row) ** 0.5 for row in weight]
    assert values["weight_norm"] == pytest.approx(norms)
    assert "estimated_offset" not in values
    assert "offset_gap" not in values


def test_offsets_of_learned_centres_are_estimated_ones_and_such_a_head_has_no_bias(offset_run):
    names = ["bias", "estimated_offset", "empirical_offset", "offset_gap", "rise_time"]
    values = measure(offset_run, names)
    head = load_model(offset_run).model.head
    weight, centers = head.weight.detach().double(), head.centers.double()
    expected = [float(0.5 * weight[k] @ centers[k]) for k in range(SIZE)]
    assert values["estimated_offset"] == pytest.approx(expected, rel=1e-5)
    gap = values["estimated_offset"] - values["empirical_offset"]
    assert values["offset_gap"] == pytest.approx(gap)
    assert "bias" not in values
    assert "rise_time" not in values  # it has no validation part


def test_a_head_that_is_not_linear_has_norms_and_no_offsets(images, tmp_path):
    run = run_of(images, tmp_path / "cosine", head="cosine")
    offsets = ["bias", "empirical_offset", "estimated_offset", "offset_gap", "offset_spread"]
    assert set(measure(run, [*offsets, "weight_norm"])) == {"weight_norm"}


def test_rise_time_is_when_a_group_has_half_of_its_last_accuracy(run, values):
    log = [row for row in read_log(run) if row["val_few"] is not None]
    assert len(values["rise_time"]) == 3
    for at, group in enumerate(["many", "medium", "few"]):
        last = log[-1][f"val_{group}"]
        first = next(row for row in log if row[f"val_{group}"] >= last / 2)
        assert values["rise_time"][at] == first["epoch"] / 3
    assert values["group_curves"].shape == (3, 4)


def test_tsne_has_a_row_a_sample_and_can_be_drawn_again(values, features):
    rows = values["tsne"]
    made = tsne_flow.TsneMap.of(rows, values["counts"])
    assert set(made.labels) == {0, 1, 2}  # the rarest has fewer than ten samples
    assert list(made.sizes) == [int(values["counts"][k]) for k in made.labels]
    assert made.rows.tolist() == rows.tolist()


def test_without_scikit_learn_there_is_no_tsne_and_all_else_is(run, features, monkeypatch):
    def absent(*_, **__):
        raise ImportError

    monkeypatch.setattr("longtail.flows.reproduce.inspect.tsne", absent)
    assert set(measure(run, ["tsne", "cdnv"], features=features)) == {"cdnv"}


def test_scores_are_those_of_the_test_part_as_trained_unless_others_are_given(run, values):
    scores = Scores.load(run / "scores-test.safetensors")
    right = np.asarray(scores.predict()) == np.asarray(scores.labels)
    expected = [100 * right[np.asarray(scores.labels) == k].mean() for k in range(SIZE)]
    assert values["recall"] == pytest.approx(expected)
    moved = scores.under([1, 1, 1, 10_000])
    assert measure(run, ["recall"], scores=moved)["recall"].tolist() != expected


def test_features_alone_need_no_run_and_unknown_names_are_told(features, tmp_path):
    alone = measure(tmp_path / "none", ["cdnv"], features=features)
    assert alone["cdnv"] > 0
    with pytest.raises(ValueError, match=r"'sparkle'.*cdnv"):
        measure(tmp_path, ["sparkle"])
