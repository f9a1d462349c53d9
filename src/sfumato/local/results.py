"""Results: what a survey found, with limits for every number, and what was not counted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from sfumato.local.arrays import Floats

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Result", "on_simplex", "printable"]


_SHOWN = 40
_LONGEST = 48


def on_simplex(values: npt.ArrayLike) -> Floats:
    """Return the nearest shares that are not negative and add up to one.

    Theorem: they are max(v - t, 0) for the one t that makes their sum one (Held, Wolfe and Crowder 1974).
    This is post-processing: it costs nothing, and errs less on average; but no share is unbiased any more.

    >>> on_simplex([0.7, 0.5, -0.1]).tolist()
    [0.6, 0.4, 0.0]
    """
    found = np.asarray(values, dtype=np.float64)
    falling = np.sort(found)[::-1]
    excess = (np.cumsum(falling) - 1) / np.arange(1, len(found) + 1)
    last = np.flatnonzero(falling > excess)[-1]
    return np.asarray(np.maximum(found - excess[last], 0.0))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Result:
    """A table: one row per answer, or a single one for an average. It may be shown to anybody.

    `answers` name the rows; values, limits and deviations are the estimates. `dropped` counts the reports
    that were not used, by reason.

    >>> from sfumato.local import Survey, YesNo, collect
    >>> from sfumato.local.simulation import simulated
    >>> survey = Survey.plan("exams", YesNo(words="Have you ever cheated in an exam?"), epsilon=1)
    >>> result = collect(survey, simulated(survey, {"yes": 0.3, "no": 0.7}, 1_000))
    >>> [row["answer"] for row in result.rows()]
    ['no', 'yes']
    """

    title: str
    what: str
    answers: tuple[str, ...]
    values: Floats
    low: Floats
    high: Floats
    deviations: Floats
    level: float
    counted: int
    dropped: Mapping[str, int]
    notes: tuple[str, ...] = field(default=())

    def rows(self) -> list[dict[str, Any]]:
        """Return the table as records."""
        columns = (self.answers, self.values, self.low, self.high, self.deviations)
        names = ("answer", self.what, "low", "high", "deviation")
        return [
            {name: _plain(value) for name, value in zip(names, row, strict=True)}
            for row in zip(*columns, strict=True)
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return all of it as JSON has it."""
        return {
            "title": self.title,
            "level": self.level,
            "counted": self.counted,
            "dropped": dict(self.dropped),
            "notes": list(self.notes),
            "rows": self.rows(),
        }

    def to_arrow(self) -> pyarrow.Table:
        """Return the table as Arrow has it."""
        import pyarrow

        numbers = {self.what: self.values, "low": self.low, "high": self.high, "deviation": self.deviations}
        return pyarrow.table({"answer": list(self.answers), **numbers})

    def __repr__(self) -> str:
        shown = list(range(len(self.answers)))
        if len(shown) > _SHOWN:
            shown = np.argsort(-self.values, kind="stable")[:_SHOWN].tolist()
        names = [_short(self.answers[place]) for place in shown]
        width = max((len(name) for name in (*names, "answer")), default=6)
        heading = f"{100 * self.level:.8g}% limits"
        lines = [printable(self.title), f"{'answer':<{width}}  {self.what:>10}  {heading:>22}"]
        for name, place in zip(names, shown, strict=True):
            limits = f"{_number(self.low[place])} .. {_number(self.high[place])}"
            lines.append(f"{name:<{width}}  {_number(self.values[place]):>10}  {limits:>22}")
        if len(self.answers) > len(shown):
            lines.append(f"-- {len(self.answers) - len(shown):,} more, with smaller shares")
        told = [f"{number:,} {reason}" for reason, number in self.dropped.items() if number]
        reasons = f" ({', '.join(told)})" if told else ""
        lines.append(f"-- {self.counted:,} reports counted, {sum(self.dropped.values()):,} not{reasons}")
        return "\n".join([*lines, *(f"-- {note}" for note in self.notes)])


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        return value
    return None if math.isnan(value) else float(value)


def _number(value: float) -> str:
    return "unknown" if math.isnan(value) else f"{value:.4g}"


def printable(text: str) -> str:
    """Return a text in which nothing steers a screen."""
    return "".join(letter if letter.isprintable() else "\N{REPLACEMENT CHARACTER}" for letter in text)


def _short(name: str) -> str:
    shown = printable(name)
    return shown if len(shown) <= _LONGEST else f"{shown[: _LONGEST - 2]}.."
