"""The audit: its numbers by hand, its sentences only where the numbers speak for them."""

import json
import math

import numpy as np
import pytest
import torch
from scipy import stats

from longtail.core import Prior
from longtail.flows.audit import audit, audit_counts
from longtail.report import Footer, render_page
from longtail.report.pages.audit import audit_page, audit_tables, expectations, why

TRAIN = [500, 120, 40, 20, 19, 7, 1, 1, 0, 30, 25]
TEST = [50, 60, 10, 0, 9, 4, 2, 0, 3, 30, 1]


def said(train, test=None, classes=None):
    return " ".join(expectations(audit_counts(train, test, classes)))


def tried(train, test=None, classes=None):
    found = audit_counts(train, test, classes)
    return " ".join(
        " ".join((why(found, each), each.command, each.python)) for each in found.remedies
    )


def test_the_profile_is_what_loops_over_the_counts_give():
    profile = audit_counts(TRAIN).train
    total, size = sum(TRAIN), len(TRAIN)
    pairs = sum(abs(a - b) for a in TRAIN for b in TRAIN)
    entropy = -sum(n / total * math.log(n / total) for n in TRAIN if n)
    assert (profile.num_samples, profile.num_classes) == (total, size)
    assert (profile.largest.name, profile.largest.count) == ("0", 500)
    assert (profile.smallest.name, profile.smallest.count) == ("6", 1)
    assert profile.imbalance_ratio == 500
    assert profile.gini == pytest.approx(pairs / (2 * size * total))
    assert profile.effective_classes == pytest.approx(math.exp(entropy))
    assert profile.head_share == pytest.approx((500 + 120) / total)  # two of eleven classes
    assert (profile.single, profile.absent) == (("6", "7"), ("8",))


def test_a_balanced_set_is_at_the_end_of_every_measure():
    profile = audit_counts([7] * 20).train
    assert (profile.imbalance_ratio, profile.gini) == (1, 0)
    assert profile.effective_classes == pytest.approx(20)
    assert profile.head_share == pytest.approx(0.1)
    assert audit_counts([7] * 20).bias == 0


def test_one_class_with_everything_is_at_the_other_end():
    profile = audit_counts([100, 0, 0, 0]).train
    assert profile.effective_classes == pytest.approx(1)
    assert profile.gini == pytest.approx(3 / 4)


def test_groups_have_the_classes_and_samples_of_their_range():
    many, medium, few = audit_counts(TRAIN).groups
    assert [g.num_classes for g in (many, medium, few)] == [2, 4, 5]
    assert [g.num_samples for g in (many, medium, few)] == [620, 115, 28]
    assert few.tested_classes is few.mean_error is None


def test_standard_errors_are_those_of_binomial_shares():
    few = audit_counts(TRAIN, TEST).groups[-1]
    held = [9, 4, 2, 3]  # the few-shot classes that have test samples
    assert (few.tested_classes, few.tested_samples, few.median) == (4, 18, 3.5)
    assert few.class_error == pytest.approx(100 * 0.5 / math.sqrt(3.5))
    variance = sum(0.25 / m for m in held) / len(held) ** 2
    assert few.mean_error == pytest.approx(100 * math.sqrt(variance))


def test_simulated_recalls_vary_by_the_error_that_is_told():
    group = audit_counts([10] * 5, [4, 9, 16, 25, 9]).groups[-1]
    draws = np.random.default_rng(0).binomial([4, 9, 16, 25, 9], 0.5, size=(20_000, 5))
    means = 100 * (draws / [4, 9, 16, 25, 9]).mean(axis=1)
    assert group.mean_error == pytest.approx(means.std(), rel=0.03)


def test_the_shift_is_what_loops_over_the_shares_give():
    shift = audit_counts(TRAIN, TEST).shift
    n, m = sum(TRAIN), sum(TEST)
    p, q = [count / n for count in TRAIN], [count / m for count in TEST]
    smooth = [(count + 0.5) / (n + 0.5 * len(TRAIN)) for count in TRAIN]
    assert shift.total_variation == pytest.approx(sum(map(abs, np.subtract(p, q))) / 2)
    assert shift.to_uniform == pytest.approx(sum(abs(b - 1 / 11) for b in q) / 2)
    divergence = sum(b * math.log(b / s) for b, s in zip(q, smooth, strict=True) if b)
    assert shift.divergence == pytest.approx(divergence)
    assert (shift.not_in_test, shift.not_in_train) == (("3", "7"), ("8",))
    first = shift.moves[0]
    assert (first.name, first.train, first.test) == ("0", p[0], q[0])
    sizes = [abs(move.train - move.test) for move in shift.moves]
    assert sizes == sorted(sizes, reverse=True)


def test_without_absent_classes_the_divergence_is_not_smoothed():
    shift = audit_counts([3, 1], [1, 1]).shift
    assert shift.divergence == pytest.approx(
        0.5 * math.log(0.5 / 0.75) + 0.5 * math.log(0.5 / 0.25)
    )


@pytest.mark.parametrize(
    ("train", "test"),
    [([90, 50, 40, 6], [30, 30, 20, 9]), ([200, 100, 50, 25, 12, 6], [60, 40, 10, 9, 8, 0])],
)
def test_surprise_is_the_chi_square_test_of_scipy_as_a_normal_deviate(train, test):
    expected = stats.norm.isf(stats.chi2_contingency([train, test], correction=False).pvalue)
    assert audit_counts(train, test).shift.surprise == pytest.approx(expected, rel=0.02, abs=0.02)


def test_sets_drawn_from_one_prior_differ_by_chance_and_are_called_alike():
    draw = np.random.default_rng(0)
    prior = np.geomspace(1, 0.01, 30) / np.geomspace(1, 0.01, 30).sum()
    shifts = [
        audit_counts(draw.multinomial(5000, prior), draw.multinomial(1000, prior)).shift
        for _ in range(200)
    ]
    told = np.mean([shift.by_chance for shift in shifts])
    assert told == pytest.approx(np.mean([shift.total_variation for shift in shifts]), rel=0.05)
    assert sum(shift.is_real for shift in shifts) <= 8
    assert audit_counts(1000 * prior // 1 + 1, 100 * prior[::-1] // 1 + 1).shift.is_real


@pytest.mark.parametrize(
    ("train", "test", "findings"),
    [
        ([900, 90, 10], None, "tail small_tail"),
        ([50, 50], None, "balanced"),
        ([19, 15, 5], None, "tail scarce"),
        ([900, 300, 90], [50, 50, 50], "tail test_balanced"),
        ([900, 300, 90], [100, 150, 200], "tail test_shifted test_is_nearer_uniform"),
        ([900, 300, 90], [450, 150, 45], "tail test_alike test_has_tail_too"),
        ([50, 50, 50], [90, 10, 1], "balanced test_shifted test_has_own_tail"),
        (
            [300, 200, 5],
            [9, 9, 0],
            "tail small_tail test_alike test_has_tail_too few_untested",
        ),
    ],
)
def test_what_to_expect_is_a_value(train, test, findings):
    found = audit_counts(train, test).findings
    assert found[: len(findings.split())] == tuple(findings.split())


def test_labels_counts_and_files_are_audited_alike(tmp_path):
    labels = ["cat"] * 60 + ["dog"] * 12 + ["fox"]
    (tmp_path / "labels.csv").write_text("label\n" + "\n".join(labels))
    counted = audit({"fox": 1, "cat": 60, "dog": 12})
    assert (counted.classes, counted.counts) == (("cat", "dog", "fox"), (60, 12, 1))
    assert audit(np.array(labels)) == audit(labels) == counted
    stored = audit(str(tmp_path / "labels.csv"), test={"cat": 5, "fox": 5})
    assert (stored.counts, stored.test_counts) == ((60, 12, 1), (5, 0, 5))
    assert stored.sources == (str(tmp_path / "labels.csv"),)
    assert audit([0, 0, 2]).counts == (2, 0, 1)


def test_as_json_is_plain_and_whole():
    found = audit_counts(TRAIN, TEST)
    again = json.loads(json.dumps(found.as_json()))
    assert again["bias"] == pytest.approx(math.log(500))
    assert again["train"]["single"] == ["6", "7"]
    assert again["groups"][0]["name"] == "many"
    assert again["shift"]["moves"][0]["name"] == "0"
    assert again["expect"] == list(found.findings)
    assert again["try"][0]["kind"] == "absent"
    assert json.loads(json.dumps(audit_counts(TRAIN).as_json()))["test"] is None


def assert_in_order(text, *parts):
    """Each part is in the text, after the one before."""
    at = 0
    for part in parts:
        assert part in text[at:], f"{part!r} is not in {text[at:]!r}"
        at = text.index(part, at) + len(part)


def test_a_tail_is_explained_by_the_nats_that_logits_start_behind():
    text = said([900, 90, 10], classes=["cat", "dog", "fox"])
    assert_in_order(text, "fox", "4.5 nats", "cat", "90 times", "1.0%")


@pytest.mark.parametrize(
    ("counts", "words"),
    [([50, 50, 50], "The labels are balanced:"), ([50, 40, 45], "has 1.25 times the samples")],
)
def test_a_balanced_set_gets_no_advice(counts, words):
    assert words in said(counts)
    assert "no tail to correct" in said(counts)
    assert not audit_counts(counts).remedies
    assert not audit_counts(counts, counts).remedies


def test_scarce_data_are_called_scarce():
    assert "data are scarce" in said([19, 15, 5])
    assert "data are scarce" not in said([190, 15, 5])


def test_the_sentence_on_the_test_prior_follows_the_test_prior():
    train = [900, 300, 90]
    assert "test set is balanced" in said(train, [50, 50, 50])
    alike = said(train, [450, 150, 45])
    assert "distributed like the training labels" in alike
    assert_in_order(alike, "gain balanced accuracy", "lose")
    assert "nearer to the uniform prior" in said(train, [100, 150, 200])
    assert "follow another prior" in said(train, [100, 150, 200])
    assert "tail of their own" in said([50, 50, 50], [90, 10, 1])


def test_what_cannot_be_measured_is_said():
    text = said(TRAIN, TEST)
    assert_in_order(text, "18 test samples", "4 classes", "median of 3.5", "27 points")
    assert_in_order(text, "2 classes (3, 7)", "no test samples", "1 class (8)", "no training")
    assert_in_order(said([300, 200, 5], [9, 9, 0]), "no sample", "1 class", "few")


def test_remedies_follow_from_the_numbers():
    text = tried([900, 90, 60])
    assert "longtail fix VAL" in text
    assert "--counts counts.json --target uniform" in text
    assert "KIND is logits or probs" in text  # it does not know, and does not lead into either
    assert "lt.losses.LogitAdjusted(counts)" in text
    assert "Choose τ on validation" in text
    for absent in ("single sample", "smooth", "test_counts", "Keep τ"):
        assert absent not in text
    rich = tried(TRAIN, TEST)
    for words in ("2 classes (6, 7) have a single sample", 'zeros="smooth"', "Keep τ = 1 unless"):
        assert words in rich
    assert '.under(lt.Prior.of(test_counts, zeros="keep"))' in rich
    assert ".under(test_counts)" in tried([900, 90, 60], [10, 90, 60])
    assert "test_counts" not in tried([900, 90, 60], [50, 50, 50])


def test_python_lines_of_the_remedies_run():
    import longtail as lt

    counts, test_counts = [900, 300, 10], [10, 300, 90]
    rng = np.random.default_rng(0)
    logits, labels = rng.normal(size=(30, 3)), np.arange(30) % 3
    names = {"lt": lt, "counts": counts, "test_counts": test_counts}
    names |= {"logits": logits, "labels": labels}
    names["validation"] = lt.Scores(logits, labels, carried=counts, split="validation")
    found = audit_counts(counts, test_counts).remedies
    python = [remedy.python for remedy in found if remedy.python.startswith(("lt.", "loss"))]
    assert len(python) >= 4
    for line in python:
        exec(compile(line, "remedy", "exec"), names)


def test_tables_and_page_hold_what_was_found():
    found = audit_counts(TRAIN, TEST, [f"<{letter}>" for letter in "abcdefghijk"])
    titles = [title for title, _ in audit_tables(found)]
    assert titles[:2] == ["How long the tail is", "Classes by training samples"]
    assert len(titles) == 4
    assert len(audit_tables(audit_counts(TRAIN))) == 2
    footer = Footer("0.1.0", "2025-06-01", "longtail audit")
    page = render_page(audit_page(found, footer))
    assert page.count("<svg") == 2
    for words in ("500 (&lt;a&gt;)", "What to expect", "What to try", "763 training samples"):
        assert words in page
    assert "What to try" not in render_page(audit_page(audit_counts([5, 5]), footer))


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (([0, 0],), "at least one sample"),
        (([3, 1], [0, 0]), "all zero"),
        (([3, 1], [1, 1, 1]), "each of 2 classes, got 3"),
        (([3, 1], None, ["a"]), "2 classes, got 1 names"),
        (([3, -1],), "none negative"),
    ],
)
def test_wrong_counts_give_one_sentence(arguments, sentence):
    with pytest.raises(ValueError, match=sentence):
        audit_counts(*arguments)


def test_the_page_has_a_picture_of_the_counts():
    names = [f"kind {letter}" for letter in "abcdefghijk"]
    found = audit_counts(TRAIN, TEST, names)
    footer = Footer("0.1.0", "2025-06-01", "longtail audit")
    page = render_page(audit_page(found, footer))
    assert "Samples of each class" in page
    for part, counts in (("train", TRAIN), ("test", TEST)):
        for name, count in zip(names, counts, strict=True):
            assert (f"{part}, {name}: {count:,}" in page) == (count > 0)


def test_labels_of_which_none_occurs_twice_look_like_an_id():
    found = audit_counts([1] * 30, None, tuple(map(str, range(30))))
    assert "index or an id" in expectations(found)[0]
    assert "index or an id" not in expectations(audit_counts([2] * 30))[0]


@pytest.mark.parametrize("labels", [np.eye(3), [0.5, 1.5], np.zeros((2, 2), int)])
def test_what_is_no_label_a_sample_is_refused(labels):
    with pytest.raises(ValueError, match="class index or name"):
        audit(labels)


@pytest.mark.parametrize(
    ("labels", "classes", "counts"),
    [
        (np.array([b"dog", b"cat", b"dog"]), ("cat", "dog"), (1, 2)),
        ([b"dog", b"cat", b"dog"], ("cat", "dog"), (1, 2)),
        (np.array([0, 1, 1, np.int64(0)], dtype=object), ("0", "1"), (2, 2)),
        (np.array(["b", "a", "b"], dtype=object), ("a", "b"), (1, 2)),
        (torch.tensor([0, 1, 1]), ("0", "1"), (1, 2)),
        ({0: 900, 1: 10}, ("0", "1"), (900, 10)),
        ({np.int64(1): 10, np.int64(0): 900}, ("0", "1"), (900, 10)),
    ],
)
def test_labels_and_classes_may_be_of_any_kind_that_tells_them_apart(labels, classes, counts):
    result = audit(labels)
    assert (result.classes, result.counts) == (classes, counts)


@pytest.mark.parametrize(
    ("labels", "word"),
    [
        (np.ma.array([0, 0, 1, 2], mask=[0, 0, 0, 1]), "mask"),
        (np.array([1, 1.0, 2.5], dtype=object), "all of them numbers"),
        (np.array(["a", None], dtype=object), "NoneType"),
        (["a", "b", 1], "int, str"),
        ([True, False, True], "bool"),
        ({0: 5, "a": 3}, "int, str"),
        ({"a": None}, "array of numbers"),
        ({}, "no class"),
        (np.array([], dtype=int), "no class"),
        ([], "no class"),
        (None, "one class index or name"),
        ([2**70, 1], "one class index or name"),
    ],
)
def test_labels_that_do_not_tell_classes_are_refused(labels, word):
    with pytest.raises(ValueError, match=word):
        audit(labels)


@pytest.mark.parametrize("counts", [[500, 60, 7], np.array([3, 2, 1]), [100, 100, 50]])
def test_whole_numbers_that_may_be_counts_are_asked_about(counts):
    with pytest.raises(ValueError, match=r"Prior\.of\(counts\)"):
        audit(counts)
    assert audit(Prior.of(counts), test=Prior.of(counts)).counts == tuple(counts)
    assert audit(list(map(str, [7, 7, 500]))).train.num_samples == 3


def test_a_prior_without_counts_is_refused():
    with pytest.raises(ValueError, match="has no counts"):
        audit(Prior.of([0.5, 0.5]))
