"""Second-stage heads, new batch-norm statistics and experts' weights, each by a naive reckoning."""

import json
import multiprocessing

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from torch.testing import assert_close

from engine.training.tiny import in_group
from flows.train.small_runs import of_a_run, small, variants_of_runs
from longtail import Prior, Scores, heads
from longtail.data import stratified_folds
from longtail.engine import fit_head, load_head
from longtail.engine.training import EpochEnd, predict
from longtail.flows.train import building
from longtail.flows.train.building import read_data
from longtail.flows.train.model_file import load_model
from longtail.flows.train.reading import RecipeError, recipe_from
from longtail.flows.train.result import read_run
from longtail.flows.train.scores import with_new_statistics
from longtail.flows.train.train import planned, train
from longtail.images import SAMPLERS, ImageArrays
from longtail.posthoc import WeightNormalization, average, expert_weights
from longtail.report import save

KEPT = [48, 24, 10, 5]  # of 60, 30, 12 and 6 a fifth is held out
NORMS = ["tau_norm", {"name": "tau_norm", "tau": 0.5}]
OTHERS = ["crt", "lws", {"name": "multi_ncm", "tau": 0.25, "num_displacements": 2}]
METRICS = ["metric_ncm", {"name": "metric_ncm", "metric": "eigenbasis", "tau": 0.5}]
EXPERTS = {
    "backbone": {"name": "mlp", "inputs": 192, "hidden": [12]},
    "head": {"name": "experts", "num_experts": 3, "kind": "linear"},
    "loss": {"name": "experts", "taus": [0.0, 1.0, 2.0]},
    "expert_weights": "validation",
}


@pytest.fixture(scope="module")
def run(images, tmp_path_factory):
    stage = {"heads": [*NORMS, *METRICS, *OTHERS, "nearest_class_mean"]}
    recipe = small(images, second_stage=stage)
    return train(recipe, tmp_path_factory.mktemp("runs") / "second", page=save)


@pytest.fixture(scope="module")
def features(run):
    stored, parts = load_model(run.folder), read_data(run.recipe.data)
    return {
        name: predict(stored.model, getattr(parts, name), stored.normalize).features
        for name in ("train", "validation", "test")
    }


def head_variants(run):
    return {variant.name: variant for variant in run.variants if variant.head is not None}


def test_tau_norm_divides_the_trained_weights_by_a_power_of_their_norm(run, features):
    weight = load_model(run.folder).model.head.weight.detach()
    for name, tau in (
        ("tau_norm-tau-0.5", 0.5),
        ("tau_norm", head_variants(run)["tau_norm"].norm_tau),
    ):
        rows = torch.stack([row / row.square().sum().sqrt() ** tau for row in weight])
        scores = Scores.load(run.folder / f"scores-test-{name}.safetensors")
        assert_close(
            torch.as_tensor(scores.logits), features["test"] @ rows.T, atol=1e-4, rtol=1e-4
        )
        assert scores.carried is None  # it multiplies, which is no change of prior


def test_the_tau_of_tau_norm_is_that_of_the_validation_part_and_judged_fold_by_fold(run, features):
    weight = load_model(run.folder).model.head.weight.detach()
    labels = read_data(run.recipe.data).validation.labels
    plain = Scores(features["validation"] @ weight.T, labels)
    nu = weight.double().square().sum(dim=1).sqrt()
    variant = head_variants(run)["tau_norm"]
    assert variant.norm_tau == pytest.approx(WeightNormalization.fit(plain, nu).tau, abs=1e-5)
    folds = stratified_folds(labels.numpy(), 5)
    judged = variant.scores["validation"].logits
    for fold in range(5):
        others = WeightNormalization.fit(plain.take(folds != fold), nu)
        expected = others(plain.take(folds == fold)).logits
        assert_close(judged[folds == fold], expected, atol=1e-4, rtol=1e-4)
    told = json.loads((run.folder / "metrics.json").read_text())["norm_taus"]
    assert told == {"tau_norm": variant.norm_tau, "tau_norm-tau-0.5": 0.5}
    assert f"normalised by τ = {variant.norm_tau:.3g}" in (run.folder / "report.html").read_text()


def test_metric_ncm_is_fitted_on_the_features_and_carries_what_its_loss_says(run, features):
    labels = read_data(run.recipe.data).train.labels
    torch.manual_seed(run.recipe.seed)
    head = heads.MetricNCM(16, 4)
    carried = fit_head(head, features["train"], labels, seed=run.recipe.seed)
    scores = Scores.load(run.folder / "scores-test-metric_ncm.safetensors")
    assert_close(
        torch.as_tensor(scores.logits), head(features["test"]).detach(), atol=1e-4, rtol=1e-4
    )
    assert scores.carried.is_close(carried)
    assert scores.carried.is_close(Prior.uniform(4))
    name = "metric_ncm-tau-0.5-metric-eigenbasis"
    adjusted = Scores.load(run.folder / f"scores-test-{name}.safetensors")
    assert adjusted.carried.is_close(Prior.of(KEPT).tempered(-0.5))
    assert load_head(run.folder / f"head-{name}.safetensors").head.metric == "eigenbasis"


def test_the_scores_of_every_head_say_what_they_carry(run):
    powers = {
        "crt": 0.0,
        "nearest_class_mean": 0.0,
        "metric_ncm": 0.0,
        "metric_ncm-tau-0.5-metric-eigenbasis": -0.5,
        "multi_ncm-tau-0.25-num_displacements-2": -0.25,
    }
    for name in head_variants(run):
        for split in ("validation", "test"):
            carried = Scores.load(run.folder / f"scores-{split}-{name}.safetensors").carried
            if name in powers:
                assert carried.is_close(Prior.of(KEPT).tempered(powers[name]))
            else:  # what multiplies logits is no change of prior
                assert name in ("lws", "tau_norm", "tau_norm-tau-0.5")
                assert carried is None


def test_a_run_is_read_again_with_all_its_heads(run):
    again = read_run(run.folder)
    assert again.metrics == run.metrics
    assert {n: v.norm_tau for n, v in head_variants(again).items()} == {
        n: v.norm_tau for n, v in head_variants(run).items()
    }
    assert not again.is_cross_fitted  # the headline is of the test part


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"second_stage": {"heads": ["tau_norm"]}}, r"tau_norm is chosen on a validation part"),
        (EXPERTS, r"expert_weights=validation is chosen on a validation part"),
    ],
)
def test_what_is_chosen_on_validation_needs_such_a_part_before_training(images, values, words):
    data = {"kind": "npz", "path": str(images), "validation_share": 0.0}
    with pytest.raises(RecipeError, match=words):
        planned(small(images, data=data, **values))


@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"head": "cosine", "second_stage": {"heads": NORMS}}, "tau_norm scales the rows"),
        ({"expert_weights": "validation"}, "those of experts"),
        ({"second_stage": {"heads": [{"name": "metric_ncm", "rank": 2}]}}, "rank"),
        ({"second_stage": {"heads": ["crt"], "batch_norm": "balanced"}}, "class_balanced"),
    ],
)
def test_what_makes_no_sense_in_the_second_stage_is_refused(images, values, words):
    with pytest.raises(RecipeError, match=words):
        small(images, **values)


@pytest.mark.parametrize(
    ("batch_norm", "sampler"),
    [("reestimate", "instance"), ("reestimate_class_balanced", "class_balanced")],
)
def test_batch_norm_statistics_are_those_of_a_naive_pass_with_either_sampler(batch_norm, sampler):
    generator = torch.Generator().manual_seed(0)
    pixels = torch.randint(256, (300, 3, 8, 8), dtype=torch.uint8, generator=generator)
    pixels[270:] //= 4  # the rare class is dark
    images = ImageArrays(pixels, [0] * 270 + [1] * 30)
    recipe = recipe_from({"data": "cifar10", "backbone": {"name": "small_cnn", "dim": 32}})
    model = building.build_model(recipe, Prior.uniform(2))
    normalize = building.build_normalize(recipe, images)
    changed = with_new_statistics(model, images, normalize, batch_norm)
    order = list(SAMPLERS[sampler](images.labels, 2))
    assert len(order) == 300
    assert images.labels[order].bincount().tolist() == (
        [270, 30] if sampler == "instance" else [150, 150]
    )
    conv, norm = model.backbone.layers[:2]
    channels = conv.out_channels
    means, variances = torch.zeros(channels), torch.zeros(channels)
    for at in (order[:256], order[256:]):
        maps = conv(normalize(pixels[at])).detach().transpose(0, 1).flatten(1)
        means += maps.mean(dim=1) * len(at) / 300
        variances += maps.var(dim=1) * len(at) / 300
    assert_close(changed.backbone.layers[1].running_mean, means, atol=1e-5, rtol=1e-5)
    assert_close(changed.backbone.layers[1].running_var, variances, atol=1e-5, rtol=1e-5)
    assert norm.running_mean.abs().max() == 0  # the model itself is as it was


def test_the_second_stage_sees_the_features_of_the_new_statistics(images, tmp_path):
    values = {"backbone": {"name": "small_cnn", "dim": 32}, "epochs": 1}
    means = {}
    for batch_norm in ("keep", "reestimate", "reestimate_class_balanced"):
        stage = {"heads": ["nearest_class_mean"], "batch_norm": batch_norm}
        result = train(small(images, second_stage=stage, **values), tmp_path / batch_norm)
        means[batch_norm] = result.variants[-1].head.centers
        model = result.model.model
        if batch_norm != "keep":
            parts = read_data(result.recipe.data)
            model = with_new_statistics(model, parts.train, result.model.normalize, batch_norm)
        parts = read_data(result.recipe.data)
        rows = predict(model, parts.train, result.model.normalize).features
        naive = torch.stack([rows[parts.train.labels == k].mean(dim=0) for k in range(4)])
        assert_close(means[batch_norm], naive, atol=1e-4, rtol=1e-4)
    kept, instance, balanced = means.values()
    assert not torch.allclose(kept, instance)
    assert not torch.allclose(instance, balanced)


def experts_of(result, split):
    """The scores of each expert, with the prior that it was trained to carry."""
    stored, parts = result.model, read_data(result.recipe.data)
    part = getattr(parts, split)
    each = stored.model.head.each(predict(stored.model, part, stored.normalize).features).detach()
    taus = result.recipe.loss.taus
    return [
        Scores(each[..., k], part.labels, Prior.of(KEPT).tempered(1 - tau), split=split)
        for k, tau in enumerate(taus)
    ]


def test_experts_weigh_what_has_the_least_log_loss_on_validation_and_any_target_is_exact(
    images, tmp_path
):
    result = train(small(images, epochs=4, **EXPERTS), tmp_path / "run", page=save)
    uniform = Prior.uniform(4)
    validation, test = (experts_of(result, split) for split in ("validation", "test"))
    weights = expert_weights(validation, uniform, of="logits")
    assert result.expert_weights == pytest.approx(weights.tolist(), abs=1e-6)
    assert max(weights) - min(weights) > 0.01  # or nothing would be shown
    trained = result.variants[0].scores["test"]
    assert trained.carried.is_close(Prior.of(KEPT).tempered(1 - weights @ [0.0, 1.0, 2.0]), 1e-5)
    for target in (uniform, Prior.of(KEPT), Prior.of([1, 5, 2, 9])):
        expected = average(test, target, "logits", weights).probs()
        assert_close(trained.under(target).probs(), expected, atol=1e-5, rtol=1e-4)
    folds = stratified_folds(validation[0].labels.numpy(), 5)
    judged = result.variants[0].scores["validation"]
    for fold in range(5):
        rest = expert_weights([each.take(folds != fold) for each in validation], uniform, "logits")
        own = average([each.take(folds == fold) for each in validation], uniform, "logits", rest)
        assert_close(
            judged.take(folds == fold).under(uniform).probs(), own.probs(), atol=1e-4, rtol=1e-3
        )
    again = read_run(tmp_path / "run")
    assert again.trained.carried == result.trained.carried == trained.carried
    assert again.expert_weights == result.expert_weights
    assert again.metrics == result.metrics
    told = json.loads((tmp_path / "run" / "metrics.json").read_text())
    assert told["expert_weights"] == result.expert_weights
    assert "lets the experts weigh" in (tmp_path / "run" / "report.html").read_text()


def test_a_sampler_changes_what_each_expert_carries_alike(images, tmp_path):
    result = train(small(images, sampler="square_root", **EXPERTS), tmp_path)
    batches, weights = Prior.of(np.sqrt(KEPT)), np.array(result.expert_weights)
    carried = result.variants[0].scores["test"].carried
    assert carried.is_close(batches.tempered(1 - weights @ [0.0, 1.0, 2.0]), 1e-5)
    # The loss is for batches as they were at first; at the end all classes come alike.
    result = train(small(images, sampler="progressive", **EXPERTS), tmp_path / "progressive")
    weights = np.array(result.expert_weights)
    carried = result.variants[0].scores["test"].carried
    assert carried.is_close(Prior.of(KEPT).tempered(-weights @ [0.0, 1.0, 2.0]), 1e-4)


def test_terms_and_schedules_leave_what_each_expert_carries(images, tmp_path):
    values = {"terms": [{"name": "spread_out", "weight": 0.1}], "drw": {"start": 1, "beta": 0.9}}
    result = train(small(images, **EXPERTS | values), tmp_path)
    weights = np.array(result.expert_weights)
    drawn = Prior.of(KEPT).reweighted((1 - 0.9) / (1 - 0.9 ** np.array(KEPT, dtype=float)))
    logs = drawn.log - weights @ [0.0, 1.0, 2.0] * Prior.of(KEPT).log
    assert result.variants[0].scores["test"].carried.is_close(Prior.from_log(logs), 1e-4)


STAGED = {"second_stage": {"heads": [*NORMS, *METRICS], "batch_norm": "reestimate_class_balanced"}}


@pytest.mark.parametrize("values", [EXPERTS, STAGED], ids=["experts", "second stage"])
def test_a_run_that_was_interrupted_chooses_what_one_that_was_not_does(values, images, tmp_path):
    def stop(event):
        if isinstance(event, EpochEnd):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        train(small(images, **values), tmp_path / "broken", progress=stop)
    broken, whole = (of_a_run(images, tmp_path / name, values) for name in ("broken", "whole"))
    assert_close(broken, whole, rtol=0, atol=0)
    assert_close(of_a_run(images, tmp_path / "whole", values), whole, rtol=0, atol=0)


def test_two_processes_choose_alike_and_what_one_would_with_their_model(images, tmp_path):
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(["longtail.flows.train.train", "torch._dynamo"])
    work = (str(tmp_path), variants_of_runs, images, tmp_path, {"experts": EXPERTS, "two": STAGED})
    team = [server.Process(target=in_group, args=(rank, 2, *work)) for rank in range(2)]
    for process in team:
        process.start()
    for process in team:
        process.join()
    assert [process.exitcode for process in team] == [0, 0]
    first, second = (load_file(tmp_path / f"rank{rank}.safetensors") for rank in range(2))
    assert_close(first, second, rtol=0, atol=0)
    for name in ("experts", "two"):
        result = read_run(tmp_path / name)
        for variant in result.variants:
            for split, scores in variant.scores.items():
                logits = first[f"{name}.{variant.name}.{split}"]
                assert_close(torch.as_tensor(scores.logits), logits)
    result = read_run(tmp_path / "experts")
    chosen = expert_weights(experts_of(result, "validation"), Prior.uniform(4), "logits")
    assert result.expert_weights == pytest.approx(chosen.tolist(), abs=1e-6)
