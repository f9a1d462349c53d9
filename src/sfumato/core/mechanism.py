"""The small interface of every mechanism: what it releases, what that costs, how far off it may be.

    Mechanism            release(value), event
    ├── DiscreteLaw      pmf(output, value), privacy_loss(output, x, y)
    └── NumericRelease   error(level), interval(released, level)

A mechanism is public: it holds parameters, never data. `event` prices a release before
any data is read. Where the law is discrete it can be written down, and then privacy is
computed from it, not sampled.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

from sfumato.core.arguments import exact
from sfumato.core.events.base import Event
from sfumato.errors import InvalidArgument

__all__ = ["DiscreteLaw", "Mechanism", "NumericRelease", "confidence"]


@runtime_checkable
class Mechanism(Protocol):
    """A randomised map from private values to outputs that may be published."""

    @property
    def event(self) -> Event:
        """What one release costs, before any data is read."""
        ...

    def release(self, value: Any) -> Any:
        """Return a random output whose law is exactly the stated one."""
        ...


@runtime_checkable
class DiscreteLaw(Mechanism, Protocol):
    """A mechanism whose outputs can be listed, so that its privacy can be computed."""

    def pmf(self, output: Any, value: Any) -> Fraction | float:
        """Return the probability of `output` given `value`; exact where it is rational."""
        ...

    def privacy_loss(self, output: Any, x: Any, y: Any) -> Fraction | float:
        """Return ln(pmf(output, x) / pmf(output, y)); exact where it is rational."""
        ...


@runtime_checkable
class NumericRelease(Mechanism, Protocol):
    """A mechanism that releases a number near the true one."""

    def error(self, level: float = 0.95) -> Any:
        """Return the half-width that the noise stays within, with probability `level` at least."""
        ...

    def interval(self, released: Any, level: float = 0.95) -> tuple[Any, Any]:
        """Return (low, high) that covers the bounded, exact value with probability `level` at least."""
        ...


def confidence(level: Any) -> Fraction:
    """Read a confidence level: above zero, below one, as the decimal a person wrote.

    >>> confidence(0.95)
    Fraction(19, 20)
    """
    rational = exact(level, "level")
    if isinstance(level, float):
        rational = Fraction(repr(float(level)))
    if not 0 < rational < 1:
        raise InvalidArgument(
            f"level must lie between 0 and 1, got {level!r}",
            place="level",
            hints=("0.95 means that 95 of 100 such intervals cover the exact value",),
        )
    return rational
