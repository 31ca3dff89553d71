"""Conformal sets: thresholds by loops, coverage exact in a known world, files, what is refused."""

import json
import math

import numpy as np
import pytest
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from longtail import Prior, Scores, UnknownPriorError
from longtail.metrics import evaluate_sets
from longtail.posthoc import ConformalSets, conformal
from longtail.testing import ContractError, check_sets

MODES = ("marginal", "class", "tail")
COUNTS = [60, 25, 10, 5]


def scores_of(counts, seed=0, classes=4, digits=None, **options):
    random = np.random.default_rng(seed)
    labels = np.repeat(np.arange(classes), counts)
    logits = random.normal(size=(len(labels), classes)) + 1.5 * np.eye(classes)[labels]
    logits = logits if digits is None else logits.round(digits)
    prior = np.arange(classes, 0, -1)
    return Scores(logits + np.log(prior), labels, carried=prior, **options)


def own_probs(scores):
    probs = scores.under([1] * scores.num_classes).probs()
    return [float(row[y]) for row, y in zip(probs, scores.labels, strict=True)]


def lower(y, s, own, labels, target, mix, size):
    """L_y(s): the weight of those whose own class is more likely than s, of all and the sample."""
    of_class = {c: [p for p, z in zip(own, labels, strict=True) if z == c] for c in range(size)}
    present = [c for c in range(size) if of_class[c]]
    total = sum(target[c] for c in present)
    share = {c: target[c] / total for c in range(size)}
    if y not in present:
        whole = 1 + share[y]
        share = {c: share[c] / whole for c in range(size)}
    mass = 0.0
    for c in {*present, y}:
        weight = (1 - mix) * share[c] + mix * (c == y)
        above = sum(p > s for p in of_class[c])
        mass += weight * above / (len(of_class[c]) + (c == y))
    return mass


def threshold(y, level, own, labels, target, mix, size):
    """The smallest own probability, or 0, that is still in the set."""
    fits = [s for s in own if lower(y, s, own, labels, target, mix, size) < level - 1e-12]
    if lower(y, -1.0, own, labels, target, mix, size) < level - 1e-12:
        return 0.0
    return min(fits, default=2.0)


def thresholds_by_loops(scores, coverage, mode, target):
    own, labels, size = own_probs(scores), scores.labels.tolist(), scores.num_classes
    counts = np.bincount(labels, minlength=size)
    if mode != "tail":
        mix = {"marginal": 0.0, "class": 1.0}[mode]
        return [threshold(y, coverage, own, labels, target, mix, size) for y in range(size)]
    mix = [n / (n + 40) for n in counts]
    total = sum(target[c] for c in range(size) if counts[c])

    def rank(i):
        y, s = labels[i], own[i]
        others = sum(
            target[z] / total / counts[z] for p, z in zip(own, labels, strict=True) if p > s
        )
        alike = sum(p > s for p, z in zip(own, labels, strict=True) if z == y) / counts[y]
        return (1 - mix[y]) * others + mix[y] * alike

    ranks = [rank(i) for i in range(len(own))]
    # Covered marginally in their turn: what is small is likely.
    found = []
    for y in range(size):
        if not counts[y]:
            found.append(threshold(y, coverage, own, labels, target, 0.0, size))
            continue
        allowed = threshold(y, coverage, [-u for u in ranks], labels, target, 0.0, size)
        everything = lower(y, -9.0, [-u for u in ranks], labels, target, 0.0, size)
        level = math.inf if everything < coverage - 1e-12 else -allowed + 2e-12
        found.append(threshold(y, level, own, labels, target, mix[y], size))
    return found


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    counts=st.lists(st.integers(0, 12), min_size=3, max_size=3),
    coverage=st.sampled_from([0.5, 0.8, 0.9, 0.95]),
    mode=st.sampled_from(MODES),
    target=st.sampled_from([(1 / 3, 1 / 3, 1 / 3), (0.7, 0.2, 0.1)]),
    digits=st.sampled_from([None, 0]),
)
@example(0, [9, 9, 9], 0.9, "class", (1 / 3, 1 / 3, 1 / 3), None)
@example(0, [1, 0, 0], 0.5, "tail", (0.7, 0.2, 0.1), None)
def test_thresholds_are_those_of_the_definition(seed, counts, coverage, mode, target, digits):
    if not sum(counts):
        counts = [1, 0, 0]
    scores = scores_of(counts, seed, classes=3, digits=digits)
    sets = ConformalSets.fit(scores, coverage, mode, target)
    expected = thresholds_by_loops(scores, coverage, mode, target)
    np.testing.assert_allclose(sets.thresholds, expected, rtol=1e-9)


def test_of_nine_samples_a_class_the_set_goes_down_to_the_least_likely():
    """(n + 1) · 0.9 = 9: the ninth of nine, and no more than that."""
    scores = scores_of([9, 9, 8, 0])
    own = np.array(own_probs(scores))
    sets = ConformalSets.fit(scores, 0.9, "class")
    assert sets.thresholds[0] == own[scores.labels == 0].min()
    assert sets.thresholds[1] == own[scores.labels == 1].min()
    assert sets.thresholds[2:].tolist() == [0, 0]  # eight, or none, cannot vouch for 90 %
    assert sets.counts.tolist() == [9, 9, 8, 0]


@pytest.mark.parametrize("mode", MODES)
def test_a_coverage_of_one_takes_all_classes(mode):
    scores = scores_of(COUNTS)
    sets = ConformalSets.fit(scores, 1.0, mode)
    assert sets(scores).all()


@pytest.mark.parametrize("mode", MODES)
def test_one_class_is_in_its_set_as_often_as_it_must(mode):
    scores = Scores(np.zeros((5, 1)), np.zeros(5, int), carried=[1])
    assert ConformalSets.fit(scores, 0.5, mode)(scores).all()


@pytest.mark.parametrize("mode", MODES)
def test_samples_that_are_all_alike_are_all_covered(mode):
    scores = Scores(np.zeros((20, 2)), np.arange(20) % 2, carried=[1, 1])
    assert ConformalSets.fit(scores, 0.8, mode)(scores).all()


def test_a_class_without_validation_samples_is_held_to_what_the_others_are():
    scores = scores_of([50, 50, 50, 0])
    marginal = ConformalSets.fit(scores, 0.7, "marginal").thresholds
    assert 0 < marginal[3] <= marginal[:3].min()
    assert ConformalSets.fit(scores, 0.7, "tail").thresholds[3] > 0
    # A quarter of what is to come is of it, which nine in ten cannot do without.
    assert ConformalSets.fit(scores, 0.9, "marginal").thresholds[3] == 0
    assert ConformalSets.fit(scores, 0.7, "class").thresholds[3] == 0


@pytest.mark.parametrize("mode", MODES)
def test_a_class_that_the_target_rules_out_is_in_no_set(mode):
    scores = scores_of(COUNTS)
    target = Prior.of([1, 1, 1, 0], zeros="keep")
    inside = ConformalSets.fit(scores, 0.9, mode, target)(scores)
    assert not inside[:, 3].any()
    assert inside[:, 0].any()


def test_with_ever_more_samples_tail_becomes_class_wise_and_with_few_it_is_near_marginal():
    many = scores_of([4000] * 4, seed=1)
    few = scores_of([4] * 4, seed=1)
    made = {mode: ConformalSets.fit(many, 0.9, mode).thresholds for mode in MODES}
    apart = np.abs(made["marginal"] - made["class"]).max()
    assert np.abs(made["tail"] - made["class"]).max() < 0.05 * max(apart, 0.2)
    made = {mode: ConformalSets.fit(few, 0.7, mode).thresholds for mode in MODES}
    assert np.abs(made["tail"] - made["marginal"]).mean() < 0.1


def test_scores_carry_what_they_carry_and_sets_are_the_same():
    scores = scores_of(COUNTS)
    sets = ConformalSets.fit(scores)
    moved = scores.under([1, 2, 3, 4])
    again = ConformalSets.fit(moved)
    np.testing.assert_allclose(sets.thresholds, again.thresholds, rtol=1e-9)
    apart = Prior.of([7, 1, 1, 1])
    np.testing.assert_array_equal(
        sets(scores.take([0, 70])), sets(scores.take([0, 70]).under(apart))
    )


def test_sets_cover_what_follows_the_target_they_were_fitted_to():
    """From one world: balanced validation samples, and tests where labels follow a tail."""
    validation = scores_of([400] * 4, seed=0)
    target = Prior.of([60, 30, 8, 2])
    random = np.random.default_rng(3)
    labels = np.sort(random.choice(4, 8000, p=target.probs))
    new = scores_of(np.bincount(labels, minlength=4), seed=4)
    for mode in ("marginal", "tail"):
        fitted = ConformalSets.fit(validation, 0.9, mode, target)
        found = evaluate_sets(fitted(new), new.labels)
        assert abs(found["coverage"].value - 0.9) < 0.02


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("target", [None, [1, 2, 3, 4]])
def test_the_true_class_is_held_as_often_as_asked_and_exactly_so_if_drawn(mode, target):
    random = np.random.default_rng(0)
    each = {"each_class": mode == "class", "draws": 120}
    check_sets(lambda s: ConformalSets.fit(s, 0.8, mode, target), 0.8, target, **each)

    def drawn(scores):
        return ConformalSets.fit(scores, 0.8, mode, target, seed=int(random.integers(2**31)))

    check_sets(drawn, 0.8, target, exact=True, **each)


def test_sets_that_cover_too_little_or_the_wrong_prior_are_told():
    with pytest.raises(ContractError, match="hold it with"):
        check_sets(lambda s: ConformalSets.fit(s, 0.8), 0.9, draws=60)
    with pytest.raises(ContractError, match="hold class"):
        check_sets(lambda s: ConformalSets.fit(s, 0.8, "marginal"), 0.8, each_class=True, draws=60)


def test_a_seed_decides_and_without_one_nothing_is_random():
    scores = scores_of(COUNTS)
    plain, again = (ConformalSets.fit(scores).thresholds for _ in range(2))
    one, same, other = (ConformalSets.fit(scores, seed=s).thresholds for s in (1, 1, 2))
    assert (plain == again).all()
    assert (one == same).all()
    assert (one != other).any()
    assert (one >= plain).all()  # a seed only takes away what was too much


def test_sets_come_back_in_the_kind_of_the_scores():
    scores = scores_of(COUNTS)
    sets = ConformalSets.fit(scores)
    expected = sets(scores)
    assert expected.dtype == bool
    for dtype in (torch.float64, torch.float32):
        rows = torch.tensor(scores.logits, dtype=dtype)
        got = sets(Scores(rows, carried=scores.carried))
        assert got.dtype == torch.bool
        assert (got.numpy() == expected).mean() > 0.99  # rounding decides on the threshold itself
    fitted = ConformalSets.fit(Scores(rows, scores.labels, carried=scores.carried))
    np.testing.assert_allclose(fitted.thresholds, sets.thresholds, rtol=1e-5)


def test_sets_are_the_same_from_their_file(tmp_path):
    scores = scores_of(COUNTS, classes=4)
    named = Scores(scores.logits, scores.labels, scores.carried, classes=["a", "b", "c", '"d'])
    target = Prior.of([4, 3, 2, 0], zeros="keep")
    sets = ConformalSets.fit(named, 0.85, "tail", target)
    sets.save(tmp_path / "sets.json")
    loaded = ConformalSets.load(tmp_path / "sets.json")
    assert (loaded.thresholds == sets.thresholds).all()
    assert (loaded.coverage, loaded.mode) == (0.85, "tail")
    assert loaded.target == target
    assert loaded.classes == ("a", "b", "c", '"d')
    assert loaded.counts.tolist() == COUNTS
    np.testing.assert_array_equal(loaded(named), sets(named))
    assert (tmp_path / "sets.json").read_text().count("\n") < 20


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"version": 9}, "version 9"),
        ({"thresholds": [0.1, -1, 0, 0]}, "holds values that cannot be"),
        ({"coverage": 0}, "holds values that cannot be"),
        ({"counts": [1]}, "holds values that cannot be"),
        ({"classes": ["a"]}, "holds values that cannot be"),
        ({"mode": "some"}, "damaged"),
        ({"more": 1}, "damaged"),
    ],
)
def test_a_file_of_none_is_refused(tmp_path, change, words):
    path = tmp_path / "sets.json"
    ConformalSets.fit(scores_of(COUNTS)).save(path)
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ValueError, match=words):
        ConformalSets.load(path)


def test_a_file_that_is_not_there_is_said_so(tmp_path):
    with pytest.raises(FileNotFoundError, match="no file of sets"):
        ConformalSets.load(tmp_path / "sets.json")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"coverage": 0}, "above 0"),
        ({"coverage": 1.1}, "coverage must be"),
        ({"coverage": math.nan}, "coverage must be"),
        ({"mode": "all"}, "mode must be"),
        ({"target": [1, 1]}, "classes"),
        ({"seed": 0.5}, "seed"),
    ],
)
def test_what_cannot_be_asked_for_is_refused(options, words):
    with pytest.raises(ValueError, match=words):
        ConformalSets.fit(scores_of(COUNTS), **options)


def test_samples_that_sets_cannot_be_fitted_on_are_refused():
    scores = scores_of(COUNTS)
    with pytest.raises(ValueError, match="split='test'"):
        ConformalSets.fit(scores_of(COUNTS, split="test"))
    with pytest.raises(ValueError, match="labels"):
        ConformalSets.fit(Scores(scores.logits, carried=scores.carried))
    with pytest.raises(UnknownPriorError):
        ConformalSets.fit(Scores(scores.logits, scores.labels))
    only_last = Prior.of([0, 0, 0, 1], zeros="keep")
    with pytest.raises(ValueError, match="no sample counts"):
        ConformalSets.fit(scores_of([9, 9, 9, 0]), target=only_last)


def test_scores_of_other_classes_are_refused():
    scores = scores_of(COUNTS)
    named = Scores(scores.logits, scores.labels, scores.carried, classes=list("abcd"))
    sets = ConformalSets.fit(named)
    with pytest.raises(ValueError, match="of 4 classes"):
        sets(Scores(np.zeros((1, 3)), carried=[1, 1, 1]))
    with pytest.raises(ValueError, match="same order"):
        sets(Scores(scores.logits, carried=scores.carried, classes=list("dcba")))
    assert sets(scores).shape == (100, 4)  # without names they are taken for the same


def test_the_constant_of_tail_is_the_one_the_documents_say():
    assert conformal._PULL == 40
