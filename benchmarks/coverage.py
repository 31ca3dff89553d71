"""How often 95 % intervals hold the truth, by simulation, where the truth is known.

Accuracies: classes with recalls that fall from the first to the last, and few samples of the last
ones. Gains are of a second model: one that answers 15 % of the samples anew at random, so that its
true gain is zero; one whose tail rises and whose head falls, as those of scores that are moved do;
and one that does so a tenth as often, so that there may be no sample that shows it. Estimated
priors: a model of Gaussian classes with means estimated from long-tailed training samples, 1.3
times as sure as it should be; labelled validation samples follow the training prior, unlabelled
ones another. A classifier like that errs in its own way for every class, as networks do. Usage:
`make bench`, or `python benchmarks/coverage.py` for this table alone.
"""

import numpy as np
import torch

import longtail as lt
from longtail.metrics import Accumulator, paired_gain

TRIALS, ESTIMATES = 1000, 40
# Classes, samples of the last and of the first, recall of the first and of the last.
JUDGED = (
    (10, 5, 100, 0.95, 0.5),
    (20, 2, 40, 0.99, 0.9),
    (50, 1, 20, 0.95, 0.3),
    (50, 1, 3, 0.9, 0.5),
    (100, 1, 50, 0.9, 0.2),
    (5, 3, 100, 0.9, 0.4),
    (4, 3, 50, 0.9, 0.4),
    (2, 20, 1000, 0.8, 0.95),
    (2, 19, 19, 0.9, 0.6),
)
# How often samples of the first and of the last class turn right, and wrong, by the move.
RISES, FALLS = (0.01, 0.3), (0.08, 0.01)
# Classes, unlabelled samples, validation samples.
SHIFTED = ((10, 300, 300), (20, 1000, 1000), (20, 1000, 300))
DIMENSIONS, SEPARATION, LARGEST, RATIO, TOO_SURE = 10, 3.5, 200, 30, 1.3


def judge(classes, fewest, most, first, last, random):
    """Of which intervals the truth is inside, in one trial."""
    counts = np.round(np.geomspace(most, fewest, classes)).astype(int)
    recall = np.linspace(first, last, classes)
    labels = np.repeat(np.arange(classes), counts)
    before = random.random(len(labels)) < recall[labels]
    again = random.random(len(labels)) < 0.15
    after = np.where(again, random.random(len(labels)) < recall[labels], before)
    sums = Accumulator(classes)
    logits = 2 * np.eye(classes)[np.where(before, labels, (labels + 1) % classes)]
    sums.add(logits, labels)
    found = sums.metrics()
    truths = {
        "balanced accuracy": (found["balanced_accuracy"], recall.mean()),
        "accuracy": (found["accuracy"], recall @ counts / counts.sum()),
        "no gain": (gain(before, after, labels, classes), 0.0),
    }
    for name, share in (("gain", 1.0), ("small gain", 0.1)):
        rises = np.minimum(share * np.linspace(*RISES, classes), 1 - recall)
        falls = share * np.linspace(*FALLS, classes)
        stays = random.random(len(labels)) >= (falls / recall)[labels]
        turns = random.random(len(labels)) < (rises / (1 - recall))[labels]
        moved = np.where(before, stays, turns)
        truths[name] = (gain(before, moved, labels, classes), (rises - falls).mean())
    return [m.low - 1e-12 <= truth <= m.high + 1e-12 for m, truth in truths.values()]


def gain(before, after, labels, classes):
    """Of balanced accuracy."""
    return paired_gain(before, after, labels, target=lt.Prior.uniform(classes))


def estimate(classes, unlabelled, validation, kind, random):
    """The share of classes whose true probability is inside its interval, in one trial."""
    counts = np.round(LARGEST * RATIO ** (-np.arange(classes) / (classes - 1))).astype(int)
    prior = counts / counts.sum()
    means = SEPARATION / DIMENSIONS**0.5 * random.normal(size=(classes, DIMENSIONS))
    learned = means + random.normal(size=means.shape) / np.sqrt(counts)[:, None]
    if kind == "trend":
        target = prior**-0.5
    elif kind == "permuted":
        target = random.permutation(prior**0.7)
    else:
        target = random.dirichlet(np.full(classes, float(kind.split()[1])))
    target = np.maximum(target / target.sum(), 1e-3)
    target /= target.sum()

    def scores(labels, split):
        features = means[labels] + random.normal(size=(len(labels), DIMENSIONS))
        logits = features @ learned.T - 0.5 * np.square(learned).sum(axis=1) + np.log(prior)
        return lt.Scores(TOO_SURE * logits, labels, counts, counts, split=split)

    drawn = random.choice(classes, validation - classes, p=prior)
    held_out = scores(np.concatenate([np.arange(classes), drawn]), "validation")
    found = lt.shift.estimate_prior(
        scores(random.choice(classes, unlabelled, p=target), "test"), validation=held_out
    )
    return np.mean((np.asarray(found.low) <= target) & (target <= np.asarray(found.high)))


def shown(shares):
    """In percent with its standard error."""
    return f"{100 * np.mean(shares):.0f} ± {100 * np.std(shares) / len(shares) ** 0.5:.0f}"


def main():
    torch.set_num_threads(1)
    print(f"""\
How often 95 % intervals hold the truth, in % of simulated trials with the standard error. Target:
90 or more in every row. Made by `make bench`.

## Accuracies and paired gains

{TRIALS} trials a row.

| classes | samples a class | recalls | balanced accuracy | accuracy | no gain | gain | small gain |
|---|---|---|---|---|---|---|---|""")
    for classes, fewest, most, first, last in JUDGED:
        random = np.random.default_rng([classes, fewest, most])
        inside = [judge(classes, fewest, most, first, last, random) for _ in range(TRIALS)]
        cells = " | ".join(shown(column) for column in zip(*inside, strict=True))
        print(f"| {classes} | {most} to {fewest} | {first} to {last} | {cells} |", flush=True)
    print(f"""
## Estimated priors

`estimate_prior` with validation scores, {ESTIMATES} trials a cell, the share of classes inside.

| target | {" | ".join(f"{c} classes, {v} validation samples" for c, _, v in SHIFTED)} |
|---|---|---|---|""")
    for kind in ("trend", "permuted", "Dirichlet 1", "Dirichlet 3", "Dirichlet 10"):
        cells = []
        for classes, unlabelled, validation in SHIFTED:
            streams = (np.random.default_rng([classes, validation, k]) for k in range(ESTIMATES))
            shares = [estimate(classes, unlabelled, validation, kind, r) for r in streams]
            cells.append(shown(shares))
        print(f"| {kind} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
