"""The packages longtail needs or can use: their versions, and whether they import."""

from __future__ import annotations

import importlib
import re
import warnings
from dataclasses import dataclass
from importlib import metadata


@dataclass(frozen=True)
class Wanted:
    """A package: its name for pip, its name for import, and what longtail does with it."""

    name: str
    module: str
    gives: str
    extra: str | None = None
    is_needed: bool = False


NEEDED = tuple(
    Wanted(name, module, gives, is_needed=True)
    for name, module, gives in (
        ("torch", "torch", "all computing"),
        ("numpy", "numpy", "arrays in and out"),
        ("safetensors", "safetensors", "scores, features and models in files"),
        ("msgspec", "msgspec", "recipes and JSON"),
        ("click", "click", "the command line"),
        ("rich", "rich", "tables and progress"),
        ("jinja2", "jinja2", "the report page"),
        ("pyyaml", "yaml", "recipes in YAML"),
    )
)
EXTRAS = (
    Wanted("pillow", "PIL", "training on image files", "vision"),
    Wanted("torchvision", "torchvision", "its backbones"),
    Wanted("timm", "timm", "its backbones", "timm"),
    Wanted("datasets", "datasets", "data sets of Hugging Face", "hf"),
    Wanted("scikit-learn", "sklearn", "estimators for scikit-learn, t-SNE", "sklearn"),
    Wanted("pyarrow", "pyarrow", "tables in .parquet", "parquet"),
    Wanted("cairosvg", "cairosvg", "figures in .pdf", "plot"),
    Wanted("tensorboard", "tensorboard", "training logs for TensorBoard", "tensorboard"),
)


@dataclass(frozen=True)
class Package:
    """What was found of a package; version None is not installed."""

    name: str
    gives: str
    extra: str | None
    is_needed: bool
    version: str | None
    floor: str | None
    imports: bool
    error: str

    @property
    def is_too_old(self) -> bool:
        """Whether the installed version is below the oldest that will do."""
        return (
            self.version is not None
            and self.floor is not None
            and _numbers(self.version) < _numbers(self.floor)
        )

    @property
    def state(self) -> str:
        """In a word or two."""
        if self.version is None:
            return "not installed"
        if not self.imports:
            return "broken"
        return "too old" if self.is_too_old else "works"


def look_at_package(wanted: Wanted) -> Package:
    """Import the package if it is there, and call what is known to break."""
    version = _version(wanted.name)
    error = "" if version is None else _import_error(wanted.module)
    return Package(
        name=wanted.name,
        gives=wanted.gives,
        extra=wanted.extra,
        is_needed=wanted.is_needed,
        version=version,
        floor=_floor(wanted.name),
        imports=version is not None and not error,
        error=error,
    )


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def _import_error(module: str) -> str:
    """Why it cannot be used, or nothing. Broken packages raise whatever they like."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            importlib.import_module(module)
            if module == "torchvision":
                _call_its_operators()
    except Exception as error:
        first = str(error).strip().partition("\n")[0]
        return f"{type(error).__name__}: {first}".rstrip(": ")
    return ""


def _call_its_operators() -> None:
    """Torchvision's C++ operators load only beside the torch they were built for."""
    import torch

    nms = importlib.import_module("torchvision.ops").nms
    nms(torch.tensor([[0.0, 0.0, 1.0, 1.0]]), torch.ones(1), 0.5)


def _floor(name: str) -> str | None:
    """The oldest version that longtail says will do."""
    try:
        needs = metadata.requires("longtail") or []
    except metadata.PackageNotFoundError:  # run from its sources
        return None
    for need in needs:
        found = re.match(r"([\w.-]+)\s*>=\s*([\d.]+)", need)
        if found and found[1].lower() == name:
            return found[2]
    return None


def _numbers(version: str) -> tuple[int, ...]:
    """The numbers a version begins with.

    >>> _numbers("2.13.0+cpu") < _numbers("2.6")
    False
    """
    found = re.match(r"\d+(\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()
