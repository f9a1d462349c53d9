"""The unit of protection: named by a column, reached through keys of other tables, or the row itself.

    o_custkey                                          the column of the table itself
    l_orderkey -> orders.o_orderkey -> o_custkey       the column of another table, through its key

A row of a table with a path belongs to every unit that has a row with its key in the table that the path
leads to. Usually that is one unit, because a key names one row. Nothing is assumed about it: keys are what
the data has, and the engine decides by this rule whose a row is.

    the key is NULL, or the path ends nowhere     the row belongs to nobody, and is dropped
    the unit is NULL where the path ends          so it is
    one unit has the key in several rows          the row belongs to that unit, once
    several units have the key                    the row belongs to each of them, once

Let R(u) be all rows of unit u: in tables with a column those that name u; in tables with a path those whose
key is a key of a row in R(u) of the next table.

Theorem: R(u) is a function of u's rows in the next table of each path and of the table itself, and of no
other unit's keys. Two databases are neighbours if one unit v has rows in one of them only, and R(u) is the
same in both for every other unit u. A question that is answered from the R(u) one unit at a time, each with
bounded contributions, changes between neighbours by the contributions of v alone.
Proof: whether a row is in R(u) is decided by u's own keys. So another row of v in the next table, with
whatever key, takes nothing from R(u) and adds nothing to it, also if u has the same key.

Corollary: a row that several units share is a row of each of them. It stays as long as one of them does, and
counts for each of them within that unit's own caps. What such a row says is protected for its m owners as
for a group of m: with m times the epsilon. There is no rule that does better for all of them: to drop the
row, or to give it to one of them, would let v, by rows with the keys of everybody else, take away their rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from sfumato.errors import InvalidArgument

__all__ = ["KeyLink", "Unit"]

_ARROW = "->"


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyLink:
    """A step of a path: a column of one table holds a key of another table, in the column `key` there."""

    column: str
    table: str
    key: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Who is protected: the person named by a column, or, with `column=None`, each row by itself.

    With a `path` the column is one of the table that the last link leads to. Private tables whose units have
    the same name are about the same people and can be joined.
    """

    name: str
    column: str | None
    path: tuple[KeyLink, ...] = ()

    @staticmethod
    def read(text: str, *, name: str | None = None) -> Unit:
        """Return the unit that a text declares; it is called as its column is, unless another name is given.

        >>> Unit.read("l_orderkey -> orders.o_orderkey -> o_custkey").path
        (KeyLink(column='l_orderkey', table='orders', key='o_orderkey'),)
        """
        if _ARROW not in text:
            return Unit(name=name or text, column=text)
        *steps, column = [part.strip() for part in text.split(_ARROW)]
        links = []
        for here, there in zip(steps[::2], steps[1::2], strict=False):
            table, _, key = there.rpartition(".")
            links.append(KeyLink(column=here, table=table, key=key))
        names = [column, *(name for link in links for name in (link.column, link.table, link.key))]
        if len(steps) % 2 or not all(names):
            raise InvalidArgument(
                "this does not say how to reach the unit",
                place="unit",
                hints=('write columns and keys in turn: "l_orderkey -> orders.o_orderkey -> o_custkey"',),
            )
        return Unit(name=name or column, column=column, path=tuple(links))

    @property
    def own_column(self) -> str | None:
        """The column of the table itself that names the unit; None if it is reached through keys."""
        return None if self.path else self.column

    @property
    def first_column(self) -> str | None:
        """The column of the table itself that names the unit, or begins the path to it."""
        return self.path[0].column if self.path else self.column

    @property
    def text(self) -> str | None:
        """The unit as it is declared; None: each row is one."""
        if self.column is None:
            return None
        steps = (f"{link.column} {_ARROW} {link.table}.{link.key} {_ARROW} " for link in self.path)
        return "".join(steps) + self.column

    @property
    def beyond(self) -> Unit:
        """The unit as the table declares it that the first link leads to."""
        return replace(self, path=self.path[1:])
