"""A folder is written to by one process; what dies holds nothing."""

import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from longtail.core.files import locked

HOLD = """
import os, sys, time
from longtail.core.files import locked
with locked(sys.argv[1]):
    if not os.fork():  # as loaders of images are
        print(os.getpid(), flush=True)
    time.sleep(60)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="there is no fork")
def test_a_killed_process_holds_nothing_though_a_worker_of_it_lives_on(tmp_path):
    command = [sys.executable, "-c", HOLD, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as holder:
        worker = int(holder.stdout.readline())
        try:
            said = rf"process {holder.pid}\) is writing to"
            with pytest.raises(BlockingIOError, match=said), locked(tmp_path):
                pass
            holder.kill()
            holder.wait()
            os.kill(worker, 0)  # it is there
            with locked(tmp_path):
                assert (tmp_path / ".longtail" / "lock").read_text() == str(os.getpid())
        finally:
            os.kill(worker, 9)
    assert not list(tmp_path.iterdir())


def test_the_thread_that_holds_it_may_take_it_again_and_no_other(tmp_path):
    said = []

    def other():
        try:
            with locked(tmp_path / "out"):
                said.append("taken")
        except BlockingIOError:
            said.append("refused")

    with locked(tmp_path / "out"):
        with locked(tmp_path / "out"):
            pass
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
    assert said == ["refused"]
    other()
    assert said == ["refused", "taken"]


def test_what_was_made_for_the_lock_alone_goes_with_it(tmp_path):
    with locked(tmp_path / "a" / "b"):
        assert (tmp_path / "a" / "b").is_dir()
    assert not list(tmp_path.iterdir())
    with locked(tmp_path / "a" / "b"):
        (tmp_path / "a" / "b" / "file").touch()
    assert [path.name for path in (tmp_path / "a" / "b").iterdir()] == ["file"]


def test_a_link_in_the_place_of_its_own_folder_is_refused(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / ".longtail").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ValueError, match="is no folder; remove it"), locked(tmp_path / "out"):
        pass
    assert not list((tmp_path / "elsewhere").iterdir())


def test_a_link_in_the_place_of_the_lock_is_not_followed(tmp_path):
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "out" / ".longtail").mkdir(parents=True)
    (tmp_path / "out" / ".longtail" / "lock").symlink_to(tmp_path / "mine")
    with pytest.raises(OSError, match="symbolic links"), locked(tmp_path / "out"):
        pass
    assert (tmp_path / "mine").read_text() == "mine"


def test_a_second_name_of_another_file_in_the_place_of_the_lock_is_left_alone(tmp_path):
    (tmp_path / "mine").write_text("mine")
    (tmp_path / "out" / ".longtail").mkdir(parents=True)
    os.link(tmp_path / "mine", tmp_path / "out" / ".longtail" / "lock")
    said = r"lock is not a file that longtail made: .* remove it"
    with pytest.raises(ValueError, match=said), locked(tmp_path / "out"):
        pass
    assert (tmp_path / "mine").read_text() == "mine"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes with names")
def test_a_pipe_in_the_place_of_the_lock_is_refused(tmp_path):
    (tmp_path / ".longtail").mkdir()
    os.mkfifo(tmp_path / ".longtail" / "lock")
    with pytest.raises(ValueError, match="not a file that longtail made"), locked(tmp_path):
        pass


def test_a_folder_that_cannot_be_made_is_named_and_not_tried_for_ever(tmp_path, monkeypatch):
    tried = []

    def nowhere(path, **_):
        tried.append(path)
        assert len(tried) < 1000, "it does not end"
        raise FileNotFoundError(2, "No such file or directory", str(path))

    monkeypatch.setattr(Path, "mkdir", nowhere)  # as in /proc
    with (
        pytest.raises(FileNotFoundError, match="out cannot be made"),
        locked(tmp_path / "out"),
    ):
        pass
