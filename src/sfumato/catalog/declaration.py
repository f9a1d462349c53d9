"""A declaration: what an owner says about a table before anybody has looked at it."""

from __future__ import annotations

import datetime
import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from fractions import Fraction

from sfumato.catalog.domain import Between, Domain, KeyList
from sfumato.catalog.kind import Kind
from sfumato.catalog.table import Field, Table, UnsupportedColumn
from sfumato.catalog.unit import Unit
from sfumato.errors import InvalidArgument

__all__ = ["Column", "Declaration", "nearest"]

_SHOWN = 6  # values of a wrong declaration that a hint repeats


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """What is declared about a column."""

    domain: Domain | None = None
    nullable: bool = True

    @staticmethod
    def of(name: str, domain: object) -> Column:
        """Return what a caller declares about a column; refuse what is no declaration, with the right one."""
        if not isinstance(domain, Domain):
            raise InvalidArgument(
                f"a column is declared by between(..) or one_of(..), got {type(domain).__name__}",
                place=f"columns[{name!r}]",
                hints=(_cure(domain),),
            )
        return Column(domain=domain)


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """A table as declared: public without a unit. With the columns that it really has, a `Table`."""

    name: str
    unit: Unit | None
    columns: Mapping[str, Column] = field(default_factory=dict)
    max_groups: int | None = None
    max_rows: int | None = None
    max_rows_total: int | None = None
    partition: str | None = None
    keys: tuple[KeyList, ...] = ()

    def known(self) -> dict[str, Column]:
        """Return what is declared about columns, also by lists of keys: the values that these have."""
        found = dict(self.columns)
        for one in self.keys:
            for name, values in one.values().items():
                column = found.get(name, Column())
                found[name] = column if column.domain is not None else replace(column, domain=values)
        return found

    def table(self, fields: tuple[Field, ...], unsupported: tuple[UnsupportedColumn, ...] = ()) -> Table:
        """Return the table; refuse a declaration that does not fit its columns. Reads no value."""
        known = {each.name: each for each in fields}
        columns = self.known()

        def declared(each: Field) -> Field:
            column = columns.get(each.name, Column())
            return replace(each, domain=column.domain, nullable=column.nullable)

        table = Table(
            name=self.name,
            fields=tuple(declared(each) for each in fields),
            unit=self.unit,
            max_groups=self.max_groups,
            max_rows=self.max_rows,
            max_rows_total=self.max_rows_total,
            partition=self.partition,
            unsupported=unsupported,
            keys=self.keys,
        )
        for name, column in columns.items():
            if name not in known and (one := table.unsupported_column(name)) is not None:
                raise InvalidArgument(one.refusal, place=name, hints=one.hints)
            if name not in known:
                raise InvalidArgument(
                    f"table `{self.name}` has no column `{name}`",
                    place=name,
                    hints=(nearest(name, known) or f"its columns are {', '.join(sorted(known))}",),
                )
            self._fits(known[name], column)
        return table

    @staticmethod
    def _fits(known: Field, column: Column) -> None:
        if not isinstance(column.domain, Between):
            return  # a Field checks lists of values itself
        listed = known.kind in (Kind.TEXT, Kind.BOOLEAN)
        of_time = not isinstance(column.domain.lower, Fraction)
        if listed or of_time != (known.kind in (Kind.DATE, Kind.TIMESTAMP)):
            hint = "text has one_of, not bounds" if listed else "give bounds of the kind that the column has"
            raise InvalidArgument(
                f"`{known.name}` is of kind {known.kind.value}; the bounds declared for it are not",
                place=known.name,
                hints=(hint,),
            )


def _cure(given: object) -> str:
    """Return a hint that says what was probably meant: two numbers are bounds, a list is one of values.

    >>> _cure(["Male", "Female"])
    "write sf.one_of('Male', 'Female')"
    >>> _cure((0, 100))
    'write sf.between(0, 100)'
    """
    if isinstance(given, range) and given.step == 1 and given:
        return f"write sf.between({given[0]}, {given[-1]})"
    if isinstance(given, (list, tuple, set, frozenset)) and given:
        bounds = [one for one in given if type(one) in (int, float) or isinstance(one, datetime.date)]
        if len(given) == len(bounds) == 2 and isinstance(given, (list, tuple)):
            return f"write sf.between({given[0]!r}, {given[1]!r})"
        shown = [repr(one) for one in list(given)[:_SHOWN]]
        return f"write sf.one_of({', '.join(shown)}{', ..' if len(given) > _SHOWN else ''})"
    return "columns={'age': sf.between(0, 110), 'region': sf.one_of('north', 'south')}"


def nearest(name: str, known: Iterable[str]) -> str | None:
    """Return a hint that names what was probably meant, None if nothing is near.

    >>> nearest("epsilonn", ["delta", "epsilon"])
    'did you mean `epsilon`?'
    """
    found = difflib.get_close_matches(name, list(known), n=1, cutoff=0.6)
    return f"did you mean `{found[0]}`?" if found else None
