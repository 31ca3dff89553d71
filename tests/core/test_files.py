"""Files are written whole or not at all."""

import errno

import pytest

from longtail.core.files import written_whole


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
        pytest.raises(FileNotFoundError, match=r"no folder .*nowhere to write a\.txt in"),
        written_whole(tmp_path / "nowhere" / "a.txt"),
    ):
        pass


def test_an_error_of_the_system_names_the_file_that_was_written(tmp_path):
    from safetensors import SafetensorError

    said = "Error while serializing: I/O error: No space left on device (os error 28)"
    for error in (OSError(errno.ENOSPC, "No space left on device"), SafetensorError(said)):
        with pytest.raises(OSError, match="No space left") as raised, written_whole(tmp_path / "a"):
            raise error
        assert (raised.value.errno, raised.value.filename) == (28, str(tmp_path / "a"))
