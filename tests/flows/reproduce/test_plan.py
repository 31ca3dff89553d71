"""Plans: each run once, under its name, and what there is of it."""

import sys
from pathlib import Path

import pytest

from longtail.flows.reproduce.experiment import Cell, Column, Fit, Inspect, Train
from longtail.flows.reproduce.overview import dry_run, listed
from longtail.flows.reproduce.plan import (
    RunNames,
    head_file,
    needed_data,
    plan,
    settled,
)
from longtail.recipes.catalogue import read_recipe
from longtail.recipes.experiments import EXPERIMENTS, named_runs
from longtail.report.pages.reproduce import plan_in_words

sys.path.insert(0, str(Path(__file__).parent))
from worlds import CE, LA, experiment, quick

NAMES = RunNames({"ce": CE, "la": LA})
CELLS = (
    Cell("a", "", CE),
    Cell("b", "", LA),
    Cell("c", "", CE, head="crt"),
    Cell("d", "", Inspect("r")),
    Cell("e", "", Fit("caltech", 10.0), head="linear"),
)
ROWS = ("a", "b", "c", "d", "e")


def planned(folder=None, **more):
    return plan(experiment(rows=ROWS, cells=CELLS), folder, NAMES, lambda run: "cifar100", **more)


def test_a_run_is_planned_once_for_every_seed_with_all_its_heads():
    made = planned(seeds=(0, 1))
    assert [run.name for run in made.runs] == [
        f"{name}-s{seed}" for seed in (0, 1) for name in ("ce", "la", "fit-caltech-10")
    ]
    assert [run.heads for run in made.runs[:3]] == [(("crt", "keep"),), (), ()]
    assert made.absent == ("cifar100",)
    assert made.hours is None  # of a GPU
    assert planned(data={"cifar100": Path("x")}).absent == ()


def test_hours_are_of_what_is_not_finished(tmp_path):
    cells = (Cell("a", "", Train("ce", hours=1.0)), Cell("b", "", Train("la", hours=2.0)))
    two = experiment(cells=cells)
    assert plan(two, tmp_path, NAMES, lambda run: "").hours == 3.0
    run = tmp_path / "runs" / "ce-s0"
    run.mkdir(parents=True)
    (run / "versions.json").write_text("{}")
    assert [each.state for each in plan(two, tmp_path, NAMES, lambda run: "").runs] == [
        "begun",
        "to do",
    ]
    (run / "metrics.json").write_text("{}")
    made = plan(two, tmp_path, NAMES, lambda run: "")
    assert (made.hours, [run.name for run in made.left]) == (2.0, ["la-s0"])


def test_a_run_to_begin_with_is_planned_and_counted_only_for_what_is_not_finished(tmp_path):
    first, second = Train("ce", hours=1.0), Train("eo", hours=2.0, start="first")
    names = RunNames({"first": first, "second": second})
    begins = experiment(cells=(Cell("a", "", second),), seeds=(0, 1))
    finished = tmp_path / "runs" / "second-s0"
    finished.mkdir(parents=True)
    (finished / "metrics.json").write_text("{}")
    made = plan(begins, tmp_path, names, lambda run: "")
    assert [run.name for run in made.runs] == ["second-s0", "first-s1", "second-s1"]
    assert made.hours == 3.0
    assert listed([begins], names, None)[0].hours == 6.0


def test_heads_that_are_there_are_not_fitted_again(tmp_path):
    run = tmp_path / "runs" / "ce-s0"
    run.mkdir(parents=True)
    (run / "metrics.json").write_text("{}")
    assert planned(tmp_path).left[0].name == "ce-s0"
    file = head_file(tmp_path, "ce-s0", "crt", "keep")
    file.parent.mkdir(parents=True)
    file.write_bytes(b"")
    assert "ce-s0" not in [each.name for each in planned(tmp_path).left]


def test_measures_that_nobody_has_looked_for_are_left_to_do_and_need_the_data(tmp_path):
    figure = experiment((Column("a", "cdnv"),), cells=(Cell("a", "", CE),))
    run, numbers = tmp_path / "runs" / "ce-s0", tmp_path / "after" / "ce-s0" / "numbers.json"
    for folder in (run, numbers.parent):
        folder.mkdir(parents=True)
    (run / "metrics.json").write_text("{}")
    numbers.write_text('{"tsne": null}')  # it cannot have that
    made = plan(figure, tmp_path, NAMES, lambda run: "cifar100")
    assert [each.measures for each in made.left] == [("cdnv",)]
    assert (made.absent, made.hours) == (("cifar100",), 0.0)
    dry = dry_run(made, recipe_of=None)  # without data nothing is built
    assert "Nothing is left to run." not in list(plan_in_words(dry, 1))
    numbers.write_text('{"tsne": null, "cdnv": 0.5}')
    assert plan(figure, tmp_path, NAMES, lambda run: "cifar100").left == ()


def test_cells_are_finished_with_their_run_or_with_what_was_kept_of_it(tmp_path):
    both = experiment(rows=ROWS, cells=CELLS)

    def finished():
        (row,) = listed([both], NAMES, tmp_path)
        return row.finished, row.cells

    assert finished() == (1, 5)  # what is only read
    (tmp_path / "la-s0.safetensors").write_bytes(b"")
    assert finished() == (2, 5)
    run = tmp_path / "runs" / "ce-s0"
    run.mkdir(parents=True)
    (run / "metrics.json").write_text("{}")
    assert finished() == (4, 5)
    assert listed([both], NAMES, None)[0].finished is None


def test_quick_is_the_setting_for_a_cpu_where_there_is_one():
    with_quick = experiment(quick=quick((Cell("a", "", LA),)))
    assert settled(with_quick, True).setting == "quick"
    assert settled(with_quick, False).cells == with_quick.cells
    assert settled(experiment(), True).setting == "the paper's"
    assert settled(experiment(paper="ours"), True).setting == "ours"


def test_every_run_of_all_experiments_has_a_name_of_its_own():
    names, seen = RunNames(named_runs()), {}
    for each in EXPERIMENTS.values():
        for cell in (*each.cells, *(each.quick.cells if each.quick else ())):
            run = cell.run
            own = (
                (type(run), run.recipe, run.overrides) if isinstance(run, Train | Inspect) else run
            )
            if not isinstance(run, Inspect):
                assert seen.setdefault(names(run, 0), own) == own
    assert {"ce-s0", "la-s0", "lade-s0", "elm-s0", "ldam-s0"} < set(seen)
    assert not [name for name in seen if "/" in name or len(name) > 200]


def test_a_folder_is_the_same_whether_hours_are_known():
    assert NAMES(Train("ce", hours=3.0), 0) == NAMES(CE, 0) == "ce-s0"
    assert NAMES(Train("ce", ("a={b: 1}",)), 2) == "ce,a=-b-1-s2"


@pytest.mark.parametrize(
    ("recipe", "data"),
    [
        ("cifar100-lt-ce-quick", "cifar100"),
        ("cifar10-lt-ce-quick", "cifar10"),
        ("imagenet-lt-lade", "imagenet-lt"),
        ("inaturalist-lade", "inaturalist"),
        ("places-lt-lade", "places-lt"),
    ],
)
def test_the_data_of_a_recipe_are_known_by_name(recipe, data):
    assert needed_data(recipe, read_recipe(recipe)) == data


def test_data_that_experiments_need_are_those_of_their_runs():
    for each in EXPERIMENTS.values():
        made = plan(
            each, None, RunNames(named_runs()), lambda run: needed_data(run.recipe, _recipe(run))
        )
        needed = {run.needs for run in made.runs} - {""}
        assert needed <= set(each.needs), each.name


def _recipe(run):
    from longtail.flows.train.reading import overridden

    return overridden(read_recipe(run.recipe), run.overrides)
