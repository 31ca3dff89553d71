"""The τ explorer: what its script is given is enough to count exactly."""

import base64
from dataclasses import replace

import numpy as np
import pytest
import torch

import longtail as lt
from longtail.flows.judge import Judgement, judge
from longtail.flows.paths import slider
from longtail.flows.samples import BeforeAfter
from longtail.posthoc import BiasCorrectedTemperature, LogitAdjustment
from longtail.report.explorers import tau_explorer
from report_pages import judged, samples_of


def counted(values: dict, tau: float) -> list[float]:
    """What the script does: the recall of every class, in the order of the page."""
    ends = np.frombuffer(base64.b64decode(values["ends"]), "<u2").reshape(-1, 2)
    place = round((tau - values["low"]) / values["step"])
    place += values["between"] and place >= values["place"]
    place = values["place"] if tau == values["tau"] else place
    right = (ends[:, 0] <= place) & (place < ends[:, 1])
    parts = np.split(right, np.cumsum(values["samples"])[:-1])
    return [part.mean() if len(part) else np.nan for part in parts]


@pytest.mark.parametrize("tau", [-1.0, -0.001, 0.0, 0.5, 0.618, 1.0, 3.0])
def test_counting_the_intervals_gives_the_recalls_of_adjusted_logits(tau):
    samples = samples_of()
    before = samples.before
    found = counted(tau_explorer(Judgement.of(samples)).values, tau)
    predicted = LogitAdjustment(before.carried, tau)(before).predict()
    for place, k in enumerate(samples.order.tolist()):
        own = before.labels == k
        assert found[place] == pytest.approx(float((predicted[own] == k).double().mean()))


def test_every_place_of_the_slider_is_the_number_its_decimals_say():
    for low, high, best in ((-1, 3, 0.7), (-4, 3, -2.5), (-1, 6, 4.2), (-1, 30, 99.0)):
        places = slider(best)
        assert (places[0], places[-1]) == (low, high)
        assert all(value == float(f"{value:.3f}") for value in places.tolist())
        assert len(places) < 2**16


def test_no_place_of_the_slider_is_better_than_the_one_called_best():
    """Pieces of the curve are narrower than a step of the slider where samples are many."""
    samples = samples_of()
    crowded = replace(samples.before, logits=samples.before.logits / 10)
    found = tau_explorer(judge(crowded))
    assert found.shown["tau"] == 0.0
    weights = np.array(found.values["measures"][0])
    places = slider(found.shown["best_tau"]).tolist()
    accuracies = [float(weights @ counted(found.values, tau)) for tau in places]
    best = accuracies[places.index(found.shown["best_tau"])]
    assert best == pytest.approx(max(accuracies))


def test_the_measures_are_weighted_means_of_the_recalls():
    samples = samples_of()
    found = tau_explorer(Judgement.of(samples))
    recall = np.array(counted(found.values, found.shown["tau"]))
    names = [name for name, _, _ in found.shown["rows"]]
    assert names == [
        "balanced accuracy",
        "accuracy, samples as they are",
        "many-shot classes",
        "medium-shot classes",
        "few-shot classes",
    ]
    for weights, (_, _, result) in zip(found.values["measures"], found.shown["rows"], strict=True):
        assert 100 * float(np.dot(weights, recall)) == pytest.approx(result)
    assert found.shown["rows"][0][2] == pytest.approx(100 * recall.mean())


def test_another_target_has_the_first_row():
    samples = samples_of()
    other = replace(samples, goal=lt.Prior.of(torch.arange(1, 21)))
    assert tau_explorer(Judgement.of(other)).shown["rows"][0][0] == "accuracy under the target"


def calibrated_and_moved(target: lt.Prior, dtype: torch.dtype = torch.float64) -> BeforeAfter:
    """A model that is twice too sure, calibrated, and moved by a τ of many digits."""
    before = samples_of().before
    before = replace(before, logits=(2 * before.logits).to(dtype))
    bias = torch.linspace(-0.5, 0.5, 20, dtype=torch.float64)
    calibrate = BiasCorrectedTemperature(2.0, bias, before.carried)
    tau = 0.8123456789
    after = LogitAdjustment(before.carried, tau, target)(calibrate(before))
    return BeforeAfter(before, after, target, tau=tau)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("weights", [[1.0] * 20, list(range(1, 21)), [0.0] * 5 + [1.0] * 15])
def test_it_starts_at_the_result_and_equals_it_there_to_the_last_digit(weights, dtype):
    samples = calibrated_and_moved(lt.Prior.of(weights, zeros="keep"), dtype)
    found = tau_explorer(Judgement.of(samples))
    assert found.shown["tau"] == found.values["tau"] == samples.tau
    assert found.values["between"]
    judgement = Judgement.of(samples)
    recalls = list(judgement.recalls.values())
    assert counted(found.values, found.shown["tau"]) == recalls[1][samples.order].tolist()
    shares = judgement.shares
    keys = [*judgement.accuracies, "many", "medium", "few"]
    assert len(found.shown["rows"]) == len(keys)
    for key, (_, first, result) in zip(keys, found.shown["rows"], strict=True):
        assert (first, result) == tuple(
            pytest.approx(100 * float(recall @ shares[key]), abs=1e-12) for recall in recalls
        )


def test_other_places_move_the_calibrated_logits_of_the_result():
    samples = calibrated_and_moved(lt.Prior.uniform(20))
    found = tau_explorer(Judgement.of(samples))
    log = torch.from_numpy(samples.before.carried.log)
    at_zero = samples.after.logits + samples.tau * log
    for tau in (-1.0, 0.0, 0.812, 0.813, 1.5):
        predicted = (at_zero - tau * log).argmax(dim=1)
        expected = lt.metrics.recalls(predicted, samples.before.labels, 20)[samples.order]
        assert counted(found.values, tau) == pytest.approx(expected.tolist())


def test_a_result_that_is_another_model_is_where_it_starts_too():
    samples = samples_of()
    other = replace(samples.after, logits=samples.after.logits.roll(1, 0))
    found = tau_explorer(Judgement.of(replace(samples, after=other, tau=None)))
    assert found.shown["tau"] == 0.0
    predicted = lt.metrics.recalls(other.predict(), samples.before.labels, 20)
    assert counted(found.values, 0.0) == predicted[samples.order].tolist()


def test_a_class_without_samples_weighs_nothing_and_shows_none():
    before = samples_of().before
    kept = before.labels != 3
    fewer = replace(before, logits=before.logits[kept], labels=before.labels[kept])
    found = tau_explorer(judge(fewer))
    place = [name for name, *_ in found.shown["classes"]].index("class 3")
    assert found.values["samples"][place] == 0
    assert found.values["measures"][0][place] == 0
    assert np.isnan(found.shown["classes"][place][3])
    assert sum(found.values["measures"][0]) == pytest.approx(1)


def test_there_is_none_where_no_prior_is_known_or_there_is_nowhere_to_go():
    before = samples_of().before
    uniform = lt.Prior.uniform(20)
    unknown = replace(before, carried=None, counts=None)
    assert tau_explorer(judge(unknown)) is None
    there = replace(before.under(uniform), counts=None)
    assert tau_explorer(judge(there)) is None


def test_there_is_none_for_more_samples_than_a_page_should_hold(monkeypatch):
    monkeypatch.setattr("longtail.flows.paths.MOST_SAMPLES", 1499)
    assert tau_explorer(judged()) is None
