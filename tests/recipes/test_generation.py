"""The files of one run are put in place together, whenever somebody kills it."""

import json
import multiprocessing
import os

import pytest

from longtail.recipes.generation import Generation, generation, held_in, settle
from recipes.dying import NEW, OLD, die_at, write

SERVER = multiprocessing.get_context("forkserver")
# There is one server for all tests: what others preload must stay in the list.
SERVER.set_forkserver_preload(
    ["longtail.engine.training", "torch._dynamo", "torch.distributed.fsdp", "longtail.recipes"]
)


def visible(folder):
    return {path.name: path.read_text() for path in folder.glob("[!.]*")}


@pytest.fixture
def out(tmp_path):
    write(tmp_path / "out", "old", OLD)
    (tmp_path / "out" / "notes.txt").write_text("mine")
    return tmp_path / "out"


def test_files_take_the_place_of_those_before_and_nothing_else_is_touched(out):
    assert visible(out) == OLD | {"notes.txt": "mine"}
    write(out, "new", NEW)
    assert visible(out) == NEW | {"notes.txt": "mine"}
    assert held_in(out) == Generation("fix", ("new.json", "report.html", "shared.json"))
    assert sorted(os.listdir(out / ".longtail")) == ["generation.json", "lock"]


def test_an_error_leaves_the_old_files(out):
    def fail():
        with generation(out, "fix") as aside:
            (aside / "report.html").write_text("new")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        fail()
    assert visible(out) == OLD | {"notes.txt": "mine"}
    assert sorted(os.listdir(out / ".longtail")) == ["generation.json", "lock"]


def test_files_of_another_kind_are_refused(out):
    with pytest.raises(ValueError, match="holds the files of longtail fix, which would be lost"):
        write(out, "new", NEW, kind="fit")
    assert visible(out) == OLD | {"notes.txt": "mine"}


def test_what_a_longtail_left_that_did_not_name_its_files_goes_too(tmp_path):
    for name in ("report.html", "stale.json", "other.json"):
        (tmp_path / name).write_text("old")
    write(tmp_path, "new", ["new.json"])
    assert visible(tmp_path) == {"new.json": "new", "other.json": "old"}


def test_a_file_of_a_name_that_is_ours_stays_where_no_command_has_written(tmp_path):
    (tmp_path / "stale.json").write_text("mine")
    write(tmp_path, "new", ["new.json"])
    assert visible(tmp_path) == {"new.json": "new", "stale.json": "mine"}


def test_a_folder_where_a_file_should_go_is_told_before_anything_changes(out):
    (out / "new.json").mkdir()
    with pytest.raises(IsADirectoryError, match=r"new\.json is a folder"):
        write(out, "new", NEW)
    assert {name: (out / name).read_text() for name in OLD} == OLD


def test_a_run_that_dies_at_any_step_leaves_the_old_files_or_the_new_but_never_both(tmp_path):
    ends = []
    for step in range(1, 40):
        out = tmp_path / str(step)
        write(out, "old", OLD)
        process = SERVER.Process(target=die_at, args=(str(out), step))
        process.start()
        process.join()
        found = visible(out)
        assert len(set(found.values())) <= 1
        if (out / ".longtail" / "placing").is_dir():
            assert settle(out)
            assert visible(out) == NEW
            ends.append("marked")
        else:
            assert found in (OLD, NEW)
            ends.append("old" if found == OLD else "new")
        write(out, "later", ["later.json"])
        assert visible(out) == {"later.json": "later"}
        assert sorted(os.listdir(out / ".longtail")) == ["generation.json", "lock"]
        if process.exitcode == 0:
            break
    assert process.exitcode == 0  # every step was tried
    assert ends == sorted(ends, key=["old", "marked", "new"].index)
    assert ends.count("marked") >= 7


def test_who_may_not_finish_it_says_so(out):
    placing = out / ".longtail" / "placing"
    placing.mkdir()
    said = {"kind": "fix", "files": ["a"], "replaces": []}
    (placing / "generation.json").write_text(json.dumps(said))
    (out / ".longtail" / "lock").unlink()
    (out / ".longtail" / "lock").mkdir()
    assert not settle(out)
    assert visible(out) == OLD | {"notes.txt": "mine"}


@pytest.mark.parametrize(
    "text", ["", "[]", '{"kind": "fix"}', '{"kind": "fix", "files": ["../a"], "replaces": []}']
)
def test_a_damaged_list_of_files_is_named_and_removes_nothing(out, text):
    (out.parent / "a").write_text("mine")
    (out / ".longtail" / "generation.json").write_text(text)
    with pytest.raises(ValueError, match=r"generation\.json is damaged; remove"):
        write(out, "new", NEW)
    assert (out.parent / "a").read_text() == "mine"
    assert visible(out) == OLD | {"notes.txt": "mine"}
