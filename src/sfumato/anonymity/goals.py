"""What is wanted of every class: at least k rows, and of each sensitive column l values and closeness t."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from sfumato.anonymity.classes import Classes
from sfumato.core.arguments import count, exact
from sfumato.errors import InvalidArgument

__all__ = ["Goal"]

_ROUNDING = 1e-12  # three values of a third each have an entropy of ln 3, whatever the last bit says


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """k rows, l distinct values, an entropy of ln entropy_l and a distance of at most t, in every class.

    >>> print(Goal(k=5, l=2, t=0.3))
    k = 5, l = 2, t = 0.3
    """

    k: int
    l: int | None = None  # noqa: E741 - the name that everybody knows it by
    entropy_l: float | None = None
    t: float | None = None

    def __post_init__(self) -> None:
        count(self.k, "k")
        if self.l is not None:
            count(self.l, "l")
        if self.entropy_l is not None and exact(self.entropy_l, "entropy_l") < 1:
            raise InvalidArgument(
                "entropy_l must be at least 1", place="entropy_l", hints=("1 asks for nothing; 2 is usual",)
            )
        if self.t is not None and not 0 <= exact(self.t, "t") <= 1:
            raise InvalidArgument(
                "t must lie in [0, 1]", place="t", hints=("it is a distance between shares, such as 0.3",)
            )

    @property
    def about_values(self) -> bool:
        """Whether anything is asked of sensitive columns."""
        return any(each is not None for each in (self.l, self.entropy_l, self.t))

    @property
    def upward(self) -> Goal:
        """The part of the goal that a class, once it has it, keeps when any other is joined to it.

        Theorem: rows and distinct values only grow. Entropy is concave and the distance convex: they
        hold for the union of two classes if they hold for both, and may be lost if for only one.
        """
        return Goal(k=self.k, l=self.l)

    def holds(self, classes: Classes, table: Classes | None = None) -> np.ndarray:
        """Return which classes are as wanted, in a table; without one they are all of it."""
        good = classes.sizes >= self.k
        for place, tally in enumerate(classes.tallies):
            if self.l is not None:
                good &= tally.distinct() >= self.l
            if self.entropy_l is not None:
                good &= tally.entropy() >= math.log(self.entropy_l) - _ROUNDING
            if self.t is not None:
                totals = None if table is None else table.tallies[place].totals
                good &= tally.closeness(totals) <= self.t + _ROUNDING
        return np.asarray(good)

    def settled(self, classes: Classes, most: int) -> np.ndarray | None:
        """Return the classes left after suppressing others of at most `rows` rows; None if there are none.

        Those that lack rows or values go first. What is left is compared with itself, for nobody sees the
        rest; so giving up classes can make others unlike the table, until nothing changes any more.
        """
        keep = self.upward.holds(classes)
        while True:
            left = classes.kept(keep)
            if not len(left) or classes.rows - left.rows > most:
                return None
            good = self.holds(left)
            if good.all():
                return keep
            keep[np.flatnonzero(keep)[~good]] = False

    def reachable(self, whole: Classes) -> None:
        """Refuse what a single class of all rows does not reach, though nothing is larger or more diverse."""
        if whole.rows < self.k:
            raise InvalidArgument(
                f"k = {self.k} is more than the table has rows", place="k", hints=("ask for a smaller k",)
            )
        for tally in whole.tallies:
            if self.l is not None and tally.distinct()[0] < self.l:
                raise InvalidArgument(
                    f"l = {self.l} is more than column `{tally.name}` has values",
                    place="l",
                    hints=("ask for a smaller l",),
                )

    def unreached(self) -> InvalidArgument:
        """Return the refusal where nothing reaches the goal; by entropy, for a whole table has the rest."""
        return InvalidArgument(
            "entropy_l is more than the values of the sensitive columns have as a whole",
            place="entropy_l",
            hints=("ask for a smaller entropy_l, or let recoding suppress more rows",),
        )

    def __str__(self) -> str:
        named = (("k", self.k), ("l", self.l), ("entropy l", self.entropy_l), ("t", self.t))
        return ", ".join(f"{name} = {value:g}" for name, value in named if value is not None)
