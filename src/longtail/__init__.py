"""longtail: classifiers for long-tailed labels, on one idea: logits carry a label prior.

Names are resolved when they are first used, so that the command line starts without torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

__all__ = [
    "Prior",
    "Scores",
    "UnknownPriorError",
    "class_counts",
    "core",
    "data",
    "engine",
    "fit",
    "fit_head",
    "fix",
    "heads",
    "images",
    "integrations",
    "load",
    "losses",
    "measure_carried",
    "metrics",
    "posthoc",
    "report",
    "retarget",
    "shift",
    "shot_groups",
    "testing",
    "train",
]

if TYPE_CHECKING:
    from longtail import (
        core,
        data,
        engine,
        heads,
        images,
        integrations,
        losses,
        metrics,
        posthoc,
        report,
        shift,
        testing,
    )
    from longtail.core import (
        Prior,
        Scores,
        UnknownPriorError,
        class_counts,
        measure_carried,
        retarget,
        shot_groups,
    )
    from longtail.engine.fit_head import fit_head
    from longtail.flows.fit import fit
    from longtail.flows.fix import fix
    from longtail.flows.predict import load
    from longtail.flows.train.train import train

_FLOWS = {
    "fit": "longtail.flows.fit",
    "fix": "longtail.flows.fix",
    "load": "longtail.flows.predict",
    "train": "longtail.flows.train.train",
}
_FOLDERS = (
    "core",
    "data",
    "engine",
    "heads",
    "images",
    "integrations",
    "losses",
    "metrics",
    "posthoc",
    "report",
    "shift",
    "testing",
)


def __getattr__(name: str) -> Any:
    if name in _FOLDERS:
        return import_module(f"longtail.{name}")
    if name == "fit_head":
        return import_module("longtail.engine").fit_head
    if name in _FLOWS:
        if name != "load":
            import_module("longtail.report")  # so that a result can show its page in a notebook
        return getattr(import_module(_FLOWS[name]), name)
    if name in __all__:
        return getattr(import_module("longtail.core"), name)
    raise AttributeError(f"module 'longtail' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
