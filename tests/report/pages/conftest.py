import pytest

from compared_worlds import World


@pytest.fixture
def world():
    return World()
