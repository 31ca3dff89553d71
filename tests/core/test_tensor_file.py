"""Safetensors files: the same bytes for the same content, and as open() makes files."""

import os
import stat
import subprocess
import sys

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import load_file

import longtail as lt
from longtail.core.tensor_file import map_tensor_file, save_tensors
from longtail.data import open_score_writer, pack_features
from longtail.engine import save_head
from longtail.engine.head_file import FitState, save_checkpoint
from longtail.engine.training.checkpoint import write_checkpoint

TENSORS = {
    "b": torch.arange(6.0).view(2, 3).t(),  # not contiguous
    "a": torch.tensor([True, False, True]),
    "none": torch.zeros(0, 4),
    "one": torch.tensor(3),
    "half": torch.ones(3, dtype=torch.bfloat16),
}


def test_safetensors_reads_what_is_written(tmp_path):
    save_tensors(tmp_path / "t", TENSORS, {"z": "1", "y": "é"})
    loaded = load_file(tmp_path / "t")
    assert loaded.keys() == TENSORS.keys()
    for name, tensor in TENSORS.items():
        assert loaded[name].dtype == tensor.dtype
        assert torch.equal(loaded[name], tensor)
    with safe_open(tmp_path / "t", "pt") as file:
        assert file.metadata() == {"z": "1", "y": "é"}


def test_the_same_arrays_of_numpy_and_torch_have_the_same_bytes(tmp_path):
    tensors = {name: tensor for name, tensor in TENSORS.items() if name != "half"}
    save_tensors(tmp_path / "torch", tensors, {})
    save_tensors(tmp_path / "numpy", {n: t.numpy() for n, t in tensors.items()}, {})
    assert (tmp_path / "torch").read_bytes() == (tmp_path / "numpy").read_bytes()


def test_bfloat16_is_read_as_float32(tmp_path):
    numbers = torch.tensor([[1.5, -2.25, 3e-38, float("inf")]], dtype=torch.bfloat16)
    save_tensors(tmp_path / "t", {"half": numbers}, {})
    _, read = map_tensor_file(tmp_path / "t")
    assert read["half"].dtype == np.float32
    np.testing.assert_array_equal(read["half"], numbers.float())


def test_a_type_that_cannot_be_stored_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"complex128.*called a"):
        save_tensors(tmp_path / "t", {"a": torch.zeros(2, dtype=torch.complex128)}, {})
    assert not list(tmp_path.iterdir())


def scores():
    return lt.Scores(
        4 * np.eye(3), [0, 1, 2], counts=[5, 3, 1], carried=[5, 3, 1], classes=list("abc")
    )


def write_streamed(place):
    with open_score_writer(place, 1, 3, carried=[5, 3, 1]) as writer:
        writer.write(np.zeros((1, 3)))


WRITERS = {
    "Scores.save": lambda place: scores().save(place),
    "save_head": lambda place: save_head(lt.heads.Linear(2, 3), place, {"b": 1, "a": 2}),
    "a checkpoint of fit_head": lambda place: save_checkpoint(
        place, {"head": {"weight": torch.ones(2)}}, FitState("task", 1, None, 0)
    ),
    "pack_features": lambda place: pack_features(
        place, {"train": (np.ones((2, 2), np.float32), [0, 1])}
    ),
    "open_score_writer": write_streamed,
    "a checkpoint of train": lambda place: write_checkpoint(
        place.parent, place.stem, {"a": torch.ones(2)}, {}
    ),
}


@pytest.mark.parametrize("name", WRITERS)
@pytest.mark.parametrize(("umask", "mode"), [(0o022, 0o644), (0o077, 0o600), (0o002, 0o664)])
def test_a_file_may_be_read_by_whom_umask_says(tmp_path, name, umask, mode):
    before = os.umask(umask)
    try:
        WRITERS[name](tmp_path / "f.safetensors")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "f.safetensors").stat().st_mode) == mode


@pytest.mark.parametrize("name", WRITERS)
def test_the_same_content_has_the_same_bytes(tmp_path, name):
    seen = set()
    for at in range(12):
        torch.manual_seed(0)
        place = tmp_path / f"{at}" / "f.safetensors"
        place.parent.mkdir()
        WRITERS[name](place)
        seen.add(place.read_bytes())
    assert len(seen) == 1


def test_another_process_writes_the_same_bytes(tmp_path):
    code = (
        "import sys, numpy as np, longtail as lt\n"
        "lt.Scores(4 * np.eye(3), [0, 1, 2], counts=[5, 3, 1], carried=[5, 3, 1], "
        "classes=list('abc')).save(sys.argv[1])"
    )
    scores().save(tmp_path / "here")
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "there")],
        check=True,
        env=os.environ | {"PYTHONHASHSEED": "1"},
    )
    assert (tmp_path / "here").read_bytes() == (tmp_path / "there").read_bytes()
