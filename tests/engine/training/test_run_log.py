"""TensorBoard's files, if they are asked for and it is installed."""

import sys
from types import SimpleNamespace

import pytest

from engine.training.tiny import flat_model, images, quick_train


class Writer:
    made = ()

    def __init__(self, folder, purge_step):
        self.folder, self.purge_step, self.scalars = folder, purge_step, []
        Writer.made = (*Writer.made, self)

    def add_scalar(self, name, value, step):
        self.scalars.append((name, step))

    def flush(self):
        pass

    def close(self):
        self.closed = True


def test_rows_go_to_tensorboard_by_train_and_val(tmp_path, monkeypatch):
    module = SimpleNamespace(SummaryWriter=Writer)
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", module)
    monkeypatch.setattr(Writer, "made", ())
    data = images()
    for stop in (6, None):
        quick_train(
            flat_model(), data, validation=data, run=tmp_path, tensorboard=True, stop_after=stop
        )
    first, second = Writer.made
    assert first.folder == str(tmp_path / "tensorboard")
    assert {"train/loss", "train/lr", "val/balanced_accuracy"} <= {n for n, _ in first.scalars}
    assert {step for _, step in first.scalars} == {1}
    assert {step for _, step in second.scalars} == {2}
    assert (first.purge_step, second.purge_step) == (1, 2)  # what is later than that is void
    assert first.closed
    assert second.closed


def test_without_tensorboard_it_says_how_to_get_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "torch.utils.tensorboard", None)
    with pytest.raises(ImportError, match=r"pip install longtail\[tensorboard\]"):
        quick_train(flat_model(), images(), run=tmp_path, tensorboard=True)
