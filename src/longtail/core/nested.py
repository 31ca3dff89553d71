"""Values in nested mappings, by dotted keys, as recipes name them."""

from collections.abc import Mapping
from typing import Any


def flat(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    """All values by their dotted keys; a tuple counts as the list that JSON makes of it.

    >>> flat({"loss": {"name": "lade", "alpha": 0.1}, "epochs": 30})
    {'loss.name': 'lade', 'loss.alpha': 0.1, 'epochs': 30}
    """
    values: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            values |= flat(value, f"{prefix}{key}.")
        else:
            values[prefix + key] = list(value) if isinstance(value, tuple) else value
    return values


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Of two flat mappings the keys whose values differ, with both; None where there is none.

    >>> differences({"epochs": 30, "seed": 0}, {"epochs": 60, "seed": 0, "ema": 0.9})
    {'epochs': (30, 60), 'ema': (None, 0.9)}
    """
    pairs = {key: (before.get(key), after.get(key)) for key in {**before, **after}}
    return {key: (old, new) for key, (old, new) in pairs.items() if old != new}
