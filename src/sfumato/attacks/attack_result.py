"""What an attack found: how often it succeeds, beside guessing, beside what epsilon allows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy.typing as npt

from sfumato.core import Proportion
from sfumato.errors import InvalidArgument
from sfumato.plots import Axis, Line, Picture, Points

__all__ = [
    "AttackResult",
    "EPSILONS",
    "LEVEL",
    "MeasuredRate",
    "bit_bound",
    "right",
    "success_picture",
    "with_interval",
]

EPSILONS = (0.1, 0.25, 0.5, 1.0, 2.0, 4.0, 8.0)
"""Where the curve of success against epsilon is measured, unless said otherwise."""

LEVEL = 0.999
"""The level of every interval that is shown: a page of them, and hardly one misses by chance."""


def bit_bound(epsilon: float) -> float:
    """Return how often anyone at all can guess a secret bit right that was a fair coin, at most.

    Theorem: of two neighbouring datasets, equally likely, the posterior odds of either are at most
    e^epsilon whatever is observed, so a guess is right with probability at most e^epsilon / (1 + e^epsilon).

    >>> round(bit_bound(1), 3)
    0.731
    """
    return 1 / (1 + math.exp(-epsilon))


def right(guess: npt.NDArray[Any], truth: npt.NDArray[Any]) -> Proportion:
    """Return how often guesses are right.

    >>> import numpy as np
    >>> right(np.array([True, False]), np.array([True, True])).share
    0.5
    """
    return Proportion(hits=int((guess == truth).sum()), trials=len(truth))


def with_interval(rate: Proportion) -> str:
    """Return a share and its interval, for a reader.

    >>> with_interval(Proportion(hits=731, trials=1000))
    '73.1% (68.3% to 77.6%)'
    """
    low, high = rate.interval(LEVEL)
    return f"{rate.share:.1%} ({low:.1%} to {high:.1%})"


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRate:
    """How often an attack succeeded against releases of this system with one epsilon.

    `bound` is what no attacker can exceed on average; None where no such number is known.
    """

    epsilon: float
    rate: Proportion
    bound: float | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, JSON-ready."""
        low, high = self.rate.interval(LEVEL)
        return {
            "epsilon": self.epsilon,
            "success": self.rate.share,
            "low": low,
            "high": high,
            "trials": self.rate.trials,
            "bound": self.bound,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackResult:
    """One attack: its story, its success against a naive release and against this system, its pictures.

    `success` says in a few words what counts as success; `guess` is the share that guessing gets.
    `facts` are further lines for the reader: a label and a text each.
    """

    name: str
    title: str
    story: str
    success: str
    guess: float
    naive: Proportion
    curve: tuple[MeasuredRate, ...]
    facts: tuple[tuple[str, str], ...] = ()
    pictures: tuple[Picture, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, JSON-ready."""
        low, high = self.naive.interval(LEVEL)
        return {
            "attack": self.name,
            "title": self.title,
            "success": self.success,
            "guess": self.guess,
            "naive": {
                "success": self.naive.share,
                "low": low,
                "high": high,
                "trials": self.naive.trials,
            },
            "curve": [point.to_dict() for point in self.curve],
            "facts": [list(fact) for fact in self.facts],
        }

    def __str__(self) -> str:
        lines = [self.title, f"  success: {self.success}"]
        rows = [("guessing", f"{self.guess:.1%}", ""), ("the naive release", with_interval(self.naive), "")]
        for point in self.curve:
            bound = "" if point.bound is None else f"at most {point.bound:.1%} for anyone"
            rows.append((f"this system, epsilon {point.epsilon:g}", with_interval(point.rate), bound))
        rows += [(label, text, "") for label, text in self.facts]
        rows.append(("intervals", f"hold with {LEVEL:.1%} each", ""))
        width = max(len(label) for label, _, _ in rows)
        column = max((len(text) for _, text, bound in rows if bound), default=0)
        lines += [f"  {label:{width}}  {text:{column}}  {bound}".rstrip() for label, text, bound in rows]
        return "\n".join(lines)


def success_picture(finding: AttackResult, *, caption: str, bound: bool = True) -> Picture:
    """Draw success against epsilon: measured, beside guessing, the naive release and the bound."""
    if not finding.curve:
        raise InvalidArgument(
            "at least one epsilon is needed", place="epsilons", hints=("1 is a good beginning",)
        )
    epsilons = [point.epsilon for point in finding.curve]
    ends = (min(epsilons), max(epsilons))
    measured = Points(
        label="the best attacker, through this system",
        points=tuple(
            (point.epsilon, point.rate.share, *point.rate.interval(LEVEL)) for point in finding.curve
        ),
    )
    marks: list[Line | Points] = [
        Line(label="the naive release", points=tuple((end, finding.naive.share) for end in ends)),
        measured,
        Line(label="guessing", points=tuple((end, finding.guess) for end in ends), dashed=True),
    ]
    if bound:
        allowed = Line(label="no attacker can do better", points=tuple(_bound_line(*ends)), dashed=True)
        marks.append(allowed)
    return Picture(
        title=finding.title,
        caption=caption,
        x=Axis(title="epsilon", log=True),
        y=Axis(title=finding.success, percent=True, low=0, high=1),
        marks=tuple(marks),
    )


def _bound_line(low: float, high: float) -> Iterable[tuple[float, float]]:
    steps = 40
    for step in range(steps + 1):
        epsilon = low * (high / low) ** (step / steps)
        yield epsilon, bit_bound(epsilon)
