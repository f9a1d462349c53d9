"""Clipping bias: what clamping values and capping units takes from a question, asked as its own question.

For a question over rows of units, first one row per unit and group, then one row per unit:

    people            units that take part
    over_max_rows     those with more rows in some group than count
    over_max_groups   those in more groups than count
    over_max_distinct those with more values in some group than count
    kept_share        the share of rows that count: `kept` / `found` (see below)
    rows              rows; each unit shows at most max_rows * max_groups of them
    outside_x         of these rows, those in which x lies outside its bounds: a unit of n rows, o of
                      them outside, adds o / n of what it adds to `rows`
    outside_x_share   the quotient of both
    sums_outside_x    where one unit's sum in a group is clamped: groups in which it was

What caps leave of a unit with n rows is at most M = max_rows * max_groups of them. `found` is the sum of
min(n, 8 M) over units, `kept` that of what caps leave: of each group g the weight min(n_g, max_rows), times
the share of the unit's groups that count, for which groups these are is drawn by a hash. Where no number
depends on rows (units are counted), both count the groups of a unit instead.

Theorem: each is a sum of one number per unit, between public bounds 0 and B: 1, M, 8 M or `max_groups`. So
one unit changes it by at most B, whatever its rows are: the sensitivity of a sum over relations of one row
per unit (`analysis/measures`). Where a unit is one row there is no cap to exceed, and only values outside
are counted.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sfumato.aggregates.registry import Function
from sfumato.analysis.bounded import Bounding, MeasureKind
from sfumato.analysis.bounding import bound
from sfumato.analysis.clamped_arguments import beyond, biting, clamped_sums, literal
from sfumato.analysis.domains import columns_of
from sfumato.analysis.public_keys import PublicTables
from sfumato.analysis.ranges import Known
from sfumato.analysis.shapes import one_row_per_unit
from sfumato.catalog.catalog import Catalog
from sfumato.catalog.identifiers import identifier
from sfumato.catalog.kind import Kind
from sfumato.plan.conditions import one_of
from sfumato.plan.functions import call
from sfumato.plan.hints import refuse
from sfumato.plan.outline import outline_expression
from sfumato.plan.request import NamedQuery, Request
from sfumato.plan.tree import Aggregate, ColumnRef, Expression, Filter, PerUnit, Query, Relation

__all__ = ["Limits", "SEEN", "losses_of", "losses_request"]

_ROWS = Aggregate(function=Function.COUNT_ROWS)
_COUNTS = {Function.COUNT_ROWS, Function.COUNT}
_NOT_COVERED = (
    "intervals cover the numbers of rows and units that are shown; not by how much values were outside,"
    " nor what the answers would have been without clamping and capping"
)


SEEN = 8
"""To measure what caps take, at most this many times the rows that they leave of a unit are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """What may bite: caps as `max_rows = 1`, and expressions whose values are moved into bounds.

    The interval of an answer says nothing of what these took: where a unit has many rows, a cap of 1 takes
    most of them, and the answer looks exact. So each answer names its limits.
    """

    caps: tuple[str, ...] = ()
    bounds: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.caps or self.bounds)

    @property
    def said_caps(self) -> str:
        """The caps in words."""
        return f"the cap{'s' * (len(self.caps) > 1)} {' and '.join(self.caps)}"

    @property
    def caps_rows(self) -> bool:
        """Whether rows are capped, and not only groups or values."""
        return any(cap.startswith("max_rows") for cap in self.caps)

    def __str__(self) -> str:
        said = [self.said_caps] if self.caps else []
        said += [f"the bounds of {', '.join(f'`{one}`' for one in self.bounds)}"] if self.bounds else []
        return ", and ".join(said)

    @property
    def unknown(self) -> str:
        """What is said of an answer whose losses were not measured."""
        said = ", ".join([*self.caps, *(f"the bounds of `{one}`" for one in self.bounds)])
        return f"not in the intervals: what {said} left out; `sfumato losses` (losses=True) tells how much"


def losses_request(request: Request, catalog: Catalog, tables: PublicTables | None = None) -> Request:
    """Return the request that asks what a request loses; refuse where it loses nothing."""
    if len(request.queries) != 1:
        hint = "ask for the losses of each by itself"
        refuse(request.text, "this asks several private questions", hint, code="SF404")
    [named] = request.queries
    bounding = bound(named.query, catalog, request.options, tables)
    losses = _losses(named.query, catalog, bounding)
    query = losses.by_row() if losses.one_row else losses.by_unit()
    names = [name for name, _ in query.aggregates]
    shown = [identifier(name) for name in names if name not in ("kept", "found")]
    if "kept" in names:
        share = f"{identifier('kept')} / nullif({identifier('found')}, 0) AS {identifier('kept_share')}"
        shown.insert(shown.index(identifier("rows")) if "rows" in names else len(shown), share)
    shown += [
        f"{identifier(name)} / nullif({identifier('rows')}, 0) AS {identifier(f'{name}_share')}"
        for name, _ in query.aggregates
        if name.startswith("outside_")
    ]
    notes = ["each unit is one row: there are no caps to exceed"] if losses.one_row else losses.notes()
    return Request(
        text="",
        queries=(NamedQuery(name=named.name, query=query),),
        postprocessing=f"SELECT {', '.join(shown)} FROM {identifier(named.name)}",
        notes=(*notes, _NOT_COVERED),
    )


def losses_of(
    query: Query, catalog: Catalog, bounding: Bounding, *, measured: bool
) -> tuple[Limits, Query | None]:
    """Return what may take something off the answers of a question, and the few sums that tell how much.

    The sums are `kept` and `found`, and for values outside their bounds `rows` and `outside_x`. None: nothing
    is to be `measured`, or can be.
    """
    losses = _losses(query, catalog, bounding)
    limits = losses.limits()
    if not measured or not limits:
        return limits, None
    sums = losses.by_row() if losses.one_row else losses.by_unit(brief=True)
    return limits, sums if sums.aggregates else None


def _losses(query: Query, catalog: Catalog, bounding: Bounding) -> _Losses:
    return _Losses(
        query=query,
        bounding=bounding,
        columns=columns_of(query.source, catalog),
        undeclared=columns_of(query.source, catalog.undeclared()),
    )


@dataclass(slots=True, kw_only=True)
class _Losses:
    query: Query
    bounding: Bounding
    columns: dict[str, Known]
    undeclared: dict[str, Known]  # what would be known of them if nothing were declared
    names: list[str] = field(default_factory=list)

    @property
    def one_row(self) -> bool:
        """Whether each unit has one row at most, so that no cap can bite."""
        return self.bounding.query.row_unit or one_row_per_unit(self.query.source)

    def limits(self) -> Limits:
        """Return what may bite."""
        caps = []
        if not self.one_row:
            query = self.bounding.query
            if query.max_rows is not None and self._rows_matter:
                caps.append(f"max_rows = {query.max_rows:,}")
            if query.max_total is not None and self._rows_matter:
                caps.append(f"max_rows_total = {query.max_total:,}")
            if self.query.keys and (query.declared is None or self._max_groups < len(query.declared)):
                caps.append(f"max_groups = {self._max_groups:,}")
            caps += [f"max_distinct = {most:,}" for _, _, most in self._distinct()]
        clamped = [
            outline_expression(argument)
            for argument, _ in biting(self.query, self.columns, self.undeclared, sums=True)
        ]
        clamped += [f"{label} per unit" for label, _, _ in clamped_sums(self.query) if not self.one_row]
        return Limits(caps=tuple(dict.fromkeys(caps)), bounds=tuple(dict.fromkeys(clamped)))

    # -- units of one row --------------------------------------------------------------------

    def by_row(self) -> Query:
        found = [
            (self._name(f"outside_{outline_expression(expression)}"), replace(_ROWS, where=condition))
            for expression, condition in biting(self.query, self.columns, self.undeclared, sums=True)
        ]
        if not found:
            refuse(
                self.query.text,
                "each unit is one row, and no value is clamped: nothing is lost",
                "what is left out is then what WHERE and declared groups leave out",
                code="SF404",
            )
        return Query(
            source=self._kept(), keys=(), grouping_sets=((),), aggregates=(("rows", _ROWS), *found), text=""
        )

    # -- units of several rows ---------------------------------------------------------------

    def by_unit(self, *, brief: bool = False) -> Query:
        """Return one number per unit and loss, each between public bounds; brief: of rows alone."""
        inner: list[tuple[str, Aggregate]] = [("group.rows", _ROWS)]
        outer: list[tuple[str, Aggregate]] = [
            ("unit.groups", _ROWS),
            ("unit.most", _of(Function.MAX, "group.rows")),
            ("unit.rows", _of(Function.SUM, "group.rows")),
        ]
        groups = self._max_groups
        rows = self.bounding.query.max_rows if self._rows_matter else None
        asked: list[tuple[str, Aggregate]] = []
        if not brief:
            asked += self._counted(inner, outer, rows)
        if rows is not None:
            capped = call("least", (_column("group.rows"), literal(rows)))
            outer.append(("unit.capped", Aggregate(function=Function.SUM, arguments=(capped,))))
        asked += self._kept_and_found(rows)
        outside = [] if rows is None else biting(self.query, self.columns, self.undeclared, sums=False)
        if rows is not None and (outside or not brief):
            limit = rows * groups
            asked.append(("rows", _sum("unit.rows", limit)))
            for place, (expression, condition) in enumerate(outside):
                inner.append((f"group.o{place}", replace(_ROWS, where=condition)))
                outer.append((f"unit.o{place}", _of(Function.SUM, f"group.o{place}")))
                seen = call("least", (_column("unit.rows"), literal(limit)))
                weighed = call("/", (call("*", (_column(f"unit.o{place}"), seen)), _column("unit.rows")))
                asked.append(
                    (self._name(f"outside_{outline_expression(expression)}"), _between(weighed, limit))
                )
        for place, (label, aggregate, (low, high)) in enumerate(() if brief else clamped_sums(self.query)):
            kind = aggregate.kind
            inner.append((f"group.s{place}", aggregate))
            sums = ColumnRef(name=f"group.s{place}", kind=kind or Kind.REAL)
            clamped = replace(_ROWS, where=beyond(sums, low, high))
            outer.append((f"unit.s{place}", clamped))
            asked.append((self._name(f"sums_outside_{label}"), _sum(f"unit.s{place}", groups)))
        keys = tuple((f"group.k{place}", key) for place, (_, key) in enumerate(self.query.keys))
        per_group = PerUnit(source=self._kept(), keys=keys, aggregates=tuple(inner))
        per_unit = PerUnit(source=per_group, keys=(), aggregates=tuple(outer))
        return Query(source=per_unit, keys=(), grouping_sets=((),), aggregates=tuple(asked), text="")

    def _counted(
        self, inner: list[tuple[str, Aggregate]], outer: list[tuple[str, Aggregate]], rows: int | None
    ) -> list[tuple[str, Aggregate]]:
        """Return the numbers of units, and of those that exceed each cap."""
        asked: list[tuple[str, Aggregate]] = [("people", _ROWS)]
        if rows is not None:
            asked.append(("over_max_rows", _over("unit.most", rows)))
        if self.query.keys:
            asked.append(("over_max_groups", _over("unit.groups", self._max_groups)))
        for place, (expression, where, most) in enumerate(self._distinct()):
            values = Aggregate(function=Function.COUNT_DISTINCT, arguments=(expression,), where=where)
            inner.append((f"group.d{place}", values))
            outer.append((f"unit.d{place}", _of(Function.MAX, f"group.d{place}")))
            asked.append((self._name("over_max_distinct"), _over(f"unit.d{place}", most)))
        return asked

    def _kept_and_found(self, rows: int | None) -> list[tuple[str, Aggregate]]:
        """Return the rows that caps leave, and those that there are: the module says which."""
        most = self._max_groups * (rows or 1)
        if rows is None and not self.query.keys:
            return []
        kept: Expression = _column("unit.groups" if rows is None else "unit.capped")
        if self.query.keys:
            groups = _column("unit.groups")
            chosen = call("least", (groups, literal(self._max_groups)))
            kept = chosen if rows is None else call("/", (call("*", (kept, chosen)), groups))
        if rows is not None and self.bounding.query.max_total is not None:
            most = self.bounding.query.max_total  # what is kept is moved down to it
        return [
            ("kept", _between(kept, most)),
            ("found", _sum("unit.groups" if rows is None else "unit.rows", SEEN * most)),
        ]

    def notes(self) -> list[str]:
        rows, groups = self.bounding.query.max_rows, self._max_groups
        caps = [f"max_rows = {rows:,}"] if rows is not None and self._rows_matter else []
        caps += [f"max_groups = {groups:,}"] if self.query.keys else []
        if not caps:
            return []
        told = f"the caps of the question are {' and '.join(caps)}"
        if rows is not None and self._rows_matter:
            told += f"; of one unit at most {rows * groups:,} rows are counted here"
        told += f", and for kept_share {SEEN} times as many rows as caps leave"
        return [told]

    @property
    def _max_groups(self) -> int:
        return self.bounding.query.max_groups or 1

    @property
    def _rows_matter(self) -> bool:
        """Whether some number depends on how many rows of a unit count."""
        if any(one.function in _COUNTS and one.bounds_per_group is None for _, one in self.query.aggregates):
            return True  # also where one unit counts as one row, and units are counted
        return any(
            measure.kind is MeasureKind.CELLS or (measure.kind is MeasureKind.MOMENT and not measure.clamp)
            for measure in self.bounding.query.measures
        )

    # -- what can be lost --------------------------------------------------------------------

    def _kept(self) -> Relation:
        """Return the rows of the question that fall into declared groups."""
        declared, keys = self.bounding.query.declared, [key for _, key in self.query.keys]
        if declared is None or not keys:
            return self.query.source
        return Filter(source=self.query.source, condition=one_of(keys, declared))

    def _distinct(self) -> list[tuple[Expression, Expression | None, int]]:
        """Return whose distinct values are asked for, and how many values of one unit count."""
        most = {measure.name: measure.max_values for measure in self.bounding.query.measures}
        found = []
        for name, aggregate in self.query.aggregates:
            if aggregate.function in (Function.COUNT_DISTINCT, Function.SUM_DISTINCT):
                measure = self.bounding.answer(name).measures[0]
                found.append((aggregate.arguments[0], aggregate.where, most[measure]))
        return found

    def _name(self, wanted: str) -> str:
        name, number = wanted, 1
        while name in self.names:
            number += 1
            name = f"{wanted}_{number}"
        self.names.append(name)
        return name


# -- parts ----------------------------------------------------------------------------------


def _column(name: str) -> ColumnRef:
    return ColumnRef(name=name, kind=Kind.INTEGER)


def _of(function: Function, name: str) -> Aggregate:
    return Aggregate(function=function, arguments=(_column(name),))


def _over(name: str, most: int) -> Aggregate:
    return replace(_ROWS, where=call(">", (_column(name), literal(most))))


def _between(value: Expression, most: int) -> Aggregate:
    return Aggregate(function=Function.SUM, arguments=(value,), bounds_per_row=(0.0, float(most)))


def _sum(name: str, most: int) -> Aggregate:
    capped = call("least", (_column(name), literal(most)))
    return Aggregate(function=Function.SUM, arguments=(capped,))
