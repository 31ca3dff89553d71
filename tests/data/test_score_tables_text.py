"""Scores as text: headers, columns, quotes, and every way in which a line can be wrong."""

import gzip
import time
import warnings

import numpy as np
import pytest

from longtail.data import Layout, open_score_table


def opened(place, text, layout=None, kind="logits", **given):
    place.write_text(text)
    return open_score_table(place, kind, layout=layout, **given)


def rows(table):
    return table.as_scores().logits.tolist()


def test_without_a_header_all_columns_are_scores(tmp_path):
    table = opened(tmp_path / "a.csv", "1.5,2,-3e-1\n4,5,6\n")
    assert rows(table) == [[1.5, 2, -0.3], [4, 5, 6]]
    assert table.classes is None
    assert table.labels is None


@pytest.mark.parametrize("label", ["label", 1])
def test_a_label_column_may_stand_anywhere_by_name_or_by_place(tmp_path, label):
    table = opened(tmp_path / "a.csv", "cat,label,fox\n1,fox,2\n3,cat,4\n", Layout(labels=label))
    assert rows(table) == [[1, 2], [3, 4]]
    assert table.classes == ("cat", "fox")
    assert table.labels.tolist() == [1, 0]


def test_a_label_column_without_a_header_holds_indices(tmp_path):
    table = opened(tmp_path / "a.tsv", "0\t1\t2\t3\n2\t4\t5\t6\n", Layout(labels=0))
    assert rows(table) == [[1, 2, 3], [4, 5, 6]]
    assert table.labels.tolist() == [0, 2]


@pytest.mark.parametrize("width", [3, 7])
def test_labels_at_either_end_of_wide_rows_are_the_right_ones(tmp_path, width):
    for place in range(width):
        lines = []
        for row in range(4):
            fields = [f"{10 * row + column}.5" for column in range(width)]
            fields[place] = str(row % (width - 1))
            lines.append(",".join(fields))
        table = opened(tmp_path / "a.csv", "\n".join(lines), Layout(labels=place))
        assert table.labels.tolist() == [row % (width - 1) for row in range(4)]
        kept = [column for column in range(width) if column != place]
        assert rows(table) == [[10 * row + column + 0.5 for column in kept] for row in range(4)]


def test_columns_that_are_neither_can_be_skipped(tmp_path):
    text = "file,cat,fox,note,label\na.jpg,1,2,x,cat\nb.jpg,3,4,y,fox\n"
    table = opened(tmp_path / "a.csv", text, Layout(skip=("file", 3)))
    assert rows(table) == [[1, 2], [3, 4]]
    assert (table.classes, table.labels.tolist()) == (("cat", "fox"), [0, 1])


def test_quotes_hold_names_with_commas_together(tmp_path):
    text = '"cat, big",fox,label\n1,2,"cat, big"\n"3",4,fox\n'
    table = opened(tmp_path / "a.csv", text)
    assert table.classes == ("cat, big", "fox")
    assert table.labels.tolist() == [0, 1]
    assert rows(table) == [[1, 2], [3, 4]]


def test_quoted_text_over_several_lines_is_one_row(tmp_path):
    text = 'note,cat,fox,label\n"two\nlines, ""x""",1,2,cat\nplain,3,4,fox\n"y",5,6,cat\n'
    table = opened(tmp_path / "a.csv", text, Layout(skip=["note"]))
    assert [block.logits.tolist() for block in table.blocks(2)] == [[[1, 2]], [[3, 4]], [[5, 6]]]
    assert table.labels.tolist() == [0, 1, 0]


def test_in_tsv_quotes_are_text(tmp_path):
    table = opened(tmp_path / "a.tsv", '5" disk\tfox\tlabel\n1\t2\t5" disk\n')
    assert table.classes == ('5" disk', "fox")
    assert table.labels.tolist() == [0]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_line_ends_blank_lines_and_a_byte_order_mark_do_not_matter(tmp_path, end):
    lines = ["a,b,label", "", "1,2,a", "", "3,4,b", "", ""]
    (tmp_path / "a.csv").write_bytes(b"\xef\xbb\xbf" + end.join(lines).encode())
    table = open_score_table(tmp_path / "a.csv", "logits")
    assert rows(table) == [[1, 2], [3, 4]]
    assert (table.classes, table.labels.tolist()) == (("a", "b"), [0, 1])


def test_a_packed_file_reads_the_same(tmp_path):
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(b"a,b\n1,2\n3,4\n"))
    assert rows(open_score_table(tmp_path / "a.csv.gz", "logits")) == [[1, 2], [3, 4]]


def test_blocks_go_on_where_the_last_one_ended(tmp_path):
    numbers = np.random.default_rng(0).normal(size=(57, 3))
    text = "\n".join(",".join(map(repr, row)) for row in numbers.tolist())
    table = opened(tmp_path / "a.csv", f"a,b,c\n{text}\n")
    blocks = list(table.blocks(30))
    assert [len(block.logits) for block in blocks] == [10] * 5 + [7]
    np.testing.assert_array_equal(np.concatenate([block.logits for block in blocks]), numbers)


def test_another_delimiter_can_be_said(tmp_path):
    assert rows(opened(tmp_path / "a.csv", "1;2\n3;4\n", Layout(delimiter=";"))) == [[1, 2], [3, 4]]


def test_a_first_line_of_indices_is_either_and_has_to_be_said(tmp_path):
    text = "0,1,2\n5,6,7\n"
    with pytest.raises(ValueError, match="--header or"):
        opened(tmp_path / "a.csv", text)
    named = opened(tmp_path / "a.csv", text, Layout(header=True))
    assert (rows(named), named.classes) == ([[5, 6, 7]], ("0", "1", "2"))
    plain = opened(tmp_path / "a.csv", text, Layout(header=False))
    assert (rows(plain), plain.classes) == ([[0, 1, 2], [5, 6, 7]], None)


def test_text_labels_are_names_if_all_are_names_and_else_indices(tmp_path):
    names = opened(tmp_path / "a.csv", "1,2,label\n0.1,0.2,2\n0.3,0.4,1\n", Layout(header=True))
    assert names.labels.tolist() == [1, 0]
    indices = opened(tmp_path / "a.csv", "a,b,label\n0.1,0.2,1\n0.3,0.4,0\n")
    assert indices.labels.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("text", "layout", "sentence"),
    [
        ("a,b\n1,2\n3\n", None, r"2 columns.*1 in row 1"),
        ("a,b\n1,2\n3,4,5\n", None, "has 2 columns, but 3 in row 1"),
        ('a,b\n1,2\n"3,4\n', None, "has 2 columns, but 1 in row 1"),
        ("a,b\n1,2\n3,x\n", None, "'x' in row 1, column 'b'"),
        ("a,b\n1,2\n3,\n", None, "has '' in row 1, column 'b'"),
        ("1,2\n3,x\n", None, "has 'x' in row 1, column 1"),
        ("a,b\n1,2\nnan,4\n", None, "got nan in row 1, class 0"),
        ("file,a,b\nx.jpg,1,2\n", None, r"'x\.jpg'.*column 'file'.*--label-column, --skip"),
        ("a,b\n", None, "has no rows"),
        ("\n\n", None, "has no rows"),
        ("1;2\n", None, r"one column.*'1;2'.*--delimiter"),
        ("a,b,label\n1,2,emu\n", None, r"'emu' in row 0.*2 class names"),
        ("a,b,label\n1,2,\n", None, "'' in row 0"),
        ("a,a\n1,2\n", None, "two columns called 'a'"),
        ("a,b\n1,2\n", Layout(labels="y"), "'y', only a, b"),
        ("a,b\n1,2\n", Layout(labels=2), r"2 columns.*none at 2"),
        ("a,b\n1,2\n", Layout(labels=-1), "so none at -1"),
        ("1,2\n", Layout(labels="y", header=False), "'y': its first line"),
        ("a,label\n1,a\n", None, r"two or more.*\(1, 1\)"),
    ],
)
def test_wrong_text_gives_one_sentence_with_the_row(tmp_path, text, layout, sentence):
    with pytest.raises(ValueError, match=sentence):
        list(opened(tmp_path / "a.csv", text, layout).blocks())


def test_the_row_of_a_wrong_number_is_counted_through_the_blocks(tmp_path):
    lines = [f"{row},1.5" for row in range(40)]
    lines[33] = "x,1.5"
    table = opened(tmp_path / "a.csv", "\n".join(lines))
    with pytest.raises(ValueError, match="has 'x' in row 33, column 0"):
        list(table.blocks(20))


def test_text_that_is_not_utf8_is_named(tmp_path):
    (tmp_path / "a.csv").write_bytes(b"caf\xe9,fox\n1,2\n")
    with pytest.raises(ValueError, match=r"a\.csv.*UTF-8"):
        open_score_table(tmp_path / "a.csv", "logits")


@pytest.mark.parametrize(
    ("text", "left_out"),
    [
        (",a,b\n0,5,6\n1,7,8\n", True),
        (",a,b\n3,5,6\n", True),
        (",a,b\n0.5,5,6\n", False),  # a class that somebody forgot to name
        ("0,5,6\n1,7,8\n2,9,9\n", True),
        ("0,5,6\n1,7,8\n", False),  # two numbers may be scores
        ("x,a,b\n0,5,6\n1,7,8\n2,9,9\n", True),
        ("x,a,b\n0.0,5,6\n1.0,7,8\n2.0,9,9\n", False),
        ("x,a,b\n1,5,6\n2,7,8\n3,9,9\n", False),
    ],
)
def test_a_first_column_of_row_numbers_or_without_a_name_is_an_index(tmp_path, text, left_out):
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        table = opened(tmp_path / "a.csv", text)
    assert table.num_classes == (2 if left_out else 3)
    assert len(said) == left_out


def test_a_name_that_stands_twice_is_found_at_once_among_many(tmp_path):
    names = ",".join(map(str, range(10**5)))
    started = time.monotonic()
    with pytest.raises(ValueError, match="two columns called '99999'"):
        opened(tmp_path / "a.csv", f"{names},99999\n{'0,' * 10**5}0\n", Layout(header=True))
    assert time.monotonic() - started < 2


def test_a_field_that_is_too_long_is_told_with_the_file(tmp_path):
    for header in ("a,b\n", ""):
        with pytest.raises(ValueError, match=r"a\.csv.*field limit"):
            opened(tmp_path / "a.csv", f'{header}1,"{"2" * 200_000}"\n')
