"""The command line: fast to answer, clear about wrong input, and the demo whole."""

import json
import re
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner

from longtail import __version__
from longtail.cli import app

LONGTAIL = Path(sys.executable).with_name("longtail")


def longtail(*arguments, cwd=None):
    return subprocess.run(
        [LONGTAIL, *arguments], capture_output=True, text=True, cwd=cwd, check=False
    )


def test_help_and_version_answer_without_torch():
    code = (
        "import sys; from longtail.cli import app; "
        "app.main(['--help'], standalone_mode=False); "
        "app.main(['demo', '--help'], standalone_mode=False); "
        "sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert longtail("--version").stdout == f"longtail, version {__version__}\n"


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["dmeo"], "there is no command dmeo; did you mean demo?"),
        (["demo", "--trials", "one"], "'one' is not a valid integer range"),
        (["demo", "--trials", "1"], "1 is not in the range x>=2"),
        (["demo", "--seed", "-1"], "-1 is not in the range 0<=x"),
        (["demo", "--fast"], "No such option"),
    ],
)
def test_wrong_usage_exits_with_2_and_says_why(arguments, sentence):
    done = longtail(*arguments)
    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


def test_an_output_that_is_a_file_is_refused_at_once(tmp_path):
    (tmp_path / "taken").write_text("")
    done = longtail("demo", "-o", "taken", cwd=tmp_path)
    assert done.returncode == 2
    assert "is a file" in done.stderr


def test_an_output_that_cannot_be_made_exits_with_1_and_one_sentence(tmp_path):
    (tmp_path / "taken").write_text("")
    done = longtail("demo", "-o", "taken/inside", cwd=tmp_path)
    assert done.returncode == 1
    assert done.stderr.startswith("Error: ")
    assert "Traceback" not in done.stderr


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    folder = tmp_path_factory.mktemp("demo")
    done = longtail("demo", "--trials", "2", "-o", str(folder / "out"))
    return done, folder / "out"


def test_the_demo_prints_two_tables_and_says_where_the_report_is(demo):
    done, _ = demo
    assert done.returncode == 0, done.stderr
    printed = " ".join(done.stdout.split())
    for words in ("Two Gaussians", "Caltech-101", "Bayes", "few", "convex", "report.html"):
        assert words in printed
    assert done.stderr == ""  # no progress, for that is no terminal, and no warnings


def test_the_demo_reaches_what_it_claims_on_caltech(demo):
    _, folder = demo
    results = json.loads((folder / "results.json").read_text())
    plain, after, loss = results["caltech101"]
    assert loss["balanced_accuracy"] - plain["balanced_accuracy"] >= 0.03
    assert after["balanced_accuracy"] - plain["balanced_accuracy"] >= 0.03
    assert abs(loss["balanced_accuracy"] - after["balanced_accuracy"]) < 0.01
    assert loss["few"] > plain["few"] + 0.05
    assert plain["many"] > loss["many"]


def test_the_demo_gains_no_accuracy_at_the_cost_of_its_probabilities(demo):
    _, folder = demo
    plain, after, loss = json.loads((folder / "results.json").read_text())["caltech101"]
    for adjusted in (after, loss):
        assert adjusted["nll"] < plain["nll"]
        assert adjusted["ece"] < max(plain["ece"] + 0.01, 0.03)


def test_the_first_screen_of_the_demo_calls_nothing_worse_that_it_does_not_explain(demo):
    _, folder = demo
    page = (folder / "report.html").read_text()
    lead = page[page.index("<table") : page.index("</table>")]
    rows = {cells[0]: cells[-1] for cells in map(_cells, lead.split("<tr>")[2:])}
    worse = [name for name, change in rows.items() if "worse" in change]
    assert all("many" in name or "medium" in name for name in worse)  # what the gain costs
    assert "better" in rows["log-loss"]
    assert "Declared and measured disagree" not in page


def _cells(row):
    return re.findall(r"<td[^>]*>(?:<b>)?(.*?)(?:</b>)?</td>", row)


def test_the_report_is_one_file_with_the_figures(demo):
    _, folder = demo
    page = (folder / "report.html").read_text()
    headings = re.findall(r"<h2>(.*?)</h2>", page)
    assert headings[0].startswith("Caltech-101")
    assert headings[-1].startswith("Two Gaussians")
    assert "How far to move: τ" in headings
    assert page.count("<svg") == page.count("</svg>") > len(headings)
    for words in (
        "What to do next",
        "LA figure 2, left",
        "LA figure 2, middle",
        "LA figure 2, right",
        "CC BY 4.0",
    ):
        assert words in page
    assert "src=" not in page


def test_every_option_of_the_demo_is_explained():
    explained = CliRunner().invoke(app, ["demo", "--help"]).output
    for words in ("How often the two Gaussians are drawn", "Decides what is drawn"):
        assert words in explained


def test_commands_can_be_run_in_process():
    done = CliRunner().invoke(app, ["--help"])
    assert done.exit_code == 0
    assert "demo" in done.output


@pytest.mark.parametrize(("option", "note"), [([], "Done in"), (["--quiet"], "")])
def test_the_demo_as_json_is_json_and_its_note_stands_beside(option, note, tmp_path, monkeypatch):
    results = SimpleNamespace(as_json=lambda: {"caltech101": []})
    monkeypatch.setattr("longtail.flows.demo.demo", lambda *_: results)
    monkeypatch.setattr("longtail.report.save", lambda results, folder: None)
    done = CliRunner().invoke(app, ["demo", "--json", "-o", str(tmp_path), *option])
    assert json.loads(done.stdout) == {"caltech101": []}
    assert done.stderr.strip().startswith(note)
    assert bool(done.stderr) is bool(note)
