"""LogitAdjustedClassifier before and after, on real sets with a long tail.

Digits (scikit-learn's, cut to 100 to 2 a class), Caltech-101 features (ours, 300 to 3) and, where
the files are beside the repository, two sets of texts: BANKING77 (cut to 120 to 3) and Reuters R52
(2,272 to 1, as it comes). A seed draws the training samples, the folds and the models' random
numbers. Everything is measured under the uniform prior on a test set that nothing was chosen on.
Usage: `python benchmarks/sklearn_sets.py`; about half an hour on one core.
"""

import gzip
import math
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from lightgbm import LGBMClassifier
from scipy import stats
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import LinearSVC

import longtail as lt
from longtail.integrations.sklearn import LogitAdjustedClassifier

TEXTS = Path(__file__).parents[2] / "shared/data/text"
logistic = partial(LogisticRegression, max_iter=300)


def digits(seed):
    X, y = load_digits(return_X_y=True)
    X, X_test, y, y_test = train_test_split(X, y, test_size=0.4, stratify=y, random_state=seed)
    kept = lt.data.long_tailed_subset(y, lt.data.exponential_counts(100, 10, 50), seed)
    return X[kept], y[kept], X_test, y_test


def caltech(seed):
    data = lt.data.caltech101_long_tailed(seed)
    return data.train_features, data.train_labels, data.test_features, data.test_labels


def texts(name, counts_of, seed):
    """Texts and labels; the counts of the classes to keep are made from those there are."""
    with gzip.open(TEXTS / f"{name}.tsv.gz", "rt", encoding="utf-8") as file:
        rows = file.read().splitlines()
    split, labels, words = zip(*(row.split("\t", 2) for row in rows), strict=True)
    words, labels, trains = np.array(words, object), np.array(labels), np.array(split) == "train"
    _, codes = np.unique(labels[trains], return_inverse=True)
    kept = lt.data.long_tailed_subset(codes, counts_of(np.bincount(codes), seed), seed)
    return words[trains][kept], labels[trains][kept], words[~trains], labels[~trains]


def cut_counts(available, seed):
    """An exponential profile over the classes in random order."""
    profile = lt.data.exponential_counts(120, len(available), 40)
    return np.minimum(available, np.random.default_rng(seed).permutation(profile))


def most_of_them(available, seed):
    """Four fifths of every class, so that seeds differ; a single sample stays."""
    return np.ceil(0.8 * available).astype(int)


def scaled(model):
    return make_pipeline(StandardScaler(), model)


def of_words(model, min_df=2):
    return make_pipeline(TfidfVectorizer(sublinear_tf=True, min_df=min_df), model)


BOOSTED = {"n_jobs": 1, "verbose": -1}
SETS = {
    "digits": (
        digits,
        10,
        {
            "logistic regression": scaled(logistic()),
            "the same, balanced": scaled(logistic(class_weight="balanced")),
            "histogram boosting": HistGradientBoostingClassifier(max_iter=50, min_samples_leaf=5),
            "LightGBM": LGBMClassifier(n_estimators=50, min_child_samples=5, **BOOSTED),
        },
    ),
    "Caltech-101 features": (
        caltech,
        5,
        {
            "logistic regression": scaled(logistic()),
            "the same, balanced": scaled(logistic(class_weight="balanced")),
        },
    ),
    "BANKING77": (
        partial(texts, "banking77", cut_counts),
        5,
        {
            "logistic regression": of_words(logistic(C=100)),
            "the same, balanced": of_words(logistic(C=100, class_weight="balanced")),
            "linear support vectors": of_words(LinearSVC()),
        },
    ),
    "Reuters R52": (
        partial(texts, "reuters_r52", most_of_them),
        5,
        {
            "logistic regression": of_words(logistic(C=100), min_df=5),
            "the same, balanced": of_words(logistic(C=100, class_weight="balanced"), min_df=5),
            "linear support vectors": of_words(LinearSVC(), min_df=5),
        },
    ),
}
WAYS = {
    "`tau=1`": {"tau": 1.0},
    "default": {},
    '`criterion="nll"`': {"criterion": "nll"},
    '`calibration="bias_corrected"`': {"calibration": "bias_corrected"},
}
AS_IT_IS = "as it is"
INTRODUCTION = """\
LogitAdjustedClassifier on real sets with a long tail: mean ± half of the 95 % interval over seeds.
Balanced accuracy and ECE in %, all under the uniform prior; gain is over the classifier as it is,
seed by seed. `tau=1` is the exact move without calibration, the default chooses τ by balanced
accuracy after a temperature; the last two change only what they say. A balanced classifier carries
the uniform prior already, so nothing is moved. Support vectors have no probabilities of their own.
Made by `python benchmarks/sklearn_sets.py`."""


def measured(logits, codes, num_classes):
    """Balanced accuracy in %, NLL and ECE in % under the uniform prior, of logits as they are."""
    uniform = lt.Prior.uniform(num_classes)
    report = lt.metrics.evaluate(lt.Scores(logits, codes, carried=uniform), target=uniform)
    return 100 * report["balanced_accuracy"], report["nll"], 100 * report["ece"]


def one_seed(draw, model, seed):
    """For each way what was measured, and τ."""
    X, y, X_test, y_test = draw(seed)
    found = {}
    for way, options in WAYS.items():
        adjusted = LogitAdjustedClassifier(model, random_state=seed, **options).fit(X, y)
        codes = np.searchsorted(adjusted.classes_, y_test)
        if AS_IT_IS not in found:
            found[AS_IT_IS] = (*alone(adjusted.estimator_, X_test, codes), math.nan)
        logits = adjusted.to_scores(X_test).logits
        found[way] = (*measured(logits, codes, len(adjusted.classes_)), adjusted.tau_)
    return found


def alone(fitted, X_test, codes):
    """The classifier inside; decision values are no logits, so that only accuracy is measured."""
    if hasattr(fitted, "predict_proba"):
        probs = np.maximum(fitted.predict_proba(X_test), 1e-16)
        return measured(np.log(probs), codes, probs.shape[1])
    values = fitted.decision_function(X_test)
    return measured(values, codes, values.shape[1])[0], math.nan, math.nan


def with_interval(values, places):
    """The mean, and half of its 95 % interval."""
    if np.isnan(values).any():
        return ""
    half = stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / math.sqrt(len(values))
    return f"{np.mean(values):.{places}f} ± {half:.{places}f}"


def table(name, draw, seeds, models):
    """Print the table of a set; what got worse in it, one line each."""
    _, y, X_test, _ = draw(0)
    counts = np.unique(y, return_counts=True)[1]
    print(f"\n## {name}\n")
    print(f"{len(counts)} classes of {counts.max()} to {counts.min()} training samples, ", end="")
    print(f"{len(y)} in all, {len(X_test)} test samples; {seeds} seeds.\n")
    print("| classifier | | balanced accuracy | gain | NLL | ECE | τ |")
    print("|---|---|---|---|---|---|---|")
    worse = []
    for label, model in models.items():
        runs = [one_seed(draw, model, seed) for seed in range(seeds)]
        for way in (AS_IT_IS, *WAYS):
            accuracy, nll, ece, tau = np.array([run[way] for run in runs]).T
            gain = accuracy - [run[AS_IT_IS][0] for run in runs]
            cells = (
                with_interval(accuracy, 1),
                "" if way == AS_IT_IS else with_interval(gain, 1),
                with_interval(nll, 3),
                with_interval(ece, 1),
                with_interval(tau, 2),
            )
            print(f"| {label} | {way} | {' | '.join(cells)} |", flush=True)
            worse += [
                f"{name}, {label}, {way}: {what} {change}" for what, change in got_worse(runs, way)
            ]
    return worse


def got_worse(runs, way):
    """What is on average worse than of the classifier as it is, seed by seed, and by how much."""
    changes = np.array([np.subtract(run[way][:3], run[AS_IT_IS][:3]) for run in runs]).T
    for what, sign, places, change in zip(
        ("balanced accuracy", "NLL", "ECE"), (-1, 1, 1), (1, 3, 1), changes, strict=True
    ):
        if sign * change.mean() > 0.5 * 10.0**-places:
            yield what, with_interval(change, places)


def main():
    warnings.filterwarnings("ignore", message="X does not have valid feature names")
    print(INTRODUCTION)
    worse = []
    for name, (draw, seeds, models) in SETS.items():
        if not isinstance(draw, partial) or TEXTS.exists():
            worse += table(name, draw, seeds, models)
    print("\n## Where it does not help\n")
    print("What is on average worse than of the classifier as it is, seed by seed:\n")
    print("\n".join(f"- {line}" for line in worse))


if __name__ == "__main__":
    main()
