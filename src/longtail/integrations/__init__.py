"""Other people's tools: each behind its own extra, imported when it is first used."""

from importlib import import_module
from typing import TYPE_CHECKING

__all__ = ["hf", "sklearn"]

if TYPE_CHECKING:
    from longtail.integrations import hf, sklearn
else:  # not for type checkers, to whom every name would then exist

    def __getattr__(name):
        if name in __all__:
            return import_module(f"longtail.integrations.{name}")
        raise AttributeError(f"module 'longtail.integrations' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
