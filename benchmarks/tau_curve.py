"""The exact curve of balanced accuracy over τ against a grid of τ, in one run.

20,000 samples of 1,000 classes in float32, 20 a class, with the training counts of the Pareto
profile and the classes in no order. The grid has 200 points on 0 ≤ τ ≤ 2; each subtracts τ·log π
into one array kept for that and takes argmax over the classes, by whichever of torch and NumPy is
faster at that; in blocks it does so a few rows at a time, which then stay in the cache. Repetitions
of one grid point and of the whole curve alternate, and the grid is 200 times the median of a point.
Usage: `make bench`, or `python benchmarks/tau_curve.py` for this table alone.
"""

import statistics
import time

import numpy as np
import torch

import longtail as lt

SAMPLES, CLASSES, POINTS = 20_000, 1_000, 200
REPETITIONS, RUNS, TARGET = 15, 3, 30
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


def grid_point(subtract, argmax, blocks):
    """Balanced accuracy at one τ, as a function of it."""

    def accuracy(logits, labels, log_prior, memory, tau):
        shift = (tau * log_prior).astype(np.float32)
        predicted = np.empty(SAMPLES, np.int64)
        rows = len(memory) if blocks is None else blocks
        for start in range(0, SAMPLES, rows):
            block = logits[start : start + rows]
            moved = memory[: len(block)]
            subtract(block, shift, moved)
            predicted[start : start + rows] = argmax(moved)
        right = np.bincount(labels[predicted == labels], minlength=CLASSES)
        return np.mean(right / np.bincount(labels, minlength=CLASSES))

    return accuracy


def torch_subtract(rows, shift, out):
    torch.sub(torch.from_numpy(rows), torch.from_numpy(shift), out=torch.from_numpy(out))


GRIDS = {
    "torch": grid_point(torch_subtract, lambda m: torch.from_numpy(m).argmax(dim=1).numpy(), None),
    "NumPy": grid_point(np.subtract, lambda m: m.argmax(axis=1), None),
    "torch, argmax of NumPy": grid_point(torch_subtract, lambda m: m.argmax(axis=1), None),
    "the same in blocks": grid_point(torch_subtract, lambda m: m.argmax(axis=1), 64),
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
    print("float32: how many times as long the grid takes, medians of alternating repetitions,")
    print(f"three runs. torch {torch.__version__}, NumPy {np.__version__}. Made by `make bench`.\n")
    print("| the grid by | 1 thread, runs 1 to 3 | 2 threads, runs 1 to 3 |")
    print("|---|---|---|")
    runs = {}
    for threads in (1, 2):
        torch.set_num_threads(threads)
        runs[threads] = [medians(logits, labels, counts, log_prior) for _ in range(RUNS)]
    for name in GRIDS:
        ratios = {t: [POINTS * run[name] / run["curve"] for run in runs[t]] for t in runs}
        shown = (" / ".join(f"{ratio:.0f}" for ratio in ratios[t]) for t in ratios)
        print(f"| {name} | {' | '.join(shown)} |")
    curve = lt.posthoc.tau_curve(logits, labels, counts)
    memory = np.empty_like(logits)
    best = max(GRIDS["torch, argmax of NumPy"](logits, labels, log_prior, memory, t) for t in TAUS)
    print(f"\nTarget at least {TARGET} against the fastest of the first three.")
    milliseconds = [1e3 * statistics.median(run["curve"] for run in runs[t]) for t in runs]
    print(f"The curve took {milliseconds[0]:.0f} ms with 1 thread, {milliseconds[1]:.0f} with 2.")
    print(
        f"Best balanced accuracy: curve {curve.best_accuracy:.6f} at τ = {curve.best_tau:.4f}, ",
        end="",
    )
    print(f"grid {best:.6f}; the curve must not be below.")


if __name__ == "__main__":
    main()
