"""One pass over blocks gives what evaluate gives, with intervals that can be trusted."""

import pickle
import subprocess
import sys

import numpy as np
import pytest
import torch

from longtail import Prior, Scores
from longtail import metrics as m
from longtail.metrics import Accumulator, Difference, evaluate, paired_gain
from longtail.stats import class_variances, share_interval

TRAIN = [500, 60, 40, 5]


def make(samples=400, seed=0, classes=4, absent=()):
    generator = torch.Generator().manual_seed(seed)
    present = [c for c in range(classes) if c not in absent]
    labels = torch.tensor(present)[torch.randint(0, len(present), (samples,), generator=generator)]
    logits = torch.randn(samples, classes, generator=generator)
    logits[torch.arange(samples), labels] += 1
    return logits, labels


def tallied(logits, labels, blocks, **options):
    counts = torch.bincount(labels, minlength=logits.shape[1])
    sums = Accumulator(logits.shape[1], label_counts=counts, **options)
    for rows, known in zip(logits.chunk(blocks), labels.chunk(blocks), strict=True):
        sums.add(rows, known)
    return sums.metrics()


@pytest.mark.parametrize("target", [None, [1, 1, 1, 1], [5, 3, 1, 1]])
@pytest.mark.parametrize("absent", [(), (2,)])
@pytest.mark.parametrize("blocks", [1, 7])
@pytest.mark.parametrize(("kind", "near"), [(torch.float64, 1e-10), (torch.float32, 1e-6)])
def test_every_metric_equals_that_of_evaluate(target, absent, blocks, kind, near):
    logits, labels = make(absent=absent)
    logits = logits.to(kind)
    scores = Scores(logits, labels, carried=TRAIN, counts=TRAIN)
    expected = evaluate(scores, target=target)
    prior = None if target is None else Prior.of(target)
    moved = logits if prior is None else scores.under(prior).logits
    got = tallied(moved, labels, blocks, target=prior, counts=TRAIN)
    assert got.keys() == expected.keys()
    for name, value in expected.items():
        if value is None:
            assert got[name].value is None
        else:
            np.testing.assert_allclose(got[name].value, value, rtol=near, err_msg=name)


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
    truth = tallied(*large, 20, target=Prior.uniform(4), counts=TRAIN)[name].value
    covered = 0
    for seed in range(100):
        got = tallied(*make(400, seed=seed + 2), 1, target=Prior.uniform(4), counts=TRAIN)
        covered += got[name].low <= truth <= got[name].high
    assert covered >= 88


@pytest.mark.parametrize(
    ("most", "fewest", "first", "last"), [(20, 1, 0.95, 0.3), (3, 1, 0.9, 0.5), (40, 2, 0.99, 0.9)]
)
def test_intervals_of_classes_with_few_samples_cover_the_truth_as_often(most, fewest, first, last):
    rng, classes = np.random.default_rng(0), 40
    counts = np.round(np.geomspace(most, fewest, classes)).astype(int)
    recall = np.linspace(first, last, classes)
    labels = np.repeat(np.arange(classes), counts)
    up, down = np.linspace(0.01, 0.3, classes), np.linspace(0.08, 0.01, classes)
    covered = np.zeros(4)
    for _ in range(200):
        right = rng.random(len(labels)) < recall[labels]
        again = rng.random(len(labels)) < 0.15
        after = np.where(again, rng.random(len(labels)) < recall[labels], right)
        hits = np.bincount(labels[right], minlength=classes).astype(float)
        for at, shares in enumerate([np.ones(classes) / classes, counts / counts.sum()]):
            low, high = share_interval(hits, counts.astype(float), shares)
            covered[at] += low <= shares @ recall <= high
        gain = paired_gain(right, after, labels, target=Prior.uniform(classes))
        covered[2] += gain.low <= 0 <= gain.high
        drawn = rng.random(len(labels))  # as scores that are moved: the tail rises, the head falls
        after = np.where(
            right, drawn >= (down / recall)[labels], drawn < (up / (1 - recall))[labels]
        )
        gain = paired_gain(right, after, labels, target=Prior.uniform(classes))
        rises = np.minimum(up, 1 - recall)  # of a class that has all right nothing can rise
        covered[3] += gain.low <= (rises - down).mean() <= gain.high
    # Said is 90 % for accuracies and 95 % for gains; what lies below is the chance of 200 trials.
    assert (covered[:2] >= 0.88 * 200).all(), covered
    assert (covered[2:] >= 0.91 * 200).all(), covered
    assert covered[0] < 200  # intervals that hold everything would say nothing


def test_a_small_class_all_right_is_not_credited_with_the_certainty_it_seems_to_have():
    """20 samples beside 1000: without an end to the credit, 73 % of these intervals hold."""
    rng, recall = np.random.default_rng(0), np.array([0.8, 0.95])
    counts = np.array([1000.0, 20.0])
    held = 0
    for _ in range(300):
        hits = rng.binomial(counts.astype(int), recall).astype(float)
        low, high = share_interval(hits, counts, np.array([0.5, 0.5]))
        held += low <= recall.mean() <= high
    assert 0.93 * 300 <= held < 300


def test_without_a_class_of_two_the_variance_is_the_unbiased_one_of_all_samples():
    terms = np.array([1.0, 4.0, 2.0, 9.0])
    found = class_variances(terms, terms**2, np.ones(4))
    np.testing.assert_allclose(found, terms.var(ddof=1))


def test_a_single_sample_has_no_interval_of_its_log_loss():
    got = tallied(torch.tensor([[2.0, 0.0]]), torch.tensor([0]), 1)
    for name in ("nll", "brier"):
        assert got[name].value > 0
        assert (got[name].low, got[name].high) == (None, None)
    assert got["accuracy"].low < 0.5  # of a share it is known that it lies within 0 to 1


def test_a_sample_a_class_all_right_does_not_make_an_accuracy_certain():
    right = tallied(2 * torch.eye(4), torch.arange(4), 1)["balanced_accuracy"]
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
    few = tallied(logits, labels, 2, counts=TRAIN)["few"]
    assert (few.value, few.low, few.high) == (None, None, None)


def test_add_says_which_samples_were_right():
    logits, labels = make(50)
    terms = Accumulator(4).add(logits, labels)
    np.testing.assert_array_equal(terms.right, logits.argmax(1) == labels)
    np.testing.assert_allclose(terms.confidence, logits.double().softmax(1).amax(1))


LOGITS = torch.tensor([[2.0, 0.0], [0.0, 1.0], [0.5, 0.0]])
LABELS = torch.tensor([0, 0, 1])


@pytest.mark.parametrize("wrong", [[0, 3], [3, 0], [1, 1], [3, 1], [2, 2]])
def test_label_counts_that_are_not_those_of_the_labels_are_refused(wrong):
    tally = Accumulator(2, label_counts=wrong)
    tally.add(LOGITS, LABELS)
    with pytest.raises(ValueError, match=r"label_counts.*\d samples of class \d"):
        tally.metrics()


def test_a_comparison_refuses_them_too():
    both = Difference(2, label_counts=[3, 0])
    both.add(LOGITS, LOGITS, LABELS)
    for read in (both.metrics, both.gains, both.as_json):
        with pytest.raises(ValueError, match="label_counts says"):
            read()


def test_a_tally_that_lacks_a_block_says_so():
    tally = Accumulator(2, label_counts=[2, 1])
    tally.add(LOGITS[:2], LABELS[:2])
    with pytest.raises(ValueError, match=r"1 samples of class 1.*0 were added"):
        tally.metrics()
    tally.add(LOGITS[2:], LABELS[2:])
    assert tally.metrics()["nll"].value > 0


def test_target_and_training_counts_must_be_of_the_same_classes():
    with pytest.raises(ValueError, match=r"2 classes.*target.*3"):
        Accumulator(2, target=Prior.uniform(3))
    with pytest.raises(ValueError, match="each of 2 classes, got 3"):
        Accumulator(2, counts=[5, 4, 3])


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


@pytest.mark.parametrize("target", [None, Prior.of([5, 3, 1, 1])])
def test_parts_merge_to_what_one_pass_gives(target):
    logits, labels = make(absent=(2,))
    whole = Accumulator.of(Scores(logits, labels), target, TRAIN)
    seen = torch.bincount(labels, minlength=4)
    parts = [Accumulator(4, target, TRAIN, label_counts=seen) for _ in range(3)]
    for part, rows, known in zip(parts, logits.chunk(3), labels.chunk(3), strict=True):
        part.add(rows, known)
    merged = parts[0] + parts[1] + parts[2]
    for name, value in whole.values().items():
        assert merged.values()[name] == (value if value is None else pytest.approx(value)), name
    np.testing.assert_array_equal(merged.samples, whole.samples)
    np.testing.assert_allclose(merged.reliability.share, whole.reliability.share)
    assert parts[0].samples.sum() < merged.samples.sum()  # which is left as it was


@pytest.mark.parametrize("target", [None, Prior.of([5, 3, 1, 1])])
def test_sums_of_whole_sets_merge_to_those_of_both(target):
    logits, labels = make(absent=(2,))
    whole = Accumulator.of(Scores(logits, labels), target, TRAIN)
    cuts = (slice(None, 40), slice(40, None))
    first, second = (Accumulator.of(Scores(logits[c], labels[c]), target, TRAIN) for c in cuts)
    merged = (first + second).values()
    for name, value in whole.values().items():
        if target is None or name != "classwise_ece":
            assert merged[name] == (value if value is None else pytest.approx(value)), name
    assert target is None or merged["classwise_ece"] is None  # no sum of the two


def test_whole_sets_of_the_same_labels_merge_under_a_target_too():
    logits, labels = make(200)
    target, others = [5, 3, 1, 1], make(200, seed=1)[0]
    parts = [Accumulator.of(Scores(rows, labels), target) for rows in (logits, others)]
    both = Scores(torch.cat([logits, others]), torch.cat([labels, labels]))
    assert (parts[0] + parts[1]).classwise_ece == pytest.approx(
        Accumulator.of(both, target).classwise_ece
    )


def test_groups_of_the_same_names_but_other_classes_do_not_merge():
    one, other = (Accumulator(2, groups={"some": mask}) for mask in ([True, False], [False, True]))
    with pytest.raises(ValueError, match="made alike"):
        one + other


def test_sums_that_were_made_otherwise_do_not_merge():
    for other in (Accumulator(3), Accumulator(4, [1, 2, 3, 4]), Accumulator(4, bins=10)):
        with pytest.raises(ValueError, match="made alike"):
            Accumulator(4) + other


def test_after_a_reset_it_starts_anew():
    logits, labels = make()
    sums = Accumulator(4)
    sums.add(logits[:9], labels[:9])
    sums.reset()
    with pytest.raises(ValueError, match="none was added"):
        sums.metrics()
    sums.add(logits, labels)
    assert sums.values() == Accumulator.of(Scores(logits, labels)).values()


def test_without_label_counts_only_the_class_wise_error_under_a_target_is_missing():
    logits, labels = make()
    target = Prior.of([5, 3, 1, 1])
    known, stream = Accumulator.of(Scores(logits, labels), target), Accumulator(4, target)
    stream.add(logits, labels)
    values = stream.values()
    assert values.pop("classwise_ece") is None
    assert values == {k: v for k, v in known.values().items() if k != "classwise_ece"}


def test_weights_are_repetitions():
    logits, labels = make(40)
    times = torch.arange(40) % 4
    repeated = Accumulator(4)
    repeated.add(logits.repeat_interleave(times, 0), labels.repeat_interleave(times))
    weighted = Accumulator(4)
    weighted.add(logits, labels, times)
    assert weighted.values() == pytest.approx(repeated.values())


def test_a_class_without_samples_has_no_recall_and_false_positives_are_counted():
    logits, labels = make(absent=(2,))
    sums = Accumulator.of(Scores(logits, labels))
    assert np.isnan(sums.recalls).tolist() == [False, False, True, False]
    wrong = logits.argmax(1)[logits.argmax(1) != labels]
    np.testing.assert_array_equal(sums.false_positives, np.bincount(wrong, minlength=4))


def test_every_metric_takes_scores_logits_predictions_and_sums():
    logits, labels = make()
    scores = Scores(logits, labels)
    sums = Accumulator.of(scores)
    for metric in (m.accuracy, m.balanced_accuracy, m.balanced_error, m.geometric_mean):
        alike = {metric(scores), metric(logits, labels), metric(scores.predict(), labels)}
        assert alike == {metric(sums)}
    for metric in (m.nll, m.brier, m.ece, m.classwise_ece):
        assert metric(scores) == metric(logits, labels) == metric(sums)
    for metric in (m.recalls, m.false_positives, m.margins):
        np.testing.assert_array_equal(metric(scores), metric(logits, labels))
    with pytest.raises(ValueError, match="leave them out"):
        m.ece(sums, bins=5)


def test_only_what_is_public_is_listed():
    assert "np" not in dir(m)
    assert {"Accumulator", "evaluate", "nll"} <= set(dir(m)) == set(m.__all__)
    assert all(hasattr(m, name) for name in dir(m))
    assert "np" not in dir(m.representations)


def test_sums_from_another_process_go_on_growing_and_merge():
    logits, labels = make()
    sent = Accumulator(4)
    sent.add(logits[:100], labels[:100])
    came, rest = pickle.loads(pickle.dumps(sent)), Accumulator(4)  # noqa: S301
    came.add(logits[100:200], labels[100:200])
    rest.add(logits[200:], labels[200:])
    whole = Accumulator.of(Scores(logits, labels)).values()
    assert (came + rest).values() == pytest.approx(whole)


def test_metrics_need_no_torch():
    code = (
        "import sys; sys.modules['torch'] = None; import longtail as lt, numpy as np; "
        "scores = lt.Scores(np.eye(4) * 3, np.arange(4), carried=[4, 3, 2, 1]); "
        "lt.metrics.evaluate(scores, target=[1, 1, 1, 1]); assert 'scipy' not in sys.modules; "
        "lt.metrics.Accumulator.of(scores).metrics(); lt.metrics.representations.cdnv([1, 2], "
        "np.eye(2)); lt.metrics.Difference.of(scores, scores.under([1, 1, 1, 1])).gains()"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([[0.2, 0.8], [0.5, 0.5], [1.0, 0.0]], "probabilities"),
        ([[2.0, 0.0], [float("nan"), 0.0], [1.0, 0.5]], "nan in row 1, class 0"),
        ([[2.0, 0.0], [float("inf"), 0.0], [1.0, 0.5]], "inf in row 1, class 0"),
        ([[2, 0], [1, 0], [1, 5]], "floating type"),
    ],
)
def test_what_are_no_logits_is_refused_before_any_of_it_counts(rows, sentence):
    sums, both = Accumulator(2), Difference(2)
    with pytest.raises(ValueError, match=sentence):
        sums.add(rows, [0, 1, 0])
    with pytest.raises(ValueError, match=sentence):
        both.add([[2.0, 0.0]] * 3, rows, [0, 1, 0])
    with pytest.raises(ValueError, match=sentence):
        both.add(rows, [[2.0, 0.0]] * 3, [0, 1, 0])
    for each in (sums, both.before, both.after):
        assert each.samples.tolist() == [0, 0]


@pytest.mark.parametrize("target", [None, [5, 3, 1, 1]])
def test_what_each_sample_adds_is_enough_for_all_but_the_probabilities_of_other_classes(target):
    logits, labels = make(absent=(2,))
    whole = Accumulator(4, target)
    right, nll, brier, confidence = whole.add(logits, labels)
    sums = Accumulator.of_terms(labels, right, 4, confidence=confidence, nll=nll, brier=brier)
    made, expected = sums.under(target).values(), whole.values()
    error = made.pop("classwise_ece")
    assert error is None if target else np.isnan(error)
    expected.pop("classwise_ece")
    assert made == pytest.approx(expected)
    assert sums.under(target).reliability.ece == pytest.approx(expected["ece"])


def test_what_is_not_known_of_the_samples_is_nan():
    bare = Accumulator.of_terms([0, 0, 1], [True, False, True], 2).values()
    assert (bare["balanced_accuracy"], bare["accuracy"]) == (0.75, pytest.approx(2 / 3))
    assert np.isnan([bare[name] for name in ("nll", "brier", "ece", "classwise_ece")]).all()
