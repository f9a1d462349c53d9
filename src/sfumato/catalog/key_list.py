"""Lists of keys: the public list of combinations that several columns of a table may have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from sfumato.catalog.domain import OneOf
from sfumato.catalog.kind import Value
from sfumato.errors import InvalidArgument

__all__ = ["KeyList"]

_EXAMPLE = 'keys={("region", "kind"): [("north", "a"), ("south", "b")]}'


@dataclass(frozen=True, slots=True, kw_only=True)
class KeyList:
    """Combinations of values of several columns; groups by two or more of them are shown for these alone.

    Like `one_of` it is the owner's word, from public knowledge, and not read off the data. Rows with another
    combination are in no group.
    """

    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]

    def __post_init__(self) -> None:
        if len(self.columns) < 2 or len({name.lower() for name in self.columns}) < len(self.columns):
            self._refuse("a list of keys is about two or more different columns")
        if not self.rows or any(len(row) != len(self.columns) for row in self.rows):
            self._refuse("a list of keys has a value of each of its columns in every row")
        if len(set(self.rows)) != len(self.rows):
            self._refuse("a list of keys has a row twice")
        self.values()

    def values(self) -> Mapping[str, OneOf]:
        """Return the values that each of the columns has in the list; refuse those of different kinds."""
        columns = zip(self.columns, zip(*self.rows, strict=True), strict=True)
        return {name: OneOf(tuple(dict.fromkeys(values))) for name, values in columns}

    @staticmethod
    def _refuse(message: str) -> None:
        raise InvalidArgument(message, place="keys", hints=(_EXAMPLE,))
