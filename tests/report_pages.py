"""Scores and names that reports are tried on."""

from dataclasses import replace

import torch

import longtail as lt
from longtail.flows.compare import CompareResult
from longtail.flows.compare_runs import SampleSet, measured_run
from longtail.flows.compare_sets import compare_set
from longtail.flows.judge import Judgement, judge
from longtail.flows.samples import BeforeAfter
from longtail.posthoc import BiasCorrectedTemperature, LogitAdjustment

NAMES = (
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    "🦊🌵 fox and cactus",
    "שלום العربية right to left",
    "x" * 300,
    "many words " * 27,
    "\"quotes\" & 'more' {{ 7 * 7 }}",
)


def samples_of(names: tuple[str, ...] = ()) -> BeforeAfter:
    """Scores of a model that learned the tail of its labels, and the same moved to uniform."""
    classes, samples = 20, 1500
    random = torch.Generator().manual_seed(7)
    counts = lt.data.exponential_counts(400, classes, 100)
    prior = lt.Prior.of(counts)
    labels = torch.randint(classes, (samples,), generator=random)
    seen = torch.randn(samples, classes, generator=random, dtype=torch.float64)
    seen[torch.arange(samples), labels] += 1.8
    logits = 1.8 * seen  # the true posterior, so the model is calibrated
    called = [*names, *(f"class {k}" for k in range(len(names), classes))]
    before = lt.Scores(
        logits + torch.from_numpy(prior.log),
        labels,
        carried=prior,
        counts=counts,
        classes=called,
        split="test",
    )
    uniform = lt.Prior.uniform(classes)
    return BeforeAfter(before, before.under(uniform), uniform, tau=1.0)


def judged(names: tuple[str, ...] = ()) -> Judgement:
    """What is to be said of them."""
    return Judgement.of(samples_of(names))


def fitted() -> Judgement:
    """The same twice too sure, then calibrated with a bias and moved by a τ of many digits."""
    plain = samples_of().before
    before = replace(plain, logits=2 * plain.logits)
    bias = torch.linspace(-0.5, 0.5, plain.num_classes, dtype=torch.float64)
    calibrate = BiasCorrectedTemperature(2.0, bias, plain.carried)
    tau = 0.8714285714
    after = LogitAdjustment(plain.carried, tau)(calibrate(before))
    return judge(before, after, lt.Prior.uniform(plain.num_classes), tau=tau)


def compared() -> CompareResult:
    """Three methods of hostile names, two runs each."""
    samples = samples_of()
    test = SampleSet("test", samples.labels, samples.num_classes, samples.goal, samples.counts)
    random = torch.Generator().manual_seed(3)
    runs = []
    for number, name in enumerate(NAMES[:3]):
        for seed in ("0", "1"):
            noise = torch.randn(samples.before.logits.shape, generator=random)
            scores = replace(samples.after, logits=samples.after.logits + number * noise)
            runs.append(measured_run(scores, test, name, seed, f"{number}-{seed}"))
    return CompareResult((compare_set(test, runs, "balanced_accuracy"),), None, "uniform")
