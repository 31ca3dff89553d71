"""What the figures of the gallery are drawn of: layers and heads on the features in the package."""

from collections.abc import Callable
from types import SimpleNamespace

import torch

import longtail as lt


def world() -> SimpleNamespace:
    """What the figures are drawn of, the same every time."""
    data = lt.data.caltech101_long_tailed()
    train, labels = torch.from_numpy(data.train_features), torch.from_numpy(data.train_labels)
    test, truth = torch.from_numpy(data.test_features), torch.from_numpy(data.test_labels)
    counts = lt.class_counts(labels, 101)

    log: list[dict[str, float | None]] = []

    def after(epoch: int, layer: torch.nn.Linear) -> None:
        groups = lt.metrics.group_accuracies(layer(test), truth, groups=lt.shot_groups(counts))
        log.append({"epoch": epoch, **{f"val_{name}": value for name, value in groups.items()}})

    layer = trained("SGD", 0, train, labels, after)
    sgd = [layer, trained("SGD", 1, train, labels), trained("SGD", 2, train, labels)]
    adam = [trained("Adam", seed, train, labels) for seed in range(3)]
    logits = layer(test).detach()
    scores = lt.Scores(logits, truth, carried=counts, counts=counts, classes=data.classes)
    uniform = lt.Prior.uniform(101)
    half = torch.arange(len(truth)) % 2 == 0  # one half to fit a temperature, the other to look at
    some, unseen = (lt.Scores(logits[at], truth[at], counts) for at in (half, ~half))

    ncm = lt.heads.LearnedNCM(256, 101)
    ncm.set_moments(lt.heads.class_moments(train, labels, 101))
    centers = [ncm.rows.detach().clone()]
    lt.fit_head(ncm, train, labels, progress=lambda _: centers.append(ncm.rows.detach().clone()))
    local = lt.heads.MetricNCM(16, 101, metric="eigenbasis", learn_centers=False)
    lt.fit_head(local, train[:, :16], labels, sgd=lt.heads.SGDConfig(lr=10.0, epochs=10))
    return SimpleNamespace(
        counts=counts,
        classes=data.classes,
        labels=truth,
        scores=scores,
        adjusted=scores.under(uniform),
        temperature=lt.posthoc.Temperature.fit(some.under(uniform)),
        unseen=unseen,
        uniform=uniform,
        norms=lt.metrics.representations.weight_norms(layer.weight),
        weight=layer.weight,
        bias=layer.bias,
        means=lt.metrics.representations.class_means(train, labels, 101),
        variances=lt.metrics.representations.intra_class_variance(
            train, labels, 101, measure="trace"
        ),
        centers=centers,
        projections=local.projections,
        train_features=train,
        train_labels=labels,
        test_features=test,
        sgd=[(each.weight, counts) for each in sgd],
        adam=[(each.weight, counts) for each in adam],
        log=log,
    )


def trained(
    optimizer: str,
    seed: int,
    features: torch.Tensor,
    labels: torch.Tensor,
    after: Callable[[int, torch.nn.Linear], None] | None = None,
) -> torch.nn.Linear:
    """A linear layer trained by a few epochs of either optimiser."""
    source = torch.Generator().manual_seed(seed)
    layer = torch.nn.Linear(256, 101)
    with torch.no_grad():
        layer.weight.copy_(0.05 * torch.randn(101, 256, generator=source))
        layer.bias.zero_()
    parameters = list(layer.parameters())
    steps = {
        "SGD": torch.optim.SGD(parameters, lr=0.1, momentum=0.9),
        "Adam": torch.optim.Adam(parameters, lr=0.003),
    }[optimizer]
    for epoch in range(1, 13):
        for rows in torch.randperm(len(labels), generator=source).split(256):
            steps.zero_grad()
            loss = torch.nn.functional.cross_entropy(layer(features[rows]), labels[rows])
            loss.backward()
            steps.step()
        if after is not None:
            after(epoch, layer)
    return layer
