"""Participation: in how many periods of a stream one person may appear, and how far apart."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.errors import InvalidArgument

__all__ = ["Participation"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Participation:
    """At most `periods` periods hold rows of one person, each at least `apart` periods after the one before.

    >>> Participation(periods=3, apart=7).earliest(365)
    (0, 7, 14)
    """

    periods: int = 1
    apart: int = 1

    def __post_init__(self) -> None:
        for name in ("periods", "apart"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int) or value < 1:
                raise InvalidArgument(
                    f"{name} must be a whole number of at least 1, got {value!r}", place=name
                )

    def earliest(self, horizon: int) -> tuple[int, ...]:
        """Return the periods of a person who appears as early and as often as allowed, counted from 0."""
        return tuple(range(0, horizon, self.apart))[: self.periods]

    def admits(self, used: int, last: int | None, period: int) -> bool:
        """Return whether a person who was in `used` periods, in `last` most recently, may be in this one.

        >>> [Participation(periods=2, apart=7).admits(1, 3, period) for period in (9, 10)]
        [False, True]
        """
        return used < self.periods and (last is None or period - last >= self.apart)
