"""The catalog: the tables that questions may be about, and the policy: what may be asked, and by whom."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction

from sfumato.catalog.canonical import fingerprint
from sfumato.catalog.invariants import Invariant
from sfumato.catalog.kind import Kind
from sfumato.catalog.table import Table
from sfumato.catalog.unit import KeyLink, Unit
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
    question, for the owner alone. `invariants` are totals that are public, and that nothing protects.
    """

    ceiling: Fraction | None = None
    measures: tuple[str, ...] | None = None
    analysts: tuple[Analyst, ...] = ()
    keep_questions: bool = False
    invariants: tuple[Invariant, ...] = ()

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
    _undeclared: Catalog | None = field(default=None, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_by_name", {table.name.lower(): table for table in self.tables})
        if len(self._by_name) != len(self.tables):
            raise InvalidArgument("two tables have one name", place="tables")
        divided = [table.unit.name for table in self.tables if table.unit and table.partition]
        if len(set(divided)) != len(divided):  # their columns may differ: a unit would be in two parts
            raise InvalidArgument("one table of a unit has a partition at most", place="partition")
        for one in self.policy.invariants:
            one.check(self.table(one.table), self.table(one.totals))
        for table in self.tables:
            if table.unit is not None and table.unit.path:
                self._check_path(table, table.unit, table.unit.path[0])

    def table(self, name: str) -> Table | None:
        """Return a table by its name."""
        return self._by_name.get(name.lower())

    def named(self, *parts: str) -> Table | None:
        """Return the table that a name means, with its database and schema before it or without them.

        A table that was declared under its schema is known by it. Otherwise what stands before the name is
        passed over: the tables of a catalog have one name each.
        """
        for start in range(len(parts)):
            if (found := self.table(".".join(parts[start:]))) is not None:
                return found
        ends = [table for table in self.tables if table.name.lower().endswith(f".{'.'.join(parts).lower()}")]
        return ends[0] if len(ends) == 1 else None

    def unit_kind(self, table: Table) -> Kind | None:
        """Return the kind of the column that names a table's unit, wherever its path leads."""
        if table.unit is None or table.unit.column is None:
            return None
        owner = self.table(table.unit.path[-1].table) if table.unit.path else table
        field = None if owner is None else owner.field(table.unit.column)
        return None if field is None else field.kind

    def keys_of(self, table: Table, column: str) -> frozenset[tuple[str, str]]:
        """Return the keys, by table and column, that a column holds: rows with the same key have one unit.

        They are those that paths go through. Of a row with such a key it is known whose it is.
        """
        found = set()
        for other in self.tables:
            for link in other.unit.path[:1] if other.unit is not None else ():
                here, there = (other.name, link.column), (link.table, link.key)
                if any((table.name.lower(), column) == (name.lower(), own) for name, own in (here, there)):
                    found.add((link.table.lower(), link.key))
        return frozenset(found)

    def _check_path(self, table: Table, unit: Unit, link: KeyLink) -> None:
        """Refuse a path to the unit that does not go through a private table of the same unit."""
        beyond = self.table(link.table)
        hint = f'declare it too: unit = "{unit.beyond.text}"'
        if beyond is None or beyond.unit is None:
            what = "no table" if beyond is None else "no private table"
            message = f"the path of table `{table.name}` to its unit leads to `{link.table}`, which is {what}"
            raise InvalidArgument(message, place="unit", hints=(hint,))
        if beyond.unit != unit.beyond:
            message = f"table `{table.name}` reaches its unit through `{link.table}`, which has another one"
            raise InvalidArgument(message, place="unit", hints=(hint,))
        here, there = table.field(link.column), beyond.field(link.key)
        if there is None or there.name != link.key or link.key == beyond.unit.own_column:
            message = f"table `{table.name}` reaches its unit through `{link.table}.{link.key}`"
            reason = "names the unit itself" if there is not None else "is no column there"
            listed = ", ".join(field.name for field in beyond.fields if field.name != beyond.unit.own_column)
            hints = (f'unit = "{link.column}"',) if there is not None else (f"its columns are {listed}",)
            raise InvalidArgument(f"{message}, which {reason}", place="unit", hints=hints)
        if here is None or here.kind is not there.kind or here.kind.binary:
            message = f"table `{table.name}` reaches its unit through `{link.table}.{link.key}`, whose values"
            raise InvalidArgument(
                f"{message} `{link.column}` cannot have",
                place="unit",
                hints=(
                    "let both be whole numbers, or both texts: columns of one kind, and not binary numbers",
                ),
            )

    def undeclared(self) -> Catalog:
        """Return the catalog as it would be if the owner had said nothing of what columns hold."""
        if self._undeclared is None:
            tables = []
            for table in self.tables:
                fields = tuple(replace(one, domain=None) for one in table.fields)
                tables.append(replace(table, fields=fields, partition=None, keys=()))
            found = replace(self, tables=tuple(tables))
            object.__setattr__(self, "_undeclared", found)
            return found
        return self._undeclared

    def fingerprint(self) -> str:
        """Return a hash of all that is declared about tables and questions, without grants.

        Who may ask, and how much, is for the ledger: a grant that changes must not make another analyst's
        retry a different request.
        """
        if self._fingerprint is None:
            policy = self.policy
            found = fingerprint(
                tables=self.tables,
                ceiling=policy.ceiling,
                measures=policy.measures,
                invariants=policy.invariants,
            )
            object.__setattr__(self, "_fingerprint", found)
            return found
        return self._fingerprint
