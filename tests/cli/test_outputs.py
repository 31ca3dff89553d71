"""What commands print and write: names stay names, JSON is JSON, pages quote the command."""

import html
import io
import json
import sys

import click
import numpy as np
import pytest
from click.testing import CliRunner
from rich.console import Console

from longtail import __version__
from longtail.cli import app
from longtail.cli.options import WordOrFile
from longtail.cli.terminal import (
    closing,
    console,
    print_json,
    rich_table,
)
from longtail.flows.results import json_text


def drawn(table, width=80):
    shown = Console(file=io.StringIO(), width=width)
    shown.print(table)
    return shown.file.getvalue()


def test_what_looks_like_markup_is_shown_as_it_is_everywhere_in_a_table():
    text = drawn(rich_table("[b]t[/b]", ["[u]", "n"], [["[red]", ":cat:"]], caption="[i]c"))
    for words in ("[b]t[/b]", "[u]", "[red]", ":cat:", "[i]c"):
        assert words in text


def test_names_stand_left_and_numbers_right():
    lines = drawn(rich_table("", ["method", "value"], [["a", "1"], ["longer", "10.5"]])).split("\n")
    assert any(line.startswith(" a ") and line.rstrip().endswith("   1") for line in lines)


WIDE = [
    "linear, adjusted by the best τ",
    "91.1 [89.5,\u00a092.6]",
    "+4.3 [+2.8,\u00a0+5.8]",
    "0.347",
]


def test_where_there_is_little_room_names_take_more_lines_and_numbers_do_not(monkeypatch):
    monkeypatch.setenv("COLUMNS", "70")
    text = drawn(rich_table("", ["method", "held out", "over linear", "log-loss"], [WIDE]), 70)
    for number in WIDE[1:]:
        assert number in text
    assert WIDE[0] not in text
    assert "adjusted" in text


def test_a_word_of_a_name_is_not_broken_if_that_leaves_room_for_numbers(monkeypatch):
    monkeypatch.setenv("COLUMNS", "64")
    heads, number = ["", *("a long heading: paper", "ours") * 3], "45.2 [44.1, 46.3]"
    rows = [[name, *[number] * 6] for name in ("Baseline", "a Baseline+RS")]
    text = drawn(rich_table("", heads, rows, whole_words=True), 64)
    assert text.count("Baseline") == 2
    assert "Baseline+RS" in text
    assert max(map(len, text.splitlines())) <= 64
    assert "…" not in text


def test_where_there_is_no_room_at_all_nothing_is_cut_off(monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    text = drawn(rich_table("", ["method", "held out", "over linear", "log-loss"], [WIDE]), 30)
    for start in (0, 1, 2, 3):
        kept = "".join(WIDE[start].split())
        assert all(text.count(character) >= kept.count(character) for character in kept)
    assert "…" not in text


def test_the_console_reads_no_markup_and_no_colours_away_from_a_terminal(capsys):
    console().print("[red] :cat: 1.5", style="bold")
    assert capsys.readouterr().out == "[red] :cat: 1.5\n"


def test_other_processes_print_nothing(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv("RANK", "3")
    console().print("a")
    print_json([1])
    closing(tmp_path, ["a"], as_json=False, quiet=False)
    assert capsys.readouterr() == ("", "")


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_are_not_finite_are_null(number):
    assert json.loads(json_text({"a": [(number, 1.5)]})) == {"a": [[None, 1.5]]}


@pytest.mark.parametrize(("encoding", "shown"), [("utf-8", "é"), ("ascii", "\\u00e9")])
def test_json_can_be_read_whatever_the_terminal_can_show(encoding, shown, monkeypatch):
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding=encoding))
    print_json(["é"])
    sys.stdout.flush()
    text = raw.getvalue().decode("utf-8")
    assert shown in text
    assert json.loads(text) == ["é"]


def test_the_closing_line_is_beside_json_and_not_there_if_quiet(capsys, tmp_path):
    closing(tmp_path, ["a.json", "b.html"], as_json=False, quiet=False)
    closing(tmp_path, ["c.json"], as_json=True, quiet=False)
    closing(tmp_path, ["d.json"], as_json=True, quiet=True)
    assert capsys.readouterr() == (
        f"\nIn {tmp_path}: a.json, b.html\n",
        f"\nIn {tmp_path}: c.json\n",
    )


def test_pages_and_metrics_quote_the_command_as_it_was_given(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    np.savez("two words.npz", logits=2 * np.eye(2)[[0, 1, 1] * 9], labels=[0, 1, 0] * 9)
    given = ["fix", "two words.npz", "--kind", "logits", "--carried", "uniform", "-o", "out"]
    done = CliRunner().invoke(app, [*given, "--json"])
    assert done.exit_code == 0, done.output
    quoted = "longtail fix 'two words.npz' --kind logits --carried uniform -o out --json"
    written = json.loads((tmp_path / "out/metrics.json").read_text())
    assert (written["version"], written["command"]) == (__version__, quoted)
    assert (
        html.escape(quoted).replace("&#x27;", "&#39;") in (tmp_path / "out/report.html").read_text()
    )


def test_a_word_or_a_file_is_one_or_the_other(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    kind = WordOrFile(("uniform", "train"))
    assert kind.convert("train", None, None) == "train"
    (tmp_path / "prior.json").write_text("[1]")
    assert kind.convert("prior.json", None, None).name == "prior.json"
    with pytest.raises(click.BadParameter, match="uniform, train or a file"):
        kind.convert("x", None, None)
