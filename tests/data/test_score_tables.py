"""Tables of scores: every format gives the same numbers, in blocks, or one sentence that helps."""

import gzip
import json
import tracemalloc
import zipfile
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import save_file

from longtail import Prior, Scores
from longtail.core import memory
from longtail.core.probabilities import NotLogitsError
from longtail.data import Layout, open_score_table
from longtail.data.tables.errors import reading
from longtail.data.tables.parquet import ParquetTable

RNG = np.random.default_rng(0)
LOGITS = RNG.normal(size=(23, 4)).astype(np.float32)
LABELS = RNG.integers(0, 4, size=23)
CLASSES = ("cat", "dog", "fox", "owl")
PROBS = np.exp(LOGITS) / np.exp(LOGITS).sum(axis=1, keepdims=True)


def csv_text(numbers, labels=None, header=None, delimiter=","):
    rows = [] if header is None else [delimiter.join(header)]
    for at, row in enumerate(numbers):
        fields = [repr(float(value)) for value in row]
        rows.append(delimiter.join(fields if labels is None else [*fields, str(labels[at])]))
    return "\n".join(rows) + "\n"


def write(place, kind, numbers):
    """The same scores, labels and classes in the format that the ending says."""
    names = [CLASSES[label] for label in LABELS]
    known = {kind: numbers, "labels": LABELS, "classes": np.array(CLASSES)}
    if place.suffix == ".npz":
        np.savez_compressed(place, **known)
    elif place.suffix == ".safetensors":
        save_file({kind: torch.from_numpy(numbers), "labels": torch.from_numpy(LABELS)}, place)
    elif place.name.endswith(".tsv.gz"):
        text = csv_text(numbers, names, (*CLASSES, "label"), "\t")
        place.write_bytes(gzip.compress(text.encode()))
    elif place.suffix == ".csv":
        place.write_text(csv_text(numbers, names, (*CLASSES, "label")))
    elif place.suffix == ".parquet":
        arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
        columns = {name: numbers[:, at] for at, name in enumerate(CLASSES)} | {"label": names}
        parquet.write_table(arrow.table(columns), place, row_group_size=10)
    else:
        np.save(place, numbers)
    return place


FORMATS = ["a.npz", "a.npy", "a.safetensors", "a.csv", "a.tsv.gz", "a.parquet"]


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("numbers", [1, 12, 36, 10**9])
def test_blocks_of_any_size_put_together_are_the_file(tmp_path, name, numbers):
    table = open_score_table(write(tmp_path / name, "logits", LOGITS), "logits")
    assert (table.num_rows, table.num_classes) == LOGITS.shape
    start = 0
    for block in table.blocks(numbers):
        assert block.start == start
        assert 1 <= len(block.logits) <= max(1, numbers // 4)
        assert block.logits.dtype == table.dtype
        np.testing.assert_array_equal(block.logits, LOGITS[start : start + len(block.logits)])
        start += len(block.logits)
    assert start == 23


@pytest.mark.parametrize("name", FORMATS)
def test_probs_come_as_their_logarithms(tmp_path, name):
    table = open_score_table(write(tmp_path / name, "probs", PROBS), "probs")
    np.testing.assert_allclose(table.as_scores().logits, np.log(PROBS), rtol=1e-6)


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "a.npy"])
def test_labels_are_found_and_names_become_indices(tmp_path, name):
    place = write(tmp_path / name, "logits", LOGITS)
    classes = CLASSES if name == "a.safetensors" else None  # foreign ones have no class names
    table = open_score_table(place, "logits", classes=classes)
    assert table.labels.dtype == np.int64
    np.testing.assert_array_equal(table.labels, LABELS)
    assert table.classes == CLASSES
    labels = [block.labels for block in table.blocks(40)]
    np.testing.assert_array_equal(np.concatenate(labels), LABELS)


def test_labels_may_come_from_another_file_or_an_array(tmp_path):
    place = write(tmp_path / "a.npy", "logits", LOGITS)
    np.save(tmp_path / "labels.npy", LABELS.astype(np.uint8))
    (tmp_path / "list.txt").write_text("".join(f"img/{i}.jpg {y}\n" for i, y in enumerate(LABELS)))
    (tmp_path / "t.csv").write_text("id,kind\n" + "".join(f"1,{CLASSES[y]}\n" for y in LABELS))
    for given in (tmp_path / "labels.npy", str(tmp_path / "list.txt"), LABELS, LABELS.tolist()):
        np.testing.assert_array_equal(open_score_table(place, "logits", given).labels, LABELS)
    named = open_score_table(
        place, "logits", tmp_path / "t.csv", classes=CLASSES, layout=Layout(labels="kind")
    )
    np.testing.assert_array_equal(named.labels, LABELS)
    by_name = open_score_table(place, "logits", [CLASSES[y] for y in LABELS], CLASSES)
    np.testing.assert_array_equal(by_name.labels, LABELS)


@pytest.mark.parametrize(
    ("name", "text"),
    [("n.txt", "cat\ndog\nfox\nowl\n"), ("n.json", '["cat", "dog", "fox", "owl"]')],
)
def test_class_names_may_come_from_a_file(tmp_path, name, text):
    (tmp_path / name).write_text(text)
    place = write(tmp_path / "a.npy", "logits", LOGITS)
    assert open_score_table(place, "logits", classes=tmp_path / name).classes == CLASSES


def test_a_file_of_scores_keeps_all_it_knows(tmp_path):
    saved = Scores(LOGITS, LABELS, [4, 3, 2, 1], [40, 30, 20, 10], CLASSES, "validation")
    saved.save(tmp_path / "ours.safetensors")
    table = open_score_table(tmp_path / "ours.safetensors", "logits")
    again = table.as_scores()
    np.testing.assert_array_equal(again.logits, saved.logits)
    np.testing.assert_array_equal(again.labels, saved.labels)
    np.testing.assert_array_equal(again.counts, saved.counts)
    assert again.carried == saved.carried
    assert again.carried.counts.tolist() == [4, 3, 2, 1]
    assert (again.classes, again.split) == (CLASSES, "validation")
    other = table.as_scores(carried=[1, 1, 1, 1], counts=[1, 2, 3, 4], split="test")
    assert other.carried == Prior.uniform(4)
    assert (other.counts.tolist(), other.split) == ([1, 2, 3, 4], "test")
    assert repr(table) == (
        "ScoreTable(ours.safetensors, 23 rows, 4 classes of logits, labels, classes, counts, "
        "carried, split='validation')"
    )


def test_counts_of_an_npz_are_kept(tmp_path):
    np.savez(tmp_path / "a.npz", logits=LOGITS, counts=[4, 3, 2, 1])
    assert open_score_table(tmp_path / "a.npz", "logits").counts.tolist() == [4, 3, 2, 1]


@pytest.mark.parametrize(
    "stored",
    [
        LOGITS.astype(np.float16),
        LOGITS.astype(np.float64),
        LOGITS.astype(">f4"),
        (10 * LOGITS).astype(np.int8),
        (10 * LOGITS).astype(np.int64),
        np.asfortranarray(LOGITS),
    ],
    ids=["half", "double", "big-endian", "bytes", "long", "by columns"],
)
@pytest.mark.parametrize("name", ["a.npy", "a.npz", "a packed.npz"])
def test_any_type_and_order_of_array_is_read(tmp_path, stored, name):
    save = {"a.npy": np.save, "a.npz": np.savez, "a packed.npz": np.savez_compressed}[name]
    save(tmp_path / name, stored)
    table = open_score_table(tmp_path / name, "logits")
    rows = np.concatenate([block.logits for block in table.blocks(20)])
    np.testing.assert_array_equal(rows, stored)
    assert rows.dtype == table.dtype
    assert table.dtype.kind == "f"
    assert table.dtype.isnative
    Scores(rows)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16, torch.float64])
def test_tensors_of_any_floating_type_are_read(tmp_path, dtype):
    stored = torch.from_numpy(LOGITS).to(dtype)
    save_file({"scores": stored}, tmp_path / "a.safetensors")
    table = open_score_table(tmp_path / "a.safetensors", "logits")
    np.testing.assert_array_equal(table.as_scores().logits, stored.double().numpy())


def test_half_precision_probs_are_widened_before_the_logarithm(tmp_path):
    np.save(tmp_path / "a.npy", PROBS.astype(np.float16))
    table = open_score_table(tmp_path / "a.npy", "probs")
    assert table.dtype == np.float32
    assert table.as_scores().logits.dtype == np.float32


def test_logits_may_be_anything_finite_and_minus_inf_rules_a_class_out(tmp_path):
    rows = np.array([[1e30, -np.inf, 0.0], [0.2, 0.3, 0.5]])
    np.save(tmp_path / "a.npy", rows)
    read = open_score_table(tmp_path / "a.npy", "logits").as_scores()
    np.testing.assert_array_equal(read.logits, rows)


def test_a_probability_of_zero_is_a_very_small_one_and_that_is_said(tmp_path):
    np.save(tmp_path / "a.npy", np.array([[0.0, 1.0], [0.5, 0.5]]))
    with pytest.warns(UserWarning, match=r"a\.npy.*exactly zero"):
        logits = open_score_table(tmp_path / "a.npy", "probs").as_scores().logits
    eps = np.finfo(np.float64).eps
    np.testing.assert_allclose(np.exp(logits), [[eps, 1], [0.5, 0.5]])


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("scale", [1, 100])
def test_probabilities_and_percentages_are_refused_as_logits_in_every_format(tmp_path, name, scale):
    place = write(tmp_path / name, "logits", scale * PROBS)
    with pytest.raises(NotLogitsError, match=r"logits.*--kind probs"):
        open_score_table(place, "logits")


def test_rounded_probabilities_are_refused_as_logits_too(tmp_path):
    np.save(tmp_path / "a.npy", PROBS.round(2))
    with pytest.raises(NotLogitsError):
        open_score_table(tmp_path / "a.npy", "logits")


def test_one_row_that_is_no_probability_makes_a_file_one_of_logits(tmp_path, monkeypatch):
    monkeypatch.setattr("longtail.data.tables.score_table.BLOCK", 40)  # the last row of the third
    rows = PROBS.copy()
    rows[-1] = [-1.0, 1.0, 0.5, 0.5]
    np.save(tmp_path / "a.npy", rows)
    read = open_score_table(tmp_path / "a.npy", "logits").as_scores()
    np.testing.assert_array_equal(read.logits, rows)


def test_scores_that_longtail_saved_are_read_whatever_they_sum_to(tmp_path):
    replace(Scores(LOGITS), logits=PROBS).save(tmp_path / "a.safetensors")
    table = open_score_table(tmp_path / "a.safetensors", "logits")
    np.testing.assert_array_equal(table.as_scores().logits, PROBS)


@pytest.mark.parametrize(
    ("numbers", "sentence"),
    [(100 * PROBS, r"sum to 100.*percentages"), (PROBS.round(2), "rounding")],
)
def test_percentages_and_rounded_probabilities_are_read_and_that_is_said(
    tmp_path, numbers, sentence
):
    np.save(tmp_path / "a.npy", numbers)
    with pytest.warns(UserWarning, match=sentence):
        scores = open_score_table(tmp_path / "a.npy", "probs").as_scores()
    np.testing.assert_allclose(scores.probs(), PROBS, atol=0.02)


def test_too_much_rounding_is_not_answered_with_logits(tmp_path):
    np.save(tmp_path / "a.npy", PROBS.round(1))
    with pytest.raises(ValueError, match="save them with more digits") as raised:
        open_score_table(tmp_path / "a.npy", "probs").as_scores()
    assert "logits" not in str(raised.value)


def test_another_array_can_be_asked_for(tmp_path):
    np.savez(tmp_path / "a.npz", logits=LOGITS, ensemble=2 * LOGITS, y=LABELS)
    layout = Layout(scores="ensemble", labels="y")
    table = open_score_table(tmp_path / "a.npz", "logits", layout=layout)
    np.testing.assert_array_equal(table.as_scores().logits, 2 * LOGITS)
    np.testing.assert_array_equal(table.labels, LABELS)


def test_parquet_with_a_column_of_lists(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    whole = arrow.table({"probs": PROBS.tolist(), "label": LABELS})
    parquet.write_table(whole, tmp_path / "a.parquet", row_group_size=5)
    table = open_score_table(tmp_path / "a.parquet", "probs")
    np.testing.assert_allclose(table.as_scores().logits, np.log(PROBS), rtol=1e-6)
    np.testing.assert_array_equal(table.labels, LABELS)
    ragged = arrow.table({"probs": [*PROBS.tolist()[:7], [1.0], *PROBS.tolist()[8:]]})
    parquet.write_table(ragged, tmp_path / "b.parquet", row_group_size=5)
    with pytest.raises(ValueError, match=r"4 scores.*1 in row 7"):
        list(open_score_table(tmp_path / "b.parquet", "probs").blocks(8))


def test_parquet_columns_that_are_no_numbers_are_named_and_can_be_skipped(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {"file": ["a", "b"], "cat": [1, 2], "fox": [0.5, None]}
    parquet.write_table(arrow.table(columns), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match=r"column 'file'.*--label-column, --skip"):
        open_score_table(tmp_path / "a.parquet", "logits")
    table = open_score_table(tmp_path / "a.parquet", "logits", layout=Layout(skip=["file"]))
    assert (table.classes, table.dtype) == (("cat", "fox"), np.float64)
    with pytest.raises(ValueError, match="got nan in row 1, class 1"):
        table.as_scores()


def test_a_file_that_must_not_be_read_is_not_called_damaged(tmp_path):
    def refuse():
        with reading(tmp_path / "a.npy", "an npy file"):
            raise PermissionError("denied")

    with pytest.raises(PermissionError, match="denied"):
        refuse()


def test_without_pyarrow_the_error_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "pyarrow.parquet", None)
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    with pytest.raises(ImportError, match=r'pip install "longtail\[parquet\]"'):
        open_score_table(tmp_path / "a.parquet", "logits")


def npz(**arrays):
    return lambda place: np.savez(place / "a.npz", **arrays)


def npy(array):
    return lambda place: np.save(place / "a.npy", array)


def with_value(value):
    changed = LOGITS.copy()
    changed[17, 2] = value
    return changed


@pytest.mark.parametrize(
    ("name", "make", "kind", "sentence"),
    [
        ("a.npy", None, "logits", r"there is no file .*a\.npy"),
        ("a.pkl", None, "logits", r"a\.pkl.*\.npy, \.npz"),
        ("a.npy.gz", None, "logits", r"\.csv\.gz or \.tsv\.gz"),
        ("a.npy", npy(LOGITS), "scores", r'kind.*"logits" or "probs"'),
        ("a.npy", npy(LOGITS[:, 0]), "logits", r"column for each.*\(23,\)"),
        ("a.npy", npy(LOGITS[:, :1]), "logits", r"binary.*both columns"),
        ("a.npy", npy(LOGITS[:0]), "logits", "has no rows"),
        ("a.npy", npy(with_value(np.nan)), "logits", "nan in row 17, class 2"),
        ("a.npy", npy(with_value(np.inf)), "logits", "got inf in row 17, class 2"),
        ("a.npy", npy(np.full((3, 2), -np.inf)), "logits", "got -inf in row 0"),
        ("a.npy", npy(LOGITS), "probs", r"probabilities.*row 0 sums.*--kind logits"),
        (
            "a.npy",
            npy(np.array([[1.5, -0.5]])),
            "probs",
            "sums to 1 with smallest entry -0.5",
        ),
        ("a.npy", npy(LOGITS > 0), "logits", "as real numbers, got bool"),
        ("a.npy", npy(np.array([[{}, {}]])), "logits", r"a\.npy.*pickle"),
        (
            "a.npz",
            npz(probs=PROBS),
            "logits",
            r"logits.*'probs'",
        ),
        (
            "a.npz",
            npz(logits=LOGITS),
            "probs",
            r"probs.*'logits'",
        ),
        (
            "a.npz",
            npz(features=LOGITS),
            "logits",
            "'logits', only features",
        ),
        ("a.npz", npz(logits=LOGITS, labels=LABELS[:5]), "logits", "23 rows but .* 5 labels"),
        (
            "a.npz",
            npz(logits=LOGITS, labels=LABELS + 1),
            "logits",
            "in 0 to 3 .* got 4 in row",
        ),
        ("a.npz", npz(logits=LOGITS, labels=LABELS * 1.0), "logits", "integer type or class names"),
        ("a.npz", npz(logits=LOGITS, labels=["cat"] * 23), "logits", "class names are not known"),
        (
            "a.npz",
            npz(logits=LOGITS, labels=["emu"] * 23, classes=CLASSES),
            "logits",
            r"'emu' in row 0.*4 class names \('cat'",
        ),
        ("a.npz", npz(logits=LOGITS, classes=["a", "b"]), "logits", "name each of the 4 classes"),
        (
            "a.npz",
            npz(logits=LOGITS, counts=[1, 2]),
            "logits",
            r"'counts'.*4 classes, got 2",
        ),
    ],
)
def test_wrong_files_give_one_sentence(tmp_path, name, make, kind, sentence):
    if make is not None:
        make(tmp_path)
    with pytest.raises((ValueError, FileNotFoundError), match=sentence):
        list(open_score_table(tmp_path / name, kind).blocks())


@pytest.mark.parametrize("name", FORMATS)
def test_an_empty_file_is_called_empty(tmp_path, name):
    (tmp_path / name).write_bytes(b"")
    with pytest.raises(ValueError, match=r"is empty \(0 bytes\)"):
        open_score_table(tmp_path / name, "logits")


@pytest.mark.parametrize("name", [name for name in FORMATS if name != "a.csv"])
def test_a_file_that_is_cut_short_is_called_damaged(tmp_path, name):
    place = write(tmp_path / name, "logits", LOGITS)
    place.write_bytes(place.read_bytes()[:-40])
    with pytest.raises(ValueError, match=rf"{name}.*damaged"):
        list(open_score_table(place, "logits").blocks())


def test_a_flipped_bit_in_an_npz_is_found(tmp_path):
    np.savez(tmp_path / "a.npz", logits=LOGITS)
    data = bytearray((tmp_path / "a.npz").read_bytes())
    data[len(data) // 2] ^= 1
    (tmp_path / "a.npz").write_bytes(bytes(data))
    with pytest.raises(ValueError, match="Bad CRC"):
        list(open_score_table(tmp_path / "a.npz", "logits").blocks(8))


def test_a_large_packed_array_in_column_order_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("longtail.data.tables.arrays._MOST_TURNED", 100)
    np.savez(tmp_path / "a.npz", logits=np.asfortranarray(LOGITS))
    with pytest.raises(ValueError, match=r"column order, too large .*\.ascontiguousarray"):
        list(open_score_table(tmp_path / "a.npz", "logits").blocks())


def test_a_file_that_changes_between_opening_and_reading_is_noticed(tmp_path):
    place = tmp_path / "a.csv"
    place.write_text(csv_text(LOGITS))
    table = open_score_table(place, "logits")
    place.write_text(csv_text(LOGITS[:20]))
    with pytest.raises(ValueError, match=r"20 rows.*23"):
        list(table.blocks())


def test_class_names_in_another_order_than_the_columns_are_refused(tmp_path):
    place = write(tmp_path / "a.csv", "logits", LOGITS)
    with pytest.raises(ValueError, match="another order"):
        open_score_table(place, "logits", classes=CLASSES[::-1])


def test_a_file_of_labels_of_several_splits_is_refused(tmp_path):
    np.savez(tmp_path / "l.npz", train_label=LABELS, test_label=LABELS)
    place = write(tmp_path / "a.npy", "logits", LOGITS)
    with pytest.raises(ValueError, match=r"several splits \(train, test\)"):
        open_score_table(place, "logits", tmp_path / "l.npz")
    layout = Layout(labels="test_label")
    table = open_score_table(place, "logits", tmp_path / "l.npz", layout=layout)
    np.testing.assert_array_equal(table.labels, LABELS)


def test_our_own_file_of_logits_is_not_one_of_probs(tmp_path):
    Scores(LOGITS).save(tmp_path / "a.safetensors")
    with pytest.raises(ValueError, match=r"'logits'.*--kind logits"):
        open_score_table(tmp_path / "a.safetensors", "probs")


def test_nothing_is_unpickled(tmp_path):
    with zipfile.ZipFile(tmp_path / "a.npz", "w") as file:
        np.save(tmp_path / "o.npy", np.array([[print, print]], dtype=object), allow_pickle=True)
        file.write(tmp_path / "o.npy", "logits.npy")
    with pytest.raises(ValueError, match="only a pickle could read"):
        open_score_table(tmp_path / "a.npz", "logits")


@pytest.mark.parametrize("name", ["__index_level_0__", "image", "Unnamed: 0"])
def test_the_index_of_a_data_frame_in_parquet_is_no_class(tmp_path, name):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {name: np.arange(len(LOGITS)), "label": LABELS}
    columns |= {known: LOGITS[:, at] for at, known in enumerate(CLASSES)}
    table = arrow.table(columns)
    if name != "Unnamed: 0":  # which an older table brought along as a column
        table = arrow.table(dict(reversed(columns.items())))
        pandas = json.dumps({"index_columns": [name], "columns": []})
        table = table.replace_schema_metadata({"pandas": pandas})
    parquet.write_table(table, tmp_path / "a.parquet")
    with pytest.warns(UserWarning, match="index of a table"):
        read = open_score_table(tmp_path / "a.parquet", "logits")
    assert set(read.classes) == set(CLASSES)
    np.testing.assert_array_equal(read.labels, LABELS)


def test_the_name_that_pandas_gives_an_index_in_parquet_is_known_without_its_words(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {"a": [1.0, 2.0], "b": [0.5, 0.1], "label": [0, 1], "__index_level_0__": [17, 4]}
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    with pytest.warns(UserWarning, match="index of a table"):
        assert open_score_table(tmp_path / "a.parquet", "logits").classes == ("a", "b")


NAMED_IDS = np.array([f"img_{at}" for at in range(23)])


@pytest.mark.parametrize("ids", [NAMED_IDS, np.arange(100, 123)])
def test_ids_stay_with_their_rows(tmp_path, ids):
    np.savez(tmp_path / "a.npz", logits=LOGITS, ids=ids)
    Scores(LOGITS, LABELS, ids=ids).save(tmp_path / "a.safetensors")
    (tmp_path / "a.csv").write_text(
        csv_text(LOGITS, [f"{y},{each}" for y, each in zip(LABELS, ids, strict=True)],
                 (*CLASSES, "label", "id"))
    )  # fmt: skip
    for name in ("a.npz", "a.safetensors", "a.csv"):
        table = open_score_table(tmp_path / name, "logits")
        assert table.ids.tolist() == (ids.astype(str) if name == "a.csv" else ids).tolist()
        assert table.num_classes == 4
        some = table.as_scores(rows=np.array([2, 7]))
        assert some.ids.tolist() == table.ids[[2, 7]].tolist()


def test_ids_of_parquet_stand_in_a_column(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {name: LOGITS[:, at] for at, name in enumerate(CLASSES)}
    for scores in (columns, {"logits": LOGITS.tolist()}):
        parquet.write_table(arrow.table({"id": NAMED_IDS, **scores}), tmp_path / "a.parquet")
        table = open_score_table(tmp_path / "a.parquet", "logits")
        assert table.ids.tolist() == NAMED_IDS.tolist()
        assert (table.num_classes, table.labels) == (4, None)


def test_ids_of_another_number_of_samples_are_refused(tmp_path):
    np.savez(tmp_path / "a.npz", logits=LOGITS, ids=NAMED_IDS[:5])
    with pytest.raises(ValueError, match="23 rows but 'ids' has 5 ids"):
        open_score_table(tmp_path / "a.npz", "logits")
    np.savez(tmp_path / "a.npz", logits=LOGITS, ids=np.ones(23))
    with pytest.raises(ValueError, match=r"'ids'.*a\.npz.*number or text"):
        open_score_table(tmp_path / "a.npz", "logits")


def test_half_precision_of_torch_is_widened_and_tensors_of_other_types_do_not_matter(tmp_path):
    stored = {
        "logits": torch.from_numpy(LOGITS).bfloat16(),
        "labels": torch.from_numpy(LABELS).int(),
        "others": torch.zeros(23, dtype=torch.float8_e4m3fn),
    }
    save_file(stored, tmp_path / "a.safetensors")
    table = open_score_table(tmp_path / "a.safetensors", "logits")
    assert table.dtype == np.float32
    blocks = np.concatenate([block.logits for block in table.blocks(12)])
    np.testing.assert_array_equal(blocks, stored["logits"].float().numpy())
    with pytest.raises(ValueError, match=r"a\.safetensors.*F8_E4M3"):
        open_score_table(tmp_path / "a.safetensors", "logits", layout=Layout(labels="others"))


def test_a_label_as_long_as_a_book_does_not_make_all_others_as_wide(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    labels = ["a"] * 40 + ["b" * 10**7]
    scores = {name: RNG.normal(size=41) for name in "ab"}
    table = arrow.table(scores | {"label": labels})
    parquet.write_table(table, tmp_path / "a.parquet", compression="zstd")
    tracemalloc.start()
    try:
        with pytest.raises(ValueError, match="none of the 2 class names") as raised:
            open_score_table(tmp_path / "a.parquet", "logits")
        assert len(str(raised.value)) < 1000
        assert tracemalloc.get_traced_memory()[1] < 2e8
    finally:
        tracemalloc.stop()
    parquet.write_table(arrow.table(scores | {"id": labels}), tmp_path / "a.parquet")
    with pytest.raises(ValueError, match="10,000,000"):
        open_score_table(tmp_path / "a.parquet", "logits")
    rows = "".join(f"{name},0,1\n" for name in ("a", "b", "c" * 10**6))
    (tmp_path / "a.csv").write_text("id,x,y\n" + rows)
    with pytest.raises(ValueError, match="1,000,000"):
        open_score_table(tmp_path / "a.csv", "logits")


def test_columns_that_unpack_to_more_than_memory_holds_are_left(tmp_path, monkeypatch):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {"a": [1.0, 2.0], "b": [0.0, 3.0], "label": ["a", "b" * 10**8]}
    parquet.write_table(arrow.table(columns), tmp_path / "a.parquet", compression="zstd")
    monkeypatch.setattr(memory, "free_memory", lambda: 2**26)
    with pytest.raises(ValueError, match=r"'label'.* would take"):
        open_score_table(tmp_path / "a.parquet", "logits")


def test_a_parquet_file_whose_rows_are_gone_is_called_damaged(tmp_path, monkeypatch):
    place = write(tmp_path / "a.parquet", "logits", LOGITS)
    monkeypatch.setattr(ParquetTable, "_batches", lambda *_: iter(()))
    with pytest.raises(ValueError, match="0 rows, but 23"):
        list(open_score_table(place, "logits").blocks())
