"""The exact curve of balanced accuracy over τ against a grid of 200 τ, in one run.

20,000 samples of 1,000 classes in float32, 20 a class; the training counts follow the Pareto
profile, and the classes come in no order. At each of 200 τ in 0 to 2 the grid subtracts τ·log π
into one array kept for that, takes argmax over the classes and averages the recalls: by torch, by
NumPy, or each step by the faster of the two; the last also in blocks of rows that stay in the
cache. Repetitions of one grid point and of the whole curve alternate in one run, and the grid is
200 times the median of its point.
Usage: `make bench`, or `python benchmarks/tau_curve.py` for this table alone.
"""

import statistics
import time

import numpy as np
import torch

import longtail as lt

SAMPLES, CLASSES, POINTS = 20_000, 1_000, 200
REPETITIONS, RUNS = 15, 3
TARGETS = {"torch": 30, "NumPy": 30, "torch, argmax by NumPy": 30}
TAUS = np.linspace(0, 2, POINTS)


def draw():
    """Logits that carry the training prior and separate the classes about as a good model does."""
    rng = np.random.default_rng(0)
    counts = rng.permutation(lt.data.pareto_counts(1280, CLASSES, 256))
    labels = rng.permutation(np.arange(SAMPLES) % CLASSES)
    logits = 1.6 * rng.standard_normal((SAMPLES, CLASSES), dtype=np.float32)
    logits[np.arange(SAMPLES), labels] += 6
    logits += np.log(counts / counts.sum()).astype(np.float32)
    return logits, labels, counts


def grid_point(subtract, argmax, block=SAMPLES):
    """A function from τ to balanced accuracy."""

    def accuracy(logits, labels, log_prior, memory, tau):
        shift = (tau * log_prior).astype(np.float32)
        predicted = np.empty(SAMPLES, np.int64)
        for start in range(0, SAMPLES, block):
            rows = logits[start : start + block]
            moved = memory[: len(rows)]
            subtract(rows, shift, moved)
            predicted[start : start + block] = argmax(moved)
        right = np.bincount(labels[predicted == labels], minlength=CLASSES)
        return np.mean(right / np.bincount(labels, minlength=CLASSES))

    return accuracy


def torch_subtract(rows, shift, out):
    torch.sub(torch.from_numpy(rows), torch.from_numpy(shift), out=torch.from_numpy(out))


def numpy_argmax(rows):
    return rows.argmax(axis=1)


def torch_argmax(rows):
    return torch.from_numpy(rows).argmax(dim=1).numpy()


GRIDS = {
    "torch": grid_point(torch_subtract, torch_argmax),
    "NumPy": grid_point(np.subtract, numpy_argmax),
    "torch, argmax by NumPy": grid_point(torch_subtract, numpy_argmax),
    "the same in blocks of 64 rows": grid_point(torch_subtract, numpy_argmax, block=64),
}


def seconds(function):
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def medians(logits, labels, counts, log_prior):
    """Seconds of a point of each grid and of the curve, repetitions alternating."""
    memory = np.empty_like(logits)
    times = {name: [] for name in (*GRIDS, "curve")}
    for repetition in range(REPETITIONS + 1):
        for name, grid in GRIDS.items():
            tau = TAUS[repetition]
            took = seconds(lambda g=grid, t=tau: g(logits, labels, log_prior, memory, t))
            times[name].append(took)
        times["curve"].append(seconds(lambda: lt.posthoc.tau_curve(logits, labels, counts)))
    return {name: statistics.median(values[1:]) for name, values in times.items()}


def main():
    logits, labels, counts = draw()
    log_prior = np.log(counts / counts.sum())
    print(
        "Balanced accuracy for every τ by `tau_curve` against a grid of 200 τ, at (20000, 1000) in"
    )
    print(
        "float32: how many times as long the grid takes, medians of alternating repetitions, three"
    )
    print(f"runs. torch {torch.__version__}, NumPy {np.__version__}. Made by `make bench`.\n")
    print("| the grid by | target at least | 1 thread, runs 1 to 3 | 2 threads, runs 1 to 3 |")
    print("|---|---|---|---|")
    runs = {}
    for threads in (1, 2):
        torch.set_num_threads(threads)
        runs[threads] = [medians(logits, labels, counts, log_prior) for _ in range(RUNS)]
    for name in GRIDS:
        ratios = ([POINTS * run[name] / run["curve"] for run in runs[t]] for t in runs)
        shown = (" / ".join(f"{ratio:.0f}" for ratio in of) for of in ratios)
        print(f"| {name} | {TARGETS.get(name, '')} | {' | '.join(shown)} |")
    curve, memory = lt.posthoc.tau_curve(logits, labels, counts), np.empty_like(logits)
    best = max(GRIDS["NumPy"](logits, labels, log_prior, memory, tau) for tau in TAUS)
    took = [1e3 * statistics.median(run["curve"] for run in runs[t]) for t in runs]
    print(
        f"\nThe curve took {took[0]:.0f} ms with 1 thread and {took[1]:.0f} with 2. It finds ",
        end="",
    )
    print(f"{curve.best_accuracy:.6f} at\nτ = {curve.best_tau:.4f}, the grid {best:.6f}; ", end="")
    print("target not below the grid.")


if __name__ == "__main__":
    main()
