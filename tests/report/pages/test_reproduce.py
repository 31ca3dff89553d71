"""The page, the terminal and the ledger say what the result says."""

import sys
from pathlib import Path

import msgspec
import numpy as np
import pytest

from longtail.flows.reproduce.experiment import (
    Better,
    Cell,
    Close,
    Column,
    Fit,
    Missing,
    Quick,
    Synthetic,
    Train,
    Trend,
)
from longtail.flows.reproduce.kept import Kept
from longtail.flows.reproduce.ledger import ledger
from longtail.flows.reproduce.result import reproduced
from longtail.flows.reproduce.verdicts import ClaimVerdict
from longtail.report import render_page
from longtail.report.page import Footer
from longtail.report.pages import reproduce as words
from longtail.report.pages.ledger import in_words, ledger_text
from longtail.report.pages.reproduce import claim_in_words, reproduce_page, source_in_words

sys.path.insert(0, str(Path(__file__).parents[2] / "flows" / "reproduce"))
from worlds import CE, LA, experiment, kept, scores

FOOTER = Footer("0.1.0", "2025-06-01", "longtail reproduce x")
CLAIMS = (
    Better("the second is better", "b", "a", doubt="Not everywhere."),
    Better("the third is better", "c", "a"),
    Better("the fourth is better", "d", "a"),
)


def result(rows=None, **more):
    one = experiment(
        (Column("All", "accuracy"), Column("Few", "accuracy", group="few")),
        CLAIMS,
        ("a", "b", "c", "d"),
        cells=(Cell("a", "", CE), Cell("b", "", LA), Cell("d", "", Train("x", hours=2.0))),
        missing=(Missing("c", "It is a system of its own."),),
        **more,
    )
    one = msgspec.structs.replace(one, rows=rows or one.rows)
    runs = {CE: {0: kept(1.0, 1)}, LA: {0: kept(2.0, 2)}}
    return reproduced(one, lambda run, seed: runs.get(run, {}).get(seed), None, quick=False)


def test_the_table_has_the_papers_numbers_and_ours_with_intervals():
    values = {"a": (41.0, None), "b": (45.4, None), "c": (50.0, None), "d": (None, None)}
    made = result(values)
    assert words.table_heads(made) == ["", "All: paper", "ours", "Few"]
    first = words.table_rows(made)[0]
    number = made.numbers["a", "All"]
    assert first[:3] == ["a", "41", f"{number.value:.1f} [{number.low:.1f}, {number.high:.1f}]"]
    assert words.table_rows(made)[2] == ["c", "50", "", ""]


def test_where_nothing_is_measured_the_papers_numbers_stand_alone():
    one = msgspec.structs.replace(experiment(), rows={"a": (41.0,), "b": (None,)})
    made = reproduced(one, lambda run, seed: None, None, quick=False)
    assert words.table_heads(made) == ["", "All: paper"]
    assert words.table_rows(made) == [["a", "41"], ["b", "–"]]


def test_rows_of_different_seeds_say_from_how_many_to_how_many():
    runs = {CE: range(3), LA: range(1)}
    made = reproduced(
        experiment(),
        lambda run, seed: kept(1.0, seed) if seed in runs[run] else None,
        None,
        quick=False,
    )
    assert any("1 to 3 seeds" in line for line in words.notes(made))


def test_a_short_run_takes_minutes():
    short = tuple(Cell(row, "", Train(row, hours=0.03)) for row in "ab")
    one = experiment(claims=(Better("t", "b", "a"),), cells=short)
    untried = reproduced(one, lambda run, seed: None, None, quick=False)
    assert "4 minutes" in words.why(untried, untried.outcomes[0])


def test_every_claim_has_its_verdict_or_says_why_not():
    rows = words.claim_rows(result())
    assert [row[-1] for row in rows] == ["holds", "not judged", "not judged"]
    assert rows[1][2] == "It is a system of its own."  # as the experiment has it
    assert "1 run" in rows[2][2]
    assert "2.0 hours" in rows[2][2]
    columns, needs = (Column("All", "accuracy", "imagenet"),), ("imagenet-lt",)
    one = experiment(columns, (Better("t", "a", "b"),), needs=needs, cells=())
    untried = reproduced(one, lambda run, seed: None, None, quick=False)
    assert "imagenet-lt" in words.claim_rows(untried)[0][2]


def test_notes_say_setting_seeds_doubts_and_what_is_missing():
    text = " ".join(words.notes(result()))
    for part in (
        "the paper's",
        "1 seed;",
        "95 % intervals over test samples",
        "Not everywhere.",
        "c: It is a system of its own.",
    ):
        assert part in text


def test_a_number_whose_tau_test_samples_chose_says_so_wherever_it_is_shown():
    cells = (Cell("a", "", CE, "best tau"), Cell("b", "", CE, "under the target"))
    one = experiment(claims=(Better("τ helps", "a", "b"),), cells=cells)
    runs = {CE: kept(1.0, 1)}
    kept_of = lambda run, seed: runs.get(run) if seed == 0 else None  # noqa: E731
    made = reproduced(one, kept_of, None, quick=False)
    assert [row[1].endswith("†") for row in words.table_rows(made)] == [True, False]
    assert [each["ours"]["chosen_on_test"] for each in made.as_json()["cells"]] == [True, False]
    assert any("†" in line and "test samples" in line for line in words.notes(made))
    assert "†" in render_page(reproduce_page(made, FOOTER))
    row = next(
        line for line in ledger_text(ledger([one], kept_of, None)).splitlines() if "helps" in line
    )
    assert row.count("†") == 1
    assert not any("†" in line for line in words.notes(result()))


def test_the_page_has_table_claims_and_notes():
    html = render_page(reproduce_page(result(), FOOTER))
    for part in ("LA, Table 1", "the second is better", "holds", "It is a system of its own."):
        assert part in html
    assert "<svg" not in html


@pytest.mark.parametrize("measure", ["recall", "mean_probability", "false_positives", "margin_std"])
def test_a_figure_of_scores_is_drawn(measure):
    one = experiment((Column("x", measure),), (), ("a",), cells=(Cell("a", "", CE),))
    made = reproduced(one, lambda run, seed: kept(1.5) if seed == 0 else None, None, quick=False)
    assert render_page(reproduce_page(made, FOOTER)).count("<svg") >= 1


def test_a_figure_of_features_is_drawn_from_the_numbers_that_were_kept():
    claims = (Trend("norms follow the class size", ("a",), ("x",), (1,)),)
    one = experiment((Column("x", "weight_norm"),), claims, ("a",), cells=(Cell("a", "", CE),))
    run = Kept(scores(1.0), {}, {"weight_norm": np.linspace(3, 1, 6).tolist()})
    made = reproduced(one, lambda each, seed: run if seed == 0 else None, None, quick=False)
    assert len(words.figures(made)) == 1
    assert made.outcomes[0].evidence[0].value == 1.0
    nothing = reproduced(one, lambda each, seed: kept(1.0), None, quick=False)
    assert words.figures(nothing) == []


def test_the_ledger_judges_in_the_papers_setting_where_it_can_and_else_in_the_quick_one():
    small = Quick((Cell("a", "", Train("qa")), Cell("b", "", Train("qb"))), (), "Small.")
    one = experiment(claims=(Better("t", "b", "a"),), quick=small)
    quick_runs = {Train("qa"): kept(1.0, 1), Train("qb"): kept(2.0, 2)}
    full_runs = {CE: kept(2.0, 1), LA: kept(1.0, 2)}
    for runs, setting, verdict in (
        (quick_runs, "quick", "holds"),
        (quick_runs | full_runs, "the paper's", "does not hold"),
    ):
        made = ledger([one], lambda run, seed, r=runs: r.get(run) if seed == 0 else None, None)
        assert made.entries[0].table.settled.setting == setting
        assert made.entries[0].outcome.verdict == verdict
        text = ledger_text(made)
        assert f"({setting}, 1 seed) | **{verdict}** |" in text
    assert made.verdicts["does not hold"] == 1
    assert "0 hold, 1 do not" in in_words(made)


def test_the_ledger_lists_what_is_left_out_and_a_bar_in_a_name_breaks_no_table():
    made = result()
    runs = {CE: kept(1.0, 1), LA: kept(2.0, 2)}
    one = made.experiment
    made = ledger([one], lambda run, seed: runs.get(run) if seed == 0 else None, None)
    text = ledger_text(made)
    for part in ("Not judged:", "Not reproduced:", "¹ table 1, the second is better"):
        assert part in text
    heads = next(line for line in text.splitlines() if line.startswith("| item | claim | paper"))
    rows = [line for line in text.splitlines() if line.endswith("**holds** |")]
    assert [row.count("|") for row in rows] == [heads.count("|")]


@pytest.mark.parametrize(
    ("run", "words"),
    [
        (Train("cifar100-lt-ce-quick", ("data.imbalance_ratio=10",)), "cifar100-lt, ratio 10"),
        (Train("inaturalist-la-ce"), "network, inaturalist"),
        (Fit("caltech", 100.0), "features, caltech, ratio 100"),
        (Fit("r52"), "texts, r52"),
        (Synthetic("two-moons", 10), "two-moons"),
    ],
)
def test_a_verdict_says_what_it_is_of(run, words):
    assert source_in_words(run).endswith(words)


def test_the_margin_of_a_claim_is_said_and_is_in_json():
    def judged(claim):
        return claim_in_words(ClaimVerdict(claim, None))

    assert judged(Better("it gains", "a", "b", by=3.0)).endswith("(by 3 at least)")
    assert judged(Close("they are one", "a", "b", within=0.5)).endswith("(within 0.5)")
    assert judged(Close("so many", "a", 9.0, 0.5, at_least=True)).endswith("(at most 0.5 below)")
    assert judged(Close("9 or more", "a", 9.0, 0.0, at_least=True)) == "9 or more"
    assert judged(Better("it gains", "a", "b")) == "it gains"
