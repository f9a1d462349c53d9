"""Guarantees a person may be promised, and what each implies of the others.

    PureDP ──> GaussianDP ──> ZeroConcentratedDP ──> RenyiCurve ──> RenyiDP ──> ApproximateDP

A guarantee is a statement; an `Event` is a record of what a mechanism did. Conversions are
methods, rounded to the weaker side. One that does not exist is refused, never guessed.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import InitVar, dataclass
from fractions import Fraction
from typing import Any, Self

from sfumato.core.arguments import Number, budget_quantity, checked_order, count, delta_quantity, upper_float
from sfumato.core.conversions import (
    delta_of_mu,
    delta_of_pure,
    epsilon_of_mu,
    epsilon_of_pure,
    mu_of_pure,
    renyi_of_pure,
    rho_of_pure,
)
from sfumato.core.events.base import Event
from sfumato.core.renyi import (
    delta_of_curve,
    delta_of_renyi,
    delta_of_rho,
    epsilon_of_curve,
    epsilon_of_renyi,
    epsilon_of_rho,
)
from sfumato.core.search import geometric_sum, round_up
from sfumato.errors import InvalidArgument, Unsupported

__all__ = [
    "ApproximateDP",
    "GaussianDP",
    "Guarantee",
    "PureDP",
    "RenyiCurve",
    "RenyiDP",
    "ZeroConcentratedDP",
]


class Guarantee(ABC):
    """What every guarantee can say of itself; a conversion that it does not override is refused."""

    __slots__ = ()

    @abstractmethod
    def delta_at(self, epsilon: Number) -> float:
        """Return the smallest known delta at which (epsilon, delta)-DP follows. Rounds: up."""

    @abstractmethod
    def to_approximate(self, delta: Number) -> ApproximateDP:
        """Return the (epsilon, delta)-DP that follows, with the smallest known epsilon. Rounds: up."""

    def to_pure(self) -> PureDP:
        """Return the pure DP that follows."""
        raise self._refusal("PureDP")

    def to_gaussian(self) -> GaussianDP:
        """Return the Gaussian DP that follows. Rounds: up."""
        raise self._refusal("GaussianDP")

    def to_zero_concentrated(self) -> ZeroConcentratedDP:
        """Return the zCDP that follows. Rounds: up."""
        raise self._refusal("ZeroConcentratedDP")

    def to_renyi(self, order: float) -> RenyiDP:
        """Return the Renyi DP of one order that follows. Rounds: up."""
        raise self._refusal("RenyiDP")

    def compose(self, other: Self) -> Self:
        """Return the guarantee of publishing both: `other` of the same kind, chosen in advance or after."""
        if type(other) is not type(self):
            raise Unsupported(
                f"cannot compose {type(self).__name__} with {type(other).__name__}",
                hints=("convert both to the same measure first",),
            )
        return self._composed(other)

    @abstractmethod
    def group(self, size: int) -> Guarantee:
        """Return the guarantee for `size` people instead of one. Rounds: up."""

    def implies(self, other: Guarantee) -> bool:
        """Return whether `other` is known to follow; False may also mean "by less than the rounding"."""
        try:
            match other:
                case ApproximateDP():
                    return self.delta_at(other.epsilon) <= other.delta
                case PureDP():
                    return self.to_pure().epsilon <= other.epsilon
                case GaussianDP():
                    return self.to_gaussian().mu <= other.mu
                case ZeroConcentratedDP():
                    return self.to_zero_concentrated().rho <= other.rho
                case RenyiDP():
                    return self.to_renyi(other.order).epsilon <= other.epsilon
                case _:
                    raise InvalidArgument(f"cannot compare with {type(other).__name__}", place="other")
        except Unsupported:
            return False

    @abstractmethod
    def _composed(self, other: Self) -> Self: ...

    def _refusal(self, target: str) -> Unsupported:
        return Unsupported(f"{type(self).__name__} implies no {target}", hints=("try to_approximate(delta)",))


@dataclass(frozen=True, slots=True, kw_only=True)
class PureDP(Guarantee):
    """No output is more than e^epsilon times likelier with a person than without.

    >>> PureDP(epsilon=0.1).compose(PureDP(epsilon=0.2)).epsilon
    Fraction(3, 10)
    """

    epsilon: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "epsilon", budget_quantity(self.epsilon, "epsilon"))

    def delta_at(self, epsilon: Number) -> float:
        return delta_of_pure(self.epsilon, epsilon)

    def to_approximate(self, delta: Number) -> ApproximateDP:
        if delta_quantity(delta) == 0:
            return ApproximateDP(epsilon=self.epsilon)
        return _approximate(epsilon_of_pure(self.epsilon, delta), delta)

    def to_pure(self) -> PureDP:
        return self

    def to_gaussian(self) -> GaussianDP:
        return GaussianDP(mu=Fraction(mu_of_pure(self.epsilon)))

    def to_zero_concentrated(self) -> ZeroConcentratedDP:
        return ZeroConcentratedDP(rho=Fraction(rho_of_pure(self.epsilon)))

    def to_renyi(self, order: float) -> RenyiDP:
        return RenyiDP(order=order, epsilon=Fraction(renyi_of_pure(checked_order(order), self.epsilon)))

    def group(self, size: int) -> PureDP:
        return PureDP(epsilon=self.epsilon * count(size, "size"))

    def _composed(self, other: PureDP) -> PureDP:
        return PureDP(epsilon=self.epsilon + other.epsilon)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApproximateDP(Guarantee):
    """No event is likelier with a person than e^epsilon times its likelihood without, plus delta.

    `people`, where the number of people is public, refuses a delta of 1/n or more.
    Composition is the basic one, valid under adaptivity; `Composition` is tight for a fixed batch.

    >>> both = ApproximateDP(epsilon=0.5, delta=1e-7).compose(ApproximateDP(epsilon=1, delta=1e-7))
    >>> float(both.epsilon), float(both.delta)
    (1.5, 2e-07)
    """

    epsilon: Fraction
    delta: Fraction = Fraction(0)
    people: InitVar[int | None] = None

    def __post_init__(self, people: int | None) -> None:
        object.__setattr__(self, "epsilon", budget_quantity(self.epsilon, "epsilon", zero=True))
        object.__setattr__(self, "delta", delta_quantity(self.delta, people=people))

    def delta_at(self, epsilon: Number) -> float:
        target = budget_quantity(epsilon, "epsilon", zero=True)
        # Every (e, d)-DP pair is a post-processing of: fail openly with probability d, else answer e-DP.
        kept = 0.0 if target >= self.epsilon else delta_of_pure(self.epsilon, target)
        return min(1.0, upper_float(self.delta + (1 - self.delta) * Fraction(kept)))

    def to_approximate(self, delta: Number) -> ApproximateDP:
        target = delta_quantity(delta)
        if target < self.delta:
            hint = "keep the event, or its Renyi or Gaussian guarantee, and convert that"
            raise Unsupported("an (epsilon, delta) guarantee implies none of a smaller delta", hints=(hint,))
        if target == self.delta:
            return self
        inner = (target - self.delta) / (1 - self.delta)
        return _approximate(epsilon_of_pure(self.epsilon, inner), target)

    def to_pure(self) -> PureDP:
        if self.delta > 0 or self.epsilon == 0:
            raise self._refusal("PureDP")
        return PureDP(epsilon=self.epsilon)

    def group(self, size: int) -> ApproximateDP:
        """Return the guarantee for `size` people.

        Theorem: (k e, d (e^(ke) - 1) / (e^e - 1)), the geometric sum of the hybrid argument
        (Vadhan 2017, Lemma 2.2). Rounds: up.
        """
        people = count(size, "size")
        factor = geometric_sum(upper_float(self.epsilon), people) if self.delta else 1.0
        if factor * upper_float(self.delta) >= 1:
            hint = "use a smaller delta, or a measure that scales better, such as zCDP"
            raise Unsupported(f"at this delta nothing is promised to {people} people", hints=(hint,))
        return ApproximateDP(epsilon=self.epsilon * people, delta=self.delta * Fraction(factor))

    def _composed(self, other: ApproximateDP) -> ApproximateDP:
        if self.delta + other.delta >= 1:
            raise Unsupported("the deltas add up to 1: nothing is promised any more")
        return ApproximateDP(epsilon=self.epsilon + other.epsilon, delta=self.delta + other.delta)


@dataclass(frozen=True, slots=True, kw_only=True)
class GaussianDP(Guarantee):
    """Telling a person's presence is at least as hard as telling N(mu, 1) from N(0, 1) by one draw.

    >>> round(float(GaussianDP(mu=0.5).to_approximate(1e-6).epsilon), 3)
    2.254
    """

    mu: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "mu", budget_quantity(self.mu, "mu"))

    def delta_at(self, epsilon: Number) -> float:
        return delta_of_mu(self.mu, epsilon)

    def to_approximate(self, delta: Number) -> ApproximateDP:
        return _approximate(epsilon_of_mu(self.mu, delta), delta)

    def to_gaussian(self) -> GaussianDP:
        return self

    def to_zero_concentrated(self) -> ZeroConcentratedDP:
        return ZeroConcentratedDP(rho=self.mu**2 / 2)

    def to_renyi(self, order: float) -> RenyiDP:
        return self.to_zero_concentrated().to_renyi(order)

    def group(self, size: int) -> GaussianDP:
        """Theorem: k * mu (Dong, Roth, Su 2022, Theorem 2.14)."""
        return GaussianDP(mu=self.mu * count(size, "size"))

    def _composed(self, other: GaussianDP) -> GaussianDP:
        square = self.mu**2 + other.mu**2
        return GaussianDP(mu=Fraction(round_up(math.sqrt(upper_float(square)))))


@dataclass(frozen=True, slots=True, kw_only=True)
class ZeroConcentratedDP(Guarantee):
    """The Renyi divergence of every order a > 1 is at most a * rho (Bun and Steinke 2016).

    >>> ZeroConcentratedDP(rho=0.125).compose(ZeroConcentratedDP(rho=0.125)).rho
    Fraction(1, 4)
    """

    rho: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "rho", budget_quantity(self.rho, "rho"))

    def delta_at(self, epsilon: Number) -> float:
        return delta_of_rho(self.rho, epsilon)

    def to_approximate(self, delta: Number) -> ApproximateDP:
        return _approximate(epsilon_of_rho(self.rho, delta), delta)

    def to_zero_concentrated(self) -> ZeroConcentratedDP:
        return self

    def to_renyi(self, order: float) -> RenyiDP:
        return RenyiDP(order=order, epsilon=self.rho * Fraction(checked_order(order)))

    def group(self, size: int) -> ZeroConcentratedDP:
        """Theorem: k^2 * rho (Bun and Steinke 2016, Proposition 1.9)."""
        return ZeroConcentratedDP(rho=self.rho * count(size, "size") ** 2)

    def _composed(self, other: ZeroConcentratedDP) -> ZeroConcentratedDP:
        return ZeroConcentratedDP(rho=self.rho + other.rho)


@dataclass(frozen=True, slots=True, kw_only=True)
class RenyiDP(Guarantee):
    """The Renyi divergence of one order is at most epsilon (Mironov 2017).

    >>> float(RenyiDP(order=2, epsilon=0.25).compose(RenyiDP(order=2, epsilon=0.5)).epsilon)
    0.75
    """

    order: float
    epsilon: Fraction

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", checked_order(self.order))
        object.__setattr__(self, "epsilon", budget_quantity(self.epsilon, "epsilon"))

    def delta_at(self, epsilon: Number) -> float:
        return delta_of_renyi(self.order, self.epsilon, epsilon)

    def to_approximate(self, delta: Number) -> ApproximateDP:
        return _approximate(epsilon_of_renyi(self.order, self.epsilon, delta), delta)

    def to_renyi(self, order: float) -> RenyiDP:
        """Theorem: Renyi divergence does not fall with the order (van Erven and Harremoes 2014)."""
        if checked_order(order) > self.order:
            raise Unsupported(f"order {self.order} implies nothing of the higher order {order}")
        return RenyiDP(order=order, epsilon=self.epsilon)

    def group(self, size: int) -> RenyiDP:
        """Return the guarantee for `size` people, at a lower order.

        Theorem: for 2^c people and order >= 2^(c+1), order/2^c and 3^c * epsilon (Mironov 2017,
        Proposition 2); fewer people are covered too.
        """
        doublings = (count(size, "size") - 1).bit_length()
        if self.order < 2 ** (doublings + 1) and doublings:
            hint = f"use an order of at least {2 ** (doublings + 1)}"
            raise Unsupported(f"order {self.order} is too low for groups of {size}", hints=(hint,))
        return RenyiDP(order=self.order / 2**doublings, epsilon=self.epsilon * 3**doublings)

    def _composed(self, other: RenyiDP) -> RenyiDP:
        if self.order != other.order:
            raise Unsupported("cannot compose Renyi guarantees of two orders", hints=("use to_renyi(order)",))
        return RenyiDP(order=self.order, epsilon=self.epsilon + other.epsilon)


@dataclass(frozen=True, slots=True, kw_only=True)
class RenyiCurve(Guarantee):
    """The Renyi divergence of every order, as the sum over `sources` (events, for example).

    Assumes: the sources were fixed in advance. The best order of the sum is not a valid filter
    when queries are chosen after seeing answers; fix one order with `to_renyi` for that.

    >>> from sfumato.core import events
    >>> both = RenyiCurve(sources=(events.Gaussian(sigma=2), events.Laplace(scale=4)))
    >>> round(both.renyi(2), 4), round(float(both.to_approximate(1e-6).epsilon), 3)
    (0.3066, 2.602)
    """

    sources: tuple[Event | RenyiCurve, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.sources, tuple) or not all(hasattr(item, "renyi") for item in self.sources):
            raise InvalidArgument("sources must be a tuple of events or the like", place="sources")

    def renyi(self, order: float) -> float:
        """Return the divergence of `order`. Rounds: up."""
        values = [item.renyi(order) for item in self.sources]
        if not all(math.isfinite(value) for value in values):
            return math.inf
        return upper_float(sum(map(Fraction, values), Fraction(0)))

    def delta_at(self, epsilon: Number) -> float:
        return delta_of_curve(self.renyi, epsilon)

    def to_approximate(self, delta: Number) -> ApproximateDP:
        return _approximate(epsilon_of_curve(self.renyi, delta), delta)

    def to_renyi(self, order: float) -> RenyiDP:
        value = self.renyi(checked_order(order))
        if math.isinf(value):
            raise self._refusal(f"RenyiDP of order {order}")
        return RenyiDP(order=order, epsilon=Fraction(value))

    def group(self, size: int) -> Guarantee:
        raise Unsupported("group privacy needs one order", hints=("use to_renyi(order).group(size)",))

    def _composed(self, other: RenyiCurve) -> RenyiCurve:
        return RenyiCurve(sources=self.sources + other.sources)


def _approximate(epsilon: float, delta: Any) -> ApproximateDP:
    # Fraction(epsilon), not the float: a float would be read as a decimal, which may lie below it.
    return ApproximateDP(epsilon=Fraction(epsilon), delta=delta_quantity(delta))
