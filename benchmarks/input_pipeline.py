"""What the training loop costs beside the model: sampler, index, crop, flip, normalise and more.

Random images in the number and size of CIFAR-100-LT at ratio 100, batches of 128. A step of the
loop of `longtail.engine.training` and a step of the bare model (the same batch every time, torch's
own cross-entropy and SGD) take turns. The cost is the median over turns of the ratio of the two: in
processor time, which other work on the machine changes little, and by the clock. "Pipeline alone"
is the median processor time from one batch to the next when nothing is learned, to a bare step's.
Usage: `python benchmarks/input_pipeline.py`; `--steps` says how many turns.
"""

import argparse
import time

import torch
import torch.nn.functional as F

import longtail as lt
from longtail.engine import backbones
from longtail.engine.training import Model, StepEnd, TrainingOptions, train
from longtail.engine.training.image_source import Inputs, image_source
from longtail.images import ImageArrays
from longtail.images.augment import Chain, Flip, Normalize, RandomCrop
from longtail.images.samplers import InstanceSampler

CLASSES, BATCH = 100, 128
AUGMENT, NORMALIZE = Chain(RandomCrop(padding=4), Flip()), Normalize()
TARGET = 0.05


def now():
    """Seconds of the clock and of the processors."""
    return torch.tensor([time.perf_counter(), time.process_time()], dtype=torch.float64)


def median(times):
    return times.quantile(0.5, dim=0)


def cifar_sized():
    counts = torch.as_tensor(lt.data.exponential_counts(500, CLASSES, 100))
    labels = torch.arange(CLASSES).repeat_interleave(counts)
    return ImageArrays(torch.randint(256, (len(labels), 3, 32, 32), dtype=torch.uint8), labels)


def made(name):
    body = getattr(backbones, name)()
    return Model(body, lt.heads.Linear(body.dim, CLASSES))


def bare_step(name, data):
    """A step of a model of its own, on the same batch every time."""
    model = made(name)
    solver = torch.optim.SGD(model.parameters(), lr=0.01, momentum=0.9)
    inputs, labels = NORMALIZE(data.images[:BATCH]), data.labels[:BATCH]

    def step():
        solver.zero_grad()
        F.cross_entropy(model(inputs).logits, labels).backward()
        solver.step()

    return step


def take_turns(name, data, steps):
    """Seconds of every step of the loop, and of a step of the bare model after it."""
    step, loop, bare = bare_step(name, data), [], []
    clock = now()

    def turn(event):
        nonlocal clock
        if isinstance(event, StepEnd):
            loop.append(now() - clock)
            clock = now()
            step()
            bare.append(now() - clock)
            clock = now()

    loss = lt.losses.CrossEntropy(data.counts)
    sampler = InstanceSampler(data.labels, CLASSES)
    options = TrainingOptions(epochs=100, batch_size=BATCH, lr=0.01)
    train(
        made(name),
        data,
        sampler,
        loss,
        options,
        normalize=NORMALIZE,
        augment=AUGMENT,
        progress=turn,
        stop_after=steps,
    )
    return torch.stack(loop[3:]), torch.stack(bare[3:])  # the first ones warm up


def pipeline_alone(data, steps):
    """Median seconds from one batch to the next, when nothing is learned."""
    source = image_source(data, torch.device("cpu"))
    inputs = Inputs(AUGMENT, NORMALIZE, None, CLASSES, torch.Generator().manual_seed(0))
    order = list(InstanceSampler(data.labels, CLASSES))
    times, clock = [], now()
    for batch in source.batches(order[: steps * BATCH], BATCH):
        inputs(batch)
        times.append(now() - clock)
        clock = now()
    return median(torch.stack(times))


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=100)
    steps = parser.parse_args().steps
    torch.manual_seed(0)
    data = cifar_sized()
    print("The training loop against the bare model on a fixed batch, in one run: random images in")
    print(
        f"the number ({len(data)}) and size of CIFAR-100-LT, batches of {BATCH}, {steps} steps that"
    )
    print(f"take turns, medians. torch {torch.__version__}, {torch.get_num_threads()} thread(s).")
    print("Made by `python benchmarks/input_pipeline.py`.\n")
    print("| backbone | loop, images/s | bare, images/s | cost of the loop | by the clock ", end="")
    print("| pipeline alone, of a step | target |\n|---|---|---|---|---|---|---|")
    for name in ("resnet32", "small_cnn"):
        turns = take_turns(name, data, steps)
        by_clock, cost = (median(turns[0] / turns[1]) - 1).tolist()
        (loop, bare), alone = map(median, turns), pipeline_alone(data, steps)
        target = f"at most {TARGET:.0%}" if name == "resnet32" else ""
        print(
            f"| {name} | {BATCH / loop[0]:.0f} | {BATCH / bare[0]:.0f} | {cost:+.1%} "
            f"| {by_clock:+.1%} | {alone[1] / bare[1]:.1%} ({1000 * alone[1]:.1f} ms) | {target} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
