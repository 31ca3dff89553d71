"""A run from labels to a report, with the real engine on images of a few pixels."""

import json
import os
import shutil
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from flows.train.small_runs import small
from longtail import Prior, Scores, heads
from longtail.core.files import locked
from longtail.data import Features, shifted_subset, stratified_folds
from longtail.engine import fit_head, load_head
from longtail.engine.training import EpochEnd, predict
from longtail.flows.features import features as extract_features
from longtail.flows.train import building
from longtail.flows.train.building import read_data
from longtail.flows.train.model_file import load_model
from longtail.flows.train.reading import RecipeError, overridden, plain, recipe_from
from longtail.flows.train.result import read_run
from longtail.flows.train.run_folder import check_folder, read_log
from longtail.flows.train.scores import with_new_statistics
from longtail.flows.train.train import planned, train
from longtail.images import ImageArrays
from longtail.metrics import accuracy_under
from longtail.metrics.representations import weight_norms
from longtail.posthoc import LogitAdjustment
from longtail.recipes.catalogue import read_recipe
from longtail.report import save
from longtail.report.figures import group_curves_chart, weight_norms_chart
from longtail.report.pages.train import headline, plan_in_words

KEPT = [48, 24, 10, 5]  # of 60, 30, 12 and 6 a fifth is held out


def run_recipe(recipe, folder, **options):
    return train(recipe, folder, page=save, **options)


@pytest.fixture(scope="module")
def run(images, tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "ce"
    stage = {"heads": ["nearest_class_mean", {"name": "learned_ncm", "tau": 0.125}, "crt", "lws"]}
    return run_recipe(small(images, second_stage=stage), folder)


def test_a_run_folder_has_all_that_a_run_came_to(run):
    names = {place.name for place in run.folder.iterdir()}
    assert names >= {
        "recipe.yaml",
        "versions.json",
        "log.csv",
        "model.safetensors",
        "scores-validation.safetensors",
        "scores-test.safetensors",
        "scores-test-crt.safetensors",
        "head-learned_ncm-tau-0.125.safetensors",
        "metrics.json",
        "report.html",
    }
    assert read_recipe(run.folder / "recipe.yaml") == run.recipe
    versions = json.loads((run.folder / "versions.json").read_text())
    assert versions["torch"].startswith(torch.__version__.split("+")[0])


def test_the_scores_carry_the_prior_of_what_was_trained_on(run):
    for split in ("validation", "test"):
        scores = Scores.load(run.folder / f"scores-{split}.safetensors")
        assert scores.carried.is_close(Prior.of(KEPT))
        assert scores.counts.tolist() == KEPT
        assert scores.split == split


def test_under_the_target_is_the_scores_moved_there_and_measured_there(run):
    scores = Scores.load(run.folder / "scores-test.safetensors")
    logits, labels = scores.logits.astype(float), scores.labels
    moved = logits - np.log(np.array(KEPT) / sum(KEPT))
    for name, rows in (("as trained", logits), ("under the target", moved)):
        right = [rows[i].argmax() == labels[i] for i in range(len(labels))]
        recalls = [np.mean([right[i] for i in np.flatnonzero(labels == c)]) for c in range(4)]
        found = run.metrics["test"][name]
        assert found["balanced_accuracy"].value == pytest.approx(np.mean(recalls))
        assert found["medium"].value == pytest.approx(np.mean(recalls[:2]))
        assert found["few"].value == pytest.approx(np.mean(recalls[2:]))
        assert found["many"].value is None
    written = json.loads((run.folder / "metrics.json").read_text())
    value = written["metrics"]["test"]["under the target"]["balanced_accuracy"]["value"]
    assert value == run.metrics["test"]["under the target"]["balanced_accuracy"].value
    assert written["headline"] == "under the target"


def test_the_model_file_gives_the_same_logits_again(run, images):
    stored = load_model(run.folder)
    test = read_data(run.recipe.data).test
    again = predict(stored.model, test, stored.normalize).logits
    assert torch.equal(again, run.variants[0].scores["test"].logits)
    assert stored.model.carried.is_close(Prior.of(KEPT))
    assert (stored.recipe, list(stored.counts)) == (run.recipe, KEPT)


def test_a_run_is_read_again_as_it_was(run):
    again = read_run(run.folder)
    assert again.metrics == run.metrics
    assert again.as_json() == run.as_json()
    assert again.judgement.as_json() == run.judgement.as_json()
    assert [v.name for v in again.variants] == [v.name for v in run.variants]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("metrics.json", "[]"),
        ("metrics.json", '{"best_epoch": "last"}'),
        ("metrics.json", "[" * 100_000),
        ("metrics.json", None),
        ("log.csv", ""),
        ("log.csv", "epoch,step\n1,2\n"),
        ("log.csv", "epoch,train_loss,seconds\n1,2,3,4\n"),
        ("log.csv", "epoch,train_loss,seconds\n1,much,3\n"),
    ],
)
def test_a_damaged_file_of_a_run_is_named(run, name, text, tmp_path):
    folder = shutil.copytree(run.folder, tmp_path / "run")
    (folder / name).unlink()
    if text is None:
        os.mkfifo(folder / name)
    else:
        (folder / name).write_text(text)
    with pytest.raises(ValueError, match=rf"{name} cannot be read as the"):
        read_run(folder)


def test_second_stage_heads_are_those_of_the_trained_features(run):
    stored = load_model(run.folder)
    splits = read_data(run.recipe.data)
    train, test = (
        predict(stored.model, part, stored.normalize).features
        for part in (splits.train, splits.test)
    )
    means = torch.stack([train[splits.train.labels == c].mean(dim=0) for c in range(4)])
    nearest = torch.cdist(test.double(), means.double()).argmin(dim=1)
    found = Scores.load(run.folder / "scores-test-nearest_class_mean.safetensors")
    assert (found.predict() == nearest.numpy()).all()
    learned = load_head(run.folder / "head-learned_ncm-tau-0.125.safetensors").head
    assert isinstance(learned, heads.LearnedNCM)
    assert learned.carried.is_close(Prior.of(KEPT).tempered(-0.125))
    assert [option.full_name for option in run.recipe.second_stage.heads] == [
        "nearest_class_mean",
        "learned_ncm-tau-0.125",
        "crt",
        "lws",
    ]


def test_heads_that_differ_in_an_option_have_names_of_their_own(images, tmp_path):
    heads_of = [
        "nearest_class_mean",
        {"name": "nearest_class_mean", "metric": "cosine"},
        {"name": "multi_ncm", "tau": 0.125, "num_displacements": 2},
    ]
    result = run_recipe(small(images, epochs=1, second_stage={"heads": heads_of}), tmp_path)
    assert [variant.name for variant in result.variants[2:]] == [
        "nearest_class_mean",
        "nearest_class_mean-metric-cosine",
        "multi_ncm-tau-0.125-num_displacements-2",
    ]
    first, second = (variant.scores["test"].logits for variant in result.variants[2:4])
    assert not torch.allclose(first, second)


def test_a_run_with_a_balanced_test_part_reports_shifted_sets(run):
    told = json.loads((run.folder / "metrics.json").read_text())["shifted_sets"]
    assert [each["ratio"] for each in told] == [10, 5, 2, 2, 5, 10]  # 20 test images a class
    test = Scores.load(run.folder / "scores-test.safetensors")
    for each in told:
        at = shifted_subset(np.asarray(test.labels), KEPT, each["ratio"], each["direction"])
        prior = Prior.of(np.bincount(np.asarray(test.labels)[np.asarray(at)]))
        assert each["as_trained"]["value"] == pytest.approx(accuracy_under(test, target=prior))
        moved = accuracy_under(test.under(prior), target=prior)
        assert each["known"]["value"] == pytest.approx(moved)
        assert each["estimated"]["value"] is not None
    page = (run.folder / "report.html").read_text()
    assert "If the labels shift" in page
    assert "backward 10" in page
    assert read_run(run.folder).shifted_sets == run.shifted_sets


def test_displacements_trained_with_adjustment_are_about_centres_trained_without(images, tmp_path):
    heads_of = [
        "learned_ncm",
        {"name": "learned_ncm", "tau": 0.125},
        {"name": "multi_ncm", "num_displacements": 3},
        {"name": "multi_ncm", "tau": 0.125, "num_displacements": 3},
    ]
    result = run_recipe(small(images, epochs=1, second_stage={"heads": heads_of}), tmp_path)
    plain, adjusted, multi, multi_adjusted = (variant.head for variant in result.variants[2:])
    assert torch.equal(multi.centers, plain.centers)
    assert torch.equal(multi_adjusted.centers, plain.centers)
    assert not torch.allclose(adjusted.centers, plain.centers)
    assert not torch.allclose(multi_adjusted.displacements, multi.displacements)
    # Written out: adjustment is in the loss of the displacements, and nowhere else.
    features = predict(
        result.model.model, read_data(result.recipe.data).train, result.model.normalize
    ).features
    labels = read_data(result.recipe.data).train.labels
    torch.manual_seed(result.recipe.seed)
    learned = heads.LearnedNCM(features.shape[1], 4)
    fit_head(learned, features, labels, sgd=heads.LearnedNCM.sgd, seed=result.recipe.seed)
    head = heads.MultiNCM.from_learned(learned, 3)
    fit_head(head, features, labels, sgd=heads.MultiNCM.adjusted_sgd, seed=result.recipe.seed)
    for name, value in head.state_dict().items():
        torch.testing.assert_close(multi_adjusted.state_dict()[name], value)


def test_the_report_has_the_figures_and_asks_for_nothing(run):
    page = (run.folder / "report.html").read_text()
    for words in (
        "Balanced accuracy went from",
        "test samples of",
        'data-explorer="tau"',
        "All variants on the test part",
        "LA figure 1",
        "NCM figure 4",
        "lws",
    ):
        assert words in page
    assert "src=" not in page


def test_a_run_that_was_interrupted_ends_as_one_that_was_not(run, images, tmp_path):
    def stop(event):
        if isinstance(event, EpochEnd) and event.epoch == 1:
            raise KeyboardInterrupt

    recipe, folder = small(images, epochs=3), tmp_path / "broken"
    whole = run_recipe(recipe, tmp_path / "whole")
    with pytest.raises(KeyboardInterrupt):
        run_recipe(recipe, folder, progress=stop)
    assert not (folder / "metrics.json").exists()
    again = run_recipe(recipe, folder)
    for name in ("model.safetensors", "scores-test.safetensors"):
        # The tensors: the header's entries come in any order.
        ours, theirs = load_file(folder / name), load_file(tmp_path / "whole" / name)
        assert ours.keys() == theirs.keys()
        assert all(torch.equal(ours[key], theirs[key]) for key in ours)
    assert len(read_log(folder)) == 3
    assert again.metrics["test"] == whole.metrics["test"]


def test_a_folder_of_another_recipe_is_refused_with_what_differs(run):
    other = overridden(run.recipe, ["epochs=5", "loss=lade"])
    with pytest.raises(RecipeError, match=r"(?s)another recipe.*loss.name: 'cross_entropy'"):
        check_folder(run.folder, other, "auto")
    with pytest.raises(RecipeError, match="holds a run already"):
        check_folder(run.folder, run.recipe, "never")
    moved = overridden(run.recipe, ["data.path=elsewhere", "num_workers=3"])
    assert check_folder(run.folder, moved, "auto")
    with pytest.raises(RecipeError, match="is a file"):
        check_folder(run.folder / "log.csv", run.recipe, "auto")


def test_a_run_that_broke_off_before_its_first_checkpoint_does_not_keep_its_folder(run, tmp_path):
    for name in ("recipe.yaml", "versions.json"):
        (tmp_path / name).write_bytes((run.folder / name).read_bytes())
    other = overridden(run.recipe, ["epochs=5"])
    assert not check_folder(tmp_path, other, "auto")
    assert not check_folder(tmp_path, other, "never")
    (tmp_path / "checkpoint").mkdir()
    with pytest.raises(RecipeError, match="another recipe"):
        check_folder(tmp_path, other, "auto")


@pytest.mark.parametrize(
    ("values", "carried"),
    [
        ({"loss": "logit_adjusted"}, Prior.uniform(4)),
        ({"loss": {"name": "logit_adjusted", "tau": 0.5}}, Prior.of(KEPT).tempered(0.5)),
        ({"sampler": "class_balanced"}, Prior.uniform(4)),
        ({"sampler": "class_balanced", "loss": "logit_adjusted"}, Prior.uniform(4)),
        ({"loss": "focal"}, None),
        ({"head": "estimated_offset", "loss": "estimated_offset"}, None),
        ({"head": "weight_vector_norm"}, None),
        ({"loss": {"name": "elm", "margins": "sqrt_count"}}, Prior.uniform(4)),
    ],
    ids=str,
)
def test_what_a_run_carries_is_what_loss_and_sampler_say(values, carried, images, tmp_path):
    result = run_recipe(small(images, epochs=1, **values), tmp_path)
    if carried is None:
        assert result.trained.carried is None
        assert result.main_variant == "as trained"
        assert "is no prior" in (tmp_path / "report.html").read_text()
    else:
        assert result.trained.carried.is_close(carried)


TERMS = [
    {"name": "center", "weight": 0.01},
    {"name": "dro_lt", "weight": 0.01, "start": 1},
    {"name": "spread_out", "weight": 0.1, "pairs": "all"},
]


@pytest.mark.parametrize("loss", ["cross_entropy", "logit_adjusted", "focal"])
def test_terms_change_what_is_learned_and_not_what_is_carried(loss, images, tmp_path):
    plain_run = run_recipe(small(images, loss=loss), tmp_path / "plain")
    recipe = small(images, loss=loss, terms=TERMS)
    plan = planned(recipe)
    assert plan.carried == planned(small(images, loss=loss)).carried
    assert plan.terms == ("center", "dro_lt", "spread_out")
    assert plan_in_words(plan)[-1].endswith(
        "; terms on the features (center, dro_lt, spread_out) leave that as it is"
    )
    result = run_recipe(recipe, tmp_path / "terms")
    before, after = (each.trained.carried for each in (plain_run, result))
    assert before is after is None or before.is_close(after)
    assert result.variants[0].scores["test"].carried == plain_run.variants[0].scores["test"].carried
    weights = [next(each.model.model.backbone.parameters()) for each in (plain_run, result)]
    assert not torch.equal(*weights)
    page = (tmp_path / "terms" / "report.html").read_text()
    assert "Terms on the features: center, dro_lt, spread_out." in page
    assert "name center, weight 0.01" in page
    assert "Terms on the features" not in (tmp_path / "plain" / "report.html").read_text()
    centers = load_file(next((tmp_path / "terms" / "checkpoint").glob("*.safetensors")))
    assert centers["loss.terms.0.centers"].any()
    assert centers["loss.terms.1.centers"].any()


@pytest.mark.parametrize(
    ("name", "weight"),
    [
        *(("dro_lt", 0.1), ("range", 0.001), ("lifted_structure", 0.01)),
        *(("center", 0.01), ("spread_out", 0.1), ("pull", 0.01)),
    ],
)
def test_a_network_learns_beside_each_term(name, weight, images, tmp_path):
    recipe = small(images, epochs=8, terms=[{"name": name, "weight": weight}])
    result = run_recipe(recipe, tmp_path)
    history = result.trained.history
    assert history[-1]["train_loss"] < history[0]["train_loss"]
    accuracy = result.metrics["test"][result.main_variant]["balanced_accuracy"]
    assert accuracy.low > 0.25  # that of chance


def test_ldam_is_reweighted_late_and_drawn_at_its_scale(images, tmp_path):
    recipe = small(
        images,
        head={"name": "cosine", "scale": 30},
        loss={"name": "ldam", "scale_in": "head"},
        drw={"start": 1, "beta": 0.99},
    )
    result = run_recipe(recipe, tmp_path)
    assert result.trained.carried is None
    assert result.variants[0].scores["test"].logits.abs().max() <= 30.001


def test_tau_is_chosen_on_the_validation_part_alone(images, tmp_path):
    recipe = small(images, target={"tau": "auto"})
    result = run_recipe(recipe, tmp_path)
    scores, moved = result.variants[0].scores["test"], result.variants[1].scores["test"]
    shift = (moved.logits - scores.logits).double()
    offsets = -Prior.of(KEPT).log
    ratio = (shift[:, 0] - shift[:, 3]) / (offsets[0] - offsets[3])
    assert torch.allclose(ratio, ratio[0].expand_as(ratio), atol=1e-4)
    with pytest.raises(ValueError, match=r"data\.validation_share"):
        run_recipe(overridden(recipe, ["data.validation_share=0"]), tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_a_move_that_does_not_reach_the_target_is_not_called_under_it(images, tmp_path):
    result = run_recipe(small(images, target={"tau": 0.5}), tmp_path)
    assert result.main_variant == "moved by τ = 0.5"
    assert result.judgement.samples.names == ("as trained", "moved by τ = 0.5")
    again = read_run(tmp_path)
    assert again.metrics == result.metrics


def test_without_a_test_part_the_chosen_tau_is_judged_by_the_fifths_that_did_not_choose_it(
    images, tmp_path
):
    with np.load(images) as parts:
        np.savez(tmp_path / "two.npz", **{k: v for k, v in parts.items() if "test" not in k})
    recipe = small(tmp_path / "two.npz", target={"tau": "auto", "criterion": "nll"})
    result = run_recipe(recipe, tmp_path / "run")
    trained, moved = (variant.scores["validation"] for variant in result.variants)
    assert torch.equal(trained.labels, moved.labels)
    shift = (moved.logits - trained.logits).double()
    log = Prior.of(KEPT).log
    taus = (shift[:, 3] - shift[:, 0]) / (log[0] - log[3])
    folds = stratified_folds(trained.labels.numpy(), 5)
    for fold in range(5):
        others = LogitAdjustment.fit(trained.take(folds != fold), criterion="nll")
        assert np.allclose(taus[folds == fold], others.tau, atol=1e-4)
    assert len(set(np.round(taus.numpy(), 3))) > 1
    assert result.judgement.samples.is_cross_fitted
    assert json.loads((tmp_path / "run" / "metrics.json").read_text())["cross_fitted"]
    for text in (headline(result), (tmp_path / "run" / "report.html").read_text()):
        assert "no test part" in text
    assert read_run(tmp_path / "run").metrics == result.metrics


@pytest.mark.parametrize("prior", [[0, 0, 0, 1], [1, 0, 0, 3]])
def test_a_fold_whose_others_have_no_sample_that_counts_is_moved_all_the_way(
    prior, images, tmp_path
):
    result = run_recipe(small(images, target={"tau": "auto", "prior": prior}), tmp_path)
    assert (result.variants[0].scores["validation"].labels == 3).sum() == 1
    assert result.variants[1].scores["validation"].carried.is_close(Prior.of(prior, zeros="keep"))


def test_tau_needs_a_validation_image_for_each_fifth(images, tmp_path):
    few = small(images, data={"kind": "npz", "path": str(images), "validation_share": 0.01})
    with pytest.raises(RecipeError, match=r"at least 5 images.* 4"):
        planned(overridden(few, ["target.tau=auto"]))


def test_a_folder_is_looked_at_by_whoever_has_it_alone(images, tmp_path, monkeypatch):
    seen = []

    def spied(folder, recipe):
        with ThreadPoolExecutor(1) as other, pytest.raises(BlockingIOError):
            other.submit(lambda: locked(folder).__enter__()).result()
        seen.append(folder)

    monkeypatch.setattr("longtail.flows.train.train.check_folder", spied)
    train(small(images, epochs=1), tmp_path / "run")
    assert seen == [tmp_path / "run"]


def test_a_target_of_the_wrong_length_is_told_before_training(images, tmp_path):
    with pytest.raises(ValueError, match=r"3 weights.* 4 classes"):
        run_recipe(small(images, target={"prior": [1, 1, 2]}), tmp_path / "none")
    result = run_recipe(small(images, epochs=1, target={"prior": [1, 1, 1, 5]}), tmp_path)
    assert result.target.is_close(Prior.of([1, 1, 1, 5]))


def test_tau_cannot_move_logits_that_carry_nothing(images, tmp_path):
    for values in ({"loss": "focal"}, {"head": "causal_norm"}):
        recipe = small(images, target={"tau": "auto"}, **values)
        with pytest.raises(RecipeError, match=r"say target\.tau=1"):
            run_recipe(recipe, tmp_path / "none")


def test_a_value_that_only_its_part_can_refuse_is_told_with_that_part(images, tmp_path):
    for part, value in (
        ("optimizer", {"momentum": 0.0, "nesterov": True}),
        ("loss", {"name": "equalized", "tau": 1.0, "threshold": 0.1}),
        ("sampler", {"name": "m_per_class", "m": 1000}),
    ):
        with pytest.raises(RecipeError, match=f"^{part}: "):
            run_recipe(small(images, **{part: value}), tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_images_that_the_network_cannot_take_are_told_before_training(images, tmp_path):
    wrong = small(images, backbone={"name": "small_cnn", "channels": 1})
    for follow in (planned, lambda recipe: run_recipe(recipe, tmp_path / "none")):
        with pytest.raises(RecipeError, match=r"images of shape \(3, 8, 8\) .*backbone\.channels"):
            follow(wrong)
    assert not (tmp_path / "none").exists()


def test_images_of_different_sizes_are_told_with_what_makes_them_one(tmp_path):
    image = pytest.importorskip("PIL.Image")
    for name in ("cat", "dog"):
        (tmp_path / "train" / name).mkdir(parents=True)
        for side in (6, 8):
            image.new("RGB", (side, 5), (side, side, side)).save(
                tmp_path / "train" / name / f"{side}.png"
            )
    recipe = small(
        tmp_path, data={"kind": "folder", "path": str(tmp_path), "validation_share": 0.0}
    )
    with pytest.raises(RecipeError, match=r"different sizes.*set data\.size"):
        planned(recipe)
    sized = overridden(recipe, ["data.size=4", "backbone.inputs=48"])
    assert planned(sized).training_images == 4


def test_a_test_list_may_lack_a_class_that_training_names(tmp_path):
    for name in ("1.png", "2.png", "3.png"):
        (tmp_path / name).touch()
    (tmp_path / "train.csv").write_text("path,label\n1.png,ant\n2.png,bee\n3.png,cat\n")
    (tmp_path / "test.csv").write_text("path,label\n1.png,cat\n2.png,ant\n")
    lists = {"kind": "lists", "train": "train.csv", "test": "test.csv", "validation_share": 0.0}
    splits = read_data(small(tmp_path, data=lists | {"path": str(tmp_path)}).data)
    assert splits.test.classes == ("ant", "bee", "cat")
    assert splits.test.labels.tolist() == [2, 0]


def test_a_class_without_training_images_is_named(tmp_path):
    pixels = np.zeros((4, 3, 8, 8), dtype=np.uint8)
    parts = {"train_images": pixels, "train_labels": [0, 0, 2, 2]}
    np.savez(tmp_path / "gap.npz", **parts)
    with pytest.raises(ValueError, match=r"gap\.npz have no image: '1'"):
        planned(small(tmp_path / "gap.npz"))


def test_a_plan_builds_everything_and_trains_nothing(images):
    plan = planned(small(images, epochs=5))
    assert plan.training_images == sum(KEPT)
    assert (plan.steps_per_epoch, plan.steps) == (3, 15)
    assert plan.parameters == 192 * 16 + 16 + 16 * 4 + 4
    for loss, carried, words in (
        ("focal", "unknown", "no known prior"),
        ("cross_entropy", "train", "the training prior"),
        ("logit_adjusted", "uniform", "the uniform prior"),
        ({"name": "logit_adjusted", "tau": 0.5}, "other", "a prior between"),
        ({"name": "cross_entropy", "label_smoothing": 0.1}, "train", "training prior of labels"),
        ({"name": "logit_adjusted", "label_smoothing": 0.1}, "uniform", "smoothed by 0.1"),
    ):
        plan = planned(small(images, loss=loss))
        assert plan.carried == carried
        assert words in plan_in_words(plan)[-1]


def test_a_recipe_may_be_plain_values_but_not_a_name(images, tmp_path):
    recipe = small(images, epochs=1)
    result = train(plain(recipe), tmp_path / "run")
    assert result.recipe == recipe
    with pytest.raises(RecipeError, match="read_recipe"):
        train("cifar100-lt-la-quick", tmp_path / "none")


def test_a_long_tailed_cut_of_an_own_set_is_made_before_holding_out(images):
    data = {"kind": "npz", "path": str(images), "imbalance_ratio": 60, "validation_share": 0.0}
    splits = read_data(small(images, data=data).data)
    assert splits.train.counts.tolist()[0] == 60
    assert splits.train.counts.min() == 1
    assert splits.validation is None


def test_features_are_those_that_the_head_sees(run, images, tmp_path):
    made = extract_features(run.folder, images, tmp_path / "f.safetensors")
    assert {split: len(part.labels) for split, part in made.parts.items()} == {
        "train": 87,
        "validation": 21,
        "test": 80,
    }
    stored = load_model(run.folder)
    rows = torch.from_numpy(np.array(made.part("test").features))
    assert torch.equal(
        stored.model.head(rows).argmax(dim=1), run.variants[0].scores["test"].predict()
    )
    assert "mlp" in Features.load(tmp_path / "f.safetensors").made_by
    with pytest.raises(FileNotFoundError, match="no model"):
        extract_features(tmp_path, images, tmp_path / "g.safetensors")


def test_batch_norm_estimated_anew_is_that_of_the_training_images():
    pixels = torch.randint(256, (40, 3, 8, 8), dtype=torch.uint8)
    images = ImageArrays(pixels, [0, 1] * 20)
    recipe = recipe_from({"data": "cifar10", "backbone": {"name": "small_cnn", "dim": 32}})
    model = building.build_model(recipe, Prior.uniform(2))
    normalize = building.build_normalize(recipe, images)
    changed = with_new_statistics(model, images, normalize)
    inputs = normalize(pixels)
    first = model.backbone.layers[0](inputs)
    estimated = changed.backbone.layers[1].running_mean
    assert torch.allclose(estimated, first.mean(dim=(0, 2, 3)), atol=1e-5)
    assert model.backbone.layers[1].running_mean.abs().max() == 0


def test_the_figures_of_papers_come_out_of_run_folders(run, images, tmp_path):
    adam = small(images, optimizer={"name": "adamw", "lr": 1e-3}, epochs=1)
    run_recipe(adam, tmp_path / "adam")
    places = {"SGD": run.folder, "Adam": tmp_path / "adam"}
    stored = {name: load_model(place) for name, place in places.items()}
    norms = weight_norms_chart(
        {
            name: [(weight_norms(each.model.head.rows.detach()), each.counts)]
            for name, each in stored.items()
        }
    )
    assert norms.count('class="mark"') == 8
    curves = group_curves_chart(read_log(run.folder))
    assert "medium-shot" in curves
    assert "many-shot" not in curves  # no class has more than 100 images
    with pytest.raises(ValueError, match="validation_share"):
        group_curves_chart([{"epoch": 1.0, "train_loss": 2.0}])
    with pytest.raises(FileNotFoundError, match=r"no .*log\.csv"):
        read_log(tmp_path)


def test_the_groups_of_a_run_have_the_edges_of_its_recipe_and_a_report_may_have_others(
    images, tmp_path
):
    recipe = small(images, groups="many=24,few=10,inclusive")  # of 48, 24, 10 and 5
    run = run_recipe(recipe, tmp_path)
    scores = Scores.load(tmp_path / "scores-test.safetensors")
    right = np.asarray(scores.predict()) == np.asarray(scores.labels)
    recalls = [right[np.asarray(scores.labels) == k].mean() for k in range(4)]
    metrics = run.metrics["test"]["as trained"]
    assert metrics["many"].value == pytest.approx(np.mean(recalls[:2]))
    assert metrics["few"].value == pytest.approx(recalls[3])
    assert run.trained.history[-1]["val_many"] is not None
    assert run.as_json()["group_edges"] == recipe.groups
    assert "24 or more, 10 to 23 and fewer than 10" in (tmp_path / "report.html").read_text()
    again = read_run(tmp_path, groups="many=40,few=10,few_inclusive")
    metrics = again.metrics["test"]["as trained"]
    assert metrics["many"].value == pytest.approx(recalls[0])
    assert metrics["few"].value == pytest.approx(np.mean(recalls[2:]))
    assert check_folder(tmp_path, overridden(recipe, ["groups=many=5,few=2"]))  # the same task


def test_experts_train_save_and_predict_by_their_mean_which_carries_uniform(images, tmp_path):
    recipe = small(
        images,
        backbone={"name": "mlp", "inputs": 192, "hidden": [12]},
        head={"name": "experts", "num_experts": 3},
        loss={"name": "experts", "taus": [0.0, 1.0, 2.0]},
        mixup=0.4,
    )
    run = run_recipe(recipe, tmp_path / "experts")
    assert run.trained.carried.is_close(Prior.uniform(4))
    stored = load_model(run.folder)
    parts = read_data(recipe.data)
    outputs = predict(stored.model, parts.test, stored.normalize)
    scores = Scores.load(run.folder / "scores-test.safetensors")
    assert np.allclose(np.asarray(scores.logits), outputs.logits.numpy(), atol=1e-6)
    each = stored.model.head.each(outputs.features)
    assert torch.allclose(each.mean(dim=-1), outputs.logits, atol=1e-5)


@pytest.mark.parametrize(
    "values",
    [
        {"loss": "experts"},
        {"head": "experts"},
        {"loss": {"name": "experts", "taus": [0, 1]}, "head": "experts"},
        {"backbone": "resnet32_experts"},
        {"loss": "experts", "head": "experts", "second_stage": {"heads": ["crt"]}},
    ],
)
def test_parts_of_experts_that_do_not_fit_are_refused_before_training(images, values):
    with pytest.raises(RecipeError, match="experts"):
        small(images, **values)
