"""What unlabelled samples add to `longtail fit`: others than those that are tested, and those.

CIFAR-100 features (500 to 5 a class), Caltech-101 features (300 to 3) and TF-IDF of BANKING77 (120
to 3). A split draws the training samples and two halves of the test part: one without its labels
to learn from, the other to be tested ("others"); then all of the test part is both ("test batch").
The target is the prior that the test part was drawn by: uniform, or for Caltech-101 the frequencies
of the whole train part. All is as in `longtail fit`: weight decay, τ and method are chosen on folds
of the training samples. Test labels only count what is right.

Whether only the prior changed, as `longtail fix` looks for it, is told from halves of the test part
too: one is the validation samples, balanced or cut to 50 to 2 a class, of the other new samples are
drawn by other priors; and then by features that shrank.

What self-training is made of was settled on the train part of CIFAR-100 alone: of 500 images a
class 100 are the test part there, and 400 to 4 are trained on.
Usage: `python benchmarks/unlabelled.py`, with the data beside the repository; two processes of one
thread each.
"""

import warnings
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import torch
from scipy import stats

import longtail as lt
from longtail.core.carried import matched_offsets
from longtail.core.neighbours import nearest
from longtail.flows.fit import best_of
from longtail.flows.fit_methods import METHODS, Aim
from longtail.flows.fit_problem import prepared
from longtail.flows.fit_samples import Samples, linear_layer
from longtail.flows.fit_unlabelled import Unlabelled
from longtail.flows.reproduce.experiment import Fit
from longtail.flows.reproduce.fits import long_tailed_set

DATA = Path(__file__).parents[2] / "shared/data"
FEATURES = DATA / "cifar100_features.npz"
PATHS = {"cifar100-features": FEATURES, "banking77": DATA / "text/banking77.tsv.gz"}
SETS = {  # and how many splits
    "CIFAR-100": (Fit("cifar100", 100), 20),
    "Caltech-101": (Fit("caltech", 100), 10),
    "BANKING77": (Fit("banking77", 40), 5),
}
WITHOUT, WITH = ("adjusted", "adjusted_tau"), ("matched", "self_trained")
FOLDS = 3
AS_IT_IS = {"count": 10, "share": 0.3, "match": True, "rounds": 3, "decay": 1.0}
VARIANTS = {
    "as it is": {},
    "1 round": {"rounds": 1},
    "4 rounds": {"rounds": 4},
    "no neighbours": {"share": 0.0},
    "no matching": {"match": False},
    "neither": {"share": 0.0, "match": False},
    "5 neighbours": {"count": 5},
    "20 neighbours": {"count": 20},
    "a share of 0.15": {"share": 0.15},
    "a share of 0.5": {"share": 0.5},
    "a share of 1": {"share": 1.0},
    "half the weight decay": {"decay": 0.5},
    "twice the weight decay": {"decay": 2.0},
}
DESIGNS = 3
CHANGES = {  # of the prior, by a Dirichlet distribution, and of the scale of the features
    "none": (None, 1.0),
    "prior, Dirichlet 3": (3, 1.0),
    "prior, Dirichlet 1": (1, 1.0),
    "features times 0.9": (None, 0.9),
    "features times 0.8, and prior, Dirichlet 3": (3, 0.8),
}
DRAWS = 20


def target_of(name, num_classes):
    if name != "Caltech-101":
        return lt.Prior.uniform(num_classes)
    return lt.Prior.from_labels(lt.data.caltech101_features().train_labels, num_classes)


def accuracy(scores, target):
    """Under the target, in %."""
    return 100 * lt.metrics.accuracy_under(scores, target=target)


def run(job):
    """One split: accuracies on held-out folds and on test samples, by setting and method."""
    name, split = job
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", RuntimeWarning)
    data = long_tailed_set(SETS[name][0], split, PATHS)
    target = target_of(name, data.num_classes)
    problem = prepared(data, Aim(target), FOLDS, split)
    rows = problem.samples.test.features
    order = np.random.default_rng(split).permutation(len(rows))
    halves = np.array_split(order, 2)
    settings = {"others": halves, "test batch": (order, order)}
    held, right, on = {}, {}, {}

    def measure(setting, method, problem, tested):
        parts, tau = problem.predicted_folds(method)
        joined = lt.Scores(torch.cat([part.logits for part in parts]), problem.labels)
        held[setting, method] = accuracy(joined, target)
        on[setting, method] = (joined.predict() == joined.labels).numpy()
        scores = problem.tested(method, problem.fitted(method, tau))
        for each, at in tested.items():
            right[each, method] = accuracy(scores.take(at), target)

    for method in WITHOUT:
        measure("", method, problem, {each: tested for each, (_, tested) in settings.items()})
    for setting, (others, tested) in settings.items():
        unlabelled = Unlabelled(rows[others], target)
        with_them = problem._replace(
            tasks=[replace(task, unlabelled=unlabelled) for task in problem.tasks],
            whole=replace(problem.whole, unlabelled=unlabelled),
        )
        for method in WITH:
            measure(setting, method, with_them, {setting: tested})

    def chosen(setting):
        """As `longtail fit` chooses, without unlabelled samples ("") or with these."""
        keys = [("", m) for m in WITHOUT] + [(setting, m) for m in WITH if setting]
        keys.sort(key=held.get, reverse=True)
        return best_of({key[1]: on[key] for key in keys}, problem.labels, target)

    picked = {setting: chosen(setting) for setting in ("", *settings)}
    return job, {key: len(others) for key, (others, _) in settings.items()}, right, picked


def design(split):
    """How much each variant gains on images of the train part, from 5,000 others and the batch."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", RuntimeWarning)
    with np.load(FEATURES) as stored:
        rows = torch.from_numpy(stored["train"] * stored["scale"])
        labels = torch.from_numpy(stored["train_label"].astype(np.int64))
    kept = np.asarray(lt.data.long_tailed_subset(labels, [100] * 100, split))
    is_test = torch.zeros(len(labels), dtype=torch.bool)
    is_test[torch.from_numpy(kept)] = True
    pool = (~is_test).nonzero().flatten()
    counts = lt.data.exponential_counts(400, 100, 100)
    drawn = pool[torch.as_tensor(lt.data.long_tailed_subset(labels[pool], counts, split))]
    train = Samples(rows[drawn], labels[drawn])
    order = torch.from_numpy(np.random.default_rng(split).permutation(kept))
    layer, gains = linear_layer(train, 100, 3e-3, None), {}
    for setting, others, tested in (
        ("others", order[:5000], order[5000:]),
        ("batch", order, order),
    ):
        right = partial(tested_by, rows[tested], labels[tested])
        plain = right(layer, lt.Prior.of(counts))
        for name, changes in VARIANTS.items():
            gains[name, setting] = right(*variant(train, layer, rows[others], changes)) - plain
    return gains


def tested_by(rows, labels, layer, carried):
    return accuracy(lt.Scores(layer(rows), labels, carried).under([1] * 100), [1] * 100)


def variant(train, layer, others, changes):
    """Self-training with another setting: the layer, and what it carries."""
    options = AS_IT_IS | changes
    carried, uniform = lt.Prior.from_labels(train.labels, 100), lt.Prior.uniform(100)
    neighbours = nearest(others.numpy(), options["count"])
    for _ in range(options["rounds"]):
        logits = lt.Scores(layer(others), carried=carried).under(uniform).logits.numpy()
        logits = neighbours.smoothed(logits, options["share"])
        offset = matched_offsets(logits, uniform).offset if options["match"] else 0.0
        guessed = torch.from_numpy((logits + offset).argmax(axis=1))
        both = Samples(torch.cat([train.features, others]), torch.cat([train.labels, guessed]))
        layer = linear_layer(both, 100, 3e-3 * options["decay"], layer, 1e-4)
        carried = lt.Prior.from_labels(both.labels, 100)
    return layer, carried


def alarms(draw):
    """Whether a change is told to be more than one of the prior, by kind and validation samples."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore", RuntimeWarning)
    data = long_tailed_set(SETS["CIFAR-100"][0], draw, PATHS)
    train, test = (tuple(map(torch.from_numpy, data.part(part))) for part in ("train", "test"))
    carried, random = lt.Prior.of(data.counts), np.random.default_rng(draw)
    layer = linear_layer(Samples(*train), 100, 3e-3, None)
    one, other = np.array_split(random.permutation(len(test[1])), 2)
    tail = np.maximum(lt.data.exponential_counts(50, 100, 25), 2)
    labels = test[1].numpy()
    small = np.concatenate([one[labels[one] == k][:n] for k, n in enumerate(tail)])
    found = {}
    for kind, (size, scale) in CHANGES.items():
        shares = np.ones(100) if size is None else random.dirichlet(np.full(100, size))
        most = np.ceil(50 * shares / shares.max()).astype(int)
        drawn = np.concatenate([other[labels[other] == k][:n] for k, n in enumerate(most)])
        new = lt.Scores(layer(scale * test[0][drawn]), carried=carried)
        for name, held in (("balanced", one), ("long-tailed", small)):
            validation = lt.Scores(layer(test[0][held]), labels[held], carried=carried)
            check = lt.shift.check_only_prior_changed(new, validation, seed=draw)
            found[kind, name] = check.is_doubtful
    return found


def shown(values, sign=""):
    """Mean, and half the 95 % interval of it over splits."""
    reach = stats.t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / len(values) ** 0.5
    return f"{np.mean(values):{sign}.2f} ± {reach:.2f}".replace("-", "−")


def row(setting, runs):
    """Every method, and what held-out folds choose without unlabelled samples and with them."""
    without, chosen, picked = [], [], 0
    for _, _, right, kept in runs:
        without.append(right[setting, kept[""]])
        chosen.append(right[setting, kept[setting]])
        picked += kept[setting] in WITH
    methods = [shown([each[2][setting, m] for each in runs]) for m in (*WITHOUT, *WITH)]
    gains = np.subtract(chosen, without)
    (name, _), sizes = runs[0][:2]
    what = (
        f"{setting} | {sizes[setting]:,}" if isinstance(setting, str) else f"others | {setting:,}"
    )
    cells = [name, what, *methods, shown(without), shown(chosen), shown(gains, "+")]
    worst = f"{gains.min():+.2f}".replace("-", "−")
    return f"| {' | '.join(cells)} | {worst} | {picked} of {len(runs)} |"


def main():
    jobs = [(name, split) for name in SETS for split in range(SETS[name][1])]
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        done = list(pool.map(run, jobs))
        designs = list(pool.map(design, range(DESIGNS)))
        told = list(pool.map(alarms, range(DRAWS)))
    say(done, designs, told)


def say(done, designs, told):
    print(f"""\
# Unlabelled samples in `longtail fit`

Made by `python benchmarks/unlabelled.py`. Accuracy under the target in % on test samples, mean over
splits with the 95 % interval of that mean. Others: half of the test part without labels, and the
other half is tested; halves are drawn from all test samples, not class by class. Test batch: the
whole test part is learned from without labels, and tested. "Without" is what {FOLDS} folds of the
training samples choose among the first two methods, "with" among all four, if the last two are
better there by more than a standard error; "chosen with" says how often they are.

| set | unlabelled | samples | {" | ".join(METHODS[name].title for name in (*WITHOUT, *WITH))} \
| without | with | gain | worst split | chosen with |
|---|---|{"---:|" * 10}""")
    for name in SETS:
        runs = [each for each in done if each[0][0] == name]
        for setting in runs[0][1]:
            print(row(setting, runs))
    print(f"""
## What self-training is made of

Points over the logit-adjusted layer, on images of the train part of CIFAR-100 alone, mean of
{DESIGNS} draws: 400 to 4 a class are trained on, 100 a class tested. The setting was settled there.

| self-training | 5,000 others | test batch |
|---|---:|---:|""")
    for name in VARIANTS:
        cells = (shown([g[name, each] for g in designs], "+") for each in ("others", "batch"))
        print(f"| {name} | {' | '.join(cells)} |")
    print(f"""
## Whether only the prior changed

How many of {DRAWS} draws are told to have changed by more than their prior, at a level of 1 %.

| change | balanced validation samples | long-tailed ones |
|---|---:|---:|""")
    for kind in CHANGES:
        cells = (sum(each[kind, name] for each in told) for name in ("balanced", "long-tailed"))
        print(f"| {kind} | {' | '.join(map(str, cells))} |")


if __name__ == "__main__":
    main()
