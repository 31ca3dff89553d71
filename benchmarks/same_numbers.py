"""Do two versions of the library give the same numbers? Commands of both on the same files.

    git worktree add /tmp/old COMMIT && python benchmarks/same_numbers.py /tmp/old/src

Runs `fix` on stored scores of a network (three ways), `compare`, `fit` on Caltech-101 features and
the demo with both, and says by how much what metrics.json and the tables have in common differs.

One number jumps, so that rounding alone moves it by more than 1e-4: ECE, by up to 1/N where a
confidence crosses the edge of a bin. `fit` takes for its weight decay the vertex of a parabola
through log-losses; one that differs in its last digit lets the solver, whose tolerance is 1e-5,
stop elsewhere. With these losses rounded to ten digits both versions give the same logits.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import longtail as lt

ROOT = Path(__file__).parent.parent
SCORES = ROOT / "results/scores/ce-s0.safetensors"
FIX = ["fix", "val.npz", "--kind", "logits", "--counts", "counts.json"]
COMMANDS = {
    "fix": [*FIX, "--apply", "test.npz", "-o", "fix"],
    "fix, estimated target": [*FIX, "--apply", "test.npz", "--target", "estimate", "-o", "est"],
    "fix, cross-fitted": [*FIX, "-o", "cross"],
    "compare": ["compare", "fix", "est", "-o", "cmp"],
    "fit on Caltech-101": ["fit", "features.npz", "-o", "fit"],
    "demo": ["demo", "-o", "demo"],
}
FILES = {
    "fix": "fix/metrics.json",
    "fix, estimated target": "est/metrics.json",
    "fix, cross-fitted": "cross/metrics.json",
    "compare": "cmp/comparison.json",
    "fit on Caltech-101": "fit/metrics.json",
    "demo": "demo/results.json",
}
COUNTED = ("accuracy", "accuracy_under_target", "balanced_accuracy", "many", "medium", "few")
DRAWN = ("worst_class", "geometric_mean")  # their intervals are drawn at random
EXACT = 1e-12  # the last digits of a mean of recalls, by the order they are added in
CORRECTED = ("multi_ncm",)  # whose centres come from the plain learned NCM now
NAMES = {"held_out": "validation"}  # what the older version calls otherwise


def main():
    old, new = Path(sys.argv[1]).resolve(), ROOT / "src"
    with tempfile.TemporaryDirectory() as folder:
        places = {name: Path(folder) / name for name in ("old", "new")}
        for place in places.values():
            place.mkdir()
            write_inputs(place)
        print("Two versions on the same files. Made by `python benchmarks/same_numbers.py OLD`.\n")
        print("| command | numbers in common | counted | of these differ most | others, the most |")
        print("|---|--:|--:|---|---|")
        for name, arguments in COMMANDS.items():
            for source, place in ((old, places["old"]), (new, places["new"])):
                run(arguments, source, place)
            before, after = (numbers(place / FILES[name]) for place in places.values())
            common = sorted(
                key
                for key in before.keys() & after.keys()
                if not any(part in CORRECTED for part in key.split("/"))
            )
            off = {key: abs(before[key] - after[key]) for key in common}
            counted = [key for key in common if is_counted(key)]
            most = sorted(counted, key=lambda key: -off[key])[:2]
            others = sorted(set(common) - set(counted), key=lambda key: -off[key])[:3]
            shown = [
                "; ".join(f"{key}: {off[key]:.1e}" for key in keys if off[key] > EXACT) or "none"
                for keys in (most, others)
            ]
            print(f"| {name} | {len(common)} | {len(counted)} | {' | '.join(shown)} |", flush=True)


def is_counted(key):
    """Whether it is a share of samples or of classes, not the end of an interval."""
    *parts, last = key.split("/")
    return last not in ("low", "high") and any(part in COUNTED for part in [*parts, last])


def write_inputs(place):
    scores = lt.Scores.load(SCORES)
    order = np.random.default_rng(0).permutation(len(scores))
    for name, rows in (("val", order[:5000]), ("test", order[5000:])):
        part = scores.take(rows)
        np.savez(place / f"{name}.npz", logits=part.logits.astype(np.float32), labels=part.labels)
    (place / "counts.json").write_text(json.dumps(scores.counts.tolist()))
    data = lt.data.caltech101_long_tailed()
    parts = ("train_features", "train_labels", "test_features", "test_labels")
    np.savez(place / "features.npz", **{name: np.asarray(getattr(data, name)) for name in parts})


def run(arguments, source, place):
    environment = os.environ | {"PYTHONPATH": str(source), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "longtail", *arguments, "--quiet"]
    subprocess.run(command, cwd=place, env=environment, check=True, stdout=subprocess.DEVNULL)


def numbers(path):
    """The numbers of a JSON file by their place in it."""
    found = {}

    def walk(value, at):
        if isinstance(value, dict):
            for key, part in value.items():
                walk(part, f"{at}/{NAMES.get(key, key)}" if at else NAMES.get(key, key))
        elif isinstance(value, list):
            named = all(isinstance(part, dict) and "name" in part for part in value)
            for number, part in enumerate(value):
                walk(part, f"{at}/{part['name'] if named else number}")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            drawn = any(part in DRAWN for part in at.split("/")) and at.endswith(("low", "high"))
            if "seconds" not in at and not drawn:
                found[at] = float(value)

    walk(json.loads(path.read_text()), "")
    return found


if __name__ == "__main__":
    main()
