"""Cost of every loss, forward and backward, against F.cross_entropy in one run.

Logits of shape (256, 1000), features of 128 dimensions and norm one, labels drawn by the counts of
ImageNet-LT (those of its Pareto profile where the list is not beside the repository); LDAM on
cosines, as it is meant. Repetitions of a loss and of torch's alternate in random order; the ratio
is that of the medians.
Usage: `make bench`, or `python benchmarks/batch_loss_cost.py` for this table alone.
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
TARGETS = {"LADE": 2.0, "ELM": 2.0, "LDAM": 1.5}
LIST = Path(__file__).parents[2] / "shared/data/class_counts/imagenet_lt.json"


def make_losses(counts):
    """Every loss, in the order of the cards."""
    head = lt.heads.EstimatedOffset(DIM, CLASSES)
    own = {
        "ConsistentMargin": lambda: lt.losses.ConsistentMargin(counts, delta=counts),
        "PairwiseMargin": lambda: lt.losses.PairwiseMargin(counts, torch.zeros(CLASSES, CLASSES)),
        "EstimatedOffset": lambda: lt.losses.EstimatedOffset(counts, head=head),
        "TwoScale": lambda: lt.losses.TwoScale(counts, tau_pos=0.5),
    }
    names = (
        *("CrossEntropy", "Balanced", "LogitAdjusted", "BalancedSoftmax"),
        *("WeightedLogitAdjusted", "ConsistentMargin", "TwoScale", "Adaptive"),
        *("LogitAdjustedAdaptive", "Equalized", "PairwiseMargin", "VS", "CDT"),
        *("LabelAwareSmoothing", "ClassBalanced", "Focal", "SigmoidFocal", "LDAM"),
        *("LADE", "ELM", "EstimatedOffset"),
    )
    made = {name: own.get(name, lambda n=name: getattr(lt.losses, n)(counts))() for name in names}
    return made | {"LADE, released": lt.losses.LADE(counts, variant="released")}


def seconds(loss, logits, labels, features):
    logits.grad = features.grad = None
    start = time.perf_counter()
    loss(logits, labels, features).backward()
    return time.perf_counter() - start


def ratio(loss, logits, labels, features):
    """Of the medians of alternating repetitions of the loss and of torch's cross-entropy."""
    rivals = (loss, lambda logits, labels, features: F.cross_entropy(logits, labels))
    times = ([], [])
    for repetition in range(REPETITIONS + 3):
        for which in random.sample((0, 1), 2):
            took = seconds(rivals[which], logits, labels, features)
            if repetition >= 3:  # the first ones warm up
                times[which].append(took)
    return statistics.median(times[0]) / statistics.median(times[1])


def ratios(counts):
    labels = torch.multinomial(torch.tensor(counts, dtype=torch.float), SAMPLES, replacement=True)
    logits = torch.randn(SAMPLES, CLASSES, requires_grad=True)
    features = F.normalize(torch.randn(SAMPLES, DIM), dim=1).requires_grad_()
    weight = F.normalize(torch.randn(CLASSES, DIM), dim=1)
    cosines = (features.detach() @ weight.T).requires_grad_()
    return {
        name: ratio(loss, cosines if name == "LDAM" else logits, labels, features)
        for name, loss in make_losses(counts).items()
    }


def main():
    torch.manual_seed(0)
    random.seed(0)
    known = LIST.exists()
    counts = json.loads(LIST.read_text()) if known else lt.data.pareto_counts(1280, CLASSES, 256)
    print("Every loss against F.cross_entropy, forward and backward, at (256, 1000) with 128-d")
    print("features: ratio of the medians of alternating repetitions, three runs. Labels by")
    print(f"{'the ImageNet-LT counts' if known else 'the Pareto profile'}. ", end="")
    print(f"torch {torch.__version__}. Made by `make bench`.\n")
    print("| loss | target at most | 1 thread, runs 1 to 3 | 2 threads, runs 1 to 3 |")
    print("|---|---|---|---|")
    runs = {}
    for threads in (1, 2):
        torch.set_num_threads(threads)
        runs[threads] = [ratios([int(n) for n in counts]) for _ in range(RUNS)]
    for name in runs[1][0]:
        shown = (" / ".join(f"{run[name]:.2f}" for run in runs[threads]) for threads in runs)
        print(f"| {name} | {TARGETS.get(name, '')} | {' | '.join(shown)} |")


if __name__ == "__main__":
    main()
