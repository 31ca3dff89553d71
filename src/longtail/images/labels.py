"""The labels of any dataset, without reading its images."""

from typing import Any

import torch
from torch import Tensor
from torch.utils.data import ConcatDataset, Dataset, Subset, TensorDataset

from longtail.core.tensors import as_tensor, label_tensor


def labels_of(dataset: Dataset[Any]) -> Tensor:
    """The label of each sample as int64, in the order of the dataset.

    Read through Subset and ConcatDataset, however nested, from `targets`, `labels` or `samples`,
    in this order, or from the last tensor of a TensorDataset. A `target_transform` is applied, as
    the dataset itself does when a sample is read.

    >>> from torch.utils.data import Subset, TensorDataset
    >>> data = TensorDataset(torch.zeros(4, 2), torch.tensor([3, 1, 2, 0]))
    >>> labels_of(Subset(data, [2, 0]) + Subset(data, [1]))
    tensor([2, 3, 1])
    """
    if isinstance(dataset, Subset):
        return labels_of(dataset.dataset)[torch.as_tensor(list(dataset.indices), dtype=torch.long)]
    if isinstance(dataset, ConcatDataset):
        return torch.cat([labels_of(part) for part in dataset.datasets])
    stored = _stored(dataset)
    if stored is None:
        raise ValueError(
            f"the labels of a {type(dataset).__name__} are not known: it has no targets, labels or "
            "samples; give it an attribute targets with a class index for each sample, or read "
            "them with torch.tensor([label for _, label in dataset])"
        )
    name, values = stored
    return _checked(values, f"the {name} of a {type(dataset).__name__}", dataset)


def _stored(dataset: Dataset[Any]) -> tuple[str, Any] | None:
    if isinstance(dataset, TensorDataset):
        return "last tensor", dataset.tensors[-1]
    for name in ("targets", "labels"):
        values = getattr(dataset, name, None)
        if values is not None:
            return name, values
    samples = getattr(dataset, "samples", None)
    return None if samples is None else ("samples", [sample[1] for sample in samples])


def _checked(values: Any, where: str, dataset: Any) -> Tensor:
    transform = getattr(dataset, "target_transform", None)
    try:
        if transform is not None:
            values = [int(transform(value)) for value in values]
        tensor = as_tensor(values).cpu()
        number = int(tensor.max()) + 1 if tensor.numel() else 1
        labels = label_tensor(tensor, number)
    except (ValueError, TypeError) as error:
        raise ValueError(f"{where} must be a class index for each sample: {error}") from error
    if len(labels) != len(dataset):
        raise ValueError(
            f"{where} must be one for each of {len(dataset)} samples, got {len(labels)}; "
            "make them agree"
        )
    return labels
