"""A training run of a second, with everything in it that a run could lose when it is stopped."""

import os
import signal
import threading

import torch
import torch.distributed as dist
from safetensors.torch import save_file
from torch import nn

import longtail as lt
from longtail.engine import backbones
from longtail.engine.backbones import Backbone, SmallCNN
from longtail.engine.schedules import Cosine
from longtail.engine.training import Model, StepEnd, TrainingOptions, predict, train
from longtail.engine.training.process_group import close_group
from longtail.images import ImageArrays
from longtail.images.augment import Chain, Flip, Normalize, RandomCrop
from longtail.images.samplers import ClassBalancedSampler, InstanceSampler

CLASSES = 4
NORMALIZE = Normalize((0.5,) * 3, (0.25,) * 3)
AUGMENT = Chain(RandomCrop(padding=1), Flip())


class Dropping(Backbone):
    """A backbone that draws random numbers of its own."""

    def __init__(self, inner):
        super().__init__(inner.dim)
        self.inner, self.drop = inner, nn.Dropout(0.2)

    def forward(self, inputs):
        return self.drop(self.inner(inputs))


def images(number=90, seed=0, size=8):
    """Random images whose brightness tells their class; fewer of the later classes."""
    generator = torch.Generator().manual_seed(seed)
    shares = torch.tensor([0.5, 0.25, 0.15, 0.1])
    labels = torch.multinomial(shares, number, replacement=True, generator=generator)
    labels[:CLASSES] = torch.arange(CLASSES)
    pixels = torch.randint(100, (number, 3, size, size), generator=generator)
    return ImageArrays((pixels + 35 * labels.view(-1, 1, 1, 1)).to(torch.uint8), labels)


def model(name="SmallCNN", **options):
    """The same weights every time."""
    torch.manual_seed(1)
    body = getattr(backbones, name)(**({"dim": 32} if name == "SmallCNN" else {}) | options)
    return Model(body, lt.heads.Linear(body.dim, CLASSES))


def flat_model():
    """Without batch-norm, on 8 x 8 images: fast."""
    return model("MLP", inputs=192, hidden=(16,))


def quick(**changes):
    return TrainingOptions(**{"epochs": 2, "batch_size": 16, "lr": 0.05} | changes)


def quick_train(net, data, loss=None, options=None, sampler=None, **more):
    """A run without augmentation, unless more is said."""
    return train(
        net,
        data,
        sampler or InstanceSampler(data.labels, CLASSES),
        loss or lt.losses.CrossEntropy(data.counts),
        options or quick(),
        **{"normalize": NORMALIZE} | more,
    )


def full_run(folder, epochs=4, parallel="ddp", **more):
    """Dropout, batch-norm, augmentation, mixup, average, deferred weights, a sampler of its own."""
    torch.set_num_threads(1)
    data = images()
    torch.manual_seed(1)
    net = Model(Dropping(SmallCNN(dim=32)), lt.heads.Linear(32, CLASSES))
    sampler = ClassBalancedSampler(data.labels, CLASSES, seed=3)
    loss = lt.losses.deferred_reweighting(lt.losses.CrossEntropy, data.counts, start=epochs // 2)
    options = TrainingOptions(
        epochs=epochs,
        batch_size=16,
        schedule=Cosine(total=epochs, warmup=1),
        nesterov=True,
        weight_decay=1e-3,
        clip_norm=1.0,
        ema=0.9,
        mixup=0.5,
        parallel=parallel,
        seed=5,
    )
    result = train(
        net,
        data,
        sampler,
        loss,
        options,
        **{
            "normalize": NORMALIZE,
            "augment": AUGMENT,
            "validation": images(40, seed=1),
            "run": folder,
            "checkpoint_every": 2,
        }
        | more,
    )
    return net, result


def run_and_die(folder, die_at_sync=None, die_after=None):
    """For a process of its own: it is killed while writing, or after some seconds."""
    if die_at_sync is not None:
        _die_at_sync(die_at_sync)
    if die_after is not None:
        end = threading.Timer(die_after, os.kill, (os.getpid(), signal.SIGKILL))
        end.daemon = True
        end.start()
    full_run(folder)


def run_and_interrupt(folder, number):
    """For a process of its own: it sends itself a signal in a step, and writes what was raised."""

    def interrupt(event):
        if isinstance(event, StepEnd) and (event.epoch, event.step) == (2, 3):
            os.kill(os.getpid(), number)

    try:
        full_run(folder, progress=interrupt, checkpoint_every=None)
    except KeyboardInterrupt as error:
        with open(os.path.join(folder, "raised"), "w") as file:
            file.write(f"{type(error).__name__}: {error}")


def _die_at_sync(number):
    """Kill this process in the midst of writing: at its n-th call of os.fsync."""
    real, calls = os.fsync, []

    def deadly(file):
        calls.append(file)
        if len(calls) == number:
            os.kill(os.getpid(), signal.SIGKILL)
        real(file)

    os.fsync = deadly


def with_terms(counts, **options):
    """Cross-entropy with a term that has centres, and one that begins in the second epoch."""
    terms = [(lt.losses.Center(32, CLASSES), 0.05), (lt.losses.DROLT(counts, 32), 0.005, 1)]
    return lt.losses.LossWithTerms(lt.losses.CrossEntropy(counts, **options), terms)


LOSSES = {
    "LADE": lambda counts: lt.losses.LADE(counts, alpha=0.1),
    "ELM": lambda counts: lt.losses.ELM(counts, lam=0.1),
    "CrossEntropy": lt.losses.CrossEntropy,
    "LogitAdjusted": lt.losses.LogitAdjusted,
    "CrossEntropy, weighted": lambda counts: lt.losses.CrossEntropy(counts, weight=[1, 2, 4, 8]),
    "LADE, weighted, without its term": lambda counts: lt.losses.LADE(
        counts, alpha=0.0, weight=[1, 2, 4, 8]
    ),
    "with terms, weighted": lambda counts: with_terms(counts, weight=[1, 2, 4, 8]),
}
IN_PIECES = ("LogitAdjusted", "CrossEntropy, weighted", "LADE, weighted, without its term")


def curve(name, accumulate=1, parallel="ddp", **more):
    """The losses of twenty steps without batch-norm and augmentation, and the last weights."""
    torch.set_num_threads(1)
    data, net, seen = images(160), model(norm="none"), []
    quick_train(
        net,
        data,
        LOSSES[name](data.counts),
        quick(accumulate=accumulate, lr=0.02, parallel=parallel),
        progress=lambda event: seen.append(event.loss) if hasattr(event, "loss") else None,
        **more,
    )
    return torch.tensor(seen), net.state_dict()


def in_group(rank, world_size, folder, work, *arguments):
    """Do something as one of several processes; what comes out of it goes to a file."""
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    store = dist.FileStore(os.path.join(folder, "store"), world_size)
    dist.init_process_group("gloo", store=store, rank=rank, world_size=world_size)
    try:
        save_file(work(*arguments), os.path.join(folder, f"rank{rank}.safetensors"))
    finally:
        close_group()


def curves():
    found = {}
    for name in LOSSES:
        losses, weights = curve(name)
        found |= {f"{name}.losses": losses} | {f"{name}.{k}": v for k, v in weights.items()}
    for name in IN_PIECES:
        _, weights = curve(name, accumulate=2)
        found |= {f"{name} in pieces.{key}": value for key, value in weights.items()}
    return found


def first_steps(folder, parallel="ddp"):
    """Of a run that others are to go on with."""
    return curve("LADE", parallel=parallel, run=folder, stop_after=13)[1]


def steps_in_folders_apart(folder):
    """The second start finds a checkpoint on the first process alone; what that is told."""
    torch.set_num_threads(1)
    own = os.path.join(folder, f"of-{dist.get_rank()}")
    quick_train(flat_model(), images(), run=own, stop_after=3)
    try:
        quick_train(flat_model(), images(), run=own)
    except ValueError as error:
        return {"said": torch.tensor(list(str(error).encode()))}
    return {"said": torch.zeros(0)}


def predictions():
    """Of eleven images, and of one, on processes that have different batch-norm statistics."""
    net = model()
    net.backbone.layers[1].running_mean.add_(dist.get_rank())
    many = predict(net, images(11), NORMALIZE, batch_size=3)
    (one, _) = predict(net, images(11).subset([10]), NORMALIZE)
    return {"logits": many.logits, "features": many.features, "one": one}


def run_in_parts(folder):
    """A run of several processes that stops twice."""
    while True:
        net, result = full_run(folder, stop_after=14, checkpoint_every=None)
        if result.finished:
            return net.state_dict()


def whole_run():
    net, _ = full_run(None)
    return net.state_dict()
