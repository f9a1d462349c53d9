"""The Laplace mechanism: discrete Laplace noise on integers, or on real values through a grid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Any

from sfumato.core.additive import AdditiveNoise, in_steps, read_grid, read_sensitivity
from sfumato.core.adjacency import Sensitivity
from sfumato.core.arguments import Number, budget_quantity, positive
from sfumato.core.events import DiscreteLaplace, Event, Pure, Repeated
from sfumato.core.grid import Grid
from sfumato.core.noise import discrete_laplace

__all__ = ["LaplaceMechanism"]


@dataclass(frozen=True, slots=True, init=False)
class LaplaceMechanism(AdditiveNoise):
    """Add noise X with P(X = x) proportional to exp(-|x| / scale), x a whole number of steps.

    `scale` and `sensitivity` are in the units of the value. A number as sensitivity is how
    far one person can move one answer; a `Sensitivity` how far a vector of them.

    Theorem: epsilon = sensitivity / scale, with the sensitivity in whole steps (Dwork,
    McSherry, Nissim and Smith 2006; on the integers: Ghosh, Roughgarden and Sundararajan
    2009), for | |o - x| - |o - y| | <= |x - y| at every output o.

    >>> count = LaplaceMechanism.from_epsilon(0.5)
    >>> count.scale, count.event.epsilon()
    (Fraction(2, 1), Fraction(1, 2))
    >>> count.error(0.95)  # the noise is at most 6 in 95 of 100 cases
    6
    """

    scale: Fraction
    sensitivity: Fraction | Sensitivity
    grid: Grid | None

    def __init__(
        self, scale: Number, *, sensitivity: Number | Sensitivity = 1, grid: Grid | None = None
    ) -> None:
        object.__setattr__(self, "scale", positive(scale, "scale"))
        object.__setattr__(self, "sensitivity", read_sensitivity(sensitivity))
        object.__setattr__(self, "grid", read_grid(grid))
        _ = self.event  # a scale that no event can price is refused now, not after a release

    @classmethod
    def from_epsilon(
        cls, epsilon: Number, *, sensitivity: Number | Sensitivity = 1, grid: Grid | None = None
    ) -> LaplaceMechanism:
        """Return the least noise for which all answers together cost exactly `epsilon`."""
        loss = budget_quantity(epsilon, "epsilon")
        steps = in_steps(read_sensitivity(sensitivity), read_grid(grid))
        step = Fraction(1) if grid is None else grid.step
        return cls(steps.l1 / loss * step, sensitivity=sensitivity, grid=grid)

    @property
    def event(self) -> Event:
        """What one release of all answers costs."""
        steps, scale = in_steps(self.sensitivity, self.grid), self._scale
        if steps.l1 < steps.each * steps.coordinates:
            return Pure(loss=steps.l1 / scale)
        each = DiscreteLaplace(scale=scale, sensitivity=steps.each)
        return each if steps.coordinates == 1 else Repeated(event=each, times=steps.coordinates)

    @property
    def _scale(self) -> Fraction:
        """The scale in steps."""
        return self.scale if self.grid is None else self.scale / self.grid.step

    def _draw(self, size: int | None) -> Any:
        return discrete_laplace(self._scale) if size is None else discrete_laplace(self._scale, size=size)

    def _half_width(self, miss: Fraction) -> int:
        """P(|X| > w) = 2 exp(-(w+1)/t) / (1 + exp(-1/t)), so w + 1 >= t ln(2 / (miss (1 + exp(-1/t))))."""
        scale = self._scale
        digits = Context(prec=60 + len(str(math.ceil(scale))), rounding=ROUND_CEILING)
        ratio = digits.divide(Decimal(scale.denominator), Decimal(scale.numerator))
        odds = digits.divide(Decimal(2 * miss.denominator), Decimal(miss.numerator))
        odds = digits.divide(odds, digits.add(1, digits.exp(-ratio)))
        return max(0, math.ceil(digits.divide(digits.ln(odds), ratio)) - 1)

    def _probability(self, distance: int) -> float:
        rate = 1 / self._scale
        exponent = min(abs(distance) * rate, Fraction(1000))  # e^-1000 is 0.0
        return math.tanh(float(rate / 2)) * math.exp(-float(exponent))

    def _loss(self, to_x: int, to_y: int) -> Fraction:
        return (abs(to_y) - abs(to_x)) / self._scale
