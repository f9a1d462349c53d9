"""Four rules by which a filter may add up costs when queries are chosen after seeing answers.

Each adds one number per release and stops before the sum passes a limit fixed in advance.
That is what their proofs need. The popular rule "some order of a grid of Renyi orders
still has room" fixes no order in advance and is not valid: an adversary who picks the
second query after seeing the first answer doubles delta (a test does).
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, ClassVar

from sfumato.core.arguments import Cost, Number, checked_order, delta_quantity, upper_float
from sfumato.core.conversions import epsilon_of_mu, epsilon_of_pure, largest_mu, largest_pure
from sfumato.core.events.base import Event
from sfumato.core.events.claims import Pure, ZeroConcentrated
from sfumato.core.events.gaussian import Gaussian
from sfumato.core.individual import IndividualPrivacy
from sfumato.core.renyi import epsilon_of_renyi, epsilon_of_rho, largest_renyi, largest_rho
from sfumato.core.search import round_up
from sfumato.errors import InvalidArgument, SfumatoError, Unsupported

__all__ = ["GaussianRule", "PureRule", "RenyiRule", "Rule", "UNITS", "ZeroConcentratedRule"]

UNITS = 10**20
"""Charges are whole numbers of 10^-20: decimal, so that ten times 0.1 is exactly 1."""


_BITS = 96  # of a root that is rounded up


class Rule(ABC):
    """One way to add up costs that is valid when every query depends on all earlier answers."""

    __slots__ = ()

    name: ClassVar[str]
    registry: ClassVar[dict[str, type[Rule]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        Rule.registry[cls.name] = cls

    @abstractmethod
    def price(self, event: Event) -> Cost:
        """Return what one elementary event costs in this rule's currency, inf if unbounded. Rounds: up."""

    @abstractmethod
    def limit(self, epsilon: Number, delta: Number) -> Fraction:
        """Return the largest sum of prices that is (epsilon, delta)-private. Rounds: down."""

    @abstractmethod
    def epsilon(self, total: Fraction, delta: Number) -> float:
        """Return the epsilon at `delta` of a sum of prices. Rounds: up."""

    def claim(self, price: Fraction) -> Event:
        """Return an event that stands for every mechanism of at most this price. Its price rounds: up."""
        raise Unsupported(
            f"no event stands for all that {self!r} prices alike", hints=("use a budget with another rule",)
        )

    def charge(self, event: Event) -> int:
        """Return what an event costs, in units of 10^-20. Rounds: up.

        A batch costs the sum over its parts, rounded once.
        """
        if not isinstance(event, Event):
            raise _not_an_event(event)
        total = Fraction(0)
        for part, times in event.parts():
            price = self.price(part)
            if not price >= 0:
                raise InvalidArgument(f"{type(part).__name__} states a cost of {price}", place="event")
            if math.isinf(price):
                raise self._refusal(part)
            total += Fraction(price) * times
        return -(-total.numerator * UNITS // total.denominator)

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready record; `Rule.from_dict` reads it back."""
        return {"rule": self.name}

    @staticmethod
    def from_dict(record: dict[str, Any]) -> Rule:
        """Rebuild a rule; an unknown one is refused, never guessed."""
        fields = dict(record)
        kind = fields.pop("rule", None)
        if not isinstance(kind, str) or kind not in Rule.registry:
            raise Unsupported(f"unknown rule {kind!r}", hints=("it may come from a newer version",))
        try:
            return Rule.registry[kind](**fields)
        except TypeError as error:
            raise InvalidArgument(f"malformed record of the rule {kind!r}") from error

    def _refusal(self, part: Event) -> Unsupported:
        others = (PureRule(), ZeroConcentratedRule(), GaussianRule(), RenyiRule(order=8))
        fitting = [repr(rule) for rule in others if math.isfinite(rule.price(part))]
        known = f"a budget with rule={' or '.join(fitting)} accepts it" if fitting else "no rule accepts it"
        return Unsupported(f"{type(part).__name__} has no finite cost under {self!r}", hints=(known,))


@dataclass(frozen=True, slots=True)
class PureRule(Rule):
    """Add up epsilon.

    Theorem: the privacy loss of every transcript is at most the sum, whatever chose the
    queries (Rogers, Roth, Ullman, Vadhan 2016, basic composition as a filter).

    >>> from sfumato.core import events
    >>> PureRule().price(events.Laplace(scale=20)), PureRule().limit(1, 0)  # twenty of them fit
    (Fraction(1, 20), Fraction(1, 1))
    """

    name: ClassVar[str] = "pure"

    def price(self, event: Event) -> Cost:
        return event.epsilon()

    def limit(self, epsilon: Number, delta: Number) -> Fraction:
        return largest_pure(epsilon, delta)

    def claim(self, price: Fraction) -> Event:
        return Pure(loss=price)

    def epsilon(self, total: Fraction, delta: Number) -> float:
        if delta_quantity(delta) == 0:
            return upper_float(total)
        return epsilon_of_pure(total, delta)


@dataclass(frozen=True, slots=True)
class ZeroConcentratedRule(Rule):
    """Add up the rho of zCDP.

    Theorem: a filter that stops before the sum of rho passes a fixed limit is limit-zCDP
    (Feldman and Zrnic 2021; Whitehouse, Ramdas, Rogers, Wu 2023).

    >>> from sfumato.core import events
    >>> ZeroConcentratedRule().price(events.Gaussian(sigma=10))
    Fraction(1, 200)
    """

    name: ClassVar[str] = "zero_concentrated"

    def price(self, event: Event) -> Cost:
        return event.rho()

    def limit(self, epsilon: Number, delta: Number) -> Fraction:
        return Fraction(largest_rho(epsilon, delta))

    def claim(self, price: Fraction) -> Event:
        return ZeroConcentrated(charge=price)

    def epsilon(self, total: Fraction, delta: Number) -> float:
        return epsilon_of_rho(total, delta)


@dataclass(frozen=True, slots=True, kw_only=True)
class RenyiRule(Rule):
    """Add up the Renyi divergence of one order, fixed in advance.

    Theorem: e^((order-1) (loss - sum)) is a supermartingale, so a filter that stops before
    the sum passes a fixed limit has that divergence (Feldman and Zrnic 2021, Theorem 3.1).
    Assumes: ONE order. Taking the best of several afterwards is not valid.

    >>> from sfumato.core import events
    >>> RenyiRule(order=8).price(events.Gaussian(sigma=10))
    0.04
    """

    name: ClassVar[str] = "renyi"
    order: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", checked_order(self.order))

    def price(self, event: Event) -> Cost:
        return event.renyi(self.order)

    def limit(self, epsilon: Number, delta: Number) -> Fraction:
        return Fraction(largest_renyi(self.order, epsilon, delta))

    def epsilon(self, total: Fraction, delta: Number) -> float:
        return epsilon_of_renyi(self.order, total, delta)

    def to_dict(self) -> dict[str, Any]:
        return {"rule": self.name, "order": self.order}


@dataclass(frozen=True, slots=True)
class GaussianRule(Rule):
    """Add up the squared mu of Gaussian DP.

    Theorem: a filter that stops before the sum of mu^2 passes a fixed limit is
    sqrt(limit)-GDP (Smith and Thakurta 2022; Koskela, Tobaben, Honkela 2023).

    >>> from sfumato.core import events
    >>> GaussianRule().price(events.Gaussian(sigma=10))
    Fraction(1, 100)
    """

    name: ClassVar[str] = "gaussian"

    def price(self, event: Event) -> Cost:
        mu = event.mu()
        return Fraction(mu) ** 2 if math.isfinite(mu) else math.inf

    def limit(self, epsilon: Number, delta: Number) -> Fraction:
        return Fraction(largest_mu(epsilon, delta)) ** 2

    def claim(self, price: Fraction) -> Event:
        root = Fraction(math.isqrt(math.floor(price * 4**_BITS)) + 1, 2**_BITS)
        return Gaussian(sigma=1 / root)

    def epsilon(self, total: Fraction, delta: Number) -> float:
        return epsilon_of_mu(round_up(math.sqrt(total)), delta)


def _not_an_event(thing: object) -> SfumatoError:
    if isinstance(thing, IndividualPrivacy):
        hint = "it protects only neighbours of the data at hand; no budget accepts it"
        return Unsupported("individual differential privacy has no price", hints=(hint,))
    return InvalidArgument(f"an event is charged, not a {type(thing).__name__}", place="event")
