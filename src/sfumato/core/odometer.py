"""The odometer: what has been spent so far, in every currency.

Two kinds of numbers, never mixed:

* `read`: what a filter with that rule would have charged. It is a guarantee against queries chosen after
  seeing answers if the rule and a limit were fixed before the first one (under `PureRule`, always);
* `batch`: the tight cost of exactly these events, if all were fixed before the first answer was seen.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from sfumato.core.arguments import Cost, Number, delta_quantity
from sfumato.core.events.base import Event
from sfumato.core.rules import UNITS, GaussianRule, PureRule, Rule, ZeroConcentratedRule
from sfumato.errors import InvalidArgument, Unsupported

__all__ = ["Odometer", "Reading"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """What one rule makes of the events so far: valid under adaptivity as a limit fixed in advance."""

    rule: Rule
    total: Cost
    """The sum in the rule's currency; inf if an event has no price under it."""
    delta: Fraction
    epsilon: float
    """The epsilon at delta of that sum; keys are not included, their delta comes on top."""


class Odometer:
    """Keep the events of a session and say what they cost.

    >>> from sfumato.core.events import Laplace
    >>> odometer = Odometer()
    >>> for _ in range(10):
    ...     odometer.record(Laplace(scale=10))
    >>> odometer.read(PureRule(), 1e-6).total
    Fraction(1, 1)
    """

    __slots__ = ("_events", "_keys_delta")

    def __init__(self) -> None:
        self._events: list[Event] = []
        self._keys_delta = Fraction(0)

    def record(self, event: Event, keys_delta: Number = 0) -> None:
        """Note an event that happened, and the delta of a key selection with it."""
        if not isinstance(event, Event):
            raise InvalidArgument(f"an event is recorded, not a {type(event).__name__}", place="event")
        keys = delta_quantity(keys_delta, name="keys_delta")
        self._events.append(event)
        self._keys_delta += keys

    @property
    def events(self) -> tuple[Event, ...]:
        """The events so far, in order."""
        return tuple(self._events)

    @property
    def keys_delta(self) -> Fraction:
        """The delta that key selections have used so far."""
        return self._keys_delta

    def read(self, rule: Rule, delta: Number) -> Reading:
        """Return the running sum under one rule, and its epsilon at `delta`. Rounds: up."""
        failure = delta_quantity(delta)
        try:
            total: Cost = Fraction(sum(rule.charge(event) for event in self._events), UNITS)
        except Unsupported:
            total = math.inf
        epsilon = rule.epsilon(total, failure) if isinstance(total, Fraction) else math.inf
        return Reading(rule=rule, total=total, delta=failure, epsilon=epsilon)

    def readings(self, delta: Number) -> tuple[Reading, ...]:
        """Return the running sums under every rule that needs no parameter."""
        return tuple(self.read(rule, delta) for rule in (PureRule(), ZeroConcentratedRule(), GaussianRule()))

    def batch(self, delta: Number) -> float:
        """Return the tight epsilon at `delta` of exactly these events together with their key selections.

        Theorem: composition of privacy-loss distributions (Sommer, Meiser, Mohammadi 2019; Koskela,
        Jalko, Honkela 2020).
        Assumes: every event was fixed before the first answer was seen. Rounds: up.
        """
        from sfumato.core.composition import Composition

        left = delta_quantity(delta) - self._keys_delta
        if left <= 0:
            raise Unsupported(
                f"key selection alone used {float(self._keys_delta):.3g} of delta",
                hints=("ask at a larger delta",),
            )
        epsilon = Composition(self._events).epsilon(left)
        if math.isinf(epsilon):
            raise Unsupported(f"these events have no finite epsilon at delta = {float(left):.3g}")
        return epsilon
