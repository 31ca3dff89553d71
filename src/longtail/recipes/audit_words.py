"""Numbers and classes of an audit as words."""

from collections.abc import Sequence


def class_called(name: str) -> str:
    """A class in running text: one that is only a number is called a class."""
    return f"class {name}" if name.isdigit() else name


def times(ratio: float) -> str:
    """A ratio as people write it: 5.34, 25.4, 2,840."""
    return f"{ratio:,.0f}" if ratio >= 100 else f"{ratio:.3g}"


def number_of(classes: int) -> str:
    """How many classes: 1 class, 28 classes."""
    return "1 class" if classes == 1 else f"{classes:,} classes"


def classes_have(names: Sequence[str]) -> str:
    """The opening of a sentence: how many classes, which, and the verb."""
    listed = ", ".join(names[:3]) + (", ..." if len(names) > 3 else "")
    return f"{number_of(len(names))} ({listed}) {'has' if len(names) == 1 else 'have'}"
