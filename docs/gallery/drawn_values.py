"""What the figures of the gallery are drawn of: layers and heads on the features in the package."""

from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace

import torch

import longtail as lt

TAUS = (0.0, 1 / 16, 1 / 8, 1 / 4, 1 / 2)


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
    by_tau = {tau: learned_recalls(tau, train, labels, test, truth) for tau in TAUS}
    local = lt.heads.MetricNCM(16, 101, metric="eigenbasis", learn_centers=False)
    lt.fit_head(local, train[:, :16], labels, sgd=lt.heads.SGDConfig(lr=10.0, epochs=10))
    adjusted = scores.under(uniform)
    both = {"cross-entropy": scores, "adjusted": adjusted}
    moved = unseen.under(uniform)
    temperature = lt.posthoc.Temperature.fit(some.under(uniform))
    held = {
        "cross-entropy": unseen,
        "adjusted": moved,
        "and with a temperature": temperature(moved),
    }
    # All classes count alike, as they do under the uniform prior.
    weights = (1 / lt.class_counts(truth[~half], 101).double())[truth[~half]]
    curves = {n: lt.metrics.reliability(s.logits, s.labels, weights, 14) for n, s in held.items()}
    features = {"all 256 directions": test, "the first 32": test[:, :32]}
    variances = lt.metrics.representations.intra_class_variance(train, labels, 101, measure="trace")
    return SimpleNamespace(
        counts=counts,
        classes=data.classes,
        labels=truth,
        scores=scores,
        by_tau=by_tau,
        # Class by class, as on a balanced test set.
        probabilities={
            n: lt.metrics.representations.class_means(s.probs(), truth, 101).mean(0)
            for n, s in both.items()
        },
        recalls={n: lt.metrics.recalls(s) for n, s in both.items()},
        false_positives={n: lt.metrics.false_positives(s) for n, s in both.items()},
        margins={n: lt.metrics.margins(s) for n, s in both.items()},
        class_logits=lt.metrics.class_logits(adjusted),
        reliability=curves,
        ece={n: lt.metrics.ece(s.logits, s.labels, weights) for n, s in held.items()},
        norms=lt.metrics.representations.weight_norms(layer.weight),
        bias=layer.bias,
        offsets=lt.metrics.representations.class_offsets(
            layer.weight, lt.metrics.representations.class_means(train, labels, 101)
        ),
        test_variances=lt.metrics.representations.intra_class_variance(test, truth, 101),
        distances={
            n: lt.metrics.representations.largest_intra_class_distances(f, truth, 101)
            for n, f in features.items()
        },
        displacement=lt.metrics.representations.centroid_displacement(centers[-1], centers[0]),
        cdnv=[lt.metrics.representations.mean_cdnv(variances, each) for each in centers],
        projections=local.projections,
        train_features=train,
        train_labels=labels,
        sgd=[(lt.metrics.representations.weight_norms(each.weight), counts) for each in sgd],
        adam=[(lt.metrics.representations.weight_norms(each.weight), counts) for each in adam],
        log=log,
    )


def learned_recalls(
    tau: float,
    features: torch.Tensor,
    labels: torch.Tensor,
    test: torch.Tensor,
    truth: torch.Tensor,
) -> torch.Tensor:
    """The recalls of learned NCM trained by the logit-adjusted loss with this τ (NCM eq. 9)."""
    head = lt.heads.LearnedNCM(256, 101)
    lt.fit_head(head, features, labels, sgd=replace(head.sgd, tau=tau))
    recalls: torch.Tensor = lt.metrics.recalls(head(test).detach(), truth)
    return recalls


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
