r"""How far to shrink a covariance S of n centred samples towards (tr S/p)·I, p the dimension.

    Ledoit-Wolf:  s = min(b, d)/d,   b = (Σ_i ‖x_i‖⁴/n − tr S²)/(p·n),   d = (tr S² − (tr S)²/p)/p
    OAS:          s = min(1, (tr S² /p² + (tr S/p)²) / ((n+1)(tr S² − (tr S)²/p)/p²))

OAS is written as scikit-learn has it, without the terms in 2/p of Chen et al.'s eq. 23.
Ledoit and Wolf 2004; Chen, Wiesel, Eldar and Hero 2010: the estimators of NCM A.2.
"""


def ledoit_wolf_shrinkage(trace: float, square: float, fourth: float, n: int, p: int) -> float:
    """Ledoit and Wolf's s, from tr S, tr S² and Σ ‖x_i‖⁴.

    >>> ledoit_wolf_shrinkage(trace=3.0, square=5.0, fourth=180.0, n=10, p=2)
    1.0
    >>> ledoit_wolf_shrinkage(trace=3.0, square=8.0, fourth=180.0, n=10, p=2)
    0.286
    """
    spread = (square - trace**2 / p) / p
    if p == 1 or spread <= 0:
        return 0.0
    noise = (fourth / n - square) / (p * n)
    return min(max(noise, 0.0), spread) / spread


def oas_shrinkage(trace: float, square: float, n: int, p: int) -> float:
    """The oracle approximating s, from tr S and tr S².

    >>> oas_shrinkage(trace=3.0, square=5.0, n=10, p=2)
    1.0
    """
    if p == 1:
        return 0.0
    spread = (n + 1) * (square - trace**2 / p)
    return 1.0 if spread <= 0 else min((square + trace**2) / spread, 1.0)
