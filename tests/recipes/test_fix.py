"""The fix: calibrate, then move; chosen on held-out scores, measured on others."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from longtail import Prior, Scores
from longtail.data.score_tables import open_score_table
from longtail.posthoc import LogitAdjustment, PCSoftmax, Temperature, load_adjusters
from longtail.recipes import fix as fixing
from longtail.recipes.fix import Plan, applied, fit_fix, held_out_fixes, rows_to_fit_on
from longtail.recipes.fix_page import fix_page
from longtail.recipes.fix_run import rerun_fix, run_fix
from longtail.recipes.fix_words import described
from longtail.report import Footer
from longtail.report.accuracies import ACCURACIES, GROUPS

COUNTS = np.array([700, 200, 70, 30])
PRIOR = Prior.of(COUNTS)


def sample(labels, seed, overconfident=2.0):
    """Scores of an overconfident model that carries the training prior."""
    rng = np.random.default_rng(seed)
    means = 2.0 * np.eye(4)
    features = means[labels] + rng.normal(size=(len(labels), 4))
    logits = features @ means.T + PRIOR.log
    return overconfident * logits


def validation(samples=1500, seed=0):
    labels = np.random.default_rng(seed).choice(4, samples, p=PRIOR.probs)
    return Scores(sample(labels, seed), labels, carried=PRIOR, counts=COUNTS)


def test_a_known_target_is_reached_by_a_temperature_and_then_a_fitted_move():
    fix = fit_fix(validation(), Plan(Prior.uniform(4)))
    first, second = fix.steps
    assert isinstance(first, Temperature)
    assert isinstance(second, LogitAdjustment)
    assert 1.5 < first.temperature < 2.5
    assert fix.adjustment is second
    assert applied(fix.steps, validation(seed=1)).carried.is_close(Prior.uniform(4))


def test_source_only_calibrates_and_keeps_what_is_carried():
    fix = fit_fix(validation(), Plan("source"))
    assert [type(step) for step in fix.steps] == [Temperature]
    assert fix.target == PRIOR


def test_an_estimated_target_comes_near_the_prior_of_the_samples_to_come():
    truth = np.array([0.1, 0.2, 0.3, 0.4])
    labels = np.random.default_rng(5).choice(4, 2000, p=truth)
    unlabelled = Scores(sample(labels, 6), carried=PRIOR, counts=COUNTS)
    fix = fit_fix(validation(), Plan("estimate"), unlabelled)
    assert isinstance(fix.steps[-1], PCSoftmax)
    np.testing.assert_allclose(np.asarray(fix.target), truth, atol=0.05)


def test_a_given_tau_is_kept():
    fix = fit_fix(validation(), Plan(Prior.uniform(4), tau=0.5, calibration="none"))
    assert [step.tau for step in fix.steps] == [0.5]
    assert fix.target.is_close(PRIOR.tempered(0.5))


def test_held_out_parts_are_fixed_by_what_was_fitted_on_the_others():
    scores = validation(200)
    parts = list(held_out_fixes(scores, Plan(Prior.uniform(4), tau=1.0, calibration="none")))
    assert sum(len(before) for before, _ in parts) == 200
    for before, after in parts:
        expected = before.under(Prior.uniform(4))
        np.testing.assert_allclose(after.probs(), expected.probs())


def test_the_gain_of_a_cross_fit_is_smaller_than_on_what_it_was_fitted_on():
    """Vector scaling with as many parameters as samples shines only on its own samples."""
    scores = validation(40, seed=3)
    plan = Plan("source", calibration="vector")
    own = applied(fit_fix(scores, plan).steps, scores)
    cross = list(held_out_fixes(scores, plan))

    def nll(parts):
        losses = [
            torch.nn.functional.cross_entropy(
                torch.from_numpy(part.logits), torch.from_numpy(part.labels), reduction="sum"
            )
            for part in parts
        ]
        return float(sum(losses)) / 40

    assert nll([own]) < nll([after for _, after in cross])


def test_a_huge_set_keeps_the_small_classes_whole(monkeypatch):
    monkeypatch.setattr(fixing, "MOST_NUMBERS", 4 * 100)
    labels = torch.tensor([0] * 500 + [1] * 80 + [2] * 10 + [3])
    chosen = rows_to_fit_on(labels, 4)
    assert torch.bincount(labels[chosen]).tolist() == [44, 44, 10, 1]
    assert chosen.tolist() == sorted(set(chosen.tolist()))
    assert rows_to_fit_on(labels[:90], 4) is None


def saved(scores, place, **changes):
    replace(scores, **changes).save(place)
    return open_score_table(place, "logits")


def test_a_run_writes_scores_and_an_adjuster_that_give_the_same_again(tmp_path):
    table = saved(validation(), tmp_path / "val.safetensors")
    test_labels = np.arange(400) % 4
    test = saved(
        Scores(sample(test_labels, 9), test_labels, carried=PRIOR, counts=COUNTS),
        tmp_path / "test.safetensors",
    )
    (tmp_path / "first").mkdir()
    (tmp_path / "again").mkdir()
    result = run_fix(table, Plan(Prior.uniform(4)), None, None, tmp_path / "first", test)
    before, after = result.comparison.metrics()["balanced_accuracy"]
    assert after.value > before.value + 0.05
    gain = result.comparison.gains()["balanced_accuracy"]
    np.testing.assert_allclose(gain.value, after.value - before.value)
    first = Scores.load(tmp_path / "first/scores.safetensors")
    assert first.carried.is_close(Prior.uniform(4))
    assert load_adjusters(tmp_path / "first/adjuster.json").carried.is_close(PRIOR)
    again = rerun_fix(test, tmp_path / "first/adjuster.json", COUNTS, tmp_path / "again")
    second = Scores.load(tmp_path / "again/scores.safetensors")
    np.testing.assert_allclose(second.logits, first.logits, rtol=1e-12)
    np.testing.assert_allclose(
        again.comparison.metrics()["nll"][1].value, result.comparison.metrics()["nll"][1].value
    )


def test_without_other_scores_the_comparison_is_cross_fitted(tmp_path):
    table = saved(validation(), tmp_path / "val.safetensors")
    result = run_fix(table, Plan(Prior.uniform(4)), None, None, tmp_path)
    assert "fitted on the others" in result.measured_on
    before, after = result.comparison.metrics()["balanced_accuracy"]
    assert after.value > before.value


@pytest.mark.parametrize("calibration", ["auto", "temperature", "bias", "vector", "none"])
@pytest.mark.parametrize(
    ("target", "tau"),
    [(Prior.uniform(4), None), (Prior.uniform(4), 0.5), ("source", None), ("estimate", None)],
)
def test_what_is_measured_is_what_is_saved(tmp_path, monkeypatch, target, calibration, tau):
    """Each fifth is fixed by the same steps as the scores that are written."""
    fitted = []

    def recorded(*given):
        fitted.append(fit_fix(*given))
        return fitted[-1]

    monkeypatch.setattr(fixing, "fit_fix", recorded)
    monkeypatch.setattr("longtail.recipes.fix_run.fit_fix", recorded)
    table = saved(validation(400), tmp_path / "val.safetensors")
    labels = np.random.default_rng(5).choice(4, 300, p=[0.1, 0.2, 0.3, 0.4])
    unlabelled = Scores(sample(labels, 6), carried=PRIOR, counts=COUNTS)
    new = saved(unlabelled, tmp_path / "new.safetensors")
    plan = Plan(target, tau, calibration=calibration)
    result = run_fix(table, plan, None, None, tmp_path, new)
    assert "fitted on the others" in result.measured_on
    assert len(fitted) == 6
    moves = {PCSoftmax: LogitAdjustment}  # an estimate is moved to all the way: by τ = 1
    kinds = [[moves.get(type(step), type(step)) for step in fix.steps] for fix in fitted]
    assert all(kind == kinds[0] for kind in kinds)
    assert [type(step) for step in load_adjusters(tmp_path / "adjuster.json").adjusters] == [
        type(step) for step in result.steps
    ]
    for fix in fitted[1:]:
        given = [step.tau for step in fix.steps if isinstance(step, LogitAdjustment)]
        if target == "estimate":
            assert given == [1.0]
        elif target != "source" and tau is not None:
            assert given == [tau]


def test_an_estimated_target_is_measured_with_the_calibration_that_is_saved(tmp_path):
    """Class by class the model is off, so that a temperature alone gives other numbers."""
    held = validation(600)
    off = np.array([0.0, 2.0, -2.0, 1.0])
    table = saved(held, tmp_path / "val.safetensors", logits=held.logits + off)
    labels = np.random.default_rng(5).choice(4, 400, p=[0.1, 0.2, 0.3, 0.4])
    new = saved(Scores(sample(labels, 6) + off, carried=PRIOR), tmp_path / "new.safetensors")
    found = {
        calibration: run_fix(
            table, Plan("estimate", calibration=calibration), None, None, tmp_path, new
        )
        for calibration in ("auto", "bias", "temperature")
    }
    nll = {name: r.comparison.metrics()["nll"][1].value for name, r in found.items()}
    assert nll["auto"] == nll["bias"] < nll["temperature"] - 0.01


def test_a_given_tau_is_measured_under_the_target_that_was_asked_for(tmp_path):
    """Half the way does not reach it, so it gains less than the whole way."""
    table = saved(validation(), tmp_path / "val.safetensors")
    gains = []
    for tau in (0.5, 1.0):
        plan = Plan(Prior.uniform(4), tau=tau, calibration="none")
        result = run_fix(table, plan, None, None, tmp_path)
        assert result.judged.target.is_close(Prior.uniform(4))
        assert result.as_json()["tau"] == tau
        assert "Balanced accuracy" in fix_page(result, Footer("0", "d", "c")).summary
        gains.append(result.comparison.gains()["accuracy_under_target"].value)
    assert result.target.is_close(Prior.uniform(4))
    assert 0 < gains[0] < gains[1]


@pytest.mark.parametrize(
    ("target", "calibration", "on"),
    [
        (Prior.uniform(4), "temperature", "others"),
        (Prior.of([6, 2, 1, 1]), "bias", "others"),
        ("estimate", "auto", "others"),
        (Prior.uniform(4), "vector", "itself"),
        (Prior.of([6, 2, 1, 1]), "temperature", "itself"),
    ],
)
def test_the_tau_slider_starts_at_the_result_and_says_what_the_table_says(
    tmp_path, target, calibration, on
):
    table = saved(validation(600), tmp_path / "val.safetensors")
    labels = np.repeat(np.arange(4), (160, 120, 80, 40))
    test = Scores(sample(labels, 9).astype(np.float32), labels, carried=PRIOR, split="test")
    other = saved(test, tmp_path / "test.safetensors") if on == "others" else None
    plan = Plan(target, calibration=calibration)
    result = run_fix(table, plan, None, COUNTS, tmp_path, other)
    page = fix_page(result, Footer("0", "d", "c"))
    (explorer,) = [section.explorer for section in page.sections if "τ" in section.heading]
    assert explorer.tau == (1.0 if target == "estimate" else result.fix.adjustment.tau)
    assert explorer.best_tau != explorer.tau
    metrics, names = result.comparison.metrics(), ACCURACIES | GROUPS
    shown = {name: numbers for name, *numbers in explorer.rows}
    lead = [row[0] for row in page.lead.rows]
    common = [key for key, name in names.items() if name in shown and name in lead]
    assert len(common) >= 4
    for key in common:
        expected = [100 * side.value for side in metrics[key]]
        assert shown[names[key]] == pytest.approx(expected, abs=1e-9)


def test_a_target_that_was_asked_for_is_the_headline_and_balanced_accuracy_follows(tmp_path):
    """Most samples are cats where it is used: that the rare classes lose is no loss there."""
    target = Prior.of([0.97, 0.01, 0.01, 0.01])
    table = saved(validation(), tmp_path / "val.safetensors")
    result = run_fix(table, Plan(target), None, COUNTS, tmp_path)
    page = fix_page(result, Footer("0", "d", "c"))
    first, second = page.lead.rows[:2]
    assert first[0] == "accuracy under the target"
    assert first[3].endswith("better")
    assert second[0] == "balanced accuracy"
    assert second[3].endswith("worse")
    assert "Accuracy under the target went from" in page.summary
    assert page.next_step.startswith("Use the scores after")
    stored = result.as_json()
    gain = stored["metrics"]["accuracy_under_target"]
    assert gain["after"]["value"] > gain["before"]["value"]
    right = result.judged.after.predict() == result.judged.after.labels
    assert stored["metrics"]["accuracy"]["after"]["value"] == pytest.approx(float(right.mean()))
    assert "top1" not in stored["metrics"]
    assert stored["asked"]["target"] == pytest.approx([0.97, 0.01, 0.01, 0.01])
    assert stored["measured"] == "cross-fitted"


def test_a_fix_that_only_calibrates_is_not_called_chance(tmp_path):
    table = saved(validation(), tmp_path / "val.safetensors")
    result = run_fix(table, Plan("source"), None, None, tmp_path)
    assert not result.comparison.can_differ  # though each part has a temperature of its own
    page = fix_page(result, Footer("0", "d", "c"))
    assert "No sample turned right or wrong" in page.summary
    assert "interval" not in page.summary
    assert page.next_step.startswith("Use the scores after")


def test_the_test_set_is_refused_as_held_out_set(tmp_path):
    table = saved(validation(), tmp_path / "val.safetensors", split="test")
    with pytest.raises(ValueError, match="must not be fitted on split='test'"):
        run_fix(table, Plan(Prior.uniform(4)), None, None, tmp_path)


@pytest.mark.parametrize(
    ("changes", "plan", "sentence"),
    [
        ({"labels": None}, Plan(Prior.uniform(4)), "no labels, .* --with"),
        ({"carried": None}, Plan(Prior.uniform(4)), "not known what these scores carry"),
        ({}, Plan("estimate"), "give them with --apply"),
    ],
)
def test_what_is_missing_is_said_in_one_sentence(tmp_path, changes, plan, sentence):
    table = saved(validation(200), tmp_path / "val.safetensors", **changes)
    with pytest.raises(ValueError, match=sentence):
        run_fix(table, plan, None, None, tmp_path)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"carried": Prior.uniform(4)}, "adjusted already"),
        ({"classes": list("abcd")}, None),
        ({"logits": np.zeros((8, 3)), "carried": None, "counts": None}, "3 classes and .* 4"),
    ],
)
def test_other_scores_must_be_of_the_same_model(tmp_path, changes, sentence):
    table = saved(validation(200), tmp_path / "val.safetensors")
    labels = np.arange(8) % 3
    test = Scores(sample(labels, 9), labels, carried=PRIOR, counts=COUNTS)
    other = saved(test, tmp_path / "test.safetensors", **changes)
    plan = Plan(Prior.uniform(4))
    if sentence is None:
        run_fix(table, plan, None, None, tmp_path, other)
        return
    with pytest.raises(ValueError, match=sentence):
        run_fix(table, plan, None, None, tmp_path, other)


def test_a_tau_that_the_samples_do_not_determine_is_held_near_one_and_said_so():
    scores = validation()
    near = np.asarray(COUNTS) * np.linspace(0.98, 1.02, len(COUNTS))
    fix = fit_fix(scores, Plan(Prior.of(near)))
    assert fix.adjustment.tau == pytest.approx(1, abs=0.3)
    assert "do not determine τ, so it was held near 1" in described(fix.steps[-1])
    rounded = Prior.of(PRIOR.probs * (1 + 1e-15 * np.arange(4)))
    for alike in (scores.carried, rounded):
        same = fit_fix(scores, Plan(alike))
        assert same.adjustment.tau == 1
        assert "do not determine τ, so it is 1" in described(same.steps[-1])
    far = fit_fix(scores, Plan(Prior.uniform(4)))
    assert described(far.steps[-1]).endswith(f"τ = {far.adjustment.tau:.3g}.")
