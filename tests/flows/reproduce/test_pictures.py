"""Pictures of an experiment: of each measure once, of a figure's own numbers, and what is kept."""

import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from longtail.flows.reproduce.experiment import Cell, Column, Trend
from longtail.flows.reproduce.kept import Kept
from longtail.flows.reproduce.result import reproduced
from longtail.flows.reproduce.running import _rounded
from longtail.flows.reproduce.ways import measures_asked
from longtail.metrics import margins, reliability
from longtail.report.page import Footer, render_page
from longtail.report.pages.reproduce import reproduce_page
from longtail.report.pages.reproduce_figures import measure_figures, number_figures

sys.path.insert(0, str(Path(__file__).parent))
from worlds import CE, COUNTS, LA, experiment, kept

FEATURES = {
    "weight_norm": [6.0, 5, 4, 3, 2, 1],
    "intra_class_variance": [1.0, 2, 3, 4, 5, 6],
    "tsne": [[0.0, 1.0, 0], [1.0, 0.5, 0], [3.0, 3.0, 5], [3.0, 4.0, 5]],
    "cdnv": 0.5,
}


def made(one, numbers=FEATURES):
    strengths = {CE: 1.0, LA: 3.0}

    def kept_of(run, seed):
        return replace(kept(strengths[run]), numbers=numbers) if seed == 0 else None

    return reproduced(one, kept_of, lambda inspect: None, quick=False)


def test_columns_of_groups_are_one_picture_and_its_values_those_of_the_scores():
    columns = tuple(Column(name, "margin_std", group=name) for name in ("many", "medium", "few"))
    (picture,) = made(experiment(columns, paper="ELM")).pictures
    assert list(picture.rows) == ["a", "b"]
    scores = kept(3.0).scores
    assert picture.rows["b"][0]["margins"] == pytest.approx(margins(scores))
    assert picture.rows["b"][0]["labels"].tolist() == scores.labels.tolist()
    assert picture.counts.tolist() == COUNTS.tolist()
    assert {name: mask.sum() for name, mask in picture.groups.items()} == {
        "many": 2,
        "medium": 2,
        "few": 2,
    }
    (figure,) = measure_figures(made(experiment(columns, paper="ELM")))
    assert figure.caption.startswith("Standard deviation")
    assert "many: 2 classes, 100 samples" in figure.svg


def test_each_set_of_data_has_a_picture_of_its_own():
    columns = tuple(Column(f"Imba {d}", "intra_class_variance", d) for d in ("10", "100"))
    cells = (Cell("a", "10", CE), Cell("a", "100", LA), Cell("b", "100", CE))
    drawn = made(experiment(columns, cells=cells)).pictures
    assert [(each.column, list(each.rows)) for each in drawn] == [
        ("Imba 10", ["a"]),
        ("Imba 100", ["a", "b"]),
    ]


def test_an_experiment_may_draw_more_than_its_columns_and_its_runs_are_measured_for_it():
    one = experiment((Column("Variance", "intra_class_variance"),), draws=("tsne",))
    captions = [figure.caption for figure in measure_figures(made(one))]
    assert captions[0].startswith("Variance: ")
    assert "t-SNE" in captions[1]
    assert set(measures_asked([one])[CE]) == {"intra_class_variance", "tsne"}
    # CDNV is a number, and its picture the clusters themselves.
    cdnv = experiment((Column("CDNV", "cdnv"),))
    assert set(measures_asked([cdnv])[LA]) == {"cdnv", "tsne"}
    (figure,) = measure_figures(made(cdnv))
    assert "t-SNE" in figure.caption


def test_reliability_is_drawn_of_what_is_kept_and_no_run_is_measured_for_it():
    one = experiment((Column("ECE", "ece"),), draws=("reliability",))
    assert measures_asked([one]) == {}
    result = made(one)
    (picture,) = result.pictures
    scores = kept(3.0).scores
    expected = reliability(scores.logits, scores.labels)
    for drawn, part in zip(picture.rows["b"][0]["reliability"], expected, strict=True):
        assert drawn == pytest.approx(part, nan_ok=True)
    (figure,) = measure_figures(result)
    ece = result.numbers["b", "ECE"].value
    assert f"b, ECE {100 * ece:.1f} %" in figure.svg


def test_what_was_not_measured_is_not_drawn():
    one = experiment((Column("Norms", "weight_norm"), Column("Offset", "bias")))
    assert [each.measure for each in made(one).pictures] == ["weight_norm"]
    assert made(one, {}).pictures == ()
    assert list(measure_figures(made(one, {}))) == []


def test_a_figure_of_accuracies_has_bars_of_its_rows_and_a_table_has_none():
    columns = tuple(Column(name, "accuracy", group=name) for name in ("many", "few"))
    assert list(number_figures(made(experiment(columns)))) == []
    result = made(experiment(columns, item="Figure 1"))
    (figure,) = number_figures(result)
    assert "2 series over many, few." in figure.svg
    value = result.numbers["b", "few"].value
    assert f"b, few: {value:.4g}".rstrip("0").rstrip(".") in figure.svg
    assert figure.svg.count('class="whisker"') == 4


def test_a_figure_that_goes_by_rows_has_them_along_its_axis():
    columns = tuple(Column(name, "accuracy", group=name) for name in ("many", "few"))
    claim = Trend("t", ("a", "b"), ("few",), (1,), against="rows")
    (figure,) = number_figures(made(experiment(columns, (claim,), item="Figure 5")))
    assert "2 series over a, b." in figure.svg
    (single,) = number_figures(made(experiment(item="Figure 7")))
    assert "1 series over a, b." in single.svg


def test_the_page_has_them_all():
    columns = (Column("Norms", "weight_norm"), Column("Error", "balanced_error"))
    result = made(experiment(columns, item="Figure 1"))
    page = render_page(reproduce_page(result, Footer("0", "2026-01-01", "longtail reproduce")))
    assert page.count("<figure") == 2
    assert "Norms of the weights of each class" in page


def test_numbers_are_rounded_whatever_their_shape_and_large_ones_are_not_kept(tmp_path):
    assert _rounded(1.23456789) == 1.23457
    assert _rounded(np.array([[1.00000001, 2.0], [3.0, 4.0]])) == [[1.0, 2.0], [3.0, 4.0]]
    numbers = {"weight_norm": [1.0, 2.0], "largest_distances": [0.5] * 5000}
    Kept(numbers=numbers).save(tmp_path, "ce-s0")
    assert Kept.load(tmp_path, "ce-s0").numbers == {"weight_norm": [1.0, 2.0]}
