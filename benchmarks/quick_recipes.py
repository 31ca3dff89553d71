"""Training from scratch on a CPU: the losses of the papers on CIFAR-100-LT, ratio 100.

ResNet-32, 40 epochs, one cycle up to 0.2, batches of 128, crop and flip, all 10,847 training images
and the last epoch as it is: nothing is chosen. Two runs go beside each other, a thread each;
stopped, they go on from their folders. Targets on the test set: 36 % balanced accuracy for
cross-entropy, 41 for logit adjustment.
Usage: `python benchmarks/quick_recipes.py CIFAR-100 RUNS`: an archive or npz, and a folder; with
`--table RUNS` alone it trains nothing, and tables the runs that have finished; `--keep RUNS FOLDER`
keeps their test scores in float16.
"""

import csv
import json
import os
import statistics
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import torch

import longtail as lt

AT_ONCE = 2
UNCHANGED = ("data.validation_share=0", "evaluate_every=40")
COSINE = ("head=cosine", "head.scale=30")


class Run(NamedTuple):
    """A recipe of `longtail train`, what is changed in it, and the target if there is one."""

    name: str
    recipe: str
    changes: tuple[str, ...] = ()
    target: str = ""


RUNS = {
    "ce-s0": Run("cross-entropy", "cifar100-lt-ce-quick", target="36"),
    "la-s0": Run("logit adjustment", "cifar100-lt-la-quick", target="41"),
    "lade-s0": Run("LADE", "cifar100-lt-lade-quick"),
    "elm-s0": Run("ELM", "cifar100-lt-la-quick", ("loss=elm", "loss.margins=sqrt_count")),
    "ldam-s0": Run(
        "LDAM-DRW",
        "cifar100-lt-la-quick",
        ("loss=ldam", "loss.scale_in=head", *COSINE, "drw.start=32", "drw.beta=0.9999"),
    ),
    "ce-s1": Run("cross-entropy, seed 1", "cifar100-lt-ce-quick", ("seed=1",), "36"),
    "la-s1": Run("logit adjustment, seed 1", "cifar100-lt-la-quick", ("seed=1",), "41"),
}


def train(key, data, folder):
    run = RUNS[key]
    start = [sys.executable, "-m", "longtail", "train", run.recipe, *run.changes, *UNCHANGED]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    command = [*start, "--data", data, "-o", str(folder / key), "--quiet"]
    return subprocess.run(command, env=environment, stdout=subprocess.DEVNULL).returncode


def shown(measured):
    value, low, high = (100 * measured[key] for key in ("value", "low", "high"))
    return f"{value:.1f} [{low:.1f}, {high:.1f}]"


def rows(folder, run):
    found = json.loads((folder / "metrics.json").read_text())["metrics"]["test"]
    with (folder / "log.csv").open() as file:
        epoch = statistics.median(float(row["seconds"]) for row in csv.DictReader(file))
    for variant, metrics in found.items():
        groups = " | ".join(f"{100 * metrics[g]['value']:.1f}" for g in ("many", "medium", "few"))
        goal = run.target if variant == "as trained" else ""
        accuracy = shown(metrics["balanced_accuracy"])
        yield f"| {run.name}, {variant} | {accuracy} | {groups} | {goal} | {epoch:.0f} |"


def table(folder):
    print("# Quick recipes on CIFAR-100-LT\n")
    print("`python benchmarks/quick_recipes.py CIFAR-100 RUNS`, with 95 % intervals of the test")
    print(
        "images; seed 0 unless said. An epoch: the median, beside the other run and whatever else"
    )
    print("there was.\n")
    print("| loss | balanced accuracy (%) | many | medium | few | target | an epoch, s |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for key, run in RUNS.items():
        if (folder / key / "metrics.json").is_file():
            print("\n".join(rows(folder / key, run)))


def keep(runs, folder):
    folder.mkdir(parents=True, exist_ok=True)
    for key in RUNS:
        place = runs / key / "scores-test.safetensors"
        if place.is_file():
            scores = lt.Scores.load(place)
            half = torch.as_tensor(scores.logits).half()
            replace(scores, logits=half).save(folder / f"{key}.safetensors")


def main():
    if sys.argv[1] == "--table":
        return table(Path(sys.argv[2]))
    if sys.argv[1] == "--keep":
        return keep(*map(Path, sys.argv[2:4]))
    data, folder = sys.argv[1], Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    with ThreadPoolExecutor(AT_ONCE) as pool:
        failed = [
            key
            for key, code in zip(
                RUNS, pool.map(lambda key: train(key, data, folder), RUNS), strict=True
            )
            if code
        ]
    if failed:
        raise SystemExit(f"failed: {', '.join(failed)}; start it again to go on")
    return table(folder)


if __name__ == "__main__":
    main()
