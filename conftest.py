"""For tests and doctests alike: the same random numbers every time, and no race with the clock."""

import pytest
from hypothesis import settings

# A busy machine may take long over a first call; that is no failure.
settings.register_profile("longtail", deadline=None, derandomize=True)
settings.load_profile("longtail")


@pytest.fixture(autouse=True)
def seeded():
    import torch

    torch.manual_seed(0)
