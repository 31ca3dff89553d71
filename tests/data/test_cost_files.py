"""Costs from files: by name, by index, a class or a matrix, in the order of the classes."""

import gzip
import json

import numpy as np
import pytest

from longtail.data import read_costs

NAMES = ("cat", "fox", "owl")
MATRIX = [[0, 1, 2], [3, 0, 4], [5, 6, 0]]


def write(path, text):
    path.write_text(text)
    return path


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.csv", "class,cost\ncat,1\nfox,5\nowl,2.5\n"),
        ("a.csv", "owl,2.5\ncat,1\nfox,5\n"),
        ("a.tsv", "class\tcost\nfox\t5\nowl\t2.5\ncat\t1\n"),
        ("a.json", '{"owl": 2.5, "cat": 1, "fox": 5}'),
        ("a.json", "[1, 5, 2.5]"),
    ],
)
def test_a_cost_a_class_is_put_in_order(tmp_path, name, text):
    assert read_costs(write(tmp_path / name, text), 3, NAMES).tolist() == [1, 5, 2.5]


def test_a_packed_table_is_one_too(tmp_path):
    with gzip.open(tmp_path / "a.csv.gz", "wt") as file:
        file.write("class,cost\n0,1\n1,5\n")
    assert read_costs(tmp_path / "a.csv.gz", 2).tolist() == [1, 5]


def test_classes_without_names_are_called_by_their_index(tmp_path):
    path = write(tmp_path / "a.csv", "1,5\n0,1\n2,0\n")
    assert read_costs(path, 3).tolist() == [1, 5, 0]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("m.csv", "true,cat,fox,owl\ncat,0,1,2\nfox,3,0,4\nowl,5,6,0\n"),
        ("m.csv", ",owl,cat,fox\nfox,4,3,0\ncat,2,0,1\nowl,0,5,6\n"),
        ("m.json", json.dumps(MATRIX)),
        (
            "m.json",
            '{"fox": {"cat": 3, "fox": 0, "owl": 4}, "cat": {"cat": 0, "fox": 1, "owl": 2}, '
            '"owl": {"cat": 5, "fox": 6, "owl": 0}}',
        ),
    ],
)
def test_a_matrix_has_true_classes_as_rows_and_decided_ones_as_columns(tmp_path, name, text):
    np.testing.assert_array_equal(read_costs(write(tmp_path / name, text), 3, NAMES), MATRIX)


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("a.csv", "cat,1\nfox,5\n", "has no 'owl'"),
        ("a.csv", "cat,1\nfox,5\nowl,1\nrat,1\n", "a class 'rat', unknown"),
        ("a.csv", "cat,1\nfox,5\ncat,1\n", "'cat' twice"),
        ("a.csv", "class,cost\ncat,1\nfox,much\nowl,1\n", "'much' for class 'fox'"),
        ("a.csv", "cat,-1\nfox,5\nowl,1\n", "none negative, got -1"),
        ("a.csv", "cat\nfox\nowl\n", "a class and its cost"),
        ("a.csv", "true,cat,fox,owl\ncat,0,1\n", "3 columns in row 1"),
        ("a.csv", "true,cat,fox\ncat,0,1\nfox,1,0\nowl,1,1\n", "has no 'owl'"),
        ("a.csv", "true,cat,cat,owl\ncat,0,1,1\n", "twice in its first row"),
        ("a.csv", "", "is empty"),
        ("a.json", '[1, "x", 2]', "must be what mistakes cost"),
        ("a.json", "[[0, 1], [1]]", "a.json"),
        ("a.json", '{"cat": {"cat": 1}, "fox": 2}', "must be what mistakes cost"),
        ("a.json", '{"cat": 1, "cat": 2}', "twice"),
        ("a.json", "[]", "shape"),
        ("a.json", "[1, 2]", "one number for each of 3 classes"),
    ],
)
def test_a_file_that_holds_no_costs_is_refused_by_name(tmp_path, name, text, words):
    path = write(tmp_path / name, text)
    with pytest.raises(ValueError, match=words) as caught:
        read_costs(path, 3, NAMES)
    assert name in str(caught.value)


def test_a_file_that_is_not_there_is_said_so(tmp_path):
    with pytest.raises(FileNotFoundError):
        read_costs(tmp_path / "none.csv", 2)
