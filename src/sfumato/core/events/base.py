"""An event: a frozen record of what a mechanism did, which can price itself.

An event holds no data. It names a pair of output laws (P, Q) that dominates the
mechanism: P with the person, Q without (direction REMOVE), and the other way
round (direction ADD). The privacy loss of an output o is L = ln(P(o)/Q(o)).

Everything is derived from one primitive, `tails`: how likely the loss is to
exceed a level, under P and under Q. Closed forms override the derivations where
one is known. A new mechanism is a new subclass; no accountant is edited.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from enum import Enum
from fractions import Fraction
from typing import Any, ClassVar

from sfumato.core.arguments import Cost, FloatArray, upper_float, written
from sfumato.core.conversions import mu_of_pure, rho_of_pure
from sfumato.errors import InvalidArgument, SfumatoError, Unsupported

__all__ = ["Direction", "Event", "check_event"]


class Direction(Enum):
    """Which of two neighbouring datasets the outputs are drawn from.

    >>> from sfumato.core import events
    >>> pair = events.PoissonSubsampled(event=events.Gaussian(sigma=2), rate=0.1)
    >>> pair.support(Direction.ADD) == pair.support(Direction.REMOVE)  # a sample makes them differ
    False
    """

    REMOVE = "remove"  # P: the person is in the data; Q: not
    ADD = "add"  # P: the person is not in the data; Q: is


class Event(ABC):
    """What happened, and what it costs in every currency.

    Subclasses are frozen, slotted, keyword-only dataclasses whose fields are ints,
    Fractions, floats, tuples of these, or events; they are validated on construction.

    >>> from sfumato.core import events
    >>> noise = events.Laplace(scale=20)
    >>> noise.epsilon(), Event.from_dict(noise.to_dict()) == noise
    (Fraction(1, 20), True)
    """

    __slots__ = ()

    registry: ClassVar[dict[str, type[Event]]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if cls.__name__.startswith("_"):  # shared behaviour, not an event
            return
        known = Event.registry.get(cls.__name__)
        # A dataclass with slots is made twice; another class must not take over an event's records.
        if known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            hint = "choose another name"
            raise InvalidArgument(f"there is an event called {cls.__name__} already", hints=(hint,))
        Event.registry[cls.__name__] = cls

    # -- the primitive ------------------------------------------------------------------

    @abstractmethod
    def tails(self, levels: FloatArray, direction: Direction) -> tuple[FloatArray, FloatArray]:
        """Return (P(L > level), Q(L > level)) for each level, accurate relatively in the upper tail.

        The limit as the level grows is the P-mass of outputs that Q cannot produce.
        """

    def support(self, direction: Direction) -> tuple[float, float]:
        """Return a finite range of losses; P puts at most 1e-40 of finite loss above it.

        Mass below it is treated as if at its lower end, mass above it as infinite loss:
        both can only overstate the cost. Without an epsilon the event must state its own.
        """
        top = upper_float(self.epsilon())
        if math.isinf(top):
            raise Unsupported(f"{type(self).__name__} has an unbounded loss and states no range of it")
        return -top, top

    @property
    def symmetric(self) -> bool:
        """Whether both directions have the same loss distribution."""
        return True

    @property
    def directions(self) -> tuple[Direction, ...]:
        """The directions that have to be looked at."""
        return (Direction.REMOVE,) if self.symmetric else (Direction.REMOVE, Direction.ADD)

    def parts(self) -> tuple[tuple[Event, int], ...]:
        """Return the elementary events this one is a fixed batch of, each with its count."""
        return ((self, 1),)

    # -- what it costs ------------------------------------------------------------------

    def epsilon(self) -> Cost:
        """Return the smallest known pure epsilon, inf if there is none."""
        return math.inf

    def rho(self) -> Cost:
        """Return the smallest known zCDP rho, inf if there is none. Theorem: `rho_of_pure`. Rounds: up."""
        return rho_of_pure(self.epsilon())

    def mu(self) -> Cost:
        """Return the smallest known Gaussian mu, inf if there is none. Theorem: `mu_of_pure`. Rounds: up."""
        return mu_of_pure(self.epsilon())

    def renyi(self, order: float) -> float:
        """Return an upper bound on the Renyi divergence of `order` > 1, in both directions; inf if unknown.

        Theorem: Renyi divergence grows under the mean-preserving spread that the pessimistic
        loss distribution is. Assumes: the loss is bounded, so that none of it lies beyond what is
        looked at; an event of unbounded loss brings a closed form. Rounds: up.
        """
        from sfumato.core.losses import renyi_of_event

        return math.inf if math.isinf(self.epsilon()) else renyi_of_event(self, order)

    def delta(self, epsilon: float) -> float:
        """Return the smallest delta at which this event alone is (epsilon, delta)-private.

        Theorem: delta = P(L > epsilon) - e^epsilon * Q(L > epsilon), the hockey-stick
        divergence, the larger of both directions. Rounds: up.
        """
        from sfumato.core.losses import delta_of_event

        return delta_of_event(self, epsilon)

    def group(self, size: int) -> Event:
        """Return an event that covers `size` people instead of one."""
        hint = "use the pure epsilon or the zCDP rho of the event instead"
        raise Unsupported(f"no group-privacy rule is known for {type(self).__name__}", hints=(hint,))

    # -- serialisation ------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return a JSON-ready record; `Event.from_dict` reads it back unchanged."""
        record: dict[str, Any] = {"kind": type(self).__name__}
        for name in self.__dataclass_fields__:  # type: ignore[attr-defined]
            given = getattr(self, name)
            record[name] = given if type(given) in _NUMBERS else _encode(given)
        return record

    @staticmethod
    def from_dict(record: dict[str, Any]) -> Event:
        """Rebuild an event; an unknown kind is refused, never guessed."""
        if not isinstance(record, dict) or not isinstance(record.get("kind"), str):
            raise InvalidArgument("malformed event record", hints=("it must be a dict that names its kind",))
        fields = dict(record)
        kind = fields.pop("kind")
        if not isinstance(kind, str) or kind not in Event.registry:
            raise Unsupported(f"unknown event kind {kind!r}", hints=("it may come from a newer version",))
        try:
            return Event.registry[kind](**{name: _decode(value) for name, value in fields.items()})
        except SfumatoError:
            raise
        except (TypeError, ValueError, ZeroDivisionError) as error:
            raise InvalidArgument(f"malformed record of a {kind} event") from error


_NUMBERS = frozenset({int, float})


def check_event(event: Any, name: str) -> None:
    """Refuse what is not an event."""
    if not isinstance(event, Event):
        raise InvalidArgument(f"{name} must be an event, got {type(event).__name__}", place=name)


def _encode(value: Any) -> Any:
    match value:
        case Event():
            return value.to_dict()
        case Fraction():
            return f"{value.numerator}/{value.denominator}"
        case tuple():
            return [_encode(item) for item in value]
        case int() | float():
            return value
        case _:
            raise Unsupported(f"cannot serialise a field of type {type(value).__name__}")


def _decode(value: Any) -> Any:
    match value:
        case dict():
            return Event.from_dict(value)
        case str():
            return written(value, "a number of an event")
        case list():
            return tuple(_decode(item) for item in value)
        case int() | float():
            return value
        case _:
            raise InvalidArgument("malformed event record")
