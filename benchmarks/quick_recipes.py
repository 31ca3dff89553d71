"""Training from scratch on a CPU: cross-entropy and logit adjustment on CIFAR-100-LT, ratio 100.

ResNet-32, 40 epochs, one cycle up to 0.2, batches of 128, crop and flip, all 10,847 training images
and the last epoch as it is: nothing is chosen. Both recipes run beside each other, a thread each;
stopped, they go on from their folders. Targets on the test set: 36 and 41 % balanced accuracy.
Usage: `python benchmarks/quick_recipes.py CIFAR-100 RUNS`: an archive or npz, and a folder.
"""

import csv
import json
import os
import statistics
import subprocess
import sys
from pathlib import Path

CHANGES = ("data.held_out=0", "evaluate_every=40")
TARGETS = {"ce": ("cross-entropy", 36.0), "la": ("logit adjustment", 41.0)}


def command(loss, data, run):
    start = [sys.executable, "-m", "longtail", "train", f"cifar100-lt-{loss}-quick"]
    return [*start, *CHANGES, "--data", data, "-o", str(run), "--quiet"]


def shown(measured):
    value, low, high = (100 * measured[key] for key in ("value", "low", "high"))
    return f"{value:.1f} [{low:.1f}, {high:.1f}]"


def main():
    data, runs = sys.argv[1], Path(sys.argv[2])
    runs.mkdir(parents=True, exist_ok=True)
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    started = [
        subprocess.Popen(
            command(loss, data, runs / loss), env=environment, stdout=subprocess.DEVNULL
        )
        for loss in TARGETS
    ]
    if any([process.wait() for process in started]):
        raise SystemExit("a run failed; start it again to go on")
    print("# Quick recipes on CIFAR-100-LT\n")
    print(
        "`python benchmarks/quick_recipes.py CIFAR-100 RUNS`, one seed, with 95 % intervals of the"
    )
    print("test images. An epoch: the median, beside the other run and whatever else there was.\n")
    print("| loss | balanced accuracy (%) | many | medium | few | target | an epoch, s |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for loss, (name, target) in TARGETS.items():
        found = json.loads((runs / loss / "metrics.json").read_text())["metrics"]["test"]
        with (runs / loss / "log.csv").open() as file:
            epoch = statistics.median(float(row["seconds"]) for row in csv.DictReader(file))
        for variant, metrics in found.items():
            groups = " | ".join(
                f"{100 * metrics[g]['value']:.1f}" for g in ("many", "medium", "few")
            )
            goal = f"{target:g}" if variant == "as trained" else ""
            accuracy = shown(metrics["balanced_accuracy"])
            print(f"| {name}, {variant} | {accuracy} | {groups} | {goal} | {epoch:.0f} |")


if __name__ == "__main__":
    main()
