"""Batch-statistic losses on k processes: the whole batch's value, and after DDP its gradient."""

import pytest
import torch
import torch.multiprocessing as mp

from longtail.losses.processes import whole_batch
from loss_processes import SPLITS, compare, gather_rows


@pytest.mark.parametrize("size", SPLITS)
@pytest.mark.timeout(300)  # every loss, each in several processes
def test_k_processes_return_the_value_and_after_ddp_the_gradient_of_the_whole_batch(size, tmp_path):
    mp.start_processes(compare, args=(size, str(tmp_path)), nprocs=size, start_method="spawn")


def test_rows_come_in_the_order_of_the_ranks_and_gradients_go_home_times_k(tmp_path):
    mp.start_processes(gather_rows, args=(3, str(tmp_path)), nprocs=3, start_method="spawn")


def test_on_one_process_nothing_is_gathered():
    rows = torch.zeros(2, 3)
    assert whole_batch(rows)[0] is rows
