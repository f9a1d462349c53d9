"""The Gaussian mechanism: discrete Gaussian noise on integers, or on real values through a grid."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from sfumato.core.additive import AdditiveNoise, StepSensitivity
from sfumato.core.adjacency import Sensitivity
from sfumato.core.arguments import FloatArray, Number, budget_quantity, positive
from sfumato.core.events import DiscreteGaussian, DiscreteGaussianVector, Event, Gaussian
from sfumato.core.events.lattice import gaussian_survival
from sfumato.core.grid import Grid
from sfumato.core.noise import discrete_gaussian
from sfumato.core.noise_law import NoiseLaw, shortened
from sfumato.core.normal import tail_quantile, two_sided_tail
from sfumato.core.search import least_whole, round_up
from sfumato.errors import InvalidArgument

__all__ = ["GaussianMechanism", "GaussianNoise"]

_PER_MU = 1.6  # about the range of losses that a Gaussian mu of 1 pays for


@dataclass(frozen=True, slots=True)
class GaussianNoise(NoiseLaw):
    """P(X = x) proportional to exp(-x^2 / (2 sigma^2)) over all integers; the parameter is sigma squared.

    >>> GaussianNoise(Fraction(100)).half_width(0.95)
    20
    """

    name: ClassVar[str] = "gaussian"
    pure: ClassVar[bool] = False
    euclidean: ClassVar[bool] = True
    fourth: ClassVar[float] = 2.0

    @property
    def variance(self) -> Fraction:
        """Sigma squared."""
        return self.parameter

    @property
    def exact_variance(self) -> float:
        """The sum over the law; from 4 on it differs from sigma squared by a relative e^-70."""
        if self.parameter >= 4:
            return float(self.parameter)
        return 2 * math.fsum(x * x * self.mass(x) for x in range(1, 60))

    def mass(self, distance: int) -> float:
        exponent = min(Fraction(distance * distance) / (2 * self.parameter), Fraction(1000))  # e^-1000 is 0.0
        return math.exp(-float(exponent)) / _total(float(self.parameter))

    def loss(self, to_x: int, to_y: int) -> Fraction:
        return (to_y**2 - to_x**2) / (2 * self.parameter)

    def tail(self, gap: int) -> float:
        return min(1.0, round_up(float(gaussian_survival(np.array([float(gap)]), self.parameter)[0])))

    def least_half_width(self, miss: Fraction) -> int:
        def covers(width: int) -> bool:
            tail = 2 * gaussian_survival(np.array([float(width + 1)]), self.parameter)[0]
            return bool(tail <= float(miss) * (1 - 1e-12))  # what is too close to tell goes the safe way

        deviations = tail_quantile(np.log([max(float(miss) / 2, 1e-300)]))[0]
        return least_whole(covers, near=int(deviations * math.sqrt(self.parameter)))

    def sum_half_width(self, times: int, miss: Fraction) -> int:
        """Return that of the law that the sum has; see `summed`."""
        return self.summed(times).least_half_width(miss * (1 - Fraction(1, 10**6)))

    def summed(self, times: int) -> GaussianNoise:
        """Return the law of the sum of independent noises, to a relative `times` * 1e-16.

        Theorem: the sum of two discrete Gaussians of variances a and b has P(x) proportional to
        exp(-x^2 / (2 (a + b))) times a theta function of x of variance ab / (a + b), which by Poisson's
        formula differs from a constant by a relative 2 exp(-2 pi^2 ab / (a + b)) at most, and less than
        1.5e-17 where a and b are at least 4. Below 4 the variance is raised to 4: that spreads each term,
        and a sum of symmetric unimodal terms is spread by spreading one (Birnbaum 1948).
        """
        return self if times == 1 else GaussianNoise(times * max(self.parameter, Fraction(4)))

    def draw(self, size: int | None = None) -> Any:
        return discrete_gaussian(self.parameter, size, squared=True)

    @staticmethod
    def standard_tail(z: FloatArray) -> FloatArray:
        return two_sided_tail(z)

    @staticmethod
    def standard_quantile(chance: float) -> float:
        return float(tail_quantile(np.array([math.log(chance / 2)]))[0])

    def event(self, shift: int) -> Event:
        return DiscreteGaussian(sigma_squared=self.parameter, sensitivity=shift)

    def joint_event(self, *, l1: int, l2_squared: int) -> Event:
        """Return what noise on many numbers costs, by the Euclidean norm of their shifts."""
        return DiscreteGaussianVector(sigma_squared=self.parameter, l2_squared=Fraction(l2_squared))

    def choice(self, shift: int, part: Fraction) -> Fraction:
        """Return the range of losses that the part of mu pays for, about."""
        return Fraction(_PER_MU * shift * math.sqrt(part / self.parameter))

    def widened(self, groups: int) -> GaussianNoise:
        """Return noise of `groups` times the variance.

        Theorem: in units of 1 / variance, j + (groups - j)^2 / groups <= groups, for groups - j <= groups.
        For mu the step of the wider noise must be small enough: that is computed, and the variance raised
        until it is.
        """
        if groups == 1:
            return self
        single = Fraction(self.event(1).mu()) ** 2
        more = Fraction(0)
        while True:
            wide = GaussianNoise(groups * self.parameter * (1 + more))
            if Fraction(wide.event(1).mu()) ** 2 * groups <= single:
                return wide
            more = 2 * more or Fraction(1, 2**30)

    @classmethod
    def first_level(
        cls, parts: Sequence[tuple[int | Fraction, float, int]], price: Callable[[Event], float]
    ) -> float:
        """Return about the level itself, by the price of continuous noise: certifying a sigma is slow."""
        unit = price(Gaussian(sigma=Fraction(1)))
        level = unit * sum(norm / ratio for norm, ratio, _ in parts)
        total = 0.0
        for norm, ratio, sensitivity in parts:
            variance = level * ratio * sensitivity**2
            # what a certified mu^2 of integers is above that of real numbers
            total += norm / ratio * (1 + 1 / ((6 if variance >= 1_000 else 12) * variance))
        return unit * total * (1 + 1e-7)

    def share(self, part: Fraction) -> GaussianNoise:
        """Return the noise of 1 / part of the variance, which is kept short. Rounds: up."""
        return GaussianNoise(shortened(self.parameter / part))


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
        self._declare(sensitivity, grid)

    @classmethod
    def from_rho(
        cls, rho: Number, *, sensitivity: Number | Sensitivity = 1, grid: Grid | None = None
    ) -> GaussianMechanism:
        """Return the least noise for which all answers together cost exactly `rho`."""
        charge = budget_quantity(rho, "rho")
        steps = StepSensitivity.of(sensitivity, grid)
        square = steps.l2_squared / (2 * charge) * steps.step**2
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

        steps = StepSensitivity.of(sensitivity, grid)

        def noise(square: float | Fraction) -> GaussianMechanism:
            return cls(sigma_squared=Fraction(square) * steps.step**2, sensitivity=sensitivity, grid=grid)

        if steps.coordinates == 1 and steps.l2_squared == steps.each**2:
            return noise(discrete_sigma_squared(steps.each, epsilon, delta))
        start = float(analytic_sigma_squared(steps.l2_squared, epsilon, delta))
        return noise(calibrate(lambda square: noise(square).event, epsilon=epsilon, delta=delta, start=start))

    @property
    def sigma(self) -> float:
        """The standard deviation that the noise is named after, as the nearest float."""
        return math.sqrt(self.sigma_squared)

    def _joint_event(self, steps: StepSensitivity) -> Event:
        return DiscreteGaussianVector(sigma_squared=self.law.parameter, l2_squared=steps.l2_squared)

    @property
    def law(self) -> GaussianNoise:
        step = 1 if self.grid is None else self.grid.step
        return GaussianNoise(self.sigma_squared / step**2)


def _total(square: float) -> float:
    """Return the sum of exp(-x^2 / (2 s)) over all integers, directly or by Poisson summation."""
    if square < 1:
        return 1 + 2 * math.fsum(math.exp(-x * x / (2 * square)) for x in range(1, 60))
    wraps = 2 * math.fsum(math.exp(-2 * (math.pi * k) ** 2 * square) for k in range(1, 8))
    return math.sqrt(2 * math.pi * square) * (1 + wraps)
