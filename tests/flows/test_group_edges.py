"""The edges of many, medium and few that were asked for are those of every number and page."""

import json

import numpy as np
import pytest
from click.testing import CliRunner

import longtail as lt
from longtail.cli import app
from longtail.report import page_of, render_page

COUNTS = [400, 100, 50, 20, 5]  # two classes stand at an edge
PAPERS = "many=100,few=20,inclusive"
OWN = "many=50,few=20,few_inclusive"
MANY = {None: [0], PAPERS: [0, 1], OWN: [0, 1]}
FEW = {None: [4], PAPERS: [4], OWN: [3, 4]}
LABELS = np.arange(200) % 5


@pytest.fixture
def scores():
    logits = np.random.default_rng(0).normal(size=(200, 5))
    logits[np.arange(200), LABELS] += np.array([3.0, 2.0, 1.5, 1.0, 0.5])[LABELS]
    return lt.Scores(logits, LABELS, carried=COUNTS, counts=COUNTS)


def naive(scores, classes):
    """The mean recall of some classes."""
    right = scores.predict() == LABELS
    return np.mean([right[k == LABELS].mean() for k in classes])


def page_text(result):
    return " ".join(render_page(page_of(result)).split())


@pytest.mark.parametrize("groups", [None, PAPERS, OWN])
def test_every_flow_on_scores_takes_the_edges(scores, groups, tmp_path):
    scores.save(tmp_path / "la.safetensors")
    uniform = lt.Prior.uniform(5)
    fixed = lt.fix(scores, tau=1.0, calibration="none", groups=groups)
    judged = scores.under(uniform)
    compared = lt.compare(tmp_path, groups=groups)
    (method,) = compared.sets[0].methods
    for name, classes in {"many": MANY[groups], "few": FEW[groups]}.items():
        expected = pytest.approx(naive(judged, classes))
        assert lt.metrics.evaluate(scores, target=uniform, groups=groups)[name] == expected
        assert fixed.after[name].value == expected
        assert method.estimates[name].value == expected
    told = str(lt.GroupEdges.of(groups))
    assert fixed.as_json()["group_edges"] == told
    assert compared.as_json()["sets"][0]["group_edges"] == told


@pytest.mark.parametrize(
    ("groups", "words"),
    [
        (None, "more than 100, 20 to 100 and fewer than 20 training samples"),
        (PAPERS, "100 or more, 20 to 99 and fewer than 20 training samples"),
        (OWN, "more than 50, 21 to 50 and 20 or fewer training samples"),
    ],
)
def test_pages_and_tables_say_which_edges_were_used(scores, groups, words, tmp_path):
    scores.save(tmp_path / "la.safetensors")
    fixed = lt.fix(scores, tau=1.0, calibration="none", groups=groups)
    assert words in page_text(fixed)
    compared = lt.compare(tmp_path, groups=groups)
    assert words in page_text(compared)
    assert words in lt.report.pages.compare_tables.markdown(compared)


def test_an_audit_counts_its_groups_by_the_edges():
    counts = {f"class {k}": count for k, count in enumerate(COUNTS)}
    for groups in (None, PAPERS, OWN):
        result = lt.audit(counts, groups=groups)
        many, _, few = result.groups
        assert (many.num_classes, few.num_classes) == (len(MANY[groups]), len(FEW[groups]))
        assert result.as_json()["group_edges"] == str(lt.GroupEdges.of(groups))
    assert "few, 20 or fewer" in page_text(result)
    assert "with 20 or fewer samples hold" in page_text(result)
    assert "few: up to 20" in page_text(result)


def test_a_fit_takes_the_edges():
    random = np.random.default_rng(0)
    labels = np.repeat(np.arange(3), [60, 20, 8])
    rows = random.normal(size=(88, 4)).astype(np.float32) + labels[:, None]
    test = rows[::2] + 0.1, labels[::2]
    settings = {"test": test, "methods": ["adjusted"], "folds": 2}
    result = lt.fit(rows, labels, groups="many=20,few=10,inclusive", **settings)
    right = result.test.predict().numpy() == test[1]
    expected = np.mean([right[test[1] == k].mean() for k in (0, 1)])
    assert result.best.test["many"].value == pytest.approx(expected)
    assert "20 or more, 10 to 19 and fewer than 10 training samples" in page_text(result)
    assert result.as_json()["group_edges"] == "many=20,few=10,inclusive"


def test_a_comparison_takes_the_edges_on_which_the_runs_agree(scores, tmp_path):
    for name, groups in (("one", PAPERS), ("two", PAPERS), ("three", OWN)):
        lt.fix(scores, output=tmp_path / name, groups=groups)

    def edges(*names):
        (table,) = lt.compare([tmp_path / name for name in names]).sets
        return str(table.samples.edges)

    assert edges("one", "two") == PAPERS
    assert edges("one", "three") == str(lt.GroupEdges())


@pytest.mark.parametrize("command", ["fix", "fit", "report", "compare", "audit"])
def test_every_command_that_shows_groups_takes_and_checks_them(command, tmp_path):
    file = tmp_path / "counts.json"
    file.write_text(json.dumps(COUNTS))
    arguments = [command, str(file), "--groups", "most=5", "-o", str(tmp_path / "out")]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 2
    assert PAPERS in done.output


def test_the_command_line_says_the_same_as_python(scores, tmp_path):
    scores.save(tmp_path / "scores.safetensors")
    file, out = str(tmp_path / "scores.safetensors"), str(tmp_path / "out")
    for command in ("fix", "report"):
        done = CliRunner().invoke(app, [command, file, "--groups", OWN, "-o", out, "--json"])
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["group_edges"] == OWN
        out = f"{out}-2"
    printed = CliRunner().invoke(app, ["fix", file, "--groups", OWN, "-o", out]).output
    assert "more than 50, 21 to 50" in " ".join(printed.split())
