"""One pass over blocks gives what evaluate gives, with intervals that can be trusted."""

import numpy as np
import pytest
import torch

from longtail import Prior, Scores
from longtail.metrics import Comparison, Tally, evaluate, paired_gain
from longtail.metrics.class_variance import class_variances, share_interval

TRAIN = [500, 60, 40, 5]


def make(samples=400, seed=0, classes=4, absent=()):
    generator = torch.Generator().manual_seed(seed)
    present = [c for c in range(classes) if c not in absent]
    labels = torch.tensor(present)[torch.randint(0, len(present), (samples,), generator=generator)]
    logits = torch.randn(samples, classes, generator=generator)
    logits[torch.arange(samples), labels] += 1
    return logits, labels


def tallied(logits, labels, blocks, **options):
    tally = Tally(torch.bincount(labels, minlength=logits.shape[1]), **options)
    for rows, known in zip(logits.chunk(blocks), labels.chunk(blocks), strict=True):
        tally.add(rows, known)
    return tally.metrics()


@pytest.mark.parametrize("target", [None, [1, 1, 1, 1], [5, 3, 1, 1]])
@pytest.mark.parametrize("absent", [(), (2,)])
@pytest.mark.parametrize("blocks", [1, 7])
def test_every_metric_equals_that_of_evaluate(target, absent, blocks):
    logits, labels = make(absent=absent)
    scores = Scores(logits, labels, carried=TRAIN, counts=TRAIN)
    expected = evaluate(scores, target)
    prior = None if target is None else Prior.of(target)
    moved = logits if prior is None else scores.under(prior).logits
    got = tallied(moved, labels, blocks, target=prior, train_counts=TRAIN)
    assert got.keys() == expected.keys()
    for name, value in expected.items():
        if value is None:
            assert got[name].value is None
        else:
            np.testing.assert_allclose(got[name].value, value, rtol=1e-10, err_msg=name)


def test_the_interval_of_balanced_accuracy_has_the_width_of_the_closed_form():
    logits, labels = make(2000)
    got = tallied(logits, labels, 3)["balanced_accuracy"]
    counts = np.bincount(labels)
    recall = np.array([(logits.argmax(1) == labels)[labels == c].double().mean() for c in range(4)])
    error = np.sqrt((recall * (1 - recall) / counts).sum()) / 4
    np.testing.assert_allclose(got.high - got.low, 2 * 1.96 * error, rtol=0.1)


@pytest.mark.parametrize(
    "name", ["accuracy", "accuracy_under_target", "balanced_accuracy", "nll", "brier", "few"]
)
def test_95_percent_intervals_cover_the_truth_about_as_often(name):
    large = make(200_000, seed=1)
    truth = tallied(*large, 20, target=Prior.uniform(4), train_counts=TRAIN)[name].value
    covered = 0
    for seed in range(100):
        got = tallied(*make(400, seed=seed + 2), 1, target=Prior.uniform(4), train_counts=TRAIN)
        covered += got[name].low <= truth <= got[name].high
    assert covered >= 88


@pytest.mark.parametrize(
    ("most", "fewest", "first", "last"), [(20, 1, 0.95, 0.3), (3, 1, 0.9, 0.5), (40, 2, 0.99, 0.9)]
)
def test_intervals_of_classes_with_few_samples_cover_the_truth_as_often(most, fewest, first, last):
    rng, classes = np.random.default_rng(0), 40
    counts = np.round(np.geomspace(most, fewest, classes)).astype(int)
    recall = np.linspace(first, last, classes)
    labels = torch.from_numpy(np.repeat(np.arange(classes), counts))
    up, down = np.linspace(0.01, 0.3, classes), np.linspace(0.08, 0.01, classes)
    covered = np.zeros(4)
    for _ in range(200):
        right = rng.random(len(labels)) < recall[labels]
        again = rng.random(len(labels)) < 0.15
        after = np.where(again, rng.random(len(labels)) < recall[labels], right)
        hits = torch.bincount(labels[torch.from_numpy(right)], minlength=classes).double()
        known = torch.from_numpy(counts).double()
        for at, (shares, truth) in enumerate(
            [(torch.ones(classes) / classes, recall.mean()), (known / known.sum(), None)]
        ):
            low, high = share_interval(hits, known, shares.double())
            wanted = float(shares.double() @ torch.from_numpy(recall)) if truth is None else truth
            covered[at] += low <= wanted <= high
        sides = torch.from_numpy(right), torch.from_numpy(after)
        gain = paired_gain(*sides, labels, Prior.uniform(classes))
        covered[2] += gain.low <= 0 <= gain.high
        drawn = rng.random(len(labels))  # as scores that are moved: the tail rises, the head falls
        after = np.where(
            right, drawn >= (down / recall)[labels], drawn < (up / (1 - recall))[labels]
        )
        sides = torch.from_numpy(right), torch.from_numpy(after)
        gain = paired_gain(*sides, labels, Prior.uniform(classes))
        rises = np.minimum(up, 1 - recall)  # of a class that has all right nothing can rise
        covered[3] += gain.low <= (rises - down).mean() <= gain.high
    # Said is 90 % for accuracies and 95 % for gains; what lies below is the chance of 200 trials.
    assert (covered[:2] >= 0.88 * 200).all(), covered
    assert (covered[2:] >= 0.91 * 200).all(), covered
    assert covered[0] < 200  # intervals that hold everything would say nothing


def test_a_small_class_all_right_is_not_credited_with_the_certainty_it_seems_to_have():
    """20 samples beside 1000: without an end to the credit, 73 % of these intervals hold."""
    rng, recall = np.random.default_rng(0), np.array([0.8, 0.95])
    counts = torch.tensor([1000.0, 20.0], dtype=torch.float64)
    held = 0
    for _ in range(300):
        hits = torch.from_numpy(rng.binomial(counts.numpy().astype(int), recall)).double()
        low, high = share_interval(hits, counts, torch.tensor([0.5, 0.5], dtype=torch.float64))
        held += low <= recall.mean() <= high
    assert 0.93 * 300 <= held < 300


def test_without_a_class_of_two_the_variance_is_the_unbiased_one_of_all_samples():
    terms = torch.tensor([1.0, 4.0, 2.0, 9.0], dtype=torch.float64)
    found = class_variances(terms, terms.square(), torch.ones(4, dtype=torch.float64))
    np.testing.assert_allclose(found, float(terms.var(correction=1)))


def test_a_single_sample_has_no_interval_of_its_log_loss():
    got = tallied(torch.tensor([[2.0, 0.0]]), torch.tensor([0]), 1)
    for name in ("nll", "brier"):
        assert got[name].value > 0
        assert (got[name].low, got[name].high) == (None, None)
    assert got["accuracy"].low < 0.5  # of a share it is known that it lies within 0 to 1


def test_a_sample_a_class_all_right_does_not_make_an_accuracy_certain():
    right = tallied(torch.eye(4), torch.arange(4), 1)["balanced_accuracy"]
    assert right.value == right.high == 1
    assert 0.3 < right.low < 0.7


def test_all_samples_right_does_not_make_the_worst_class_certain():
    labels = torch.arange(4).repeat(3)
    got = tallied(2 * torch.eye(4)[labels], labels, 1)
    for name in ("worst_class", "geometric_mean"):
        assert got[name].value == got[name].high == 1
        assert got[name].low < 0.95


def test_a_group_without_samples_has_no_value_and_no_interval():
    logits, labels = make(absent=(3,))
    few = tallied(logits, labels, 2, train_counts=TRAIN)["few"]
    assert (few.value, few.low, few.high) == (None, None, None)


def test_add_says_which_samples_were_right():
    logits, labels = make(50)
    terms = Tally(torch.bincount(labels, minlength=4)).add(logits, labels)
    assert torch.equal(terms.right, logits.argmax(1) == labels)


LOGITS = torch.tensor([[2.0, 0.0], [0.0, 1.0], [0.5, 0.0]])
LABELS = torch.tensor([0, 0, 1])


@pytest.mark.parametrize("wrong", [[0, 3], [3, 0], [1, 1], [3, 1], [2, 2]])
def test_label_counts_that_are_not_those_of_the_labels_are_refused(wrong):
    tally = Tally(wrong)
    tally.add(LOGITS, LABELS)
    with pytest.raises(ValueError, match=r"label_counts says that \d samples of class \d come"):
        tally.metrics()


def test_a_comparison_refuses_them_too():
    both = Comparison([3, 0])
    both.add(LOGITS, LOGITS, LABELS)
    for read in (both.metrics, both.gains, both.as_json):
        with pytest.raises(ValueError, match="label_counts says"):
            read()


def test_a_tally_that_lacks_a_block_says_so():
    tally = Tally([2, 1])
    tally.add(LOGITS[:2], LABELS[:2])
    with pytest.raises(ValueError, match="1 samples of class 1 come, but 0 were added"):
        tally.metrics()
    tally.add(LOGITS[2:], LABELS[2:])
    assert tally.metrics()["nll"].value > 0


def test_target_and_training_counts_must_be_of_the_same_classes():
    with pytest.raises(ValueError, match="label_counts have 2 classes but the target has 3"):
        Tally([2, 1], target=Prior.uniform(3))
    with pytest.raises(ValueError, match="one entry for each of 2 classes, got 3"):
        Tally([2, 1], train_counts=[5, 4, 3])


def test_no_interval_of_a_share_leaves_zero_to_one():
    """A handful of samples, all of them wrong and sure of it."""
    found = tallied(20 * torch.eye(4).roll(1, dims=1), torch.arange(4), 1)
    assert found["ece"].value == pytest.approx(1, abs=1e-6)
    assert found["ece"].high == 1


def test_one_or_two_samples_say_nothing_of_the_worst_class():
    labels = torch.tensor([0] * 10 + [1] * 2)
    logits = torch.tensor([[2.0, 0.0]] * 12)
    worst = tallied(logits, labels, 12)["worst_class"]
    assert (worst.value, worst.low, worst.high) == (0.0, None, None)
    more = tallied(logits.repeat(3, 1), labels.repeat(3), 12)["worst_class"]
    assert more.value == more.low == 0.0
    assert more.high > 0.1
