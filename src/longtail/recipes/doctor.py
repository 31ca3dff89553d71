"""What is installed here, what it can do, and what to mend.

Each check stands for itself: what is broken is told, not raised. Nothing here imports torch before
it is looked at, so that a torch that does not import is told like all else.
"""

from __future__ import annotations

import os
import platform
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

from longtail import __version__
from longtail.recipes.doctor_machine import Machine, look_at_machine
from longtail.recipes.doctor_packages import EXTRAS, NEEDED, Package, look_at_package
from longtail.recipes.doctor_torch import TorchFacts, look_at_torch

SETTINGS = ("OMP_WAIT_POLICY", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "CUDA_VISIBLE_DEVICES")
_SMALL_SHARED_MEMORY = 2**28
_GIGABYTE = 2**30


@dataclass(frozen=True)
class Problem:
    """What is wrong, what to do about it, and whether longtail cannot work until then."""

    what: str
    remedy: str
    is_fatal: bool


@dataclass(frozen=True)
class Checkup:
    """All that was found; torch is None if it does not import."""

    version: str
    python: str
    platform: str
    packages: tuple[Package, ...]
    torch: TorchFacts | None
    machine: Machine
    settings: dict[str, str | None]

    @property
    def problems(self) -> list[Problem]:
        """What is wrong, the worst first."""
        found = [*_of_packages(self.packages), *_of_machine(self.machine)]
        if (self.settings.get("OMP_WAIT_POLICY") or "").upper() == "ACTIVE":
            found.append(
                Problem(
                    "OMP_WAIT_POLICY is ACTIVE: waiting threads spin and slow the others down",
                    "unset it, or set it to PASSIVE",
                    is_fatal=False,
                )
            )
        return sorted(found, key=lambda problem: not problem.is_fatal)

    @property
    def is_well(self) -> bool:
        """Whether all that longtail needs is there."""
        return not any(problem.is_fatal for problem in self.problems)

    def as_json(self) -> dict[str, Any]:
        """Everything in plain values."""
        said = {"ok": self.is_well, **asdict(self)}
        said["packages"] = [asdict(package) | {"state": package.state} for package in self.packages]
        return said | {"problems": [asdict(problem) for problem in self.problems]}


def check_up(tick: Callable[[str], None] = lambda what: None) -> Checkup:
    """Look at everything; `tick` is called with what is looked at next."""
    packages = []
    for wanted in (*NEEDED, *EXTRAS):
        tick(wanted.name)
        packages.append(look_at_package(wanted))
    tick("torch")
    has_torch = any(package.name == "torch" and package.imports for package in packages)
    return Checkup(
        version=__version__,
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.machine()}",
        packages=tuple(packages),
        torch=look_at_torch() if has_torch else None,
        machine=look_at_machine(),
        settings={name: os.environ.get(name) for name in SETTINGS},
    )


def _of_packages(packages: tuple[Package, ...]) -> list[Problem]:
    found = []
    for package in packages:
        is_broken = package.version is not None and not package.imports
        if is_broken:
            what = f"{package.name} {package.version} is installed but does not import: "
            what += package.error
        elif package.version is None and package.is_needed:
            what = f"{package.name} is not installed"
        elif package.is_too_old:
            what = f"{package.name} {package.version} is older than {package.floor}"
        else:
            continue
        found.append(Problem(what, _remedy(package), is_fatal=package.is_needed))
    return found


def _remedy(package: Package) -> str:
    if package.name == "torchvision":
        return (
            "install the torchvision that was built for your torch (for a torch without CUDA the "
            "one of the same index), or remove it: longtail does without"
        )
    wanted = package.name if package.extra is None else f"'longtail[{package.extra}]'"
    how = "--force-reinstall" if package.state == "broken" else "--upgrade"
    return f"{os.path.basename(sys.executable)} -m pip install {how} {wanted}"


def _of_machine(machine: Machine) -> list[Problem]:
    found = []
    for place in (machine.temporary, machine.current):
        if not place.can_write:
            what = f"nothing can be written to the {place.role} folder {place.path}"
            remedy = "set TMPDIR to one that is" if place is machine.temporary else "go to another"
            found.append(Problem(what, remedy, is_fatal=place is machine.temporary))
        elif place.free < _GIGABYTE:
            what = f"the {place.role} folder {place.path} has less than 1 GB free"
            found.append(Problem(what, "make room before you train", is_fatal=False))
    if machine.shared_memory is not None and machine.shared_memory < _SMALL_SHARED_MEMORY:
        size = f"{machine.shared_memory / 2**20:.0f} MB"
        what = f"shared memory is {size}: processes that load images may be killed"
        remedy = "start the container with --shm-size 2g, or train with num_workers=0"
        found.append(Problem(what, remedy, is_fatal=False))
    return found
