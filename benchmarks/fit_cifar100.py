"""`longtail fit` with its defaults on CIFAR-100-LT features: what it chooses, what that is worth.

The usual profile, 500 to 5 images a class, of the first images of each class in the file. Weight
decay, τ and method are chosen on five folds of the training samples; the test set decides nothing.
The target: 59.5 % balanced accuracy, where a weight decay picked by hand gives 59.9.
Usage: `python benchmarks/fit_cifar100.py cifar100_features.npz`.
"""

import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import longtail as lt
from longtail.flows.fit import fit
from longtail.report.pages.fit import decision, headline, method_columns


def packed(path, folder):
    with np.load(path) as stored:
        labels, scale = stored["train_label"].astype(np.int64), stored["scale"]
        counts = lt.data.exponential_counts(500, 100, 100)
        kept = np.concatenate([np.flatnonzero(labels == k)[:n] for k, n in enumerate(counts)])
        parts = {
            "train": (stored["train"][kept] * scale, labels[kept]),
            "test": (stored["test"] * scale, stored["test_label"].astype(np.int64)),
        }
    return lt.data.pack_features(Path(folder) / "cifar100.safetensors", parts)


def main():
    with tempfile.TemporaryDirectory() as folder:
        features = packed(sys.argv[1], folder)
        start = time.perf_counter()
        result = fit(features)
        took = time.perf_counter() - start
    print("# `longtail fit` on CIFAR-100-LT features\n")
    print(f"`python benchmarks/fit_cifar100.py cifar100_features.npz`: {took:.0f} s.\n")
    print(f"{headline(result)} {decision(result)}\n")
    columns = method_columns(result)
    print("| " + " | ".join(columns) + " |")
    print("|---|" + "---:|" * (len(columns) - 1))
    for row in zip(*columns.values(), strict=True):
        print("| " + " | ".join(row) + " |")
    best = result.best.test["balanced_accuracy"].value
    adjusted = next(m for m in result.table if m.name == "adjusted").test["balanced_accuracy"]
    print(
        f"\nChosen: {result.best.title}, {100 * best:.2f} % on the test set, target 59.5; "
        f"the logit-adjusted layer {100 * adjusted.value:.2f} %."
    )


if __name__ == "__main__":
    main()
