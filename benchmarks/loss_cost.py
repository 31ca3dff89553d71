"""Cost of LogitAdjusted, forward and backward, against F.cross_entropy in one run.

Repetitions of the two alternate in random order, and the ratio is that of the medians. Usage:
`make bench`, or `python benchmarks/loss_cost.py` for this table alone.
"""

import random
import statistics
import time

import torch
import torch.nn.functional as F

import longtail as lt

SHAPES = {(256, 1000): 600, (512, 8142): 60}  # repetitions
RUNS = 3
TARGET = 1.10


def seconds(loss, logits, labels):
    logits.grad = None
    start = time.perf_counter()
    loss(logits, labels).backward()
    return time.perf_counter() - start


def ratio(samples, classes, repetitions):
    labels = torch.randint(0, classes, (samples,))
    logits = torch.randn(samples, classes, requires_grad=True)
    # A long tail of 1280 to 5, the range of ImageNet-LT.
    counts = lt.data.exponential_counts(1280, classes, 256)
    rivals = {"ours": lt.losses.LogitAdjusted(counts), "torch": F.cross_entropy}
    times = {name: [] for name in rivals}
    for repetition in range(repetitions + 5):
        for name in random.sample(list(rivals), len(rivals)):
            took = seconds(rivals[name], logits, labels)
            if repetition >= 5:  # the first ones warm up
                times[name].append(took)
    ours, torchs = statistics.median(times["ours"]), statistics.median(times["torch"])
    return ours / torchs, 1e3 * ours, 1e3 * torchs


def main():
    torch.manual_seed(0)
    random.seed(0)
    print("LogitAdjusted against F.cross_entropy, forward and backward: ratio of the medians of")
    print(f"alternating repetitions. torch {torch.__version__}. Made by `make bench`.\n")
    print("| threads | shape | ratio, run 1 | run 2 | run 3 | ms, ours / torch (run 3) |")
    print("|---|---|---|---|---|---|")
    worst = 0.0
    for threads in (1, torch.get_num_threads()):
        torch.set_num_threads(threads)
        for (samples, classes), repetitions in SHAPES.items():
            runs = [ratio(samples, classes, repetitions) for _ in range(RUNS)]
            worst = max(worst, *(run[0] for run in runs))
            ratios = " | ".join(f"{run[0]:.3f}" for run in runs)
            print(
                f"| {threads} | ({samples}, {classes}) | {ratios} "
                f"| {runs[-1][1]:.3f} / {runs[-1][2]:.3f} |"
            )
    print(f"\nlargest ratio {worst:.3f}; target at most {TARGET:.2f}")


if __name__ == "__main__":
    main()
