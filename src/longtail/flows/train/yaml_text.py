"""YAML as people write it: 1e-3 is a number, and nothing but plain values is made of it."""

import os
import re
from collections import Counter
from itertools import chain
from typing import Any

import yaml

_OPEN = -1  # of a value whose parts are being counted
_MOST_VALUES = _MOST_CHARACTERS = 100_000  # PyYAML takes seconds for more


class _Loader(yaml.SafeLoader):
    """YAML 1.1 reads 1e-3 as a text, since it has no point; here it is a number, as in JSON.

    A key that stands twice is an error here: the first would be dropped without a word.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        counts = Counter(key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode))
        twice, times = counts.most_common(1)[0] if counts else ("", 0)
        if times > 1:
            raise yaml.MarkedYAMLError(f"the key {twice} stands twice", node.start_mark)
        made: dict[Any, Any] = super().construct_mapping(node, deep)
        return made


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$"),
    list("-+.0123456789"),
)


class _Dumper(yaml.SafeDumper):
    """Indented lists of plain values on one line, and no anchors."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _sequence(dumper: yaml.SafeDumper, values: Any) -> yaml.Node:
    plain = not any(isinstance(value, (dict, list, tuple)) for value in values)
    return dumper.represent_sequence("tag:yaml.org,2002:seq", values, flow_style=plain)


def _text(dumper: yaml.SafeDumper, value: str) -> yaml.Node:
    style = ">" if len(value) > 60 else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", value, style=style)


_Dumper.add_representer(list, _sequence)
_Dumper.add_representer(tuple, _sequence)
_Dumper.add_representer(str, _text)


def _unfolded(node: yaml.Node, sizes: dict[yaml.Node, int]) -> int:
    """How many values there are when each alias is written out, or a ValueError for too many.

    A few lines of aliases of aliases can stand for more values than memory has room for.
    """
    if sizes.get(node) == _OPEN:
        raise ValueError("an alias stands for what it is itself a part of")
    if node not in sizes:
        sizes[node] = _OPEN
        children = node.value if isinstance(node, yaml.CollectionNode) else ()
        inside = chain.from_iterable(children) if isinstance(node, yaml.MappingNode) else children
        sizes[node] = 1 + sum(_unfolded(part, sizes) for part in inside)
    if sizes[node] > _MOST_VALUES:
        raise ValueError(f"it stands for more than {_MOST_VALUES:,} values")
    return sizes[node]


def text_of(path: str | os.PathLike[str]) -> str:
    """The text of a file, which is not read if it is too long to be one of YAML."""
    from longtail.core.files import read_whole  # NumPy comes with it, which recipes do without

    return read_whole(path, 4 * _MOST_CHARACTERS).decode("utf-8").replace("\r\n", "\n")


def read_yaml(text: str) -> Any:
    """The value of a YAML text, or a ValueError that says where it is wrong.

    >>> read_yaml("{lr: 1e-3, wd: 5.0e-4, epochs: 30, name: null}")
    {'lr': 0.001, 'wd': 0.0005, 'epochs': 30, 'name': None}
    """
    try:
        if len(text) > _MOST_CHARACTERS:
            raise ValueError(f"it has {len(text):,} characters, where a recipe has some thousands")
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _unfolded(node, {})
        return loader.construct_document(node)
    except RecursionError as error:
        raise ValueError("this is not YAML of a recipe: it is nested too deep") from error
    except (yaml.YAMLError, ValueError, LookupError, AttributeError, TypeError) as error:
        # PyYAML takes what `!!int` and the like are put before as it is, and stumbles over it.
        reason = " ".join(str(error).split()) or type(error).__name__
        raise ValueError(f"this is not YAML: {reason}") from error


def write_yaml(value: Any) -> str:
    """The YAML text of a plain value, in its own order."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=96)
