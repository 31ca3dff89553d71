"""Cost of LADE, ELM and LDAM, forward and backward, against F.cross_entropy in one run.

Logits of shape (256, 1000), features of 128 dimensions, labels drawn by the counts of ImageNet-LT
(those of its Pareto profile where the list is not beside the repository). Repetitions alternate in
random order; the ratio is that of the medians. Usage: `make bench`, or
`python benchmarks/batch_loss_cost.py` for this table alone.
"""

import json
import random
import statistics
import time
from pathlib import Path

import torch
import torch.nn.functional as F

import longtail as lt

SAMPLES, CLASSES, DIM = 256, 1000, 128
REPETITIONS, RUNS = 300, 3
TARGETS = {"LADE": 2.0, "ELM": 2.0, "LDAM": 1.5, "LADE, released": None}
LIST = Path(__file__).parents[2] / "shared/data/class_counts/imagenet_lt.json"


def seconds(loss, logits, labels, features):
    logits.grad = features.grad = None
    start = time.perf_counter()
    loss(logits, labels, features).backward()
    return time.perf_counter() - start


def ratios(counts):
    labels = torch.multinomial(torch.tensor(counts, dtype=torch.float), SAMPLES, replacement=True)
    logits = torch.randn(SAMPLES, CLASSES, requires_grad=True)
    features = F.normalize(torch.randn(SAMPLES, DIM), dim=1).requires_grad_()
    rivals = {
        "torch": lambda logits, labels, features: F.cross_entropy(logits, labels),
        "LADE": lt.losses.LADE(counts),
        "ELM": lt.losses.ELM(counts),
        "LDAM": lt.losses.LDAM(counts),
        "LADE, released": lt.losses.LADE(counts, variant="released"),
    }
    times = {name: [] for name in rivals}
    for repetition in range(REPETITIONS + 5):
        for name in random.sample(list(rivals), len(rivals)):
            took = seconds(rivals[name], logits, labels, features)
            if repetition >= 5:  # the first ones warm up
                times[name].append(took)
    medians = {name: statistics.median(values) for name, values in times.items()}
    return {name: medians[name] / medians["torch"] for name in TARGETS}


def main():
    torch.manual_seed(0)
    random.seed(0)
    known = LIST.exists()
    counts = json.loads(LIST.read_text()) if known else lt.data.pareto_counts(1280, CLASSES, 256)
    print("Losses of a batch against F.cross_entropy, forward and backward, at (256, 1000) with")
    print("128-d features: ratio of the medians of alternating repetitions, three runs. Labels by")
    print(f"{'the ImageNet-LT counts' if known else 'the Pareto profile'}. ", end="")
    print(f"torch {torch.__version__}. Made by `make bench`.\n")
    print("| threads | loss | run 1 | run 2 | run 3 | target at most |")
    print("|---|---|---|---|---|---|")
    for threads in (1, torch.get_num_threads()):
        torch.set_num_threads(threads)
        runs = [ratios(list(counts)) for _ in range(RUNS)]
        for name, target in TARGETS.items():
            shown = " | ".join(f"{run[name]:.2f}" for run in runs)
            print(f"| {threads} | {name} | {shown} | {target or '–'} |")


if __name__ == "__main__":
    main()
