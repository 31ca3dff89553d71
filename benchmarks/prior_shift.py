"""Unknown target priors on real scores: what estimating the prior gains, and what it risks.

A logit-adjusted linear layer on the CIFAR-100-LT features (imbalance ratio 100), its weight decay
chosen by cross-validation for the log-loss under the uniform prior, is tested under the forward and
backward shifts and under none, five draws of test samples each; then under random shifts that
follow no trend; then with other weight decays. `estimate_prior` runs
with its default setting. Its validation scores are those of the cross-validation: each of the
10,847 training samples scored by a layer that has not seen it. No test label is used but to count
what is right.
Usage: `python benchmarks/prior_shift.py`, with the features beside the repository.
"""

import statistics
import sys
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch

import longtail as lt

FEATURES = Path(__file__).parents[2] / "shared/data/cifar100_features.npz"
CLASSES, LARGEST, RATIO = 100, 500, 100
WEIGHT_DECAYS = (1e-2, 3e-3, 1e-3, 3e-4)  # from strong to weak: each starts from the last
FOLDS, SEEDS = 5, 5
TOLERANCE = 3e-5  # float32 features allow little less
SHIFTS = [("none", 1), *((way, r) for way in ("forward", "backward") for r in (50, 25, 10, 5, 2))]
RANDOM = [*(("permuted", r) for r in (50, 10, 2)), *(("Dirichlet", a) for a in (0.3, 1, 3, 10))]
METHODS = ("estimated", "plain EM", "calibrated EM", "BBSE", "RLLS")


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
    """Accuracy in per cent of one draw, by what the scores were moved to."""

    size: int
    none: float
    known: float
    by: dict[str, float]
    covered: float

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


def estimates(scores, validation, calibration):
    """By each method, the one that the benchmark is about first."""
    quick = {"calibrate": False, "resamples": 0}
    return {
        "estimated": lt.shift.estimate_prior(scores, validation=validation),
        "plain EM": lt.shift.estimate_prior(scores, **quick),
        "calibrated EM": lt.shift.estimate_prior(calibration(scores), **quick),
        "BBSE": lt.shift.estimate_prior(scores, "bbse", validation, **quick),
        "RLLS": lt.shift.estimate_prior(scores, "rlls", validation, **quick),
    }


def only_ours(scores, validation, calibration):
    return {"estimated": lt.shift.estimate_prior(scores, validation=validation)}


def try_case(scores, found):
    """The accuracy of one draw under the known prior, and under each estimate of it."""
    truth = lt.Prior.from_labels(scores.labels, CLASSES, zeros="keep")
    ours = found["estimated"]
    inside = (ours.low <= truth.probs) & (truth.probs <= ours.high)
    return Case(
        len(scores),
        accuracy(scores),
        accuracy(scores.under(truth)),
        {name: accuracy(scores.under(estimate.prior)) for name, estimate in found.items()},
        100 * inside[truth.probs > 0].double().mean().item(),
    )


def try_all(shifts, test, validation, methods=estimates):
    calibration = lt.posthoc.BiasCorrectedTemperature.fit(validation)
    labels, counts = test.labels.numpy(), test.counts.numpy()
    cases = {}
    for shift in shifts:
        cases[shift] = []
        for seed in range(SEEDS):
            at = torch.from_numpy(drawn(*shift, labels, counts, seed))
            part = replace(test, logits=test.logits[at], labels=test.labels[at])
            found = methods(replace(part, labels=None), validation, calibration)
            cases[shift].append(try_case(part, found))
        print(".", end="", file=sys.stderr, flush=True)
    return cases


def mean(values):
    return statistics.fmean(values)


def recovered(cases, method="estimated"):
    """Shares of the known prior's gain, of the draws where that is above two points."""
    return [case.over_none(method) / case.gain for case in cases if case.gain > 2]


def row(name, cases):
    shares = recovered(cases)
    shown = f"{100 * mean(shares):.0f} | {100 * min(shares):.0f}" if shares else "|"
    methods = " | ".join(f"{mean(c.by[m] for c in cases):.1f}" for m in METHODS)
    return (
        f"| {name} | {mean(c.size for c in cases):.0f} | {mean(c.none for c in cases):.1f} | "
        f"{mean(c.known for c in cases):.1f} | {methods} | "
        f"{min(c.over_none('estimated') for c in cases):+.2f} | {shown} | "
        f"{mean(c.covered for c in cases):.0f} |"
    )


def table(all_cases):
    print(
        f"| test set | samples | not adapted | known prior | {' | '.join(METHODS)} | "
        "estimated − not adapted, worst draw | gain recovered, mean % | worst draw % | "
        "in the interval, % of classes |"
    )
    print("|" + "---|" * (len(METHODS) + 8))
    for (kind, size), cases in all_cases.items():
        print(row(kind if kind == "none" else f"{kind} {size}", cases))


def summary(all_cases, name=None):
    cases = [case for draws in all_cases.values() for case in draws]
    for method in cases[0].by:
        shares = recovered(cases, method)
        print(
            f"- {name or method}: worst difference to not adapting "
            f"{min(c.over_none(method) for c in cases):+.2f} points in {len(cases)} cases; of the "
            f"{len(shares)} in which the known prior gains more than 2 points, recovers "
            f"{100 * mean(shares):.0f} % on average, {100 * min(shares):.0f} % at worst"
        )


def main():
    if not FEATURES.exists():
        sys.exit(f"the features are not at {FEATURES}; see the README of the data folder")
    torch.set_num_threads(1)
    data = read()
    validation, test = cross_fitted(data), test_scores(data)
    best = min(WEIGHT_DECAYS, key=lambda decay: log_loss(validation[decay]))
    cases, wild = (try_all(shifts, test[best], validation[best]) for shifts in (SHIFTS, RANDOM))
    print(f"""\
Estimating an unknown target prior: accuracy of a logit-adjusted linear layer on CIFAR-100-LT
features, means of {SEEDS} draws of test samples. Weight decay {best:g}, chosen by {FOLDS}-fold
cross-validation for the log-loss under the uniform prior; the validation scores of that are the
validation scores. torch {torch.__version__}. Made by `python benchmarks/prior_shift.py`.

`estimated` is `estimate_prior(scores, validation=validation)`. The others are for comparison: EM
without validation scores, EM on calibrated scores, BBSE and RLLS with the same validation scores.
Gains are recovered of draws in which the known prior gains more than 2 points; the last column says
how many of the classes that occur have their frequency within the 95 % interval.
""")
    print("""\
## The shifts of LADE, and none

These are powers of the training counts, or nearly: just what the trend of `estimate_prior` is. The
random shifts below follow no trend.
""")
    table(cases)
    print()
    summary(cases)
    print("\n## Random shifts\n")
    print("""\
Exponential profiles over the classes in random order, and priors drawn from a Dirichlet
distribution, which leave out classes: no estimate can gain what the known prior does by that.
""")
    table(wild)
    print()
    summary(wild)
    print("\n## The shifts of LADE with other weight decays\n")
    for decay in WEIGHT_DECAYS:
        if decay != best:
            others = try_all(SHIFTS, test[decay], validation[decay], only_ours)
            known = min(case.gain for draws in others.values() for case in draws)
            summary(others, f"weight decay {decay:g} (known prior at worst {known:+.2f} points)")


if __name__ == "__main__":
    main()
