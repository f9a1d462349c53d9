"""Events made of events: batches on the same people, and partitions of the people."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from sfumato.core.arguments import Cost, FloatArray, count, upper_float
from sfumato.core.events.base import Direction, Event, check_event
from sfumato.core.events.claims import group_of_claim
from sfumato.core.search import root_above, sum_above
from sfumato.errors import InvalidArgument

if TYPE_CHECKING:
    from sfumato.core.composition import Composition

__all__ = ["Composed", "Parallel", "Repeated"]

_OPPOSITE = {Direction.REMOVE: Direction.ADD, Direction.ADD: Direction.REMOVE}


class _Batch(Event):
    """Several events on the same people, fixed in advance: sums in every currency."""

    __slots__ = ()

    def tails(self, levels: FloatArray, direction: Direction) -> tuple[FloatArray, FloatArray]:
        """Return the tails of the summed loss. Theorem: `composition.Composition`. Rounds: up."""
        return self._composition().tails(levels, direction)

    def support(self, direction: Direction) -> tuple[float, float]:
        return self._composition().support(direction)

    @property
    def symmetric(self) -> bool:
        return all(part.symmetric for part, _ in self.parts())

    def epsilon(self) -> Cost:
        """Return the sum. Theorem: basic composition (Dwork et al. 2006). Rounds: up."""
        return self._sum(lambda part: part.epsilon())

    def rho(self) -> Cost:
        """Return the sum. Theorem: Bun and Steinke (2016), Lemma 1.7. Rounds: up."""
        return self._sum(lambda part: part.rho())

    def mu(self) -> Cost:
        """Return the root of the squares' sum. Theorem: Dong, Roth, Su (2022), Corollary 3.3. Rounds: up."""
        squares = self._sum(lambda part: _times(part.mu(), part.mu()))
        return squares if math.isinf(squares) else root_above(Fraction(squares))

    def renyi(self, order: float) -> float:
        """Return the sum. Theorem: Mironov (2017), Proposition 1. Rounds: up."""
        return upper_float(self._sum(lambda part: part.renyi(order)))

    def delta(self, epsilon: float) -> float:
        """Return the delta of all parts together. Theorem: `composition.Composition`. Rounds: up."""
        return self._composition().delta(epsilon)

    def _sum(self, cost: Callable[[Event], Cost]) -> Cost:
        return sum_above(_times(cost(part), times) for part, times in self.parts())

    def _composition(self) -> Composition:
        from sfumato.core.composition import Composition

        return Composition(self.parts())


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeated(_Batch):
    """The same event several times, on the same people with fresh noise.

    >>> from sfumato.core.events.gaussian import Gaussian
    >>> Repeated(event=Gaussian(sigma=10), times=100).mu()
    Fraction(1, 1)
    """

    event: Event
    times: int

    def __post_init__(self) -> None:
        check_event(self.event, "event")
        object.__setattr__(self, "times", count(self.times, "times", most=10**18))

    def parts(self) -> tuple[tuple[Event, int], ...]:
        """Return the parts of the repeated event, each as many times more."""
        return tuple((part, times * self.times) for part, times in self.event.parts())

    def group(self, size: int) -> Repeated:
        """Cover `size` people: each repetition does."""
        return Repeated(event=self.event.group(size), times=self.times)


@dataclass(frozen=True, slots=True, kw_only=True)
class Composed(_Batch):
    """Several events on the same people.

    >>> from sfumato.core.events.claims import Pure
    >>> Composed(events=(Pure(loss=0.1), Pure(loss=0.2))).epsilon()
    Fraction(3, 10)
    """

    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "events", _several(self.events))

    def parts(self) -> tuple[tuple[Event, int], ...]:
        """Return the parts of all events; equal ones are counted together."""
        counts: dict[Event, int] = {}
        for event in self.events:
            for part, times in event.parts():
                counts[part] = counts.get(part, 0) + times
        return tuple(counts.items())

    def group(self, size: int) -> Composed:
        """Cover `size` people: each event does."""
        return Composed(events=tuple(event.group(size) for event in self.events))


@dataclass(frozen=True, slots=True, kw_only=True)
class Parallel(Event):
    """Events on disjoint parts of the data: each person is in one part only.

    Theorem: whoever is added or removed changes one part, so every cost is the largest of
    the parts' costs (McSherry 2009); one cannot know whose, so the worst counts.
    Assumes: the partition is by an attribute of the person, and adjacency is add/remove.

    >>> from sfumato.core.events.claims import Pure
    >>> Parallel(events=(Pure(loss=0.1), Pure(loss=0.2))).epsilon()
    Fraction(1, 5)
    """

    events: tuple[Event, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "events", _several(self.events))

    def tails(self, levels: FloatArray, direction: Direction) -> tuple[FloatArray, FloatArray]:
        """Return at each level the tails of the part whose hockey-stick divergence is the largest there.

        Theorem: a pair of laws is its curve H(e^l) = P(L > l) - e^l Q(L > l), and any convex curve
        that falls from 1 by slopes of at least -1 and stays above 1 - e^l is that of some pair
        (Zhu, Dong, Wang 2022); the maximum of such curves is one. -Q(L > l) is its
        slope from the right, hence the slope of the curve on top, the flattest if several tie.
        """
        best = np.full(levels.shape, -math.inf)
        best_p = best_q = np.ones(levels.shape)
        for event in self.events:
            p, q = event.tails(levels, direction)
            height = _hockey_stick(levels, p, q)
            # Below 0 all curves are 1 - e^l and a little more, which the opposite direction shows at -l.
            low = levels < 0
            height[low] = _hockey_stick(-levels[low], *event.tails(-levels[low], _OPPOSITE[direction]))
            better = (height > best) | ((height == best) & (q < best_q))
            best_p, best_q = np.where(better, p, best_p), np.where(better, q, best_q)
            best = np.where(better, height, best)
        return best_p, best_q

    def support(self, direction: Direction) -> tuple[float, float]:
        """Return the smallest range that holds those of all parts."""
        ranges = [event.support(direction) for event in self.events]
        return min(low for low, _ in ranges), max(high for _, high in ranges)

    @property
    def symmetric(self) -> bool:
        return all(event.symmetric for event in self.events)

    def epsilon(self) -> Cost:
        """Return the largest. Theorem: McSherry (2009), Theorem 4."""
        return max(event.epsilon() for event in self.events)

    def rho(self) -> Cost:
        """Return the largest. Theorem: the divergence is that of one part."""
        return max(event.rho() for event in self.events)

    def mu(self) -> Cost:
        """Return the largest. Theorem: the trade-off curve is at least the lowest of the parts'."""
        return max(event.mu() for event in self.events)

    def renyi(self, order: float) -> float:
        """Return the largest. Theorem: the divergence is that of one part."""
        return max(event.renyi(order) for event in self.events)

    def delta(self, epsilon: float) -> float:
        """Return the largest. Theorem: the divergence is that of one part."""
        return max(event.delta(epsilon) for event in self.events)

    def group(self, size: int) -> Event:
        """Cover `size` people, who may be in different parts. Theorem: `group_of_claim`."""
        return group_of_claim(self, size)


def _hockey_stick(levels: FloatArray, p: FloatArray, q: FloatArray) -> FloatArray:
    """Return p - e^level q, where e^level may overflow but the product does not."""
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        stick: FloatArray = p - np.where(q > 0, np.exp(levels + np.log(q)), 0.0)
    return stick


def _times(cost: Cost, factor: Cost) -> Cost:
    if isinstance(cost, Fraction) or math.isinf(cost):
        return cost * factor
    return upper_float(Fraction(cost) * Fraction(factor))


def _several(events: Any) -> tuple[Event, ...]:
    if isinstance(events, (str, bytes)) or not hasattr(events, "__iter__"):
        raise InvalidArgument("events must be a sequence of events", place="events")
    several = tuple(events)
    for event in several:
        check_event(event, "events")
    if not several:
        raise InvalidArgument("events must not be empty", place="events")
    return several
