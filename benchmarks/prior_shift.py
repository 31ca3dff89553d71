"""Unknown target priors on real scores: what estimating the prior gains, and what it risks.

A logit-adjusted linear layer on the CIFAR-100-LT features (imbalance ratio 100), its weight decay
chosen by cross-validation for the log-loss under the uniform prior, is tested under the forward and
backward shifts and under none, five draws of test samples each; then under random shifts that
follow no trend, 15 draws of each kind. `estimate_prior` runs with its default setting, with and
without features. Its validation scores are those of the cross-validation: each of the 10,847
training samples scored by a layer that has not seen it. Then a linear layer and a network with a
hidden layer, trained on all of CIFAR-100's training features, whose labels are balanced: half the
test samples validate, of the others shifts are drawn. No test label is used but that of these
validation samples, and to count what is right.
Usage: `python benchmarks/prior_shift.py`, with the features beside the repository.
"""

import multiprocessing
import statistics
import sys
import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

import longtail as lt
from longtail.shift.estimate import estimate_prepared
from longtail.shift.prepared import prepare

FEATURES = Path(__file__).parents[2] / "shared/data/cifar100_features.npz"
CLASSES, LARGEST, RATIO = 100, 500, 100
WEIGHT_DECAYS = (1e-2, 3e-3, 1e-3, 3e-4)  # from strong to weak: each starts from the last
FOLDS, SEEDS, RANDOM_SEEDS = 5, 5, 15
TOLERANCE = 3e-5  # float32 features allow little less
SHIFTS = [("none", 1), *((way, r) for way in ("forward", "backward") for r in (50, 25, 10, 5, 2))]
RANDOM = [*(("permuted", r) for r in (50, 10, 2)), *(("Dirichlet", a) for a in (0.3, 1, 3, 10))]
METHODS = ("estimated", "with features", "plain EM", "calibrated EM", "BBSE", "RLLS")
OURS = ("estimated", "with features")
HIDDEN, EPOCHS, BATCH = 512, 15, 128
KNOWN = []  # what processes look at


@dataclass(frozen=True)
class Data:
    """Features and labels of the long-tailed training set and of the balanced test set."""

    train: torch.Tensor
    train_labels: torch.Tensor
    test: torch.Tensor
    test_labels: torch.Tensor
    counts: np.ndarray


@dataclass(frozen=True)
class Case:
    """Accuracy in per cent of one draw, by what was done to the scores."""

    size: int
    none: float
    known: float
    by: dict[str, float]
    alone: dict[str, float]  # what calibration and neighbours of an estimate give without its prior
    apart: dict[str, float]  # total variation to the true prior
    covered: dict[str, float]  # per cent of the classes that occur
    width: dict[str, float]  # half an interval of log-probabilities, the median of the classes

    @property
    def gain(self):
        """Of the known prior over not adapting."""
        return self.known - self.none

    def over_none(self, method):
        """The gain of an estimate."""
        return self.by[method] - self.none


def read():
    stored = np.load(FEATURES)
    counts = lt.data.exponential_counts(LARGEST, CLASSES, RATIO)
    labels = stored["train_label"].astype(np.int64)
    kept = lt.data.long_tailed_subset(labels, counts, seed=0)
    train, test = (stored[part].astype(np.float32) * stored["scale"] for part in ("train", "test"))
    return Data(
        torch.from_numpy(train[kept]),
        torch.from_numpy(labels[kept]),
        torch.from_numpy(test),
        torch.from_numpy(stored["test_label"].astype(np.int64)),
        np.asarray(counts),
    )


def path(features, labels, loss):
    """The layer of every weight decay."""
    layer = None
    for decay in WEIGHT_DECAYS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", RuntimeWarning)  # of a last digit that float32 lacks
            layer = lt.engine.fit_linear(
                features, labels, loss, weight_decay=decay, start=layer, tolerance=TOLERANCE
            )
        yield decay, layer


def cross_fitted(data):
    """Scores of the training samples by layers that have not seen them, for every weight decay."""
    folds = torch.as_tensor(lt.data.stratified_folds(data.train_labels, FOLDS))
    logits = {decay: torch.empty(len(folds), CLASSES) for decay in WEIGHT_DECAYS}
    for fold in range(FOLDS):
        held = folds == fold
        labels = data.train_labels[~held]
        loss = lt.losses.LogitAdjusted(lt.Prior.from_labels(labels, CLASSES))
        for decay, layer in path(data.train[~held], labels, loss):
            logits[decay][held] = layer(data.train[held])
    return {
        decay: lt.Scores(
            rows,
            data.train_labels,
            lt.Prior.uniform(CLASSES),
            counts=data.counts,
            split="validation",
        )
        for decay, rows in logits.items()
    }


def log_loss(scores):
    """Under the uniform prior: each class counts the same."""
    return lt.metrics.evaluate(scores, target=lt.Prior.uniform(CLASSES))["nll"]


def test_scores(data):
    """Of the layer of every weight decay."""
    loss = lt.losses.LogitAdjusted(data.counts)
    return {
        decay: lt.Scores(
            layer(data.test), data.test_labels, loss.carried, counts=data.counts, split="test"
        )
        for decay, layer in path(data.train, data.train_labels, loss)
    }


def drawn(kind, size, labels, counts, seed):
    """Positions of the test samples of one case."""
    stream = np.random.default_rng(seed)
    order = stream.permutation(len(labels))
    shuffled = labels[order]
    if kind == "none":
        return order
    if kind == "Dirichlet":  # the class with the largest share keeps all, one with little none
        shares = stream.dirichlet(np.full(CLASSES, size))
        sizes = np.floor(shares / shares.max() * np.bincount(labels)).astype(int)
        return np.concatenate([order[shuffled == c][:n] for c, n in enumerate(sizes)])
    if kind == "permuted":
        kind, counts = "forward", stream.permutation(CLASSES) + 1
    return order[lt.data.shifted_subset(shuffled, counts, size, kind)]


def accuracy(scores):
    return 100 * (scores.predict() == scores.labels).double().mean().item()


def estimates(scores, validation, prepared, near, known_near):
    """By each method, the one that the benchmark is about first."""
    quick = {"calibrate": False, "intervals": False}
    calibrated = prepared.calibration(scores)
    return {
        "estimated": estimate_prepared(scores, prepared),
        "with features": estimate_prepared(scores, prepared, (near.numpy(), known_near.numpy())),
        "plain EM": lt.shift.estimate_prior(scores, **quick),
        "calibrated EM": lt.shift.estimate_prior(calibrated, **quick),
        "BBSE": lt.shift.estimate_prior(scores, "bbse", validation, **quick),
        "RLLS": lt.shift.estimate_prior(scores, "rlls", validation, **quick),
    }


def try_case(scores, found):
    """The accuracy of one draw under the known prior, and under each estimate of it."""
    truth = lt.Prior.from_labels(scores.labels, CLASSES, zeros="keep")
    there, uniform = truth.probs > 0, lt.Prior.uniform(CLASSES)
    ours = {name: found[name] for name in OURS if name in found}
    inside = {
        name: (each.low.numpy() <= truth.probs) & (truth.probs <= each.high.numpy())
        for name, each in ours.items()
    }
    return Case(
        len(scores),
        accuracy(scores),
        accuracy(scores.under(truth)),
        {name: accuracy(estimate.scores) for name, estimate in found.items()},
        {name: accuracy(each.scores.under(uniform)) for name, each in ours.items()},
        {name: abs(each.prior.probs - truth.probs).sum() / 2 for name, each in found.items()},
        {name: 100 * held[there].mean() for name, held in inside.items()},
        {n: np.median(np.log(e.high.numpy() / e.prior.probs)) for n, e in ours.items()},
    )


def try_all(shifts, seeds, *known):
    """By shift its cases; shifts are shared out among processes, which inherit what is known."""
    KNOWN[:] = [prepare(known[1], CLASSES), *known]
    with ProcessPoolExecutor(mp_context=multiprocessing.get_context("fork")) as pool:
        found = [pool.submit(try_shift, shift, seeds) for shift in shifts]
        return {shift: each.result() for shift, each in zip(shifts, found, strict=True)}


def try_shift(shift, seeds):
    torch.set_num_threads(1)
    prepared, test, validation, near, known_near = KNOWN
    labels, counts = test.labels.numpy(), test.counts.numpy()
    cases = []
    for seed in range(seeds):
        at = torch.from_numpy(drawn(*shift, labels, counts, seed))
        part = test.take(at)
        bare = replace(part, labels=None, split=None)
        found = {
            name: replace(each, scores=replace(each.scores, labels=part.labels))
            for name, each in estimates(bare, validation, prepared, near[at], known_near).items()
        }
        cases.append(try_case(part, found))
    print(".", end="", file=sys.stderr, flush=True)
    return cases


def balanced_networks(data):
    """Logits of the test samples by networks that were trained on balanced labels."""
    stored = np.load(FEATURES)
    features = torch.from_numpy(stored["train"].astype(np.float32) * stored["scale"])
    labels = torch.from_numpy(stored["train_label"].astype(np.int64))
    loss = lt.losses.CrossEntropy(np.bincount(labels))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)
        layer = lt.engine.fit_linear(features, labels, loss, weight_decay=1e-4, tolerance=1e-4)
    yield "a linear layer", layer(data.test).detach()
    torch.manual_seed(0)
    mean, spread = features.mean(dim=0), features.std(dim=0)
    network = torch.nn.Sequential(
        torch.nn.Linear(features.shape[1], HIDDEN),
        torch.nn.ReLU(),
        torch.nn.Dropout(0.3),
        torch.nn.Linear(HIDDEN, CLASSES),
    )
    steps = EPOCHS * -(-len(labels) // BATCH)
    optimizer = torch.optim.SGD(
        network.parameters(), lr=0.1, momentum=0.9, weight_decay=5e-4, nesterov=True
    )
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, total_steps=steps)
    rows = (features - mean) / spread
    for _ in range(EPOCHS):
        for at in torch.randperm(len(labels)).split(BATCH):
            optimizer.zero_grad()
            torch.nn.functional.cross_entropy(network(rows[at]), labels[at]).backward()
            optimizer.step()
            schedule.step()
    with torch.no_grad():
        yield "a hidden layer", network.eval()((data.test - mean) / spread)


def halves(data, logits):
    """Validation and test scores, 50 samples of each class, and the features of both."""
    folds = torch.as_tensor(lt.data.stratified_folds(data.test_labels, 2))
    uniform, counts = lt.Prior.uniform(CLASSES), np.full(CLASSES, LARGEST)
    for fold, split in enumerate(("validation", "test")):
        at = folds == fold
        labels = data.test_labels[at]
        yield lt.Scores(logits[at], labels, uniform, counts=counts, split=split), data.test[at]


def mean(values):
    return statistics.fmean(values)


def recovered(cases, method="estimated"):
    """Shares of the known prior's gain, of the draws where that is above two points."""
    return [case.over_none(method) / case.gain for case in cases if case.gain > 2]


def of(values, form="{:.1f}"):
    return form.format(mean(values))


def table(all_cases, methods):
    """Accuracies, then what they recover of the known prior's gain, by test set."""
    print(f"| test set | samples | not adapted | known prior | {' | '.join(methods)} |")
    print("|" + "---|" * (len(methods) + 4))
    for (kind, size), cases in all_cases.items():
        name = kind if kind == "none" else f"{kind} {size:g}"
        shown = " | ".join(of(c.by[m] for c in cases) for m in methods)
        print(
            f"| {name} | {of((c.size for c in cases), '{:.0f}')} | {of(c.none for c in cases)} | "
            f"{of(c.known for c in cases)} | {shown} |"
        )


def ours_table(all_cases):
    """Of our estimates: what is recovered, without the prior too, how far off, and intervals."""
    heads = (
        *("gain recovered, %", "worst draw", "without its prior, %"),
        *("worst gain, points", "total variation", "in the interval, %", "half-width"),
    )
    print(f"| test set | estimate | {' | '.join(heads)} |\n|{'---|' * (len(heads) + 2)}")
    for (kind, size), cases in all_cases.items():
        for method in (name for name in OURS if name in cases[0].by):
            shares = recovered(cases, method)
            alone = [(c.alone[method] - c.none) / c.gain for c in cases if c.gain > 2]
            shown = ("", "", "")
            if shares:
                shown = tuple(f"{100 * x:.0f}" for x in (mean(shares), min(shares), mean(alone)))
            print(
                f"| {kind if kind == 'none' else f'{kind} {size:g}'} | {method} | "
                f"{' | '.join(shown)} | {min(c.over_none(method) for c in cases):+.2f} | "
                f"{of((c.apart[method] for c in cases), '{:.3f}')} | "
                f"{of((c.covered[method] for c in cases), '{:.0f}')} | "
                f"{of((c.width[method] for c in cases), '{:.2f}')} |"
            )


def summary(all_cases, name=None):
    cases = [case for draws in all_cases.values() for case in draws]
    for method in cases[0].by:
        shares = recovered(cases, method)
        print(
            f"- {name or method}: total variation {of((c.apart[method] for c in cases), '{:.3f}')}"
            f"; worst difference to not adapting {min(c.over_none(method) for c in cases):+.2f} "
            f"points in {len(cases)} cases; of the {len(shares)} in which the known prior gains "
            f"more than 2 points, recovers {100 * mean(shares):.0f} % on average, "
            f"{100 * min(shares):.0f} % at worst"
        )


def section(title, text, cases):
    print(f"\n## {title}\n\n{text}\n")
    table(cases, METHODS)
    print()
    ours_table(cases)
    print()
    summary(cases)


def main():
    if not FEATURES.exists():
        sys.exit(f"the features are not at {FEATURES}; see the README of the data folder")
    torch.set_num_threads(1)
    data = read()
    validation, test = cross_fitted(data), test_scores(data)
    best = min(WEIGHT_DECAYS, key=lambda decay: log_loss(validation[decay]))
    known = (test[best], validation[best], data.test, data.train)
    print(f"""\
Estimating an unknown target prior: accuracy of a logit-adjusted linear layer on CIFAR-100-LT
features. Weight decay {best:g}, chosen by {FOLDS}-fold cross-validation for the log-loss under the
uniform prior; the validation scores of that are the validation scores. torch {torch.__version__}.
Made by `python benchmarks/prior_shift.py`.

`estimated` is `estimate_prior(scores, validation=validation).scores`, its validation scores made
ready once for all draws, `with features` the same with `features` and `validation_features`. The
others are for comparison: EM without validation scores, EM on calibrated scores, BBSE and RLLS with
the same validation scores. Gains are recovered of draws in which the known prior gains more than 2
points. Calibration and neighbours alone classify better: `without its prior` is what the same
scores recover under the uniform prior. `in the interval` says how many of the classes that occur
have their frequency within the 95 % interval, whose half-width is that of the
logarithm, the median of the classes.""")
    section(
        "The shifts of LADE, and none",
        "These are powers of the training counts, or nearly: just what the trend of\n"
        f"`estimate_prior` is. {SEEDS} draws of each.",
        try_all(SHIFTS, SEEDS, *known),
    )
    section(
        "Random shifts",
        "Exponential profiles over the classes in random order, and priors drawn from a Dirichlet\n"
        "distribution, which leave out classes: no estimate can gain what the known prior does by\n"
        f"that. {RANDOM_SEEDS} draws of each.",
        try_all(RANDOM, RANDOM_SEEDS, *known),
    )
    for name, logits in balanced_networks(data):
        (labelled, known_near), (unlabelled, near) = halves(data, logits)
        right = accuracy(unlabelled)
        section(
            f"Random shifts, {name} trained on balanced labels",
            f"Trained on all training features, {right:.1f} % right. Half of the test samples\n"
            "validate, 50 of each class; shifts are drawn of the others.",
            try_all(RANDOM, RANDOM_SEEDS, unlabelled, labelled, near, known_near),
        )


if __name__ == "__main__":
    main()
