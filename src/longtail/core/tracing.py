"""What torch.compile and torch.export need: no look at values, and constants made outside.

While they trace, a tensor has no values, so checks of them are left out. Priors are made of Python
numbers by checks and branches that a compiler cannot follow; it need not, since they are constants.
"""

import sys
from collections.abc import Callable
from functools import wraps
from itertools import count
from types import SimpleNamespace
from typing import Any, ParamSpec, TypeVar, cast

import numpy as np

from longtail.core.arrays import is_torch

P = ParamSpec("P")
ValueT = TypeVar("ValueT")

_CONSTANTS = SimpleNamespace()  # what was made while torch compiled, by a name of its own
_NUMBERS = count()


def is_traced(values: object) -> bool:
    """Whether torch compiles or exports what is done to this tensor."""
    return is_torch(values) and bool(sys.modules["torch"].compiler.is_compiling())


def in_compiler() -> bool:
    """Whether this line is read by torch.compile: it is not where Python itself runs it."""
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch.compiler.is_dynamo_compiling())


def constant_when_traced(function: Callable[P, ValueT]) -> Callable[P, ValueT]:
    """A function of Python numbers and priors, which a compiler calls once for its result.

    It keeps a name, a text, and finds the value under it: what torch.compile itself takes for a
    constant can neither be given to another such function nor be asked for its fields.
    """

    def kept(*args: P.args, **options: P.kwargs) -> str:
        name = f"constant_{next(_NUMBERS)}"
        setattr(_CONSTANTS, name, function(*args, **options))
        return name

    # As torch.compiler.assume_constant_result does, which would have to be imported.
    cast(Any, kept)._dynamo_marked_constant = True

    @wraps(function)
    def constant(*args: P.args, **options: P.kwargs) -> ValueT:
        if in_compiler():
            if any(isinstance(each, np.ndarray) or is_torch(each) for each in args):
                raise ValueError(
                    "an array is no constant to a compiler, which would keep its first numbers: "
                    "make a Prior of it outside of what is compiled, and pass that"
                )
            return cast(ValueT, getattr(_CONSTANTS, kept(*args, **options)))
        return function(*args, **options)

    return constant
