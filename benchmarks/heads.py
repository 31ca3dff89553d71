"""Every head of the five papers on frozen features of real images, and which orderings hold.

Caltech-101 features (ours, 300 to 3 a class) and, where the file is beside the repository,
CIFAR-100 features (500 to 5); both profiles are exponential with ratio 100. A seed draws the
training samples, the folds and whatever is random in training. Each run is `longtail fit`: weight
decay and τ are chosen on folds of the training samples, then everything is fitted on all of them;
what stands here are balanced accuracies on the test set, which decides nothing.
Usage: `python benchmarks/heads.py`; two processes of one thread each.
"""

import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch
from scipy import stats

import longtail as lt
from longtail.data.tables.features import checked_features
from longtail.flows.fit import fit
from longtail.flows.fit_methods import METHODS

SHARED = Path(__file__).parents[2] / "shared/data/cifar100_features.npz"
SEEDS = range(3)
SLOW = ("metric_ncm_classes", "metric_ncm_eigen")
FOLDS = 3
# What the papers report: the first above the second.
ORDERINGS = (
    ("LA: adjustment beats cross-entropy", "adjusted", "linear"),
    ("LA: adjustment beats weight normalisation", "adjusted", "tau_norm"),
    ("LADE beats balanced softmax (logit adjustment)", "lade", "adjusted"),
    ("ELM beats logit adjustment", "elm", "adjusted"),
    ("EO: the estimated offset beats cross-entropy", "estimated_offset", "linear"),
    ("EO: the estimated offset beats the empirical one", "estimated_offset", "empirical_offset"),
    ("EO: the estimated offset beats WVN + RS", "estimated_offset", "wvn"),
    ("NCM beats the softmax layer", "ncm", "linear"),
    ("NCM: learned centres beat class means", "learned_ncm", "ncm"),
    ("NCM: adjustment helps learned centres", "learned_ncm_adjusted", "learned_ncm"),
    ("NCM: several centres beat one", "multi_ncm", "learned_ncm_adjusted"),
    ("NCM: learned centres beat a learned metric", "learned_ncm", "metric_ncm"),
    ("cRT beats cross-entropy", "crt", "linear"),
    ("LWS beats cross-entropy", "lws", "linear"),
    ("the best of the NCM paper beats logit adjustment", "multi_ncm", "adjusted"),
)


def caltech(seed):
    data = lt.data.caltech101_long_tailed(seed)
    return checked_features(
        {
            "train": (data.train_features, data.train_labels),
            "test": (data.test_features, data.test_labels),
        }
    )


def cifar(seed):
    with np.load(SHARED) as stored:
        rows, labels = stored["train"], stored["train_label"].astype(np.int64)
        scale, test = stored["scale"], (stored["test"], stored["test_label"].astype(np.int64))
    counts = lt.data.exponential_counts(500, 100, 100)
    kept = lt.data.long_tailed_subset(labels, counts, seed)
    return checked_features(
        {"train": (rows[kept] * scale, labels[kept]), "test": (test[0] * scale, test[1])}
    )


SETS = {"Caltech-101": caltech} | ({"CIFAR-100": cifar} if SHARED.exists() else {})


def run(job):
    """One set, one seed: test accuracy of every method, the choice, and the seconds."""
    name, seed, slow = job
    torch.set_num_threads(1)
    start = time.perf_counter()
    methods = ("linear", *SLOW) if slow else ()
    result = fit(SETS[name](seed), methods=methods, folds=FOLDS, seed=seed)
    test = {m.name: (m.test["balanced_accuracy"].value, m.seconds) for m in result.table}
    return job, test, (result.best.name, result.weight_decay), time.perf_counter() - start


def spread(values):
    """Mean and half the 95 % interval over seeds."""
    if len(values) < 2:
        return f"{np.mean(values):.1f}"
    reach = stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5
    return f"{np.mean(values):.1f} ± {reach:.1f}"


def verdict(values):
    reach = stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5
    mean = float(np.mean(values))
    word = "holds" if mean > reach else "the other way round" if mean < -reach else "not told apart"
    return f"{mean:+.1f} ± {reach:.1f}: {word}".replace("-", "−")


def main():
    start = time.perf_counter()
    jobs = [(name, 0, True) for name in reversed(SETS)]
    jobs += [(name, seed, False) for name in reversed(SETS) for seed in SEEDS]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        done = list(pool.map(run, jobs))
    took = time.perf_counter() - start
    accuracy, seconds = {}, {}
    for (name, seed, slow), test, _, _ in done:
        for method, (value, spent) in test.items():
            if slow == (method in SLOW):
                accuracy.setdefault((name, method), {})[seed] = 100 * value
                seconds.setdefault(method, []).append(spent)
    print("# Heads on frozen features\n")
    print(
        f"`python benchmarks/heads.py`: {took:.0f} s in all on two cores. Balanced accuracy (%) on "
        f"the test set, mean over {len(SEEDS)} seeds with the 95 % interval of that mean; the last "
        "column is the median time of choosing on three folds and fitting.\n"
    )
    print("| row | method | " + " | ".join(SETS) + " | s |")
    print("|---|---|" + "---:|" * (len(SETS) + 1))
    first = next(iter(SETS))
    tried = [method for method in METHODS if (first, method) in accuracy]
    order = sorted(tried, key=lambda m: -np.mean(list(accuracy[first, m].values())))
    for method in order:
        cells = [spread(list(accuracy[name, method].values())) for name in SETS]
        one = " (seed 0, one epoch)" if method in SLOW else ""
        print(
            f"| {METHODS[method].row} | {METHODS[method].title}{one} | {' | '.join(cells)} | "
            f"{np.median(seconds[method]):.1f} |"
        )
    print("\n## Orderings of the papers\n")
    print("Differences of the two, in points, paired by seed.\n")
    print("| ordering | " + " | ".join(SETS) + " |")
    print("|---|" + "---|" * len(SETS))
    for words, above, below in ORDERINGS:
        cells = []
        for name in SETS:
            pairs = (accuracy[name, above], accuracy[name, below])
            cells.append(verdict([pairs[0][seed] - pairs[1][seed] for seed in SEEDS]))
        print(f"| {words} | {' | '.join(cells)} |")
    print("\n## What was chosen\n")
    print("| set | seed | method | weight decay | its test accuracy | s |")
    print("|---|---:|---|---:|---:|---:|")
    for (name, seed, slow), test, (best, decay), spent in done:
        if not slow:
            print(
                f"| {name} | {seed} | {METHODS[best].title} | {decay:.2g} | "
                f"{100 * test[best][0]:.2f} | {spent:.0f} |"
            )


if __name__ == "__main__":
    main()
