"""Missing limits: what a question in GoogleSQL's words leaves out, and has to be known all the same.

Where bounds or caps are neither written nor declared, GoogleSQL finds bounds in the data, privately, and
has defaults. So does this module, for questions that say so (`NamedQuery.fills_in`):

    bounds      of what one unit adds to a group (COUNT, SUM), of one unit's average, or of values: a question
                of its own counts units by powers of two (`plan.buckets`), and bounds are read off its answer
    max_groups  as many groups as are public; else 99 of 100 units lose nothing, by a private quantile
    max_rows    5 rows of a unit in each group, as in GoogleSQL: for variances and quantiles

`BOUNDS_PART` of what epsilon allows is for finding limits, the rest for the question itself.

Theorem: the rules of budgets are valid where each question depends on the answers before (`core.rules`). Each
question that finds a limit costs at most its part of what epsilon allows. The question itself is priced once
the limits are there: by `price` it costs at most what is left, whatever they are. So all of them together
cost at most what epsilon allows; that much is reserved before anything is looked at. Limits are functions of
noisy answers and of the plan, so that everything that is done with them is post-processing.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import Any

from sfumato.aggregates.registry import Function
from sfumato.analysis.bounding import bound
from sfumato.analysis.public_keys import PublicTables
from sfumato.catalog.catalog import Catalog
from sfumato.catalog.kind import Kind
from sfumato.errors import QueryRefused
from sfumato.plan.buckets import Buckets, SoughtBounds
from sfumato.plan.functions import call
from sfumato.plan.options import Options
from sfumato.plan.request import NamedQuery, Request
from sfumato.plan.tree import (
    Aggregate,
    ColumnRef,
    Filter,
    PerUnit,
    Projection,
    Query,
    Relation,
)

__all__ = ["BOUNDS_PART", "MissingLimit", "missing_limits", "with_limits"]

BOUNDS_PART = Fraction(1, 4)
"""The part of what a question may cost that finding its limits takes, where some are missing."""

_MOST_ROWS = 5  # GoogleSQL's own: values of one unit in a group that count
_MOST_GROUPS = 100  # a larger cap is not found
_UNCAPPED = 2**31 - 1  # as many as there are: `bound` takes the number of public groups
_KEPT = 0.99  # of units lose no group
_FALSE_ALARM = 1e-4  # a bound far beyond all values makes an answer useless
_WIDE = 2.0**20
_AT = "missing"


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingLimit:
    """A limit that is to be found: bounds of aggregates, or the cap of groups; and the request that finds it.

    `query` is the place of the question that needs it, `aggregates` are those of it; none: it is the cap.
    """

    request: Request
    query: int
    aggregates: tuple[str, ...] = ()
    per_group: bool = False

    @property
    def typical(self) -> tuple[Any, ...]:
        """A row that finding it might give: one that takes as much memory as any, to try the rest with."""
        return (-_WIDE, _WIDE) if self.aggregates else (_MOST_GROUPS,)

    def row(self, columns: tuple[str, ...], rows: tuple[tuple[Any, ...], ...]) -> tuple[Any, ...]:
        """Return the row of an answer to the request; NULLs, where the answer is not what was asked for."""
        expected = ("low", "high") if self.aggregates else ("limit",)
        return rows[0] if columns == expected and len(rows) == 1 else tuple(None for _ in expected)

    @property
    def wanted(self) -> str:
        """What is to be found."""
        if not self.aggregates:
            return "how many groups one unit may be in"
        return "" if self.request.sought is None else f"bounds on {self.request.sought.column}"

    def said(self, row: tuple[Any, ...]) -> str:
        """Return what a reader of the answer should know about what was found."""
        part = f"found privately, for {float(BOUNDS_PART):.0%} of the cost"
        if not self.aggregates:
            return f"one unit counts in at most {_cap(row)} groups: {part}"
        if None in row:
            return f"{self.wanted} could not be told from noise: what needs them is not known"
        low, high = self.bounds(row)
        return f"{self.wanted}: {low:g} and {high:g}, {part}"

    def bounds(self, row: tuple[Any, ...]) -> tuple[float, float]:
        """Return the bounds of a row that was found.

        Of what adds up, noise follows from the larger of both: the other one may be as far from zero.
        """
        low, high = (0.0, 0.0) if None in row else (float(row[0]), float(row[1]))
        largest = max(abs(low), abs(high))
        return (-largest, largest) if self.per_group else (low, high)


def missing_limits(
    request: Request, catalog: Catalog, tables: PublicTables
) -> tuple[Request, tuple[MissingLimit, ...]]:
    """Return a request with GoogleSQL's defaults filled in, and what is still to be found."""
    found: list[MissingLimit] = []
    for place, named in enumerate(request.queries):
        if named.fills_in:
            filler = _Filler(named.query, named.options or request.options, catalog, tables, place)
            options = filler.fill()
            found += filler.missing
            request = _with_query(request, place, named, options)
    return request, tuple(found)


def with_limits(
    request: Request, missing: Sequence[MissingLimit], found: Sequence[tuple[Any, ...]]
) -> Request:
    """Return a request with the limits that were found, each the row that its request was answered with.

    Bounds are NULL where nothing can be told from noise: then the aggregate is not known.
    """
    for one, row in zip(missing, found, strict=True):
        named = request.queries[one.query]
        options = named.options or request.options
        if not one.aggregates:
            request = _with_query(request, one.query, named, replace(options, max_groups=_cap(row)))
            continue
        aggregates = tuple(
            (name, _bounded(aggregate, one, row) if name in one.aggregates else aggregate)
            for name, aggregate in named.query.aggregates
        )
        unknown = (*named.unknown, *(one.aggregates if None in row else ()))
        named = replace(named, query=replace(named.query, aggregates=aggregates), unknown=unknown)
        request = _with_query(request, one.query, named, options)
    return request


def _bounded(aggregate: Aggregate, limit: MissingLimit, row: tuple[Any, ...]) -> Aggregate:
    if limit.per_group:
        return replace(aggregate, bounds_per_group=limit.bounds(row))
    return replace(aggregate, bounds_per_row=limit.bounds(row))


def _cap(row: tuple[Any, ...]) -> int:
    return 1 if row[0] is None else max(1, math.ceil(row[0]))


def _written(aggregate: Aggregate, text: str) -> str:
    """Return an aggregate as the question has it."""
    if aggregate.span is None:
        return aggregate.function.label.upper()
    return " ".join(text[aggregate.span.start : aggregate.span.end].split())


def _with_query(request: Request, place: int, named: NamedQuery, options: Options) -> Request:
    if named.options is not None:
        named = replace(named, options=options)
    queries = (*request.queries[:place], named, *request.queries[place + 1 :])
    return replace(request, queries=queries, options=options if named.options is None else request.options)


@dataclass(slots=True)
class _Filler:
    query: Query
    options: Options
    catalog: Catalog
    tables: PublicTables
    place: int
    missing: list[MissingLimit] = field(default_factory=list)

    def fill(self) -> Options:
        """Return the options with defaults, and note what is missing."""
        options = self.options
        units = replace(self.query, aggregates=(("n", Aggregate(function=Function.COUNT_UNITS)),))
        if options.max_groups is None and self.query.keys and self._is_refused(units, options):
            options = replace(options, max_groups=_UNCAPPED)
            if bound(units, self.catalog, options, self.tables).query.declared is None:
                self._note(self._groups())
        for name, one in self.query.aggregates:
            alone = replace(self.query, aggregates=((name, one),))
            if not self._is_refused(alone, options):
                continue
            if one.function.record.adds_up and one.bounds_per_row is None and options.max_rows is None:
                self._note(self._buckets(one, per_group=True), name, per_group=True)
                continue
            if options.max_rows is None:
                options = replace(options, max_rows=_MOST_ROWS)
            if one.function.record.clamps and len(one.arguments) == 1 and self._is_refused(alone, options):
                self._note(self._buckets(one, per_group=False), name)
        return options

    def _note(self, request: Request, *aggregates: str, per_group: bool = False) -> None:
        """Note a limit that is missing; aggregates of the same values have the same bounds."""
        new = MissingLimit(request=request, query=self.place, aggregates=aggregates, per_group=per_group)
        for place, one in enumerate(self.missing):
            if one.request.queries == request.queries:
                self.missing[place] = replace(one, aggregates=(*one.aggregates, *aggregates))
                return
        self.missing.append(new)

    def _is_refused(self, query: Query, options: Options) -> bool:
        """Whether a question is refused because something about it is not known."""
        try:
            bound(query, self.catalog, options, self.tables)
        except QueryRefused as refusal:
            return refusal.code == "SF405"
        return False

    def _buckets(self, aggregate: Aggregate, *, per_group: bool) -> Request:
        """Ask how many units have values in each bucket; all values of one unit weigh 1 together."""
        plain = replace(aggregate, share=None)
        source: Relation = self.query.source
        if per_group:
            source, kind = self._by_group(plain), plain.kind
        else:
            [value] = plain.arguments
            if plain.where is not None:
                source = Filter(source=source, condition=plain.where)
            source, kind = Projection(source=source, columns=((f"{_AT}.value", value),)), value.kind
        column = ColumnRef(name=f"{_AT}.value", kind=kind or Kind.REAL)
        there = call("not", (call("is_null", (column,)),))
        buckets = Buckets.of(column.kind)
        columns = ((f"{_AT}.bucket", buckets.index(column)),)
        source = Projection(source=Filter(source=source, condition=there), columns=columns)
        place = ColumnRef(name=f"{_AT}.bucket", kind=Kind.INTEGER)
        asked = Aggregate(function=Function.HISTOGRAM, arguments=(place,))
        what = "what one unit adds to" if per_group else "values of"
        called = f"{what} {_written(aggregate, self.query.text)}"
        sought = SoughtBounds(buckets=buckets, column=called, share=0.0, false_alarm=_FALSE_ALARM)
        return replace(self._request(source, asked, Options(max_rows=1)), sought=sought)

    def _groups(self) -> Request:
        """Ask in how many groups nearly all units are."""
        rows = self._by_group(Aggregate(function=Function.COUNT_ROWS))
        column = ColumnRef(name=f"{_AT}.groups", kind=Kind.INTEGER)
        counted = (column.name, Aggregate(function=Function.COUNT_ROWS))
        asked = Aggregate(
            function=Function.QUANTILE,
            arguments=(column,),
            quantiles=(_KEPT,),
            bounds_per_row=(1.0, float(_MOST_GROUPS)),
        )
        source = PerUnit(source=rows, keys=(), aggregates=(counted,))
        return self._request(source, asked, Options(intervals=False))

    def _by_group(self, aggregate: Aggregate) -> PerUnit:
        """Return one row per unit and group, with an aggregate of the unit's own rows there."""
        return PerUnit(
            source=self.query.source,
            keys=tuple((f"{_AT}.{name}", key) for name, key in self.query.keys),
            aggregates=((f"{_AT}.value", aggregate),),
        )

    def _request(self, source: Relation, asked: Aggregate, options: Options) -> Request:
        query = Query(
            source=source, keys=(), grouping_sets=((),), aggregates=(("limit", asked),), text=self.query.text
        )
        return Request(
            text=self.query.text,
            queries=(NamedQuery(name="released", query=query),),
            postprocessing=None,
            options=replace(options, noise=self.options.noise),
        )
