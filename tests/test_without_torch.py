"""Whoever fixes a model's scores needs no torch: the commands and the classifier without it."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

COUNTS = [300, 80, 20, 6]
KEPT = Path(__file__).parents[1] / "results" / "scores"
COMMANDS = {
    "audit": ["audit", "labels.csv", "-o", "audited"],
    "fix": ["fix", "val.npz", "--kind", "logits", "--counts", "counts.json", "-o", "fixed"],
    "fix, another file": [
        *("fix", "val.npz", "--kind", "logits", "--counts", "counts.json"),
        *("--apply", "test.npz", "--target", "estimate", "-o", "moved"),
    ],
    "report": ["report", "fixed/scores.safetensors", "-o", "reported"],
    "compare": ["compare", "fixed", "again", "-o", "compared"],
    "recipes": ["recipes"],
    "reproduce": ["reproduce"],
    "reproduce, a table": ["reproduce", "la-table-2", "--quick", "--table", "-o", str(KEPT)],
    "reproduce, the ledger": ["reproduce", "--ledger", str(KEPT), "-o", "ledger.md"],
    "doctor": ["doctor"],
}
HIDE = """
import importlib.abc, sys
class Hidden(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path, target=None):
        if name.partition(".")[0] in ("torch", "SCIPY"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Hidden())
"""
RUN = f"""{HIDE}
from longtail.cli import main
sys.argv = ["longtail", *sys.argv[1:]]
main()
"""
CLASSIFIER = f"""{HIDE}
import numpy as np
from sklearn.linear_model import LogisticRegression
from longtail.integrations.sklearn import LogitAdjustedClassifier
rng = np.random.default_rng(0)
labels = np.repeat(["a", "b", "c"], [200, 60, 20])
rows = rng.normal(size=(280, 4)) + 2 * np.eye(4)[np.unique(labels, return_inverse=True)[1]]
fitted = LogitAdjustedClassifier(LogisticRegression()).fit(rows, labels)
assert set(fitted.predict(rows)) == set("abc")
assert (fitted.predict(rows) == labels).mean() > 0.6
assert np.allclose(fitted.predict_proba(rows).sum(axis=1), 1)
"""


def python(code, *arguments, cwd):
    return subprocess.run(
        [sys.executable, "-c", code, *arguments], cwd=cwd, capture_output=True, text=True
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Scores, labels and counts as a user has them, and a second fix to compare with."""
    folder, random = tmp_path_factory.mktemp("without_torch"), np.random.default_rng(0)
    for name in ("val", "test"):
        labels = np.repeat(np.arange(4), [60, 40, 30, 30])
        logits = random.normal(size=(160, 4)) + 2 * np.eye(4)[labels] + np.log(COUNTS)
        np.savez(folder / f"{name}.npz", logits=logits, labels=labels)
    (folder / "counts.json").write_text(json.dumps(COUNTS))
    lines = [name for name, count in zip("abcd", COUNTS, strict=True) for _ in range(count)]
    (folder / "labels.csv").write_text("\n".join(["label", *lines]))
    for output in ("fixed", "again"):
        made = python(RUN, *COMMANDS["fix"][:-1], output, cwd=folder)
        assert made.returncode == 0, made.stderr
    return folder


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_of_the_scores_half_runs(folder, name):
    done = python(RUN, *COMMANDS[name], cwd=folder)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("command", ["fit", "train", "features", "demo"])
def test_a_command_that_needs_torch_says_so_in_one_sentence(folder, command):
    arguments = {
        "fit": ["fit", "val.npz", "-o", "fitted"],
        "train": ["train", "cifar100-lt-la-quick", "--data", "val.npz", "-o", "run"],
        "features": ["features", "fixed", "val.npz", "-o", "features.safetensors"],
        "demo": ["demo", "-o", "demo"],
    }[command]
    done = python(RUN, *arguments, cwd=folder)
    assert done.returncode == 1
    assert "longtail[torch]" in done.stderr
    assert "bug" not in done.stderr


def test_the_classifier_around_scikit_learn_works(tmp_path):
    done = python(CLASSIFIER, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_an_adjuster_is_loaded_and_applied_with_numpy_alone(folder):
    code = (
        f"{HIDE.replace('SCIPY', 'scipy')}\n"
        "import numpy as np, longtail as lt\n"
        "adjuster = lt.posthoc.load_adjusters('fixed/adjuster.json')\n"
        "rows = np.load('test.npz')['logits']\n"
        "after = adjuster(lt.Scores(rows, carried=lt.Prior.of([300, 80, 20, 6])))\n"
        "np.save('after.npy', after.probs())"
    )
    done = python(code, cwd=folder)
    assert done.returncode == 0, done.stderr
    assert np.load(folder / "after.npy").shape == (160, 4)
