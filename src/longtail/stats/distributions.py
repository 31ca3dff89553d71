"""Normal, Student's t and χ², on scipy.special: scipy.stats takes most of a second to import."""

import math

NORMAL = 1.959963984540054  # standard deviations of a normal number within which 95 % lie
_LEAST = 5e-324  # the least probability that float64 has


def normal_quantile(share: float) -> float:
    """Below which a normal number lies with this probability."""
    from scipy.special import ndtri

    return float(ndtri(share))


def student_p(t: float, freedom: float) -> float:
    """The probability that |T| is at least |t|; normal where `freedom` is infinite.

    >>> student_p(4.303, 2), student_p(1.96, math.inf)
    (0.0500, 0.0500)
    """
    from scipy.special import betainc

    if math.isinf(t):
        return 0.0
    if math.isinf(freedom):
        return math.erfc(abs(t) / math.sqrt(2))
    return float(betainc(freedom / 2, 0.5, freedom / (freedom + t * t)))


def student_reach(level: float, freedom: float) -> float:
    """The t that |T| exceeds with probability `level`.

    >>> student_reach(0.05, 2), student_reach(0.05, math.inf)
    (4.303, 1.960)
    """
    from scipy.special import stdtrit

    if math.isinf(freedom):
        return -normal_quantile(level / 2)
    return -float(stdtrit(freedom, level / 2))


def chi_square_quantile(share: float, freedom: float) -> float:
    """Below which χ² lies with this probability.

    >>> chi_square_quantile(0.95, 3)
    7.815
    """
    from scipy.special import chdtri

    return float(chdtri(freedom, 1 - share))


def chi_square_score(value: float, freedom: float) -> float:
    """The normal number that is as rare as χ² being this large: 38 at the most, as float64 ends.

    >>> chi_square_score(7.815, 3)
    1.645
    """
    from scipy.special import chdtrc

    return -normal_quantile(max(float(chdtrc(freedom, value)), _LEAST))
