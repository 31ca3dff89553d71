"""The official CIFAR archives: their names, their files, where they are and what they must be.

Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009.

| set | version | training | a record, or an entry |
|---|---|---|---|
| CIFAR-10 | binary | data_batch_1.bin ... data_batch_5.bin | label, 3072 pixels |
| CIFAR-100 | binary | train.bin | coarse label, fine label, 3072 pixels |
| CIFAR-10 | python | data_batch_1 ... data_batch_5 | labels, data |
| CIFAR-100 | python | train | coarse_labels, fine_labels, data |

The pixels are 32 rows of 32, red, then green, then blue.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

Name: TypeAlias = Literal["cifar10", "cifar100"]
Version: TypeAlias = Literal["binary", "python"]
LabelKind: TypeAlias = Literal["fine", "coarse"]

PIXELS = 3 * 32 * 32
TRAIN_IMAGES, TEST_IMAGES = 50_000, 10_000
_SITE = "https://www.cs.toronto.edu/~kriz"


@dataclass(frozen=True)
class Archive:
    """One version of one set.

    Attributes:
        name: The set.
        version: "binary", or "python" for pickled dictionaries.
        url: Where its authors publish it.
        md5: Of the archive; published with it, so that it tells damage and not malice.
        folder: The folder that its files are in.
        train: The names of the files to train on.
        test: The name of the file to test on.
        names: The file of class names for each kind of labels.
    """

    name: Name
    version: Version
    url: str
    md5: str
    folder: str
    train: tuple[str, ...]
    test: str
    names: dict[LabelKind, str]

    @property
    def file_name(self) -> str:
        """What the archive is called."""
        return self.url.rsplit("/", 1)[1]


ARCHIVES: dict[tuple[Name, Version], Archive] = {
    (archive.name, archive.version): archive
    for archive in (
        Archive(
            name="cifar10",
            version="binary",
            url=f"{_SITE}/cifar-10-binary.tar.gz",
            md5="c32a1d4ab5d03f1284b67883e8d87530",
            folder="cifar-10-batches-bin",
            train=tuple(f"data_batch_{number}.bin" for number in range(1, 6)),
            test="test_batch.bin",
            names={"fine": "batches.meta.txt"},
        ),
        Archive(
            name="cifar100",
            version="binary",
            url=f"{_SITE}/cifar-100-binary.tar.gz",
            md5="03b5dce01913d631647c71ecec9e9cb8",
            folder="cifar-100-binary",
            train=("train.bin",),
            test="test.bin",
            names={"fine": "fine_label_names.txt", "coarse": "coarse_label_names.txt"},
        ),
        Archive(
            name="cifar10",
            version="python",
            url=f"{_SITE}/cifar-10-python.tar.gz",
            md5="c58f30108f718f92721af3b95e74349a",
            folder="cifar-10-batches-py",
            train=tuple(f"data_batch_{number}" for number in range(1, 6)),
            test="test_batch",
            names={"fine": "batches.meta"},
        ),
        Archive(
            name="cifar100",
            version="python",
            url=f"{_SITE}/cifar-100-python.tar.gz",
            md5="eb9058c3a382ffc7106e4002c42a8d85",
            folder="cifar-100-python",
            train=("train",),
            test="test",
            names={"fine": "meta", "coarse": "meta"},
        ),
    )
}


def num_classes_of(name: Name, labels: LabelKind) -> int:
    """10, 100 or, for the superclasses of CIFAR-100, 20; a ValueError if there are none."""
    if name not in ("cifar10", "cifar100"):
        raise ValueError(f'name must be "cifar10" or "cifar100", got {name!r}')
    if labels not in ("fine", "coarse"):
        raise ValueError(f'labels must be "fine" or "coarse", got {labels!r}')
    if name == "cifar10" and labels == "coarse":
        raise ValueError('CIFAR-10 has no coarse labels; give labels="fine", or take cifar100')
    return 10 if name == "cifar10" else {"fine": 100, "coarse": 20}[labels]
