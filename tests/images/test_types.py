"""Images in memory and on disk: what they give, what they refuse, and what finds damage."""

import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, Dataset

from longtail.images import ImageArrays, ImageFiles, check_images


def arrays(number=4):
    pixels = torch.arange(number * 12, dtype=torch.uint8).view(number, 3, 2, 2)
    return ImageArrays(pixels, torch.tensor([0, 2, 0, 1][:number]), ("a", "b", "c"))


def test_arrays_give_the_image_and_a_plain_number():
    image, label = arrays()[1]
    assert image.dtype == torch.uint8
    assert image.flatten().tolist() == list(range(12, 24))
    assert (label, type(label)) == (2, int)


def test_arrays_are_a_dataset_that_a_loader_takes_and_a_loop_ends_on():
    images = arrays()
    assert isinstance(images, Dataset)
    assert [label for _, label in images] == [0, 2, 0, 1]
    batches = list(DataLoader(images, batch_size=3))
    assert batches[0][0].shape == (3, 3, 2, 2)
    assert [labels.tolist() for _, labels in batches] == [[0, 2, 0], [1]]


def test_a_subset_has_the_images_in_the_asked_order_and_all_the_classes():
    part = arrays().subset([3, 0])
    assert part.targets.tolist() == [1, 0]
    assert part.images[0, 0, 0, 0] == 36
    assert part.classes == ("a", "b", "c")
    assert part.counts.tolist() == [1, 1, 0]
    assert len(arrays().subset([])) == 0


def test_numpy_arrays_are_taken_and_classes_without_names_are_numbers():
    images = ImageArrays(np.zeros((2, 1, 3, 3), np.uint8), np.array([0, 2], np.uint8))
    assert images.classes == ("0", "1", "2")
    assert images.labels.dtype == torch.int64
    assert images.subset([0]).num_classes == 3


@pytest.mark.parametrize(
    ("positions", "said"),
    [
        ([4], "0 to 3 for 4 images, got 4"),
        ([-1], "got -1"),
        ([0.0], "whole numbers"),
        ([True, False, True, True], "mask.nonzero"),
    ],
)
def test_positions_that_are_none_are_refused(positions, said):
    with pytest.raises(ValueError, match=said):
        arrays().subset(positions)


@pytest.mark.parametrize(
    ("images", "labels", "classes", "said"),
    [
        (torch.zeros(1, 3, 2, 2), [0], (), "must be uint8"),
        (torch.zeros(3, 2, 2, dtype=torch.uint8), [0], (), r"shape \(3, 2, 2\)"),
        (torch.zeros(1, 32, 32, 3, dtype=torch.uint8), [0], (), r"permute\(0, 3, 1, 2\)"),
        (torch.zeros(2, 3, 2, 2, dtype=torch.uint8), [0], (), "each of 2 images, got 1"),
        (torch.zeros(1, 3, 2, 2, dtype=torch.uint8), [2], ("a", "b"), "got 2 at position 0"),
        (torch.zeros(1, 3, 2, 2, dtype=torch.uint8), [0], ("a", "b", "a"), "'a' 2 times"),
        (torch.zeros(0, 3, 2, 2, dtype=torch.uint8), [], (), "must say its classes"),
    ],
)
def test_arrays_that_do_not_fit_are_refused(images, labels, classes, said):
    with pytest.raises(ValueError, match=said):
        ImageArrays(images, labels, classes)


def test_files_are_decoded_to_rgb(tmp_path, write_image):
    colour = write_image(tmp_path / "a.png")
    grey = write_image(tmp_path / "b.png", mode="L")
    clear = write_image(tmp_path / "c.png", mode="RGBA")
    files = ImageFiles([tmp_path / f"{name}.png" for name in "abc"], [0, 1, 1])
    assert files[0][0].dtype == torch.uint8
    assert np.array_equal(files[0][0].numpy(), colour.transpose(2, 0, 1))
    assert np.array_equal(files[1][0].numpy(), np.stack([grey] * 3))
    assert np.array_equal(files[2][0].numpy(), clear[..., :3].transpose(2, 0, 1))
    assert [label for _, label in files] == [0, 1, 1]


def test_files_go_to_the_worker_of_a_loader(tmp_path, write_image):
    for name in "ab":
        write_image(tmp_path / f"{name}.png")
    files = ImageFiles([tmp_path / "a.png", tmp_path / "b.png"], [1, 0])
    (batch,) = DataLoader(files, batch_size=2, num_workers=1)
    assert torch.equal(batch[0][1], files[1][0])
    assert batch[1].tolist() == [1, 0]


def test_files_need_a_label_each():
    with pytest.raises(ValueError, match="each of 2 paths, got 1"):
        ImageFiles(("a.png", "b.png"), [0])


def test_a_damaged_image_is_an_error_that_names_it(tmp_path, write_image):
    write_image(tmp_path / "cut.png", size=(40, 40))
    whole = (tmp_path / "cut.png").read_bytes()
    (tmp_path / "cut.png").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "text.jpg").write_text("not an image")
    files = ImageFiles([tmp_path / "cut.png", tmp_path / "text.jpg", tmp_path / "no.jpg"], [0] * 3)
    with pytest.raises(ValueError, match=r"cut\.png cannot be read .*check_images.*decode=True"):
        files[0]
    with pytest.raises(ValueError, match=r"text\.jpg cannot be read"):
        files[1]
    with pytest.raises(FileNotFoundError, match=r"no image .*no\.jpg"):
        files[2]


def test_an_image_of_16_bits_is_refused_and_not_cut_off(tmp_path):
    image = pytest.importorskip("PIL.Image")
    image.fromarray(np.full((2, 2), 40_000, np.uint16)).save(tmp_path / "deep.png")
    files = ImageFiles([tmp_path / "deep.png"], [0])
    with pytest.raises(ValueError, match=r"deep\.png .*more than 8 bits"):
        files[0]
    assert "more than 8 bits" in check_images(files)[0].reason  # its header says so


def test_postscript_under_the_name_of_an_image_is_run_by_nobody(tmp_path, monkeypatch):
    ghostscript = tmp_path / "bin" / "gs"
    ghostscript.parent.mkdir()
    ghostscript.write_text(f"#!/bin/sh\ntouch {tmp_path}/it-ran\nexit 1\n")
    ghostscript.chmod(0o755)
    monkeypatch.setenv("PATH", f"{ghostscript.parent}:{os.environ['PATH']}")
    monkeypatch.setattr("PIL.EpsImagePlugin.gs_binary", None)  # looked for only once
    image = tmp_path / "x.png"
    image.write_text("%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 8 8\n%%EndComments\nshowpage\n")
    files = ImageFiles([image], [0])
    with pytest.raises(ValueError, match=r"x\.png cannot be read .*decode=True"):
        files[0]
    assert [broken.path for broken in check_images(files)] == [str(image)]
    assert not (tmp_path / "it-ran").exists()


def test_an_image_too_large_to_be_true_is_refused(tmp_path, write_image, monkeypatch):
    write_image(tmp_path / "a.png", size=(30, 30))
    monkeypatch.setattr("PIL.Image.MAX_IMAGE_PIXELS", 100)
    with pytest.raises(ValueError, match=r"a\.png cannot be read"):
        ImageFiles([tmp_path / "a.png"], [0])[0]


def test_check_images_finds_all_that_are_damaged(tmp_path, write_image):
    for name in ("good.png", "flipped.png", "half.jpg"):
        write_image(tmp_path / name, size=(60, 60))
    flipped = bytearray((tmp_path / "flipped.png").read_bytes())
    flipped[len(flipped) // 2] ^= 255
    (tmp_path / "flipped.png").write_bytes(flipped)
    half = (tmp_path / "half.jpg").read_bytes()
    (tmp_path / "half.jpg").write_bytes(half[: len(half) // 2])
    (tmp_path / "empty.jpg").touch()
    names = ("good.png", "flipped.png", "half.jpg", "empty.jpg", "gone.jpg")
    files = ImageFiles([tmp_path / name for name in names], [0] * 5)
    by_header = check_images(files)
    assert [broken.position for broken in by_header] == [1, 3, 4]
    assert by_header[1].path == str(tmp_path / "empty.jpg")
    assert "empty.jpg" in by_header[1].reason
    assert [broken.position for broken in check_images(files, decode=True)] == [1, 2, 3, 4]


def test_without_pillow_the_error_names_what_to_install():
    code = (
        "import sys; sys.modules['PIL'] = None; from longtail.images import ImageFiles; "
        "files = ImageFiles(('a.png',), [0]); files[0]"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], check=False, capture_output=True, text=True, env=os.environ
    )
    assert "ImportError" in answer.stderr
    assert "pip install longtail[vision]" in answer.stderr
