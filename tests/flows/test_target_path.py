"""The target path: each of its places is what `evaluate` says under that prior."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch

import longtail as lt
from longtail.flows.judge import judge
from longtail.flows.paths import PLACES, sums_with, target_path, under
from longtail.metrics import ece, nll
from longtail.report import Footer, render_page, scores_page
from longtail.report.explorers import PERCENT, curves, target_explorer
from report_pages import judged, samples_of


@pytest.mark.parametrize("place", [0, 4, 10, 17, 20])
def test_moved_scores_are_measured_as_evaluate_does(place):
    samples = samples_of()
    target = samples.before.carried.tempered(1 - PLACES[place])
    shown = target_path(samples).moved[place]
    found = lt.metrics.evaluate(samples.before, target=target)
    assert shown.accuracy == pytest.approx(found["accuracy_under_target"])
    assert shown.ece == pytest.approx(found["ece"])
    assert shown.nll == pytest.approx(found["nll"])


def test_scores_left_as_they_are_are_only_weighted(monkeypatch):
    monkeypatch.setattr("longtail.flows.paths._BLOCK", 20 * 7)  # many blocks, one short
    samples = samples_of()
    target = samples.before.carried.tempered(-0.5)
    labels = np.asarray(samples.before.labels)
    weights = (target.probs / np.bincount(labels, minlength=20))[labels]
    (alone,) = sums_with(samples.before, np.zeros((1, 20)))
    left = under(alone, target)
    right = np.asarray(samples.before.predict() == samples.before.labels)
    assert left.accuracy == pytest.approx(float((weights * right).sum() / weights.sum()))
    assert left.ece == pytest.approx(ece(samples.before.logits, samples.labels, weights))
    assert left.nll == pytest.approx(nll(samples.before.logits, samples.labels, weights))


def test_at_the_carried_prior_nothing_is_to_be_moved():
    path = target_path(samples_of())
    assert path.left[0] == pytest.approx(path.moved[0])
    assert path.moved[20].accuracy > path.left[20].accuracy


def test_every_place_has_words_and_the_middle_one_is_uniform():
    found = target_explorer(judged())
    assert found.shown["words"][0] == "as before"
    assert found.shown["words"][found.shown["start"]] == "uniform: all classes alike"
    assert found.shown["words"][20].startswith("reversed")
    assert "10 to 1" in found.shown["words"][5]  # of a ratio of 100, half the way


def test_there_is_none_where_it_is_not_known_what_the_logits_carry():
    unknown = replace(samples_of().before, carried=None)
    assert target_explorer(judge(unknown)) is None


def test_an_infinite_log_loss_is_none_since_json_has_no_infinity():
    before = samples_of().before
    logits = before.logits.clone()
    logits[0, before.labels[0]] = -torch.inf
    ruled_out = replace(before, logits=logits)
    judgement = judge(ruled_out)
    values = target_explorer(judgement).values
    assert values["moved"][3].nll is None
    json.dumps(values, allow_nan=False)
    page = render_page(scores_page(judgement, Footer("0", "d", "c"), title="t"))
    assert '<td class="number" data-column="2">∞</td>' in page


def test_the_axis_of_accuracy_starts_near_the_curves_and_does_not_leave_percent():
    def ends(values, y_span):
        said = {"title": "", "x_title": "", "y_title": "", "y_span": y_span}
        plane = curves([0, 1], {"a": values}, **said)[1]
        return plane["y0"], plane["y1"]

    assert ends([85.0, 97.0], PERCENT) == (85.0, 100.0)
    assert ends([100.0, 100.0], PERCENT)[1] == 100.0
    assert ends([0.0, 0.0], PERCENT)[0] == 0.0
    assert ends([2.0, 3.0], None)[0] == 0.0  # an error is read from zero
