"""What has a price: what is asked, of whom, and what it costs. Every capability's price is a subclass."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from sfumato.backends import Backend
from sfumato.catalog.canonical import fingerprint
from sfumato.core.events import Event
from sfumato.plan.request import Request
from sfumato.release import Published

__all__ = ["Look", "LookCost", "Priced", "PricedAnswer", "Tell", "silent"]

Tell = Callable[[str], object]
"""Who hears the name of each step as it begins. What is told must be public."""

_Answer = TypeVar("_Answer", bound=Published)


def silent(step: str) -> None:
    """Tell nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A look at the data, which is paid for: the engine, the public tables, and who hears of its steps."""

    backend: Backend
    public: Mapping[str, Any]
    tell: Tell = silent


class Priced(ABC):
    """A request whose cost is known: what is charged, and its fingerprint, follow from it.

    Subclasses are frozen dataclasses without slots: what follows from their fields is worked out once, by
    properties that are kept. What is said here for type checkers alone is a field in some of them, and a
    property in others; at runtime a dataclass would take a property of its base for the default of its field.
    """

    if TYPE_CHECKING:

        @property
        @abstractmethod
        def request(self) -> Request:
            """What is asked."""

        @property
        @abstractmethod
        def unit(self) -> str:
            """Whose privacy is protected."""

        @property
        @abstractmethod
        def epsilon(self) -> Fraction:
            """What the whole request gives away by itself."""

        @property
        @abstractmethod
        def delta(self) -> Fraction:
            """The delta of that epsilon."""

        @property
        def parts(self) -> frozenset[str] | None:
            """The parts of the unit's partition that are asked about; None: every part."""

    else:
        parts = None

    @property
    @abstractmethod
    def event(self) -> Event:
        """All that happens: what is charged. It follows from the noise, and from nothing else."""

    @property
    def keys_delta(self) -> Fraction:
        """What selecting keys may cost: nothing, where no key is selected."""
        return Fraction(0)

    @abstractmethod
    def asked(self) -> dict[str, Any]:
        """Return all that tells this request from others, by name. The fingerprint is its hash.

        Subclasses add what they ask: two requests of one fingerprint have one answer.
        """
        return {"request": self.request, "unit": self.unit, "cost": self.cost_record()}

    def fingerprint(self) -> str:
        """Return a hash of what is asked and of what it costs. The rest follows from catalog and data."""
        return self._fingerprint

    @cached_property
    def _fingerprint(self) -> str:
        return fingerprint(**self.asked())

    def cost_record(self) -> dict[str, Any]:
        """Return what it costs, as plain data: what a release tells of its cost."""
        return dict(self._cost_record)

    @cached_property
    def _cost_record(self) -> Mapping[str, Any]:
        return self._costs()

    def _costs(self) -> dict[str, Any]:
        """Make the cost record."""
        return {
            "epsilon": self.epsilon,
            "delta": self.delta,
            "keys_delta": self.keys_delta,
            "events": [self.event.to_dict()],
        }


class PricedAnswer(Priced, Generic[_Answer]):
    """A request that is answered in one look: `pipeline.answer` charges it, and looks."""

    answer_type: type[_Answer]

    @property
    def unprotected(self) -> tuple[str, ...]:
        """What the answer shows exactly, because the policy declares it public."""
        return ()

    @abstractmethod
    def computed(self, look: Look) -> _Answer:
        """Look at the data, which is paid for, and return the answer without its receipt."""

    def read(self, stored: str) -> _Answer:
        """Return the answer that was stored as text."""
        return self.answer_type.from_json(stored)


@dataclass(frozen=True, slots=True, kw_only=True)
class LookCost:
    """What one of several looks costs; all are declared before the first is taken."""

    event: Event
    keys_delta: Fraction = Fraction(0)

    @staticmethod
    def of(priced: Priced) -> LookCost:
        """Return what a request costs, to declare it, or another one of the same cost, as a step."""
        return LookCost(event=priced.event, keys_delta=priced.keys_delta)
