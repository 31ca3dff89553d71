"""Cross-entropy over very many classes: time and memory beside torch, and what sampling costs.

Features (256, 128), labels by Zipf's law. Memory is what a fresh process holds at most, above what
it held before the loss and the gradient of the weight, which both need. Times are medians of
repetitions in turns. The bias of sampled softmax is that of the mean over many draws.
Usage: `make bench`, or `python benchmarks/huge_labels.py` for this table alone.
"""

import json
import random
import re
import statistics
import subprocess
import sys
import time
from itertools import product
from pathlib import Path

import torch
import torch.nn.functional as F

import longtail as lt

SAMPLES, DIM = 256, 128
REPETITIONS = {100_000: 11, 1_000_000: 5}
MEMORY_TARGET, TIME_TARGET, GRADIENT_TARGET = 100, 1.0, 1e-5
DRAWN_CLASSES, NEGATIVES, DRAWS = 100_000, 1_000, 200
ERRORS = """Largest error of a number of a gradient, relative to the largest number, from float64.

| classes | loss | ours | torch | ours from torch |
|--:|---|--:|--:|--:|"""
BIAS = f"""Sampled softmax, {NEGATIVES:,} of {DRAWN_CLASSES:,} classes, beside the full one: means
over {DRAWS} draws, and after ± their standard errors. The bias of a gradient, that of the features,
is a norm relative to the full one's. A label is frequent if it is expected in {NEGATIVES:,} labels
of the training prior."""
WHY = """A label that is seldom drawn adds exp(z_y)/e_y to the sum, more than its share. That is no
error of what is learned: the best logits are those of the full softmax at any number of negatives,
which `longtail.testing.check_head_loss` shows to 1e-6."""
SIGNALS = {"an untrained layer": 0, "a trained layer": 10}  # noise, and towards the label


def problem(num_classes):
    """Features, a layer's weight, labels, and the prior that these follow."""
    torch.manual_seed(0)
    weight = torch.randn(num_classes, DIM).div_(DIM**0.5).requires_grad_()
    train = lt.Prior.of(1 / torch.arange(1, num_classes + 1, dtype=torch.float64))
    labels = torch.from_numpy(train.probs).cumsum(0)
    labels = torch.searchsorted(labels, torch.rand(SAMPLES, dtype=torch.float64))
    return torch.randn(SAMPLES, DIM).requires_grad_(), weight, labels, train


def rivals(features, weight, labels, train):
    """Plain torch, and ours: plain as well, and logit-adjusted."""
    uniform = lt.Prior.uniform(train.num_classes)

    def ours(carried):
        return lt.losses.linear_cross_entropy(features, weight, None, labels, train, carried)

    return {
        "torch": lambda: F.cross_entropy(F.linear(features, weight), labels),
        "ours": lambda: ours(train),
        "ours, adjusted": lambda: ours(uniform),
    }


def seconds(loss, *inputs):
    for each in inputs:
        each.grad = None
    start = time.perf_counter()
    loss().backward()
    return time.perf_counter() - start


def status(name):
    """A size of this process in MB."""
    return int(re.search(rf"{name}:\s+(\d+)", Path("/proc/self/status").read_text())[1]) / 1024


def print_peak(name, num_classes):
    """The peak of one loss in this process, beyond the gradient of the weight."""
    features, weight, labels, train = problem(num_classes)
    loss = rivals(features, weight, labels, train)[name]
    Path("/proc/self/clear_refs").write_text("5")  # the peak is counted anew from here on
    before = status("VmRSS")
    seconds(loss, features, weight)
    print(json.dumps(status("VmHWM") - before - weight.numel() * 4 / 2**20))


def peak(name, num_classes):
    command = [sys.executable, __file__, name, str(num_classes)]
    return json.loads(subprocess.run(command, check=True, capture_output=True).stdout)


def print_costs(num_classes):
    features, weight, labels, train = problem(num_classes)
    losses = rivals(features, weight, labels, train)
    times = {name: [] for name in losses}
    for repetition in range(REPETITIONS[num_classes] + 1):
        for name in random.sample(list(losses), len(losses)):
            took = seconds(losses[name], features, weight)
            if repetition:  # the first one warms up
                times[name].append(took)
    for name in losses:
        took = statistics.median(times[name])
        ratio = took / statistics.median(times["torch"])
        print(
            f"| {num_classes:,} | {name} | {took:.2f} | {ratio:.2f} "
            f"| {peak(name, num_classes):,.0f} |",
            flush=True,
        )


def print_errors(num_classes):
    """The largest error of a number of a gradient, relative to the largest number."""
    features, weight, labels, train = problem(num_classes)
    inputs, shift = (features, weight), torch.from_numpy(train.log)
    for name, loss in rivals(features, weight, labels, train).items():
        if name == "torch":
            continue
        moved = shift if name == "ours, adjusted" else torch.zeros_like(shift)
        ours = torch.autograd.grad(loss(), inputs)
        plain = F.cross_entropy(F.linear(features, weight, moved.float()), labels)
        torchs, rights = torch.autograd.grad(plain, inputs), true_gradients(*inputs, labels, moved)
        del plain
        cells = [
            largest_error(*pair) for pair in ((ours, rights), (torchs, rights), (ours, torchs))
        ]
        shown = " | ".join(f"{cell:.1e}" for cell in cells)
        print(f"| {num_classes:,} | {name} | {shown} |", flush=True)


def largest_error(gradients, rights):
    pairs = zip(gradients, rights, strict=True)
    return max(float((ours - right).abs().max() / right.abs().max()) for ours, right in pairs)


@torch.no_grad()
def true_gradients(features, weight, labels, moved):
    """In float64, for a few samples at a time."""
    features, weight = features.double(), weight.double()
    of_features, of_weight = [], torch.zeros_like(weight)
    for rows, own in zip(features.split(8), labels.split(8), strict=True):
        p = torch.softmax(F.linear(rows, weight, moved), dim=1)
        p.scatter_add_(1, own.unsqueeze(1), -torch.ones(len(own), 1, dtype=p.dtype))
        p /= len(features)
        of_features.append(p @ weight)
        of_weight.addmm_(p.T, rows)
    return torch.cat(of_features), of_weight


def print_bias(layer, signal):
    """The bias of the loss and its gradient for the features, over many draws."""
    features, weight, labels, train = problem(DRAWN_CLASSES)
    with torch.no_grad():
        features += signal * weight[labels]
    full = lt.losses.linear_cross_entropy(features, weight, None, labels, train, train)
    (right,) = torch.autograd.grad(full, features)
    print(f"\nOf {layer}, full loss {full.item():.2f}:\n")
    print("| drawn from | how | corrected | bias of the loss | of the gradient | frequent labels |")
    print("|---|---|---|--:|--:|--:|")
    frequent = torch.from_numpy(train.probs)[labels] * NEGATIVES >= 1
    uniform = lt.Prior.uniform(DRAWN_CLASSES)
    proposals = {"uniform": uniform, "train^¾": train.tempered(0.75), "train": train}
    for (shown, proposal), distinct, corrected in product(
        proposals.items(), (False, True), (True, False)
    ):
        loss = lt.losses.SampledSoftmax(
            train, proposal, NEGATIVES, distinct=distinct, corrected=corrected
        )
        values, gradients = [], []
        for _ in range(DRAWS):
            value = loss(features, weight.detach(), None, labels)
            values.append(value.detach())
            gradients.append(torch.autograd.grad(value, features)[0])
        how, is_corrected = "distinct" if distinct else "independent", "yes" if corrected else "no"
        print_bias_row(
            f"{shown} | {how} | {is_corrected}",
            torch.stack(values) - full.detach(),
            torch.stack(gradients) - right,
            right,
            frequent,
        )


def print_bias_row(shown, values, gradients, right, frequent):
    def relative(errors, rows):
        return (errors[rows].norm() / right[rows].norm()).item()

    every = torch.ones_like(frequent)
    mean, error = gradients.mean(dim=0), gradients.std(dim=0) / len(gradients) ** 0.5
    cells = [
        f"{relative(mean, rows):.3f} ± {relative(error, rows):.3f}" for rows in (every, frequent)
    ]
    spread = values.std() / len(values) ** 0.5
    print(
        f"| {shown} | {values.mean():+.3f} ± {spread:.3f} | {' | '.join(cells)} |",
        flush=True,
    )


def main():
    random.seed(0)
    print("A layer with very many classes and its cross-entropy, features (256, 128), forward and")
    print("backward, beside `F.linear` and `F.cross_entropy`; adjusted: it carries uniform. Memory")
    print("is the peak beyond the weight and its gradient.", end=" ")
    print(f"{torch.get_num_threads()} threads, torch {torch.__version__}. Made by `make bench`.\n")
    print("| classes | loss | seconds | ratio | MB |\n|--:|---|--:|--:|--:|")
    for num_classes in REPETITIONS:
        print_costs(num_classes)
    print(f"\nTargets: ratio at most {TIME_TARGET:.1f}, below {MEMORY_TARGET} MB.\n\n{ERRORS}")
    for num_classes in REPETITIONS:
        print_errors(num_classes)
    print(f"\nTarget: ours from torch at most {GRADIENT_TARGET:.0e}.\n\n{BIAS}")
    for layer, signal in SIGNALS.items():
        print_bias(layer, signal)
    print(f"\n{WHY}")


if __name__ == "__main__":
    if len(sys.argv) > 1:
        print_peak(sys.argv[1], int(sys.argv[2]))
    else:
        main()
