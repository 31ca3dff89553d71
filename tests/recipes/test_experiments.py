"""The named experiments: all tables and figures are there, and fit the catalogue and the papers."""

import subprocess
import sys

import msgspec
import numpy as np
import pytest

import longtail as lt
from longtail.flows.fit_methods import METHODS
from longtail.flows.samples import AS_TRAINED, UNDER_TARGET
from longtail.flows.train.reading import overridden, plain
from longtail.recipes.catalogue import read_recipe
from longtail.recipes.demo import GAUSSIANS
from longtail.recipes.experiments import (
    EDGES,
    EXPERIMENTS,
    MEASURES,
    Better,
    Cell,
    Close,
    Column,
    Experiment,
    Fit,
    Inspect,
    Quick,
    Synthetic,
    Train,
    Trend,
    claim_rows,
    named_runs,
)
from longtail.recipes.experiments.reading import experiment_from

# As their captions number them. LA's appendices are not in the text, which quotes two numbers of
# table 4; LADE has no figure 5.
ITEMS = {
    "la": {"table": (1, 2, 4), "figure": (1, 2, 3, 4)},
    "lade": {"table": tuple(range(1, 12)), "figure": (1, 2, 3, 4, 6)},
    "eo": {"table": (1, 2, 3), "figure": (1, 2, 3, 4, 5)},
    "elm": {"table": (1, 2, 3), "figure": (1, 2, 3, 4, 5, 6, 7)},
    "ncm": {"table": tuple(range(1, 8)), "figure": tuple(range(1, 9))},
}
OURS = ["ours-cifar", "ours-caltech", "ours-text", "ours-quick", "ours-experts", "ours-systems"]
ALL = list(EXPERIMENTS.values())
CELLS = [
    (experiment, cell)
    for experiment in ALL
    for cell in (*experiment.cells, *(experiment.quick.cells if experiment.quick else ()))
]
CLAIMS = [
    pytest.param(experiment, claim, id=f"{experiment.name}-{number}")
    for experiment in ALL
    for number, claim in enumerate(experiment.claims)
]


def test_every_table_and_figure_is_an_experiment():
    assert (
        list(EXPERIMENTS)
        == [
            f"{paper}-{kind}-{number}"
            for paper, kinds in ITEMS.items()
            for kind, numbers in kinds.items()
            for number in numbers
        ]
        + OURS
    )


@pytest.mark.parametrize("experiment", ALL, ids=lambda each: each.name)
def test_an_experiment_says_what_it_is_and_what_makes_every_row(experiment):
    paper, kind, *number = experiment.name.split("-")
    assert experiment.paper.lower() == paper
    assert experiment.item == f"{kind.title()} {number[0]}" if number else paper == "ours"
    assert experiment.about.endswith(".")
    assert len(experiment.about) <= 100
    made = {(cell.row, cell.data) for cell in experiment.cells}
    absent = {each.row for each in experiment.missing}
    assert all(each.why.endswith(".") for each in experiment.missing)
    for row, values in experiment.rows.items():
        for column, value in zip(experiment.columns, values, strict=True):
            if absent & {row, "*"}:
                assert (row, column.data) not in made
            elif value is not None or all(each is None for each in values):
                assert (row, column.data) in made, (row, column.name)
    if experiment.quick is not None:
        assert experiment.quick.note.endswith(".")
        assert experiment.quick.needs
        assert experiment.hours is not None
        assert 0 < experiment.hours < 12


def test_every_run_can_be_made():
    """Recipes exist, overrides parse, second stages and methods of a fit have names."""
    heads = {
        (cell.run.recipe, cell.run.overrides, cell.head)
        for _, cell in CELLS
        if isinstance(cell.run, Train | Inspect)
    }
    for recipe, overrides, head in heads:
        second = (f"second_stage.heads=[{head}]",) if head else ()
        base = (
            overridden(read_recipe(recipe), ["second_stage=null"]) if head else read_recipe(recipe)
        )
        assert overridden(base, [*overrides, *second, "seed=1"]).seed == 1
    for _, cell in CELLS:
        if isinstance(cell.run, Fit):
            assert cell.head in METHODS
        elif isinstance(cell.run, Synthetic) and cell.run.problem == "two-gaussians":
            assert cell.head in {*GAUSSIANS.losses, "weights / π^τ"}
        if cell.batch_norm != "keep":
            assert cell.head
    assert {AS_TRAINED, UNDER_TARGET} < {cell.variant for _, cell in CELLS}


def test_runs_that_need_no_graphics_card_say_how_long_they_take():
    for experiment in ALL:
        for cell in experiment.quick.cells if experiment.quick else ():
            assert cell.run.hours, (experiment.name, cell)
    full = {each.name: [c.run for c in each.cells if isinstance(c.run, Train)] for each in ALL}
    assert all((run.hours is None) is (n not in OURS) for n, runs in full.items() for run in runs)
    assert EXPERIMENTS["la-table-2"].quick.hours == pytest.approx(9.4)
    assert EXPERIMENTS["la-table-4"].hours is None


def test_runs_on_a_cpu_have_names_for_their_folders():
    names = {run: name for name, run in named_runs().items()}
    for _, cell in CELLS:
        if cell.run.hours:
            assert names[cell.run].replace(".", "").replace("-", "").isalnum()
    assert named_runs()["elm"] == Train(
        "cifar100-lt-la-quick",
        ("data.validation_share=0", "evaluate_every=40", "loss=elm", "loss.margins=sqrt_count"),
        1.0,
    )


def test_whole_systems_that_are_left_out_say_why():
    reasons = {each.row: each.why for each in EXPERIMENTS["ours-systems"].missing}
    assert set(reasons) == set(EXPERIMENTS["ours-systems"].rows)
    tables = {row: {each.name for each in ALL if row in each.rows} for row in reasons}
    for row, (text,) in EXPERIMENTS["ours-systems"].rows.items():
        names = {name for name in tables[row] if not name.startswith("ours")}
        assert bool(names) is (text != "none")
        for name in names:
            paper, _, number = name.split("-")
            assert paper.upper() in text
            assert number in text
            assert reasons[row] in {each.why for each in EXPERIMENTS[name].missing}


def test_runs_are_shared_between_experiments():
    quick = [cell.run for each in ALL if each.quick for cell in each.quick.cells]
    trained = [run for run in quick if isinstance(run, Train)]
    assert 3 * len(set(trained)) < len(trained)


def test_a_run_that_begins_with_another_names_one_that_begins_with_none():
    begun = [run for run in named_runs().values() if isinstance(run, Train) and run.start]
    assert begun
    for run in begun:
        first = named_runs()[run.start]
        assert isinstance(first, Train)
        assert not first.start


def test_there_are_claims_enough_and_none_twice_in_one_experiment():
    assert len(CLAIMS) >= 60
    for experiment in ALL:
        texts = [claim.text for claim in experiment.claims]
        assert len(set(texts)) == len(texts)
        assert not any(text.endswith(".") or text[0].isspace() for text in texts)


def test_most_claims_can_be_judged_on_a_cpu():
    def judged(experiment, claim):
        cells = experiment.cells if experiment.quick is None else experiment.quick.cells
        runs = {(cell.row, cell.data) for cell in cells if cell.run.hours is not None}
        chosen = claim.columns or [column.name for column in experiment.columns]
        data = {experiment.column(name).data for name in chosen}
        rows = claim_rows(claim)
        if isinstance(claim, Trend) and claim.against == "rows":
            made = [row for row in rows if any((row, each) in runs for each in data)]
            return len(made) > 2
        return any(all((row, each) in runs for row in rows) for each in data)

    assert sum(judged(*each.values) for each in CLAIMS) >= 100


@pytest.mark.parametrize(("experiment", "claim"), CLAIMS)
def test_a_claim_is_of_a_measure_it_can_be_judged_by(experiment, claim):
    columns = claim.columns or tuple(column.name for column in experiment.columns)
    measures = {MEASURES[experiment.column(name).measure] for name in columns}
    if isinstance(claim, Better):
        assert all(measure.better and measure.is_number for measure in measures)
        assert claim.better != claim.worse
    elif isinstance(claim, Close):
        assert all(measure.is_number for measure in measures)
        assert claim.within > 0 or (claim.at_least and claim.within == 0)
    else:
        per = {"count": "class", "point": "point"}.get(claim.against)
        assert all(measure.per == per if per else measure.is_number for measure in measures)


def holds(experiment, claim):
    """Whether the paper's own numbers bear the claim out; None where it prints too few."""
    columns = claim.columns or tuple(column.name for column in experiment.columns)
    rows = [[experiment.published(row, name) for name in columns] for row in claim_rows(claim)]
    if any(value is None for row in rows for value in row):
        return None
    if isinstance(claim, Better):
        sign = [MEASURES[experiment.column(name).measure].better for name in columns]
        gains = np.array(sign) * np.subtract(*rows)
        return bool((gains > 0).all() and (gains > claim.by - 1e-9).all())
    if isinstance(claim, Close):
        other = rows[1] if isinstance(claim.to, str) else claim.to
        apart = np.subtract(rows[0], other)
        outside = np.maximum(-apart, 0) if claim.at_least else np.abs(apart)
        return bool((outside <= claim.within + 1e-9).all())
    curve = np.subtract(*rows) if claim.minus else np.array(rows[0])
    ranks = [np.argsort(np.argsort(each)) for each in (curve, np.arange(len(curve)))]
    return int(np.sign(np.corrcoef(*ranks)[0, 1])) in claim.signs


@pytest.mark.parametrize(("experiment", "claim"), CLAIMS)
def test_the_papers_numbers_bear_their_claims_out_where_no_doubt_is_said(experiment, claim):
    verdict = holds(experiment, claim)
    if verdict is not None:
        assert verdict is (not claim.doubt)
    assert not claim.doubt or claim.doubt.endswith(".")


def test_published_numbers_are_those_of_the_papers():
    la, lade, elm, ncm = (
        EXPERIMENTS[name] for name in ("la-table-2", "lade-table-2", "elm-table-2", "ncm-table-1")
    )
    errors = [la.published(row, "CIFAR-100-LT") for row in la.rows]
    assert la.published("Logit adjustment loss (τ = 1)", "CIFAR-10-LT") == 22.33
    assert errors[:10] == [61.64, 58.76, 60.40, 60.40, 57.96, 57.26, 58.24, 57.90, 56.11, 55.92]
    assert list(lade.rows.values())[-2:] == [(45.3, 49.5, 61.2), (45.4, 50.5, 61.7)]
    assert (lade.rows["Softmax"], lade.rows["Balanced Softmax"][0]) == ((41.0, 45.5, 59.0), 45.1)
    assert [values[1] for values in elm.rows.values()] == [
        *(38.36, 39.60, 42.04, 43.89, 41.98, 41.34, 46.92, 45.77),
    ]
    assert [ncm.published(row, "Imba 100 All") for row in ncm.rows] == [
        *(46.0, 48.7, 50.7, 50.9, 50.8, 51.0),
    ]
    assert EXPERIMENTS["ncm-table-2"].published("Learned NCM", "CIFAR10-LT 100") == 81.6
    assert EXPERIMENTS["eo-table-1"].published("Ours", "Places2-LT Few") == 40.7


def test_tables_that_repeat_a_number_agree():
    ablation, main = EXPERIMENTS["eo-table-3"], EXPERIMENTS["eo-table-1"]
    assert all(
        main.rows[row] == values for row, values in ablation.rows.items() if row in main.rows
    )
    lade = EXPERIMENTS["lade-table-4"]
    calibration, shifted = EXPERIMENTS["lade-table-11"], EXPERIMENTS["lade-table-6"]
    for row in calibration.rows:
        uniform = shifted.published(row, "Uniform")
        assert lade.published(row, "All") == uniform == calibration.published(row, "Accuracy")
    small, at_50 = EXPERIMENTS["lade-table-10"], EXPERIMENTS["lade-table-9"]
    for row in ("Balanced Softmax", "Softmax", "PC Softmax", "LADE"):
        value = EXPERIMENTS["lade-table-2"].published(row, "50")
        assert value == small.published(row, "Accuracy") == at_50.published(row, "Uniform")
    wide, long = EXPERIMENTS["ncm-table-3"], EXPERIMENTS["ncm-table-1"]
    for row in ("NCM", "Learned NCM", "Learned NCM + LA"):
        assert wide.rows[row][:4] == long.rows[row][:4]
        ten = EXPERIMENTS["ncm-table-7"].rows[row]
        assert EXPERIMENTS["ncm-table-2"].rows[row][:3] == (ten[0], ten[3], ten[6])
    means = EXPERIMENTS["ncm-table-5"].rows["Learned NCM"]
    assert means == EXPERIMENTS["ncm-table-6"].rows["Learned NCM"]


def test_sample_counts_of_ncm_are_those_of_the_profile():
    """With what is corrected."""
    table, edges = EXPERIMENTS["ncm-table-4"], EDGES["NCM"]
    fixed = {(each.row, each.column): each.value for each in table.corrections}
    for row in table.rows:
        data, _, rest = row.partition("-LT")
        if not rest:
            continue
        largest, classes = {"CIFAR10": (5000, 10), "CIFAR100": (500, 100)}[data]
        ratio = float(rest.removeprefix(" (Imba ").removesuffix(")"))
        counts = np.asarray(lt.data.exponential_counts(largest, classes, ratio))
        many, few = counts >= edges.many, counts <= edges.few
        groups = {"Many": many, "Medium": ~many & ~few, "Few": few, "All": many | True}
        for name, mask in groups.items():
            for what, number in (("Classes", mask.sum()), ("Samples", counts[mask].sum())):
                place = row, f"{what}, {name}"
                assert fixed.get(place, table.published(*place)) == number


@pytest.mark.parametrize("name", ["lade-table-7", "elm-table-3"])
def test_settings_of_the_papers_are_those_of_the_recipes(name):
    experiment = EXPERIMENTS[name]
    for cell in experiment.cells:
        values = plain(read_recipe(cell.run.recipe))
        for column in experiment.columns:
            published = experiment.published(cell.row, column.name)
            if not isinstance(published, str):
                inside = values
                for key in column.key.split("."):
                    inside = inside[key]
                assert inside == published


def test_shifted_columns_name_test_sets_by_way_and_ratio():
    tests = [column.test for column in EXPERIMENTS["lade-table-9"].columns]
    assert (tests[0], tests[5], tests[-1]) == ("forward-50", "balanced", "backward-50")
    assert len(set(tests)) == 11


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"rows": {"a": (1.0, 2.0)}}, "2 values for 1 columns"),
        ({"columns": (Column("x", "nonsense"),)}, "no measure nonsense"),
        ({"columns": (Column("x", "ece"), Column("x", "ece"))}, "one name"),
        ({"cells": (Cell("b", "", Inspect("r")),)}, "nothing at"),
        ({"cells": (Cell("a", "", Inspect("r")), Cell("a", "", Inspect("q")))}, "one place"),
        ({"quick": Quick((Cell("a", "d", Inspect("r")),), (), "n.")}, "nothing at"),
        ({"claims": (Better("t", "a", "b"),)}, "no row b"),
        ({"claims": (Close("t", "a", 1.0, 1.0, ("y",)),)}, "no column y"),
        ({"claims": (Trend("t", ("a",), ("x",), (0, 1), "rows"),)}, "how weak a trend along rows"),
        ({"columns": (Column("x", "nll", group="few"),)}, "nll has no such group"),
        ({"columns": (Column("x", "geometric_mean", test="forward-5"),)}, "no such group"),
        ({"columns": (Column("x", "recall", group="few"),)}, "recall has no such group"),
        ({"columns": (Column("x", "accuracy", "", "few", "forward-5"),)}, "no such group"),
    ],
)
def test_an_experiment_that_does_not_fit_together_is_refused(changes, words):
    whole = {"columns": (Column("x", "ece"),), "rows": {"a": (1.0,)}} | changes
    with pytest.raises(ValueError, match=words):
        Experiment(name="n", paper="LA", item="Table 1", about="A.", **whole)


TABLE = {
    "about": "Short forms.",
    "measure": "accuracy",
    "data": ["a", "b"],
    "columns": [
        {"name": "On {data}", "groups": ["Many", "Tail"]},
        {"name": "ECE", "measure": "ece", "data": "a"},
        {"tests": ["Forward 50", "Uniform"], "data": "b"},
    ],
    "rows": {"x": [1, 2.5, "-", 4, "-", 6, 7], "y": ["-"] * 7},
    "cells": [
        {"rows": ["x", "y"], "run": "recipe-{data} loss=focal 'head={name: cosine, scale: 3}'"},
    ],
    "quick": {"needs": ["cifar100"], "note": "N.", "cells": [{"rows": "x", "run": "elm epochs=2"}]},
    "claims": {
        "all": ["x", "y"],
        "some": ["x", "y", "* Tail", "ECE", {"by": 2.0, "doubt": "D."}],
        "near": {"row": "x", "to": 1.0, "within": 1.0, "columns": "ECE"},
        "up": {"rows": "*", "columns": "ECE", "signs": 1, "against": "rows"},
    },
    "missing": {"y": "OLTR"},
}


def test_short_forms_are_written_out():
    whole = experiment_from("eo-table-12", TABLE)
    assert (whole.paper, whole.item) == ("EO", "Table 12")
    assert whole.columns == (
        Column("On a Many", "accuracy", "a", "many"),
        Column("On a Tail", "accuracy", "a", "few"),
        Column("On b Many", "accuracy", "b", "many"),
        Column("On b Tail", "accuracy", "b", "few"),
        Column("ECE", "ece", "a"),
        Column("Forward 50", "accuracy", "b", test="forward-50"),
        Column("Uniform", "accuracy", "b"),
    )
    assert whole.rows["x"] == (1, 2.5, None, 4, None, 6, 7)
    assert experiment_from("eo-table-12", TABLE | {"rows": ["x", "y"]}).rows["x"] == (None,) * 7
    changes = ("loss=focal", "head={name: cosine, scale: 3}")
    assert whole.cells == tuple(
        Cell(row, data, Train(f"recipe-{data}", changes)) for data in "ab" for row in "xy"
    )
    elm = named_runs()["elm"]
    run = Train(elm.recipe, (*elm.overrides, "epochs=2"), 1.0)
    assert whole.quick.cells == (Cell("x", "a", run), Cell("x", "b", run))
    assert whole.claims == (
        Better("all", "x", "y"),
        Better("some", "x", "y", ("On a Tail", "On b Tail", "ECE"), by=2.0, doubt="D."),
        Close("near", "x", 1.0, 1.0, ("ECE",)),
        Trend("up", ("x", "y"), ("ECE",), (1,), against="rows"),
    )
    assert whole.missing[0].why.startswith("OLTR attends")
    one, other = EXPERIMENTS["elm-figure-4"], EXPERIMENTS["elm-figure-6"]  # of one base
    assert (one.cells, one.quick, one.needs) == (other.cells, other.quick, ("cifar100",))
    assert one.columns != other.columns


@pytest.mark.parametrize(
    "changes",
    [
        {"colums": []},
        {"columns": [{"name": "x", "mesure": "ece"}]},
        {"cells": [{"rows": "x", "run": "r", "heads": "crt"}]},
        {"cells": [{"rows": "x", "run": "r", "variant": "best"}]},
        {"claims": {"t": {"better": "x", "worst": "y"}}},
        {"needs": ["cifar"]},
    ],
)
def test_a_word_that_is_not_known_is_refused(changes):
    with pytest.raises(msgspec.ValidationError):
        experiment_from("eo-table-12", TABLE | changes)


def test_experiments_are_data_alone():
    """Listing them imports nothing heavier than msgspec, and they can be written out."""
    heavy = "torch", "scipy", "numpy", "longtail.flows.train", "longtail.core"
    script = (
        "import sys, longtail.recipes.experiments as experiments; list(experiments.EXPERIMENTS); "
        f"print([name for name in {heavy} if name in sys.modules])"
    )
    run = [sys.executable, "-c", script]
    assert subprocess.run(run, capture_output=True, text=True, check=True).stdout == "[]\n"
    text = msgspec.json.encode(EXPERIMENTS["la-table-2"])
    assert msgspec.json.decode(text)["rows"]["ERM"] == [27.16, 61.64, 53.11, 38.66]


@pytest.mark.parametrize("name", [f"eo-table-{n}" for n in (1, 3)] + ["eo-figure-3", "eo-figure-5"])
def test_what_the_estimated_offset_is_compared_with_was_trained_as_long(name):
    """Rows of one network each: the same start, and as many epochs from there."""
    cells = [cell for cell in EXPERIMENTS[name].quick.cells if isinstance(cell.run, Train)]
    assert len(cells) > 1
    epochs = {
        (overridden(read_recipe(cell.run.recipe), cell.run.overrides).epochs, cell.run.start)
        for cell in cells
    }
    assert epochs == {(15, "ce")}


@pytest.mark.parametrize("experiment", ALL, ids=lambda each: each.name)
def test_what_stands_in_for_a_table_is_networks_or_features_and_not_both(experiment):
    cells = experiment.quick.cells if experiment.quick else ()
    assert len({type(cell.run) for cell in cells} - {Inspect}) <= 1
