"""Scores written by blocks are what Scores.save would have written, or nothing."""

import numpy as np
import pytest
import torch

from longtail import Prior, Scores
from longtail.data import open_score_table, open_score_writer

LOGITS = np.random.default_rng(0).normal(size=(11, 3)).astype(np.float32)
LABELS = np.arange(11) % 3


def test_a_file_written_in_blocks_is_loaded_as_scores(tmp_path):
    saved = Scores(LOGITS, LABELS, [5, 3, 1], [50, 30, 10], ("cat", "dog", "fox"), "test")
    place = tmp_path / "a.safetensors"
    with open_score_writer(
        place, 11, 3, np.float32, LABELS, saved.carried, saved.counts, saved.classes, saved.split
    ) as writer:
        writer.write(LOGITS[:4])
        writer.write(torch.from_numpy(LOGITS[4:]))
    again = Scores.load(place)
    assert type(again.logits) is np.ndarray
    np.testing.assert_array_equal(again.logits, LOGITS)
    np.testing.assert_array_equal(again.labels, LABELS)
    np.testing.assert_array_equal(again.counts, [50, 30, 10])
    assert again.carried == saved.carried
    assert again.carried.counts.tolist() == [5, 3, 1]
    assert (again.classes, again.split) == (saved.classes, "test")
    assert list(tmp_path.iterdir()) == [place]


@pytest.mark.parametrize("ids", [[f"img_{at}" for at in range(11)], list(range(5, 16))])
def test_ids_come_back(tmp_path, ids):
    with open_score_writer(tmp_path / "a.safetensors", 11, 3, ids=ids) as writer:
        writer.write(LOGITS)
    assert Scores.load(tmp_path / "a.safetensors").ids.tolist() == ids
    assert open_score_table(tmp_path / "a.safetensors", "logits").ids.tolist() == ids


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize("ending", ["npy", "safetensors"])
def test_every_floating_type_comes_back(tmp_path, dtype, ending):
    place = tmp_path / f"a.{ending}"
    with open_score_writer(place, 11, 3, dtype) as writer:
        writer.write(LOGITS.astype(dtype))
    table = open_score_table(place, "logits")
    assert table.dtype == dtype
    np.testing.assert_array_equal(table.as_scores().logits, LOGITS.astype(dtype))


def test_an_npy_file_is_one_that_numpy_loads(tmp_path):
    with open_score_writer(tmp_path / "a.npy", 11, 3) as writer:
        for row in LOGITS:
            writer.write(row[None])
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), LOGITS)


def test_numbers_of_another_type_or_order_are_converted(tmp_path):
    with open_score_writer(tmp_path / "a.safetensors", 22, 3) as writer:
        writer.write(torch.from_numpy(LOGITS).bfloat16())
        writer.write(np.asfortranarray(LOGITS.astype(np.float64)))
    loaded = Scores.load(tmp_path / "a.safetensors").logits
    np.testing.assert_array_equal(loaded[:11], torch.from_numpy(LOGITS).bfloat16().float())
    np.testing.assert_array_equal(loaded[11:], LOGITS)


def test_a_prior_without_counts_is_kept_too(tmp_path):
    prior = Prior.of([0.5, 0.25, 0.25])
    with open_score_writer(tmp_path / "a.safetensors", 1, 3, carried=prior) as writer:
        writer.write(LOGITS[:1])
    assert Scores.load(tmp_path / "a.safetensors").carried == prior


def test_a_table_moved_block_by_block_equals_the_scores_moved_whole(tmp_path):
    Scores(LOGITS, LABELS, [5, 3, 1]).save(tmp_path / "a.safetensors")
    table = open_score_table(tmp_path / "a.safetensors", "logits")
    target = Prior.uniform(3)
    with open_score_writer(
        tmp_path / "b.safetensors", table.num_rows, 3, table.dtype, table.labels, target
    ) as writer:
        for block in table.blocks(6):
            writer.write(Scores(block.logits, carried=table.carried).under(target).logits)
    moved, whole = Scores.load(tmp_path / "b.safetensors"), table.as_scores().under(target)
    np.testing.assert_array_equal(moved.logits, whole.logits)
    assert moved.carried == whole.carried


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([LOGITS[:4]], "opened for 11 rows, but 4 came"),
        ([LOGITS, LOGITS[:1]], r"11 rows.*12"),
        ([LOGITS[:, :2]], r"rows of 3 logits, got shape \(11, 2\)"),
        ([LOGITS[0]], r"rows of 3 logits, got shape \(3,\)"),
    ],
)
def test_rows_that_do_not_fit_leave_no_file(tmp_path, rows, sentence):
    def write():
        with open_score_writer(tmp_path / "a.npy", 11, 3) as writer:
            for block in rows:
                writer.write(block)

    with pytest.raises(ValueError, match=sentence):
        write()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("name", "given", "sentence"),
    [
        ("a.csv", {}, r"\.safetensors or \.npy"),
        ("a.npy", {"dtype": np.int64}, r"float64.*int64"),
        ("a.npy", {"dtype": np.longdouble}, r"float128|longdouble"),
        ("a.npy", {"labels": [0, 1]}, "11 rows of logits but 2 labels"),
        ("a.npy", {"labels": [3] * 11}, "labels must lie in 0 to 2"),
        ("a.npy", {"carried": [1, 1]}, "the carried prior has 2"),
        ("a.npy", {"counts": [1, 1]}, "each of 3 classes"),
        ("a.npy", {"classes": ["a"]}, "name each of 3 classes once"),
        ("a.npy", {"split": "dev"}, "split must be"),
        ("a.npy", {"ids": [1, 2]}, "for each of 11 rows"),
        ("nowhere/a.npy", {}, "there is no folder"),
    ],
)
def test_wrong_facts_are_refused_before_anything_is_written(tmp_path, name, given, sentence):
    with (
        pytest.raises((ValueError, FileNotFoundError), match=sentence),
        open_score_writer(tmp_path / name, 11, 3, **given),
    ):
        pass
    assert not list(tmp_path.iterdir())
