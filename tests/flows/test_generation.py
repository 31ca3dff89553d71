"""The files of one run are put in place together, whenever somebody kills it."""

import json
import multiprocessing
import os
from pathlib import Path

import pytest

from flows.dying import NEW, OLD, die_at, write
from longtail.flows.generation import Generation, generation, generation_in, settle

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
    assert generation_in(out) == Generation("fix", ("new.json", "report.html", "shared.json"))
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
    with pytest.raises(ValueError, match="files of longtail fix"):
        write(out, "new", NEW, kind="fit")
    assert visible(out) == OLD | {"notes.txt": "mine"}


def test_what_a_longtail_left_that_did_not_name_its_files_goes_too(tmp_path):
    for name in ("stale.json", "other.json"):
        (tmp_path / name).write_text("old")
    (tmp_path / "report.html").write_text("<title>longtail fix</title>")
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


def manifest(**said):
    return json.dumps({"kind": "fix", "files": [], "replaces": []} | said)


BAD_NAMES = ["../a", "..", ".", "", "/a", "b\\a", "a\0", "\ud800", ".longtail", 1, None, ["a"]]
DAMAGED = [
    "",
    "[]",
    '{"kind": "fix"}',
    '{"kind": "fix", "files": []}',
    "[" * 100_000,
    " " * 2**21 + manifest(),
    manifest(kind=["fix"]),
    manifest(files="report.html"),
    manifest(files={"report.html": 1}),
    manifest(replaces=None),
    *(manifest(files=[name]) for name in BAD_NAMES),
    *(manifest(replaces=[name]) for name in BAD_NAMES),
]


@pytest.mark.parametrize("place", ["generation.json", "placing/generation.json"])
@pytest.mark.parametrize("text", DAMAGED, ids=range(len(DAMAGED)))
def test_a_damaged_list_of_files_is_named_and_removes_nothing(out, text, place):
    (out.parent / "a").write_text("mine")
    (out / ".longtail" / "placing").mkdir()
    good = manifest(files=["report.html"])
    (out / ".longtail" / "placing" / "generation.json").write_text(good)
    (out / ".longtail" / "placing" / "report.html").write_text("new")
    (out / ".longtail" / place).write_text(text)
    for attempt in (lambda: write(out, "new", NEW), lambda: settle(out)):
        with pytest.raises(ValueError, match=r"generation\.json is damaged; remove"):
            attempt()
    assert (out.parent / "a").read_text() == "mine"
    assert (out / ".longtail" / "placing" / "report.html").exists()
    assert visible(out) == OLD | {"notes.txt": "mine"}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
@pytest.mark.parametrize("place", ["generation.json", "placing/generation.json"])
@pytest.mark.parametrize("make", [os.mkfifo, lambda path: os.symlink("../../notes.txt", path)])
def test_a_list_of_files_that_is_a_pipe_or_a_link_is_not_read(out, place, make, monkeypatch):
    monkeypatch.setattr(Path, "read_text", lambda *_, **__: pytest.fail("it would wait for ever"))
    path = out / ".longtail" / place
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    make(path)
    with pytest.raises(ValueError, match=r"generation\.json is damaged; remove"):
        write(out, "new", NEW)
    monkeypatch.undo()
    assert visible(out) == OLD | {"notes.txt": "mine"}


def test_a_link_in_the_place_of_what_is_to_be_put_in_place_is_refused(out, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "generation.json").write_text(manifest(files=["notes.txt"]))
    (elsewhere / "notes.txt").write_text("theirs")
    (out / ".longtail" / "placing").symlink_to(elsewhere)
    for attempt in (lambda: write(out, "new", NEW), lambda: settle(out)):
        with pytest.raises(ValueError, match=r"placing.*no folder; remove"):
            attempt()
    assert sorted(os.listdir(elsewhere)) == ["generation.json", "notes.txt"]
    assert visible(out) == OLD | {"notes.txt": "mine"}


def test_files_to_be_put_in_place_without_a_list_are_kept_and_named(out):
    (out / ".longtail" / "placing").mkdir()
    (out / ".longtail" / "placing" / "thesis.tex").write_text("mine")
    with pytest.raises(ValueError, match=r"placing.*no list"):
        write(out, "new", NEW)
    assert (out / ".longtail" / "placing" / "thesis.tex").read_text() == "mine"


def test_a_folder_among_what_is_to_be_removed_is_told_before_anything_is(out):
    (out / "mine").mkdir()
    placing = out / ".longtail" / "placing"
    placing.mkdir()
    (placing / "generation.json").write_text(manifest(replaces=["mine", "notes.txt"]))
    with pytest.raises(IsADirectoryError, match="mine is a folder"):
        write(out, "new", NEW)
    assert {path.name for path in out.glob("[!.]*")} == {*OLD, "notes.txt", "mine"}


@pytest.mark.parametrize("name", ["new.json", "report.html"])
def test_a_file_that_no_longtail_wrote_is_not_written_over(tmp_path, name):
    (tmp_path / name).write_text("mine")
    with pytest.raises(ValueError, match=rf"{name} is there and was not written by longtail"):
        write(tmp_path, "new", NEW)
    assert visible(tmp_path) == {name: "mine"}


def test_a_page_of_somebody_is_not_taken_for_one_of_longtail_for_what_is_beside_it(tmp_path):
    theirs = {"report.html": "mine", "stale.json": "mine"}
    for name, text in theirs.items():
        (tmp_path / name).write_text(text)
    with pytest.raises(ValueError, match=r"report\.html is there and was not written by longtail"):
        write(tmp_path, "new", NEW)
    assert visible(tmp_path) == theirs


def test_nor_is_one_that_came_to_the_files_of_a_run_before(out):
    (out / "new.json").write_text("mine")
    with pytest.raises(ValueError, match=r"new\.json.*not written by longtail"):
        write(out, "new", NEW)
    assert visible(out) == OLD | {"notes.txt": "mine", "new.json": "mine"}


def test_a_page_alone_that_says_it_is_of_longtail_may_be_replaced(tmp_path):
    (tmp_path / "report.html").write_text("<title>longtail report</title>")
    write(tmp_path, "new", ["report.html"])
    assert visible(tmp_path) == {"report.html": "new"}
