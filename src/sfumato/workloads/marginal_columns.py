"""Columns of marginal tables: which public cells a column has, and in which of them a row is.

A column has a cell for each value that its domain lists, or for each of its bins. Bins are public: the edges
that a caller gives, or equal steps between declared bounds. A bin holds its lower edge and not its upper one,
but for the last, which holds both; values beyond the edges are in the first and the last bin, as bounds clamp
everywhere. A row with no value, or with one that is not listed, is in no table, unless the column has a cell
for what is missing: which rows those are depends on the row alone.
"""

from __future__ import annotations

import datetime
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from itertools import pairwise
from typing import Any

from sfumato.catalog.domain import Between, OneOf
from sfumato.catalog.kind import Kind, Value
from sfumato.catalog.table import Field
from sfumato.core.arguments import exact
from sfumato.core.steps import spend
from sfumato.errors import InvalidArgument
from sfumato.plan.values import Val, col, lit, when
from sfumato.workloads.bases import Asked, Base, Matrix, asked_rows, best_matrix, cells, numeric_base

__all__ = ["Bins", "MarginalColumn", "QueryMatrix", "marginal_column"]

Bins = int | Sequence[Any]
"""How many equal steps between declared bounds, or the edges of all bins."""

QueryMatrix = str | Sequence[Sequence[float]]
"""What is asked about the cells of a column: "cells", "prefixes", "ranges", or a matrix."""

_CUBED = 300  # multiplications of matrices that are searched for in one step, in arrays
_MOST_BINS = 10_000
_FEW_VALUES = 128  # whole numbers between bounds: so many have a cell each
_Edge = Fraction | datetime.date | datetime.datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class MarginalColumn:
    """A column of marginal tables.

    `labels` say what is in each cell: a value, or a bin as text; None, which is last, of rows with no value.
    `inner` are the edges between bins, as constants of the column's kind; None: labels are values. `matrix`
    is what is measured, where it is not cells: it is kept, for another machine may round another one.
    """

    name: str
    labels: tuple[Value, ...]
    inner: tuple[Value, ...] | None = None
    asked: Asked = field(default="cells", repr=False)
    matrix: Matrix | None = field(default=None, repr=False)

    @property
    def ordered(self) -> bool:
        """Whether cells have an order."""
        return self.inner is not None

    @property
    def type(self) -> str:
        """The SQL type of labels."""
        first = self.labels[0]
        if isinstance(first, bool):
            return "BOOLEAN"
        if isinstance(first, datetime.date):
            return "TIMESTAMP" if isinstance(first, datetime.datetime) else "DATE"
        if isinstance(first, str):
            return "VARCHAR"
        return "BIGINT" if all(isinstance(label, int | None) for label in self.labels) else "DOUBLE"

    @property
    def base(self) -> Base:
        """What is asked about the cells, and measured."""
        size = len(self.labels)
        return cells(size) if self.matrix is None else numeric_base(self.asked, size, self.matrix)

    @property
    def missing(self) -> bool:
        """Whether rows with no value have a cell."""
        return self.labels[-1] is None

    def with_evenness(self, evenness: float) -> MarginalColumn:
        """Return the column with the matrix of these shares, where it is not cells that are asked for."""
        if self.asked == "cells":
            return self
        spend(len(self.labels) ** 3 // _CUBED)
        return replace(self, matrix=best_matrix(self.asked, len(self.labels), evenness))

    def rows(self) -> Val:
        """Return the condition that a row is in one of the cells."""
        nothing = col(self.name).is_null()
        if self.inner is not None:
            return lit(True) if self.missing else ~nothing
        listed = col(self.name).is_in(*(label for label in self.labels if label is not None))
        return listed | nothing if self.missing else listed

    def key(self) -> Val:
        """Return what rows are grouped by: the value itself, or the number of its bin."""
        value, inner = col(self.name), self.inner
        if inner is None:
            return value

        def among(first: int, last: int) -> Val:
            if first == last:
                return lit(first)
            middle = (first + last) // 2
            return when((value < lit(inner[middle]), among(first, middle)), otherwise=among(middle + 1, last))

        found = among(0, len(inner))
        return when((value.is_null(), len(inner) + 1), otherwise=found) if self.missing else found

    def codes(self) -> Mapping[Value, int]:
        """Return the place of each cell by its key."""
        keys = self.labels if self.inner is None else range(len(self.labels))
        return {key: place for place, key in enumerate(keys)}

    def place(self, label: Value) -> int:
        """Return the place of the cell of that label."""
        if label not in self.labels:
            raise InvalidArgument(
                f"`{self.name}` has no such cell",
                place=self.name,
                hints=(f"cells are {', '.join(map(str, self.labels[:6]))}{', ..' * (len(self.labels) > 6)}",),
            )
        return self.labels.index(label)


def marginal_column(
    known: Field, bins: Bins | None = None, asked: QueryMatrix = "cells", *, missing: bool = False
) -> MarginalColumn:
    """Return a column with the cells that its domain or its bins say; `missing`: and one for no value."""
    if bins is None and isinstance(known.domain, Between):
        bins = known.domain.bins
    labels, inner = _listed(known) if bins is None else _binned(known, bins)
    if missing:
        labels = (*labels, None)
    queries = _asked(known.name, asked)
    if not isinstance(queries, str) and len(queries[0]) != len(labels):
        raise InvalidArgument(
            f"what is asked about `{known.name}` is about {len(queries[0])} cells, and it has {len(labels)}",
            place="bases",
            hints=("a matrix has one number per cell in each row",),
        )
    column = MarginalColumn(name=known.name, labels=labels, inner=inner, asked=queries)
    return column.with_evenness(0.5)


def _asked(name: str, asked: QueryMatrix) -> Asked:
    if not isinstance(asked, str):
        return asked_rows(asked)
    if asked not in ("cells", "prefixes", "ranges"):
        raise InvalidArgument(
            f"`{name}` is asked about by cells, prefixes, ranges, or a matrix",
            place="bases",
            hints=(f"bases={{{name!r}: 'prefixes'}} asks how many are at most so large",),
        )
    return asked


def _listed(known: Field) -> tuple[tuple[Value, ...], tuple[Value, ...] | None]:
    """Return the cells of a column without bins."""
    match known.domain:
        case OneOf(values=values):
            return values, None
        case Between(lower=Fraction() as lower, upper=Fraction() as upper) if known.kind.whole:
            first, last = math.ceil(lower), math.floor(upper)
            if 0 <= last - first < _FEW_VALUES:
                values = tuple(range(first, last + 1))
                return values, values[1:]
    if known.kind is Kind.BOOLEAN:
        return (False, True), None
    hints = [f"declare its values: {known.name} = one_of(..)"]
    if _steps(known.kind):
        hints = [
            f"give bins: bins={{{known.name!r}: 10}} makes ten of equal width between declared bounds",
            f"or their edges: bins={{{known.name!r}: [0, 18, 65, 110]}}",
        ]
    raise InvalidArgument(f"`{known.name}` has no public cells", place="columns", hints=tuple(hints))


def _steps(kind: Kind) -> bool:
    return kind.numeric or kind in (Kind.DATE, Kind.TIMESTAMP)


def _binned(known: Field, bins: Bins) -> tuple[tuple[Value, ...], tuple[Value, ...]]:
    """Return the labels of bins, and the edges between them."""
    name, kind = known.name, known.kind
    if not _steps(kind):
        raise InvalidArgument(
            f"bins are of numbers and dates, and `{name}` is a {kind.value}",
            place="bins",
            hints=("list its values: one_of(..)",),
        )
    edges = _equal_steps(known, bins) if isinstance(bins, int) else _given_edges(known, bins)
    constants = [_constant(edge, kind) for edge in edges]
    if len(edges) < 2 or any(not low < high for low, high in pairwise(constants)):  # type: ignore[operator]
        raise InvalidArgument(
            f"edges of the bins of `{name}` rise, and no bin is empty",
            place="bins",
            hints=("three edges make two bins: [0, 18, 110]",),
        )
    if len(edges) > _MOST_BINS + 1:
        raise InvalidArgument(
            f"`{name}` has more than {_MOST_BINS:,} bins", place="bins", hints=("use fewer",)
        )
    labels = [f"[{low}, {high})" for low, high in pairwise(map(_shown, constants))]
    labels[-1] = labels[-1][:-1] + "]"
    return tuple(labels), tuple(constants[1:-1])


def _equal_steps(known: Field, number: int) -> list[_Edge]:
    if isinstance(number, bool) or not 1 <= number <= _MOST_BINS:
        raise InvalidArgument(
            f"bins of `{known.name}` are a whole number from 1 to {_MOST_BINS:,}, or edges", place="bins"
        )
    if not isinstance(known.domain, Between):
        raise InvalidArgument(
            f"equal bins of `{known.name}` lie between declared bounds, and it has none",
            place="bins",
            hints=(f"declare them: {known.name} = between(0, 100)", "or give the edges of the bins"),
        )
    lower, upper = known.domain.lower, known.domain.upper
    if isinstance(lower, Fraction) and isinstance(upper, Fraction):
        return [lower + (upper - lower) * Fraction(i, number) for i in range(number + 1)]
    assert not isinstance(lower, Fraction) and not isinstance(upper, Fraction)
    whole = upper - lower
    if not isinstance(lower, datetime.datetime):
        return [lower + datetime.timedelta(days=whole.days * i // number) for i in range(number + 1)]
    step = datetime.timedelta(microseconds=1)
    return [lower + step * (whole // step * i // number) for i in range(number + 1)]


def _given_edges(known: Field, given: Sequence[Any]) -> list[_Edge]:
    if isinstance(given, (str, bytes)) or not isinstance(given, Sequence):
        raise InvalidArgument(
            f"bins of `{known.name}` are a number of bins, or a list of edges", place="bins"
        )
    dates = known.kind in (Kind.DATE, Kind.TIMESTAMP)
    try:
        edges: list[_Edge] = [Between(edge, edge).lower if dates else exact(edge, "bins") for edge in given]
    except InvalidArgument:
        edges = []
    if not edges or any(isinstance(edge, Fraction) is dates for edge in edges):
        raise InvalidArgument(
            f"edges of the bins of `{known.name}` are {'dates' if dates else 'numbers'}, as its values are",
            place="bins",
        )
    return edges


def _constant(edge: _Edge, kind: Kind) -> Value:
    """Return an edge as a constant to compare with; of whole numbers and days, the least not below it."""
    if isinstance(edge, datetime.datetime):
        day = edge.date()
        if kind is Kind.TIMESTAMP:
            return edge
        return (
            day
            if edge == datetime.datetime.combine(day, datetime.time())
            else day + datetime.timedelta(days=1)
        )
    if isinstance(edge, datetime.date):
        return edge if kind is Kind.DATE else datetime.datetime.combine(edge, datetime.time())
    if kind.whole or edge.denominator == 1:
        return math.ceil(edge)
    return float(edge)


def _shown(value: Value) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
