"""What each process does in tests/losses/test_processes.py: a module that it can import."""

import os
from functools import partial
from pathlib import Path

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.testing import assert_close

from longtail import heads, losses
from longtail.engine.training.process_group import close_group
from longtail.losses.processes import whole_batch

COUNTS = [70, 20, 8, 2]
GENERATOR = torch.Generator().manual_seed(0)
INPUTS = torch.randn(13, 5, generator=GENERATOR, dtype=torch.float64)
LABELS = torch.tensor([0, 1, 0, 0, 2, 0, 1, 1, 0, -100, 2, 3, 0])
# Unequal parts; class 3 is on the last process only, class 2 absent from the first.
SPLITS = {2: [4, 9], 3: [4, 6, 3]}


class Model(nn.Module):
    """Features and logits, the same on every process."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(1)
        self.body = nn.Linear(5, 3, dtype=torch.float64)
        self.head = heads.EstimatedOffset(3, 4).double()

    def forward(self, inputs):
        features = self.body(inputs).tanh()
        return self.head(features), features


def on_features(make):
    """A term on features as a loss with the common call."""

    def made(model, **options):
        term = make(**options)
        return lambda logits, labels, features: term(features, labels)

    return made


def lader(model, **options):
    term = losses.LADER(COUNTS, **options)
    return lambda logits, labels, features: term(logits, labels)


def with_terms(make, **options):
    terms = [(losses.Center(3, 4, **options), 0.1), (losses.SpreadOut(**options), 0.5)]
    return losses.LossWithTerms(make(COUNTS), terms)


LOSSES = {
    "LADE": lambda model, **o: losses.LADE(COUNTS, alpha=1.0, **o),
    "LADE, released": lambda model, **o: losses.LADE(COUNTS, variant="released", **o),
    "LADE, sum": lambda model, **o: losses.LADE(COUNTS, reduction="sum", **o),
    "ELM": lambda model, **o: losses.ELM(COUNTS, lam=1.0, weight=[1, 2, 3, 4], **o),
    "EstimatedOffset": lambda model, **o: losses.EstimatedOffset(COUNTS, head=model.head, **o),
    "LADER": lader,
    "Pull": on_features(lambda **o: losses.Pull(COUNTS, **o)),
    "Center": on_features(lambda **o: losses.Center(3, 4, **o).double()),
    "Range": on_features(lambda **o: losses.Range(**o)),
    "LiftedStructure": on_features(lambda **o: losses.LiftedStructure(**o)),
    "DROLT": on_features(lambda **o: losses.DROLT(COUNTS, dim=3, **o).double()),
    "SpreadOut": on_features(lambda **o: losses.SpreadOut(**o)),
    "LossWithTerms": lambda model, **o: with_terms(losses.CrossEntropy, **o),
    "LossWithTerms, weighted": lambda model, **o: with_terms(
        partial(losses.CrossEntropy, weight=[1, 2, 3, 4]), **o
    ),
    "LossWithTerms, ELM": lambda model, **o: with_terms(partial(losses.ELM, **o), **o),
}


def two_steps(name, model, run, inputs, labels, gather):
    """Values and gradients of two steps, the second with whatever centres the first moved."""
    loss = LOSSES[name](model, gather=gather)
    seen = []
    for _ in range(2):
        model.zero_grad()
        logits, features = run(inputs)
        value = loss(logits, labels, features=features)
        value.backward()
        gradients = [p.grad.clone() for p in model.parameters() if p.grad is not None]
        seen.append((value.detach(), gradients, model.head.centers.clone()))
    return seen


def compare(rank, size, folder):
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    torch.set_num_threads(1)
    store = dist.FileStore(str(Path(folder) / "store"), size)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size)
    own = [part.split(SPLITS[size])[rank] for part in (INPUTS, LABELS)]
    for name in LOSSES:
        compare_loss(name, rank, size, own)
    close_group()


def compare_loss(name, rank, size, own):
    """One loss: its model and what DDP makes of it end with the function, before the group does."""
    whole, split = Model(), Model()
    expected = two_steps(name, whole, whole, INPUTS, LABELS, gather=False)
    # A term on the features alone leaves the head unused.
    unused = name in ("Pull", "Center", "Range", "LiftedStructure", "DROLT", "SpreadOut")
    parallel = DistributedDataParallel(split, find_unused_parameters=unused)
    got = two_steps(name, split, parallel, *own, gather=True)
    for step, (theirs, ours) in enumerate(zip(expected, got, strict=True)):
        where = f"{name}, step {step}, process {rank} of {size}: "
        assert_close(ours[0], theirs[0], rtol=0, atol=1e-6, msg=lambda m, w=where: w + m)
        for mine, yours in zip(ours[1], theirs[1], strict=False):
            assert_close(mine, yours, rtol=0, atol=1e-6, msg=lambda m, w=where: w + m)
        assert_close(ours[2], theirs[2], rtol=0, atol=1e-9, msg=lambda m, w=where: w + m)


def gather_rows(rank, size, folder):
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    store = dist.FileStore(str(Path(folder) / "store"), size)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=size)
    rows = torch.full((2 * rank, 3), float(rank), requires_grad=True)  # the first has none
    gathered, labels = whole_batch(rows, torch.full((2 * rank,), rank))
    assert gathered[:, 0].tolist() == [1.0, 1.0] + [2.0] * 4
    assert labels.tolist() == [1, 1, 2, 2, 2, 2]
    (gathered * torch.arange(6.0).unsqueeze(1)).sum().backward()
    first = sum(2 * r for r in range(rank))
    expected = 3 * torch.arange(6.0)[first : first + 2 * rank].unsqueeze(1).expand(-1, 3)
    assert_close(rows.grad, expected)
    close_group()
