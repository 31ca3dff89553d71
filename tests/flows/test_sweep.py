"""A sweep: which runs a grid has, how points are measured, and that only validation chooses."""

import json
import shutil
from dataclasses import replace

import pytest

from flows.train.conftest import write_images
from longtail.flows.sweep import _split, planned_runs, sweep
from longtail.flows.sweep_result import SweepPoint, SweepResult
from longtail.flows.train.reading import RecipeError, overridden, recipe_from
from longtail.flows.train.train import train
from longtail.report import page_of, render_page, save
from longtail.report.pages.sweep import headline, notes, point_table
from longtail.stats import Estimate, estimate

SETTINGS = ["loss=elm", "loss.lam=1e-3,1e-1", "epochs=2"]


@pytest.fixture(scope="module")
def recipe(tmp_path_factory):
    images = write_images(tmp_path_factory.mktemp("data") / "images.npz")
    return recipe_from(
        {
            "data": {"kind": "npz", "path": str(images), "validation_share": 0.2},
            "backbone": {"name": "mlp", "inputs": 192, "hidden": [8]},
            "optimizer": {"lr": 0.02},
            "batch_size": 32,
        }
    )


@pytest.fixture(scope="module")
def swept(recipe, tmp_path_factory):
    """A sweep all of whose runs were finished before."""
    folder = tmp_path_factory.mktemp("sweep")
    _, runs = planned_runs(recipe, SETTINGS, folder, seeds=[0, 3], name="mine")
    assert {run.state for run in runs} == {"new"}
    trained = {run.job.folder.name: train(run.job.recipe, run.job.folder) for run in runs}
    told = []
    result = sweep(
        recipe, SETTINGS, folder, seeds=[0, 3], name="mine", page=save, progress=told.append
    )
    assert {each.how for each in told} == {"finished before"}
    return folder, trained, result


def test_a_grid_is_the_product_of_the_values_and_seeds(recipe):
    settings = ["loss=elm", "loss.lam=1e-3, 1e-2", "optimizer.lr=0.1", "batch_size=8,16"]
    keys, runs = planned_runs(recipe, settings, "out", seeds=[0, 1])
    assert keys == ("loss.lam", "batch_size")
    assert [run.values for run in runs[::2]] == [
        ("1e-3", "8"),
        ("1e-3", "16"),
        ("1e-2", "8"),
        ("1e-2", "16"),
    ]
    assert [run.seed for run in runs] == [0, 1] * 4
    last = runs[-1].job
    assert last.folder.name == "loss.lam=1e-2,batch_size=16-s1"
    assert (last.recipe.loss.lam, last.recipe.batch_size, last.recipe.optimizer.lr) == (
        0.01,
        16,
        0.1,
    )


def test_parts_lists_and_seeds_can_vary_and_a_value_with_commas_is_one_value(recipe):
    settings = ["loss=cross_entropy,lade", "augment=[crop, flip],[]", "groups=many=50,few=10"]
    keys, runs = planned_runs(recipe, settings, "out")
    assert keys == ("loss", "augment")
    assert [(run.job.recipe.loss.tag, len(run.job.recipe.augment)) for run in runs] == [
        ("cross_entropy", 2),
        ("cross_entropy", 0),
        ("lade", 2),
        ("lade", 0),
    ]
    assert {run.job.recipe.groups for run in runs} == {"many=50,few=10"}
    assert len({run.job.folder.name for run in runs}) == 4
    keys, runs = planned_runs(recipe, ["seed=4,5"], "out")
    assert [run.job.folder.name for run in runs] == ["seed=4-s4", "seed=5-s5"]
    keys, runs = planned_runs(recipe, [], "out", seeds=[7], name="mine")
    assert (keys, runs[0].job.folder.name, runs[0].job.recipe.seed) == ((), "mine-s7", 7)
    terms = ["terms=[{name: center, weight: 1}]", "terms.center.weight=0.1,0.2"]
    _, runs = planned_runs(recipe, terms, "out")
    assert [run.job.recipe.terms[0].weight for run in runs] == [0.1, 0.2]


@pytest.mark.parametrize(
    ("settings", "seeds", "sentence"),
    [
        (["loss.lam=1,2"], None, "no key loss.lam"),
        (["epochs=1,1"], None, "given twice"),
        (["loss=logit_adjusted", "loss.tau=1,1.0,1e0"], None, "given twice"),
        (["start=nowhere"], None, "start: there is no model nowhere"),
        (["epochs=1,x"], None, "epochs must be int"),
        (["seed=1,2"], [3], "seed has several values"),
        (["epochs=2"], [1, 1], "each once"),
        (["epochs=2"], [], "one or more"),
        (["data.path=nowhere"], None, "there is no nowhere"),
    ],
)
def test_a_wrong_grid_is_refused_before_anything_is_trained(recipe, settings, seeds, sentence):
    with pytest.raises(RecipeError, match=sentence):
        planned_runs(recipe, settings, "out", seeds=seeds)


def test_a_point_is_the_mean_over_its_runs_with_its_interval(swept):
    _, trained, result = swept
    assert [point.values for point in result.points] == [("1e-3",), ("1e-1",)]
    for point in result.points:
        assert point.seeds == (0, 3)
        runs = [trained[f"loss.lam={point.values[0]}-s{seed}"] for seed in (0, 3)]
        for split in ("validation", "test"):
            each = [run.metrics[split][run.main_variant] for run in runs]
            for key in ("balanced_accuracy", "few", "nll"):
                expected = estimate([metrics[key] for metrics in each])
                assert point.metrics[split][key] == expected
    assert result.points[0].variant == "as trained"
    assert result.axis == (1e-3, 1e-1)


def test_page_json_and_table_say_the_same(swept):
    folder, _, result = swept
    stored = json.loads((folder / "sweep.json").read_text())
    assert stored["keys"] == ["loss.lam"]
    assert stored["points"] == json.loads(json.dumps(result.as_json()))["points"]
    html = (folder / "report.html").read_text()
    heads, *rows = point_table(result)
    assert heads[:3] == ["loss.lam", "validation balanced accuracy", "test balanced accuracy"]
    for row in rows:
        assert all(cell.replace("\u00a0", " ") in html.replace("\u00a0", " ") for cell in row)
    assert "Balanced accuracy by loss.lam" in html
    assert "95 % intervals over seeds" in html


def test_more_values_add_to_a_sweep_and_another_recipe_is_refused(recipe, swept):
    folder, _, _ = swept
    settings = ["loss=elm", "loss.lam=1e-3,1e-2,1e-1", "epochs=2"]
    _, runs = planned_runs(recipe, settings, folder, seeds=[0, 3], name="mine")
    assert [run.state for run in runs] == ["finished"] * 2 + ["new"] * 2 + ["finished"] * 2
    with pytest.raises(RecipeError, match=r"another recipe.*epochs: 2 there, 4 now"):
        planned_runs(recipe, [*SETTINGS[:2], "epochs=4"], folder, seeds=[0, 3], name="mine")


def test_starts_vary_and_folders_have_names_that_any_recipe_may_have(recipe, tmp_path):
    both = [tmp_path / name for name in "ab"]
    for file in both:
        file.touch()
    keys, runs = planned_runs(recipe, [f"start={both[0]},{both[1]}"], tmp_path / "out")
    assert keys == ("start",)
    assert [run.job.recipe.start for run in runs] == list(map(str, both))
    (tmp_path / "a,b").touch()
    keys, runs = planned_runs(recipe, [f"start={tmp_path / 'a,b'}"], "out", name="my own/$recipe")
    assert (keys, runs[0].job.recipe.start) == ((), str(tmp_path / "a,b"))
    assert runs[0].job.folder.name == "my_own_recipe-s0"


def test_metrics_without_their_headline_are_told_by_their_file(recipe, swept, tmp_path):
    shutil.copytree(swept[0], tmp_path / "out")
    file = tmp_path / "out" / "runs" / "loss.lam=1e-3-s0" / "metrics.json"
    file.write_text(file.read_text().replace('"headline": "as trained"', '"headline": "unheard"'))
    with pytest.raises(ValueError, match=r"loss.lam=1e-3-s0.metrics.json cannot be.*'unheard'"):
        sweep(recipe, SETTINGS, tmp_path / "out", seeds=[0, 3], name="mine")


def test_a_finished_run_is_of_its_data_its_start_and_its_groups(recipe, tmp_path):
    folder, images = tmp_path / "out", tmp_path / "images.npz"
    model = tmp_path / "model.safetensors"
    shutil.copy(recipe.data.path, images)
    for seed in (0, 1):
        first = overridden(recipe, ["epochs=1", f"seed={seed}"])
        train(first, tmp_path / f"first{seed}")
    shutil.copy(tmp_path / "first0" / "model.safetensors", model)
    settings = ["loss=logit_adjusted", "loss.tau=0,1", "epochs=1"]
    settings += [f"start={model}", f"data.path={images}"]

    def states(*more):
        _, runs = planned_runs(recipe, [*settings, *more], folder)
        return [run.state for run in runs]

    sweep(recipe, settings, folder)
    assert states() == ["finished"] * 2
    # Other groups are measured anew, without training.
    more = "groups=many=30,few=15"
    assert states(more) == ["begun"] * 2
    log = folder / "runs" / "loss.tau=0-s0" / "log.csv"
    before, told = log.read_text(), []
    sweep(recipe, [*settings, more], folder, progress=told.append)
    metrics = json.loads((log.parent / "metrics.json").read_text())
    assert (metrics["group_edges"], log.read_text()) == ("many=30,few=15", before)
    assert {each.how for each in told} == {"trained"}
    assert states(more) == ["finished"] * 2
    # The same names with something else in them.
    shutil.copy(tmp_path / "first1" / "model.safetensors", model)
    with pytest.raises(ValueError, match=r"another.*start: "):
        states()
    versions = log.parent / "versions.json"  # as runs were written before
    said = json.loads(versions.read_text())
    versions.write_text(json.dumps({key: said[key] for key in said if key != "start"}))
    with pytest.raises(ValueError, match=r"another task:\n  recipe.start: it was"):
        states()
    shutil.copy(tmp_path / "first0" / "model.safetensors", model)
    write_images(images, (50, 20, 11))
    with pytest.raises(ValueError, match=r"another task:\n  images.labels: it was"):
        states()
    images.unlink()
    with pytest.raises(RecipeError, match=r"there is no .*images.npz"):
        states()


def point(value, validation, test, reach=0.01):
    metrics = {
        split: {"balanced_accuracy": Estimate(at, at - reach, at + reach)}
        for split, at in (("validation", validation), ("test", test))
        if at is not None
    }
    return SweepPoint((value,), (0,), "as trained", metrics)


def made(*points, keys=("loss.lam",)):
    return SweepResult("mine", keys, points, "balanced_accuracy", (), "longtail sweep")


def test_the_validation_part_chooses_and_says_so():
    result = made(point("1", 0.50, 0.9), point("2", 0.60, 0.4), point("3", 0.59, 0.8))
    assert result.chosen.values == ("2",)
    assert [each.values for each in result.overlapping] == [("3",)]
    text = headline(result)
    assert "The validation part chooses loss.lam=2." in text
    assert "40.0 [39.0," in text
    assert "overlaps with that of loss.lam=3, which is no test" in text
    assert any("chosen by the validation part alone" in line for line in notes(result))
    assert result.as_json()["chosen"] == ["2"]
    assert result.as_json()["intervals_overlap"] == [["3"]]


@pytest.mark.parametrize(
    ("overs", "sentence"),
    [
        (("samples", "samples"), "intervals over images."),
        (("seeds", "seeds"), "intervals over seeds."),
        (("seeds", "samples"), "intervals over seeds, of a point with one seed over images."),
    ],
)
def test_each_point_says_what_its_interval_is_over(overs, sentence):
    points = [
        replace(point(str(at), 0.5, 0.5), metrics={"test": {"balanced_accuracy": each}})
        for at, each in enumerate(Estimate(0.5, 0.4, 0.6, over) for over in overs)
    ]
    assert notes(made(*points))[0].endswith(sentence)


def test_without_a_validation_part_nothing_is_chosen():
    result = made(point("1", None, 0.9), point("2", None, 0.4))
    assert result.chosen is None
    assert result.overlapping == ()
    assert "nothing is chosen" in headline(result)
    assert point_table(result)[0][:2] == ["loss.lam", "test balanced accuracy"]
    assert "by loss.lam" in render_page(page_of(result))


def test_a_curve_needs_one_key_and_numbers():
    assert made(point("crop", 0.5, 0.5), point("flip", 0.5, 0.5)).axis is None
    assert made(point("1", 0.5, 0.5)).axis is None
    two = made(replace(point("1", 0.5, 0.5), values=("1", "2")), keys=("a", "b"))
    assert two.axis is None
    assert "<svg" not in render_page(page_of(two))


def test_what_failed_is_told_beside_what_is_finished():
    result = replace(made(point("1", 0.5, 0.5)), failed=(("loss.lam=9-s0", "it diverged"),))
    assert "loss.lam=9-s0 failed: it diverged" in notes(result)
    assert result.as_json()["failed"] == {"loss.lam=9-s0": "it diverged"}


def test_values_are_split_at_commas_outside_of_brackets():
    assert _split("{name: a, weight: 1},{name: b, weight: 2}") == [
        "{name: a, weight: 1}",
        "{name: b, weight: 2}",
    ]
