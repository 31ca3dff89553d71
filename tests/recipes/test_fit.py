"""`longtail fit` chooses on held-out samples alone, and keeps what it says is best."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from longtail import Prior, Scores, metrics
from longtail.engine import load_head, pack_features, read_features
from longtail.engine.feature_file import checked_features
from longtail.recipes import fit_methods
from longtail.recipes.fit_choice import DecaySearch, predicted
from longtail.recipes.fit_methods import METHODS
from longtail.recipes.fit_page import fit_page
from longtail.recipes.fit_parts import check_parts, feature_unit, fold_numbers, pairs
from longtail.recipes.fit_result import FitPlan
from longtail.recipes.fit_run import run_fit, write_fit
from longtail.recipes.fit_words import caution, decision, headings, headline, method_rows
from longtail.report import Footer, render_page

COUNTS = np.array([60, 30, 12, 6, 3])
C, D = 5, 8


def drawn(counts, seed):
    rng = np.random.default_rng(seed)
    means = 1.2 * np.random.default_rng(7).normal(size=(C, D))
    labels = np.repeat(np.arange(C), counts)
    return (means[labels] + rng.normal(size=(len(labels), D))).astype(np.float32), labels


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    place = tmp_path_factory.mktemp("features") / "f.safetensors"
    parts = {"train": drawn(COUNTS, 0), "test": drawn([100] * C, 1)}
    return pack_features(place, parts, classes=["a", "b", "c", "d", "<e>"])


@pytest.fixture(scope="module")
def result(packed):
    return run_fit(packed, FitPlan(folds=3))


def test_all_methods_but_the_slow_ones_are_fitted(result):
    assert {found.name for found in result.methods} == set(METHODS) - set(fit_methods.SLOW)
    assert [found.failed for found in result.methods] == [""] * len(result.methods)


def test_the_best_is_the_best_on_held_out_samples(result):
    values = [found.held_out["accuracy_under_target"].value for found in result.methods]
    assert values == sorted(values, reverse=True)
    assert result.best == result.methods[0].name
    assert result.methods[0].behind.value == 0
    linear = next(found for found in result.methods if found.name == "linear")
    assert linear.gain.value == 0
    best = result.methods[0]
    assert best.gain.value == pytest.approx(
        values[0] - linear.held_out["accuracy_under_target"].value
    )
    assert linear.behind.value == pytest.approx(best.gain.value)


def test_the_scores_are_those_the_metrics_are_of(result):
    for scores, found in (
        (result.validation, result.methods[0].held_out),
        (result.test, result.methods[0].test),
    ):
        expected = found["balanced_accuracy"].value
        assert metrics.balanced_accuracy(scores) == pytest.approx(expected)
    assert len(result.validation) == COUNTS.sum()


def test_every_sample_is_judged_by_what_was_fitted_without_it(packed, monkeypatch):
    halves = pairs(packed, 3, seed=0)
    rows = torch.from_numpy(np.array(packed.part("train").features))
    assert sum(len(half.held_labels) for half in halves) == COUNTS.sum()
    for half in halves:
        assert len(half.labels) + len(half.held_labels) == COUNTS.sum()
        seen = {tuple(row) for row in half.features.tolist()}
        assert not seen & {tuple(row) for row in half.held_features.tolist()}
    assert torch.equal(
        torch.cat([h.held_features for h in halves]).sort(0).values, rows.sort(0).values
    )


def test_the_only_sample_of_a_class_is_never_held_out():
    labels = torch.tensor([0, 0, 0, 1, 2, 2])
    numbers = fold_numbers(labels, 2, seed=0)
    assert numbers[3] == -1
    assert set(numbers[[0, 1, 2, 4, 5]].tolist()) == {0, 1}


def test_with_a_validation_part_methods_are_judged_by_it(tmp_path):
    parts = {"train": drawn(COUNTS, 0), "validation": drawn([20] * C, 2)}
    features = pack_features(tmp_path / "f.safetensors", parts)
    found = run_fit(features, FitPlan(methods=["adjusted", "ncm"]))
    assert {each.name for each in found.methods} == {"linear", "adjusted", "ncm"}
    assert found.test is None
    assert len(found.validation) == 20 * C
    assert found.judged_on == "the validation part"
    assert "test part" not in headline(found)


def test_the_weight_decay_is_the_lowest_point_of_those_tried(packed):
    search = DecaySearch(pairs(packed, 3, 0, feature_unit(packed)), Prior.uniform(C))
    place, layers = search.best()
    assert search.losses[place] == min(search.losses.values())
    assert min(search.losses) < place < max(search.losses)
    assert len(layers) == 3


@pytest.mark.parametrize("factor", [0.001, 1000.0])
def test_the_unit_of_the_features_does_not_matter(packed, result, tmp_path, factor):
    parts = {
        split: (factor * np.array(packed.part(split).features), packed.part(split).labels)
        for split in ("train", "test")
    }
    other = run_fit(pack_features(tmp_path / "f.safetensors", parts), FitPlan(folds=3))
    assert other.best == result.best
    assert other.weight_decay == pytest.approx(factor**2 * result.weight_decay, rel=1e-3)
    for one, two in zip(result.methods, other.methods, strict=True):
        expected = one.held_out["accuracy_under_target"].value
        assert two.held_out["accuracy_under_target"].value == pytest.approx(expected, abs=0.011), (
            one.name
        )
    logits = result.head(torch.from_numpy(parts["test"][0] / np.float32(factor)))
    assert torch.allclose(other.head(torch.from_numpy(parts["test"][0])), logits, atol=0.05)


def test_a_number_is_not_judged_by_the_samples_that_chose_it(tmp_path):
    """With few validation samples and nothing to gain, choosing τ on them is no gain."""
    gaps = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        # Features say nothing: whatever τ seems to gain is luck.
        parts = {
            split: (rng.normal(size=(5 * n, 4)).astype(np.float32), np.repeat(np.arange(5), n))
            for split, n in (("train", 30), ("validation", 4), ("test", 200))
        }
        features = pack_features(tmp_path / f"{seed}.safetensors", parts)
        found = run_fit(features, FitPlan(["tau_norm", "adjusted_tau"], seed=seed))
        gaps += [
            each.held_out["accuracy_under_target"].value - each.test["accuracy_under_target"].value
            for each in found.methods
            if each.name != "linear" and not each.failed
        ]
    assert abs(np.mean(gaps)) < 0.05


def test_the_test_part_decides_nothing(packed, result, tmp_path):
    wrong = drawn([100] * C, 1)
    parts = {"train": drawn(COUNTS, 0), "test": (wrong[0], (wrong[1] + 1) % C)}
    other = run_fit(pack_features(tmp_path / "f.safetensors", parts), FitPlan(folds=3))
    assert other.best == result.best
    assert other.weight_decay == result.weight_decay
    for name in ("tau_norm", "adjusted_tau"):
        one, two = (next(m.value for m in r.methods if m.name == name) for r in (result, other))
        assert one == two


def test_it_is_the_same_every_time(packed, result):
    again = run_fit(packed, FitPlan(folds=3))
    for one, two in zip(result.methods, again.methods, strict=True):
        assert one.name == two.name
        assert one.held_out == two.held_out


def test_another_target_changes_what_is_best_for(packed):
    train = Prior.of(COUNTS)
    found = run_fit(packed, FitPlan(["adjusted", "adjusted_tau", "ncm"], target=train, folds=3))
    by_name = {each.name: each.held_out["accuracy_under_target"].value for each in found.methods}
    assert by_name["adjusted_tau"] >= by_name["linear"] - 0.02
    assert "accuracy under the target" in headline(found)
    # Under the training prior, moving logits to it leaves the linear layer as it is.
    assert by_name["adjusted"] == pytest.approx(by_name["linear"])


@pytest.mark.parametrize("method", ["linear", "adjusted", "ncm", "learned_ncm", "crt"])
@pytest.mark.parametrize("target", [None, Prior.of(COUNTS)], ids=["uniform", "train"])
def test_the_kept_head_predicts_what_its_scores_say(packed, method, target):
    found = run_fit(packed, FitPlan([method], target=target, folds=3))
    best = METHODS[found.best]
    head, rows = found.head, torch.from_numpy(np.array(packed.part("test").features))
    logits = head(rows)
    if not best.is_as_is(found.target) and head.carried != found.target:
        logits = Scores(logits, carried=head.carried).under(found.target).logits
    assert torch.equal(logits.argmax(1), torch.as_tensor(found.test.predict()))


def test_log_loss_can_be_what_decides(packed):
    found = run_fit(packed, FitPlan(["adjusted", "ncm", "crt"], criterion="nll", folds=3))
    values = [each.held_out["nll"].value for each in found.methods]
    assert values == sorted(values)
    assert "by log-loss" in headline(found)


def test_classes_with_next_to_no_held_out_samples_are_told(packed, result, tmp_path):
    assert (result.few, result.unjudged) == (1, 0)
    assert "1 of 5 classes have fewer than five held-out samples" in caution(result)
    parts = {"train": drawn([30, 20, 5, 1, 1], 0)}
    found = run_fit(pack_features(tmp_path / "f.safetensors", parts), FitPlan(["ncm"], folds=3))
    assert (found.few, found.unjudged) == (2, 2)
    assert "2 of them none" in caution(found)
    assert "which may be chance" in headline(found) or found.best == "linear"


def test_the_model_that_is_written_gives_the_scores_that_are_written(result, tmp_path):
    write_fit(result, tmp_path)
    head, about = load_head(tmp_path / "model.safetensors")
    assert about["method"] == result.best
    assert about["counts"] == COUNTS.tolist()
    rows = torch.from_numpy(drawn([100] * C, 1)[0])
    logits, carried = predicted(METHODS[result.best], head, rows, result.target)
    assert head.unit is not None
    stored = Scores.load(tmp_path / "test.safetensors")
    assert torch.allclose(torch.as_tensor(stored.logits), logits, atol=1e-5)
    assert stored.carried == carried
    assert len(Scores.load(tmp_path / "validation.safetensors")) == COUNTS.sum()


def test_a_method_that_fails_is_a_row_that_says_why(packed, monkeypatch):
    def fail(task):
        raise ValueError("this one diverged")

    broken = fit_methods.Method("broken", "", fail)
    monkeypatch.setitem(METHODS, "broken", broken)
    found = run_fit(packed, FitPlan(["broken", "ncm"], folds=3))
    assert found.methods[-1].failed == "this one diverged"
    assert method_rows(found)[-1][1] == "failed: this one diverged"
    assert found.as_json()["methods"]["broken"] == {"failed": "this one diverged"}


def test_another_target_is_the_headline_and_balanced_accuracy_stands_beside_it(packed, result):
    found = run_fit(packed, FitPlan(["adjusted"], target=Prior.of(packed.counts), folds=3))
    best = found.methods[0].held_out
    shown = f"{100 * best['accuracy_under_target'].value:.1f} ["
    assert f"accuracy under the target {shown}" in headline(found)
    row = dict(zip(headings(found), method_rows(found)[0], strict=True))
    assert row["held out"].startswith(shown)
    assert row["balanced"] == f"{100 * best['balanced_accuracy'].value:.1f}"
    page = fit_page(found, Footer("0", "2025-01-01", "longtail fit"))
    assert page.lead.rows[0][0] == "accuracy under the target"
    assert "balanced" not in headings(result)
    assert result.as_json()["target"] == "uniform"
    assert found.as_json()["target"] == pytest.approx(found.target.probs.tolist())


def test_words_and_page_say_the_same(result):
    assert METHODS[result.best].title in headline(result)
    assert f"{result.weight_decay:.2g}" in decision(result)
    assert all(len(row) == len(headings(result)) for row in method_rows(result))
    html = render_page(fit_page(result, Footer("0", "2025-01-01", "longtail fit")))
    assert "&lt;e&gt;" in html
    assert "<e>" not in html


def test_wrong_plans_and_features_are_refused(packed, tmp_path):
    with pytest.raises(ValueError, match="there is no method 'svm'"):
        run_fit(packed, FitPlan(["svm"]))
    missing = pack_features(
        tmp_path / "m.safetensors", {"train": drawn([5, 5, 0, 5, 5], 0)}, num_classes=C
    )
    with pytest.raises(ValueError, match="1 of 5 classes have no training samples"):
        run_fit(missing, FitPlan())
    single = pack_features(tmp_path / "s.safetensors", {"train": drawn([1] * C, 0)})
    with pytest.raises(ValueError, match="held-out samples of two classes or more"):
        run_fit(single, FitPlan())
    rows, labels = drawn(COUNTS, 0)
    for wrong, message in (
        (np.zeros_like(rows), "nothing to learn from"),
        (np.where(rows > 3, np.nan, rows), "features of train must be finite numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            run_fit(checked_features({"train": (wrong, labels)}), FitPlan())


def test_a_gain_that_may_be_chance_is_not_told_to_be_used(result):
    """On the test part the best of the held-out samples is the linear layer over again."""
    assert result.best != "linear"
    same = replace(result, test=replace(result.linear))
    said = fit_page(same, Footer("0", "d", "c")).next_step
    assert said.startswith("model.safetensors holds the best on held-out samples")
    assert "may be chance" in said


def test_labels_that_begin_at_one_are_told_so(tmp_path):
    features = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
    np.savez(tmp_path / "a.npz", features=features, labels=np.arange(60) % 3 + 1)
    with pytest.raises(ValueError, match="if your labels begin at 1, take 1 away"):
        check_parts(read_features(tmp_path / "a.npz"))
