"""What methods are called: the recipe, and of its settings those that tell methods apart."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from longtail.flows.run_sources import TARGET, Source

# Other data make another table, not another method.
_OF_THE_DATA = {
    f"data.{key}" for key in ("kind", "imbalance_ratio", "profile", "held_out", "official")
}
_MOST = 10  # values of a list that a name has room for


def method_names(sources: Sequence[Source]) -> list[str]:
    """The method of each source, in order: runs that differ only in their seed have one name.

    >>> from pathlib import Path
    >>> runs = [Source(Path(f"{at}"), "la", "0", settings={"loss.tau": at}) for at in (1.0, 1.5)]
    >>> method_names(runs)
    ['la tau=1', 'la tau=1.5']
    """
    names: list[str] = []
    meanings: dict[str, list[str]] = {}  # of each name the settings it stands for
    for source in sources:
        kin = _kin(source)
        keys = _differing([_method_settings(s) for s in sources if _kin(s) == kin])
        own = _method_settings(source)
        settings = [f"{_short(key, keys)}={_text(own[key])}" for key in keys if key in own]
        name = " ".join([source.label or source.base, *settings])
        name = f"{name} + {source.head}" if source.head else name
        # Settings that are written alike, such as two priors of many classes, stay two methods.
        meaning = json.dumps([own.get(key) for key in keys], default=str)
        others = meanings.setdefault(name, [])
        others += [] if meaning in others else [meaning]
        number = others.index(meaning) + 1
        names.append(f"{name} ({number})" if number > 1 else name)
    return names


def _kin(source: Source) -> tuple[str, str, str]:
    """What runs have in common that only settings can tell apart."""
    return source.label, "" if source.label else source.base, source.head


def _method_settings(source: Source) -> dict[str, Any]:
    if source.label:  # whoever names methods decides what they are, but for their target
        return {TARGET: source.settings.get(TARGET)}
    return {key: value for key, value in source.settings.items() if key not in _OF_THE_DATA}


def _differing(each: Sequence[Mapping[str, Any]]) -> list[str]:
    keys = dict.fromkeys(key for settings in each for key in settings)
    return [
        key
        for key in keys
        if len({json.dumps(settings.get(key), default=str) for settings in each}) > 1
    ]


def _short(key: str, keys: Sequence[str]) -> str:
    """The last word of a key, if no other ends in it; the part itself where its name differs."""
    last = key.removesuffix(".name").rpartition(".")[2]
    alike = [other for other in keys if other.removesuffix(".name").rpartition(".")[2] == last]
    return last if len(alike) == 1 else key.removesuffix(".name")


def _text(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, (list, tuple)):
        shown = [_text(part) for part in value[:_MOST]]
        return "[" + ", ".join(shown + ["…"] * (len(value) > _MOST)) + "]"
    if isinstance(value, Mapping):
        return str(value.get("name", json.dumps(value, default=str)))
    return "none" if value is None else str(value)
