"""What is installed here, what it can do, and what to mend.

Each check stands for itself: what is broken is reported, not raised. Torch is imported only to look
at it: without it the half that works on scores is whole, and the half that trains is not there.
"""

from __future__ import annotations

import importlib
import os
import platform
import re
import shutil
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any

from longtail import __version__
from longtail.flows.subprocesses import usable_cores

NEEDED = {  # what longtail does with them
    "numpy": "arrays",
    "scipy": "fits and intervals",
    "safetensors": "scores, features and models in files",
    "msgspec": "recipes and JSON",
    "click": "the command line",
    "rich": "tables and progress",
    "jinja2": "the report page",
    "pyyaml": "recipes in YAML",
}
EXTRAS = {  # the extras that bring them, and what for
    "torch": ("torch", "losses, heads, fit, train, features, demo"),
    "pillow": ("vision", "training on image files"),
    "torchvision": (None, "its backbones"),
    "timm": ("timm", "its backbones"),
    "datasets": ("hf", "data sets of Hugging Face"),
    "scikit-learn": ("sklearn", "estimators for scikit-learn, t-SNE"),
    "pyarrow": ("parquet", "tables in .parquet"),
    "cairosvg": ("plot", "figures in .pdf"),
    "tensorboard": ("tensorboard", "training logs for TensorBoard"),
}
_MODULES = {"pyyaml": "yaml", "pillow": "PIL", "scikit-learn": "sklearn"}
_TORCHVISION = "install the one that was built for your torch, or remove it: longtail does without"
_SETTINGS = ("OMP_WAIT_POLICY", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "CUDA_VISIBLE_DEVICES")
_CGROUP = Path("/sys/fs/cgroup")  # where Linux keeps the limits of a container
_SHARED = Path("/dev/shm")  # it is looked at, not written to


@dataclass(frozen=True)
class Package:
    """What is here of a package; version None is not installed, extra None brought by none."""

    name: str
    gives: str
    extra: str | None
    is_needed: bool
    version: str | None
    floor: str | None
    error: str = ""

    @property
    def state(self) -> str:
        """In a word or two."""
        if self.version is None:
            return "not installed"
        if self.error:
            return "broken"
        is_old = self.floor is not None and _numbers(self.version) < _numbers(self.floor)
        return "too old" if is_old else "works"


@dataclass(frozen=True)
class Torch:
    """What torch says of itself; compiler is what torch.compile would call, None if not there."""

    version: str
    threads: int
    cpu: str
    cuda: tuple[str, ...]
    cuda_build: str | None
    mps: bool
    backends: tuple[str, ...]
    compiler: str | None


@dataclass(frozen=True)
class Folder:
    """How many bytes are free in a folder, and whether this process may write to it."""

    role: str
    path: str
    free: int
    can_write: bool


@dataclass(frozen=True)
class Machine:
    """Cores this process may use, and bytes; None is not known."""

    cores: int
    memory: int | None
    memory_free: int | None
    shared_memory: int | None
    temporary: Folder
    current: Folder


@dataclass(frozen=True)
class Problem:
    """What is wrong, what to do about it, and whether longtail cannot work until then."""

    what: str
    remedy: str
    is_fatal: bool = False


@dataclass(frozen=True)
class Checkup:
    """All that was looked at; torch is None if it is not installed or does not import."""

    version: str
    python: str
    platform: str
    packages: tuple[Package, ...]
    torch: Torch | None
    machine: Machine
    settings: dict[str, str | None]

    @property
    def problems(self) -> list[Problem]:
        """What is wrong, the worst first."""
        problems = [*_package_problems(self.packages), *_machine_problems(self.machine)]
        if (self.settings.get("OMP_WAIT_POLICY") or "").upper() == "ACTIVE":
            spins = "OMP_WAIT_POLICY is ACTIVE: waiting threads spin and slow the others down"
            problems.append(Problem(spins, "unset it, or set it to PASSIVE"))
        return sorted(problems, key=lambda problem: not problem.is_fatal)

    @property
    def is_well(self) -> bool:
        """Whether all that longtail needs is there."""
        return not any(problem.is_fatal for problem in self.problems)

    def as_json(self) -> dict[str, Any]:
        """Everything in plain values."""
        packages = [asdict(package) | {"state": package.state} for package in self.packages]
        problems = [asdict(problem) for problem in self.problems]
        return {"ok": self.is_well, **asdict(self), "packages": packages, "problems": problems}


def check_up(progress: Callable[[str], None] = lambda what: None) -> Checkup:
    """Look at everything; `progress` gets what is looked at next."""
    packages = []
    for name in (*NEEDED, *EXTRAS):
        progress(name)
        packages.append(look_at_package(name))
    has_torch = any(package.name == "torch" and package.state == "works" for package in packages)
    return Checkup(
        version=__version__,
        python=platform.python_version(),
        platform=f"{platform.system()} {platform.machine()}",
        packages=tuple(packages),
        torch=_look_at_torch() if has_torch else None,
        machine=look_at_machine(),
        settings={name: os.environ.get(name) for name in _SETTINGS},
    )


def look_at_package(name: str) -> Package:
    """Import the package if it is there, and call what is known to break."""
    extra, gives = EXTRAS.get(name, (None, NEEDED.get(name, "")))
    version = None
    with suppress(metadata.PackageNotFoundError):
        version = metadata.version(name)
    error = "" if version is None else _import_error(_MODULES.get(name, name))
    return Package(name, gives, extra, name in NEEDED, version, _floor(name), error)


def look_at_machine() -> Machine:
    """Cores, memory and room for files, as far as this process may use them."""
    usable = usable_cores()
    quota = re.fullmatch(r"(\d+) (\d+)\s*", _text(_CGROUP / "cpu.max"))
    limit = max(1, round(int(quota[1]) / int(quota[2]))) if quota else usable
    temporary = Path(os.environ.get("TMPDIR", "/tmp"))  # if none can be written to
    with suppress(FileNotFoundError):
        temporary = Path(tempfile.gettempdir())
    shared = shutil.disk_usage(_SHARED).free if _SHARED.is_dir() else None
    folders = _folder("temporary", temporary), _folder("current", Path.cwd())
    return Machine(min(usable or 1, limit or 1), *_memory(), shared, *folders)


def _memory() -> tuple[int | None, int | None]:
    """All of it and what is free, within the limit of the container if there is one."""
    lines = re.findall(r"(\w+):\s+(\d+) kB", _text(Path("/proc/meminfo")))
    sizes = {name: 1024 * int(size) for name, size in lines}
    total, free = sizes.get("MemTotal"), sizes.get("MemAvailable")
    if total is None and "SC_PHYS_PAGES" in getattr(os, "sysconf_names", {}):
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limit = _text(_CGROUP / "memory.max").strip()
    if limit.isdigit() and (total is None or int(limit) < total):
        used = _text(_CGROUP / "memory.current").strip()
        total = int(limit)
        left = total - int(used) if used.isdigit() else total
        free = left if free is None else min(free, left)
    return total, free


def _folder(role: str, path: Path) -> Folder:
    free = shutil.disk_usage(path).free if path.is_dir() else 0
    return Folder(role, str(path), free, path.is_dir() and os.access(path, os.W_OK | os.X_OK))


def _text(path: Path) -> str:
    with suppress(OSError):
        return path.read_text(encoding="utf-8")
    return ""


def _import_error(module: str) -> str:
    """Why it cannot be used, or nothing. Broken packages raise whatever they like."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            importlib.import_module(module)
            if module == "torchvision":  # its operators load only beside the torch of their build
                torch, nms = (importlib.import_module(m) for m in ("torch", "torchvision.ops"))
                nms.nms(torch.tensor([[0.0, 0.0, 1.0, 1.0]]), torch.ones(1), 0.5)
    except Exception as error:
        first = str(error).strip().partition("\n")[0]
        return f"{type(error).__name__}: {first}".rstrip(": ")
    return ""


def _floor(name: str) -> str | None:
    """The oldest version that longtail says will do."""
    with suppress(metadata.PackageNotFoundError):  # run from its sources
        for need in metadata.requires("longtail") or []:
            if floor := re.match(rf"{re.escape(name)}\s*>=\s*([\d.]+)", need, re.IGNORECASE):
                return floor[1]
    return None


def _numbers(version: str) -> tuple[int, ...]:
    """The numbers a version begins with."""
    return tuple(map(int, re.findall(r"\d+", re.split(r"[^\d.]", version)[0])))


def _look_at_torch() -> Torch:
    torch = importlib.import_module("torch")
    cuda, apart = torch.cuda, torch.distributed
    names = ("gloo", "nccl") if apart.is_available() else ()
    backends = {name: getattr(apart, f"is_{name}_available") for name in names}
    usual = {"darwin": "clang++", "win32": "cl"}.get(sys.platform, "g++")
    return Torch(
        version=torch.__version__,
        threads=torch.get_num_threads(),
        cpu=torch.backends.cpu.get_cpu_capability(),
        cuda=tuple(map(cuda.get_device_name, range(cuda.device_count()))),
        cuda_build=torch.version.cuda,
        mps=torch.backends.mps.is_available(),
        backends=tuple(name for name, is_there in backends.items() if is_there()),
        compiler=shutil.which(os.environ.get("CXX", usual)),
    )


def _package_problems(packages: tuple[Package, ...]) -> Iterator[Problem]:
    for package in packages:
        name, state = package.name, package.state
        if state == "works" or (state == "not installed" and not package.is_needed):
            continue
        wanted = name if package.extra is None else f"'longtail[{package.extra}]'"
        how = "--force-reinstall" if state == "broken" else "--upgrade"
        what = {
            "not installed": f"{name} is not installed",
            "broken": f"{name} {package.version} is installed but does not import: {package.error}",
            "too old": f"{name} {package.version} is older than {package.floor}",
        }[state]
        install = f"{os.path.basename(sys.executable)} -m pip install {how} {wanted}"
        yield Problem(what, _TORCHVISION if name == "torchvision" else install, package.is_needed)


def _machine_problems(machine: Machine) -> Iterator[Problem]:
    for folder in (machine.temporary, machine.current):
        is_temporary = folder is machine.temporary
        if not folder.can_write:
            what = f"nothing can be written to the {folder.role} folder {folder.path}"
            remedy = "set TMPDIR to one that is" if is_temporary else "go to another"
            yield Problem(what, remedy, is_temporary)
        elif folder.free < 2**30:
            what = f"the {folder.role} folder {folder.path} has less than 1 GB free"
            yield Problem(what, "make room before you train")
    if machine.shared_memory is not None and machine.shared_memory < 2**28:
        size = f"{machine.shared_memory / 2**20:.0f} MB"
        what = f"shared memory is {size}: processes that load images may be killed"
        yield Problem(what, "start the container with --shm-size 2g, or train with num_workers=0")
