"""`longtail audit`: newcomers' files, what is printed, what is written, what is refused."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner

from longtail.cli import app

LONGTAIL = Path(sys.executable).with_name("longtail")
TSV = "".join(
    f"{split}\t{label}\tsome text\n"
    for split, counts in (("train", (60, 12, 1)), ("test", (10, 10, 10)))
    for label, number in zip(("cat", "dog", "[red]"), counts, strict=True)
    for _ in range(number)
)


def audit(*arguments):
    done = CliRunner().invoke(app, ["audit", *map(str, arguments)])
    return done, " ".join(done.output.split())


def failed(*arguments):
    done = CliRunner().invoke(app, ["audit", *map(str, arguments)])
    assert "Traceback" not in done.stderr
    return done


@pytest.fixture
def tsv(tmp_path):
    (tmp_path / "labels.tsv").write_text(TSV)
    return tmp_path / "labels.tsv"


def test_both_splits_of_a_table_are_audited(tsv):
    done, printed = audit(tsv, "--column", 1)
    assert done.exit_code == 0
    for words in (
        f"train: {tsv}, its train part",
        f"test: {tsv}, its test part",
        "imbalance ratio 60 1",
        "1 ([red])",
        "those of [red] start 4.1 nats behind those of cat",
        "The test set is balanced and the training set is not",
        "1 class ([red]) has a single sample",
        "longtail fix VAL --kind KIND --counts counts.json --target uniform -o fixed",
        "-o FOLDER writes the counts",
    ):
        assert words in printed


def test_json_is_json_and_nothing_else(tsv):
    done, _ = audit(tsv, "--column", 1, "--json")
    found = json.loads(done.output)
    assert found["train"]["num_samples"] == 73
    assert found["test"]["imbalance_ratio"] == 1
    assert found["expect"][0] == "tail"
    assert found["try"][0]["command"].startswith("longtail fix VAL")


def test_a_folder_is_written_with_counts_that_can_be_read_again(tsv, tmp_path):
    done, printed = audit(tsv, "--column", 1, "-o", tmp_path / "new" / "out")
    assert done.exit_code == 0
    out = tmp_path / "new" / "out"
    assert json.loads((out / "counts.json").read_text()) == {"[red]": 1, "cat": 60, "dog": 12}
    assert json.loads((out / "test_counts.json").read_text())["cat"] == 10
    assert json.loads((out / "audit.json").read_text())["bias"] == pytest.approx(np.log(60))
    page = (out / "report.html").read_text()
    assert f"longtail audit {tsv} --column 1" in page
    assert f"--counts {out / 'counts.json'}" in printed
    files = (out / "counts.json", "--test", out / "test_counts.json")
    again = json.loads(audit(*files, "--json")[0].output)
    first = json.loads(audit(tsv, "--column", 1, "--json")[0].output)
    assert again["shift"] == first["shift"]


def test_held_out_labels_may_come_from_another_kind_of_file(tmp_path):
    np.savez(tmp_path / "a.npz", train_label=[0] * 30 + [1] * 3, test_label=[0, 1])
    (tmp_path / "val.txt").write_text("x.jpg 0\n" * 4 + "y.jpg 2\n")
    done, printed = audit(tmp_path / "a.npz", "--test", tmp_path / "val.txt")
    assert done.exit_code == 0
    assert f"test: {tmp_path / 'val.txt'} " in printed
    assert "1 class (2) has test samples but no training samples" in printed
    assert "1 class (1) has no test samples" in printed


def test_a_folder_of_classes_is_audited(tmp_path):
    for name, number in (("cat", 5), ("fox", 1)):
        (tmp_path / name).mkdir()
        for at in range(number):
            (tmp_path / name / f"{at}.jpg").touch()
    done, printed = audit(tmp_path)
    assert done.exit_code == 0
    assert "5 (cat)" in printed


def test_counts_of_a_json_list_are_called_classes(tmp_path):
    (tmp_path / "c.json").write_text("[5000, 5]")
    _, printed = audit(tmp_path / "c.json")
    assert "5,000 (class 0)" in printed
    assert "class 1 start 6.9 nats behind those of class 0" in printed
    assert f"--counts {tmp_path / 'c.json'} --target" in printed


def test_a_table_whose_column_is_not_said_shows_what_it_has(tsv):
    done = failed(tsv)
    assert done.exit_code == 1
    assert done.stderr.startswith("Error: ")
    assert "1 ('[red]'), 2 ('some text'); say with column (--column)" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        ((), 2, "Missing argument 'LABELS'"),
        (("none.csv",), 2, "Path 'none.csv' does not exist"),
        (("none.csv", "--fast"), 2, "No such option"),
    ],
)
def test_wrong_usage_and_missing_files_exit_with_2(arguments, code, sentence):
    done = failed(*arguments)
    assert (done.exit_code, sentence in done.stderr) == (code, True)


def test_labels_without_a_training_part_are_refused(tmp_path):
    (tmp_path / "a.csv").write_text("split,label\ntest,a\nval,b\n")
    done = failed(tmp_path / "a.csv")
    assert done.exit_code == 1
    assert "has no training labels, only validation, test" in done.stderr


def test_a_missing_extra_is_one_sentence(tmp_path):
    (tmp_path / "pyarrow.py").write_text("raise ImportError('gone')")
    (tmp_path / "a.parquet").write_bytes(b"PAR1")
    done = subprocess.run(
        [LONGTAIL, "audit", tmp_path / "a.parquet"],
        capture_output=True,
        text=True,
        check=False,
        env={"PYTHONPATH": str(tmp_path), "PATH": "/usr/bin"},
    )
    assert done.returncode == 1
    assert done.stderr.startswith("Error: ")
    assert 'run: pip install "longtail[parquet]"' in done.stderr


def test_help_answers_without_torch_and_explains_every_option():
    code = (
        "import sys; from longtail.cli import app; "
        "app.main(['audit', '--help'], standalone_mode=False); "
        "sys.exit('torch' in sys.modules or 'numpy' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    for words in ("Held-out labels", "place counted from 0", "names its columns", "report.html"):
        assert words in " ".join(done.stdout.split())
