"""The Gaussian mechanism: discrete Gaussian noise on integers, or on real values through a grid."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.core.additive import AdditiveNoise, in_steps, read_grid, read_sensitivity
from sfumato.core.adjacency import Sensitivity
from sfumato.core.arguments import Number, budget_quantity, positive
from sfumato.core.events import DiscreteGaussian, DiscreteGaussianVector, Event, Repeated
from sfumato.core.events.lattice import gaussian_survival
from sfumato.core.grid import Grid
from sfumato.core.noise import discrete_gaussian
from sfumato.errors import InvalidArgument

__all__ = ["GaussianMechanism"]


@dataclass(frozen=True, slots=True, init=False)
class GaussianMechanism(AdditiveNoise):
    """Add noise X with P(X = x) proportional to exp(-x^2 / (2 sigma^2)), x a whole number of steps.

    `sigma` and `sensitivity` are in the units of the value. A number as sensitivity is how
    far one person can move one answer; a `Sensitivity` how far a vector of them. A sigma whose
    square alone is rational is given as `sigma_squared`.

    Theorem: rho = sensitivity^2 / (2 sigma^2), with the sensitivity in whole steps (Canonne,
    Kamath and Steinke 2020, Theorem 4; for vectors by the l2 norm, Theorem 14).

    >>> noise = GaussianMechanism(10)
    >>> noise.event.rho(), noise.error(0.95)
    (Fraction(1, 200), 20)
    """

    sigma_squared: Fraction
    sensitivity: Fraction | Sensitivity
    grid: Grid | None

    def __init__(
        self,
        sigma: Number | None = None,
        *,
        sigma_squared: Number | None = None,
        sensitivity: Number | Sensitivity = 1,
        grid: Grid | None = None,
    ) -> None:
        if (sigma is None) == (sigma_squared is None):
            raise InvalidArgument("give either sigma or sigma_squared", place="sigma")
        square = positive(sigma_squared, "sigma_squared") if sigma is None else positive(sigma, "sigma") ** 2
        object.__setattr__(self, "sigma_squared", square)
        object.__setattr__(self, "sensitivity", read_sensitivity(sensitivity))
        object.__setattr__(self, "grid", read_grid(grid))
        _ = self.event  # a sigma that no event can price is refused now, not after a release

    @classmethod
    def from_rho(
        cls, rho: Number, *, sensitivity: Number | Sensitivity = 1, grid: Grid | None = None
    ) -> GaussianMechanism:
        """Return the least noise for which all answers together cost exactly `rho`."""
        charge = budget_quantity(rho, "rho")
        steps = in_steps(read_sensitivity(sensitivity), read_grid(grid))
        step = Fraction(1) if grid is None else grid.step
        square = steps.l2_squared / (2 * charge) * step**2
        return cls(sigma_squared=square, sensitivity=sensitivity, grid=grid)

    @classmethod
    def from_budget(
        cls,
        epsilon: Number,
        delta: Number,
        *,
        sensitivity: Number | Sensitivity = 1,
        grid: Grid | None = None,
    ) -> GaussianMechanism:
        """Return about the least noise for which all answers together are (epsilon, delta)-private.

        Theorem: that of the event, whose delta is computed. Rounds: up: the result itself was tested.
        """
        from sfumato.core.calibration import analytic_sigma_squared, calibrate, discrete_sigma_squared

        steps = in_steps(read_sensitivity(sensitivity), read_grid(grid))
        step = Fraction(1) if grid is None else grid.step
        if steps.coordinates == 1 and steps.l2_squared == steps.each**2:
            return cls(
                sigma_squared=discrete_sigma_squared(steps.each, epsilon, delta) * step**2,
                sensitivity=sensitivity,
                grid=grid,
            )

        def event(square: float) -> Event:
            return cls(sigma_squared=Fraction(square) * step**2, sensitivity=sensitivity, grid=grid).event

        start = float(analytic_sigma_squared(steps.l2_squared, epsilon, delta))
        square = Fraction(calibrate(event, epsilon=epsilon, delta=delta, start=start))
        return cls(sigma_squared=square * step**2, sensitivity=sensitivity, grid=grid)

    @property
    def sigma(self) -> float:
        """The standard deviation that the noise is named after, as the nearest float."""
        return math.sqrt(self.sigma_squared)

    @property
    def event(self) -> Event:
        """What one release of all answers costs."""
        steps, square = in_steps(self.sensitivity, self.grid), self._square
        if steps.l2_squared < steps.each**2 * steps.coordinates:
            return DiscreteGaussianVector(sigma_squared=square, l2_squared=steps.l2_squared)
        each = DiscreteGaussian(sigma_squared=square, sensitivity=steps.each)
        return each if steps.coordinates == 1 else Repeated(event=each, times=steps.coordinates)

    @property
    def _square(self) -> Fraction:
        """The square of sigma in steps."""
        return self.sigma_squared if self.grid is None else self.sigma_squared / self.grid.step**2

    def _draw(self, size: int | None) -> Any:
        if size is None:
            return discrete_gaussian(self._square, squared=True)
        return discrete_gaussian(self._square, size=size, squared=True)

    def _half_width(self, miss: Fraction) -> int:
        def exceeds(width: int) -> bool:
            tail = 2 * gaussian_survival(np.array([float(width + 1)]), self._square)[0]
            return bool(tail > float(miss) * (1 - 1e-12))  # what is too close to tell goes the safe way

        if not exceeds(0):
            return 0
        low, high = 0, 1
        while exceeds(high):
            low, high = high, 2 * high
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if exceeds(middle) else (low, middle)
        return high

    def _probability(self, distance: int) -> float:
        square = self._square
        exponent = min(Fraction(distance * distance) / (2 * square), Fraction(1000))  # e^-1000 is 0.0
        return math.exp(-float(exponent)) / _total(float(square))

    def _loss(self, to_x: int, to_y: int) -> Fraction:
        return (to_y**2 - to_x**2) / (2 * self._square)


def _total(square: float) -> float:
    """Return the sum of exp(-x^2 / (2 s)) over all integers, directly or by Poisson summation."""
    if square < 1:
        return 1 + 2 * math.fsum(math.exp(-x * x / (2 * square)) for x in range(1, 60))
    wraps = 2 * math.fsum(math.exp(-2 * (math.pi * k) ** 2 * square) for k in range(1, 8))
    return math.sqrt(2 * math.pi * square) * (1 + wraps)
