"""Sets of classes that hold the true one: coverage and size of conformal sets on long tails.

A linear layer is trained by LogitAdjusted on CIFAR-100 features (500 to 5 a class), TF-IDF of
BANKING77 (120 to 3) and of Reuters R52 (2840 to 1 at most), as each split draws them. The test part
is drawn into validation samples, 20 a class (half of a class with fewer than 40) or long-tailed,
and the rest, on which sets are measured. Weight decay is chosen by log-loss under the uniform prior
on folds of the training samples of the first split. On CIFAR-100 the rest is then shifted as LADE
does, and sets are fitted to the uniform prior, to the prior that `estimate_prior` finds without
labels, with the same 20 a class as its validation samples, and to the true one.

How strongly classes with few samples are drawn to the others was settled on the train part of
CIFAR-100 alone: of 500 images a class 100 are the test part there, and 400 to 4 are trained on.
Usage: `python benchmarks/conformal.py`, with the data beside the repository; two processes of one
thread each.
"""

import warnings
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch
from scipy import stats

import longtail as lt
from longtail.flows.reproduce.experiment import Fit
from longtail.flows.reproduce.fits import long_tailed_set
from longtail.posthoc import ConformalSets, conformal
from longtail.shift.estimate import estimate_prepared
from longtail.shift.prepared import prepare

DATA = Path(__file__).parents[2] / "shared/data"
PATHS = {
    "cifar100-features": DATA / "cifar100_features.npz",
    "banking77": DATA / "text/banking77.tsv.gz",
    "r52": DATA / "text/reuters_r52.tsv.gz",
}
SETS = {
    "CIFAR-100": Fit("cifar100", 100),
    "BANKING77": Fit("banking77", 40),
    "R52": Fit("r52", 100),
}
SPLITS, DESIGNS, FOLDS = 20, 5, 3
DECAYS = (3e-3, 1e-3, 3e-4, 1e-4)
COVERAGE, A_CLASS, FEW = 0.9, 20, 20
TAILS = {"CIFAR-100": (50, 25), "BANKING77": (20, 10)}  # validation samples, and their ratio
MODES = ("marginal", "tail", "class")
PULLS = (10, 20, 40, 80)
SHIFTS = [(way, r) for way in ("forward", "backward") for r in (50, 25, 10, 5, 2)]
TARGETS = ("uniform", "estimated", "true")


def layer_of(features, labels, num_classes, decay):
    loss = lt.losses.LogitAdjusted(lt.Prior.from_labels(labels, num_classes, zeros="smooth"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # of a last digit that float32 lacks
        return lt.engine.fit_linear(features, labels, loss, weight_decay=decay, tolerance=3e-5)


def data_of(name, split):
    """Features and labels of both parts, and the training counts."""
    data = long_tailed_set(SETS[name], split, PATHS)
    parts = [
        torch.as_tensor(np.asarray(part)) for key in ("train", "test") for part in data.part(key)
    ]
    return parts, np.asarray(data.counts)


def decay_of(name):
    """The weight decay that predicts folds of the training samples best."""
    torch.set_num_threads(1)
    (rows, labels, *_), counts = data_of(name, 0)
    folds = torch.as_tensor(np.asarray(lt.data.stratified_folds(labels, FOLDS, 0)))
    losses = {}
    for decay in DECAYS:
        logits = torch.empty(len(labels), len(counts))
        for fold in range(FOLDS):
            held = folds == fold
            layer = layer_of(rows[~held], labels[~held], len(counts), decay)
            logits[held] = layer(rows[held]).detach()
        scores = lt.Scores(logits, labels, carried=lt.Prior.uniform(len(counts)))
        losses[decay] = lt.metrics.evaluate(scores, target=scores.carried)["nll"]
    return min(losses, key=losses.get)


def scores_of(name, split, decay):
    (rows, labels, tested, truth), counts = data_of(name, split)
    layer = layer_of(rows, labels, len(counts), decay)
    carried = lt.Prior.uniform(len(counts))
    return lt.Scores(layer(tested).detach().numpy(), truth.numpy(), carried, counts=counts)


def drawn(labels, counts, seed):
    """Positions of so many validation samples a class, at most half of it, and of the rest."""
    order = np.random.default_rng(seed).permutation(len(labels))
    by_class = [order[labels[order] == k] for k in range(len(counts))]
    sizes = [min(n, len(at) // 2) for n, at in zip(counts, by_class, strict=True)]
    parts = [(at[:n], at[n:]) for n, at in zip(sizes, by_class, strict=True)]
    return tuple(np.concatenate(part) for part in zip(*parts, strict=True))


def measured(sets, scores):
    inside = sets(scores)
    found = lt.metrics.evaluate_sets(inside, scores.labels, lt.Prior.uniform(scores.num_classes))
    each = lt.metrics.class_coverage(inside, scores.labels)
    few = each[(scores.counts < FEW) & ~np.isnan(each)]
    names = ("coverage", "macro_coverage", "size", "empty", "full")
    values = [found[name].value for name in names]
    seen = each[~np.isnan(each)]
    return [*values, few.mean() if len(few) else np.nan, (seen < COVERAGE - 0.1).mean()]


def run(job):
    """One split: the measures by validation samples and mode, and coverage by shift and target."""
    name, split, decay = job
    torch.set_num_threads(1)
    scores = scores_of(name, split, decay)
    size = scores.num_classes
    kinds = {"20 a class": np.full(size, A_CLASS)}
    if name in TAILS:
        most, ratio = TAILS[name]
        kinds[f"{most} to {most // ratio}"] = lt.data.exponential_counts(most, size, ratio)
    found, covered = {}, {}
    for kind, counts in kinds.items():
        held, rest = drawn(scores.labels, counts, split)
        validation = scores.take(held)
        for mode in MODES:
            sets = ConformalSets.fit(validation, COVERAGE, mode)
            found[kind, mode] = measured(sets, scores.take(rest))
        if name == "CIFAR-100" and kind == "20 a class":
            covered = shifted(validation, scores.take(rest), split)
    return job, found, covered


def shifted(validation, rest, seed):
    """Coverage and size by shift, mode and target; `estimate_prior` in parts that are shared."""
    found, prepared = {}, prepare(validation, rest.num_classes)
    for way, ratio in SHIFTS:
        order = np.random.default_rng(seed).permutation(len(rest))
        labels = rest.labels[order]
        at = order[np.asarray(lt.data.shifted_subset(labels, rest.counts, ratio, way))]
        new = rest.take(at)
        true = lt.Prior.from_labels(new.labels, rest.num_classes)
        estimate = estimate_prepared(new, prepared, intervals=False, seed=seed)
        targets = dict(zip(TARGETS, (rest.carried, estimate.prior, true), strict=True))
        for name, target in targets.items():
            for mode in MODES[:2]:
                inside = ConformalSets.fit(validation, COVERAGE, mode, target)(new)
                found[way, ratio, mode, name] = [
                    inside[np.arange(len(new)), new.labels].mean(),
                    inside.sum(axis=1).mean(),
                ]
    return found


def design(split):
    """The measures by how strongly classes are drawn to the others, on the train part."""
    torch.set_num_threads(1)
    with np.load(PATHS["cifar100-features"]) as stored:
        rows = torch.from_numpy(stored["train"] * stored["scale"])
        labels = torch.from_numpy(stored["train_label"].astype(np.int64))
    kept = np.asarray(lt.data.long_tailed_subset(labels, [100] * 100, split))
    pool = np.setdiff1d(np.arange(len(labels)), kept)
    counts = lt.data.exponential_counts(400, 100, 100)
    train = pool[np.asarray(lt.data.long_tailed_subset(labels[pool], counts, split))]
    layer = layer_of(rows[train], labels[train], 100, 3e-3)
    carried = lt.Prior.uniform(100)
    scores = lt.Scores(
        layer(rows[kept]).detach().numpy(), labels[kept].numpy(), carried, counts=counts
    )
    held, rest = drawn(scores.labels, np.full(100, A_CLASS), split)
    found, usual = {}, conformal._PULL
    for pull in (*PULLS, *MODES[::2]):
        conformal._PULL = pull if isinstance(pull, int) else usual
        mode = "tail" if isinstance(pull, int) else pull
        found[pull] = measured(
            ConformalSets.fit(scores.take(held), COVERAGE, mode), scores.take(rest)
        )
    conformal._PULL = usual
    return found


def shown(values, factor=100.0, digits=1):
    """Mean, and half the 95 % interval of it over splits."""
    kept = factor * np.asarray(values)[~np.isnan(values)]
    if not len(kept):
        return "none"
    reach = stats.t.ppf(0.975, len(kept) - 1) * np.std(kept, ddof=1) / len(kept) ** 0.5
    return f"{kept.mean():.{digits}f} ± {reach:.{digits}f}"


def cells(rows, of_class):
    """Of one mode: all measures, mean over splits, and the size beside that of class-wise sets."""
    rows, of_class = np.array(rows), np.array(of_class)
    coverage, macro, size, empty, full, few, low = rows.T
    values = [shown(macro), shown(few), shown(coverage), shown(low), shown(size, 1, 2)]
    return [*values, f"{size.mean() / of_class[:, 2].mean():.2f}", shown(empty), shown(full)]


def main():
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        designs = list(pool.map(design, range(DESIGNS)))
        decays = dict(zip(SETS, pool.map(decay_of, SETS), strict=True))
        jobs = [(name, split, decays[name]) for name in SETS for split in range(SPLITS)]
        done = list(pool.map(run, jobs))
    say(done, designs, decays)


def say(done, designs, decays):
    heads = (
        "macro-coverage | few-shot classes | coverage | classes below 80 | size | to class-wise \
| empty | full"
    )
    chosen = ", ".join(f"{decay:g} for {name}" for name, decay in decays.items())
    print(f"""\
# Conformal sets on long tails

Made by `python benchmarks/conformal.py`. Sets that are to hold the true class in 90 % of the cases,
of a logit-adjusted linear layer; in %, mean over {SPLITS} splits with the 95 % interval of that
mean. Macro-coverage: every class counts the same. Few-shot: fewer than {FEW} training samples.
Coverage: the test samples as they are. Classes below 80: the share of classes that are covered in
less than 80 %, also by chance, as there are few test samples of a class. Size: classes in a set;
beside it that over the size of class-wise sets. Weight decays, by folds of training samples:
{chosen}.

| set | validation | mode | {heads} |
|---|---|---|{"---:|" * 8}""")
    for name in SETS:
        runs = [found for (own, *_), found, _ in done if own == name]
        for kind in dict.fromkeys(kind for kind, _ in runs[0]):
            of_class = [found[kind, "class"] for found in runs]
            for mode in MODES:
                row = cells([found[kind, mode] for found in runs], of_class)
                print(f"| {name} | {kind} | {mode} | {' | '.join(row)} |")
    print(f"""
## Where the prior shifts

Coverage of samples that follow LADE's shifts of the CIFAR-100 test part, by sets that were fitted
to the uniform prior, to the prior that is estimated from these samples without labels, and to the
true one, which nobody knows; {A_CLASS} validation samples a class. Size: with the estimated prior.

| shift | mode | to uniform | to the estimate | to the truth | size |
|---|---|{"---:|" * 4}""")
    runs = [covered for (own, *_), _, covered in done if own == "CIFAR-100"]
    for way, ratio in SHIFTS:
        for mode in MODES[:2]:
            by_target = [[c[way, ratio, mode, t] for c in runs] for t in TARGETS]
            row = [shown(np.array(each)[:, 0]) for each in by_target]
            size = shown(np.array(by_target[1])[:, 1], 1, 2)
            print(f"| {way} {ratio} | {mode} | {' | '.join(row)} | {size} |")
    print(f"""
## How strongly classes are drawn to the others

On images of the train part of CIFAR-100 alone, {A_CLASS} validation samples a class, mean of
{DESIGNS} draws: 400 to 4 a class are trained on. So many samples of its own count as much for a
class as all others do. 40 was taken, before the test part was looked at: a first look, at three
draws with four choices of the validation samples each, had it as the smallest with sets at most
0.65 times as large as class-wise ones (0.63). In this table they are a little larger.

| samples | {heads} |
|---|{"---:|" * 8}""")
    for pull in (*PULLS, *MODES[::2]):
        row = cells([found[pull] for found in designs], [found["class"] for found in designs])
        print(f"| {pull} | {' | '.join(row)} |")


if __name__ == "__main__":
    main()
