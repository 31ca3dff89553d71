"""Scores: checked values that know what they carry, and a file without pickle."""

import json
import struct
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from longtail import Prior, Scores, UnknownPriorError
from longtail.metrics import evaluate

LOGITS = np.array([[2.0, 0.5, -1.0], [0.0, 1.0, 0.5]])


def full_scores(logits=LOGITS):
    return Scores(
        logits,
        labels=[0, 2],
        carried=[70, 25, 5],
        counts=[70, 25, 5],
        classes=["cat", "dog", "élan"],
        split="validation",
    )


def test_numpy_scores_give_numpy_and_torch_scores_torch():
    for logits, kind in ((LOGITS, np.ndarray), (torch.tensor(LOGITS), torch.Tensor)):
        scores = full_scores(logits)
        moved = scores.under(Prior.uniform(3))
        for array in (scores.labels, scores.counts, scores.probs(), scores.predict(), moved.logits):
            assert isinstance(array, kind)


def test_moved_scores_carry_the_target_and_keep_the_rest():
    moved = full_scores().under([1, 1, 2])
    assert moved.carried.is_close(Prior.of([1, 1, 2]))
    assert (moved.classes, moved.split) == (("cat", "dog", "élan"), "validation")
    np.testing.assert_array_equal(moved.labels, [0, 2])


def test_adjusted_probabilities_are_those_of_bayes():
    scores = full_scores()
    weighted = scores.probs() / np.array([70, 25, 5])
    expected = weighted / weighted.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(scores.under(Prior.uniform(3)).probs(), expected)


def test_scores_of_unknown_prior_refuse_to_move():
    with pytest.raises(UnknownPriorError, match="measure_carried"):
        Scores(LOGITS).under([1, 1, 1])


def test_a_row_whose_last_class_the_target_rules_out_is_named():
    scores = Scores([[0.0, 0.0], [0.0, -np.inf]], carried=[1, 1])
    with pytest.raises(ValueError, match="row 1 has no class left"):
        scores.under(Prior.of([0, 1], zeros="keep"))


def test_ties_go_to_the_lowest_index():
    assert Scores([[1.0, 2.0, 2.0]]).predict().tolist() == [1]


def test_half_precision_logits_are_kept_and_their_probabilities_computed_in_float32():
    scores = Scores(LOGITS.astype(np.float16), carried=[1, 1, 1])
    assert scores.probs().dtype == np.float32
    assert scores.under([1, 2, 3]).logits.dtype == np.float16


def test_scores_cannot_be_changed_after_they_were_checked():
    with pytest.raises(AttributeError):
        full_scores().carried = None


def test_from_probs_takes_logs_and_carries_what_is_said():
    probs = np.array([[0.7, 0.2, 0.1], [0.1, 0.4, 0.5]])
    scores = Scores.from_probs(probs, carried=[7, 2, 1])
    np.testing.assert_allclose(scores.probs(), probs)


def test_a_probability_of_zero_is_floored_below_all_others_and_that_is_said():
    probs = np.array([[0.5, 0.5, 0.0], [1 - 1e-20, 1e-20, 0.0], [0.6, 0.3, 0.1]])
    with pytest.warns(UserWarning, match="exactly zero, as forests"):
        scores = Scores.from_probs(probs, carried=[7, 2, 1])
    assert np.isfinite(scores.logits).all()
    np.testing.assert_allclose(np.exp(scores.logits[:2, 2]), [np.finfo(float).eps, 1e-20])
    np.testing.assert_allclose(scores.probs(), probs, atol=1e-15)


def test_halves_are_floored_where_single_precision_ends():
    probs = torch.tensor([[1.0, 0.0]], dtype=torch.float16)
    with pytest.warns(UserWarning, match="exactly zero"):
        logits = Scores.from_probs(probs).logits
    assert logits[0, 1].exp().item() == pytest.approx(torch.finfo(torch.float32).eps)


PROBS = np.array([[0.7, 0.2, 0.1], [0.1, 0.4, 0.5], [0.25, 0.25, 0.5]])


@pytest.mark.parametrize(
    "probs",
    [
        PROBS,
        torch.tensor(PROBS, dtype=torch.float32),
        torch.tensor(PROBS).bfloat16(),
        PROBS[:1],
        np.repeat(PROBS, 4, axis=0) + 0.005,
        PROBS.tolist(),
    ],
)
def test_probabilities_are_refused_as_logits_with_what_to_write(probs):
    with pytest.raises(ValueError, match=r"are probabilities.* Scores\.from_probs\(probs, "):
        Scores(probs)


def test_percentages_are_refused_as_logits_and_taken_as_probabilities():
    with pytest.raises(ValueError, match=r"percentages.* Scores\.from_probs\(probs / 100, "):
        Scores(100 * PROBS)
    with pytest.warns(UserWarning, match="taken for percentages"):
        scores = Scores.from_probs(100 * PROBS)
    np.testing.assert_allclose(scores.probs(), PROBS)


def test_one_row_of_logits_may_come_near_a_sum_of_one_by_accident():
    assert len(Scores([[0.3, 0.7001]])) == 1


def test_what_is_no_longer_at_the_door_is_not_asked_again(tmp_path):
    """A part of logits may sum to one by accident."""
    scores = Scores([[0.5, 0.5], [0.2, 0.8], [-1.0, 2.5]])
    part = replace(scores, logits=scores.logits[:2], labels=[0, 1])
    assert evaluate(part)["accuracy"] == 1.0
    part.save(tmp_path / "part.safetensors")
    np.testing.assert_array_equal(Scores.load(tmp_path / "part.safetensors").logits, part.logits)
    shifted = part.logits - part.logits.mean(axis=1, keepdims=True)  # what the message advises
    np.testing.assert_allclose(Scores(shifted).probs(), part.probs())


def test_probabilities_may_miss_one_by_what_half_precision_does():
    probs = np.array([[0.7005, 0.2, 0.1]])
    np.testing.assert_allclose(Scores.from_probs(probs).probs(), probs / probs.sum())


@pytest.mark.parametrize(
    ("probs", "sentence"),
    [
        ([[0.7, 0.2, 0.3]], "row 0 sums to 1.2"),
        ([[0.7, 0.2, 0.1], [0.73, 0.2, 0.1]], r"row 1 sums to 1\.03.*digits"),
        ([[0.7, 0.2, 0.1], [2.0, -0.5, -0.5]], r"row 1.*smallest entry -0\.5"),
        ([[float("nan"), 0.5, 0.5]], "got nan in row 0, class 0"),
        ([[1, 0, 0]], "floating type"),
    ],
)
def test_probabilities_that_are_none_are_refused(probs, sentence):
    with pytest.raises(ValueError, match=sentence):
        Scores.from_probs(probs)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"logits": [[1.0, float("nan"), 0.0]]}, "got nan in row 0, class 1"),
        ({"logits": [[1.0, float("inf"), 0.0]]}, r"\+inf"),
        ({"logits": [[-float("inf")] * 3]}, "finite value in every row"),
        ({"logits": np.zeros(3)}, r"shape \(samples, classes\)"),
        ({"logits": np.zeros((2, 3), int)}, "floating type"),
        ({"labels": [0]}, "2 rows of logits but 1 labels"),
        ({"labels": [0, 3]}, "lie in 0 to 2"),
        ({"labels": [0.0, 1.0]}, "integer type"),
        ({"carried": [1, 1]}, r"3 classes.*carried prior has 2"),
        ({"counts": [1, 1]}, "each of 3 classes, got 2"),
        ({"counts": [1, 1, -1]}, "none negative"),
        ({"classes": ["a", "b"]}, "each of 3 classes once"),
        ({"classes": ["a", "b", "b"]}, "2 of them different"),
        ({"classes": "abc"}, "sequence of names"),
        ({"split": "dev"}, "\"validation\".*got 'dev'"),
    ],
)
def test_wrong_input_gives_one_clear_sentence(options, sentence):
    with pytest.raises(ValueError, match=sentence) as caught:
        Scores(**{"logits": LOGITS, **options})
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("logits", [LOGITS, torch.tensor(LOGITS, dtype=torch.bfloat16)])
def test_a_saved_file_brings_everything_back_as_numpy(tmp_path, logits):
    scores = full_scores(logits)
    scores.save(tmp_path / "scores.safetensors")
    loaded = Scores.load(tmp_path / "scores.safetensors")
    assert type(loaded.logits) is np.ndarray
    np.testing.assert_array_equal(loaded.logits, np.asarray(torch.as_tensor(logits).float()))
    assert loaded.carried.is_close(scores.carried, 1e-15)
    assert loaded.carried.counts.tolist() == [70, 25, 5]
    assert loaded.labels.tolist() == [0, 2]
    assert loaded.counts.tolist() == [70, 25, 5]
    assert (loaded.classes, loaded.split) == (scores.classes, scores.split)
    assert [file.name for file in tmp_path.iterdir()] == ["scores.safetensors"]


def test_counts_shared_by_the_prior_and_the_scores_are_saved(tmp_path):
    prior = Prior.of([70, 25, 5])
    Scores(torch.tensor(LOGITS), carried=prior, counts=prior.counts).save(tmp_path / "s")
    assert Scores.load(tmp_path / "s").carried.counts.tolist() == [70, 25, 5]


def test_names_from_numpy_become_plain_and_are_saved(tmp_path):
    scores = Scores(LOGITS, classes=np.array(["cat", "dog", "élan"]))
    assert [type(name) for name in scores.classes] == [str] * 3
    scores.save(tmp_path / "s")
    assert Scores.load(tmp_path / "s").classes == ("cat", "dog", "élan")


def test_bare_logits_are_saved_and_loaded_too(tmp_path):
    Scores(LOGITS).save(tmp_path / "s")
    loaded = Scores.load(tmp_path / "s")
    assert (loaded.labels, loaded.carried, loaded.counts, loaded.classes) == (None,) * 4


def test_the_file_is_plain_safetensors_with_a_json_header(tmp_path):
    full_scores().save(tmp_path / "s")
    raw = (tmp_path / "s").read_bytes()
    header = json.loads(raw[8 : 8 + struct.unpack("<Q", raw[:8])[0]])
    said = json.loads(header["__metadata__"]["longtail"])
    assert said["version"] == 1
    assert said["classes"] == ["cat", "dog", "élan"]


def test_a_missing_file_or_folder_is_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="no scores file at"):
        Scores.load(tmp_path / "none")
    with pytest.raises(FileNotFoundError, match="no folder"):
        full_scores().save(tmp_path / "none" / "s")


def test_an_unreadable_file_is_refused(tmp_path):
    (tmp_path / "s").write_bytes(b"not a safetensors file at all")
    with pytest.raises(ValueError, match=r"cannot be read.*safetensors"):
        Scores.load(tmp_path / "s")


def test_a_truncated_file_is_refused(tmp_path):
    full_scores().save(tmp_path / "s")
    (tmp_path / "s").write_bytes((tmp_path / "s").read_bytes()[:-10])
    with pytest.raises(ValueError, match=r"cannot be read.*safetensors"):
        Scores.load(tmp_path / "s")


def test_a_foreign_safetensors_file_is_refused(tmp_path):
    save_file({"weight": torch.zeros(2)}, tmp_path / "s")
    with pytest.raises(ValueError, match=r"scores \(it has weight\)"):
        Scores.load(tmp_path / "s")


@pytest.mark.parametrize(
    ("header", "sentence"),
    [
        ("{", "damaged"),
        ('{"version": 1, "arrays": "jax"}', "damaged"),
        ('{"version": 3, "arrays": "torch"}', "version 3 of the scores format"),
    ],
)
def test_a_damaged_or_newer_header_is_refused(tmp_path, header, sentence):
    save_file({"logits": torch.zeros(1, 2)}, tmp_path / "s", {"longtail": header})
    with pytest.raises(ValueError, match=sentence):
        Scores.load(tmp_path / "s")


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_one_row_in_half_precision_may_sum_to_one_by_accident(dtype):
    row = torch.tensor([[0.75, 0.25]])
    Scores(row.to(dtype))
    for wide in (torch.float32, torch.float64):
        with pytest.raises(ValueError, match="probabilities"):
            Scores(row.to(wide))
    with pytest.raises(ValueError, match="probabilities"):
        Scores(row.to(dtype).repeat(2, 1))


def test_some_samples_and_all_samples_of_parts_are_scores_again():
    whole = full_scores(LOGITS)
    for at in ([1], [False, True], slice(1, 2)):
        part = whole.take(at)
        assert (part.logits.tolist(), part.labels.tolist()) == ([LOGITS[1].tolist()], [2])
        assert part.carried is whole.carried
    again = Scores.concat([whole.take([0]), whole.take([1])])
    np.testing.assert_array_equal(again.logits, LOGITS)
    assert again.labels.tolist() == whole.labels.tolist()
    assert again.classes == whole.classes
    moved = whole.take([1]).under([1, 1, 1])
    with pytest.raises(ValueError, match="agree in carried"):
        Scores.concat([whole, moved])


@pytest.mark.parametrize("rows", [[], np.zeros(2, bool), slice(0)])
def test_no_samples_of_some_are_scores_too(rows):
    none = full_scores().take(rows)
    assert (len(none), none.logits.shape, none.labels.tolist()) == (0, (0, 3), [])


@pytest.mark.parametrize("rows", [0, [[0]], [0.0], "1"])
def test_what_is_no_list_of_positions_takes_nothing(rows):
    with pytest.raises(ValueError, match=r"take\(\[0\]\)"):
        full_scores().take(rows)


def test_parts_that_know_different_things_are_not_put_together():
    whole = full_scores()
    other = {"labels": None, "counts": [70, 25, 6], "ids": ["a", "b"]}
    for name, value in other.items():
        with pytest.raises(ValueError, match=f"agree in {name}"):
            Scores.concat([whole, replace(whole, **{name: value})])
    with pytest.raises(ValueError, match="agree in counts"):
        Scores.concat([whole, replace(whole, counts=None)])
    with pytest.raises(ValueError, match="at least one"):
        Scores.concat([])


def test_parts_of_tensors_are_tensors():
    whole = full_scores(torch.tensor(LOGITS))
    part = Scores.concat([whole.take([1]), whole.take(torch.tensor([0]))])
    assert isinstance(part.logits, torch.Tensor)
    assert part.labels.tolist() == [2, 0]


@pytest.mark.parametrize(
    "ids",
    [[7, 3], ["b", "a"], np.array([2**64 - 1, 0], np.uint64), ["\0a", "a\0b"]],
)
def test_ids_go_with_their_samples_and_into_the_file(tmp_path, ids):
    scores = Scores(LOGITS, ids=ids)
    scores.save(tmp_path / "scores.safetensors")
    assert Scores.load(tmp_path / "scores.safetensors").ids.tolist() == list(ids)
    assert scores.take([1]).ids.tolist() == list(ids[1:])
    with pytest.raises(ValueError, match=r"number or text.*2 rows"):
        Scores(LOGITS, ids=[1])


def test_ids_that_would_not_be_kept_as_they_are_are_refused(tmp_path):
    with pytest.raises(ValueError, match="NUL"):
        Scores(LOGITS, ids=["a", "a\0"])
    with pytest.raises(ValueError, match="characters"):
        Scores(LOGITS, ids=["a", "a" * 10**6])
    for facts in ({"ids": ["a", "\udc80"]}, {"classes": ["a", "b", "\udc80"]}):
        with pytest.raises(ValueError, match="UTF-8"):
            Scores(LOGITS, **facts).save(tmp_path / "scores.safetensors")
    assert not list(tmp_path.iterdir())


class Frame:
    """What scores need of a DataFrame."""

    columns = ("cat", "dog")

    def to_numpy(self):
        return np.array([[2.0, -1.0]])


def test_columns_of_a_data_frame_name_the_classes_and_counts_may_go_by_name():
    scores = Scores(Frame(), counts={"dog": 1, "cat": 3}, carried={"cat": 3, "dog": 1})
    assert type(scores.logits) is np.ndarray
    assert scores.classes == ("cat", "dog")
    assert scores.counts.tolist() == [3, 1]
    assert scores.carried == Prior.of([3, 1])
    assert scores.under({"dog": 0.5, "cat": 0.5}).carried == Prior.uniform(2)
    with pytest.raises(ValueError, match="each of the 2 classes once"):
        Scores(Frame(), counts={"cat": 3})
