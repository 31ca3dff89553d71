"""From numbers to pixels: spans, round ticks, and numbers as people write them."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Scale:
    """A straight map of [low, high] to the pixels [start, end], or of their logarithms.

    `whole` says that there is nothing between whole numbers, such as classes or epochs.

    >>> Scale(0, 10, start=100, end=200)(2.5), Scale(1, 100, start=0, end=50, log=True)(10)
    (125.0, 25.0)
    """

    low: float
    high: float
    start: float
    end: float
    log: bool = False
    whole: bool = False

    def __call__(self, value: float) -> float:
        """The pixel of a value."""
        low, high = self.low, self.high
        if self.log:
            low, high, value = math.log10(low), math.log10(high), math.log10(value)
        return self.start + (value - low) / (high - low) * (self.end - self.start)


def span_of(values: Iterable[float], pad: float = 0.0, log: bool = False) -> tuple[float, float]:
    """The lowest and highest finite value, a share `pad` of their distance wider on both sides.

    The span is never empty: one value gets some room around it, no value gives 0 to 1 (1 to 10).
    """
    finite = [value for value in values if math.isfinite(value)]
    if log:
        low, high = span_of([math.log10(value) for value in finite], pad)
        return 10**low, 10**high
    if not finite:
        return 0.0, 1.0
    low, high = min(finite), max(finite)
    if high - low <= 1e-9 * max(abs(low), abs(high)):
        room = abs(low) / 10 or 0.5
        return low - room, high + room
    return low - pad * (high - low), high + pad * (high - low)


def linear_ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers in the span, at most one more than `most`."""
    step = _round_step(low, high, most)
    return _multiples(step, math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9))


def covering_ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers around the span: the first is not above it, the last not below."""
    step = _round_step(low, high, most)
    return _multiples(step, math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9))


def log_ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Powers of ten in the span, with 2 and 5 between them where there is room.

    >>> log_ticks(1, 100), log_ticks(1, 1e6), log_ticks(3, 4)
    ([1.0, 10.0, 100.0], [1.0, 100.0, 10000.0, 1000000.0], [3.0, 3.2, 3.4, 3.6, 3.8, 4.0])
    """
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    inside = [[10.0**power * digit for power in powers] for digit in (1, 2, 5)]
    inside = [[v for v in row if low * 0.999999 <= v <= high * 1.000001] for row in inside]
    every = sorted(value for row in inside for value in row)
    if 2 < len(every) <= most + 1:
        return every
    tens = inside[0]
    if len(tens) < 2:
        return linear_ticks(low, high, most)
    return tens[:: math.ceil(len(tens) / (most + 1))]


def covering_log_ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Powers of ten around the span, evenly thinned where there are more than `most`.

    >>> covering_log_ticks(3, 534), covering_log_ticks(1, 1e9)
    ([1.0, 10.0, 100.0, 1000.0], [1.0, 100.0, 10000.0, 1000000.0, 100000000.0, 10000000000.0])
    """
    first = math.floor(math.log10(low) + 1e-9)
    last = max(math.ceil(math.log10(high) - 1e-9), first + 1)
    step = math.ceil((last - first) / most)
    return [10.0**power for power in range(first, last + step, step)]


def tick_labels(ticks: Sequence[float]) -> list[str]:
    """The ticks as text, all with the decimals that the closest two need.

    >>> tick_labels([0, 0.5, 1]), tick_labels([-20, 0, 20]), tick_labels([1, 100, 10000])
    (['0.0', '0.5', '1.0'], ['−20', '0', '20'], ['1', '100', '10,000'])
    """
    largest = max(map(abs, ticks), default=0)
    decimals = max((_decimals(tick) for tick in ticks), default=0)
    if largest >= 1e7 or (largest < 1e-3 and decimals > 5):
        return [readable(tick, 6) for tick in ticks]
    return [fixed(tick, decimals) for tick in ticks]


def readable(value: float, digits: int = 4) -> str:
    """A number as people write it, with so many significant digits.

    >>> readable(7.8712), readable(-0.5), readable(1234567.8), readable(1.2e-7), readable(math.nan)
    ('7.871', '−0.5', '1,234,568', '1.2e−7', 'no value')
    """
    if math.isnan(value):
        return "no value"
    if 1000 <= abs(value) < 1e9:
        return fixed(value, 0)
    mantissa, _, exponent = f"{value:.{digits}g}".partition("e")
    return _signed(f"{mantissa}e{int(exponent)}" if exponent else mantissa)


def decimals_for(value: float, digits: int) -> int:
    """How many decimals show a number of this size with so many significant digits.

    >>> decimals_for(82.41, 3), decimals_for(0.0391, 2), decimals_for(12345, 3)
    (1, 3, 0)
    """
    if value == 0 or not math.isfinite(value):
        return 0
    exponent = int(f"{value:.{digits - 1}e}".partition("e")[2])
    return max(0, digits - 1 - exponent)


def fixed(value: float, decimals: int) -> str:
    """A number with so many decimals, so that several beside each other look alike; NaN is –."""
    return _signed(f"{value:,.{decimals}f}")


def _round_step(low: float, high: float, most: int) -> float:
    power = 10.0 ** math.floor(math.log10((high - low) / most))
    enough = (digit * power for digit in (1, 2, 5) if digit * power * most >= (high - low) * 0.9999)
    return next(enough, 10 * power)


def _multiples(step: float, first: int, last: int) -> list[float]:
    decimals = max(0, -math.floor(math.log10(step)))
    return [round(index * step, decimals) for index in range(first, last + 1)]


def _decimals(tick: float) -> int:
    return len(f"{tick:.10f}".rstrip("0").partition(".")[2])


def _signed(text: str) -> str:
    return text.replace("-", "−").replace("inf", "∞").replace("nan", "–")
