"""The event of discrete Gaussian noise on a vector of integers: only the norm of a change is known."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from sfumato.core.arguments import Cost, FloatArray, checked_order, count, positive, upper_float
from sfumato.core.events.additive import DiscreteGaussian, Gaussian
from sfumato.core.events.base import Direction, Event
from sfumato.core.search import root_above

__all__ = ["DiscreteGaussianVector"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiscreteGaussianVector(Event):
    """Integer noise, P(x) proportional to exp(-x^2 / (2 sigma_squared)), on each entry of an integer vector.

    One person changes the vector by a vector of integers whose squares sum to at most
    `l2_squared`, in any entries.

    Theorem: an entry moved by d has a trade-off curve above that of a Gaussian of mu = |d| m,
    where m is the mu of moving by one: every corner of the curve is h(y) - h(y - d), a sum of |d|
    steps of at most m (`lattice.gaussian_mu`). Independent entries compose to the root of the
    sum of squares (Dong, Roth, Su 2022, Corollary 3.3), at most m sqrt(l2_squared). A Gaussian
    curve that lies below bounds every other cost as well, so the loss distribution is its.

    >>> DiscreteGaussianVector(sigma_squared=100, l2_squared=5).rho()
    Fraction(1, 40)
    """

    sigma_squared: Fraction
    l2_squared: Fraction

    def __post_init__(self) -> None:
        single = DiscreteGaussian(sigma_squared=self.sigma_squared, sensitivity=1)  # validates
        object.__setattr__(self, "sigma_squared", single.sigma_squared)
        object.__setattr__(self, "l2_squared", positive(self.l2_squared, "l2_squared"))

    def tails(self, levels: FloatArray, direction: Direction) -> tuple[FloatArray, FloatArray]:
        """Return the tails of the Gaussian loss that dominates. Rounds: up."""
        return self._gaussian.tails(levels, direction)

    def support(self, direction: Direction) -> tuple[float, float]:
        """Return the range of the Gaussian loss that dominates."""
        return self._gaussian.support(direction)

    def rho(self) -> Fraction:
        """Return l2_squared / (2 sigma_squared). Theorem: Canonne, Kamath, Steinke (2020), for vectors."""
        return self.l2_squared / (2 * self.sigma_squared)

    def mu(self) -> Cost:
        """Return m sqrt(l2_squared). Theorem: see the class. Rounds: up."""
        step = Fraction(DiscreteGaussian(sigma_squared=self.sigma_squared, sensitivity=1).mu())
        return root_above(step**2 * self.l2_squared)

    def renyi(self, order: float) -> float:
        """Return order * rho. Theorem: as for `rho`. Rounds: up."""
        return upper_float(Fraction(checked_order(order)) * self.rho())

    def delta(self, epsilon: float) -> float:
        """Return the delta of the Gaussian that dominates. Rounds: up."""
        return self._gaussian.delta(epsilon)

    def group(self, size: int) -> DiscreteGaussianVector:
        """Cover `size` people: norms add up at most."""
        return DiscreteGaussianVector(
            sigma_squared=self.sigma_squared, l2_squared=self.l2_squared * count(size, "size") ** 2
        )

    @property
    def _gaussian(self) -> Gaussian:
        return Gaussian(sigma=1 / Fraction(self.mu()))
