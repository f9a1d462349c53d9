"""Variances, covariances and correlations from noisy centred moments, with intervals.

    VAR_*, STDDEV_*   (count, sum, square)   n = N * weight, mean = S * scale / n
                      sum of squared deviations D = Q * scale^2 - n * mean^2
                      population D / n, sample D / (n - 1), STDDEV its root
    COVAR_*           (count, sum of the first, sum of the second, cross)
                      D = C * scale * second_scale - n * mean_1 * mean_2
    CORR              (count, sum of the first, sum of the second, square of the first,
                       square of the second, cross)

    variance          (Q - S^2/n) - theta n        (sample: theta (n - 1))
    covariance        (C - S T/n) - theta n        (sample: theta (n - 1))
    correlation       Dxy - theta sqrt(Dxx Dyy)    with the sums of products of deviations D

The noise in the numerator is linear up to a remainder of the order of noise^2/n: its known mean is taken
off, its variance is added. Coverage is then approximate, and tests measure it down to groups whose size is
a few times the noise.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from sfumato.aggregates.answer import AddedNoise, Answer, Forecast
from sfumato.aggregates.centred_ratio import CentredRatio, NoisySum, half_of, limits, noisy_sums, over, within
from sfumato.aggregates.ratios import Estimate, fieller
from sfumato.core.intervals import Interval
from sfumato.core.noise_law import NoiseLaw
from sfumato.core.noise_sums import miss

__all__ = ["Correlation", "Covariance", "EVEN", "Variance", "remainder"]

_Floats = npt.NDArray[np.float64]
_Noisy = npt.NDArray[np.int64] | npt.NDArray[np.object_]

EVEN = 1 / 3
"""Values spread evenly over a half-width have a third of its square as their variance."""


@dataclass(frozen=True, slots=True)
class Covariance(CentredRatio):
    """The covariance of a population, divided by n, or of a sample, by n - 1."""

    sample: bool = False

    arity: ClassVar[int] = 2
    products: ClassVar[tuple[tuple[int, ...], ...]] = ((0,), (1,), (0, 1))
    multiplies: ClassVar[bool] = True
    standard: ClassVar[bool] = True

    def own_range(self, arguments: Sequence[Interval], values: int | None) -> Interval:
        """Return half of the widths' product to either side."""
        return Interval(-1, 1) * _spread(*arguments)

    def range(self, widths: Sequence[Fraction], low: Fraction, high: Fraction) -> tuple[float, float]:
        """Return a quarter of the widths' product to either side; of a sample, a half."""
        part = float(widths[0]) * float(widths[-1]) / (2 if self.sample else 4)
        return -part, part

    def estimate(
        self, answer: Answer, noisy: Sequence[_Noisy], laws: Sequence[NoiseLaw], chance: float
    ) -> Estimate:
        """Return (C - S T/n) / n or / (n - 1); of a single argument T is S."""
        scales = float(answer.scale), float(answer.second_scale)
        steps = [math.prod(scales[place] for place in places) for places in self.products]
        n, s, *second, c = noisy_sums(noisy, laws, (float(answer.weight), *steps))
        t = second[0] if second else s
        degrees = n.total - (1.0 if self.sample else 0.0)
        x, y = over(s.total, n.total, otherwise=0.0), over(t.total, n.total, otherwise=0.0)
        deviations = c.total - x * t.total
        one, zero = np.ones_like(x), np.zeros_like(x)
        bias, extra = remainder(n, s, t, x, y)
        low, high = limits(answer, x)
        means = [(-y * s.unit, zero), (-x * t.unit, zero)] if second else [(-2 * x * s.unit, zero)]
        ends = fieller(
            deviations + bias,
            degrees,
            laws=laws,
            weights=[(x * y * n.unit, -n.unit * one), *means, (c.unit * one, zero)],
            extra=lambda theta: extra,
            low=low,
            high=high,
            chance=chance,
        )
        return within(answer, over(deviations, degrees), *ends)


@dataclass(frozen=True, slots=True)
class Variance(Covariance):
    """The variance, the covariance of an argument with itself, or its root."""

    root: bool = False

    arity: ClassVar[int] = 1
    products: ClassVar[tuple[tuple[int, ...], ...]] = ((0,), (0, 0))

    def own_range(self, arguments: Sequence[Interval], values: int | None) -> Interval:
        """Return up to half of the squared width, or its root."""
        square = Interval(0, 1) * _spread(arguments[0], arguments[0])
        return square.rising(math.sqrt, bottom=0.0) if self.root else square

    def range(self, widths: Sequence[Fraction], low: Fraction, high: Fraction) -> tuple[float, float]:
        """Return zero and width^2 / 4; of a sample, width^2 / 2."""
        width, part = float(widths[0]), 0.5 if self.sample else 0.25
        return 0.0, width * part**0.5 if self.root else width**2 * part

    def estimate(
        self, answer: Answer, noisy: Sequence[_Noisy], laws: Sequence[NoiseLaw], chance: float
    ) -> Estimate:
        """Return the variance, or its root."""
        if not self.root:
            return Covariance.estimate(self, answer, noisy, laws, chance)
        upper = None if answer.upper is None else answer.upper**2
        found = Covariance.estimate(self, replace(answer, upper=upper), noisy, laws, chance)
        values, low, high = (np.sqrt(np.maximum(each, 0.0)) for each in (found.values, found.low, found.high))
        return within(answer, values, low, high)

    def worst(self, answer: Answer, laws: Sequence[NoiseLaw], size: float, level: float) -> float:
        """Return the same of a variance; a root is off by at most the root of what its square is."""
        square = CentredRatio.worst(replace(self, root=False), answer, laws, size, level)
        return math.sqrt(square) if self.root else square


@dataclass(frozen=True, slots=True)
class Correlation(CentredRatio):
    """The correlation. It divides by deviations that nobody knows, so that it has no worst case."""

    arity: ClassVar[int] = 2
    products: ClassVar[tuple[tuple[int, ...], ...]] = ((0,), (1,), (0, 0), (1, 1), (0, 1))
    multiplies: ClassVar[bool] = True
    standard: ClassVar[bool] = True

    def own_range(self, arguments: Sequence[Interval], values: int | None) -> Interval:
        """Return -1 to 1."""
        return Interval(-1, 1)

    def range(self, widths: Sequence[Fraction], low: Fraction, high: Fraction) -> tuple[float, float]:
        """Return -1 and 1."""
        return -1.0, 1.0

    def estimate(
        self, answer: Answer, noisy: Sequence[_Noisy], laws: Sequence[NoiseLaw], chance: float
    ) -> Estimate:
        """Return Dxy / sqrt(Dxx Dyy)."""
        a, b = float(answer.scale), float(answer.second_scale)
        n, s, t, q, r, c = noisy_sums(noisy, laws, (float(answer.weight), a, b, a * a, b * b, a * b))
        x, y = over(s.total, n.total, otherwise=0.0), over(t.total, n.total, otherwise=0.0)
        xx, yy, xy = q.total - x * s.total, r.total - y * t.total, c.total - x * t.total
        defined = (n.total > 0) & (xx > 0) & (yy > 0)
        with np.errstate(invalid="ignore"):
            values = np.where(defined, xy / np.sqrt(np.where(defined, xx * yy, 1.0)), np.nan)
        (bx, ex), (by, ey) = remainder(n, s, s, x, x), remainder(n, t, t, y, y)
        bxy, exy = remainder(n, s, t, x, y)
        xx, yy = (np.where(defined, np.maximum(each, 0), 0.0) for each in (xx + bx, yy + by))
        k = np.sqrt(over(yy, xx, otherwise=1.0))
        k = np.where(k > 0, k, 1.0)
        one, zero = np.ones_like(x), np.zeros_like(x)
        low, high = limits(answer, x)
        ends = fieller(
            xy + bxy,
            np.sqrt(xx * yy),
            laws=laws,
            weights=[
                (x * y * n.unit, -0.5 * (k * x**2 + y**2 / k) * n.unit),
                (-y * s.unit, k * x * s.unit),
                (-x * t.unit, y / k * t.unit),
                (zero, -0.5 * k * q.unit),
                (zero, -0.5 / k * r.unit),
                (c.unit * one, zero),
            ],
            extra=lambda theta: exy + theta**2 / 4 * (k**2 * ex + ey / k**2),
            low=np.maximum(low, -1.0),
            high=np.minimum(high, 1.0),
            chance=chance,
        )
        return within(answer, values, *ends)

    def forecast(
        self, answer: Answer, noises: Sequence[AddedNoise], size: float | None, level: float
    ) -> Forecast:
        """Return the half-width for values spread evenly between their bounds, at its widest."""
        if size is None:
            return Forecast(name=answer.name, error=None, needs_size=True)
        weight, x, y = float(answer.weight), float(answer.scale), float(answer.second_scale)
        h, g = half_of(answer, 0), half_of(answer, 1)
        widths = []
        for rho in (0.0, 0.5):
            products = (h * h / x / x, g * g / y / y, rho * h * g / x / y)
            sums = [size / weight, 0.0, 0.0, *(size * EVEN * product for product in products)]
            laws = [noise.law for noise in noises]
            found = self.estimate(answer, [np.array([one]) for one in sums], laws, miss(level))
            widths.append(float(found.high[0] - found.low[0]) / 2)
        return Forecast(name=answer.name, error=None, even=max(widths))


def remainder(n: NoisySum, s: NoisySum, t: NoisySum, x: _Floats, y: _Floats) -> tuple[_Floats, _Floats]:
    """Return (what to add, variance) for the part of the noise of S T/n that is not linear.

    (S + X)(T + Y)/(n + Z) = S T/n + linear + XY/n - (x Y + y X) Z/n + x y Z^2/n + .., x = S/n, y = T/n.
    """
    size = np.maximum(np.abs(n.total), n.spread)
    same = s is t
    with np.errstate(over="ignore"):
        bias = ((s.spread**2 if same else 0.0) + x * y * n.spread**2) / size
        products = (s.law.fourth if same else 1.0) * (s.spread * t.spread) ** 2
        across = (
            (np.abs(x) * t.spread + np.abs(y) * s.spread) ** 2
            if same
            else (x * t.spread) ** 2 + (y * s.spread) ** 2
        )
        extra = (products + across * n.spread**2 + n.law.fourth * (x * y) ** 2 * n.spread**4) / size**2
    return bias, extra


def _spread(x: Interval, y: Interval) -> Interval:
    widths = [(one - Interval(one.low, one.low)).high if one.bounded else math.inf for one in (x, y)]
    product = Interval(widths[0], widths[0]) * Interval(widths[1], widths[1])
    return product * Interval(Fraction(1, 2), Fraction(1, 2))
