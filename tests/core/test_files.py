"""Files are read and written whole or not at all."""

import errno
import os

import pytest

from longtail.core.files import read_whole, written_whole


def test_a_file_takes_the_place_of_another_once_it_is_whole(tmp_path):
    place = tmp_path / "numbers.txt"
    place.write_text("old")
    with written_whole(place) as part:
        part.write_text("new")
        assert place.read_text() == "old"
    assert place.read_text() == "new"
    assert list(tmp_path.iterdir()) == [place]


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path):
    place = tmp_path / "numbers.txt"
    place.write_text("old")

    def write_half():
        with written_whole(place) as part:
            part.write_text("ne")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write_half()
    assert place.read_text() == "old"
    assert list(tmp_path.iterdir()) == [place]


def test_a_missing_folder_is_named(tmp_path):
    with (
        pytest.raises(FileNotFoundError, match=r"nowhere.*a\.txt"),
        written_whole(tmp_path / "nowhere" / "a.txt"),
    ):
        pass


def test_what_a_killed_writer_left_of_the_same_file_is_removed(tmp_path):
    place = tmp_path / "numbers.txt"
    orphan, other = tmp_path / "numbers.txt.0123abcd.part", tmp_path / "notes.txt.0123abcd.part"
    for path in (orphan, other, tmp_path / "numbers.txt.mine.part"):
        path.touch()
    with written_whole(place) as first, written_whole(place) as second:
        first.write_text("first")
        second.write_text("second")
        assert not orphan.exists()
        assert first.exists()  # its writer lives
    assert place.read_text() == "first"
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["notes.txt.0123abcd.part", "numbers.txt", "numbers.txt.mine.part"]


def test_a_link_that_somebody_put_where_the_part_goes_is_not_followed(tmp_path, monkeypatch):
    mine = tmp_path / "mine"
    mine.write_text("mine")
    names = iter(["00000000", "11111111"])
    monkeypatch.setattr("secrets.token_hex", lambda size: next(names))
    (tmp_path / "numbers.txt.00000000.part").symlink_to(mine)
    (tmp_path / f"numbers.txt.{os.getpid()}.part").symlink_to(mine)  # a name that can be guessed
    with written_whole(tmp_path / "numbers.txt") as part:
        part.write_text("new")
    assert mine.read_text() == "mine"
    assert (tmp_path / "numbers.txt").read_text() == "new"


def test_an_error_of_the_system_names_the_file_that_was_written(tmp_path):
    full = OSError(errno.ENOSPC, "No space left on device")
    with pytest.raises(OSError, match="No space left") as raised, written_whole(tmp_path / "a"):
        raise full
    assert (raised.value.errno, raised.value.filename) == (28, str(tmp_path / "a"))


def test_a_folder_in_the_place_of_the_file_is_told_as_such(tmp_path):
    said = "is a folder; give the name of a file in it"
    with pytest.raises(IsADirectoryError, match=said), written_whole(tmp_path):
        pytest.fail("it was begun")


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: path.symlink_to("/dev/zero")])
def test_what_is_read_whole_is_a_plain_file_of_a_size_that_it_may_have(make, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"1234")
    assert read_whole(path, most=4) == b"1234"
    with pytest.raises(ValueError, match="more than the 3 bytes"):
        read_whole(path, most=3)
    path.unlink()
    make(path)
    with pytest.raises(ValueError, match="file is no plain file"):
        read_whole(path)
