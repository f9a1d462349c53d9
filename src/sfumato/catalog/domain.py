"""Domains: what the owner declares about values of columns, in public, without looking at them."""

from __future__ import annotations

import datetime
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from fractions import Fraction
from itertools import pairwise
from typing import Any

from sfumato.catalog.kind import MOST_DIGITS, Value, kind_of
from sfumato.core.arguments import exact
from sfumato.errors import InvalidArgument

__all__ = ["Between", "Domain", "KeyList", "OneOf", "between", "one_of"]

_EXAMPLE = 'keys={("region", "kind"): [("north", "a"), ("south", "b")]}'
_Bound = Fraction | datetime.date | datetime.datetime


@dataclass(frozen=True, slots=True)
class Between:
    """Values are clamped to lie between two bounds; numbers, dates or timestamps.

    `bins` divide them in public, for tables of many columns: edges that rise, or how many equal steps.
    """

    lower: _Bound
    upper: _Bound
    bins: tuple[_Bound, ...] | int | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        lower, upper = _bound(self.lower, "lower"), _bound(self.upper, "upper")
        if type(lower) is not type(upper):
            raise InvalidArgument("both bounds must be of one kind", place="between")
        if lower > upper:  # type: ignore[operator]
            raise InvalidArgument(
                "the lower bound must not be above the upper one", place="between", hints=("swap them",)
            )
        object.__setattr__(self, "lower", lower)
        object.__setattr__(self, "upper", upper)
        if self.bins is not None:
            object.__setattr__(self, "bins", _edges(self.bins, type(lower)))


@dataclass(frozen=True, slots=True)
class OneOf:
    """The public list of values a column may have; groups by it are shown for all of them."""

    values: tuple[Value, ...]

    def __post_init__(self) -> None:
        if not self.values:
            raise InvalidArgument("one_of needs at least one value", place="one_of")
        if any(value is None for value in self.values):
            raise InvalidArgument("one_of lists values; NULL is not one", place="one_of")
        if any(kind_of(value) is None for value in self.values):
            raise InvalidArgument(
                "a value is text, a number, a date, a timestamp, true or false",
                place="one_of",
                hints=("values stand one by one: one_of(1980, 1981); for a list, one_of(*years)",),
            )
        if any(_too_long(value) for value in self.values):
            raise InvalidArgument(
                "a number has at most 38 digits", place="one_of", hints=("list others as texts",)
            )
        if len({_family(value) for value in self.values}) != 1:
            raise InvalidArgument("the values of one_of must be of one kind", place="one_of")
        if len(set(self.values)) != len(self.values):
            raise InvalidArgument("one_of lists a value twice", place="one_of")


def _too_long(value: Value) -> bool:
    if isinstance(value, Decimal):
        kind = kind_of(value)
        return kind is None or not kind.digits
    return type(value) is int and abs(value) >= 10**MOST_DIGITS


def _family(value: Value) -> str:
    """Return what values of one list share: decimals may differ in their digits."""
    kind = kind_of(value)
    if kind is None or kind.whole:
        return "integer"
    return "real" if kind.digits else kind.value


Domain = Between | OneOf


def between(lower: Any, upper: Any, *, bins: int | Sequence[Any] | None = None) -> Between:
    """Declare bounds, both included; values outside are clamped to them.

    `bins` are the public bins of tables of many columns: edges, `[0, 18, 65, 110]`, or how many equal steps.

    >>> between(0, 110)
    Between(lower=Fraction(0, 1), upper=Fraction(110, 1))
    """
    return Between(lower, upper, bins)  # type: ignore[arg-type]


def one_of(*values: Value) -> OneOf:
    """Declare the values a column may have.

    >>> one_of("north", "south").values
    ('north', 'south')
    """
    return OneOf(tuple(values))


def _edges(bins: Any, kind: type) -> tuple[_Bound, ...] | int:
    """Return edges of bins as bounds, or their number; refuse what are none."""
    if isinstance(bins, int) and not isinstance(bins, bool) and bins > 0:
        return bins
    edges = tuple(_bound(edge, "bins") for edge in bins) if isinstance(bins, list | tuple) else ()
    rise = all(type(edge) is kind for edge in edges) and all(a < b for a, b in pairwise(edges))  # type: ignore[operator]
    if len(edges) < 2 or not rise:
        raise InvalidArgument(
            "bins are a number of equal steps, or edges that rise, of the kind of the bounds",
            place="bins",
            hints=("bins=[0, 18, 65, 110]",),
        )
    return edges


def _bound(value: Any, name: str) -> _Bound:
    if isinstance(value, datetime.datetime) and value.tzinfo is not None:
        return value.astimezone(datetime.UTC).replace(tzinfo=None)  # as timestamps of the tables are read
    if isinstance(value, datetime.date):
        return value
    return exact(value, name)


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
