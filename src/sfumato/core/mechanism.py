"""The interface of every mechanism: what it releases, and what that costs; a release after post-processing.

A mechanism is public: it holds parameters, never data. `event` prices a release before
any data is read. Where outputs can be listed it also has `pmf(output, value)` and
`privacy_loss(output, x, y)`, so that privacy is computed, not sampled; where they are numbers,
`error(level)` and `interval(released, level)`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol, runtime_checkable

from sfumato.core.arguments import exact
from sfumato.core.events.base import Event
from sfumato.errors import InvalidArgument

__all__ = ["Mechanism", "PostProcessed", "confidence"]


@runtime_checkable
class Mechanism(Protocol):
    """A randomised map from private values to outputs that may be published.

    >>> from sfumato.core import LaplaceMechanism
    >>> isinstance(LaplaceMechanism.from_epsilon(1), Mechanism)
    True
    """

    @property
    def event(self) -> Event:
        """What one release costs, before any data is read."""
        ...

    def release(self, value: Any) -> Any:
        """Return a random output whose law is exactly the stated one."""
        ...


@dataclass(frozen=True, slots=True)
class PostProcessed:
    """A mechanism whose released value is passed on through `function`.

    Theorem: for any function f of the output alone, and any set S, P(f(o) in S) = P(o in
    f^-1(S)); so whatever holds for all sets of outputs holds for all sets of f's outputs,
    in every measure of this package (Dwork, McSherry, Nissim and Smith 2006).
    Assumes: the function sees the released value and nothing else of the data.

    >>> from sfumato.core.laplace import LaplaceMechanism
    >>> never_negative = PostProcessed(LaplaceMechanism.from_epsilon(1), lambda count: max(0, count))
    >>> never_negative.release(0) >= 0, never_negative.event.epsilon()
    (True, Fraction(1, 1))
    """

    mechanism: Mechanism
    function: Callable[[Any], Any]

    def __post_init__(self) -> None:
        if not isinstance(self.mechanism, Mechanism):
            raise InvalidArgument("mechanism must have `release` and `event`", place="mechanism")
        if not callable(self.function):
            raise InvalidArgument("function must be callable", place="function")

    @property
    def event(self) -> Event:
        """What one release costs: the same as without the function."""
        return self.mechanism.event

    def release(self, value: Any) -> Any:
        """Return the function of a release of the mechanism."""
        return self.function(self.mechanism.release(value))


def confidence(level: Any) -> Fraction:
    """Read a confidence level: above zero, below one, as the decimal a person wrote.

    >>> confidence(0.95)
    Fraction(19, 20)
    """
    rational = exact(level, "level")
    if isinstance(level, float):
        rational = Fraction(repr(float(level)))
    if not 0 < rational < 1:
        hint = "0.95 means that 95 of 100 such intervals cover the exact value"
        raise InvalidArgument(f"level must lie between 0 and 1, got {level!r}", place="level", hints=(hint,))
    return rational
