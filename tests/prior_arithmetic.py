"""Where a file moves something from one prior to another by its own arithmetic.

Read from the syntax tree, by what expressions are and not by how they are spelt. A *log* of a prior
is `.log` of anything (not called), `.logit` of odds, the logarithm of its probabilities, or a name
that says so (`log_prior`, `carried_log`); its *probabilities* are `.probs`, `.priors`, the
exponential of a log. `counts` and `samples` of classes are probabilities but for their sum. The
logarithm of the number of classes is the opposite of the log of the uniform prior. What is made of
one elementwise, bound to a name, or given to a field of a class of the same file is one too. Two
priors meet where

    log a − log b,  log a + (−log b),  a / b,  ratio(a, b),  a · (1/b),  p.reweighted(1/b)

in whatever functions, and a and b are not the same expression.
"""

import ast
import re
from dataclasses import dataclass, replace

LOG_NAME = re.compile(
    r"(^|_)log_(prior|carried|target|train|source|batches)"
    r"|(^|_)(prior|carried|target|train|source|batches)_log$"
)
COUNTS = re.compile(r"(^|_)counts$|^samples$")  # of classes: a prior but for their sum
CLASSES = re.compile(r"(^|\.)(num_classes|C)$")
MODULES = {"np", "numpy", "torch", "math", "special", "jnp", "logging", "logger"}
KEEPING = {  # of an array, an array of the same numbers
    *("asarray", "array", "as_tensor", "tensor", "as_numpy", "to", "double", "float", "clone"),
    *("copy", "numpy", "cpu", "detach", "view", "reshape", "expand", "unsqueeze", "astype"),
    *("from_numpy", "ascontiguousarray", "along_classes", "clip", "clamp", "clamp_min"),
    *("broadcast_to", "log_softmax", "square", "tolist", "where", "maximum"),
}
OPERATIONS = {
    **dict.fromkeys(("subtract", "sub", "sub_"), ast.Sub),
    **dict.fromkeys(("divide", "true_divide", "div", "div_", "ratio"), ast.Div),
    **dict.fromkeys(("multiply", "mul", "mul_"), ast.Mult),
    **dict.fromkeys(("add", "add_"), ast.Add),
}


@dataclass(frozen=True)
class Quantity:
    """A log or the probabilities of a prior, or their opposite: −log, 1/probs."""

    kind: str  # "log" or "probs"
    of: str  # which prior: the expression that it comes from
    opposite: bool = False


class _Reader(ast.NodeVisitor):
    """One file, or one function in it with names of its own."""

    def __init__(self, fields, names=None):
        self.fields, self.names, self.met = fields, dict(names or {}), []

    # What binds names.

    def visit_FunctionDef(self, node):
        inner = _Reader(self.fields, self.names)
        for part in node.body:
            inner.visit(part)
        self.met += inner.met

    def visit_Lambda(self, node):
        inner = _Reader(self.fields, self.names)
        inner.visit(node.body)
        self.met += inner.met

    def visit_Assign(self, node):
        self.generic_visit(node)
        for target in node.targets:
            self._bind(target, node.value)

    def visit_AnnAssign(self, node):
        self.generic_visit(node)
        if node.value is not None:
            self._bind(node.target, node.value)

    def visit_AugAssign(self, node):
        self.generic_visit(node)
        self._meet(node, node.op, self.quantity(node.target), self.quantity(node.value))

    def _bind(self, target, value):
        if isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
            for one, other in zip(target.elts, value.elts, strict=False):
                self._bind(one, other)
        found = self.quantity(value)
        if isinstance(target, ast.Name):
            counts = COUNTS.search(target.id)  # named for what they are, however they are made
            self.names[target.id] = found or (Quantity("probs", target.id) if counts else None)
        elif isinstance(target, ast.Attribute) and found is not None:
            self.fields[target.attr] = found.kind

    # Where two meet.

    def visit_BinOp(self, node):
        self.generic_visit(node)
        self._meet(node, node.op, self.quantity(node.left), self.quantity(node.right))

    def visit_Call(self, node):
        self.generic_visit(node)
        name, arguments = _called(node), _arguments(node)
        if name in OPERATIONS and len(arguments) == 2:
            left, right = map(self.quantity, arguments)
            self._meet(node, OPERATIONS[name](), left, right)
        if name == "reweighted" and node.args:
            by = self.quantity(node.args[0])
            if by is not None and by.opposite:
                self.met.append(node.lineno)

    def _meet(self, node, operation, left, right):
        if left is None or right is None or left.kind != right.kind or left.of == right.of:
            return
        against = left.opposite != right.opposite
        apart = {"log": (ast.Sub, ast.Add), "probs": (ast.Div, ast.Mult)}[left.kind]
        if (isinstance(operation, apart[0]) and not against) or (
            isinstance(operation, apart[1]) and against
        ):
            self.met.append(node.lineno)

    # What an expression is.

    def quantity(self, node):
        """The quantity of a prior that an expression is, or None."""
        if isinstance(node, ast.Name):
            if node.id in self.names:
                return self.names[node.id]
            if LOG_NAME.search(node.id):
                return Quantity("log", node.id)
            return Quantity("probs", node.id) if COUNTS.search(node.id) else None
        if isinstance(node, ast.Attribute):
            return self._attribute(node)
        if isinstance(node, ast.Subscript):
            return self.quantity(node.value)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
            return _opposite(self.quantity(node.operand), "log")
        if isinstance(node, ast.BinOp):
            return self._operation(node)
        if isinstance(node, ast.Call):
            return self._call(node)
        if isinstance(node, ast.IfExp):
            either = [self.quantity(node.body), self.quantity(node.orelse)]
            either = [one for one in either if one is not None]
            priors = [one for one in either if not COUNTS.search(one.of)]
            return (priors or either or [None])[0]  # of counts or a prior the prior
        return None

    def _attribute(self, node):
        base = ast.unparse(node.value)
        if base in MODULES:
            return None
        if node.attr in ("log", "logit"):
            inverse = isinstance(node.value, ast.Call) and _inverts(node.value)
            return Quantity("log", base, inverse)
        if node.attr in ("probs", "priors"):
            inverse = isinstance(node.value, ast.Call) and _inverts(node.value)
            return Quantity("probs", base, inverse)
        if node.attr == "log_probs" or LOG_NAME.search(node.attr):
            return Quantity("log", ast.unparse(node))
        if COUNTS.search(node.attr):
            return Quantity("probs", ast.unparse(node))
        kind = self.fields.get(node.attr)
        return None if kind is None else Quantity(kind, ast.unparse(node))

    def _operation(self, node):
        left, right = self.quantity(node.left), self.quantity(node.right)
        one = left or right
        if one is None or (left and right and left.kind != right.kind):
            return None
        if isinstance(node.op, ast.Sub) and left is None:
            return _opposite(one, "log")
        if isinstance(node.op, ast.Div) and left is None:
            return _opposite(one, "probs")
        if isinstance(node.op, ast.Pow):
            power = node.right
            negative = isinstance(power, ast.UnaryOp) and isinstance(power.op, ast.USub)
            return _opposite(left, "probs") if negative else left
        return one

    def _call(self, node):
        name, arguments = _called(node), _arguments(node)
        if name == "log" and arguments and CLASSES.search(ast.unparse(arguments[0])):
            return Quantity("log", "uniform", opposite=True)
        first = self.quantity(arguments[0]) if arguments else None
        if first is None:
            return None
        if name == "log" and first.kind == "probs":
            return replace(first, kind="log")
        if name == "exp" and first.kind == "log":
            return replace(first, kind="probs")
        return first if name in KEEPING else None


def _called(node):
    return node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")


def _arguments(node):
    """Of a function of a module those it is given; of a method its object first."""
    function = node.func
    if isinstance(function, ast.Attribute) and ast.unparse(function.value) not in MODULES:
        return [function.value, *node.args]
    return node.args


def _inverts(call):
    """Whether it is p.tempered(-1), or another negative power."""
    power = call.args[0] if call.args else None
    return _called(call) == "tempered" and isinstance(power, ast.UnaryOp)


def _opposite(quantity, kind):
    if quantity is None or quantity.kind != kind:
        return None
    return replace(quantity, opposite=not quantity.opposite)


class _Fields(_Reader):
    """Which fields of the file's own classes are given a quantity of a prior."""

    def __init__(self, tree):
        super().__init__({})
        self.classes = {
            node.name: [part.target.id for part in node.body if isinstance(part, ast.AnnAssign)]
            for node in ast.walk(tree)
            if isinstance(node, ast.ClassDef)
        }

    def visit_FunctionDef(self, node):
        outer, self.names = self.names, dict(self.names)
        self.generic_visit(node)
        self.names = outer

    def visit_Call(self, node):
        self.generic_visit(node)
        names = self.classes.get(_called(node), [])
        given = [*zip(names, node.args, strict=False)]
        given += [(part.arg, part.value) for part in node.keywords if part.arg in names]
        for name, value in given:
            found = self.quantity(value)
            if found is not None:
                self.fields[name] = found.kind


def two_priors(source):
    """The lines on which two priors are subtracted or divided."""
    tree = ast.parse(source)
    fields = _Fields(tree)
    fields.visit(tree)
    reader = _Reader(fields.fields)
    reader.visit(tree)
    return sorted(set(reader.met))
