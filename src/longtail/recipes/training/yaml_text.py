"""YAML as people write it: 1e-3 is a number, and nothing but plain values is made of it."""

import re
from typing import Any

import yaml


class _Loader(yaml.SafeLoader):
    """YAML 1.1 reads 1e-3 as a text, since it has no point; here it is a number, as in JSON.

    A key that stands twice is an error here: the first would be dropped without a word.
    """

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        found = [key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)]
        twice = next((key for key in found if found.count(key) > 1), None)
        if twice is not None:
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


def read_yaml(text: str) -> Any:
    """The value of a YAML text, or a ValueError that says where it is wrong.

    >>> read_yaml("{lr: 1e-3, wd: 5.0e-4, epochs: 30, name: null}")
    {'lr': 0.001, 'wd': 0.0005, 'epochs': 30, 'name': None}
    """
    loader = _Loader(text)
    try:
        return loader.get_single_data()
    except yaml.YAMLError as error:
        raise ValueError(f"this is not YAML: {' '.join(str(error).split())}") from error
    finally:
        loader.dispose()


def write_yaml(value: Any) -> str:
    """The YAML text of a plain value, in its own order."""
    return yaml.dump(value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=96)
