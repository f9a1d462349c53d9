"""Losses: what clamping values and capping units takes from a question, asked as a question of its own.

For a question over rows of units, first one row per unit and group, then one row per unit:

    people            units that take part
    over_max_rows     those with more rows in some group than count
    over_max_groups   those in more groups than count
    over_max_distinct those with more values in some group than count
    rows              rows, of which each unit shows at most max_rows * max_groups
    outside_x         rows of these in which x lies outside its bounds, likewise
    outside_x_share   the quotient of both
    sums_outside_x    where one unit's sum in a group is clamped: groups in which it was

Each is a sum of one number per unit, between public bounds. Where a unit is one row there is no
cap to exceed, and only values outside are counted.
"""

from __future__ import annotations

import datetime
from dataclasses import dataclass, field, replace
from fractions import Fraction
from typing import NoReturn

from sfumato.aggregates.registry import Function
from sfumato.analysis.bounded import Bounding, MeasureKind
from sfumato.analysis.bounding import bound
from sfumato.analysis.calendar import bounded
from sfumato.analysis.domains import columns_of, narrowed
from sfumato.analysis.ranges import Known, known_of
from sfumato.analysis.shapes import one_row_per_unit
from sfumato.catalog.catalog import Catalog
from sfumato.catalog.identifiers import identifier
from sfumato.catalog.kind import Kind, Value, kind_of
from sfumato.errors import QueryRefused
from sfumato.plan.functions import call
from sfumato.plan.outline import outline_expression
from sfumato.plan.request import NamedQuery, Request
from sfumato.plan.tree import Aggregate, ColumnRef, Expression, Filter, Literal, PerUnit, Query, Relation

__all__ = ["losses_request"]

_ROWS = Aggregate(function=Function.COUNT_ROWS)
_CLAMPED = {
    Function.SUM,
    Function.AVG,
    Function.VAR_POP,
    Function.VAR_SAMP,
    Function.STDDEV_POP,
    Function.STDDEV_SAMP,
    Function.COVAR_POP,
    Function.COVAR_SAMP,
    Function.CORR,
    Function.QUANTILE,
    Function.MIN,
    Function.MAX,
    Function.HISTOGRAM,
}
_End = Fraction | datetime.date
_NOT_COVERED = (
    "intervals cover the numbers of rows and units that are shown; not by how much values were outside,"
    " nor what the answers would have been without clamping and capping"
)


def losses_request(request: Request, catalog: Catalog) -> Request:
    """Return the request that asks what a request loses; refuse where it loses nothing."""
    if len(request.queries) != 1:
        _refuse(request.text, "this asks several private questions", "ask for the losses of each by itself")
    [named] = request.queries
    bounding = bound(named.query, catalog, request.options)
    losses = _Losses(query=named.query, bounding=bounding, columns=columns_of(named.query.source, catalog))
    one_row = bounding.query.row_unit or one_row_per_unit(named.query.source)
    query = losses.by_row() if one_row else losses.by_unit()
    shown = [f"{identifier(name)}" for name, _ in query.aggregates]
    shown += [
        f"{identifier(name)} / nullif({identifier('rows')}, 0) AS {identifier(f'{name}_share')}"
        for name, _ in query.aggregates
        if name.startswith("outside_")
    ]
    notes = ["each unit is one row: there are no caps to exceed"] if one_row else losses.notes()
    return Request(
        text="",
        queries=(NamedQuery(name=named.name, query=query),),
        postprocessing=f"SELECT {', '.join(shown)} FROM {identifier(named.name)}",
        notes=(*notes, _NOT_COVERED),
    )


@dataclass(slots=True, kw_only=True)
class _Losses:
    query: Query
    bounding: Bounding
    columns: dict[str, Known]
    names: list[str] = field(default_factory=list)

    # -- units of one row --------------------------------------------------------------------

    def by_row(self) -> Query:
        found = [
            (self._name(f"outside_{_said(expression)}"), replace(_ROWS, where=condition))
            for expression, condition in self._outside(sums=True)
        ]
        if not found:
            _refuse(
                self.query.text,
                "each unit is one row, and no value is clamped: nothing is lost",
                "what is left out is then what WHERE and declared groups leave out",
            )
        return Query(
            source=self._kept(),
            keys=(),
            grouping_sets=((),),
            aggregates=(("rows", _ROWS), *found),
            text="",
        )

    # -- units of several rows ---------------------------------------------------------------

    def by_unit(self) -> Query:
        """Return one number per unit and loss, each between public bounds."""
        inner: list[tuple[str, Aggregate]] = [("group.rows", _ROWS)]
        outer: list[tuple[str, Aggregate]] = [
            ("unit.groups", _ROWS),
            ("unit.most", _of(Function.MAX, "group.rows")),
            ("unit.rows", _of(Function.SUM, "group.rows")),
        ]
        asked: list[tuple[str, Aggregate]] = [("people", _ROWS)]
        groups = self._max_groups
        rows = self.bounding.query.max_rows if self._rows_matter else None
        if rows is not None:
            asked.append(("over_max_rows", _over("unit.most", rows)))
        if self.query.keys:
            asked.append(("over_max_groups", _over("unit.groups", groups)))
        for place, (expression, where, most) in enumerate(self._distinct()):
            values = Aggregate(function=Function.COUNT_DISTINCT, arguments=(expression,), where=where)
            inner.append((f"group.d{place}", values))
            outer.append((f"unit.d{place}", _of(Function.MAX, f"group.d{place}")))
            asked.append((self._name("over_max_distinct"), _over(f"unit.d{place}", most)))
        if rows is not None:
            limit = rows * groups
            asked.append(("rows", _sum("unit.rows", limit)))
            for place, (expression, condition) in enumerate(self._outside(sums=False)):
                inner.append((f"group.o{place}", replace(_ROWS, where=condition)))
                outer.append((f"unit.o{place}", _of(Function.SUM, f"group.o{place}")))
                asked.append((self._name(f"outside_{_said(expression)}"), _sum(f"unit.o{place}", limit)))
        for place, (label, aggregate, (low, high)) in enumerate(self._sums()):
            kind = Kind.INTEGER if aggregate.function is not Function.SUM else aggregate.arguments[0].kind
            inner.append((f"group.s{place}", aggregate))
            sums = ColumnRef(name=f"group.s{place}", kind=kind or Kind.REAL)
            clamped = replace(_ROWS, where=_beyond(sums, low, high))
            outer.append((f"unit.s{place}", clamped))
            asked.append((self._name(f"sums_outside_{label}"), _sum(f"unit.s{place}", groups)))
        keys = tuple((f"group.k{place}", key) for place, (_, key) in enumerate(self.query.keys))
        per_group = PerUnit(source=self._kept(), keys=keys, aggregates=tuple(inner))
        per_unit = PerUnit(source=per_group, keys=(), aggregates=tuple(outer))
        return Query(source=per_unit, keys=(), grouping_sets=((),), aggregates=tuple(asked), text="")

    def notes(self) -> list[str]:
        rows, groups = self.bounding.query.max_rows, self._max_groups
        caps = [f"max_rows = {rows:,}"] if rows is not None and self._rows_matter else []
        caps += [f"max_groups = {groups:,}"] if self.query.keys else []
        if not caps:
            return []
        told = f"the caps of the question are {' and '.join(caps)}"
        if rows is not None and self._rows_matter:
            told += f"; of one unit at most {rows * groups:,} rows are counted here"
        return [told]

    @property
    def _max_groups(self) -> int:
        return self.bounding.query.max_groups or 1

    @property
    def _rows_matter(self) -> bool:
        """Whether some number depends on how many rows of a unit count."""
        return any(
            measure.kind is MeasureKind.CELLS or (measure.kind is MeasureKind.MOMENT and not measure.clamp)
            for measure in self.bounding.query.measures
        )

    # -- what can be lost --------------------------------------------------------------------

    def _kept(self) -> Relation:
        """Return the rows of the question that fall into declared groups."""
        source = self.query.source
        for place, (_, key) in enumerate(self.query.keys):
            if self.bounding.query.declared is not None and known_of(key, self.columns).declared:
                values = dict.fromkeys(group[place] for group in self.bounding.query.declared)
                source = Filter(source=source, condition=call("in", (key, *map(_literal, values))))
        return source

    def _outside(self, *, sums: bool) -> list[tuple[Expression, Expression]]:
        """Return each argument that is clamped, and the condition that a row is outside its bounds.

        With `sums`, also of those that are clamped as a sum: of one row it is the value itself.
        """
        found: dict[tuple[Expression, Expression], None] = {}
        for _, aggregate in self.query.aggregates:
            if aggregate.function not in _CLAMPED:
                continue
            given = aggregate.bounds_per_row
            if aggregate.bounds_per_group is not None:
                if not sums:
                    continue
                given = aggregate.bounds_per_group
            known = self.columns if aggregate.where is None else dict(narrowed(self.columns, aggregate.where))
            for argument in aggregate.arguments:
                what = known_of(argument, known)
                if argument.kind in (Kind.DATE, Kind.TIMESTAMP) and not what.values:
                    dates = bounded(what.dates)
                    if dates is None:
                        continue
                    condition = _beyond(argument, *dates)
                elif argument.kind is None or not argument.kind.numeric:
                    continue
                elif given is not None:
                    condition = _beyond(argument, Fraction(given[0]), Fraction(given[1]))
                else:
                    ends = None if what.interval is None else (what.interval.low, what.interval.high)
                    if what.values or ends is None or not all(isinstance(end, Fraction) for end in ends):
                        continue
                    condition = _beyond(argument, Fraction(ends[0]), Fraction(ends[1]))
                if aggregate.where is not None:
                    condition = call("and", (aggregate.where, condition))
                found[argument, condition] = None
        return list(found)

    def _sums(self) -> list[tuple[str, Aggregate, tuple[Fraction, Fraction]]]:
        """Return what is clamped as one unit's sum in a group."""
        found = []
        for _, aggregate in self.query.aggregates:
            if aggregate.bounds_per_group is not None:
                label = _said(aggregate.arguments[0]) if aggregate.arguments else "rows"
                low, high = (Fraction(end) for end in aggregate.bounds_per_group)
                found.append((label, replace(aggregate, bounds_per_group=None), (low, high)))
        return found

    def _distinct(self) -> list[tuple[Expression, Expression | None, int]]:
        """Return what is counted distinct, and how many values of one unit count."""
        sensitivities = {measure.name: measure.sensitivity for measure in self.bounding.query.measures}
        found = []
        for name, aggregate in self.query.aggregates:
            if aggregate.function is Function.COUNT_DISTINCT:
                measure = self.bounding.answer(name).measures[0]
                found.append((aggregate.arguments[0], aggregate.where, sensitivities[measure]))
        return found

    def _name(self, wanted: str) -> str:
        name, number = wanted, 1
        while name in self.names:
            number += 1
            name = f"{wanted}_{number}"
        self.names.append(name)
        return name


# -- parts ----------------------------------------------------------------------------------


def _of(function: Function, name: str) -> Aggregate:
    return Aggregate(function=function, arguments=(ColumnRef(name=name, kind=Kind.INTEGER),))


def _over(name: str, most: int) -> Aggregate:
    more = call(">", (ColumnRef(name=name, kind=Kind.INTEGER), _literal(most)))
    return replace(_ROWS, where=more)


def _sum(name: str, most: int) -> Aggregate:
    capped = call("least", (ColumnRef(name=name, kind=Kind.INTEGER), _literal(most)))
    return Aggregate(function=Function.SUM, arguments=(capped,))


def _beyond(value: Expression, low: _End, high: _End) -> Expression:
    """Return whether a value lies outside bounds; NULL, which is outside nothing, is not."""
    return call("or", (call("<", (value, _bound(low))), call(">", (value, _bound(high)))))


def _bound(end: _End) -> Literal:
    if isinstance(end, datetime.date):
        return _literal(end)
    small = end.denominator == 1 and abs(end) < 2**62
    return _literal(int(end) if small else float(end))


def _literal(value: Value) -> Literal:
    return Literal(value=value, kind=kind_of(value))


def _said(value: Expression) -> str:
    return outline_expression(value, alias=False)


def _refuse(text: str, message: str, *hints: str) -> NoReturn:
    raise QueryRefused(message, code="SF404", text=text, hints=hints)
