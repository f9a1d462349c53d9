"""Post-processing: a release stays a release, at the same cost, under any function."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sfumato.core.events.base import Event
from sfumato.core.mechanism import Mechanism
from sfumato.errors import InvalidArgument

__all__ = ["PostProcessed"]


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
