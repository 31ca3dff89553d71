"""The options of a class or function, read from its source: nothing of it is imported.

Losses and heads need torch, which takes seconds to import and may not be installed. A recipe is
checked without it: the signature is parsed, its defaults are literals, its annotations are plain
types, `Literal`, sequences of these, the names of `longtail.ranges`, and aliases of all that.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from functools import cache, reduce
from itertools import chain
from operator import or_
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, Literal, NamedTuple, get_origin

import msgspec

from longtail import ranges

_PLAIN: dict[str, Any] = {"float": float, "int": int, "bool": bool, "str": str}
_SOME: Any = Annotated  # which type checkers know with types alone, not with variables
_TUPLE: Any = tuple
_RANGES = ranges.__name__
_ROOT = Path(ranges.__file__).parent


class Parameter(NamedTuple):
    """One of a signature."""

    kind: Any  # what a recipe may give, as msgspec takes it; None for what only Python can give
    default: Any  # msgspec.NODEFAULT where there is none
    keyword_only: bool


def parameters(module: str, name: str) -> dict[str, Parameter]:
    """The parameters of a function, or of a class: its own or inherited, `self` left out.

    >>> parameters("longtail.losses", "LADE")["variant"].default
    'paper'
    """
    home, node = _definition(module, name)
    if isinstance(node, ast.FunctionDef):
        return dict(_of_function(node, home))
    if not isinstance(node, ast.ClassDef):
        return {}
    for statement in node.body:
        if isinstance(statement, ast.FunctionDef) and statement.name == "__init__":
            return dict(_of_function(statement, home))
    fields = [s for s in node.body if isinstance(s, ast.AnnAssign)]
    if node.decorator_list or any(_name(base) == "TypedDict" for base in node.bases):
        return {
            _name(field.target): _parameter(field.annotation, field.value, home) for field in fields
        }
    return parameters(home, _name(node.bases[0])) if node.bases else {}


def union(kinds: Iterable[Any]) -> Any:
    """The type of what is of any of these types."""
    return reduce(or_, kinds)


def _of_function(node: ast.FunctionDef, module: str) -> Iterator[tuple[str, Parameter]]:
    arguments = node.args
    names = [*arguments.posonlyargs, *arguments.args]
    missing = len(names) - len(arguments.defaults)
    defaults = [*[None] * missing, *arguments.defaults]
    for argument, default in zip(names, defaults, strict=True):
        if argument.arg not in ("self", "cls"):
            yield argument.arg, _parameter(argument.annotation, default, module)
    for argument, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True):
        yield argument.arg, _parameter(argument.annotation, default, module, keyword_only=True)
    match arguments.kwarg:
        case ast.arg(annotation=ast.Subscript(value=ast.Name(id="Unpack"), slice=options)):
            for name, parameter in parameters(module, _name(options)).items():
                yield name, parameter._replace(keyword_only=True)


def _parameter(
    annotation: ast.expr | None, default: ast.expr | None, module: str, keyword_only: bool = False
) -> Parameter:
    members = [] if annotation is None else list(_members(annotation, module))
    if None in members:  # beside an array a sequence is one too: a recipe gives what has a name
        members = [kind for kind in members if kind is NoneType or get_origin(kind) is Literal]
    plain = [kind for kind in members if kind is not NoneType]
    value = ast.literal_eval(default) if plain and default is not None else msgspec.NODEFAULT
    return Parameter(union(members) if plain else None, value, keyword_only)


def _members(node: ast.expr, module: str) -> Iterator[Any]:
    """The types of an annotation that is a union of them; None for what only Python can give."""
    match node:
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            yield from _members(left, module)
            yield from _members(right, module)
        case ast.Constant(value=None):
            yield NoneType
        case ast.Name(id=name) if name in _PLAIN:
            yield _PLAIN[name]
        case ast.Subscript(value=ast.Name(id="Literal"), slice=choices):
            values = ast.literal_eval(choices)
            yield Literal[values]
        case ast.Subscript(value=ast.Name(id="Mapping")):
            yield dict[str, Any]
        case ast.Subscript(value=ast.Name(id="Sequence" | "tuple"), slice=item):
            inner = item.elts[0] if isinstance(item, ast.Tuple) else item
            kind = next(_members(inner, module))
            yield None if kind is None else _SOME[_TUPLE[kind, ...], msgspec.Meta(min_length=1)]
        case ast.Name(id=name):
            home, bound = _definition(module, name)
            if home == _RANGES:
                yield getattr(ranges, name)
            elif isinstance(bound, ast.Assign | ast.AnnAssign) and bound.value is not None:
                yield from _members(bound.value, home)
            else:
                yield None
        case _:
            yield None


def _definition(module: str, name: str) -> tuple[str, ast.stmt | None]:
    """The module and statement that define a name, through as many imports as it takes."""
    bound = _bindings(module).get(name)
    if isinstance(bound, ast.ImportFrom) and str(bound.module).startswith("longtail"):
        original = next(n.name for n in bound.names if (n.asname or n.name) == name)
        return _definition(str(bound.module), original)
    return module, bound


@cache
def _bindings(module: str) -> dict[str, ast.stmt]:
    """The statement that each name of a module comes from."""
    path = _ROOT.joinpath(*module.split(".")[1:])
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    bound: dict[str, ast.stmt] = {}
    statements = ast.parse(file.read_bytes()).body
    for_types = [node.body for node in statements if isinstance(node, ast.If)]
    for node in chain(statements, *for_types):
        match node:
            case ast.ImportFrom():
                bound |= {each.asname or each.name: node for each in node.names}
            case ast.ClassDef() | ast.FunctionDef():
                bound[node.name] = node
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                bound[name] = node
    return bound


def _name(node: ast.expr) -> str:
    return node.id if isinstance(node, ast.Name) else ast.unparse(node)
