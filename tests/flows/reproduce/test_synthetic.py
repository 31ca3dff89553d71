"""The folders of synthetic runs."""

import json
from shutil import copytree

import numpy as np
import pytest

from longtail.flows import two_gaussians
from longtail.flows.reproduce import synthetic
from longtail.flows.reproduce.collecting import kept_in
from longtail.flows.reproduce.experiment import Synthetic
from longtail.flows.reproduce.plan import RunNames
from longtail.flows.reproduce.result import reproduced
from longtail.flows.two_gaussians import LA_FIGURE_2
from longtail.flows.two_moons import ELM_FIGURE_1
from longtail.recipes.experiments import EXPERIMENTS
from longtail.report import Footer, render_page
from longtail.report.pages.reproduce import reproduce_page
from longtail.report.pages.synthetic import gaussian_figures


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    place = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        quick = ELM_FIGURE_1._replace(epochs=2, test_samples=200)
        patch.setattr(synthetic, "ELM_FIGURE_1", quick)
        patch.setattr(synthetic, "LA_FIGURE_2", LA_FIGURE_2._replace(samples=1000))
        for problem in ("two-gaussians", "two-moons"):
            synthetic.run(Synthetic(problem, trials=3), 1, place / problem)
    return place


def numbers_in(folder):
    return json.loads((folder / "numbers.json").read_text())


def test_every_cell_of_every_experiment_finds_its_trials(folders):
    asked = 0
    for experiment in EXPERIMENTS.values():
        for cell in (*experiment.cells, *(experiment.quick.cells if experiment.quick else ())):
            if isinstance(cell.run, Synthetic):
                made = numbers_in(folders / cell.run.problem)[f"{cell.head}|{cell.variant}"]
                for column in experiment.columns:
                    if column.data == cell.data and column.measure != "property":
                        key = f"{column.measure} {column.group}".strip()
                        assert len(made[key]) == 3
                        asked += 1
    assert asked > 10


def test_the_trials_of_a_seed_are_its_own(folders):
    made = numbers_in(folders / "two-gaussians")
    again = two_gaussians.run_trials(LA_FIGURE_2._replace(samples=1000), 3, seed=3)
    for name, errors in again.exact.items():
        assert made[f"{name}|as trained"]["balanced_error"] == pytest.approx(errors, rel=1e-5)
    adjusted = again.by_tau["logit adjustment"]
    assert made["ERM|under the target"]["balanced_error"] == pytest.approx(adjusted[:, 10])
    best = adjusted[:, adjusted.mean(axis=0).argmin()]
    assert made["ERM|best tau"]["balanced_error"] == pytest.approx(best)
    assert np.mean(made["ERM|best weight norm"]["balanced_error"]) > best.mean()


def test_the_measures_of_the_moons_are_means_over_its_two_classes(folders):
    made, moons = numbers_in(folders / "two-moons"), synthetic.load(folders / "two-moons")
    for name, trials in made.items():
        for measure in ("accuracy", "total_variance"):
            both = np.add(trials[f"{measure} many"], trials[f"{measure} few"]) / 2
            assert trials[measure] == pytest.approx(both, rel=1e-4)
        head = name.removesuffix("|as trained")
        assert trials["accuracy few"] == pytest.approx(moons.recalls[head][:, 1], rel=1e-5)


def test_what_was_drawn_comes_back_for_the_picture(folders):
    both = synthetic.load(folders / "two-gaussians")
    assert both.trials == 3
    assert both.taus == LA_FIGURE_2.taus
    assert len(gaussian_figures(both)) == 3


def test_the_page_shows_what_the_finished_runs_have_drawn(folders, tmp_path):
    figure = EXPERIMENTS["elm-figure-1"]
    names = RunNames({"two-moons": figure.cells[0].run})
    copytree(folders / "two-moons", tmp_path / "runs" / "two-moons-s0")
    kept = kept_in(tmp_path, names, [figure], recipe_of=None)
    shown = reproduced(figure, kept, None, quick=False)
    page = reproduce_page(shown, Footer("0", "2025-01-01", "longtail reproduce"))
    assert "Embeddings of test samples, elm" in render_page(page)


def test_a_folder_that_is_there_is_finished(folders):
    before = (folders / "two-moons" / "numbers.json").stat()
    synthetic.run(Synthetic("two-moons", trials=9), 0, folders / "two-moons")
    assert (folders / "two-moons" / "numbers.json").stat() == before
    assert sorted(each.name for each in folders.iterdir()) == ["two-gaussians", "two-moons"]
