"""Noise on the integers: outputs by their loss; the discrete Gaussian's tails, and how far it is from normal.

g(x) = exp(-x^2 / (2 s)) with s = sigma_squared, Z the sum of g over all integers, and
T(m) the sum of g(x) over x >= m.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import lru_cache

import numpy as np

from sfumato.core.arguments import Cost, FloatArray, upper_float
from sfumato.core.normal import scaled_tail, tail_quantile
from sfumato.core.search import root_above

__all__ = ["gaussian_mu", "gaussian_reach", "gaussian_survival", "last_output", "wrap_ratio"]

# Below this variance tails are summed; above, formulas are as exact as floats.
_TABLE_VARIANCE = 10_000
# Below this one thresholds are scanned; above, a bound costs a relative 1 / (24 * variance) < 5e-5 of mu.
_SCANNED_VARIANCE = 1_000
_FAR = 40  # g(40 sigma) is below the smallest float
_REACH = 13.4  # Phi(-13.4) < 1e-40
_LONGEST_SCAN = 1 << 16
_ROOT_TWO = math.sqrt(2)
_ROOT_TWO_PI = math.sqrt(2 * math.pi)

# B_2k / (2k)! for k = 1 .. 7, the coefficients of the Euler-Maclaurin formula.
_EULER_MACLAURIN = (
    1 / 12,
    -1 / 720,
    1 / 30240,
    -1 / 1209600,
    1 / 47900160,
    -691 / 1307674368000,
    1 / 74724249600,
)


def last_output(levels: FloatArray, sensitivity: int, slope: Fraction) -> FloatArray:
    """Return the largest integer x whose loss (sensitivity - 2x) * slope is above each level.

    Floats decide wherever the answer is clear of rounding, integers where it is not: a
    level that is exactly some output's loss does not count as below it.
    """
    rate = float(slope)
    with np.errstate(over="ignore"):
        scaled = levels / rate
    middle = (float(sensitivity) - scaled) / 2
    last = np.ceil(middle) - 1
    doubt = 2.0**-50 * (float(sensitivity) + np.abs(scaled)) + 2.0**-40
    nearest = np.rint(middle)
    with np.errstate(invalid="ignore"):
        unclear = (np.abs(middle - nearest) <= doubt) & (doubt < 0.25)
    for index in np.flatnonzero(unclear):
        numerator, denominator = float(levels[index]).as_integer_ratio()
        output = int(nearest[index])
        exceeds = (sensitivity - 2 * output) * slope.numerator * denominator > numerator * slope.denominator
        last[index] = output if exceeds else output - 1
    return last


def gaussian_survival(thresholds: FloatArray, variance: Fraction) -> FloatArray:
    """Return P(X >= m) for each whole threshold m, accurate relatively where it is small.

    Theorem: summed from the smallest weight up for sigma below 100; else the Euler-Maclaurin
    formula, T(m) = integral + g(m)/2 - sum of B_2k/(2k)! g^(2k-1)(m), whose terms fall by
    (z / (2 pi sigma))^2 < 1/250 each while g(m), z = m/sigma, can be represented at all.
    """
    beyond = np.maximum(thresholds, 1 - thresholds)  # at least 1: P(X >= m) = 1 - P(X >= 1 - m)
    if variance < _TABLE_VARIANCE:
        table = _survival_table(variance)
        tail = table[np.minimum(beyond, len(table) - 1).astype(np.int64)]
    else:
        tail = _smooth_survival(beyond, math.sqrt(upper_float(variance)))
    survival: FloatArray = np.where(thresholds >= 1, tail, 1 - tail)
    return survival


@lru_cache(maxsize=64)
def _survival_table(variance: Fraction) -> FloatArray:
    """Return P(X >= m) for m = 0, 1, ... until it is zero; P(X >= 0) is never read from it."""
    sums = _tail_ratios(variance, math.ceil(_FAR * math.sqrt(variance)) + 3)
    m = np.arange(len(sums), dtype=np.float64)
    tails = np.exp(-m * m / (2 * float(variance))) * sums
    tails[-1] = 0.0
    table: FloatArray = tails / (1 + 2 * tails[1])
    table.flags.writeable = False
    return table


def _tail_ratios(variance: Fraction, last: int) -> FloatArray:
    """Return T(m) / g(m) for m = 0 .. last: T(m)/g(m) = 1 + g(m+1)/g(m) * T(m+1)/g(m+1)."""
    m = np.arange(last + 1, dtype=np.float64)
    steps = np.exp(-(2 * m + 1) / (2 * float(variance))).tolist()
    ratio = 1 / (1 - steps[-1])
    ratios = [ratio]
    for step in reversed(steps[:-1]):
        ratio = 1 + step * ratio
        ratios.append(ratio)
    return np.array(ratios[::-1])


def _smooth_survival(m: FloatArray, sigma: float) -> FloatArray:
    z = np.minimum(m / sigma, _FAR)
    ratio = sigma * _ROOT_TWO_PI / 2 * scaled_tail(z / _ROOT_TWO) + 0.5
    # g^(n)(m) = (-1/sigma)^n He_n(z) g(m), with the Hermite polynomials of probability theory.
    before, hermite, power = np.ones_like(z), z, 1 / sigma
    for k, coefficient in enumerate(_EULER_MACLAURIN, start=1):
        ratio = ratio + coefficient * power * hermite
        even = z * hermite - (2 * k - 1) * before
        before, hermite = even, z * even - 2 * k * hermite
        power /= sigma * sigma
    # Z = sigma * sqrt(2 pi) up to a relative 2 exp(-2 pi^2 sigma^2), by Poisson summation.
    tail: FloatArray = np.where(m / sigma < _FAR, np.exp(-z * z / 2) * ratio / (sigma * _ROOT_TWO_PI), 0.0)
    return tail


def gaussian_reach(variance: Fraction) -> int:
    """Return a k with P(X > k) < 1e-40.

    Theorem: P(X >= m) <= P(N(0, s) >= m - 1) (Canonne, Kamath, Steinke 2020, Proposition 25).
    """
    if variance < _TABLE_VARIANCE:
        return int(np.argmax(_survival_table(variance) <= 1e-40)) - 1
    return math.ceil(_REACH * math.sqrt(upper_float(variance)))


def wrap_ratio(shift: Fraction, variance: Fraction) -> float:
    """Return (sum of g over the integers moved by `shift`) / Z, which is at most 1."""
    if variance >= 4:
        return 1.0  # by Poisson summation it is above 1 - 4 exp(-2 pi^2 s) > 1 - 1e-33
    s = float(variance)
    x = np.arange(-math.ceil(_FAR * math.sqrt(s)) - 2, math.ceil(_FAR * math.sqrt(s)) + 3, dtype=np.float64)
    moved = float(shift - round(shift))
    return min(1.0, float(np.exp(-((x - moved) ** 2) / (2 * s)).sum() / np.exp(-x * x / (2 * s)).sum()))


def gaussian_mu(variance: Fraction, sensitivity: int) -> Cost:
    """Return a certified mu for the discrete Gaussian against itself moved by `sensitivity`.

    Theorem: the trade-off curve is a polygon whose corners are the threshold tests, and a
    Gaussian curve is convex; so mu suffices iff h(y) - h(y - sensitivity) <= mu for every
    half-integer y, where h(y) = quantile(P(X < y)) (Dong, Roth, Su 2022, for the curves).

    For s < 1000 every y is looked at up to y ~ 12 s, and the rest is bounded by
    `_tail_slope`. For larger s, h rises by at most (1/sigma) / (1 - 1/(12 s)) a step:
    h(y) >= y/sigma, for cells of width 1 around the integers weigh more under N(0, s), relative
    to g at their centre, the further out they are; and the hazard of T is at most that of the
    normal tail divided by 1 - 1/(12 s), for hazards are means beyond y (over s), outer cells
    weigh more under the normal, and within a cell its mean lies at most c/(12 s) below the
    centre c, no law with a log-concave density on a unit interval having a variance above 1/12.
    Since the normal hazard increases, so must the steps of h be at most as stated.
    Rounds: up, by a relative 1e-9 where scanned.
    """
    if variance >= _SCANNED_VARIANCE:
        return upper_float(Fraction(root_above(sensitivity**2 / variance)) / (1 - 1 / (12 * variance)))
    whole, rest = divmod(sensitivity, _LONGEST_SCAN)  # h(y) - h(y - a - b) splits into two steps
    total = whole * _scanned_mu(variance, _LONGEST_SCAN) if whole else 0.0
    return total + _scanned_mu(variance, rest) if rest else total


@lru_cache(maxsize=256)
def _scanned_mu(variance: Fraction, sensitivity: int) -> float:
    reach = math.ceil(12 * variance) + 8
    quantiles = _quantiles(variance, reach + sensitivity)  # h(m - 1/2) for m = 1, 2, ...
    both = np.concatenate([-quantiles[::-1], quantiles])
    scanned = float(np.max(both[sensitivity:] - both[:-sensitivity]))
    slope, lag = _tail_slope(variance, reach, float(quantiles[reach - 1]))
    return max(scanned, sensitivity * slope + lag) * (1 + 1e-9)


def _quantiles(variance: Fraction, last: int) -> FloatArray:
    """Return the z with P(N(0,1) > z) = P(X >= m), for m = 1 .. last."""
    sums = _tail_ratios(variance, last)
    m = np.arange(last + 1, dtype=np.float64)
    logs = np.log(sums) - m * m / (2 * float(variance))
    logs = (logs - math.log(2 * math.exp(logs[1]) + 1))[1:]
    return tail_quantile(logs)


def _tail_slope(variance: Fraction, reach: int, z: float) -> tuple[float, float]:
    """Return (a, b): from threshold `reach` on, where h is z, h(y + d) - h(y) <= a d + b.

    Theorem: there T(m) = g(m) up to a factor 1/(1 - r), r = exp(-(2m+1)/(2s)), which moves h by
    at most r/((1-r) z). Where P(N > h) = g(x)/Z, the Mills ratio's bounds z/(1+z^2) and 1/z
    give dh/dx <= (1/sigma) sqrt(1 + (2/z^2) ln(sqrt(2 pi) (z + 1/z) / Z)), and Z >= 1, Z >= sigma
    sqrt(2 pi); that logarithm over z^2 falls once it is above 1/2.
    """
    sigma = math.sqrt(variance)
    excess = max(0.5, math.log(_ROOT_TWO_PI * (z + 1 / z) / max(1.0, sigma * _ROOT_TWO_PI)))
    ratio = math.exp(-(2 * reach + 1) / (2 * float(variance)))
    return math.sqrt(1 + 2 * excess / (z * z)) / sigma, ratio / (1 - ratio) / z
