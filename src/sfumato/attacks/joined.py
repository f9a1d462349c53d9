"""The join of a table without names and a roll that has them: the naive release, and what it gives away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from sfumato.anonymity.columns import Flags, Integers
from sfumato.attacks.attack_result import with_interval
from sfumato.backends.owned import read_owned
from sfumato.core import Proportion
from sfumato.errors import InvalidArgument

__all__ = ["Linked", "Tables", "alone", "cells_of"]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Tables:
    """The table without names and the roll, with the columns that count."""

    data: Any
    roll: Any
    on: tuple[str, ...]
    secret: str
    identity: str | None

    @classmethod
    def read(cls, data: Any, roll: Any, *, on: Sequence[str], secret: str, identity: str | None) -> Tables:
        """Read what the attack needs of an owner's tables."""
        on = (on,) if isinstance(on, str) else tuple(on)
        if not on or len(set(on)) < len(on) or {secret, identity} & set(on) or secret == identity:
            raise InvalidArgument(
                "`on`, `secret` and `identity` must name different columns, and `on` at least one", place="on"
            )
        who = () if identity is None else (identity,)
        table = read_owned(data, [*on, secret, *who], name="data")
        names = table.select([*on, *who]) if roll is None else read_owned(roll, [*on, *who], name="roll")
        for each, place in ((table, "data"), (names, "roll")):
            if each.num_rows == 0:
                raise InvalidArgument(f"the {place} has no rows", place=place)
            if identity is not None and len(each[identity].unique().drop_null()) < each.num_rows:
                raise InvalidArgument(
                    f"column `{identity}` names somebody twice, or nobody",
                    place=place,
                    hints=("link one row for each person",),
                )
        roll = _alike(names, table, [*on, *who])
        return cls(data=table, roll=roll, on=on, secret=secret, identity=identity)

    def says(self, value: Any) -> Flags:
        """Return which rows say what is asked for."""
        column = self.data[self.secret]
        try:
            found = pc.equal(column, pa.scalar(value, type=column.type)).fill_null(False)
        except (pa.ArrowException, TypeError, ValueError):
            raise InvalidArgument(
                f"`value` is of another kind than column `{self.secret}`", place="value"
            ) from None
        return np.asarray(found.to_numpy(zero_copy_only=False), dtype=np.bool_)

    def usual(self) -> Any:
        """Return what most nearly half of the rows say: of that the most can be learned."""
        counted = self.data[self.secret].drop_null().value_counts().to_pylist()
        nearest = min(counted, key=lambda one: abs(2 * one["counts"] - self.data.num_rows), default=None)
        if nearest is None:
            raise InvalidArgument(f"column `{self.secret}` is empty", place="secret")
        return nearest["values"]


def _alike(roll: Any, table: Any, on: Sequence[str]) -> Any:
    """Return the roll with its columns of the same types as the table's."""
    for name in on:
        try:
            column = roll[name].cast(table[name].type)
        except pa.ArrowException:
            raise InvalidArgument(
                f"column `{name}` is of another kind in the roll",
                place=name,
                hints=("write it in both in the same way, dates as dates",),
            ) from None
        roll = roll.set_column(roll.column_names.index(name), name, column)
    return roll


def cells_of(tables: Sequence[Any], on: Sequence[str]) -> list[Integers]:
    """Number the combinations of values, alike in all tables; -1 where a value is missing."""
    rows = [table.num_rows for table in tables]
    code = np.zeros(sum(rows), dtype=np.int64)
    missing = np.zeros(sum(rows), dtype=np.bool_)
    for name in on:
        column = pa.chunked_array([chunk for table in tables for chunk in table[name].chunks])
        places = column.combine_chunks().dictionary_encode().indices
        missing |= np.asarray(places.is_null())
        digit = np.asarray(places.fill_null(0), dtype=np.int64)
        _, code = np.unique(code * (int(digit.max(initial=0)) + 1) + digit, return_inverse=True)
    code = np.where(missing, -1, code)
    return np.split(code, np.cumsum(rows)[:-1])


def alone(cells: Integers) -> Flags:
    """Return which rows are the only one of their cell."""
    counted = np.bincount(cells[cells >= 0], minlength=1)
    return np.asarray((cells >= 0) & (counted[cells] == 1))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Linked:
    """The join of the two tables. A claim is made where one row matches one name, each alone with its values.

    `right` says which claims name the right person, where that can be known. `victims` are who can be
    attacked: on the roll, and alone with their values among everyone in either table.
    """

    claims: Flags
    right: Flags | None
    victims: Integers
    listed: Flags

    @classmethod
    def of(cls, tables: Tables) -> Linked:
        """Join them."""
        mine, theirs = cells_of([tables.data, tables.roll], tables.on)
        if not np.intersect1d(mine[mine >= 0], theirs[theirs >= 0]).size:
            raise InvalidArgument(
                "nobody on the roll matches anybody in the table",
                place="roll",
                hints=("are the columns of `on` written in the same way in both?",),
            )
        cells = 1 + max(int(mine.max()), int(theirs.max()))
        only = np.full(cells, -1, dtype=np.int64)  # the row of the roll that is alone in a cell
        only[theirs[alone(theirs)]] = np.flatnonzero(alone(theirs))
        match = np.where(alone(mine), only[mine], -1)
        claims = match >= 0
        if tables.identity is None:
            return cls(claims=claims, right=None, victims=np.flatnonzero(claims), listed=alone(mine))
        who, called = cells_of([tables.data, tables.roll], [tables.identity])
        people = 1 + max(int(who.max()), int(called.max()))
        place = np.full(people, -1, dtype=np.int64)
        place[called] = np.arange(len(called))
        listed = place[who] >= 0
        # How many different people each cell holds, of either table.
        held = np.concatenate([mine, theirs]) * people + np.concatenate([who, called])
        crowd = np.bincount(np.unique(held[held >= 0]) // people, minlength=cells)
        return cls(
            claims=claims,
            right=claims & (match == place[who]),
            victims=np.flatnonzero(listed & (mine >= 0) & (crowd[mine] == 1)),
            listed=listed,
        )

    def naive(self, chosen: Integers) -> Proportion:
        """Return how many of the victims the join names rightly, and so their secret with them."""
        if self.right is None:
            return Proportion(hits=int(self.claims.sum()), trials=max(1, int(self.listed.sum())))
        return Proportion(hits=int(self.right[chosen].sum()), trials=len(chosen))

    def facts(self) -> tuple[tuple[str, str], ...]:
        """Say in words how far the join gets."""
        claims, rows = int(self.claims.sum()), len(self.claims)
        made = ("rows that match one name", f"{claims:,} of {rows:,} rows: {claims / rows:.1%}")
        if self.right is None:
            alone_and_named = "rows that are alone with their values and match one name"
            unchecked = f"without an identity nobody can: the naive rate is the share of {alone_and_named}"
            return made, ("are the claims right?", unchecked)
        right, listed = int(self.right.sum()), int(self.listed.sum())
        of_claims, of_listed = (
            with_interval(Proportion(hits=right, trials=max(trials, 1))) for trials in (claims, listed)
        )
        return made, ("of these the right one", of_claims), ("of all on the roll, named rightly", of_listed)
