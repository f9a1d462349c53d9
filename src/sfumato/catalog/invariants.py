"""Invariants: totals that the owner declares to be public. Nothing protects them, and answers say so."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.catalog.table import Table
from sfumato.errors import InvalidArgument

__all__ = ["Invariant"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Invariant:
    """How many rows a private table has in each group by some columns, as a public table says.

    The numbers are read from the public table `totals`, column `count`, and never off the private one.
    Consistent answers keep them exactly. They are not protected: whoever knows all people but one learns from
    them where that one is.

    >>> Invariant(table="people", by=("state",), totals="state_totals", count="n").said
    'how many rows `people` has by `state` (`state_totals`)'
    """

    table: str
    by: tuple[str, ...]
    totals: str
    count: str

    def __post_init__(self) -> None:
        names = (self.table, self.totals, self.count)
        listed = isinstance(self.by, list | tuple) and all(isinstance(one, str) for one in self.by)
        if not listed or not all(isinstance(one, str) and one for one in names):
            raise InvalidArgument(
                "an invariant names a private table, columns, a public table and its column of numbers",
                place="invariants",
                hints=("Invariant(table='people', by=('state',), totals='state_totals', count='n')",),
            )
        object.__setattr__(self, "by", tuple(self.by))

    @property
    def said(self) -> str:
        """What is public, in words."""
        columns = ", ".join(f"`{one}`" for one in self.by)
        where = f"by {columns}" if columns else "in all"
        return f"how many rows `{self.table}` has {where} (`{self.totals}`)"

    def check(self, table: Table | None, totals: Table | None) -> None:
        """Refuse an invariant whose tables or columns are not what it says."""
        wrong = None
        if table is None or not table.private:
            wrong = f"`{self.table}` is no private table"
        elif totals is None or totals.private:
            wrong = f"`{self.totals}` is no public table"
        else:
            missing = [one for one in (*self.by, self.count) if totals.field(one) is None]
            field = totals.field(self.count)
            if missing:
                wrong = f"`{self.totals}` has no column `{missing[0]}`"
            elif field is not None and not field.kind.whole:
                wrong = f"`{self.count}` of `{self.totals}` holds no whole numbers"
        if wrong is not None:
            hint = "totals are a public table: a column for each of `by`, and one of whole numbers"
            raise InvalidArgument(f"an invariant makes no sense: {wrong}", place="invariants", hints=(hint,))
