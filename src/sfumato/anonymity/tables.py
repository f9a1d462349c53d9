"""Reading what is to be measured or generalised: every column in one go, so that rows stay together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sfumato.anonymity.columns import Coded, encode
from sfumato.backends.owned import read_owned
from sfumato.errors import InvalidArgument

__all__ = ["Coding", "OWNER", "read"]

OWNER = "For the owner of the table, which was read as it is: nothing here is private, nor a release."
"""What every report ends with."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coding:
    """The columns in question, as numbers; `table` is what was read, an Arrow table in the same order."""

    table: Any
    quasi: tuple[Coded, ...]
    sensitive: tuple[Coded, ...]
    others: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.quasi[0].codes)


def read(
    origin: Any, quasi: Sequence[str], sensitive: str | Sequence[str] = (), others: str | Sequence[str] = ()
) -> Coding:
    """Read columns of a table; refuse what makes no sense."""
    named = _names(quasi, "quasi"), _names(sensitive, "sensitive"), _names(others, "keep")
    if not named[0]:
        raise InvalidArgument(
            "there are no quasi-identifiers",
            place="quasi",
            hints=("name the columns that others could know of a person, such as age, sex and zip",),
        )
    everything = [name for names in named for name in names]
    for name in everything:
        if everything.count(name) > 1:
            raise InvalidArgument(
                f"column `{name}` is named twice",
                place=name,
                hints=("a column is a quasi-identifier, or sensitive, or kept as it is: one of them",),
            )
    table = read_owned(origin, everything)
    if table.num_rows == 0:
        raise InvalidArgument("the table has no rows", place="table")
    return Coding(
        table=table,
        quasi=tuple(encode(name, table.column(name)) for name in named[0]),
        sensitive=tuple(encode(name, table.column(name)) for name in named[1]),
        others=named[2],
    )


def _names(given: str | Sequence[str], place: str) -> tuple[str, ...]:
    names = (given,) if isinstance(given, str) else tuple(given)
    for name in names:
        if not isinstance(name, str) or not name:
            raise InvalidArgument("columns are given by their names", place=place)
    return names
