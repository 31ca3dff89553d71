"""Figures of arrays: features, weights, centroids, counts and logs."""

import builtins

import numpy as np
import pytest
import torch

import longtail as lt
from longtail.flows.figure_curves import density, places_for, running_mean
from longtail.flows.tsne import tsne
from longtail.report import figures

SOURCE = np.random.default_rng(0)
COUNTS = np.array([30, 900, 8, 200])
LABELS = np.repeat(np.arange(4), 15)
FEATURES = SOURCE.normal(size=(60, 5)) + 3 * np.eye(5)[LABELS] * 2
WEIGHT = SOURCE.normal(size=(4, 5))
ORDER = [1, 3, 0, 2]


def tooltips(chart, read, start):
    tips = [tip for tip in read(chart).tooltips() if tip.startswith(start)]
    return [float(tip.rpartition(": ")[2].replace("−", "-").replace(",", "")) for tip in tips]


def test_counts_run_from_the_most_frequent_and_zero_is_a_gap(read):
    assert tooltips(figures.counts_chart(COUNTS), read, "samples") == [900, 200, 30, 8]
    assert tooltips(figures.counts_chart([5, 0, 7]), read, "samples") == [7, 5]
    both = read(figures.counts_chart({"train": COUNTS, "test": [15] * 4}))
    assert {"train", "test", "many: above 100", "few: below 20"} <= set(both.texts)
    assert "many: above 100" not in read(figures.counts_chart([50, 3])).texts


def test_offsets_stand_in_the_order_of_frequency_under_their_names(read):
    means = lt.metrics.representations.class_means(FEATURES, LABELS, 4)
    halves = lt.metrics.representations.class_offsets(WEIGHT, means)
    chart = figures.offsets_chart({"trained": [1, 2, 3, 4], "empirical": halves}, COUNTS)
    assert tooltips(chart, read, "trained") == [2, 4, 1, 3]
    expected = [0.5 * sum(w * m for w, m in zip(WEIGHT[k], means[k], strict=True)) for k in ORDER]
    assert tooltips(chart, read, "empirical") == pytest.approx(expected, rel=1e-3)
    with pytest.raises(ValueError, match="got none"):
        figures.offsets_chart({}, COUNTS)


def test_weight_norms_of_several_runs_are_averaged_in_a_band(read):
    given = np.asarray(lt.metrics.representations.weight_norms(WEIGHT))
    runs = {"SGD": [(given, COUNTS), (3 * given, COUNTS)], "Adam": [(given, COUNTS)]}
    chart = figures.weight_norms_chart(runs)
    norms = [sum(w**2 for w in WEIGHT[k]) ** 0.5 for k in ORDER]
    assert tooltips(chart, read, "Adam") == pytest.approx(norms, rel=1e-3)
    assert tooltips(chart, read, "SGD") == pytest.approx([2 * norm for norm in norms], rel=1e-3)
    assert len(read(chart).of_class("band")) == 1


def test_group_curves_leave_out_what_the_log_does_not_know(read):
    log = [
        {"epoch": 1.0, "val_many": 0.5, "val_few": None},
        {"epoch": 2.0, "val_many": 0.6, "val_few": 0.1},
        {"epoch": 3.0, "train_loss": 1.0},
    ]
    drawn = read(figures.group_curves_chart(log))
    assert {"many-shot", "few-shot"} <= set(drawn.texts)
    assert "medium-shot" not in drawn.texts
    assert tooltips(figures.group_curves_chart(log), read, "few") == [10]
    with pytest.raises(ValueError, match="train with a validation part"):
        figures.group_curves_chart([{"epoch": 1.0}])


@pytest.mark.parametrize("measure", ["largest_eigenvalue", "trace", "mean_distance"])
def test_variance_is_that_of_the_metric_over_the_training_count(read, measure):
    spread = np.asarray(
        lt.metrics.representations.intra_class_variance(FEATURES, LABELS, 4, measure=measure)
    )
    chart = figures.variance_chart(spread, COUNTS, measure=measure)
    assert tooltips(chart, read, "each dot") == pytest.approx(spread[ORDER], rel=1e-3)
    x = [x for x, _ in read(chart).marks()]
    assert x == sorted(x, reverse=True)


def test_a_class_without_training_samples_or_without_spread_is_left_out(read):
    spread = lt.metrics.representations.intra_class_variance(FEATURES[:46], LABELS[:46], 4)
    chart = figures.variance_chart(spread, [30, 0, 8, 200])
    assert len(read(chart).marks()) == 2


def test_displacement_is_how_far_each_centroid_moved(read):
    moved = WEIGHT + SOURCE.normal(size=WEIGHT.shape)
    distances = lt.metrics.representations.centroid_displacement(moved, WEIGHT)
    chart = figures.displacement_chart(distances, COUNTS, classes=list("abcd"))
    expected = [np.linalg.norm(moved[k] - WEIGHT[k]) for k in ORDER]
    assert tooltips(chart, read, "each dot") == pytest.approx(expected, rel=1e-3)
    assert [tip.split(", ")[-1][0] for tip in read(chart).tooltips()] == ["b", "d", "a", "c"]


def test_cdnv_is_the_mean_over_pairs_after_each_epoch(read):
    variances = np.asarray(
        lt.metrics.representations.intra_class_variance(FEATURES, LABELS, 4, measure="trace")
    )
    epochs = [WEIGHT, 2 * WEIGHT]
    values = [lt.metrics.representations.mean_cdnv(variances, centers) for centers in epochs]
    shown = tooltips(figures.cdnv_chart(values, epochs=[5, 10]), read, "learned")
    for centers, value in zip(epochs, shown, strict=True):
        pairs = [
            (variances[a] + variances[b]) / (2 * np.sum((centers[a] - centers[b]) ** 2))
            for a in range(4)
            for b in range(4)
            if a != b
        ]
        assert value == pytest.approx(np.mean(pairs), rel=1e-3)


def test_projections_stand_in_the_order_of_frequency(read):
    shares = SOURCE.uniform(size=(4, 3))
    drawn = read(figures.projections_chart(shares, COUNTS, classes=["a", "b", "c", "d"]))
    assert [tip.split(",")[0] for tip in drawn.tooltips()[::3]] == ["b", "d", "a", "c"]
    shown = [float(tip.rpartition(": ")[2]) for tip in drawn.tooltips()]
    assert shown == pytest.approx(shares[ORDER].flatten(), rel=1e-3)
    with pytest.raises(ValueError, match=r"must have shape \(4, D\)"):
        figures.projections_chart(shares[:3], COUNTS)


def test_more_projections_than_fit_are_means_of_neighbours(read):
    shares = SOURCE.uniform(size=(100, 64))
    drawn = read(figures.projections_chart(shares, range(100, 0, -1)))
    assert len(drawn.of_class("mark")) == 20 * 16
    first = float(drawn.tooltips()[0].rpartition(": ")[2])
    assert first == pytest.approx(shares[:5, :4].mean(), rel=1e-3)
    assert drawn.tooltips()[-1].startswith("classes 96–100, 61–64: ")


def test_largest_distances_are_drawn_for_each_group_and_representation(read):
    named = {"as is": FEATURES, "halved": FEATURES / 2}
    distances = {
        name: lt.metrics.representations.largest_intra_class_distances(rows, LABELS, 4)
        for name, rows in named.items()
    }
    drawn = read(figures.largest_distances_chart(distances, LABELS, COUNTS))
    assert len(drawn.of_class("line")) == 6
    shapes = [item.get("d") for item in drawn.of_class("line")]
    assert shapes[0] == shapes[1]  # distances are divided by the largest norm
    assert "many: 2 classes, 30 samples" in drawn.texts


def test_tsne_shows_the_chosen_classes_and_is_the_same_every_time(read):
    pytest.importorskip("sklearn")
    charts = [
        figures.tsne_chart(tsne(rows, LABELS, chosen=[2, 0], most=10), classes=list("abcd"))
        for rows in (FEATURES, torch.tensor(FEATURES))
    ]
    assert charts[0] == charts[1]
    drawn = read(charts[0])
    assert {"c (15)", "a (15)"} <= set(drawn.texts)
    assert len(drawn.marks()) == 20
    places = {}
    for tip, at in zip(drawn.tooltips(), drawn.marks(), strict=True):
        places.setdefault(tip, []).append(at)
    middles = [np.mean(at, axis=0) for at in places.values()]
    own = [np.linalg.norm(np.std(at, axis=0)) for at in places.values()]
    assert np.linalg.norm(middles[0] - middles[1]) > max(own)


def test_tsne_says_what_it_cannot_do(monkeypatch):
    with pytest.raises(ValueError, match="class 9 has no samples"):
        tsne(FEATURES, LABELS, chosen=[9])
    with pytest.raises(ValueError, match="no class has 10 samples"):
        tsne(FEATURES[:3], [0, 1, 2])
    real = builtins.__import__

    def refuse(name, *rest, **options):
        if name.startswith("sklearn"):
            raise ImportError(name)
        return real(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", refuse)
    with pytest.raises(ImportError, match=r"pip install longtail\[sklearn\]"):
        tsne(FEATURES, LABELS)


def test_numbers_of_another_length_than_the_counts_are_refused():
    with pytest.raises(ValueError, match="each of 4 classes"):
        figures.offsets_chart([1, 2], COUNTS)
    with pytest.raises(ValueError, match="each of 60 labels"):
        figures.margins_chart([1.0, 2.0], LABELS, COUNTS)
    with pytest.raises(ValueError, match="measure must be"):
        figures.variance_chart([1.0] * 4, COUNTS, measure="width")
    with pytest.raises(ValueError, match="2 class names but 4 counts"):
        figures.counts_chart(COUNTS, classes=["a", "b"])


def test_a_density_has_area_one_over_what_it_shows():
    values = SOURCE.normal(size=5000)
    places = places_for([values])
    step = places[1] - places[0]
    assert density(values, places).sum() * step == pytest.approx(1, abs=0.005)
    expected = np.exp(-(places**2) / 2) / np.sqrt(2 * np.pi)
    assert np.abs(density(values, places) - expected).max() < 0.05
    assert np.isnan(density(values[:0], places)).all()


def test_the_frame_leaves_out_a_few_outliers_but_holds_small_sets_whole():
    values = np.append(np.linspace(0, 1, 2000), [1e9, np.inf, np.nan])
    assert places_for([values])[-1] < 1.1
    assert places_for([np.array([-3.0, 5.0])])[0] < -3
    assert np.isfinite(places_for([np.array([])])).all()


def test_a_running_mean_is_that_of_the_neighbours():
    values = SOURCE.normal(size=50)
    values[[4, 5, 6, 30]] = np.nan
    found = running_mean(values, 3)
    for k in range(50):
        near = [v for v in values[max(k - 1, 0) : k + 2] if not np.isnan(v)]
        expected = np.mean(near) if near else np.nan
        np.testing.assert_allclose(found[k], expected)


def test_accuracy_against_the_tau_of_a_loss_is_a_line_for_all_and_each_group(read):
    recalls = {0.5: [0.2, 0.9, 0.6, np.nan], 0.0: [0.4, 0.8, 0.0, 0.5]}
    chart = figures.trained_tau_chart(recalls, COUNTS)  # medium, many, few, many
    assert tooltips(chart, read, "all") == pytest.approx([42.5, 170 / 3], rel=1e-3)
    assert tooltips(chart, read, "many") == pytest.approx([65, 90])
    assert tooltips(chart, read, "medium") == pytest.approx([40, 20])
    assert tooltips(chart, read, "few") == pytest.approx([0, 60])


def test_the_tau_of_eq_9_is_that_of_the_loss_and_the_prediction_stays_the_nearest_centre():
    """NCM fig. 5: learned NCM trained with several τ, here against the loss with loops."""
    features = torch.tensor(FEATURES, dtype=torch.float64)
    labels = torch.tensor(LABELS)[: 4 * 15 - 10]
    head = lt.heads.LearnedNCM(5, 4).double()
    head.set_moments(lt.heads.class_moments(features[:50], labels, 4))
    counts = [int((labels == k).sum()) for k in range(4)]
    for tau in (0.0, 0.125, 0.5):
        loss = lt.losses.LogitAdjusted(counts, tau=tau)(head(features[:50]), labels)
        terms = []
        for row, y in zip(features[:50], labels.tolist(), strict=True):
            away = [float(torch.linalg.norm(row - center)) for center in head.centers.detach()]
            parts = [np.exp(-d / 2 + tau * np.log(n)) for d, n in zip(away, counts, strict=True)]
            terms.append(-np.log(parts[y] / sum(parts)))
        assert loss.item() == pytest.approx(np.mean(terms))
    assert (
        head(features).argmax(1).tolist() == torch.cdist(features, head.centers).argmin(1).tolist()
    )
