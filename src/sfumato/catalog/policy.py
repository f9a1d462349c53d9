"""The owner's policy: what may be asked at once, under which rules, and by whom."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from sfumato.core.accountant import PrivacyBudget
from sfumato.core.arguments import budget_quantity
from sfumato.errors import InvalidArgument

__all__ = ["Analyst", "Policy"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Analyst:
    """Somebody who may ask, and how much of the budget all of their answers together may take.

    The grant lies under the budget of the unit, never beside it: all analysts together get no more
    than one alone could.
    """

    name: str
    budget: PrivacyBudget

    def __post_init__(self) -> None:
        if not self.name or not self.name.isprintable() or len(self.name) > 256:
            raise InvalidArgument("an analyst needs a name of 1 to 256 printable letters", place="analyst")


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """`ceiling` is the largest epsilon of one question. `measures` are the rules a budget may have.

    Where `analysts` are named, nobody else may ask.
    """

    ceiling: Fraction | None = None
    measures: tuple[str, ...] | None = None
    analysts: tuple[Analyst, ...] = ()

    def __post_init__(self) -> None:
        if self.ceiling is not None:
            object.__setattr__(self, "ceiling", budget_quantity(self.ceiling, "ceiling"))
        if len({analyst.name for analyst in self.analysts}) != len(self.analysts):
            raise InvalidArgument("two analysts have one name", place="analysts")

    def analyst(self, name: str) -> Analyst | None:
        """Return the analyst of that name."""
        return next((analyst for analyst in self.analysts if analyst.name == name), None)
