"""The labels of datasets as people nest them."""

import pytest
import torch
from torch.utils.data import ConcatDataset, Dataset, Subset, TensorDataset, random_split

from longtail.images import labels_of


class Set(Dataset):
    def __init__(self, size=4, **attributes):
        self.size = size
        self.__dict__.update(attributes)

    def __len__(self):
        return self.size


@pytest.mark.parametrize(
    "dataset",
    [
        Set(targets=[3, 0, 1, 1]),
        Set(targets=torch.tensor([3, 0, 1, 1], dtype=torch.uint8)),
        Set(labels=torch.tensor([3, 0, 1, 1]).numpy()),
        Set(samples=[("a", 3), ("b", 0), ("c", 1), ("d", 1)]),
        Set(targets=None, labels=[3, 0, 1, 1]),
        TensorDataset(torch.zeros(4, 2), torch.tensor([3, 0, 1, 1])),
    ],
)
def test_labels_are_found_wherever_a_dataset_keeps_them(dataset):
    labels = labels_of(dataset)
    assert labels.tolist() == [3, 0, 1, 1]
    assert labels.dtype == torch.int64


def test_labels_are_read_through_nested_subsets_and_sums():
    first, second = Set(targets=[3, 0, 1, 2]), Set(3, labels=[7, 8, 9])
    nested = Subset(ConcatDataset([Subset(first, [3, 1]), second]), [4, 0, 1])
    assert labels_of(nested).tolist() == [9, 2, 0]
    parts = random_split(first, [2, 2], generator=torch.Generator().manual_seed(0))
    assert sorted(torch.cat([labels_of(part) for part in parts]).tolist()) == [0, 1, 2, 3]


def test_a_target_transform_is_applied_as_reading_would():
    assert labels_of(Set(targets=[3, 0, 1, 2], target_transform=lambda y: y // 2)).tolist() == [
        *(1, 0, 0, 1),
    ]


@pytest.mark.parametrize(
    ("dataset", "said"),
    [
        (Set(), r"labels of a Set .*targets"),
        (Set(targets=[0, 1]), "4 samples, got 2"),
        (Set(targets=torch.zeros(4, 3)), "targets of a Set"),
        (Set(targets=["a", "b", "c", "d"]), "targets of a Set"),
        (Set(targets=[0, 1, -1, 2]), "got -1 at position 2"),
        (TensorDataset(torch.zeros(4, 2)), "last tensor of a TensorDataset"),
    ],
)
def test_what_has_no_labels_is_told_the_remedy(dataset, said):
    with pytest.raises(ValueError, match=said):
        labels_of(dataset)
