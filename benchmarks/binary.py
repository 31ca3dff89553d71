"""Yes/no labels: boosters with weights back to probabilities, and exact thresholds against a grid.

Log-loss. LightGBM with its defaults is trained without weights, with scale_pos_weight = negatives /
positives and with is_unbalance, and the last two are moved back: by dividing the odds by the
weight; by `LogitAdjustedClassifier(..., target="prior", tau=1)`, which measures what is carried on
out-of-fold scores; and with criterion="nll", which fits a temperature and τ on them too. Each on
samples that nothing was fitted on, beside the log-loss of the model without weights, itself as it
is and calibrated in the same way.

Thresholds. 1,000,000 samples of 20 labels in float32. The grid is a NumPy loop over 1,000 points
between the lowest and the highest score of each label: z >= t, and two counts. Points of the grid
and all exact thresholds alternate in one run; the grid is 1,000 times the median of its points.
Seconds are those of the processor, on one thread: on cores that others use too a millisecond is
seldom interrupted and a second always.
Usage: `make bench-long`, or `python benchmarks/binary.py` for these tables alone.
"""

import statistics
import time
import warnings
from functools import partial

import numpy as np
from lightgbm import LGBMClassifier, __version__
from sklearn.datasets import load_digits, make_classification
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split

import longtail as lt
from longtail.integrations.sklearn import LogitAdjustedClassifier

SAMPLES, LABELS, POINTS, REPETITIONS = 1_000_000, 20, 1_000, 3
SEEDS = 3
CRITERIA = {
    "f1": None,
    "balanced_error": None,
    "recall_at_precision": 0.5,
    "precision_at_recall": 0.5,
}


def logistic(seed):
    """Labels by a logistic model of six normal features, one in twenty-three positive."""
    random = np.random.default_rng(seed)
    x = random.standard_normal((30_000, 6))
    chance = 1 / (1 + np.exp(4.5 - 1.5 * x[:, 0] - x[:, 1] * x[:, 2]))
    return x, (random.random(30_000) < chance).astype(int)


def clusters(seed):
    """scikit-learn's clusters, one in thirty positive, one label in fifty at random."""
    return make_classification(
        30_000, 20, n_informative=8, weights=[0.97], flip_y=0.02, class_sep=0.8, random_state=seed
    )


def digits(seed):
    """Whether a picture shows an eight: 1,797 pictures, one in ten."""
    x, y = load_digits(return_X_y=True)
    return x, (y == 8).astype(int)


def losses(make, seed):
    """Log-losses on samples that nothing was fitted on, by how they came about."""
    x, y = make(seed)
    x, other_x, y, other_y = train_test_split(x, y, test_size=1 / 3, random_state=seed, stratify=y)
    weight = (y == 0).sum() / (y == 1).sum()

    def booster(**options):
        return LGBMClassifier(verbose=-1, n_jobs=1, random_state=seed, **options)

    def of(model):
        return log_loss(other_y, model.fit(x, y).predict_proba(other_x)[:, 1])

    def moved(inner, **options):
        return of(LogitAdjustedClassifier(inner, target="prior", random_state=seed, **options))

    found = {"without weights": of(booster()), "the same, calibrated": 0.0}
    found["the same, calibrated"] = moved(booster(), tau=1.0, calibration="temperature")
    for name, options in {
        "scale_pos_weight": {"scale_pos_weight": weight},
        "is_unbalance": {"is_unbalance": True},
    }.items():
        model = booster(**options).fit(x, y)
        raw = model.predict_proba(other_x)[:, 1]
        found[name] = log_loss(other_y, raw)
        odds = lt.LabelOdds.from_counts([y.sum()], len(y))
        scores = lt.Scores.from_probs(
            raw[:, None], carried=odds.reweighted(weight), family="sigmoid"
        )
        found[f"{name}, odds / weight"] = log_loss(other_y, scores.under(odds).probs()[:, 0])
        found[f"{name}, measured"] = moved(booster(**options), tau=1.0)
        found[f"{name}, criterion nll"] = moved(booster(**options), criterion="nll")
    return found


def print_losses():
    print("## Back to probabilities\n")
    print(f"LightGBM {__version__}, mean log-loss of {SEEDS} seeds over that without weights (in")
    print("brackets). Target at most 1.05.\n")
    problems = {"logistic": logistic, "clusters": clusters, "digits": digits}
    tables = {
        name: [losses(make, seed) for seed in range(SEEDS)] for name, make in problems.items()
    }
    print(f"| | {' | '.join(problems)} |")
    print(f"|---|{'---|' * len(problems)}")
    for row in tables["logistic"][0]:
        cells = []
        for runs in tables.values():
            base = statistics.mean(run["without weights"] for run in runs)
            value = statistics.mean(run[row] for run in runs)
            cells.append(f"1 ({base:.4f})" if row == "without weights" else f"{value / base:.3f}")
        print(f"| {row} | {' | '.join(cells)} |")


def drawn():
    random = np.random.default_rng(0)
    labels = random.random((SAMPLES, LABELS)) < np.linspace(0.01, 0.3, LABELS)
    logits = 1.5 * random.standard_normal((SAMPLES, LABELS), dtype=np.float32)
    logits += 2 * labels.astype(np.float32) - 3
    return logits, labels


def value_at(threshold, scores, is_yes, positives, criterion, at):
    """The criterion of a grid point."""
    chosen = scores >= threshold
    number, hits = np.count_nonzero(chosen), np.count_nonzero(chosen & is_yes)
    recall, precision = hits / positives, hits / number if number else 0.0
    if criterion == "f1":
        return 2 * hits / (number + positives)
    if criterion == "balanced_error":
        alarms = (number - hits) / (len(scores) - positives)
        return (recall + 1 - alarms) / 2
    if criterion == "recall_at_precision":
        return recall if precision >= at or not number else -1.0
    return precision if recall >= at and number else -1.0


def seconds(function):
    start = time.process_time()
    value = function()
    return time.process_time() - start, value


def print_thresholds():
    logits, labels = drawn()
    scores = lt.Scores(logits, labels, family="sigmoid")
    columns = [np.ascontiguousarray(column) for column in logits.T]
    truths = [np.ascontiguousarray(column) for column in labels.T]
    positives = [int(truth.sum()) for truth in truths]
    grids = [np.linspace(column.min(), column.max(), POINTS) for column in columns]
    print(f"\n## Thresholds, {SAMPLES:,} × {LABELS}\n")
    print("How many times the seconds of the processor the grid takes, target at least 20; and by")
    print("how much the exact optimum is better than the best of the grid on the first two labels")
    print("and the last, the least and the mean, target not below 0.\n")
    print("| criterion | grid / exact | exact, s | least gain | mean gain |")
    print("|---|---|---|---|---|")
    for criterion, at in CRITERIA.items():
        exact, points = [], []
        fit = partial(lt.posthoc.Thresholds.fit, scores, criterion, at)
        for repetition in range(REPETITIONS):
            took, fitted = seconds(fit)
            exact.append(took)
            for label in range(LABELS):
                threshold = grids[label][(37 * (label + 20 * repetition)) % POINTS]
                given = columns[label], truths[label], positives[label], criterion, at
                points.append(seconds(partial(value_at, threshold, *given))[0])
        sign = -1 if criterion == "balanced_error" else 1
        gains = []
        for label in (0, 1, LABELS - 1):
            given = columns[label], truths[label], positives[label], criterion, at
            best = max(value_at(threshold, *given) for threshold in grids[label])
            best = 1 - best if criterion == "balanced_error" else best
            gains.append(sign * (fitted.values[label] - best))
        grid = POINTS * LABELS * statistics.median(points)
        took = statistics.median(exact)
        print(
            f"| {criterion}{'' if at is None else f' {at}'} | {grid / took:.0f} | {took:.2f} "
            f"| {min(gains):.1e} | {statistics.mean(gains):.1e} |"
        )


def main():
    warnings.simplefilter("ignore")  # LightGBM's, of names of features
    print("Yes/no labels. Made by `make bench-long`.\n")
    print_losses()
    print_thresholds()


if __name__ == "__main__":
    main()
