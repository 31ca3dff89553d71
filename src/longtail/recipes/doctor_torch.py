"""What the installed torch can do on this machine."""

from __future__ import annotations

import os
import shutil
import sys
from dataclasses import dataclass


@dataclass(frozen=True)
class TorchFacts:
    """What torch says of itself; compiler is what torch.compile would call, None if not there."""

    version: str
    threads: int
    cpu: str
    cuda: tuple[str, ...]
    cuda_build: str | None
    mps: bool
    backends: tuple[str, ...]
    compiler: str | None

    @property
    def device(self) -> str:
        """What longtail would train on."""
        return "cuda" if self.cuda else "cpu"


def look_at_torch() -> TorchFacts:
    """Ask torch, which must import."""
    import torch
    from torch import distributed

    names: list[str] = []
    if distributed.is_available():
        names += ["gloo"] if distributed.is_gloo_available() else []
        names += ["nccl"] if distributed.is_nccl_available() else []
    return TorchFacts(
        version=torch.__version__,
        threads=torch.get_num_threads(),
        cpu=torch.backends.cpu.get_cpu_capability(),
        cuda=tuple(torch.cuda.get_device_name(at) for at in range(torch.cuda.device_count()))
        if torch.cuda.is_available()
        else (),
        cuda_build=torch.version.cuda,
        mps=torch.backends.mps.is_available(),
        backends=tuple(names),
        compiler=_compiler(),
    )


def _compiler() -> str | None:
    usual = {"darwin": "clang++", "win32": "cl"}.get(sys.platform, "g++")
    return shutil.which(os.environ.get("CXX", usual))
