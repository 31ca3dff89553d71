"""A fit chooses on validation samples alone, and keeps what it says is best."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
import torch

import longtail as lt
from longtail import Prior, Scores, losses, metrics
from longtail.data import pack_features, read_features
from longtail.data.tables.features import checked_features
from longtail.engine import fit_head, load_head
from longtail.engine.training import TrainingOptions
from longtail.flows import fit_methods
from longtail.flows.fit import fit
from longtail.flows.fit_methods import METHODS, Aim, predicted
from longtail.flows.fit_problem import prepared, scores_by_method
from longtail.flows.fit_samples import choose_decay, fit_samples, folds_but_single_samples
from longtail.heads import Linear
from longtail.images.samplers import InstanceSampler
from longtail.report import Footer, render_page
from longtail.report.pages.fit import (
    caution,
    decision,
    fit_page,
    headline,
    method_columns,
)

COUNTS = np.array([60, 30, 12, 6, 3])
C, D = 5, 8
FOOTER = Footer("0", "2025-01-01", "longtail fit")


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
    return fit(packed, folds=3)


def test_all_methods_but_those_that_must_be_named_are_fitted(result):
    left_out = {*fit_methods.ONLY_IF_NAMED, *fit_methods.UNLABELLED}
    assert {found.name for found in result.table} == set(METHODS) - left_out
    assert [found.error for found in result.table] == [""] * len(result.table)


def test_the_best_is_the_best_on_validation_samples(result):
    values = [found.validation["accuracy_under_target"].value for found in result.table]
    assert values == sorted(values, reverse=True)
    assert result.best is result.table[0]
    assert result.table[0].behind.value == 0
    linear = next(found for found in result.table if found.name == "linear")
    assert linear.gain.value == 0
    best = result.table[0]
    assert best.gain.value == pytest.approx(
        values[0] - linear.validation["accuracy_under_target"].value
    )
    assert linear.behind.value == pytest.approx(best.gain.value)


def test_the_scores_are_those_the_metrics_are_of(result):
    for scores, found in (
        (result.validation, result.table[0].validation),
        (result.test, result.table[0].test),
    ):
        expected = found["balanced_accuracy"].value
        assert metrics.balanced_accuracy(scores) == pytest.approx(expected)
    assert len(result.validation) == COUNTS.sum()


def test_every_sample_is_judged_by_what_was_fitted_without_it(packed):
    samples = fit_samples(packed, 3, seed=0)
    rows = samples.train.features
    assert torch.allclose(
        rows * samples.unit, torch.from_numpy(np.array(packed.part("train").features))
    )
    assert sum(len(fold.validation.labels) for fold in samples.folds) == COUNTS.sum()
    for fold in samples.folds:
        assert len(fold.train.labels) + len(fold.validation.labels) == COUNTS.sum()
        seen = {tuple(row) for row in fold.train.features.tolist()}
        assert not seen & {tuple(row) for row in fold.validation.features.tolist()}
    judged = torch.cat([fold.validation.features for fold in samples.folds])
    assert torch.equal(judged.sort(0).values, rows.sort(0).values)


def test_the_only_sample_of_a_class_is_never_held_out():
    labels = torch.tensor([0, 0, 0, 1, 2, 2])
    numbers = folds_but_single_samples(labels, 2, seed=0)
    assert numbers[3] == -1
    assert set(numbers[[0, 1, 2, 4, 5]].tolist()) == {0, 1}


def test_with_a_validation_part_methods_are_judged_by_it(tmp_path):
    parts = {"train": drawn(COUNTS, 0), "validation": drawn([20] * C, 2)}
    features = pack_features(tmp_path / "f.safetensors", parts)
    found = fit(features, methods=["adjusted", "ncm"])
    assert {each.name for each in found.table} == {"linear", "adjusted", "ncm"}
    assert found.test is None
    assert len(found.validation) == 20 * C
    assert found.folds is None
    assert "Chosen on the validation part" in decision(found)
    assert "test part" not in headline(found)


def test_the_weight_decay_is_the_lowest_point_of_those_tried(packed):
    choice = choose_decay(fit_samples(packed, 3, seed=0).folds, Prior.uniform(C))
    assert choice.losses[choice.decay] == min(choice.losses.values())
    assert min(choice.losses) < choice.decay < max(choice.losses)
    assert len(choice.layers) == 3


@pytest.mark.parametrize("factor", [0.001, 1000.0])
def test_the_unit_of_the_features_does_not_matter(packed, result, tmp_path, factor):
    parts = {
        split: (factor * np.array(packed.part(split).features), packed.part(split).labels)
        for split in ("train", "test")
    }
    other = fit(pack_features(tmp_path / "f.safetensors", parts), folds=3)
    assert other.best.name == result.best.name
    assert other.weight_decay == pytest.approx(factor**2 * result.weight_decay, rel=1e-3)
    for one, two in zip(result.table, other.table, strict=True):
        expected = one.validation["accuracy_under_target"].value
        assert two.validation["accuracy_under_target"].value == pytest.approx(
            expected, abs=0.011
        ), one.name
    logits = result.model(torch.from_numpy(parts["test"][0] / np.float32(factor)))
    assert torch.allclose(other.model(torch.from_numpy(parts["test"][0])), logits, atol=0.05)


def test_a_number_is_not_judged_by_the_samples_that_chose_it(tmp_path):
    """With few validation samples and nothing to gain, choosing τ on them is no gain."""
    gaps, key = [], "accuracy_under_target"
    for seed in range(12):
        rng = np.random.default_rng(seed)
        # Features say nothing: whatever τ seems to gain is luck.
        parts = {
            split: (rng.normal(size=(5 * n, 4)).astype(np.float32), np.repeat(np.arange(5), n))
            for split, n in (("train", 30), ("validation", 4), ("test", 200))
        }
        features = pack_features(tmp_path / f"{seed}.safetensors", parts)
        found = fit(features, methods=["tau_norm", "adjusted_tau"], seed=seed)
        gaps += [
            each.validation[key].value - each.test[key].value
            for each in found.table
            if each.name != "linear" and not each.error
        ]
    assert abs(np.mean(gaps)) < 0.05


def test_the_test_part_decides_nothing(packed, result, tmp_path):
    wrong = drawn([100] * C, 1)
    parts = {"train": drawn(COUNTS, 0), "test": (wrong[0], (wrong[1] + 1) % C)}
    other = fit(pack_features(tmp_path / "f.safetensors", parts), folds=3)
    assert other.best.name == result.best.name
    assert other.weight_decay == result.weight_decay
    for name in ("tau_norm", "adjusted_tau"):
        one, two = (next(m.tau for m in r.table if m.name == name) for r in (result, other))
        assert one == two


def test_it_is_the_same_every_time(packed, result):
    again = fit(packed, folds=3)
    for one, two in zip(result.table, again.table, strict=True):
        assert one.name == two.name
        assert one.validation == two.validation


def test_another_target_changes_what_is_best_for(packed):
    train = Prior.of(COUNTS)
    found = fit(packed, methods=["adjusted", "adjusted_tau", "ncm"], target=train, folds=3)
    by_name = {each.name: each.validation["accuracy_under_target"].value for each in found.table}
    assert by_name["adjusted_tau"] >= by_name["linear"] - 0.02
    assert "accuracy under the target" in headline(found)
    # Under the training prior, moving logits to it leaves the linear layer as it is.
    assert by_name["adjusted"] == pytest.approx(by_name["linear"])


@pytest.mark.parametrize("method", ["linear", "adjusted", "ncm", "learned_ncm", "crt"])
@pytest.mark.parametrize("target", ["uniform", Prior.of(COUNTS)], ids=["uniform", "train"])
def test_the_kept_head_predicts_what_its_scores_say(packed, method, target):
    found = fit(packed, methods=[method], target=target, folds=3)
    best = METHODS[found.best.name]
    head, rows = found.model, torch.from_numpy(np.array(packed.part("test").features))
    logits = head(rows)
    if not best.keeps_logits(found.target) and head.carried != found.target:
        logits = Scores(logits, carried=head.carried).under(found.target).logits
    assert torch.equal(logits.argmax(1), torch.as_tensor(found.test.predict()))


def test_log_loss_can_be_what_decides(packed):
    found = fit(packed, methods=["adjusted", "ncm", "crt"], criterion="nll", folds=3)
    values = [each.validation["nll"].value for each in found.table]
    assert values == sorted(values)
    assert "by log-loss" in headline(found)


def test_classes_with_next_to_no_validation_samples_are_told(packed, result, tmp_path):
    assert (result.few, result.unjudged) == (1, 0)
    assert "1 of 5 classes have fewer than five validation samples" in caution(result)
    parts = {"train": drawn([30, 20, 5, 1, 1], 0)}
    found = fit(pack_features(tmp_path / "f.safetensors", parts), methods=["ncm"], folds=3)
    assert (found.few, found.unjudged) == (2, 2)
    assert "2 of them none" in caution(found)
    assert "which may be chance" in headline(found) or found.best.name == "linear"


def test_the_model_that_is_written_gives_the_scores_that_are_written(result, tmp_path):
    result.write(tmp_path)
    head, about = load_head(tmp_path / "model.safetensors")
    assert about["method"] == result.best.name
    assert about["counts"] == COUNTS.tolist()
    rows = torch.from_numpy(drawn([100] * C, 1)[0])
    scores = predicted(METHODS[result.best.name], head, rows, result.target)
    assert head.unit is not None
    stored = Scores.load(tmp_path / "test.safetensors")
    assert torch.allclose(torch.as_tensor(stored.logits), scores.logits, atol=1e-5)
    assert stored.carried == scores.carried
    assert len(Scores.load(tmp_path / "validation.safetensors")) == COUNTS.sum()


def test_a_method_that_fails_is_a_row_that_says_why(packed, monkeypatch):
    def fail(task):
        raise ValueError("this one diverged")

    broken = fit_methods.Method("broken", "", fail)
    monkeypatch.setitem(METHODS, "broken", broken)
    found = fit(packed, methods=["broken", "ncm"], folds=3)
    assert found.table[-1].error == "this one diverged"
    assert found.as_json()["methods"]["broken"]["error"] == "this one diverged"
    page = fit_page(found, FOOTER)
    assert page.sections[0].table.rows[-1][:2] == ("broken", "failed: this one diverged")


def test_another_target_is_the_headline_and_balanced_accuracy_stands_beside_it(packed, result):
    found = fit(packed, methods=["adjusted"], target=Prior.of(packed.counts), folds=3)
    best = found.table[0].validation
    shown = f"{100 * best['accuracy_under_target'].value:.1f} ["
    assert f"accuracy under the target {shown}" in headline(found)
    columns = method_columns(found)
    assert columns["validation"][0].startswith(shown)
    assert columns["balanced"][0] == f"{100 * best['balanced_accuracy'].value:.1f}"
    page = fit_page(found, FOOTER)
    assert page.lead.rows[0][0] == "accuracy under the target"
    assert "balanced" not in method_columns(result)
    assert result.as_json()["target"] == "uniform"
    assert found.as_json()["target"] == pytest.approx(found.target.probs.tolist())


def test_words_and_page_say_the_same(result):
    assert METHODS[result.best.name].title in headline(result)
    assert f"{result.weight_decay:.2g}" in decision(result)
    assert {len(cells) for cells in method_columns(result).values()} == {len(result.table)}
    html = render_page(fit_page(result, FOOTER))
    assert "&lt;e&gt;" in html
    assert "<e>" not in html


def test_wrong_plans_and_features_are_refused(packed, tmp_path):
    with pytest.raises(ValueError, match="there is no method 'svm'"):
        fit(packed, methods=["svm"])
    missing = pack_features(
        tmp_path / "m.safetensors", {"train": drawn([5, 5, 0, 5, 5], 0)}, num_classes=C
    )
    with pytest.raises(ValueError, match="1 of 5 classes"):
        fit(missing)
    single = pack_features(tmp_path / "s.safetensors", {"train": drawn([1] * C, 0)})
    with pytest.raises(ValueError, match="two classes or more"):
        fit(single)
    rows, labels = drawn(COUNTS, 0)
    for wrong, message in (
        (np.zeros_like(rows), "nothing to learn from"),
        (np.where(rows > 3, np.nan, rows), "features of train must be finite numbers"),
    ):
        with pytest.raises(ValueError, match=message):
            fit(checked_features({"train": (wrong, labels)}))


def test_a_gain_that_may_be_chance_is_not_told_to_be_used(result):
    """On the test part the best of the validation samples is the linear layer over again."""
    assert result.best.name != "linear"
    same = replace(result, test=replace(result.linear))
    said = fit_page(same, FOOTER).next_step
    assert said.startswith("model.safetensors holds the best on validation samples")
    assert "may be chance" in said


def test_labels_that_begin_at_one_are_told_so(tmp_path):
    features = np.random.default_rng(0).normal(size=(60, 3)).astype(np.float32)
    np.savez(tmp_path / "a.npz", features=features, labels=np.arange(60) % 3 + 1)
    with pytest.raises(ValueError, match="labels begin at 1"):
        fit(read_features(tmp_path / "a.npz"))


def test_plain_arrays_give_what_a_feature_file_gives(packed, result):
    """NumPy or torch, with the parts beside them."""
    (rows, labels), (test_rows, test_labels) = drawn(COUNTS, 0), drawn([100] * C, 1)
    same = {"methods": ["adjusted", "tau_norm"], "folds": 3}
    expected = fit(packed, **same)
    of_numpy = fit(rows, labels, test=(test_rows, test_labels), classes=packed.classes, **same)
    of_torch = fit(
        torch.from_numpy(rows),
        torch.from_numpy(labels),
        test=(torch.from_numpy(test_rows), test_labels.tolist()),
        **same,
    )
    for other in (of_numpy, of_torch):
        for one, two in zip(expected.table, other.table, strict=True):
            assert (one.name, one.validation, one.test) == (two.name, two.validation, two.test)
    assert of_numpy.classes == packed.classes
    assert np.array_equal(rows, drawn(COUNTS, 0)[0])  # what came in is left as it was


def test_arrays_without_labels_and_files_with_labels_are_refused(packed):
    rows, labels = drawn(COUNTS, 0)
    with pytest.raises(ValueError, match="need labels"):
        fit(rows)
    with pytest.raises(ValueError, match="holds its own labels"):
        fit(packed, labels)
    for wrong in ({"target": "unifrom"}, {"criterion": "accuracy"}):
        with pytest.raises(ValueError, match=f"{next(iter(wrong))} must be"):
            fit(rows, labels, **wrong)
    with pytest.raises(ValueError, match="weight of zero"):
        fit(rows, labels, target=Prior.of([0, 1, 1, 1, 1], zeros="keep"))


def test_from_arrays_to_a_page_and_a_model_that_predicts(tmp_path):
    """As a user writes it."""
    rows, labels = drawn(COUNTS, 0)
    out, page = tmp_path / "fitted", lt.report.save
    result = lt.fit(rows, labels, methods=["adjusted"], folds=2, output=out, page=page)
    assert lt.report.save(result, out).name == "report.html"
    assert result._repr_html_().startswith("<iframe")
    assert {path.name for path in out.glob("[!.]*")} == {
        "metrics.json",
        "model.safetensors",
        "report.html",
        "validation.safetensors",
    }
    predicted_classes = lt.load(out).predict(rows)
    assert (predicted_classes == labels).mean() > 0.8
    with pytest.raises(ValueError, match="longtail fit"):
        lt.fix(result.scores, train=COUNTS, output=out)


def test_a_target_may_be_by_name():
    rows, labels = drawn(COUNTS, 0)
    names = [f"class {k}" for k in range(len(COUNTS))]
    weights = dict(zip(names, range(1, len(COUNTS) + 1), strict=True))
    by_name = dict(sorted(weights.items(), reverse=True))
    result = lt.fit(rows, labels, classes=names, methods=["adjusted"], folds=2, target=by_name)
    assert result.target.is_close(Prior.of(list(weights.values())))


@pytest.mark.parametrize(
    ("dtype", "unit"), [("float64", 1e-140), ("float64", 1e140), ("float32", 1e30)]
)
def test_the_unit_of_features_does_not_matter(dtype, unit):
    rows, labels = drawn(COUNTS, 0)
    rows = np.asarray(rows, dtype)
    options = {"methods": ["adjusted", "ncm_cl2n"], "folds": 2}
    expected, result = (
        lt.fit(each, labels, **options) for each in (rows, rows * rows.dtype.type(unit))
    )
    assert result.best.name == expected.best.name
    accuracy = (each.best.validation["accuracy"].value for each in (result, expected))
    assert next(accuracy) == pytest.approx(next(accuracy), abs=0.02)


@pytest.mark.parametrize(("unit", "word"), [(1e-200, "little"), (1e200, "much")])
def test_features_beyond_the_range_of_squares_are_told_as_such(unit, word):
    rows, labels = drawn(COUNTS, 0)
    with pytest.raises(ValueError, match=f"too {word}"):
        lt.fit(np.asarray(rows, "float64") * unit, labels)
    with pytest.raises(ValueError, match="the same"):
        lt.fit(np.full((len(labels), 2), unit), labels)


@pytest.mark.parametrize("part", ["validation", "test"])
def test_no_part_may_have_the_samples_of_another(part):
    rows, labels = drawn(COUNTS, 0)
    with pytest.raises(ValueError, match=f"{part} part has the samples of the train part"):
        lt.fit(rows, labels, **{part: (rows.copy(), labels)})


def test_a_second_fit_leaves_nothing_of_the_first(tmp_path):
    """Or compare would judge the new model by the test scores of the old one."""
    (rows, labels), (test, truth) = drawn(COUNTS, 0), drawn(COUNTS, 1)
    options = {"methods": ["adjusted"], "folds": 2, "output": tmp_path}
    lt.fit(rows, labels, test=(test, truth), **options)
    second = lt.fit(rows[:, :2], labels, **options)
    assert not (tmp_path / "test.safetensors").exists()
    (compared,) = lt.compare(tmp_path).sets
    value = compared.methods[0].estimates["balanced_accuracy"].value
    assert value == pytest.approx(second.best.validation["balanced_accuracy"].value)


def test_names_as_labels_become_classes_and_a_file_is_named_by_its_path(tmp_path):
    rows, labels = drawn(COUNTS, 0)
    names = np.array([f"class {k}" for k in range(len(COUNTS))])
    options = {"methods": ["adjusted"], "folds": 2}
    by_number = lt.fit(rows, labels, classes=names.tolist(), **options)
    by_name = lt.fit(rows, names[np.asarray(labels)], **options)
    assert by_name.classes == by_number.classes == tuple(names)
    assert by_name.as_json()["weight_decay"] == by_number.as_json()["weight_decay"]
    np.savez(tmp_path / "features.npz", features=np.asarray(rows), labels=np.asarray(labels))
    by_file = lt.fit(tmp_path / "features.npz", **options)
    assert by_file.best.name == by_number.best.name
    with pytest.raises(ValueError, match="'zebra'"):
        lt.fit(rows, ["zebra"] * len(rows), classes=names.tolist(), **options)


def test_multi_ncm_moves_adjusted_about_the_centres_of_the_plain_learned_ncm(packed):
    samples = fit_samples(packed, 3, seed=0).train
    layer = torch.nn.Linear(D, C)
    task = fit_methods.Task(samples, layer, weight_decay=0.01, seed=0)

    def fitted(name):
        torch.manual_seed(0)
        return METHODS[name].fit(task)

    plain, adjusted, multi = map(fitted, ("learned_ncm", "learned_ncm_adjusted", "multi_ncm"))
    assert torch.equal(multi.centers, plain.centers)
    assert not torch.allclose(multi.centers, adjusted.centers)
    # Written out: the least distance to a centre and its displacements, and the loss of eq. 9.
    near = torch.cat([torch.zeros(1, D), multi.displacements.detach()])
    rows = samples.features[:7]
    apart = (rows[:, None, None] - plain.centers.detach()[:, None] - near).norm(dim=-1)
    torch.testing.assert_close(multi(rows), -apart.amin(dim=-1) / 2)
    assert multi.carried.is_close(adjusted.carried)


def test_every_method_that_must_be_named_is_fitted_if_it_is(packed):
    found = fit(packed, methods=fit_methods.ONLY_IF_NAMED, folds=2)
    assert {each.name for each in found.table} == {"linear", *fit_methods.ONLY_IF_NAMED}
    assert [each.error for each in found.table] == [""] * len(found.table)


@pytest.mark.parametrize(
    ("name", "loss"),
    [("focal", losses.Focal), ("adaptive", losses.Adaptive), ("equalised", losses.Equalized)],
)
def test_a_layer_of_another_loss_is_where_that_loss_is_least(packed, name, loss):
    samples = fit_samples(packed, 3, seed=0).train
    task = fit_methods.Task(samples, torch.nn.Linear(D, C), weight_decay=0.01, seed=0)
    head = METHODS[name].fit(task)
    weight, bias = (each.detach().double().requires_grad_() for each in (head.weight, head.bias))
    logits = samples.features.double() @ weight.T + bias
    value = loss(task.prior)(logits, samples.labels) + 0.005 * weight.square().sum()
    value.backward()
    assert weight.grad.abs().max() < 1e-4
    assert bias.grad.abs().max() < 1e-4


def test_on_features_that_stay_elm_is_the_logit_adjusted_loss(packed):
    samples = fit_samples(packed, 3, seed=0).train
    task = fit_methods.Task(samples, torch.nn.Linear(D, C), weight_decay=0.01, seed=0)
    plain = fit_methods._trained(task, losses.LogitAdjusted)
    torch.testing.assert_close(METHODS["elm"].fit(task).weight, plain.weight)


def test_scores_by_method_are_those_of_fit_without_choosing(packed):
    methods = ("adjusted_tau", "tau_norm", "ncm", "learned_ncm")
    whole = fit(packed, methods=methods, folds=3, seed=2)
    problem = prepared(packed, Aim(Prior.uniform(C)), 3, 2)
    assert problem.choice.decay * problem.samples.unit**2 == pytest.approx(whole.weight_decay)
    for name, scores in scores_by_method(problem, methods):
        expected = next(each for each in whole.table if each.name == name).test
        assert metrics.evaluate(scores)["nll"] == pytest.approx(expected["nll"].value)
        assert metrics.balanced_accuracy(scores) == expected["balanced_accuracy"].value
        assert scores.split == "test"
        assert scores.counts.tolist() == COUNTS.tolist()


def test_scores_by_method_say_why_a_method_cannot_be_fitted(packed, monkeypatch):
    def fail(task):
        raise ValueError("no such luck")

    monkeypatch.setitem(METHODS, "broken", fit_methods.Method("broken", "", fail))
    problem = prepared(packed, Aim(Prior.uniform(C)), 3, 0)
    made = dict(scores_by_method(problem, ["broken"]))
    assert str(made["broken"]) == "no such luck"
    train = pack_features_of(packed, "train")
    with pytest.raises(ValueError, match="no test part"):
        list(scores_by_method(prepared(train, Aim(Prior.uniform(C)), 3, 0), ["linear"]))


def pack_features_of(features, split):
    return checked_features({split: features.part(split)}, features.num_classes)


def test_the_seed_alone_decides_also_in_threads_and_torchs_own_generator_stays(packed):
    def fitted(_=0):
        methods = ["cosine", "learned_ncm", "multi_ncm", "crt"]
        result = fit(packed, methods=methods, folds=2, seed=3)
        return {each.name: each.validation["nll"].value for each in result.table}

    torch.manual_seed(0)
    expected = torch.rand(3)
    alone = fitted()
    torch.manual_seed(1)
    assert fitted() == alone
    torch.manual_seed(0)
    threads = torch.get_num_threads()
    with ThreadPoolExecutor(3, initializer=lambda: torch.set_num_threads(threads)) as pool:
        assert list(pool.map(fitted, range(3))) == [alone] * 3
    assert torch.equal(torch.rand(3), expected)


@pytest.mark.parametrize("seed", [2**64, -(2**63) - 1, 1.5])
def test_a_seed_that_torch_does_not_take_is_told_in_words(packed, seed):
    labels = torch.tensor([0, 1])
    for use in (
        lambda: fit(packed, methods=["linear"], seed=seed),
        lambda: InstanceSampler(labels, 2, seed=seed),
        lambda: TrainingOptions(epochs=1, batch_size=1, lr=0.1, seed=seed),
        lambda: fit_head(Linear(1, 2), labels[:, None].float(), labels, seed=seed),
    ):
        with pytest.raises(ValueError, match="seed must"):
            use()
