"""What the scores half costs beside what there is: ratios of medians, taken in turns in one run.

- EM's prior of 100,000 samples of 100 classes against the EM of the package `abstention`, which
  stops after 100 rounds or at a change of 1e-6. The gap is that in the conditions of the optimum,
  max_y Σ_i ℓ_i(y) / r_i / N − 1: no prior is likelier by more, in log-likelihood a sample.
- `metrics.evaluate` at 50,000 × 1,000 against softmax and argmax of the same logits, and
  `metrics.ece` against torchmetrics.
- `longtail fix --apply` on labelled scores in a file against a loop over blocks that reads them,
  adds a number a class, takes softmax and argmax and writes; each a process of its own, after the
  file was read once.

Usage: `make bench`, or `python benchmarks/scores_speed.py [--abstention FOLDER] [--rows 10000000]
[--folder FOLDER]`. `abstention` is not installed with longtail: `pip install --no-deps --target
FOLDER abstention`. The second folder needs room for twice the scores, 8 GB by default.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import stream_scores

CLASSES = 100
REPETITIONS = 9
RUNS_OF_FIX = 3
BLOCK = 40_000  # rows of the plain loop: 16 MB


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--abstention", type=Path, help="where the package was installed")
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()))
    asked = parser.parse_args()
    if asked.abstention is not None:
        sys.path.append(str(asked.abstention))
    print("Seconds are medians of runs in turns; ratios are what counts. Made by `make bench`.\n")
    print("| what | seconds | beside | seconds | ratio | target |")
    print("|---|--:|---|--:|--:|--:|")
    remark = em_rows()
    metric_rows()
    with tempfile.TemporaryDirectory(dir=asked.folder) as folder:
        fix_row(Path(folder), asked.rows)
    print(f"\n{remark}")


def row(what, ours, beside, theirs, target):
    """One line; a target "≥ 5" is of their time by ours, "≤ 2.5" of ours by theirs."""
    ratio = theirs / ours if target.startswith("≥") else ours / theirs
    print(f"| {what} | {ours:.3g} | {beside} | {theirs:.3g} | {ratio:.2f} | {target} |", flush=True)


def medians(*functions, repetitions=REPETITIONS):
    times = [[] for _ in functions]
    for _ in range(repetitions):
        for function, taken in zip(functions, times, strict=True):
            start = time.perf_counter()
            function()
            taken.append(time.perf_counter() - start)
    return [statistics.median(taken) for taken in times]


def draw(samples=100_000):
    """Logits that carry the uniform prior of Gaussian classes, whose frequencies span 1 to 100."""
    rng = np.random.default_rng(0)
    chances = np.geomspace(1, 100, CLASSES)
    means = 0.9 * rng.normal(size=(CLASSES, 16))
    labels = rng.choice(CLASSES, samples, p=chances / chances.sum())
    points = means[labels] + rng.normal(size=(samples, 16))
    return (points @ means.T - 0.5 * (means**2).sum(axis=1)).astype(np.float32)


def em_rows():
    """The rows of EM, and a sentence on how far off each stops."""
    from longtail.core.draws import Draws
    from longtail.core.softmax import softmax
    from longtail.shift.em import plain_em

    logits = draw()

    def ours(resamples, pseudo_count=0.0):
        return lambda: plain_em(logits, pseudo_count, resamples, Draws(0))

    try:
        from abstention.label_shift import EMImbalanceAdapter
    except ImportError:
        return "The package `abstention` is not there: say where it is to compare EM with it."
    probs, uniform = softmax(logits.astype(np.float64)), np.full((2, CLASSES), 1 / CLASSES)
    fit = [ours(0), ours(50, 1.0), lambda: EMImbalanceAdapter()(probs, uniform)]
    alone, again, theirs = medians(*fit, repetitions=3)
    row(f"EM, {len(logits):,} × {CLASSES}", alone, "abstention, one fit", theirs, "≥ 5")
    row("EM and 50 resamples", again, "abstention, one fit", theirs, "≥ 1")
    found = EMImbalanceAdapter()(probs, uniform).multipliers / CLASSES
    gaps = gap(logits, ours(0)().prior.probs), gap(logits, found / found.sum())
    return f"EM stops at a gap of {gaps[0]:.1e}, abstention at one of {gaps[1]:.1e}."


def gap(logits, prior):
    likelihood = np.exp(logits.astype(np.float64) - logits.max(axis=1, keepdims=True))
    return (likelihood.T @ (1 / (likelihood @ prior))).max() / len(logits) - 1


def metric_rows(samples=50_000, classes=1_000):
    import torch
    from torchmetrics.functional.classification import multiclass_calibration_error

    import longtail as lt
    from longtail.core.softmax import softmax

    rng = np.random.default_rng(0)
    labels = rng.integers(0, classes, samples)
    logits = 2 * rng.standard_normal((samples, classes), dtype=np.float32)
    logits[np.arange(samples), labels] += 6
    scores = lt.Scores(logits, labels)
    tensors = torch.from_numpy(logits), torch.from_numpy(labels)
    size = f"{samples:,} × {classes:,}"
    evaluated, plain, ece, theirs = medians(
        lambda: lt.metrics.evaluate(scores),
        lambda: softmax(logits).argmax(axis=1),
        lambda: lt.metrics.ece(logits, labels),
        lambda: multiclass_calibration_error(*tensors, classes, n_bins=20, validate_args=False),
    )
    row(f"`metrics.evaluate`, {size}", evaluated, "softmax and argmax", plain, "≤ 2.5")
    row(f"`metrics.ece`, {size}", ece, "torchmetrics", theirs, "≥ 3")


def fix_row(folder, rows):
    stream_scores.in_a_process("prepare", folder, rows, CLASSES)
    times = {"fix": [], "plain": []}
    for _ in range(RUNS_OF_FIX):
        for what, taken in times.items():
            with open(folder / "scores.npy", "rb", buffering=0) as file:
                while file.read(2**24):
                    pass
            command = [sys.executable, __file__, "--once", what, str(folder)]
            answer = subprocess.run(command, check=True, capture_output=True, text=True).stdout
            taken.append(json.loads(answer)["seconds"])
    ours, theirs = (statistics.median(taken) for taken in times.values())
    what, beside = f"`longtail fix --apply`, {rows:,} × {CLASSES}", "read, add, softmax, write"
    row(what, ours, beside, theirs, "≤ 3")


def plain_loop(folder):
    from longtail.core.softmax import softmax

    start = time.perf_counter()
    stored = np.load(folder / "scores.npy", mmap_mode="r")
    shift, predicted = np.linspace(-1, 1, CLASSES, dtype=np.float32), []
    with open(folder / "plain.bin", "wb") as file:
        for at in range(0, len(stored), BLOCK):
            moved = stored[at : at + BLOCK] + shift
            predicted.append(softmax(moved).argmax(axis=1))
            file.write(moved.data)
    print(json.dumps({"seconds": time.perf_counter() - start}))
    (folder / "plain.bin").unlink()


if __name__ == "__main__":
    if sys.argv[1:3] == ["--once", "plain"]:
        plain_loop(Path(sys.argv[3]))
    elif sys.argv[1:3] == ["--once", "fix"]:
        stream_scores.fix(Path(sys.argv[3]))
        (Path(sys.argv[3]) / "fixed" / "scores.safetensors").unlink()
    else:
        main()
