"""Unlabelled samples in a fit: what learns from them is chosen only if held-out folds say so."""

import numpy as np
import pytest
import torch

from longtail import Prior, Scores, fit
from longtail.core.carried import matched_offsets
from longtail.core.neighbours import nearest
from longtail.data import Features, pack_features, read_feature_rows
from longtail.engine import fit_linear
from longtail.flows.fit import best_of
from longtail.flows.fit_samples import Samples, linear_layer
from longtail.flows.fit_unlabelled import Unlabelled, is_worth, matched, self_trained
from longtail.losses import CrossEntropy
from longtail.posthoc import MarginalMatching
from longtail.report import page_of
from longtail.report.pages.fit import learned, sentences

COUNTS = np.array([60, 30, 12, 6, 3])
C, D = 5, 8
UNIFORM = Prior.uniform(C)
METHODS = ("adjusted", "matched", "self_trained")


def drawn(counts, seed):
    means = 0.9 * np.random.default_rng(7).normal(size=(C, D))
    labels = np.repeat(np.arange(C), counts)
    rows = means[labels] + np.random.default_rng(seed).normal(size=(len(labels), D))
    return rows.astype(np.float32), labels


TRAIN, TEST, OTHERS = drawn(COUNTS, 0), drawn([200] * C, 1), drawn([400] * C, 2)[0]


@pytest.fixture(scope="module")
def result():
    return fit(*TRAIN, test=TEST, unlabelled=OTHERS, methods=METHODS, folds=3)


def test_methods_that_learn_from_unlabelled_samples_gain_on_new_ones(result):
    right = {each.name: each.test["balanced_accuracy"].value for each in result.table}
    assert right["self_trained"] > right["adjusted"] + 0.02
    assert right["matched"] > right["adjusted"] - 0.01
    assert result.unlabelled == len(OTHERS)
    assert result.as_json()["unlabelled_samples"] == len(OTHERS)


def test_the_model_is_a_plain_layer_that_carries_the_target():
    for name in ("matched", "self_trained"):
        alone = fit(*TRAIN, test=TEST, unlabelled=OTHERS, methods=[name], folds=3)
        assert alone.best.name == name
        assert alone.model.carried == UNIFORM
        logits = alone.model.to_linear()(torch.from_numpy(TEST[0]))
        torch.testing.assert_close(logits, alone.test.logits, atol=1e-4, rtol=1e-4)


def test_self_training_is_these_rounds():
    """By hand: label the others, train on both, move to the target."""
    labels = torch.from_numpy(TRAIN[1])
    train, others = Samples(torch.from_numpy(TRAIN[0]), labels), torch.from_numpy(OTHERS[:300])
    layer = linear_layer(train, C, 0.01, None)
    made = self_trained(train, layer, 0.01, Unlabelled(others, UNIFORM))
    neighbours, carried = nearest(others.numpy()), Prior.of(COUNTS)
    both = torch.cat([train.features, others])
    for _ in range(3):
        logits = layer(others).double().numpy() - carried.log
        smoothed = neighbours.smoothed(logits)
        guessed = (smoothed + matched_offsets(smoothed, UNIFORM).offset).argmax(axis=1)
        every = torch.cat([labels, torch.from_numpy(guessed)])
        carried = Prior.from_labels(every, C)
        layer = fit_linear(both, every, CrossEntropy(carried), weight_decay=0.01, tolerance=1e-6)
    logits = layer(others).double().numpy() - carried.log
    expected = torch.from_numpy(logits - logits.mean(axis=1, keepdims=True))
    found = made(others).double()
    torch.testing.assert_close(found - found.mean(dim=1, keepdim=True), expected, atol=0.02, rtol=0)


def test_matching_folds_into_the_layer():
    train = Samples(*map(torch.from_numpy, TRAIN))
    others, layer = torch.from_numpy(OTHERS), linear_layer(train, C, 0.01, None)
    made = matched(layer, Prior.of(COUNTS), Unlabelled(others, UNIFORM))
    scores = Scores(layer(others), carried=COUNTS)
    expected = MarginalMatching.fit(scores, UNIFORM)(scores).logits
    torch.testing.assert_close(made(others), expected, atol=1e-5, rtol=1e-5)


def test_it_says_what_they_were_good_for(result):
    best, plain = result.best, result.best_without_unlabelled
    assert best.name in ("matched", "self_trained")
    assert plain.name in ("linear", "adjusted")
    assert "2,000 unlabelled samples" in learned(result)
    assert plain.title in learned(result)
    assert learned(result) in sentences(result)
    assert any(learned(result) in section.paragraphs for section in page_of(result).sections)


def test_they_are_not_chosen_where_folds_say_that_they_do_harm():
    """All of the rarest class, though said to follow the uniform prior."""
    misled = drawn([0, 0, 0, 0, 2000], 3)[0]
    result = fit(*TRAIN, unlabelled=misled, methods=METHODS, folds=3)
    assert result.best.name in ("linear", "adjusted")
    assert "no method that learns from them is better" in learned(result)


def test_they_must_gain_more_than_a_standard_error():
    labels, before = torch.arange(400) % 2, np.arange(400) % 5 > 0
    swapped = before.copy()  # as many right as before, but others
    swapped[[0, 5, 11, 12]] = ~before[[0, 5, 11, 12]]
    for gained, worth in ((0, False), (1, False), (8, True)):
        after = swapped.copy()
        after[np.flatnonzero(~swapped)[-gained:]] |= gained > 0
        difference = after.astype(float) - before
        assert (difference.mean() > difference.std() / 20) == worth  # one of the 400 samples
        assert is_worth(before, after, labels, Prior.uniform(2)) is worth


def test_without_them_nothing_is_said_and_methods_that_need_them_are_refused():
    result = fit(*TRAIN, methods=["adjusted"], folds=3)
    assert result.unlabelled == 0
    assert learned(result) == ""
    with pytest.raises(ValueError, match=r"self_trained needs unlabelled samples.*--unlabelled"):
        fit(*TRAIN, methods=["self_trained"], folds=3)


def test_their_labels_and_unit_do_not_matter(tmp_path, result):
    labels = np.arange(len(OTHERS)) % C
    stored = pack_features(tmp_path / "others.safetensors", {"test": (OTHERS, labels)})
    np.save(tmp_path / "others.npy", OTHERS)
    np.savez(tmp_path / "others.npz", features=OTHERS)
    for others in (stored, *(tmp_path / f"others.{end}" for end in ("safetensors", "npy", "npz"))):
        again = fit(*TRAIN, test=TEST, unlabelled=others, methods=["matched"], folds=3)
        one, other = (
            next(each.test["nll"].value for each in made.table if each.name == "matched")
            for made in (again, result)
        )
        assert one == other
    assert isinstance(stored, Features)
    scaled = fit(1e3 * TRAIN[0], TRAIN[1], unlabelled=1e3 * OTHERS, methods=METHODS, folds=3)
    assert [each.name for each in scaled.table] == [each.name for each in result.table]


def test_another_target_is_what_they_are_taken_to_follow():
    target = Prior.of([1, 1, 1, 2, 5])
    others = drawn([200, 200, 200, 400, 1000], 4)[0]
    result = fit(*TRAIN, unlabelled=others, target=target, methods=METHODS, folds=3)
    assert result.target == target
    assert result.validation.carried == target


@pytest.mark.parametrize(
    ("others", "sentence"),
    [
        (OTHERS[:, :4], r"rows or more of 8 floating-point numbers.*\(2000, 4\)"),
        (OTHERS[:1], "two rows or more"),
        (OTHERS.astype(int), "int64"),
        (np.where(OTHERS > 2, np.nan, OTHERS), "unlabelled features"),
        (TRAIN[0], "those of the train part"),
    ],
)
def test_features_that_cannot_be_used_are_refused(others, sentence):
    with pytest.raises(ValueError, match=sentence):
        fit(*TRAIN, unlabelled=others, methods=["matched"], folds=3)


def test_unlabelled_samples_that_no_method_would_look_at_are_refused():
    with pytest.raises(ValueError, match="none of these methods learns"):
        fit(*TRAIN, unlabelled=OTHERS, methods=["linear", "adjusted"], folds=3)


def test_a_file_of_several_parts_gives_all_of_their_rows(tmp_path):
    parts = {"train": TRAIN, "test": TEST}
    pack_features(tmp_path / "all.safetensors", parts)
    rows = read_feature_rows(tmp_path / "all.safetensors")
    np.testing.assert_array_equal(rows, np.concatenate([TRAIN[0], TEST[0]]))


def test_of_methods_with_unlabelled_samples_the_first_that_is_worth_it_is_kept():
    labels, target = torch.arange(400) % 2, Prior.uniform(2)
    places = np.arange(400)
    plain = places % 10 < 6
    surely = plain | (places % 40 == 9)
    other = np.roll(plain, 3)  # right as often, on others
    assert is_worth(plain, surely, labels, target)
    assert not is_worth(plain, other, labels, target)
    ranked = {"self_trained": other, "matched": surely, "adjusted": plain, "linear": ~plain}
    assert best_of(ranked, labels, target) == "matched"
    assert best_of({"matched": plain, "adjusted": plain}, labels, target) == "adjusted"
    assert best_of({"matched": plain}, labels, target) == "matched"
