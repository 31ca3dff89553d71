"""Yes/no labels, checked here, once: a matrix of 0 and 1, a row a sample and a column a label."""

import numpy as np
import numpy.typing as npt

from longtail.core.arrays import as_numpy


def check_label_matrix(labels: object, num_labels: int | None = None) -> npt.NDArray[np.int8]:
    """The labels as int8 of shape (N, L), or a ValueError; a vector is a single label."""
    values = as_numpy(labels)
    matrix = values[:, None] if values.ndim == 1 else values
    if matrix.ndim != 2 or not matrix.shape[1]:
        raise ValueError(
            f"yes/no labels must have shape (samples, labels), got {values.shape}; of a single "
            "label also (samples,)"
        )
    if num_labels is not None and matrix.shape[1] != num_labels:
        raise ValueError(
            f"expected {num_labels} yes/no labels a sample, got {matrix.shape[1]}; give one "
            "column for each column of the logits, in the same order"
        )
    wrong = (matrix != 0) & (matrix != 1)
    if wrong.any():
        row, column = (int(at[0]) for at in np.nonzero(wrong))
        raise ValueError(
            f"yes/no labels must be 0 or 1, got {matrix[row, column]} in row {row}, label "
            f"{column}; class indices belong to scores of one class a sample, and samples whose "
            "labels are not known have to be left out"
        )
    return matrix.astype(np.int8, copy=False)
