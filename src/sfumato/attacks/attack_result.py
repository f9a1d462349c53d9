"""What an attack found: how often it succeeds, beside guessing, beside what epsilon allows."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
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
    "rates",
    "right",
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


def rates(label: str, measured: Iterable[tuple[float, Proportion]]) -> Points:
    """Return measured rates with their intervals, to be drawn."""
    return Points(label=label, points=tuple((x, rate.share, *rate.interval(LEVEL)) for x, rate in measured))


def _numbers(rate: Proportion) -> dict[str, Any]:
    low, high = rate.interval(LEVEL)
    return {"success": rate.share, "low": low, "high": high, "trials": rate.trials}


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredRate:
    """How often an attack succeeded against releases of this system with one epsilon.

    `bound` is what no attacker can exceed on average; None where no such number is known.

    >>> point = MeasuredRate(epsilon=1, rate=Proportion(hits=72, trials=100), bound=bit_bound(1))
    >>> point.rate.share < point.bound
    True
    """

    epsilon: float
    rate: Proportion
    bound: float | None = None

    @classmethod
    def of_bits(cls, epsilon: float, guess: npt.NDArray[Any], truth: npt.NDArray[Any]) -> MeasuredRate:
        """Return how often guesses of fair bits are right, with the bound on it."""
        return cls(epsilon=epsilon, rate=right(guess, truth), bound=bit_bound(epsilon))

    def to_dict(self) -> dict[str, Any]:
        """Return the fields, JSON-ready."""
        return {"epsilon": self.epsilon, **_numbers(self.rate), "bound": self.bound}


@dataclass(frozen=True, slots=True, kw_only=True)
class AttackResult:
    """One attack: its story, its success against a naive release and against this system, its pictures.

    `success` says in a few words what counts as success; `guess` is the share that guessing gets.
    `facts` are further lines for the reader: a label and a text each.

    >>> found = AttackResult(
    ...     name="guess", title="A guess", story="..", naive=Proportion(hits=98, trials=100), curve=()
    ... )
    >>> found.rows()[0]
    ('guessing', '50.0%', '')
    """

    name: str
    title: str
    story: str
    success: str = "one person's bit guessed right"
    guess: float = 0.5
    naive: Proportion
    curve: tuple[MeasuredRate, ...]
    facts: tuple[tuple[str, str], ...] = ()
    pictures: tuple[Picture, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return the numbers, JSON-ready."""
        return {
            "attack": self.name,
            "title": self.title,
            "success": self.success,
            "guess": self.guess,
            "naive": _numbers(self.naive),
            "curve": [point.to_dict() for point in self.curve],
            "facts": [list(fact) for fact in self.facts],
        }

    def rows(self) -> list[tuple[str, str, str]]:
        """Return who attacks what, with what success, and what is possible at most; as texts."""
        rows = [("guessing", f"{self.guess:.1%}", ""), ("the naive release", with_interval(self.naive), "")]
        for point in self.curve:
            bound = "" if point.bound is None else f"at most {point.bound:.1%}"
            rows.append((f"this system, epsilon {point.epsilon:g}", with_interval(point.rate), bound))
        return rows

    def __str__(self) -> str:
        rows = [(label, text, bound and f"{bound} for anyone") for label, text, bound in self.rows()]
        rows += [(label, text, "") for label, text in self.facts]
        rows.append(("intervals", f"hold with {LEVEL:.1%} each", ""))
        width = max(len(label) for label, _, _ in rows)
        column = max((len(text) for _, text, bound in rows if bound), default=0)
        lines = [f"  {label:{width}}  {text:{column}}  {bound}".rstrip() for label, text, bound in rows]
        return "\n".join([self.title, f"  success: {self.success}", *lines])

    def illustrated(
        self,
        caption: str,
        *,
        bound: bool = True,
        lines: tuple[Line, ...] = (),
        before: tuple[Picture, ...] = (),
        after: tuple[Picture, ...] = (),
    ) -> AttackResult:
        """Return this with a picture of success against epsilon, between other pictures.

        It shows guessing, the naive release, what was measured, further `lines`, and the `bound` for a bit.
        """
        if not self.curve:
            raise InvalidArgument(
                "at least one epsilon is needed", place="epsilons", hints=("1 is a good beginning",)
            )
        epsilons = [point.epsilon for point in self.curve]
        ends = (min(epsilons), max(epsilons))
        measured = ((point.epsilon, point.rate) for point in self.curve)
        marks: list[Line | Points] = [
            Line.flat("the naive release", self.naive.share, ends),
            rates("the best attacker, through this system", measured),
            Line.flat("guessing", self.guess, ends, dashed=True),
        ]
        if bound:
            between = np.geomspace(*ends, 41).tolist()
            marks.append(Line.curve("no attacker can do better", bit_bound, between, dashed=True))
        picture = Picture(
            title=self.title,
            caption=caption,
            x=Axis(title="epsilon", log=True),
            y=Axis(title=self.success, percent=True, low=0, high=1),
            marks=(*marks, *lines),
        )
        return replace(self, pictures=(*before, picture, *after))
