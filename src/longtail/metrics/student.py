r"""Student's t without a statistics library: how rare a value is, and the value that is so rare.

    P(|T| > t) = I_x(ν/2, 1/2),    x = ν/(ν + t²),

the regularised incomplete beta function, by its continued fraction (DLMF 8.17.22).
"""

import math
from statistics import NormalDist

_TINY = 1e-300
_TERMS = 10_000


def two_sided(t: float, freedom: float) -> float:
    """The probability that |T| is at least |t|; normal where `freedom` is infinite.

    >>> two_sided(4.303, 2), two_sided(1.96, math.inf)
    (0.0500, 0.0500)
    """
    if math.isinf(t):
        return 0.0
    if math.isinf(freedom):
        return math.erfc(abs(t) / math.sqrt(2))
    return _beta_share(freedom / 2, 0.5, t * t, freedom)


def reach(level: float, freedom: float) -> float:
    """The t that |T| exceeds with probability `level`.

    >>> reach(0.05, 2), reach(0.05, math.inf)
    (4.303, 1.960)
    """
    t = -NormalDist().inv_cdf(level / 2)
    if math.isinf(freedom):
        return t
    # The probability is convex in t and the normal's t too small, so Newton's steps only rise.
    for _ in range(_TERMS):
        step = (two_sided(t, freedom) - level) / (2 * _density(t, freedom))
        t += step
        if step <= 1e-10 * t:
            break
    return t


def _density(t: float, freedom: float) -> float:
    log_front = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)
    log_front -= math.log(freedom * math.pi) / 2
    return math.exp(log_front - (freedom + 1) / 2 * math.log1p(t * t / freedom))


def _beta_share(a: float, b: float, square: float, freedom: float) -> float:
    """I_x(a, b) at x = ν/(ν + t²), by whichever of x and 1 − x lets the fraction end soon."""
    x, rest = freedom / (freedom + square), square / (freedom + square)
    if rest == 0:
        return 1.0
    if x == 0:
        return 0.0
    log_front = a * math.log(x) + b * math.log(rest)
    log_front -= math.lgamma(a) + math.lgamma(b) - math.lgamma(a + b)
    front = math.exp(log_front)
    if x < (a + 1) / (a + b + 2):
        return front * _fraction(a, b, x) / a
    return 1.0 - front * _fraction(b, a, rest) / b


def _fraction(a: float, b: float, x: float) -> float:
    """The continued fraction, from its head by the modified method of Lentz."""
    c, d = 1.0, 1.0 / _off_zero(1.0 - (a + b) * x / (a + 1))
    value = d
    for m in range(1, _TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            d = 1.0 / _off_zero(1.0 + term * d)
            c = _off_zero(1.0 + term / c)
            value *= d * c
        if abs(d * c - 1.0) < 1e-15:
            break
    return value


def _off_zero(value: float) -> float:
    return value if abs(value) > _TINY else _TINY
