"""Numbers of units: where units have names, the number of its unit is kept for each row of a table.

To read ten million names takes longer than all that a question does with them. So the names of a table are
read once, when it is first asked about, and each row's unit gets a number. Later a question asks the engine
for the number of each row, which costs no reading, and looks up the number of its unit here.

Theorem: totals do not depend on whether numbers stand for units, or names. The engine gives different numbers
to different names, by comparing the names themselves; which groups of a unit count is decided by the hash of
its name, which is kept beside its number. What the number is decides nothing (`contributions`).

Memory: five bytes for each row, and eight for each unit, for at most `MOST_ROWS` rows of a table.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.backends.duckdb.compile import hash_of
from sfumato.backends.duckdb.engine import Engine

__all__ = ["MOST_ROWS", "UnitNumbers", "number_units"]

MOST_ROWS = 1 << 26
"""Rows of a table whose units are kept by number; those of a larger one are read again by each question."""

_NOBODY, _NO_ROW = -1, -2


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class UnitNumbers:
    """The number of the unit of each row, and the hash of each unit by its number; private like both."""

    of_rows: npt.NDArray[np.int32]
    hashes: npt.NDArray[np.uint64]
    everybody: bool  # every row belongs to a unit
    _heavy: dict[int, npt.NDArray[np.bool_]] = field(default_factory=dict)  # by the cap asked for last

    def given(self, columns: list[npt.NDArray[Any]]) -> list[npt.NDArray[Any]]:
        """Return columns with the number of the unit instead of the row's, which is the first column.

        Rows that belong to nobody are left out.
        """
        units = self.of_rows[columns[0]].astype(np.int64)
        if self.everybody:
            return [units, *columns[1:]]
        places = np.flatnonzero(units != _NOBODY)
        return [column[places] for column in (units, *columns[1:])]

    def heavy_rows(self, most: int) -> npt.NDArray[np.bool_]:
        """Flag the rows of units with more rows than `most` in the whole table, and those of nobody."""
        found = self._heavy.get(most)
        if found is None:
            nobody = self.of_rows < 0
            counts = np.bincount(self.of_rows[~nobody], minlength=max(1, len(self.hashes)))
            found = nobody | (counts > most)[self.of_rows]
            self._heavy.clear()
            self._heavy[most] = found
        return found


def number_units(engine: Engine, units: str) -> UnitNumbers | None:
    """Number the units of a table, from a SELECT of `__row` and `__unit`; None: there are too many rows.

    Also None where two rows have one number: then it tells nothing.
    """
    last = engine.one(f"SELECT max(__row) FROM ({units})")
    size = 0 if last is None else last + 1
    if size > MOST_ROWS:
        return None
    numbers = f"row_number() OVER () - 1 AS number, {hash_of('__unit')} AS hashed"
    distinct = f"SELECT DISTINCT __unit FROM ({units}) WHERE __unit IS NOT NULL"
    with engine.named(f"SELECT __unit AS name, {numbers} FROM ({distinct})") as names:
        (hashes,) = engine.columns(f"SELECT hashed FROM {names} ORDER BY number")
        listed = f"CAST(u.__row AS INTEGER), CAST(coalesce(n.number, {_NOBODY}) AS INTEGER)"
        places, own = engine.columns(
            f"SELECT {listed} FROM ({units}) AS u LEFT JOIN {names} AS n ON __unit = name"
        )
    of_rows = np.full(size, _NO_ROW, dtype=np.int32)
    of_rows[places] = own
    if np.count_nonzero(of_rows != _NO_ROW) != len(places):
        return None
    return UnitNumbers(of_rows, hashes.astype(np.uint64, copy=False), _NOBODY not in own)
