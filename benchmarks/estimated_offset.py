"""Settings of the estimated offset (EO eq. 6) on CIFAR-100-LT, ratio 100, with a small network.

Nothing here sees the test images: of the 50,000 training images 50 a class are set aside to choose
by, and the others are cut to a ratio of 100 (450 to 4 a class, 9,754 in all). `small_cnn`, one
cycle, batches of 128, crop and flip: 25 epochs from scratch, or 15 from the backbone of the
cross-entropy run here. Two runs go beside each other; stopped, they go on from their folders.
Usage: `python benchmarks/estimated_offset.py CIFAR-100.npz RUNS` trains all; with `--keep RUNS
TRIALS.csv` it keeps the numbers of finished runs, with `--table TRIALS.csv` it prints them.
"""

import csv
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from longtail.flows.train.model_file import load_model
from longtail.images import split_validation

AT_ONCE = 2
SET = ("data.kind=npz", "data.imbalance_ratio=100", "data.validation_share=0", "backbone=small_cnn")
ACCURACIES = ("balanced_accuracy", "many", "medium", "few")
OFFSETS = ("offset of many", "of medium", "of few", "spread")


def offset(center, uniform, *changes, squares="mean", rate=0.5):
    values = {"center_squares": squares, "center_weight": center, "uniform_weight": uniform}
    options = [f"loss.{key}={value}" for key, value in (values | {"rate": rate}).items()]
    return ("head=estimated_offset", "loss=estimated_offset", *options, *changes)


def scratch(*changes, lr=0.1, head_lr="null"):
    return ("epochs=25", f"optimizer.lr={lr}", f"optimizer.head_lr={head_lr}", *changes)


def tuned(*changes, lr=0.01, head_lr=0.1):
    return ("start=ce", "epochs=15", f"optimizer.lr={lr}", f"optimizer.head_lr={head_lr}", *changes)


ALONE, AT_LR = "head.use_offset=false", {"lr": 0.02, "head_lr": "null"}
TRIALS = {
    "ce": scratch(),
    "la": scratch("loss=logit_adjusted"),
    "scratch-printed": scratch(*offset(1, 1, squares="sum")),
    **{f"scratch-1-{uniform}": scratch(*offset(1, uniform)) for uniform in (0, 1, 10, 100)},
    "scratch-0.1-3": scratch(*offset(0.1, 3)),
    "scratch-0.1-10": scratch(*offset(0.1, 10)),
    "scratch-0.01-10": scratch(*offset(0.01, 10)),
    "scratch-1-10-slow-head": scratch(*offset(1, 10), head_lr=0.01),
    "scratch-1-3-slow-centres": scratch(*offset(1, 3, rate=0.2)),
    "scratch-1-3-slow": scratch(*offset(1, 3, rate=0.2), lr=0.03, head_lr=0.1),
    "scratch-0.1-2-fast-head": scratch(*offset(0.1, 2, rate=0.2), head_lr=0.5),
    "tuned-ce": tuned(),
    "tuned-ce-0.02": tuned(**AT_LR),
    "tuned-printed": tuned(*offset(1, 1, squares="sum")),
    "tuned-1-10-0.1": tuned(*offset(1, 10), lr=0.1, head_lr="null"),
    "tuned-1-10-0.02": tuned(*offset(1, 10), **AT_LR),
    **{
        f"tuned-1-{uniform}-0.02-slow-centres": tuned(*offset(1, uniform, rate=0.1), **AT_LR)
        for uniform in (1, 3, 10)
    },
    "tuned-8-3-0.05": tuned(*offset(8, 3), lr=0.05, head_lr="null"),
    "tuned-8-10": tuned(*offset(8, 10, rate=0.2)),
    "tuned-1-10": tuned(*offset(1, 10, rate=0.2)),
    "tuned-1-3": tuned(*offset(1, 3, rate=0.2)),
    "tuned-0.1-3": tuned(*offset(0.1, 3, rate=0.2)),
    "tuned-1-3-alone": tuned(*offset(1, 3, ALONE, rate=0.2)),
    "slow-ce": tuned(lr=0.001),
    "slow-1-3": tuned(*offset(1, 3, rate=0.2), lr=0.001),
    "slow-1-10": tuned(*offset(1, 10, rate=0.2), lr=0.001),
    "slow-1-0": tuned(*offset(1, 0, rate=0.2), lr=0.001),
    "slow-1-3-alone": tuned(*offset(1, 3, ALONE, rate=0.2), lr=0.001),
}


def make_set(archive, file):
    """The training images alone, a tenth of each class as the part to choose by."""
    whole = np.load(archive)
    images, labels = whole["train_images"], whole["train_labels"]
    kept, chosen_by = (np.asarray(part) for part in split_validation(labels, 0.1, 0))
    parts = {"train_images": images[kept], "train_labels": labels[kept]}
    np.savez(file, **parts, test_images=images[chosen_by], test_labels=labels[chosen_by])


def train(name, folder):
    changes = [
        f"start={folder / change[6:]}" if change.startswith("start=") else change
        for change in TRIALS[name]
    ]
    command = [sys.executable, "-m", "longtail", "train", "cifar100-lt-ce-quick", *SET, *changes]
    command += ["evaluate_every=100", "--data", str(folder / "set.npz"), "-o", str(folder / name)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    return subprocess.run([*command, "--quiet"], env=environment).returncode


def settings(recipe):
    """What differs between the trials, as the recipe of a run has it."""
    moves, loss = recipe.optimizer, recipe.loss.values()
    squares = {"sum": "", "mean": "/D"}.get(loss.get("center_squares"), "")
    return {
        "loss": recipe.loss.tag.replace("_", " "),
        "begins with": "its own" if recipe.start is None else Path(recipe.start).name,
        "epochs": recipe.epochs,
        "lr": f"{moves.lr:g}",
        "of the head": f"{moves.head_lr or moves.lr:g}",
        "λ₁": f"{loss['center_weight']:g}{squares}" if "center_weight" in loss else "",
        "λ₂": f"{loss['uniform_weight']:g}" if "uniform_weight" in loss else "",
        "rate": f"{loss['rate']:g}" if "rate" in loss else "",
        "offset": "no" if recipe.head.values().get("use_offset") is False else "",
    }


def numbers(folder):
    """A run's settings, what it came to on the images set aside, and its offsets ½ c·w by group."""
    metrics = json.loads((folder / "metrics.json").read_text())["metrics"]["test"]
    stored = load_model(folder)
    row = settings(stored.recipe)
    row |= {key: f"{100 * metrics['as trained'][key]['value']:.1f}" for key in ACCURACIES}
    if hasattr(stored.model.head, "offset"):
        offsets, counts = stored.model.head.offset.detach().numpy(), np.array(stored.counts)
        groups = (counts > 100, (counts >= 20) & (counts <= 100), counts < 20)
        values = [*(offsets[group].mean() for group in groups), offsets.std()]
        row |= {key: f"{value:.2f}" for key, value in zip(OFFSETS, values, strict=True)}
    return row


def keep(folder, file):
    done = [folder / name for name in TRIALS if (folder / name / "metrics.json").is_file()]
    rows = [{"run": run.name} | numbers(run) for run in done]
    with file.open("w", newline="", encoding="utf-8") as opened:
        table = csv.DictWriter(opened, max(rows, key=len))
        table.writeheader()
        table.writerows(rows)


def table(file):
    with file.open(newline="", encoding="utf-8") as opened:
        rows = list(csv.DictReader(opened))
    shown = [key for key in rows[0] if key != "run"]
    print("# The estimated offset: settings\n")
    print(
        "`python benchmarks/estimated_offset.py CIFAR-100.npz RUNS`, then `--keep` and `--table`."
    )
    print(
        "Accuracy (%) on 50 training images of each class that nothing was trained on; one seed, so"
    )
    print("a point or two are no difference. λ₁/D: the centre term averaged over its D = 128")
    print("dimensions. Offsets: ½ c·w, in the mean over a group's classes, and their standard")
    print("deviation over all classes.\n")
    print("| " + " | ".join(shown) + " |")
    print(
        "|" + "|".join("---:" if key in (*ACCURACIES, *OFFSETS) else "---" for key in shown) + "|"
    )
    for row in rows:
        print("| " + " | ".join(row[key] for key in shown) + " |")


def main():
    first, *places = sys.argv[1], *map(Path, sys.argv[2:])
    if first == "--table":
        return table(*places)
    if first == "--keep":
        return keep(*places)
    (folder,) = places
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "set.npz").is_file():
        make_set(first, folder / "set.npz")
    failed = train("ce", folder)  # others begin with its backbone
    with ThreadPoolExecutor(AT_ONCE) as pool:
        failed += sum(pool.map(lambda name: train(name, folder), TRIALS))
    if failed:
        raise SystemExit("some failed; start it again to go on")
    return None


if __name__ == "__main__":
    main()
