"""The people of an owner's table, one of whose bits an attacker wants to know."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.backends.owned import read_owned
from sfumato.core import uniform_below
from sfumato.core.arguments import count
from sfumato.errors import InvalidArgument
from sfumato.session import Budget, Database, connect

__all__ = ["Victims", "flags_of"]


def flags_of(table: Any, name: str, *, place: str) -> npt.NDArray[np.bool_]:
    """Return a column of an Arrow table that is of true and false, or of 1 and 0; NULL is false."""
    import pyarrow

    column = table.column(name)
    if pyarrow.types.is_boolean(column.type) or pyarrow.types.is_integer(column.type):
        nothing = pyarrow.scalar(0).cast(column.type)
        values = np.asarray(column.fill_null(nothing))
        if np.isin(values, (0, 1)).all():
            return values.astype(bool)
    raise InvalidArgument(
        f"column `{name}` is not one of true and false",
        place=place,
        hints=("0 and 1 will do; or add a column that says what you ask: income > 50000",),
    )


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Victims:
    """A column of true and false of somebody's own table; each row is a person."""

    trait: str
    bits: npt.NDArray[np.bool_]

    @classmethod
    def read(cls, data: Any, trait: str | None) -> Victims:
        """Read the column; NULL counts as false."""
        if trait is None:
            raise InvalidArgument(
                "which column of true and false is the secret?",
                place="trait",
                hints=("name it: trait='sick'",),
            )
        bits = flags_of(read_owned(data, [trait]), trait, place="trait")
        if bits.all() or not bits.any():
            raise InvalidArgument(
                f"column `{trait}` is the same for everyone: there is nothing to guess", place="trait"
            )
        return cls(trait=trait, bits=bits)

    @property
    def people(self) -> int:
        """How many there are."""
        return len(self.bits)

    @property
    def total(self) -> int:
        """How many of them have it."""
        return int(self.bits.sum())

    @property
    def counting(self) -> str:
        """The question how many have it."""
        return "SELECT COUNT(*) AS n FROM people WHERE secret"

    def draw(self, victims: int) -> npt.NDArray[np.int64]:
        """Draw victims: half of them with, half without, so that guessing is right half the time."""
        half = count(victims, "trials", least=2) // 2
        with_it, without = np.flatnonzero(self.bits), np.flatnonzero(~self.bits)
        return np.concatenate(
            [
                with_it[uniform_below(len(with_it), size=half)],
                without[uniform_below(len(without), size=victims - half)],
            ]
        )

    def open(self, epsilon: float) -> Database:
        """Open the people in this system, with a budget."""
        import pyarrow

        table = pyarrow.table({"person": np.arange(self.people), "secret": self.bits})
        return connect(
            table,
            name="people",
            unit="person",
            max_groups=1,
            max_rows=1,
            budget=Budget(epsilon=epsilon, rule="pure"),
        )
