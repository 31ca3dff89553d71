"""Where a page makes a number of its own, read from the syntax tree.

A number is born where an operator joins two values that are not written there, − × ÷ // % ** @ or
a sum inside of one of these, where a function reduces many to one, and where a loop sums up. What
only changes the unit of a value is no number of its own: a literal, a CONSTANT, a length of what is
drawn, or the `factor` of a metric times it. Text and lists are put together with + alone.
"""

import ast

JOINING = (ast.Sub, ast.Mult, ast.Div, ast.FloorDiv, ast.Mod, ast.Pow, ast.MatMult)
REDUCING = {
    *("mean", "fmean", "std", "stdev", "var", "variance", "sum", "fsum", "cumsum", "nansum"),
    *("nanmean", "prod", "dot", "einsum", "average", "median", "quantile", "percentile", "ptp"),
    *("histogram", "bincount", "searchsorted", "unique", "argmax", "argmin", "argsort", "sort"),
    *("diff", "gradient", "interp", "trapezoid", "accumulate", "reduce", "subtract", "divide"),
    *("sub", "truediv", "mul", "exp", "log", "log2", "log10", "log1p", "sqrt", "hypot"),
}
TEXT = (ast.JoinedStr, ast.List, ast.ListComp, ast.Tuple, ast.Dict, ast.DictComp, ast.Set)
COMPUTING = ("numpy", "statistics", "operator", "functools.reduce", "itertools.accumulate")


def born_numbers(source):
    """The lines in which a number is made."""
    tree = ast.parse(source)
    lines = {node.lineno for node in ast.walk(tree) if _makes_one(node)}
    return sorted(lines | {node.lineno for node in (*_imports(tree), *_totals(tree))})


def _totals(tree):
    """Where something is added to what began as a number."""
    begun = {
        getattr(node.targets[0], "id", "")
        for node in ast.walk(tree)
        if isinstance(node, ast.Assign)
        and isinstance(node.value, ast.Constant)
        and isinstance(node.value.value, int | float)
    }
    for node in ast.walk(tree):
        is_added = isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Add)
        if is_added and getattr(node.target, "id", "") in begun and not _is_unit(node.value):
            yield node


def _makes_one(node):
    if isinstance(node, ast.BinOp):
        sides = (node.left, node.right)
        if not isinstance(node.op, JOINING) or getattr(node.left, "id", "") == "folder":
            return False  # folder / name is a path
        return not any(map(_is_unit, sides)) or any(map(_is_sum, sides))
    if isinstance(node, ast.AugAssign):
        return isinstance(node.op, JOINING) and not _is_unit(node.value)
    if isinstance(node, ast.Call):
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        return name in REDUCING and getattr(getattr(node.func, "value", None), "id", "") != "re"
    return False


def _is_sum(node):
    """Whether it adds two values, neither of which is a unit or text."""
    is_sum = isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add)
    return is_sum and not (_is_unit(node.left) or _is_unit(node.right))


def _imports(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            module = getattr(node, "module", "") or ""
            names = {f"{module}.{each.name}".strip(".") for each in node.names} | {module}
            if any(name.startswith(COMPUTING) for name in names):
                yield node


def _is_unit(node):
    if isinstance(node, ast.UnaryOp):
        return _is_unit(node.operand)
    if isinstance(node, ast.BinOp):  # of units: 2 * WIDTH
        return _is_unit(node.left) and _is_unit(node.right)
    if isinstance(node, ast.Call):
        return getattr(node.func, "id", "") == "len"
    name = getattr(node, "attr", getattr(node, "id", ""))
    return isinstance(node, ast.Constant) or _is_text(node) or name == "factor" or name.isupper()


def _is_text(node):
    if isinstance(node, ast.BinOp):
        return _is_text(node.left) or _is_text(node.right)
    if isinstance(node, ast.IfExp):
        return _is_text(node.body) or _is_text(node.orelse)
    return isinstance(node, TEXT) or (
        isinstance(node, ast.Constant) and isinstance(node.value, str)
    )
