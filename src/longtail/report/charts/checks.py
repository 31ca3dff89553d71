"""What every figure asks of its numbers, with errors that say what to change."""

from collections.abc import Collection


def as_numbers(values: Collection[float], what: str) -> tuple[float, ...]:
    """The values as floats, or a TypeError that names them.

    >>> as_numbers([1, 2.5], "y")
    (1.0, 2.5)
    """
    try:
        return tuple(float(value) for value in values)
    except (TypeError, ValueError) as error:
        raise TypeError(
            f"{what} must be a flat sequence of numbers, NaN where one is missing; {error}"
        ) from error


def check_lengths(what: str, **parts: Collection[object] | None) -> None:
    """Raise unless all parts that are given have one length.

    >>> check_lengths("line 'CE'", x=[1, 2], y=[3, 4], low=None)
    """
    lengths = {name: len(part) for name, part in parts.items() if part is not None}
    if len(set(lengths.values())) > 1:
        came = ", ".join(f"{length} {name}" for name, length in lengths.items())
        raise ValueError(
            f"{what} must have sequences of one length; got {came}; "
            "give one value per point, NaN where it is missing"
        )


def check_pair(what: str, low: object, high: object) -> None:
    """Raise unless low and high are both given or both left out.

    >>> check_pair("line 'CE'", None, None)
    """
    if (low is None) != (high is None):
        missing = "low" if low is None else "high"
        raise ValueError(f"{what} must have low and high together; {missing} is missing: add it")
