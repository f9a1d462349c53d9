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
        return tuple(range(0, horizon, self.apart)[: self.periods])

    def remembers(self, horizon: int) -> bool:
        """Return whether anybody could appear more often than is allowed, over a horizon.

        >>> Participation(periods=7).remembers(7), Participation(periods=7).remembers(8)
        (False, True)
        """
        return self.periods < horizon or self.apart > 1
