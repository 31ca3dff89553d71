"""The picture of a measure: which figure it is, and that it shows what was measured."""

import numpy as np
import pytest

from longtail.flows.reproduce.inspect import RUN_MEASURES
from longtail.flows.score_measures import DRAWN_OF, SCORE_MEASURES
from longtail.recipes.experiments import EXPERIMENTS, MEASURES
from longtail.report.figures.measured import DRAWINGS, measured_chart

COUNTS = [30, 900, 8, 200]
ORDER = [1, 3, 0, 2]
SOURCE = np.random.default_rng(0)
LABELS = np.repeat(np.arange(4), 15)
BY_SCORES = {
    *("accuracy", "balanced_error", "error", "geometric_mean"),
    *("ece", "classwise_ece", "brier", "nll"),
    *("setting", "statistic", "property"),  # no result
}


def measured(seed=0):
    """Something for every name."""
    source = np.random.default_rng(seed)
    names = {*DRAWINGS, *(name for names in DRAWN_OF.values() for name in names)}
    return {name: source.uniform(0.1, 0.9, 4) for name in names} | {
        "cdnv": 0.4,
        "labels": LABELS,
        "margins": source.normal(size=60),
        "largest_distances": source.uniform(size=sum(COUNTS)),
        "class_logits": source.normal(size=(4, 4)),
        "projections": source.uniform(size=(4, 6)),
        "cdnv_curve": source.uniform(size=5),
        "group_curves": np.column_stack([[1, 2, 3], source.uniform(size=(3, 3))]),
        "reliability": source.uniform(0.1, 0.9, (3, 20)),
        "tsne": np.column_stack([source.normal(size=(60, 2)), LABELS]),
    }


def shown(chart, read, start):
    tips = [tip for tip in read(chart).tooltips() if tip.startswith(start)]
    return [float(tip.rpartition(": ")[2].replace("−", "-")) for tip in tips]


def test_every_measure_is_known_and_all_that_are_curves_have_a_picture():
    assert set(MEASURES) <= {*SCORE_MEASURES, *RUN_MEASURES, *BY_SCORES}
    assert {name for name, each in MEASURES.items() if each.per != "model"} <= set(DRAWINGS)
    drawn_of = {name for names in DRAWN_OF.values() for name in names}
    assert drawn_of <= {*SCORE_MEASURES, *RUN_MEASURES}
    beside = {name for each in EXPERIMENTS.values() for name in each.draws}
    assert beside <= DRAWINGS.keys() & {*RUN_MEASURES, "reliability"}


@pytest.mark.parametrize("measure", sorted(DRAWINGS))
def test_every_picture_is_drawn_of_one_row_and_of_several(measure, read):
    one = measured_chart(measure, {"CE": [measured()]}, COUNTS)
    two = measured_chart(measure, {"CE": [measured()], "ours": [measured(1)]}, COUNTS)
    for chart in (one, two):
        assert "no data" not in chart
        assert read(chart).texts
    assert len(two) > len(one)
    assert measured_chart(measure, {"CE": [{}], "ours": []}, COUNTS) is None


@pytest.mark.parametrize(
    "measure", ["bias", "empirical_offset", "intra_class_variance", "centroid_displacement"]
)
def test_one_number_a_class_stands_in_the_order_of_frequency(measure, read):
    values = measured()
    start = "CE" if "offset" in measure or measure == "bias" else "each dot"
    chart = measured_chart(measure, {"CE": [values]}, COUNTS)
    assert shown(chart, read, start) == pytest.approx(values[measure][ORDER], rel=1e-3)


def test_shares_and_percent_are_told_apart(read):
    values = measured()
    rows = {"CE": [values | {"recall": np.array([50.0, 90, 10, 70])}]}
    assert shown(measured_chart("recall", rows, COUNTS), read, "CE") == [90, 70, 50, 10]
    chart = measured_chart("mean_probability", rows, COUNTS)
    percent = 100 * values["mean_probability"][ORDER]
    assert shown(chart, read, "CE") == pytest.approx(percent, rel=1e-3)
    prior = [100 * COUNTS[k] / sum(COUNTS) for k in ORDER]
    assert shown(chart, read, "training prior") == pytest.approx(prior, rel=1e-3)
    assert "uniform: 25 %" in read(chart).texts


def test_norms_are_averaged_over_seeds_and_others_are_of_the_first(read):
    first, second = measured(), measured(1)
    norms = measured_chart("weight_norm", {"SGD": [first, second]}, COUNTS)
    mean = (first["weight_norm"] + second["weight_norm"])[ORDER] / 2
    assert shown(norms, read, "SGD") == pytest.approx(mean, rel=1e-3)
    assert len(read(norms).of_class("band")) == 1
    bias = measured_chart("bias", {"SGD": [first, second]}, COUNTS)
    assert shown(bias, read, "SGD") == pytest.approx(first["bias"][ORDER], rel=1e-3)


def test_estimated_offsets_stand_beside_the_empirical_ones_where_there_are_some(read):
    plain = measured()
    del plain["estimated_offset"]
    chart = measured_chart("estimated_offset", {"CE": [plain], "EO": [measured(1)]}, COUNTS)
    assert {"EO, empirical", "EO, estimated"} <= set(read(chart).texts)
    assert "CE, empirical" not in read(chart).texts


def test_densities_take_the_groups_that_a_paper_has():
    groups = {"head": [False, True, False, False], "rest": [True, False, True, True]}
    for measure in ("margin_std", "margin_mean"):
        chart = measured_chart(measure, {"CE": [measured()]}, COUNTS, groups=groups)
        assert "head: 1 class, 15 samples" in chart
        assert "rest: 3 classes, 45 samples" in chart
    chart = measured_chart("largest_distance", {"CE": [measured()]}, COUNTS, groups=groups)
    assert "head: 1 class, 900 samples" in chart


def test_a_panel_a_row_has_its_name_and_what_was_not_evaluated_is_a_gap(read):
    values = measured()
    values["group_curves"][0, 3] = np.nan
    rows = {"plain": [values], "ours": [measured(1)]}
    texts = read(measured_chart("rise_time", rows, COUNTS)).texts
    assert {"plain", "ours", "many-shot", "few-shot"} <= set(texts)


def test_what_has_no_picture_has_none():
    assert measured_chart("accuracy", {"CE": [{"accuracy": 43.0}]}, COUNTS) is None
