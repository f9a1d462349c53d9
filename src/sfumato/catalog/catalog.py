"""The catalog: the tables that questions may be about, and the policy: what may be asked, and by whom."""

from __future__ import annotations

from dataclasses import dataclass, field
from fractions import Fraction

from sfumato.catalog.canonical import fingerprint
from sfumato.catalog.table import Table
from sfumato.core.accountant import PrivacyBudget
from sfumato.core.arguments import budget_quantity
from sfumato.errors import InvalidArgument

__all__ = ["Analyst", "Catalog", "Policy"]


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

    Where `analysts` are named, nobody else may ask. With `keep_questions` the ledger keeps the text of each
    question, for the owner alone.
    """

    ceiling: Fraction | None = None
    measures: tuple[str, ...] | None = None
    analysts: tuple[Analyst, ...] = ()
    keep_questions: bool = False

    def __post_init__(self) -> None:
        if self.ceiling is not None:
            object.__setattr__(self, "ceiling", budget_quantity(self.ceiling, "ceiling"))
        if len({analyst.name for analyst in self.analysts}) != len(self.analysts):
            raise InvalidArgument("two analysts have one name", place="analysts")

    def analyst(self, name: str) -> Analyst | None:
        """Return the analyst of that name."""
        return next((analyst for analyst in self.analysts if analyst.name == name), None)


@dataclass(frozen=True, slots=True)
class Catalog:
    """Tables by name, without regard to case, and what their owner allows to be asked of them."""

    tables: tuple[Table, ...]
    policy: Policy = field(default_factory=Policy)
    _by_name: dict[str, Table] = field(init=False, repr=False, compare=False)
    _fingerprint: str | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {table.name.lower(): table for table in self.tables})
        if len(self._by_name) != len(self.tables):
            raise InvalidArgument("two tables have one name", place="tables")
        divided = [table.unit.name for table in self.tables if table.unit and table.partition]
        if len(set(divided)) != len(divided):  # their columns may differ: a unit would be in two parts
            raise InvalidArgument("one table of a unit has a partition at most", place="partition")

    def table(self, name: str) -> Table | None:
        """Return a table by its name."""
        return self._by_name.get(name.lower())

    def fingerprint(self) -> str:
        """Return a hash of all that is declared about tables and questions, without grants.

        Who may ask, and how much, is for the ledger: a grant that changes must not make another analyst's
        retry a different request.
        """
        if self._fingerprint is None:
            policy = self.policy
            found = fingerprint(tables=self.tables, ceiling=policy.ceiling, measures=policy.measures)
            object.__setattr__(self, "_fingerprint", found)
            return found
        return self._fingerprint
