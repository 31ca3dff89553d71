"""Labels and counts from every kind of file, by split, with one list of classes in the end."""

import gzip
import json
import zipfile

import numpy as np
import pytest

from longtail.data import LabelCounts, align_counts, read_label_counts, read_labels
from longtail.data.tables import text as text_files


def counts_of(path, **given):
    return {name: dict(part.counts) for name, part in read_label_counts(path, **given).items()}


def written(place, text):
    place.write_bytes(gzip.compress(text.encode()) if place.suffix == ".gz" else text.encode())
    return place


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_a_column_called_label_is_found(tmp_path, name):
    place = written(tmp_path / name, "path,Label\n1.jpg,fox\n2.jpg,cat\n3.jpg,fox\n")
    assert counts_of(place) == {"all": {"cat": 1, "fox": 2}}


def test_a_column_may_be_asked_for_by_name_or_by_place(tmp_path):
    place = written(tmp_path / "a.csv", "path,kind\n1.jpg,fox\n2.jpg,cat\n")
    assert counts_of(place, column="kind") == {"all": {"cat": 1, "fox": 1}}
    assert counts_of(place, column=1, header=True) == {"all": {"cat": 1, "fox": 1}}
    assert counts_of(place, column=1) == {"all": {"cat": 1, "fox": 1, "kind": 1}}


def test_a_column_of_splits_divides_the_labels(tmp_path):
    plain = written(tmp_path / "a.tsv", "train\tfox\nTest\tcat\nval\tfox\ntrain\tcat\n")
    expected = {
        "train": {"cat": 1, "fox": 1},
        "validation": {"fox": 1},
        "test": {"cat": 1},
    }
    assert counts_of(plain) == expected
    text = "text,split,label\n" + "".join(
        f"t,{split},{label}\n"
        for split, label in [("train", "fox"), ("test", "cat"), ("dev", "fox"), ("train", "cat")]
    )
    assert counts_of(written(tmp_path / "b.csv", text)) == expected


def test_classes_called_train_and_test_are_labels_if_their_column_is_asked_for(tmp_path):
    place = written(tmp_path / "a.csv", "train,a\ntest,b\n")
    assert counts_of(place, column=0) == {"all": {"test": 1, "train": 1}}


def test_the_only_column_is_the_label(tmp_path):
    assert counts_of(written(tmp_path / "a.csv", "fox\ncat\nfox\n")) == {
        "all": {"cat": 1, "fox": 2}
    }


def test_quoted_text_over_several_lines_is_one_row(tmp_path):
    place = written(tmp_path / "a.csv", 'text,label\n"two\nlines, a comma",fox\nx,cat\n')
    assert counts_of(place) == {"all": {"cat": 1, "fox": 1}}


def test_in_tsv_a_quote_is_text(tmp_path):
    place = written(tmp_path / "a.tsv", 'label\ttext\nfox\t"half\ncat\tx\n')
    assert counts_of(place) == {"all": {"cat": 1, "fox": 1}}


def test_a_list_of_paths_with_labels_is_read(tmp_path):
    place = written(tmp_path / "train.txt", "train/n01/a b.jpg 0\ntrain/n02/c.jpg 10\n\nx.jpg 2\n")
    assert counts_of(place) == {"all": {"0": 1, "2": 1, "10": 1}}


@pytest.mark.parametrize(
    "labels",
    [np.array([2, 0, 2], np.uint8), np.array(["2", "0", "2"]), np.array([b"2", b"0", b"2"])],
)
def test_an_array_of_labels_is_read(tmp_path, labels):
    np.save(tmp_path / "a.npy", labels)
    assert counts_of(tmp_path / "a.npy") == {"all": {"0": 1, "2": 2}}


@pytest.mark.parametrize("names", [("train_label", "test_label"), ("y_train", "y_test")])
def test_an_npz_has_one_array_a_split(tmp_path, names):
    train, test = names
    np.savez(tmp_path / "a.npz", **{train: [0, 0, 1], test: [1], "train": np.ones((3, 2))})
    assert counts_of(tmp_path / "a.npz") == {"train": {"0": 2, "1": 1}, "test": {"1": 1}}
    assert counts_of(tmp_path / "a.npz", column=test) == {"all": {"1": 1}}


def test_class_names_beside_the_labels_are_used_and_absent_classes_count_zero(tmp_path):
    np.savez(tmp_path / "a.npz", fine=[2, 0], coarse=[0, 0], fine_names=[b"owl", b"cat", b"fox"])
    assert counts_of(tmp_path / "a.npz", column="fine") == {"all": {"owl": 1, "cat": 0, "fox": 1}}
    np.savez(tmp_path / "b.npz", labels=[1, 1], classes=["b", "a"])
    assert counts_of(tmp_path / "b.npz") == {"all": {"b": 0, "a": 2}}


def test_parquet_columns_are_read(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    columns = {
        "text": ["x", "y", "z"],
        "category": arrow.array(["fox", "cat", "fox"]).dictionary_encode(),
        "id": [5, 5, 6],
        "split": ["train", "train", "test"],
    }
    parquet.write_table(arrow.table(columns), tmp_path / "a.parquet")
    expected = {"train": {"cat": 1, "fox": 1}, "test": {"fox": 1}}
    assert counts_of(tmp_path / "a.parquet") == expected
    assert counts_of(tmp_path / "a.parquet", column="id")["train"] == {"5": 2}
    columns = {"label": ["a", None], "y": [0, 1]}
    parquet.write_table(arrow.table(columns), tmp_path / "b.parquet")
    with pytest.raises(ValueError, match="row 1 of column 'label'"):
        read_label_counts(tmp_path / "b.parquet")


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ([5, 0, 2], {"all": {"0": 5, "1": 0, "2": 2}}),
        ({"fox": 5, "cat": 2}, {"all": {"fox": 5, "cat": 2}}),
        ({"1": 5, "0": 2}, {"all": {"0": 2, "1": 5}}),
        ({"train": 5, "bus": 2}, {"all": {"train": 5, "bus": 2}}),
        (
            {"train": [5, 2], "val": [1, 1]},
            {"train": {"0": 5, "1": 2}, "validation": {"0": 1, "1": 1}},
        ),
        ({"train": {"fox": 5}, "test": {"fox": 1}}, {"train": {"fox": 5}, "test": {"fox": 1}}),
    ],
)
def test_json_holds_counts(tmp_path, found, expected):
    assert counts_of(written(tmp_path / "a.json", json.dumps(found))) == expected


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "class,count\nfox,900\ncat,90\n"),
        ("a.tsv", "Samples\tname\n900\tfox\n90\tcat\n"),
        ("a.csv", ",label,n\n0,fox,900\n1,cat,90\n"),
        ("a.csv", "label,n,split\nfox,900,train\ncat,90,train\nfox,5,val\n"),
    ],
)
def test_a_table_of_counts_is_one(tmp_path, name, text):
    counts = counts_of(written(tmp_path / name, text))
    assert counts.get("train", counts.get("all")) == {"fox": 900, "cat": 90}
    assert counts.get("validation", {"fox": 5}) == {"fox": 5}


def test_a_parquet_table_of_counts_is_one(tmp_path):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(arrow.table({"label": [2, 0], "count": [10, 900]}), tmp_path / "a.parquet")
    assert counts_of(tmp_path / "a.parquet") == {"all": {"0": 900, "2": 10}}


@pytest.mark.parametrize(
    ("text", "given", "sentence"),
    [
        ("class,count\nfox,9.5\ncat,1\n", {}, "'count'.* whole numbers"),
        ("class,count\nfox,-9\ncat,1\n", {}, "'count'.* whole numbers"),
        ("class,count\nfox,0\ncat,0\n", {}, "no samples at all"),
        ("class,images\nfox,900\ncat,90\n", {}, "call it count"),
        ("fox,900\ncat,90\n", {"column": 0}, "call it count"),
    ],
)
def test_what_may_be_a_table_of_counts_is_not_taken_for_labels(tmp_path, text, given, sentence):
    with pytest.raises(ValueError, match=sentence):
        read_label_counts(written(tmp_path / "a.csv", text), **given)


@pytest.mark.parametrize(
    "text",
    [
        "label,n\nfox,3\ncat,3\nfox,1\n",  # a sample a row: n is something else of it
        "label,path\nfox,a.jpg\ncat,b.jpg\n",
        "id,label\n17,fox\n4,cat\n",
        ",label\n17,fox\n4,cat\n",
        "label,size,width\nfox,3,4\ncat,3,4\n",
        "label,n\nfox,3\n",
    ],
)
def test_other_columns_do_not_make_labels_counts(tmp_path, text):
    place = written(tmp_path / "a.csv", text)
    assert sum(counts_of(place)["all"].values()) == text.count("\n") - 1


def test_what_stands_twice_is_refused_with_both_names(tmp_path):
    for text, names in {
        '{"train": [5, 3], "training": [500, 3]}': "train and training",
        '{"a": 900, "a": 5, "b": 1}': "'a' twice",
        '{"train": {"a": 1}, "train": {"a": 2}}': "'train' twice",
    }.items():
        with pytest.raises(ValueError, match=names):
            read_label_counts(written(tmp_path / "a.json", text))
    for name in ("train", "val", "valid"):
        make_files(tmp_path / "set" / name / "fox", 1)
    with pytest.raises(ValueError, match="val and valid"):
        read_label_counts(tmp_path / "set")
    np.savez(tmp_path / "a.npz", train_label=[0, 1], y_train=[1, 1])
    with pytest.raises(ValueError, match="train_label and y_train"):
        read_label_counts(tmp_path / "a.npz")
    with pytest.raises(ValueError, match="two columns called 'label'"):
        read_label_counts(written(tmp_path / "a.csv", "label,label\na,b\na,c\n"))
    with zipfile.ZipFile(tmp_path / "b.npz", "w") as stored:
        stored.writestr("labels.npy", "one")
        with pytest.warns(UserWarning, match="Duplicate name"):
            stored.writestr("labels.npy", "another")
    with pytest.raises(ValueError, match="'labels' twice"):
        read_label_counts(tmp_path / "b.npz")


def test_an_object_keeps_the_order_of_its_classes(tmp_path):
    place = written(tmp_path / "a.json", '{"fox": 1, "cat": 2}')
    assert list(read_label_counts(place)["all"].counts) == ["fox", "cat"]


def make_files(folder, number):
    folder.mkdir(parents=True)
    for at in range(number):
        (folder / f"{at}.jpg").touch()


def test_a_folder_of_class_folders_is_counted(tmp_path):
    make_files(tmp_path / "fox", 2)
    make_files(tmp_path / "cat" / "more", 3)
    make_files(tmp_path / "owl", 0)
    make_files(tmp_path / ".cache", 4)
    (tmp_path / "cat" / ".DS_Store").touch()
    (tmp_path / "README").touch()
    assert counts_of(tmp_path) == {"all": {"cat": 3, "fox": 2, "owl": 0}}


def test_folders_of_splits_are_counted_apart(tmp_path):
    make_files(tmp_path / "train" / "fox", 2)
    make_files(tmp_path / "train" / "cat", 1)
    make_files(tmp_path / "val" / "fox", 1)
    assert counts_of(tmp_path) == {"train": {"cat": 1, "fox": 2}, "validation": {"fox": 1}}


def test_a_class_called_train_among_others_is_a_class(tmp_path):
    make_files(tmp_path / "train", 2)
    make_files(tmp_path / "bus", 1)
    assert counts_of(tmp_path) == {"all": {"bus": 1, "train": 2}}


def test_labels_keep_their_order_sample_by_sample(tmp_path):
    place = written(tmp_path / "a.csv", "split,label\ntrain,fox\ntest,cat\ntrain,cat\ntrain,fox\n")
    train = read_labels(place)["train"]
    assert [train.values[code] for code in train.codes] == ["fox", "cat", "fox"]


def test_numbers_between_that_do_not_occur_are_classes_without_samples():
    sets = [LabelCounts({"0": 5, "3": 1}, True), LabelCounts({"1": 2}, True)]
    assert align_counts(sets) == (("0", "1", "2", "3"), [(5, 0, 0, 1), (0, 2, 0, 0)])


def test_numbers_far_apart_are_ids_and_only_those_that_occur_are_classes():
    sets = [LabelCounts({"7": 5, "1000": 1}, True), LabelCounts({"52": 2}, True)]
    assert align_counts(sets) == (("7", "52", "1000"), [(5, 0, 1), (0, 2, 0)])


def test_names_keep_the_first_order_and_new_ones_come_last():
    sets = [LabelCounts({"fox": 5, "cat": 1}), LabelCounts({"ape": 2, "fox": 3})]
    assert align_counts(sets) == (("fox", "cat", "ape"), [(5, 1, 0), (3, 0, 2)])


def test_names_and_numbers_do_not_go_together():
    with pytest.raises(ValueError, match=r"numbers.*\('0'\).*names.*\('fox'\)"):
        align_counts([LabelCounts({"fox": 1}), LabelCounts({"0": 1}, True)])


@pytest.mark.parametrize(
    ("name", "text", "given", "sentence"),
    [
        ("a.csv", "x,y1,z\na,b,c\n", {}, r"label: 0 \('a'\), 1 \('b'\).*--column"),
        ("a.csv", "path,kind\na,b\n", {"column": "label"}, "'label', only path, kind"),
        ("a.csv", "path,label\na\n", {}, "1 columns in row 0, too few"),
        ("a.csv", "path,label\na,\n", {}, r"no label.*row 0, column 1"),
        ("a.csv", "path,label\n", {}, r"no rows.*header"),
        ("a.csv", "\n", {}, "has no rows"),
        ("a.csv", "split,label\ntrain,a\nfold1,b\n", {}, "'fold1' in the column"),
        ("a.csv", "label\n0\n-1\n", {}, r"label -1.*from 0"),
        ("a.txt", "a.jpg,3\n", {}, r"commas.*\.csv"),
        ("a.txt", "\n \n", {}, "has no rows"),
        ("a.json", "[1, 2.5]", {}, r"class counts.*got `float`"),
        ("a.json", '["fox"]', {}, "must be JSON class counts"),
        ("a.json", "[-1]", {}, "must be JSON class counts"),
        ("a.json", "[1, ", {}, "must be JSON class counts"),
        ("a.json", "[0, 0]", {}, "counts no samples at all"),
        ("a.json", "[]", {}, "counts no samples at all"),
        ("a.json", '{"train": [1], "other": [2]}', {}, "'other', expected train"),
        ("a.yaml", "x", {}, r"must end in \.csv, \.tsv"),
        ("a.npy", "x", {}, r"a\.npy.*npy file"),
        ("a.npz", "x", {}, r"a\.npz.*npz file.*zip"),
        ("a.csv", "", {}, "is empty"),
        ("b/a.csv", None, {}, "there is no file"),
    ],
)
def test_wrong_files_give_one_sentence(tmp_path, name, text, given, sentence):
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises((ValueError, FileNotFoundError), match=sentence):
        read_label_counts(tmp_path / name, **given)


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"features": np.ones((2, 2))}, r"'labels', only features.*--column"),
        ({"labels": np.ones((2, 2), int)}, r"\(2, 2\).*one-hot"),
        ({"labels": np.ones(2)}, r"integer.*got float64"),
        ({"labels": np.ones(2, bool)}, r"integer.*got bool"),
        ({"labels": np.ones(0, int)}, "has no labels in it"),
        (
            {"labels": np.array([3]), "classes": ["a"]},
            r"0 to 0.*got 3 in row 0",
        ),
    ],
)
def test_wrong_arrays_give_one_sentence(tmp_path, arrays, sentence):
    np.savez(tmp_path / "a.npz", **arrays)
    with pytest.raises(ValueError, match=sentence):
        read_label_counts(tmp_path / "a.npz")


def test_folders_without_classes_or_without_files_are_refused(tmp_path):
    with pytest.raises(ValueError, match="no folders"):
        read_label_counts(tmp_path)
    (tmp_path / "fox").mkdir()
    with pytest.raises(ValueError, match="no files"):
        read_label_counts(tmp_path)


def test_labels_cannot_be_read_from_counts(tmp_path):
    with pytest.raises(ValueError, match=r"counts.*\.json"):
        read_labels(written(tmp_path / "a.json", "[1, 2]"))


def test_links_that_go_in_circles_count_no_file_twice(tmp_path):
    for name in ("a/1", "a/2", "b/1"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "a" / "one").symlink_to(tmp_path / "a")
    (tmp_path / "a" / "two").symlink_to(tmp_path)
    (tmp_path / "b" / "one").symlink_to(tmp_path / "b")
    (tmp_path / "b" / "two").symlink_to(tmp_path)
    assert counts_of(tmp_path) == {"all": {"a": 2, "b": 1}}


@pytest.mark.parametrize(
    "text", ["[9223372036854775808, 1]", '{"a": 18446744073709551616}', "[1e30]"]
)
def test_counts_beyond_what_is_exact_are_refused_with_the_file(tmp_path, text):
    with pytest.raises(ValueError, match=r"a\.json.*class counts"):
        read_label_counts(written(tmp_path / "a.json", text))


@pytest.mark.parametrize("text", [b'{"\xff": 1}', b"[" * 10**5, b'{"a":' * 10**5, b'["\x1b", 1]'])
def test_json_with_bad_characters_or_too_deep_is_refused_with_the_file(tmp_path, text):
    (tmp_path / "a.json").write_bytes(text)
    with pytest.raises(ValueError, match=r"a\.json.*class counts"):
        read_label_counts(tmp_path / "a.json")


def test_a_number_of_thousands_of_digits_is_a_name(tmp_path):
    place = written(tmp_path / "a.txt", f"1.jpg {'9' * 5000}\n2.jpg 1\n")
    assert counts_of(place) == {"all": {"1": 1, "9" * 5000: 1}}


def test_a_packed_file_that_swells_as_none_should_is_left(tmp_path, monkeypatch):
    monkeypatch.setattr(text_files, "_MOST_UNPACKED", 2**20)
    place = written(tmp_path / "a.csv.gz", "label\n" + "0\n" * 2**20)
    with pytest.raises(ValueError, match=r"a\.csv\.gz.*200 times.*unpack"):
        read_label_counts(place)
    (tmp_path / "a.csv").write_bytes(gzip.decompress(place.read_bytes()))
    assert counts_of(tmp_path / "a.csv") == {"all": {"0": 2**20}}


@pytest.mark.parametrize("name", ["a.csv", "a.tsv", "a.txt"])
def test_a_line_without_end_is_left_before_memory_is_full(tmp_path, monkeypatch, name):
    monkeypatch.setattr(text_files, "_LONGEST_LINE", 1000)
    with pytest.raises(ValueError, match=rf"{name} .*1,000 characters"):
        read_label_counts(written(tmp_path / name, "label\n" + "0 " * 1000))


@pytest.mark.parametrize("label", [{"a": 1}, [1], [("a", 1)]])
def test_a_parquet_column_that_is_no_label_is_named_with_its_type(tmp_path, label):
    arrow, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    kind = arrow.map_(arrow.string(), arrow.int64()) if label == [("a", 1)] else None
    parquet.write_table(
        arrow.table({"label": arrow.array([label] * 3, type=kind)}), tmp_path / "a.parquet"
    )
    said = r"column 'label' of .*a\.parquet must be class indices or .*, got (struct|list|map)"
    with pytest.raises(ValueError, match=said):
        read_label_counts(tmp_path / "a.parquet")


def test_a_table_of_counts_names_no_class_twice(tmp_path):
    path = written(tmp_path / "twice.csv", "class,count\na,900\nb,90\nc,10\nc,10\n")
    with pytest.raises(ValueError, match="'c' twice"):
        read_label_counts(path)
    # A row a sample, with more beside its label.
    path = written(tmp_path / "rows.csv", "class,count,x\na,3,0.5\na,4,0.1\nb,3,0.2\n")
    assert counts_of(path) == {"all": {"a": 2, "b": 1}}
