"""Settings of the estimated offset (EO eq. 6) on CIFAR-100-LT, ratio 100, with a small network.

Nothing here sees the test images: of the 50,000 training images 50 a class are set aside to choose
by, and the other 45,000 are cut to a ratio of 100 (450 to 4 a class, 9,754 in all). The four
convolutions of `small_cnn` are trained for 25 epochs from scratch, or for 15 from the backbone of
the cross-entropy run, one cycle up to 0.1.
Usage: `python benchmarks/estimated_offset.py CIFAR-100.npz RUNS`: trains what is not there, two at a
time, and writes RUNS/trials.json; `--table TRIALS.json` makes the table of it.
"""

import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

import numpy as np

from longtail.images import hold_out

AT_ONCE = 2
COMMON = (
    *("data.kind=npz", "data.imbalance_ratio=100", "data.validation_share=0"),
    *("backbone=small_cnn", "optimizer.lr=0.1"),
)
OFFSET = ("head=estimated_offset", "loss=estimated_offset")
MEAN = "loss.center_squares=mean"


class Trial(NamedTuple):
    changes: tuple[str, ...]
    start: str = ""  # the run whose backbone it begins with

    @property
    def epochs(self):
        return 15 if self.start else 25


def offset(uniform, *changes, start=""):
    return Trial((*OFFSET, f"loss.uniform_weight={uniform}", *changes), start)


TRIALS = {
    "ce": Trial(()),
    "la": Trial(("loss=logit_adjusted",)),
    "scratch-sum-1": offset(1),
    **{f"scratch-mean-{u}": offset(u, MEAN) for u in (0, 1, 3, 10, 30, 100)},
}


def make_set(archive, file):
    """The training images alone, 50 a class of them as the part to choose by."""
    whole = np.load(archive)
    images, labels = whole["train_images"], whole["train_labels"]
    train, chosen_by = (np.asarray(part) for part in hold_out(labels, 0.1, 0))
    np.savez(
        file,
        train_images=images[train],
        train_labels=labels[train],
        test_images=images[chosen_by],
        test_labels=labels[chosen_by],
    )


def train(name, folder):
    trial, run = TRIALS[name], folder / name
    if (run / "metrics.json").is_file():
        return 0
    epochs = (f"epochs={trial.epochs}", f"evaluate_every={trial.epochs}")
    start = (f"start={folder / trial.start}",) if trial.start else ()
    command = [sys.executable, "-m", "longtail", "train", "cifar100-lt-ce-quick", *COMMON, *epochs]
    command += [*trial.changes, *start, "--data", str(folder / "set.npz"), "-o", str(run)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "OMP_WAIT_POLICY": "PASSIVE"}
    with (folder / f"{name}.out").open("w") as out:
        return subprocess.run([*command, "--quiet"], env=environment, stdout=out, stderr=out).returncode
