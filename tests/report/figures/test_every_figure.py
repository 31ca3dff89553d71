"""What holds for all figures: any names, any kind of array, many classes, a light file."""

import inspect
from xml.etree import ElementTree

import numpy as np
import pytest
import torch

import longtail as lt
from longtail.flows.tsne import tsne
from longtail.report import Chart, figures

EVIL = ["<script>alert(1)</script>", "🦊" * 3, "שלום עולם", "x" * 300, 'a"b&c', "\x00]]>"]
PUBLIC = [name for name, thing in vars(figures).items() if inspect.isfunction(thing)]


def drawn_of(scores, kind=lambda values: values):
    """Every figure of one set of scores, arrays made into the kind given."""
    counts, labels = kind(np.asarray(scores.counts)), kind(np.asarray(scores.labels))
    size, names = scores.num_classes, scores.classes
    source = np.random.default_rng(0)
    rows = source.normal(size=(len(scores), 8)) + np.asarray(scores.labels)[:, None]
    weight, centers = source.normal(size=(2, size, 8))
    features, weight, centers = kind(rows), kind(weight), kind(centers)
    given = lt.Scores(kind(np.asarray(scores.logits)), labels, counts, counts, names)
    two = {"before": given, "after": given.under(lt.Prior.uniform(size))}
    curve = lt.posthoc.tau_curve(given.logits, labels, counts)
    log = [{"epoch": k, "val_many": k / 300, "val_few": k / 900} for k in range(1, 301)]
    values = given_values(two, features, labels, weight, centers, size)
    norms = [lt.metrics.representations.weight_norms(each) for each in (weight, centers)]
    return {
        "cdnv_chart": figures.cdnv_chart(values["cdnv"]),
        "class_accuracy_chart": figures.class_accuracy_chart(
            values["recalls"], counts, classes=names
        ),
        "class_logits_chart": figures.class_logits_chart(
            lt.metrics.class_logits(given), counts, classes=names
        ),
        "counts_chart": figures.counts_chart(counts, classes=names),
        "displacement_chart": figures.displacement_chart(
            lt.metrics.representations.centroid_displacement(weight, centers), counts, classes=names
        ),
        "false_positives_chart": figures.false_positives_chart(values["wrong"], counts),
        "group_curves_chart": figures.group_curves_chart(log),
        "largest_distances_chart": figures.largest_distances_chart(
            values["distances"], labels, counts
        ),
        "margin_cdf_chart": figures.margin_cdf_chart(values["margins"], labels, counts),
        "margins_chart": figures.margins_chart(values["margins"], labels, counts),
        "mean_probability_chart": figures.mean_probability_chart(
            values["probabilities"], counts, classes=names
        ),
        "offsets_chart": figures.offsets_chart(
            {
                "trained": weight[:, 0],
                "empirical": lt.metrics.representations.class_offsets(weight, centers),
                "estimated": lt.metrics.representations.class_offsets(weight, weight),
            },
            counts,
            classes=names,
        ),
        "projections_chart": figures.projections_chart(weight, counts, classes=names),
        "reliability_chart": figures.reliability_chart(values["reliability"]),
        "tau_error_chart": figures.tau_error_chart({"a": curve, "b": curve}),
        "tau_groups_chart": figures.tau_groups_chart(curve, counts),
        "trained_tau_chart": figures.trained_tau_chart(
            {0.0: values["recalls"]["before"], 0.125: values["recalls"]["after"]}, counts
        ),
        "tsne_chart": figures.tsne_chart(
            tsne(features, labels, chosen=[0, 1, 2, 3]), classes=names
        ),
        "variance_chart": figures.variance_chart(
            values["variances"], counts, measure="trace", classes=names
        ),
        "weight_norms_chart": figures.weight_norms_chart(
            {"SGD": [(each, counts) for each in norms], "Adam": [(norms[0], counts)]}
        ),
    }


def given_values(two, features, labels, weight, centers, size):
    """What metrics make of the scores and features."""
    metrics, one = lt.metrics, np.ones(size)
    return {
        "cdnv": [metrics.representations.mean_cdnv(one, each) for each in (weight, centers)],
        "recalls": {n: metrics.recalls(s) for n, s in two.items()},
        "wrong": {n: metrics.false_positives(s) for n, s in two.items()},
        "probabilities": {n: s.probs().mean(0) for n, s in two.items()},
        "margins": {n: metrics.margins(s) for n, s in two.items()},
        "reliability": {n: metrics.reliability(s) for n, s in two.items()},
        "variances": metrics.representations.intra_class_variance(
            features, labels, size, measure="trace"
        ),
        "distances": metrics.representations.largest_intra_class_distances(features, labels, size),
    }


@pytest.fixture(scope="module", autouse=True)
def _needs_sklearn():
    pytest.importorskip("sklearn")


@pytest.fixture(scope="module")
def many():
    """A thousand classes."""
    source = torch.Generator().manual_seed(0)
    counts = torch.tensor(lt.data.exponential_counts(1280, 1000, 256))
    labels = torch.arange(1000).repeat(3)
    logits = torch.randn(3000, 1000, generator=source)
    logits[torch.arange(3000), labels] += 4
    return drawn_of(lt.Scores(logits, labels, counts, counts, [f"class {k}" for k in range(1000)]))


def test_every_public_figure_is_tried_here(many):
    assert sorted(many) == sorted(PUBLIC)


@pytest.mark.parametrize("name", PUBLIC)
def test_a_thousand_classes_stay_under_150_kilobytes(many, name):
    assert isinstance(many[name], Chart)
    assert len(many[name].encode()) < 150_000
    assert "nan" not in many[name].replace("no value", "")
    assert "no data" not in many[name]


def test_names_are_text_whatever_they_are(make_scores):
    names = [*EVIL, *(f"name {k}" for k in range(6))]
    charts = drawn_of(make_scores(per_class=6, classes=names))
    for chart in charts.values():
        assert "<script" not in chart
        root = ElementTree.fromstring(chart.standalone())
        for text in root.iter("{http://www.w3.org/2000/svg}text"):
            assert len(text.text) < 100
    whole = [name for name, chart in charts.items() if "x" * 300 in chart]
    assert {"class_accuracy_chart", "offsets_chart", "variance_chart", "tsne_chart"} <= set(whole)


def test_torch_and_numpy_give_the_same_drawing(scores):
    assert drawn_of(scores) == drawn_of(scores, torch.as_tensor)
