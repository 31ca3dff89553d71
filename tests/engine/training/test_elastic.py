"""Workers that are killed and started again by torchrun, on one machine and on two."""

import pytest

from engine.training.elastic import UNDISTURBED, launch, same


@pytest.mark.slow
@pytest.mark.parametrize(("nodes", "parallel"), [(1, "ddp"), (2, "ddp"), (1, "fsdp")])
def test_killed_workers_are_started_again_and_end_with_the_same_bits(nodes, parallel, tmp_path):
    expected, starts = launch(tmp_path / "whole", UNDISTURBED, parallel=parallel)
    assert starts == 1
    state, starts = launch(tmp_path / "killed", 1, nodes, parallel)
    assert starts > 1
    assert same(state, expected)
