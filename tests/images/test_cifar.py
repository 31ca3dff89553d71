"""CIFAR from archives, folders and npz files; the samples are made without the code under test."""

import hashlib
import os
import pickle
from pathlib import Path

import numpy as np
import pytest
import torch

from longtail.images import (
    cifar_files,
    cifar_long_tailed,
    long_tailed_images,
    read_cifar,
    read_image_npz,
    read_image_splits,
)

NAMES10 = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]
FINE = [f"fine_{number:03}" for number in range(100)]
COARSE = [f"coarse_{number:02}" for number in range(20)]
BATCHES = [f"data_batch_{number}" for number in range(1, 6)]


def draw(number, num_classes, seed):
    """Pixels as rows of 3072 bytes, and labels that contain every class."""
    random = np.random.default_rng(seed)
    pixels = random.integers(0, 256, (number, 3072), dtype=np.uint8)
    return pixels, random.permutation(np.arange(number) % num_classes)


PARTS10 = {file: draw(20, 10, seed) for seed, file in enumerate([*BATCHES, "test_batch"])}
PARTS100 = {
    file: (pixels, labels, labels // 5)
    for file, (pixels, labels) in {"train": draw(300, 100, 7), "test": draw(100, 100, 8)}.items()
}


def records(pixels, *labels):
    heads = zip(*(column.tolist() for column in labels), strict=True)
    return b"".join(bytes(head) + row.tobytes() for head, row in zip(heads, pixels, strict=True))


def binary10():
    files = {f"{file}.bin": records(*part) for file, part in PARTS10.items()}
    files["batches.meta.txt"] = "\n".join([*NAMES10, "", ""]).encode()
    return {f"cifar-10-batches-bin/{name}": data for name, data in files.items()}


def binary100():
    files = {f"{n}.bin": records(rows, above, fine) for n, (rows, fine, above) in PARTS100.items()}
    files["fine_label_names.txt"] = ("\n".join(FINE) + "\n").encode()
    files["coarse_label_names.txt"] = ("\n".join(COARSE) + "\n").encode()
    return {f"cifar-100-binary/{name}": data for name, data in files.items()}


def python10(protocol=2):
    files = {
        file: {b"batch_label": b"a batch", b"labels": labels.tolist(), b"data": pixels}
        for file, (pixels, labels) in PARTS10.items()
    }
    files["batches.meta"] = {"num_cases_per_batch": 20, "label_names": NAMES10, "num_vis": 3072}
    return {f"cifar-10-batches-py/{n}": pickle.dumps(d, protocol) for n, d in files.items()}


def python100(protocol=2):
    files = {
        file: {"data": pixels, "fine_labels": fine.tolist(), "coarse_labels": above.tolist()}
        for file, (pixels, fine, above) in PARTS100.items()
    }
    files["meta"] = {"fine_label_names": FINE, "coarse_label_names": COARSE}
    return {f"cifar-100-python/{n}": pickle.dumps(d, protocol) for n, d in files.items()}


def unpacked(folder, members):
    for name, data in members.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    return folder


def check_cifar10(splits):
    pixels = np.concatenate([PARTS10[file][0] for file in BATCHES])
    labels = np.concatenate([PARTS10[file][1] for file in BATCHES])
    assert splits.train.labels.tolist() == labels.tolist()
    assert splits.test.labels.tolist() == PARTS10["test_batch"][1].tolist()
    for at, row in enumerate(pixels):
        red, green, blue = row[:1024], row[1024:2048], row[2048:]
        for channel, plane in enumerate((red, green, blue)):
            assert splits.train.images[at, channel].flatten().tolist() == plane.tolist()
    assert splits.train.classes == splits.test.classes == tuple(NAMES10)
    assert splits.validation is None


def test_the_binary_archive_of_cifar10_is_read_in_its_order(tmp_path, write_archive):
    # The members of the real archive are not in order either.
    members = dict(reversed(binary10().items()))
    place = write_archive(tmp_path / "cifar-10-binary.tar.gz", members)
    check_cifar10(read_cifar(place, "cifar10", official=False))


@pytest.mark.parametrize("protocol", [0, 1, 2, 3, 4])
def test_the_pickled_files_of_cifar10_are_read_the_same(tmp_path, protocol):
    if protocol < 2:  # such a protocol writes pixels as text, which no official file does
        members = python10(2)
        meta = pickle.dumps({b"label_names": NAMES10}, protocol)
        members["cifar-10-batches-py/batches.meta"] = meta
    else:
        members = python10(protocol)
    check_cifar10(read_cifar(unpacked(tmp_path, members), "cifar10", official=False))


def test_an_archive_is_found_in_a_folder_and_files_in_theirs(tmp_path, write_archive):
    write_archive(tmp_path / "cifar-10-python.tar.gz", python10())
    check_cifar10(read_cifar(tmp_path, "cifar10", official=False))
    unpacked(tmp_path / "u", binary10())
    check_cifar10(read_cifar(tmp_path / "u", "cifar10", official=False))
    check_cifar10(read_cifar(tmp_path / "u/cifar-10-batches-bin", "cifar10", official=False))
    with pytest.raises(FileNotFoundError, match=r"cifar100.*cifar-100-binary.*download"):
        read_cifar(tmp_path, "cifar100")


@pytest.mark.parametrize("members", [binary100(), python100()], ids=["binary", "python"])
def test_cifar100_has_fine_and_coarse_labels(tmp_path, members):
    folder = unpacked(tmp_path, members)
    fine = read_cifar(folder, "cifar100", official=False)
    coarse = read_cifar(folder, "cifar100", labels="coarse", official=False)
    for split, file in (("train", "train"), ("test", "test")):
        pixels, labels, above = PARTS100[file]
        assert getattr(fine, split).labels.tolist() == labels.tolist()
        assert getattr(coarse, split).labels.tolist() == above.tolist()
        images = getattr(coarse, split).images
        assert np.array_equal(images.numpy().reshape(-1, 3072), pixels)
    assert fine.train.classes == tuple(FINE)
    assert coarse.train.classes == tuple(COARSE)
    cut = cifar_long_tailed(
        folder, "cifar100", 5, labels="coarse", validation_share=0, official=False
    )
    assert cut.train.counts.tolist() == [int(15 * 0.2 ** (i / 19) + 1e-9) for i in range(20)]


def test_what_is_not_the_whole_set_is_told(tmp_path):
    folder = unpacked(tmp_path, binary10())
    with pytest.raises(ValueError, match=r"50,000 images.* got 100, 10 to 10 .*official=False"):
        read_cifar(folder, "cifar10")


@pytest.mark.parametrize(
    ("file", "change", "said"),
    [
        ("data_batch_3.bin", lambda data: data[:-1], r"data_batch_3\.bin.*records"),
        ("data_batch_2.bin", lambda data: b"\x0b" + data[1:], "label 11 at image 20, expected 0"),
        ("data_batch_1.bin", lambda data: b"", "is empty"),
        ("batches.meta.txt", lambda data: data + b"lorry\n", "11 classes, expected 10"),
    ],
)
def test_damaged_files_are_told(tmp_path, file, change, said):
    place = unpacked(tmp_path, binary10()) / "cifar-10-batches-bin" / file
    place.write_bytes(change(place.read_bytes()))
    with pytest.raises(ValueError, match=said):
        read_cifar(tmp_path, "cifar10", official=False)


def test_damaged_archives_are_told(tmp_path, write_archive):
    members = binary10()
    place = write_archive(tmp_path / "cifar-10-binary.tar.gz", members)
    whole = place.read_bytes()
    for cut in (0.01, 0.1, 0.5, 0.9, 0.99):
        place.write_bytes(whole[: int(len(whole) * cut)])
        with pytest.raises(ValueError, match=r"cannot be read|cut short"):
            read_cifar(place, "cifar10", official=False)
    place.write_bytes(whole[: len(whole) // 2] + b"x" + whole[len(whole) // 2 + 1 :])
    with pytest.raises(ValueError, match="CRC check failed"):
        read_cifar(place, "cifar10", official=False)
    place.write_bytes(b"no archive at all")
    with pytest.raises(ValueError, match="cannot be read as a"):
        read_cifar(place, "cifar10", official=False)
    del members["cifar-10-batches-bin/test_batch.bin"]
    with pytest.raises(ValueError, match=r"cifar-10-batches-bin/test_batch\.bin"):
        read_cifar(write_archive(place, members), "cifar10", official=False)


def test_only_files_of_the_exact_name_are_read_from_an_archive(tmp_path, write_archive):
    members = binary10()
    name = "cifar-10-batches-bin/test_batch.bin"
    members[f"../{name}"] = members[f"/{name}"] = members.pop(name)
    place = write_archive(tmp_path / "a.tar.gz", members)
    with pytest.raises(ValueError, match="no file"):
        read_cifar(place, "cifar10", official=False)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.tar.gz"]


def test_a_member_that_claims_to_be_huge_is_not_read(tmp_path, write_archive, monkeypatch):
    monkeypatch.setattr(cifar_files, "_MOST", 2**20)
    members = binary10() | {"cifar-10-batches-bin/batches.meta.txt": bytes(2**21)}
    place = write_archive(tmp_path / "a.tar.gz", members)
    for source in (place, unpacked(tmp_path / "files", members)):
        with pytest.raises(ValueError, match="more than the 1,048,576"):
            read_cifar(source, "cifar10", official=False)


@pytest.mark.parametrize(
    ("name", "labels", "said"),
    [
        ("cifar10", "coarse", "no coarse labels"),
        ("cifar20", "fine", '"cifar10" or "cifar100"'),
        ("cifar100", "both", '"fine" or "coarse"'),
    ],
)
def test_sets_and_labels_that_do_not_exist_are_told(tmp_path, name, labels, said):
    with pytest.raises(ValueError, match=said):
        read_cifar(tmp_path, name, labels)


def test_npz_files_are_read_with_channels_first_or_last(tmp_path):
    pixels, labels = draw(20, 10, 0)
    images = pixels.reshape(-1, 3, 32, 32)
    place = tmp_path / "cifar10.npz"
    np.savez(place, train=images.transpose(0, 2, 3, 1), train_label=labels.astype(np.uint8),
             test=images[:10].transpose(0, 2, 3, 1), test_label=labels[:10])  # fmt: skip
    splits = read_cifar(place, "cifar10", official=False)
    assert np.array_equal(splits.train.images.numpy(), images)
    assert splits.test.labels.tolist() == labels[:10].tolist()
    np.savez(place, x_train=images, y_train=labels, val_images=images, val_labels=labels,
             classes=np.array(NAMES10))  # fmt: skip
    splits = read_image_splits(place)
    assert splits.validation.classes == tuple(NAMES10)
    assert splits.test is None
    with pytest.raises(ValueError, match="10 classes, expected 100"):
        read_cifar(place, "cifar100", official=False)
    with pytest.raises(ValueError, match=r"training part.*50,000 images.*got 20"):
        read_cifar(place, "cifar10")
    with pytest.raises(ValueError, match=r"parts train, validation; .*read_image_splits"):
        read_image_npz(place)


def test_a_plain_npz_has_images_and_labels(tmp_path):
    place = tmp_path / "a.npz"
    np.savez(place, images=np.zeros((2, 6, 5, 1), np.uint8), labels=[2, 0])
    images = read_image_npz(place)
    assert (tuple(images.images.shape), images.classes) == ((2, 1, 6, 5), ("0", "1", "2"))
    with pytest.raises(ValueError, match="no training part"):
        read_image_splits(place)
    np.savez(place, pictures=np.zeros((2, 6, 5, 1), np.uint8), labels=[2, 0])
    with pytest.raises(ValueError, match="'images', only labels, pictures"):
        read_image_npz(place)
    np.savez(place, images=np.zeros((2, 6, 5, 1), np.uint8), labels=[2, -1])
    with pytest.raises(ValueError, match="got -1"):
        read_image_npz(place)


# The real sets, where somebody has them: LONGTAIL_CIFAR names a folder that has cifar10.npz or an
# archive of CIFAR-10, and cifar100.npz or an archive of CIFAR-100.


def real(name):
    folder = os.environ.get("LONGTAIL_CIFAR")
    if not folder:
        pytest.skip("LONGTAIL_CIFAR names no folder")
    npz = Path(folder) / f"{name}.npz"
    try:
        return read_cifar(npz if npz.is_file() else folder, name)
    except FileNotFoundError as error:
        pytest.skip(str(error))


@pytest.mark.parametrize(
    ("name", "ratio", "total"),
    [("cifar10", 100, 12_406), ("cifar10", 10, 20_431), ("cifar100", 100, 10_847)],
)
def test_the_real_set_is_cut_as_the_published_builder_cuts_it(name, ratio, total):
    whole = real(name)
    cut = long_tailed_images(whole, ratio, validation_share=0)
    labels, num_classes = whole.train.labels.numpy(), whole.train.num_classes
    np.random.seed(0)
    expected = []
    for label in range(num_classes):
        at = np.where(labels == label)[0]
        np.random.shuffle(at)
        share = (1 / ratio) ** (label / (num_classes - 1.0))
        expected.append(at[: int(len(labels) / num_classes * share)])
    expected = np.concatenate(expected)
    assert len(cut.train) == total
    assert torch.equal(cut.train.images, whole.train.images[expected])
    assert cut.train.labels.tolist() == labels[expected].tolist()
    assert len(cut.test) == 10_000


def test_the_real_cifar10_is_the_official_one():
    whole = real("cifar10")
    first = whole.train.subset(range(10_000))
    rows = first.images.numpy().reshape(10_000, -1)
    official = np.concatenate([first.labels.numpy()[:, None].astype(np.uint8), rows], 1).tobytes()
    found = hashlib.md5(official, usedforsecurity=False).hexdigest()
    assert found == "5dd7e06a14cb22eb9f671a540d1b7c25"
