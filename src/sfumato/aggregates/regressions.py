"""The line y = intercept + slope x that fits best: REGR_SLOPE, REGR_INTERCEPT and REGR_R2, with intervals.

    REGR_SLOPE, REGR_INTERCEPT   (count, sum of y, sum of x, square of x, cross)
    REGR_R2                      what CORR is answered from: it is the square of the correlation

Dxx and Dxy are sums of products of deviations from the means, as in `moments`; Y and X are the means.

    slope                        Dxy - theta Dxx
    intercept                    (Y Dxx - X Dxy) - theta Dxx

Neither has bounds that are known in public: values of x that hardly differ make any slope. So an interval
that says nothing has no ends. As in `moments`, noise is linear up to a remainder whose known mean is taken
off and whose variance is added: coverage is approximate, and tests measure it.
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
from sfumato.aggregates.centred_ratio import CentredRatio, half_of, limits, noisy_sums, over, within
from sfumato.aggregates.moments import EVEN, Correlation, remainder
from sfumato.aggregates.ratios import Estimate, fieller
from sfumato.core.intervals import EVERYTHING, Interval
from sfumato.core.noise_law import NoiseLaw
from sfumato.core.noise_sums import miss

__all__ = ["Determination", "FittedLine"]

_Noisy = npt.NDArray[np.int64] | npt.NDArray[np.object_]


@dataclass(frozen=True, slots=True)
class FittedLine(CentredRatio):
    """The slope of the line, or where it is at x = 0. The first argument is y."""

    at_zero: bool = False

    arity: ClassVar[int] = 2
    products: ClassVar[tuple[tuple[int, ...], ...]] = ((0,), (1,), (1, 1), (0, 1))
    multiplies: ClassVar[bool] = True
    standard: ClassVar[bool] = True

    def own_range(self, arguments: Sequence[Interval], values: int | None) -> Interval:
        """Return everything: a steep line needs little of x."""
        return EVERYTHING

    def range(self, widths: Sequence[Fraction], low: Fraction, high: Fraction) -> tuple[float, float]:
        """Return no ends."""
        return -math.inf, math.inf

    def estimate(
        self, answer: Answer, noisy: Sequence[_Noisy], laws: Sequence[NoiseLaw], chance: float
    ) -> Estimate:
        """Return Dxy / Dxx, or what it leaves of the mean of y."""
        a, b = float(answer.scale), float(answer.second_scale)
        n, s, t, q, c = noisy_sums(noisy, laws, (float(answer.weight), a, b, b * b, a * b))
        y, x = over(s.total, n.total, otherwise=0.0), over(t.total, n.total, otherwise=0.0)
        xx, xy = q.total - x * t.total, c.total - y * t.total
        slope = over(np.where(n.total > 0, xy, np.nan), np.where(n.total > 0, xx, 0.0))
        (bxx, exx), (bxy, exy) = remainder(n, t, t, x, x), remainder(n, s, t, y, x)
        one, zero = np.ones_like(x), np.zeros_like(x)
        low, high = limits(answer, x)
        if not self.at_zero:
            ends = fieller(
                xy + bxy,
                xx + bxx,
                laws=laws,
                weights=[
                    (x * y * n.unit, -(x**2) * n.unit),
                    (-x * s.unit, zero),
                    (-y * t.unit, 2 * x * t.unit),
                    (zero, -q.unit * one),
                    (c.unit * one, zero),
                ],
                extra=lambda theta: (np.sqrt(exy) + np.abs(theta) * np.sqrt(exx)) ** 2,
                low=low,
                high=high,
                chance=chance,
            )
            return within(answer, slope, *ends)
        mean_y, mean_x = answer.centre + y, answer.second_centre + x
        size = np.maximum(np.abs(n.total), n.spread)
        off = (n.spread / size) ** 2  # a mean of a noisy number of rows is too large by this part of it
        spread_y = np.hypot(s.spread, y * n.spread) / size
        spread_x = np.hypot(t.spread, x * n.spread) / size
        spread_xx = np.sqrt(q.spread**2 + (2 * x * t.spread) ** 2 + (x**2 * n.spread) ** 2)
        spread_xy = np.sqrt(c.spread**2 + (x * s.spread) ** 2 + (y * t.spread) ** 2 + (x * y * n.spread) ** 2)
        ends = fieller(
            (mean_y - off * y) * (xx + bxx) - (mean_x - off * x) * (xy + bxy) - y * t.spread**2 / size,
            xx + bxx,
            laws=laws,
            weights=[
                ((mean_y * x**2 - y * xx / size + x * xy / size - mean_x * x * y) * n.unit, -(x**2) * n.unit),
                ((xx / size + mean_x * x) * s.unit, zero),
                ((mean_x * y - 2 * mean_y * x - xy / size) * t.unit, 2 * x * t.unit),
                (mean_y * q.unit, -q.unit * one),
                (-mean_x * c.unit, zero),
            ],
            extra=lambda theta: (
                (
                    np.abs(mean_y - theta) * np.sqrt(exx)
                    + np.abs(mean_x) * np.sqrt(exy)
                    + spread_y * spread_xx
                    + spread_x * spread_xy
                )
                ** 2
            ),
            low=low,
            high=high,
            chance=chance,
        )
        return within(answer, mean_y - slope * mean_x, *ends)

    def forecast(
        self, answer: Answer, noises: Sequence[AddedNoise], size: float | None, level: float
    ) -> Forecast:
        """Return the half-width for values spread evenly between their bounds, on a line or on none."""
        if size is None:
            return Forecast(name=answer.name, error=None, needs_size=True)
        y, x = (half_of(answer, place) for place in (0, 1))
        widths = []
        for rho in (0.0, 0.5):
            products = (x * x, rho * x * y)
            units = (float(answer.second_scale) ** 2, float(answer.scale) * float(answer.second_scale))
            squares = [size * EVEN * product / unit for product, unit in zip(products, units, strict=True)]
            sums = [size / float(answer.weight), 0.0, 0.0, *squares]
            laws = [noise.law for noise in noises]
            found = self.estimate(answer, [np.array([one]) for one in sums], laws, miss(level))
            widths.append(float(found.high[0] - found.low[0]) / 2)
        return Forecast(name=answer.name, error=None, even=max(widths))


@dataclass(frozen=True, slots=True)
class Determination(Correlation):
    """The share of the variance of y that the line explains: the square of the correlation."""

    def own_range(self, arguments: Sequence[Interval], values: int | None) -> Interval:
        """Return 0 to 1."""
        return Interval(0, 1)

    def range(self, widths: Sequence[Fraction], low: Fraction, high: Fraction) -> tuple[float, float]:
        """Return 0 and 1."""
        return 0.0, 1.0

    def estimate(
        self, answer: Answer, noisy: Sequence[_Noisy], laws: Sequence[NoiseLaw], chance: float
    ) -> Estimate:
        """Return the square of the correlation; where its sign is not known, it may be zero."""
        found = Correlation.estimate(self, replace(answer, lower=-1.0, upper=1.0), noisy, laws, chance)
        ends = found.low**2, found.high**2
        low = np.where((found.low <= 0) & (found.high >= 0), 0.0, np.minimum(*ends))
        return within(answer, found.values**2, low, np.maximum(*ends))
