"""Files are written whole or not at all, and read whole only if they are small enough."""

import errno
import os

import pytest

import longtail as lt
from longtail.core.files import read_whole, written_whole
from longtail.data.tables.names import read_class_names
from longtail.engine.training.checkpoint import read_checkpoint
from longtail.flows.prior_files import ClassesOf, read_prior
from longtail.flows.run_sources import _json
from longtail.flows.train.reading import read_recipe_file
from longtail.images import read_image_list


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


def test_a_file_to_be_read_whole_is_refused_by_its_size_before_it_is_read(tmp_path):
    small, large = tmp_path / "small.json", tmp_path / "large.json"
    small.write_bytes(b"[1, 2]")
    with large.open("wb") as file:
        file.truncate(2**40)  # of holes: it takes no room on the disk
    assert read_whole(small) == b"[1, 2]" == read_whole(small, most=6)
    with pytest.raises(ValueError, match=r"large.json.*1,099,511,627,776"):
        read_whole(large)
    with pytest.raises(ValueError, match=r"small.json"):
        read_whole(small, most=5)


def test_no_reader_waits_for_what_is_no_file(tmp_path):
    with pytest.raises(ValueError, match="no file"):
        read_whole(tmp_path)
    with pytest.raises(FileNotFoundError, match="nowhere"):
        read_whole(tmp_path / "nowhere")
    if hasattr(os, "mkfifo"):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(ValueError, match="no file"):
            read_whole(tmp_path / "pipe")


READERS = {
    "counts.json": lt.data.read_label_counts,
    "target.json": lambda path: read_prior(path, ClassesOf(path, 2, None)),
    "names.json": read_class_names,
    "adjuster.json": lt.posthoc.load_adjusters,
    "recipe.yaml": read_recipe_file,
    "state.json": lambda path: read_checkpoint(path.parent),
    "metrics.json": _json,
    "annotations.json": lambda path: read_image_list(path, path.parent),
}


@pytest.mark.parametrize("name", READERS)
def test_every_reader_of_text_looks_at_the_size_first(tmp_path, name):
    with (tmp_path / name).open("wb") as file:
        file.truncate(2**40)
    with pytest.raises(ValueError, match=rf"{name} has 1,099,511,627,776 bytes"):
        READERS[name](tmp_path / name)
