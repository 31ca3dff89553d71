"""The fix: calibrate, then move; chosen on validation scores, measured on others."""

import os
from dataclasses import replace

import numpy as np
import pytest
import torch

from longtail import Prior, Scores
from longtail.core.arrays import as_numpy
from longtail.data import open_score_table
from longtail.flows import file_names, fix_rows, fix_steps, score_sources
from longtail.flows.file_names import SCORES
from longtail.flows.fix import fix, fix_again
from longtail.flows.fix_result import StepFacts
from longtail.flows.fix_steps import Plan, cross_fit, fit_steps, fold_numbers
from longtail.flows.judge import judge
from longtail.metrics import nll
from longtail.posthoc import (
    LogitAdjustment,
    MarginalMatching,
    PCSoftmax,
    Temperature,
    load_adjusters,
)
from longtail.report import Footer, page_of, save, scores_page
from longtail.report.names import ACCURACIES, GROUPS
from longtail.report.pages.first_screen import warning
from longtail.report.pages.fix import in_words, measured_on, remedy_of, shift_in_words

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
    fitted = fit_steps(validation(), Plan(Prior.uniform(4)))
    first, second = fitted.steps
    assert isinstance(first, Temperature)
    assert isinstance(second, LogitAdjustment)
    assert 1.5 < first.temperature < 2.5
    assert second.choice is not None
    assert fitted(validation(seed=1)).carried.is_close(Prior.uniform(4))


def test_source_only_calibrates_and_keeps_what_is_carried():
    fitted = fit_steps(validation(), Plan("source"))
    assert [type(step) for step in fitted.steps] == [Temperature]
    assert fitted.target == PRIOR


def test_an_estimated_target_comes_near_the_prior_of_the_samples_to_come():
    truth = np.array([0.1, 0.2, 0.3, 0.4])
    labels = np.random.default_rng(5).choice(4, 2000, p=truth)
    unlabelled = Scores(sample(labels, 6), carried=PRIOR, counts=COUNTS)
    fitted = fit_steps(validation(), Plan("estimate"), unlabelled)
    assert isinstance(fitted.steps[-1], PCSoftmax)
    np.testing.assert_allclose(np.asarray(fitted.target), truth, atol=0.05)


def followers(samples=4000, seed=8, off=(0.8, -0.8, 0.4, -0.4)):
    """Scores of unlabelled samples of all classes alike, that do not quite carry what they say."""
    labels = np.random.default_rng(seed).choice(4, samples)
    return Scores(sample(labels, seed) + 2 * np.array(off), labels, carried=PRIOR)


def test_unlabelled_samples_that_follow_the_target_say_what_is_carried():
    labelled = validation()
    off = replace(labelled, logits=labelled.logits + 2 * np.array([0.8, -0.8, 0.4, -0.4]))
    plain, matched = fix(off), fix(off, unlabelled=followers())
    assert [step.name for step in matched.steps] == ["Temperature", "MarginalMatching"]
    assert matched.scores.carried.is_close(Prior.uniform(4))
    assert matched.asked["unlabelled"] == "these scores"
    assert matched.steps[-1].beyond > 0.3
    assert "unlabelled samples follow" in in_words(matched.steps[-1])
    new = followers(8000, seed=9)
    right = [np.mean(each.adjuster(new).predict() == new.labels) for each in (plain, matched)]
    assert right[1] > right[0] + 0.01
    found = matched.as_json()["measured_carried"]
    calibrate = matched.adjuster.adjusters[0]
    again = MarginalMatching.fit(calibrate(followers()), Prior.uniform(4))
    np.testing.assert_allclose(found["prior"], again.measured.probs)
    np.testing.assert_allclose([found["low"], found["high"]], again.interval)
    assert (np.array(found["low"]) < found["prior"]).all()
    assert (np.array(found["high"]) > found["prior"]).all()
    assert "measured_carried" not in plain.as_json()
    shown = [str(figure.svg) for part in page_of(matched).sections for figure in part.figures]
    assert sum("by the unlabelled samples" in each for each in shown) == 1
    wrong = replace(followers(), labels=np.zeros(4000, int))
    np.testing.assert_array_equal(fix(off, unlabelled=wrong).scores.logits, matched.scores.logits)


def test_what_matching_gains_is_measured_on_folds_that_the_temperature_was_not_fitted_on():
    result = fix(validation(300), unlabelled=followers(off=(0.0, 0.0, 0.0, 0.0)))
    assert result.measured == "cross-fitted"
    assert result.after["balanced_accuracy"].value > result.before["balanced_accuracy"].value
    assert page_of(result).sections


def page_text(result):
    return [text for section in page_of(result).sections for text in section.paragraphs]


def test_unlabelled_scores_that_differ_by_more_than_their_prior_are_told(tmp_path):
    labels = np.random.default_rng(5).choice(4, 2000, p=[0.1, 0.2, 0.3, 0.4])
    new, duller = (Scores(sample(labels, 6, overconfident=k), carried=PRIOR) for k in (2.0, 0.7))
    same = fix(validation(), new, target="estimate")
    assert not same.shift.is_doubtful
    assert shift_in_words(same) == ""
    other = fix(validation(), duller, target="estimate")
    assert other.shift.is_doubtful
    assert other.fits_worst[0] in shift_in_words(other)
    assert other.as_json()["only_prior_changed"]["p_value"] == other.shift.p_value
    assert shift_in_words(other) in page_text(other)
    assert fix(validation()).shift is None
    known = fix(validation(), duller)
    assert known.shift.is_doubtful
    assert shift_in_words(known) in page_text(known)
    assert not fix(validation(), new).shift.is_doubtful
    assert fix(
        validation(), saved(duller, tmp_path / "new.safetensors"), output=tmp_path
    ).shift == (known.shift)


def test_validation_samples_that_do_not_follow_the_target_are_no_unlabelled_ones():
    labelled = validation(400)
    turned = Scores(labelled.logits[::-1].copy(), carried=PRIOR)
    for same in (labelled, turned, replace(labelled, labels=None)):
        with pytest.raises(ValueError, match="themselves, whose labels do not follow the target"):
            fix(labelled, unlabelled=same)
    follows = fix(labelled, target=PRIOR, unlabelled=labelled)
    assert follows.steps[-1].name == "MarginalMatching"


def test_where_unlabelled_samples_of_another_prior_do_harm_what_helps_is_to_leave_them_out():
    labels = np.random.default_rng(3).choice(4, 4000, p=PRIOR.probs)
    wrong = Scores(sample(labels, 4), carried=PRIOR)
    goal = [0.05, 0.1, 0.25, 0.6]
    result = fix(validation(), target=goal, unlabelled=wrong)
    assert "leave --unlabelled out" in remedy_of(result)
    lost = replace(result.sanity, has_lost=True)
    said = warning(lost, remedy_of(result))
    assert "do not follow the target" in said
    assert "--tau" not in said
    assert "--tau 1" in warning(lost, remedy_of(fix(validation(300))))


def test_that_too_many_classes_are_not_checked_is_said(monkeypatch):
    monkeypatch.setattr("longtail.shift.only_prior.MOST_CLASSES", 3)
    for options in ({"unlabelled": followers()}, {"apply": followers(), "target": "estimate"}):
        result = fix(validation(300), **options)
        assert "not checked: too many classes" in shift_in_words(result)
        assert result.as_json()["only_prior_changed"] == {"not_checked": "too many classes"}
    plain = fix(validation(300))
    assert shift_in_words(plain) == ""
    assert "only_prior_changed" not in plain.as_json()


def test_unlabelled_samples_may_follow_the_source():
    labels = np.random.default_rng(3).choice(4, 2000, p=PRIOR.probs)
    result = fix(validation(), target="source", unlabelled=Scores(sample(labels, 4), carried=PRIOR))
    assert result.carried_after.is_close(PRIOR)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"target": "estimate", "apply": validation(seed=1)}, "no others without labels"),
        ({"tau": 0.5}, r"leave out tau = 0.5"),
        ({"criterion": "nll"}, "leave out criterion = 'nll'"),
        ({"target": [1, 1, 0, 1]}, "above zero, and class 2 has none: give it a small one, or"),
        ({"unlabelled": followers().take([0])}, "two or more; got 1"),
        ({"unlabelled": Scores(np.ones((5, 3)) + np.eye(5, 3))}, "has 3 classes"),
        ({"unlabelled": followers().under([1, 1, 1, 1])}, "says that it carries"),
    ],
)
def test_unlabelled_scores_that_cannot_be_used_are_refused(options, sentence):
    with pytest.raises(ValueError, match=sentence):
        fix(validation(), **{"unlabelled": followers()} | options)


def test_a_given_tau_is_kept():
    fitted = fit_steps(validation(), Plan(Prior.uniform(4), tau=0.5, calibration="none"))
    assert [step.tau for step in fitted.steps] == [0.5]
    assert fitted.target.is_close(PRIOR.tempered(0.5))


def cross_fitted(scores, plan):
    folds = fold_numbers(scores.labels, plan.seed)
    return fix_rows.adjusted_by_fold(scores, cross_fit(scores, folds, plan), folds)


def test_each_part_is_fixed_by_what_was_fitted_on_the_others():
    scores = validation(200)
    plan = Plan(Prior.uniform(4), tau=1.0, calibration="none")
    after = cross_fitted(scores, plan)
    np.testing.assert_allclose(after.probs(), scores.under(Prior.uniform(4)).probs())


def test_the_gain_of_a_cross_fit_is_smaller_than_on_what_it_was_fitted_on():
    """Vector scaling with as many parameters as samples shines only on its own samples."""
    scores = validation(40, seed=3)
    plan = Plan("source", calibration="vector")
    own = fit_steps(scores, plan)(scores)
    losses = [nll(side.logits, side.labels) for side in (own, cross_fitted(scores, plan))]
    assert losses[0] < losses[1]


def test_of_a_huge_set_some_are_fitted_on_and_all_are_counted(tmp_path, monkeypatch):
    """Also where only a part of the large classes is fitted on and drawn."""
    scores = validation(2000)
    table = saved(scores, tmp_path / "val.safetensors")
    whole = fix(scores)
    monkeypatch.setattr(score_sources, "MOST_NUMBERS", 4 * 400)
    for source in (scores, table):
        result = fix(source)
        judgement = result.judgement
        assert 390 < len(judgement.samples.labels) <= 400
        assert judgement.label_counts.tolist() == np.bincount(scores.labels).tolist()
        # Nothing before depends on what was fitted, so it is exactly that of all samples.
        for name, value in result.before.items():
            expected = whole.before[name].value
            assert value.value == (expected and pytest.approx(expected, rel=1e-12))
        plain = (scores.predict() == scores.labels).mean()
        assert result.before["accuracy"].value == pytest.approx(plain)
        after = result.after["balanced_accuracy"].value
        assert after == pytest.approx(whole.after["balanced_accuracy"].value, abs=0.05)


def test_what_is_adjusted_is_read_once_and_its_page_shows_a_part(tmp_path, monkeypatch):
    others = validation(2000, seed=5)
    table, reads = saved(others, tmp_path / "others.safetensors"), []
    blocks = type(table).blocks
    monkeypatch.setattr(type(table), "blocks", lambda self: reads.append(self) or blocks(self))
    whole = fix(validation(), table, output=tmp_path / "whole")
    monkeypatch.setattr("longtail.flows.fix.MOST_SHOWN", 4 * 400)
    part = fix(validation(), table, output=tmp_path / "part")
    assert len(reads) == 2
    assert whole.judgement.samples.before.logits.tolist() == others.logits.tolist()
    shown = part.judgement.samples.before
    assert 390 < len(shown) <= 400
    assert {*map(tuple, shown.logits.tolist())} <= {*map(tuple, others.logits.tolist())}
    assert part.judgement.as_json() == whole.judgement.as_json()
    np.testing.assert_array_equal(part.scores.logits, whole.scores.logits)


def test_a_huge_set_keeps_the_small_classes_whole(monkeypatch):
    monkeypatch.setattr(score_sources, "MOST_NUMBERS", 4 * 100)
    labels = np.array([0] * 500 + [1] * 80 + [2] * 10 + [3])
    scores = Scores(np.zeros((591, 4)), labels)
    rows = score_sources.rows_to_fit_on(scores)
    assert np.bincount(labels[rows]).tolist() == [44, 44, 10, 1]
    assert rows.tolist() == sorted(set(rows.tolist()))
    assert score_sources.rows_to_fit_on(scores.take(np.arange(90))) is None


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
    result = fix(table, test, output=tmp_path / "first")
    before, after, *_ = result.judgement.changes["balanced_accuracy"]
    assert after.value > before.value + 0.05
    gain = result.judgement.gains["balanced_accuracy"]
    np.testing.assert_allclose(gain.value, after.value - before.value)
    first = Scores.load(tmp_path / "first/scores.safetensors")
    assert first.carried.is_close(Prior.uniform(4))
    assert load_adjusters(tmp_path / "first/adjuster.json").carried.is_close(PRIOR)
    again = fix_again(test, tmp_path / "first/adjuster.json", output=tmp_path / "again")
    second = Scores.load(tmp_path / "again/scores.safetensors")
    np.testing.assert_allclose(second.logits, first.logits, rtol=1e-12)
    np.testing.assert_allclose(
        again.judgement.after["nll"].value, result.judgement.after["nll"].value
    )


def test_without_other_scores_the_comparison_is_cross_fitted(tmp_path):
    table = saved(validation(), tmp_path / "val.safetensors")
    result = fix(table, output=tmp_path)
    assert result.measured == "cross-fitted"
    assert "fitted on the others" in measured_on(result)
    before, after, *_ = result.judgement.changes["balanced_accuracy"]
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
        fitted.append(fit_steps(*given))
        return fitted[-1]

    monkeypatch.setattr(fix_steps, "fit_steps", recorded)
    table = saved(validation(400), tmp_path / "val.safetensors")
    labels = np.random.default_rng(5).choice(4, 300, p=[0.1, 0.2, 0.3, 0.4])
    unlabelled = Scores(sample(labels, 6), carried=PRIOR, counts=COUNTS)
    new = saved(unlabelled, tmp_path / "new.safetensors")
    options = {"target": target, "tau": tau, "calibration": calibration}
    result = fix(table, new, output=tmp_path, **options)
    assert result.measured == "cross-fitted"
    assert len(fitted) == 6
    moves = {PCSoftmax: LogitAdjustment}  # an estimate is moved to all the way: by τ = 1
    kinds = [[moves.get(type(step), type(step)) for step in each.steps] for each in fitted]
    assert all(kind == kinds[0] for kind in kinds)
    assert [type(step) for step in load_adjusters(tmp_path / "adjuster.json").adjusters] == [
        type(step) for step in result.adjuster.adjusters
    ]
    for each in fitted[1:]:
        given = [step.tau for step in each.steps if isinstance(step, LogitAdjustment)]
        if target == "estimate":
            assert given == [1.0]
        elif target != "source" and tau is not None:
            assert given == [tau]


def test_features_help_to_estimate_the_target_from_arrays_and_files(tmp_path):
    new, labelled = validation(300, seed=1), validation(300)
    rows = [as_numpy(each.logits)[:, :3] for each in (new, labelled)]
    names = ("features", "validation_features")
    for name, each in zip(names, rows, strict=True):
        np.save(tmp_path / f"{name}.npy", each)
    plain = fix(labelled, new, target="estimate")
    near = fix(labelled, new, target="estimate", **dict(zip(names, rows, strict=True)))
    paths = {name: tmp_path / f"{name}.npy" for name in names}
    again = fix(labelled, new, target="estimate", **paths)
    assert plain.estimate.neighbours is None
    assert near.estimate.neighbours is not None
    assert again.estimate.prior == near.estimate.prior


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"target": "uniform"}, "this one is known: leave them out"),
        ({"features": None}, "give the features of both"),
        ({"validation_features": None}, "give the features of both"),
        ({"features": np.ones((299, 2))}, "features of 299 samples, but .* scores of 300"),
    ],
)
def test_features_that_cannot_be_used_are_refused(options, sentence):
    rows = np.ones((300, 2))
    given = {"target": "estimate", "features": rows, "validation_features": rows} | options
    with pytest.raises(ValueError, match=sentence):
        fix(validation(300), validation(300, seed=1), **given)


def test_seed_and_calibration_reach_the_estimate():
    def high(**options):
        return fix(validation(), validation(seed=1), target="estimate", **options).estimate.high

    assert not np.array_equal(high(seed=1), high(seed=2))
    np.testing.assert_array_equal(high(seed=1), high(seed=1))
    bare = fix(validation(), validation(seed=1), target="estimate", calibration="none")
    assert bare.estimate.calibration is None


def test_an_estimated_target_is_measured_with_the_calibration_that_is_saved(tmp_path):
    """Class by class the model is off, so that a temperature alone gives other numbers."""
    held = validation(600)
    off = np.array([0.0, 2.0, -2.0, 1.0])
    table = saved(held, tmp_path / "val.safetensors", logits=held.logits + off)
    labels = np.random.default_rng(5).choice(4, 400, p=[0.1, 0.2, 0.3, 0.4])
    new = saved(Scores(sample(labels, 6) + off, carried=PRIOR), tmp_path / "new.safetensors")
    found = {
        calibration: fix(table, new, target="estimate", calibration=calibration)
        for calibration in ("auto", "bias", "temperature")
    }
    nll = {name: r.judgement.after["nll"].value for name, r in found.items()}
    assert nll["auto"] == nll["bias"] < nll["temperature"] - 0.01


def test_a_given_tau_is_measured_under_the_target_that_was_asked_for(tmp_path):
    """Half the way does not reach it, so it gains less than the whole way."""
    table = saved(validation(), tmp_path / "val.safetensors")
    gains = []
    for tau in (0.5, 1.0):
        result = fix(table, tau=tau, calibration="none")
        assert result.judgement.target.is_close(Prior.uniform(4))
        assert result.as_json()["tau"] == tau
        assert "Balanced accuracy" in page_of(result).summary
        gains.append(result.judgement.gains["accuracy_under_target"].value)
    assert result.carried_after.is_close(Prior.uniform(4))
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
    result = fix(table, other, COUNTS, target, calibration=calibration)
    page = page_of(result)
    (explorer,) = [section.explorer for section in page.sections if "τ" in section.heading]
    assert explorer.shown["tau"] == (1.0 if target == "estimate" else result.choice.tau)
    assert explorer.shown["best_tau"] != explorer.shown["tau"]
    changes, names = result.judgement.changes, ACCURACIES | GROUPS
    shown = {name: numbers for name, *numbers in explorer.shown["rows"]}
    lead = [row[0] for row in page.lead.rows]
    common = [key for key, name in names.items() if name in shown and name in lead]
    assert len(common) >= 4
    for key in common:
        expected = [100 * side.value for side in changes[key][:2]]
        assert shown[names[key]] == pytest.approx(expected, abs=1e-9)


def test_a_target_that_was_asked_for_is_the_headline_and_balanced_accuracy_follows(tmp_path):
    """Most samples are cats where it is used: that the rare classes lose is no loss there."""
    target = Prior.of([0.97, 0.01, 0.01, 0.01])
    table = saved(validation(), tmp_path / "val.safetensors")
    result = fix(table, None, COUNTS, target)
    page = page_of(result)
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
    right = result.judgement.samples.after.predict() == result.judgement.samples.after.labels
    assert stored["metrics"]["accuracy"]["after"]["value"] == pytest.approx(float(right.mean()))
    assert "top1" not in stored["metrics"]
    assert stored["asked"]["target"] == pytest.approx([0.97, 0.01, 0.01, 0.01])
    assert stored["measured"] == "cross-fitted"


def test_a_fix_that_only_calibrates_is_not_called_chance(tmp_path):
    table = saved(validation(), tmp_path / "val.safetensors")
    result = fix(table, target="source")
    # Though each part has a temperature of its own.
    assert not result.judgement.comparison.can_differ
    page = page_of(result)
    assert "No sample turned right or wrong" in page.summary
    assert "interval" not in page.summary
    assert page.next_step.startswith("Use the scores after")


def test_the_test_set_is_refused_as_held_out_set(tmp_path):
    table = saved(validation(), tmp_path / "val.safetensors", split="test")
    with pytest.raises(ValueError, match=r"not be fitted.*split='test'"):
        fix(table)


@pytest.mark.parametrize(
    ("changes", "target", "words"),
    [
        ({"labels": None}, "uniform", "no labels, .*--with"),
        ({"carried": None, "counts": None}, "uniform", "not known what prior"),
        ({}, "estimate", "--apply"),
    ],
)
def test_what_is_missing_is_said_in_one_sentence(tmp_path, changes, target, words):
    table = saved(validation(200), tmp_path / "val.safetensors", **changes)
    with pytest.raises(ValueError, match=words):
        fix(table, target=target)


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
    if sentence is None:
        fix(table, other)
        return
    with pytest.raises(ValueError, match=sentence):
        fix(table, other)


def test_a_tau_that_the_samples_do_not_determine_is_held_near_one_and_said_so():
    scores = validation()
    near = np.asarray(COUNTS) * np.linspace(0.98, 1.02, len(COUNTS))

    def last(target):
        return StepFacts.of(fit_steps(scores, Plan(target)).steps[-1])

    held = last(Prior.of(near))
    assert held.tau == pytest.approx(1, abs=0.3)
    assert "do not determine τ, so it was held near 1" in in_words(held)
    rounded = Prior.of(PRIOR.probs * (1 + 1e-15 * np.arange(4)))
    for alike in (scores.carried, rounded):
        same = last(alike)
        assert same.tau == 1
        assert "do not determine τ, so it is 1" in in_words(same)
    far = last(Prior.uniform(4))
    assert in_words(far).endswith(f"τ = {far.tau:.3g}.")


def test_plain_arrays_and_files_give_the_same_as_scores(tmp_path):
    scores = validation(400)
    by_arrays = fix((scores.logits.tolist(), scores.labels.tolist()), train=COUNTS.tolist())
    by_scores = fix(scores)
    scores.save(tmp_path / "val.safetensors")
    by_file = fix(tmp_path / "val.safetensors", output=tmp_path)
    expected = by_scores.scores.logits
    for result in (by_arrays, by_file):
        np.testing.assert_allclose(result.scores.logits, expected, rtol=1e-12)
        assert result.after["nll"].value == pytest.approx(by_scores.after["nll"].value)
        assert result.choice == by_scores.choice
    np.testing.assert_allclose(by_scores.adjuster(scores).logits, expected, rtol=1e-12)
    names = {"adjuster.json", "metrics.json", "scores.safetensors", "val.safetensors"}
    assert {path.name for path in tmp_path.glob("[!.]*")} == names


def test_files_are_written_whole_and_only_over_those_of_a_fix(tmp_path):
    scores, out = validation(200), tmp_path / "new" / "folder"
    result = fix(scores, output=out, page=save, tau=1.0)
    assert {path.name for path in out.glob("[!.]*")} == set(file_names.FIX)
    before = (out / "metrics.json").read_bytes()

    def full(result, folder):
        raise OSError("no room")

    with pytest.raises(OSError, match="no room"):
        fix(scores, output=out, page=full, tau=0.5)
    assert (out / "metrics.json").read_bytes() == before
    table = fix(saved(scores, tmp_path / "val.safetensors"), output=out, tau=0.5)
    assert not (out / "report.html").exists()  # it was of the other result
    assert table.scores.logits.shape == (200, 4)
    with pytest.raises(ValueError, match="longtail fix"):
        save(judge(scores), out)
    save(table, out)
    fix_again(scores, result.adjuster, output=out, page=save)
    assert {path.name for path in out.glob("[!.]*")} == set(file_names.FIX)
    report = tmp_path / "report"
    save(judge(scores), report)
    with pytest.raises(ValueError, match="longtail report"):
        fix(scores, output=report)
    assert [path.name for path in report.glob("[!.]*")] == ["report.html"]


def test_a_fix_applied_to_what_it_was_fitted_on_is_judged_by_cross_fitting(tmp_path):
    """The same object, file, samples in another order, or a copy with fewer digits."""
    rng = np.random.default_rng(0)
    scores = replace(validation(60), ids=np.arange(60))
    table, order = saved(scores, tmp_path / "val.safetensors"), rng.permutation(60)
    os.link(table.path, tmp_path / "link.safetensors")
    rounded = replace(scores, logits=scores.logits.round(3), ids=None)
    expected = fix(scores, calibration="vector")
    for val, same in (
        (scores, scores),
        (table, tmp_path / "val.safetensors"),
        (table, tmp_path / "link.safetensors"),
        (table, scores.take(order)),
        (scores, rounded),
        (saved(scores, tmp_path / "a.safetensors"), saved(rounded, tmp_path / "b.safetensors")),
    ):
        result = fix(val, same, calibration="vector")
        assert result.measured == "cross-fitted"
        assert result.after["accuracy"] == expected.after["accuracy"]
        assert "were fitted on" in measured_on(result)
    assert "were fitted on" not in measured_on(expected)
    # Other samples with the same labels and numbers are others.
    other = replace(scores, logits=sample(scores.labels, seed=9))
    assert fix(scores, other).measured == "applied"
    assert fix(scores, replace(other, labels=None)).measured == "cross-fitted"


def test_a_training_prior_need_not_be_counts():
    scores = replace(validation(200), carried=None, counts=None)
    by_counts = fix(scores, train=COUNTS)
    for train in (PRIOR.probs.tolist(), PRIOR.probs, Prior.from_log(PRIOR.log)):
        result = fix(scores, train=train)
        assert result.carried.is_close(PRIOR)
        np.testing.assert_allclose(result.scores.logits, by_counts.scores.logits)


def test_no_input_is_written_over(tmp_path):
    """Neither a file of the user's, nor what a fix wrote, under whatever name it is read."""
    (tmp_path / "report.html").write_text("<title>longtail fix</title>")  # of an older longtail
    scores, out = validation(200), tmp_path / "out"
    val, test = (saved(scores, tmp_path / name) for name in ("val.safetensors", SCORES))
    fix(scores, output=out, tau=1.0)
    os.symlink(out / SCORES, tmp_path / "link.safetensors")
    before = {path: path.read_bytes() for path in (test.path, *out.glob("[!.]*"))}
    for inputs, options in (
        ((val, test), {"output": tmp_path}),
        ((test,), {"output": tmp_path}),
        ((out / SCORES,), {"output": out}),
        ((tmp_path / "link.safetensors",), {"output": out}),
    ):
        with pytest.raises(ValueError, match="is an input"):
            fix(*inputs, **options)
    for adjuster in (out / "adjuster.json", str(out / "adjuster.json")):
        with pytest.raises(ValueError, match=r"adjuster\.json is an input"):
            fix_again(val, adjuster, output=out)
    assert before == {path: path.read_bytes() for path in before}


def test_an_adjuster_applied_again_is_measured_under_the_target_it_was_fitted_for():
    """Also where the τ that was given does not reach it."""
    target, test = Prior.of([1, 2, 3, 4]), validation(400, seed=7)
    for tau in (0.5, "auto"):
        first = fix(validation(), test, target=target, tau=tau)
        again = fix_again(test, first.adjuster)
        assert again.judgement.target.is_close(target)
        assert again.judgement.main_metric == "accuracy_under_target"
        assert again.as_json()["asked"]["target"] == first.as_json()["asked"]["target"]
        for name, value in first.after.items():
            assert again.after[name] == value


def test_samples_whose_prior_was_estimated_count_as_they_are_everywhere():
    labels = np.random.default_rng(5).choice(4, 800, p=[0.1, 0.2, 0.3, 0.4])
    new = Scores(sample(labels, 6), labels, carried=PRIOR, counts=COUNTS)
    judgement = fix(validation(), new, target="estimate").judgement
    assert judgement.target is None
    assert judgement.main_metric == "accuracy"
    assert judgement.tau_path.totals.keys() >= {"accuracy"}
    page = scores_page(judgement, Footer("", "", ""))
    (calibration,) = [part for part in page.sections if "confidence" in part.heading]
    assert "counts once" in calibration.figures[0].caption


def test_training_counts_may_be_given_by_name_and_scores_say_what_they_are(tmp_path):
    scores = replace(validation(300), carried=None, counts=None, classes=("a", "b", "c", "d"))
    by_name = fix(scores, train=dict(zip("abcd", COUNTS.tolist(), strict=True)))
    assert by_name.counts.tolist() == COUNTS.tolist()
    assert by_name.carried.is_close(PRIOR)
    by_prior = fix(scores, train=PRIOR)
    np.testing.assert_allclose(by_prior.scores.logits, by_name.scores.logits)
    (tmp_path / "counts.json").write_text(str(COUNTS.tolist()))
    by_file = fix(scores, train=tmp_path / "counts.json")
    np.testing.assert_allclose(by_file.scores.logits, by_name.scores.logits)
    np.save(tmp_path / "val.npy", scores.logits)
    with pytest.raises(ValueError, match="open_score_table"):
        fix(tmp_path / "val.npy", train=COUNTS)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        fix(tmp_path / "nowhere.npz", train=COUNTS)
    with pytest.raises(ValueError, match=r"classes\.index"):
        fix((scores.logits, np.array(list("abcd"))[scores.labels]), train=COUNTS)
    with pytest.raises(ValueError, match="each of the 4 classes"):
        fix(scores, train={"a": 1, "b": 1, "c": 1, "d": 1, "e": 1})


def test_the_words_of_the_command_are_those_of_the_function():
    scores = validation(200)
    chosen, same = fix(scores), fix(scores, tau="auto")
    assert same.choice == chosen.choice
    assert chosen.sanity.balanced_accuracy == chosen.after["balanced_accuracy"].value
    with pytest.raises(ValueError, match=r"tau must be .*a number; got 'half'"):
        fix(scores, tau="half")


def test_a_result_shows_its_page_in_a_notebook(tmp_path):
    result = fix(validation(200), tau=1.0)
    html = result._repr_html_()
    assert html.startswith("<iframe srcdoc=")
    assert "What was done" in html


def test_torch_comes_back_as_torch():
    scores = validation(200)
    logits = torch.from_numpy(scores.logits)
    result = fix(replace(scores, logits=logits), tau=1.0, calibration="none")
    assert isinstance(result.scores.logits, torch.Tensor)
    expected = fix(scores, tau=1.0, calibration="none").scores.logits
    np.testing.assert_allclose(result.scores.logits.numpy(), expected)


@pytest.mark.parametrize("option", ["target", "carried", "calibration", "criterion"])
def test_a_word_that_nobody_knows_is_refused_with_those_that_are(option):
    logits, labels = np.eye(3)[[0, 1, 2] * 4] - 0.5, [0, 1, 2] * 4
    with pytest.raises(ValueError, match=r"one of .*; got 'unifrom'"):
        fix((logits, labels), train=[3, 2, 1], **{option: "unifrom"})


def test_target_and_carried_may_be_arrays():
    random = np.random.default_rng(0)
    labels = np.arange(60) % 3
    logits = random.normal(size=(60, 3)) + 2 * np.eye(3)[labels]
    result = fix(
        (logits, labels), train=[3, 2, 1], carried=np.array([3, 2, 1]), target=np.array([1, 1, 2])
    )
    assert result.scores.carried == Prior.of([1, 1, 2])
