"""Limits: the caps and bounds of a question that may take something off its answers.

An answer is about the rows that caps leave, with values moved into their bounds. Its interval covers
that statistic, and says nothing of what was left out: on data of many rows per unit a cap of 1 takes
most of them, and the answer looks exact. So each answer names the limits that may bite, and says what
they took where that was measured (`analysis/clipping_bias`), or how to find out.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Limits", "SEEN"]

SEEN = 8
"""To measure what caps take, at most this many times the rows that they leave of a unit are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What may bite: caps as `max_rows = 1`, and expressions whose values are moved into bounds."""

    caps: tuple[str, ...] = ()
    bounds: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.caps or self.bounds)

    @property
    def said_caps(self) -> str:
        """The caps in words."""
        return f"the cap{'s' * (len(self.caps) > 1)} {' and '.join(self.caps)}"

    @property
    def caps_rows(self) -> bool:
        """Whether rows are capped, and not only groups or values."""
        return any(cap.startswith("max_rows") for cap in self.caps)

    def __str__(self) -> str:
        said = [self.said_caps] if self.caps else []
        said += [f"the bounds of {', '.join(f'`{one}`' for one in self.bounds)}"] if self.bounds else []
        return ", and ".join(said)

    @property
    def unknown(self) -> str:
        """What is said of an answer whose losses were not measured."""
        return (
            f"not covered by intervals: what was left out by {self}; how much that is, is not known:"
            " ask with losses=True (--losses), or `sfumato losses`"
        )
