"""`longtail reproduce`: what it lists, what it would run, the tables and the ledger it prints."""

import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from PIL import Image

from longtail.cli import app
from longtail.engine.backbones import SmallCNN
from longtail.flows.reproduce import running
from longtail.flows.train import building
from longtail.recipes.experiments import EXPERIMENTS

ROOT = Path(__file__).parents[2]
KEPT = ROOT / "results" / "scores"


def run(*arguments):
    done = CliRunner().invoke(app, ["reproduce", *map(str, arguments)])
    return done, " ".join(done.output.split())


def as_json(*arguments):
    done, printed = run(*arguments, "--json", "--quiet")
    assert done.exit_code == 0, printed
    return json.loads(done.stdout)


def test_all_are_listed_with_what_they_need_and_how_long_they_take():
    listed = {row["name"]: row for row in as_json()}
    assert list(listed) == list(EXPERIMENTS)
    table = listed["la-table-2"]
    assert table["hours"] == pytest.approx(EXPERIMENTS["la-table-2"].hours)
    assert (table["quick"], "imagenet-lt" in table["needs"]) == (True, True)
    _, printed = run()
    assert "lade-table-6" in printed
    assert "hours of one thread" in printed


def test_the_list_counts_what_is_finished():
    listed = {row["name"]: row for row in as_json("-o", KEPT)}
    assert listed["elm-figure-2"]["finished"] == listed["elm-figure-2"]["cells"] == 3
    assert listed["la-table-4"]["finished"] == 0


def test_the_list_needs_neither_torch_nor_numpy():
    script = (
        "import sys; from longtail.cli import app\n"
        "app.main(['reproduce'], standalone_mode=False)\n"
        "print([name for name in ('torch', 'numpy', 'scipy') if name in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"


def test_a_table_is_printed_from_what_was_kept():
    made = as_json("elm-table-2", "--quick", "--table", "-o", KEPT)
    ours = {cell["row"]: cell["ours"] for cell in made["cells"] if cell["column"] == "CIFAR100-LT"}
    assert ours["LogAdj"]["value"] == pytest.approx(43.4, abs=0.05)
    assert ours["LogAdj"]["low"] < 43.4 < ours["LogAdj"]["high"]
    assert ours["CE + DRO-LT (multi-stage)"] is None
    verdicts = {claim["claim"]: claim["verdict"] for claim in made["claims"]}
    assert verdicts["a logit margin helps: LogAdj beats cross-entropy"] == "holds"
    done, printed = run("elm-table-2", "--quick", "--table", "-o", KEPT)
    assert done.exit_code == 0
    for words in ("46.92", "43.4", "holds", "not judged", "95 % intervals over test samples"):
        assert words in printed
    assert not (KEPT / "tables").exists()


def test_settings_are_read_from_the_recipes(tmp_path):
    made = as_json("lade-table-7", "--table", "-o", tmp_path)
    assert all(cell["ours"] == cell["published"] for cell in made["cells"])
    counts = as_json("ncm-table-4", "--table", "-o", tmp_path)
    ours = {(cell["row"], cell["column"]): cell["ours"] for cell in counts["cells"]}
    assert ours["CIFAR100-LT (Imba 10)", "Samples, Many"] == 17443
    assert len(counts["corrections"]) == 2


LISTS = {
    "imagenet-lt": ("ImageNet_LT_train.txt", "ImageNet_LT_val.txt", "ImageNet_LT_test.txt", 1000),
    "places-lt": ("Places_LT_train.txt", "Places_LT_val.txt", "Places_LT_test.txt", 365),
    "inaturalist": ("iNaturalist18_train.txt", None, "iNaturalist18_val.txt", 8142),
    "sun397": ("train.txt", None, "test.txt", 397),
}


@pytest.fixture(scope="module")
def lists(tmp_path_factory):
    """List files of the four sets, made up: every class has one image, the same one."""
    root = tmp_path_factory.mktemp("lists")
    pixels = np.random.default_rng(0).integers(0, 256, (64, 64, 3)).astype(np.uint8)
    for name, (*files, classes) in LISTS.items():
        (root / name).mkdir()
        Image.fromarray(pixels).save(root / name / "a.png")
        for file in filter(None, files):
            text = "".join(f"a.png {label}\n" for label in range(classes))
            (root / name / file).write_text(text)
    return [f"--data={name}={root / name}" for name in LISTS]


@pytest.fixture
def small_networks(monkeypatch):
    """The papers' networks come with torchvision and timm, which need not be there."""
    monkeypatch.setattr(building, "build_backbone", lambda option: SmallCNN(dim=32))


@pytest.mark.parametrize(
    "name", ["lade-table-4", "lade-table-3", "lade-table-5", "eo-table-2", "la-table-4"]
)
def test_a_dry_run_builds_every_recipe_on_made_up_lists(name, lists, small_networks, tmp_path):
    made = as_json(name, "--dry-run", "-o", tmp_path / "results", *lists)
    assert made["missing_data"] == []
    assert made["hours"] is None
    assert len(made["runs"]) >= 2
    for each in made["runs"]:
        assert each["error"] is None, each
        assert each["plan"]["classes"] == LISTS[each["data"]][-1]
    assert not (tmp_path / "results").exists()


def test_a_dry_run_says_what_is_missing_and_what_cannot_be_built(lists, tmp_path):
    done, printed = run("la-table-2", "--dry-run")
    assert done.exit_code == 0, printed
    assert "Missing: inaturalist; give it with --data inaturalist=PATH" in printed
    done, printed = run("lade-table-5", "--dry-run", f"--data=inaturalist={tmp_path}")
    assert "cannot be built" in printed
    done, printed = run("lade-figure-2", "--quick", "--dry-run", "-o", tmp_path)
    assert "About 2.0 hours of one thread" in printed


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["la-tabel-2"], "did you mean la-table-2"),
        (["la-table-2"], "-o RESULTS"),
        (["la-table-2", "-o", "out", "--quick"], "--data cifar10=PATH --data cifar100=PATH"),
        (["la-table-2", "-o", "out", "--seeds", "a"], "such as 0,1,2"),
        (["--keep", "."], "say where to keep it"),
        (["--quick"], "--quick is for one experiment"),
        (["la-table-2", "--table", "--jobs", "2", "-o", "."], "--table takes no --jobs"),
        (["la-table-2", "--ledger", "."], "--ledger takes no NAME"),
        (["--ledger", ".", "--keep", "."], "--ledger takes no --keep"),
        (["la-table-2", "--dry-run", "--data", "cifar=."], "no experiment needs data called cifar"),
    ],
)
def test_wrong_usage_is_told(arguments, words, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done, printed = run(*arguments)
    assert done.exit_code == 2
    assert words in printed


def test_the_ledger_is_what_the_kept_scores_say(tmp_path):
    """Else: longtail reproduce --ledger results/scores -o docs/ledger.md."""
    done, printed = run("--ledger", KEPT, "-o", tmp_path / "ledger.md")
    assert done.exit_code == 0, printed
    made, committed = tmp_path / "ledger.md", ROOT / "docs" / "ledger.md"
    assert made.read_text().splitlines() == committed.read_text().splitlines()
    assert made.read_bytes() == committed.read_bytes()
    ends = ("**holds** |", "**does not hold** |", "**cannot tell** |")
    assert sum(line.endswith(ends) for line in made.read_text().splitlines()) >= 40


def test_what_is_kept_has_at_most_20_mb():
    assert sum(file.stat().st_size for file in KEPT.iterdir()) <= 20_000_000


@pytest.fixture
def mine(tmp_path):
    """A folder with what is kept of one run, called otherwise than ours."""
    folder = tmp_path / "mine"
    folder.mkdir()
    shutil.copy(KEPT / "two-moons-10-s0.json", folder)
    return folder


def test_the_ledger_says_what_it_was_made_from_and_is_made_again(mine, tmp_path):
    output = tmp_path / "ledger.md"
    for _ in range(2):
        done, printed = run("--ledger", mine, "-o", output)
        assert done.exit_code == 0, printed
    assert f"--ledger {mine}`" in output.read_text()


@pytest.mark.parametrize("name", ["mine/two-moons-10-s0.json", "mine/new.md", "notes.md"])
def test_a_ledger_goes_over_nothing_but_a_ledger(mine, tmp_path, name):
    (tmp_path / "notes.md").write_text("# The notes\n")
    before = {file: file.read_bytes() for file in tmp_path.rglob("*.*")}
    done, printed = run("--ledger", mine, "-o", tmp_path / name)
    assert done.exit_code == 2
    assert f"{tmp_path / name} is" in printed
    assert {file: file.read_bytes() for file in tmp_path.rglob("*.*")} == before


@pytest.mark.parametrize("option", ["--ledger", "--keep"])
def test_a_folder_without_any_run_is_refused(option, tmp_path):
    (tmp_path / "empty").mkdir()
    done, printed = run(option, tmp_path / "empty", "-o", tmp_path / "made")
    assert done.exit_code != 0
    assert "empty has no finished run" in printed
    assert not (tmp_path / "made").exists()


def test_before_any_work_finished_runs_are_those_that_are_asked_for(tmp_path, monkeypatch):
    folder = tmp_path / "runs" / "ce-s0"
    folder.mkdir(parents=True)
    (folder / "metrics.json").write_text("{}")
    (folder / "recipe.yaml").write_text("data: cifar10\n")
    monkeypatch.setattr(running, "run_all", lambda *args: pytest.fail("it began to work"))
    done, printed = run("ours-quick", "-o", tmp_path, f"--data=cifar100={tmp_path}")
    assert done.exit_code != 0
    assert "ce-s0 is a run of another recipe" in printed


def test_a_table_of_a_folder_that_is_not_there_is_wrong_usage(tmp_path):
    done, printed = run("la-table-2", "--quick", "--table", "-o", tmp_path / "nothere")
    assert done.exit_code == 2
    assert "nothere" in printed


def test_a_seed_that_is_given_twice_is_wrong_usage():
    done, printed = run("la-figure-2", "--seeds", "0,1,0", "--dry-run")
    assert done.exit_code == 2
    assert "twice" in printed
