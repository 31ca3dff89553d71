"""longtail: classifiers for long-tailed labels, on one idea: logits carry a label prior.

Names are resolved when they are first used: the command line starts at once, and whoever loads an
adjuster imports NumPy alone.
"""

from importlib import import_module
from typing import TYPE_CHECKING

__version__ = "0.1.0"

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
    "stats",
    "testing",
)
_WHERE = {
    "GroupEdges": "core",
    "LabelOdds": "core",
    "Prior": "core",
    "Scores": "core",
    "UnknownPriorError": "core",
    "audit": "flows.audit",
    "class_counts": "core",
    "compare": "flows.compare",
    "figures": "report",
    "fit": "flows.fit",
    "fit_head": "engine",
    "fix": "flows.fix",
    "fix_labels": "flows.fix_labels",
    "load": "flows.predict",
    "measure_carried": "core",
    "measure_odds": "core",
    "retarget": "core",
    "shot_groups": "core",
    "sweep": "flows.sweep",
    "train": "flows.train.train",
}
__all__ = [
    "GroupEdges",
    "LabelOdds",
    "Prior",
    "Scores",
    "UnknownPriorError",
    "audit",
    "class_counts",
    "compare",
    "core",
    "data",
    "engine",
    "figures",
    "fit",
    "fit_head",
    "fix",
    "fix_labels",
    "heads",
    "images",
    "integrations",
    "load",
    "losses",
    "measure_carried",
    "measure_odds",
    "metrics",
    "posthoc",
    "report",
    "retarget",
    "shift",
    "shot_groups",
    "sweep",
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
        GroupEdges,
        LabelOdds,
        Prior,
        Scores,
        UnknownPriorError,
        class_counts,
        measure_carried,
        measure_odds,
        retarget,
        shot_groups,
    )
    from longtail.engine.fit_head import fit_head
    from longtail.flows.audit import audit
    from longtail.flows.compare import compare
    from longtail.flows.fit import fit
    from longtail.flows.fix import fix
    from longtail.flows.fix_labels import fix_labels
    from longtail.flows.predict import load
    from longtail.flows.sweep import sweep
    from longtail.flows.train.train import train
    from longtail.report import figures
else:  # not for type checkers, to whom every name would then exist

    def __getattr__(name):
        if name in _FOLDERS:
            return import_module(f"longtail.{name}")
        if name not in _WHERE:
            raise AttributeError(f"module 'longtail' has no attribute {name!r}")
        if _WHERE[name].startswith("flows") and name != "load":
            import_module("longtail.report")  # so that a result can show its page in a notebook
        globals()[name] = value = getattr(import_module(f"longtail.{_WHERE[name]}"), name)
        return value


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
