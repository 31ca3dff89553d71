"""A fix with costs or sets: decided under the target, measured on what nothing was fitted on."""

import csv
import json

import numpy as np
import pytest

from longtail import Prior, Scores, load
from longtail.flows.file_names import FIX_ALL
from longtail.flows.fix import fix, fix_again
from longtail.metrics import class_coverage, cost, evaluate_sets
from longtail.posthoc import ConformalSets
from longtail.report import page_of, save
from longtail.report.page import laid_out

COUNTS = np.array([700, 200, 70, 30])
PRIOR = Prior.of(COUNTS)
COSTS = [1.0, 2.0, 4.0, 20.0]
OPTIONS = {"tau": 1.0, "calibration": "none"}


def scores_of(labels, seed, **options):
    features = 2.0 * np.eye(4)[labels] + np.random.default_rng(seed).normal(size=(len(labels), 4))
    return Scores(2 * features + PRIOR.log, labels, carried=PRIOR, counts=COUNTS, **options)


def validation(samples=600):
    return scores_of(np.random.default_rng(0).choice(4, samples, p=PRIOR.probs), 0)


TEST = scores_of(np.arange(400) % 4, 2)


@pytest.fixture(scope="module")
def applied():
    return fix(validation(), TEST, costs=COSTS, abstain=0.5, sets=0.9, **OPTIONS)


def test_the_adjusted_scores_are_decided_by_costs_under_the_target(applied):
    expected = applied.scores.decide(COSTS, abstain=0.5)
    np.testing.assert_array_equal(applied.decisions, expected)
    assert (expected == -1).any()
    facts = applied.cost_facts
    options = {"costs": COSTS, "abstain": 0.5, "target": [1, 1, 1, 1]}
    assert facts.decided == cost(expected, TEST.labels, **options)
    assert facts.before == cost(TEST.predict(), TEST.labels, **options)
    assert facts.after == cost(applied.scores.predict(), TEST.labels, **options)
    assert facts.decided.value < facts.after.value < facts.before.value
    assert facts.undecided == (expected == -1).mean()
    likely = applied.scores.predict()
    assert facts.changed == ((expected != likely) & (expected != -1)).mean()


def test_shares_of_decisions_count_classes_as_the_target_does():
    new = scores_of(np.repeat(np.arange(4), [300, 50, 30, 20]), 3)
    result = fix(validation(), new, costs=COSTS, abstain=0.5, **OPTIONS)
    undecided = result.decisions == -1
    shares = [undecided[new.labels == k].mean() for k in range(4)]
    assert result.cost_facts.undecided == pytest.approx(np.mean(shares))
    assert abs(np.mean(shares) - undecided.mean()) > 0.01


def test_a_move_that_stops_on_the_way_is_decided_where_the_target_is():
    result = fix(validation(), TEST, tau=0.5, calibration="none", costs=COSTS)
    np.testing.assert_array_equal(result.decisions, TEST.decide(COSTS, target=[1, 1, 1, 1]))


def test_sets_are_fitted_on_the_adjusted_validation_scores_and_measured_on_others(applied):
    held = validation().under([1, 1, 1, 1])
    expected = ConformalSets.fit(held, 0.9, "tail")
    np.testing.assert_allclose(applied.sets.thresholds, expected.thresholds, rtol=1e-9)
    inside, facts = applied.sets(applied.scores), applied.set_facts
    np.testing.assert_array_equal(facts.class_coverage, class_coverage(inside, TEST.labels))
    measured = evaluate_sets(inside, TEST.labels, [1, 1, 1, 1], COUNTS)
    assert facts.measured == measured
    assert 0.85 < measured["macro_coverage"].value < 0.96


def test_without_other_labels_each_fifth_has_sets_by_the_others():
    scores = validation()
    result = fix(scores, sets=0.9, sets_mode="class", **OPTIONS)
    on_itself = evaluate_sets(result.sets(result.scores), scores.labels, [1, 1, 1, 1], COUNTS)
    measured = result.set_facts.measured
    assert measured["macro_coverage"] != on_itself["macro_coverage"]
    assert abs(measured["macro_coverage"].value - 0.9) < 0.05
    assert result.sets.mode == "class"


def test_sets_of_an_estimated_target_are_of_that_prior():
    labels = np.random.default_rng(5).choice(4, 1000, p=[0.1, 0.2, 0.3, 0.4])
    result = fix(validation(), scores_of(labels, 3), target="estimate", sets=0.9)
    assert result.sets.target == result.estimate.prior
    assert abs(result.set_facts.measured["coverage"].value - 0.9) < 0.05


def test_files_hold_decisions_and_sets_and_are_loaded_again(tmp_path):
    names, ids = ["cat", "fox", 'o;"wl', "ant"], [f"row {k}" for k in range(400)]
    named = Scores(TEST.logits, TEST.labels, PRIOR, COUNTS, classes=names, ids=ids)
    held = Scores(validation().logits, validation().labels, PRIOR, COUNTS, classes=names)
    options = {"costs": dict(zip(names, COSTS, strict=True)), "abstain": 0.5, "sets": 0.9}
    result = fix(held, named, output=tmp_path / "out", page=save, **options, **OPTIONS)
    assert {path.name for path in (tmp_path / "out").glob("[!.]*")} == set(FIX_ALL)
    assert set(result.files) == set(FIX_ALL)
    with (tmp_path / "out/decisions.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["id"] for row in rows] == ids
    inside = result.sets(result.scores)
    for row, decided, held_in in zip(rows, result.decisions.tolist(), inside, strict=True):
        assert row["decision"] == ("" if decided < 0 else names[decided])
        assert row["set"] == ";".join(names[k] for k in np.flatnonzero(held_in))
    metrics = json.loads((tmp_path / "out/metrics.json").read_text())
    assert metrics["costs"]["decided"]["value"] == result.cost_facts.decided.value
    assert metrics["sets"]["measured"]["size"]["value"] == result.set_facts.measured["size"].value
    loaded = load(tmp_path / "out")
    np.testing.assert_array_equal(loaded.sets(TEST.logits), inside)
    plain = fix(held, named, output=tmp_path / "out", **OPTIONS)  # what is not asked for is gone
    assert {path.name for path in (tmp_path / "out").glob("[!.]*")} == {*plain.files} - {
        "report.html"
    }
    with pytest.raises(ValueError, match="no sets beside"):
        load(tmp_path / "out").sets(TEST.logits)


def test_a_fix_that_was_fitted_before_is_decided_by_costs_too(applied):
    again = fix_again(TEST, applied.adjuster, costs=COSTS, abstain=0.5)
    np.testing.assert_array_equal(again.decisions, applied.decisions)
    assert again.cost_facts.decided == applied.cost_facts.decided
    unlabelled = fix_again(Scores(TEST.logits, carried=PRIOR), applied.adjuster, costs=COSTS)
    assert unlabelled.cost_facts is None
    assert len(unlabelled.decisions) == 400
    assert applied.as_json()["costs"]["kind"] == "class"


def test_a_fix_without_them_has_none_of_it():
    result = fix(validation(200), **OPTIONS)
    assert (result.decisions, result.cost_facts, result.sets, result.set_facts) == (None,) * 4
    assert not {"costs", "sets"} & result.as_json().keys()


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"costs": [1, 2]}, "4 classes"),
        ({"costs": [1, 2, -3, 4]}, "none negative"),
        ({"abstain": 0.5}, "give the other costs"),
        ({"costs": COSTS, "abstain": -1}, "abstain must be"),
        ({"sets": 0}, "above 0"),
        ({"sets": 1.5}, "coverage must be"),
        ({"sets": 0.9, "sets_mode": "some"}, "mode must be"),
        ({"sets_mode": "class"}, "sets_mode is that of sets"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        fix(validation(200), **options, **OPTIONS)


def test_the_page_says_what_decisions_cost_and_how_good_sets_are(applied):
    sections = {section.heading: section for section in page_of(applied).sections}
    costs = sections["What mistakes cost"]
    cells = [[cell.text for cell in row] for row in laid_out(costs.table)]
    shown = [f"{getattr(applied.cost_facts, name).value:.3g} [" for name in ("before", "after")]
    assert [row[1].startswith(text) for row, text in zip(cells, shown, strict=False)] == [True] * 2
    assert "left undecided, at a cost of 0.5 each" in " ".join(costs.paragraphs)
    sets = sections["Sets that hold the true class"]
    rows = dict([[cell.text for cell in row] for row in laid_out(sets.table)])
    assert "coverage under the target" not in rows  # which is macro-coverage here
    value = 100 * applied.set_facts.measured["macro_coverage"].value
    assert rows["macro-coverage, all classes alike"].startswith(f"{value:.1f}")
    assert {"classes in a set", "empty sets", "sets of all classes"} <= rows.keys()
    assert len(sets.figures) == 1
