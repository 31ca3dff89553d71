"""What `dir` of a folder lists: the names that it gives away, and none that it only works with."""

from collections.abc import Mapping
from types import ModuleType


def public_names(folder: Mapping[str, object], *others: str) -> list[str]:
    """Of the globals of a folder's `__init__` those that are no modules; and others by name.

    Modules get there by being imported, so what `dir` listed would depend on what was used before.
    """
    own = (
        name
        for name, value in folder.items()
        if not (name.startswith("_") or isinstance(value, ModuleType) or value is public_names)
    )
    return sorted({*own, *others})
