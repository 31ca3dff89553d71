"""The real packages, where they are installed: `make test-packages` installs them.

A CPU build of torch lacks two operators that torchvision asks for when it is imported.
"""

import pytest
import torch


@pytest.fixture(scope="session", autouse=True)
def torchvision_operators():
    library = torch.library.Library("torchvision", "FRAGMENT")
    for name in ("nms", "qnms"):
        library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    return library  # the operators are there as long as it is
