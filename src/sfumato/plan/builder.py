"""The same questions from Python calls: `table("people", catalog).where(..).group_by(..).agg(..)`.

    table("visits", catalog).where(col("cost") > 0).group_by("clinic").agg(n=count(), s=sum_("cost"))

builds the tree that

    SELECT clinic, COUNT(*) AS n, SUM(cost) AS s FROM visits WHERE cost > 0 GROUP BY clinic

builds. Frames are values: each call returns another, and nothing is read.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Generic, NoReturn, TypeVar

from sfumato.aggregates.registry import Function
from sfumato.catalog.catalog import Catalog
from sfumato.catalog.identifiers import identifier
from sfumato.catalog.kind import Kind
from sfumato.errors import InvalidArgument, SfumatoError
from sfumato.plan import tree
from sfumato.plan.conditions import kept
from sfumato.plan.conversions import as_argument, as_condition
from sfumato.plan.groups import cubed, rolled_up
from sfumato.plan.hints import did_you_mean, refuse
from sfumato.plan.limits import MOST_GROUPING_SETS
from sfumato.plan.numbers import KindError
from sfumato.plan.projections import united
from sfumato.plan.question import Statement
from sfumato.plan.relations import join_rows, table_rows
from sfumato.plan.request import NamedQuery, Request
from sfumato.plan.scope import Columns, Output, Scope, ScopedRows, ScopedSource
from sfumato.plan.summaries import Summary
from sfumato.plan.values import Val, col, val

__all__ = ["Frame", "Grouped", "table"]

_T = TypeVar("_T")

_JOINS = {"inner": (False, False), "left": (True, False), "right": (False, True), "full": (True, True)}


def table(
    name: str, catalog: Catalog, finish: Callable[[Request], _T], *, alias: str | None = None
) -> Frame[_T]:
    """Return the rows of a table of the catalog."""
    if not isinstance(name, str):
        raise InvalidArgument("a table is named by a text", place="table", hints=("db.table('people')",))
    found = catalog.table(name) or catalog.named(*name.split("."))
    if found is None:
        hint = f"known tables: {', '.join(sorted(one.name for one in catalog.tables))}"
        _refuse(f"no table `{name}`", "SF402", hint)
    known = alias or found.name

    def build(question: Statement) -> tuple[ScopedRows, Scope]:
        return _named(table_rows(found, known, question), known)

    return Frame(catalog=catalog, build=build, finish=finish)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Frame(Generic[_T]):
    """Rows: of people, each of exactly one unit, or public. `finish` makes a question of a request."""

    catalog: Catalog
    build: Callable[[Statement], tuple[ScopedRows, Scope]]
    finish: Callable[[Request], _T]
    conditions: tuple[Val, ...] = ()

    # -- rows from rows ----------------------------------------------------------------------

    def where(self, *conditions: Val) -> Frame[_T]:
        """Return the rows for which all conditions hold."""
        return replace(self, conditions=(*self.conditions, *conditions))

    def select(self, *names: str, alias: str = "subquery", **columns: Any) -> Frame[_T]:
        """Return columns by name, and new ones from expressions; the unit comes along unseen."""

        def build(question: Statement) -> tuple[ScopedRows, Scope]:
            known = question.alias(alias)
            rows, scope = self._built(question)
            selected = Columns(known, _units(rows))
            for name, value in {**{_last(name): col(name) for name in names}, **columns}.items():
                expression = _read(value, scope)
                selected.add(name, expression, _kind(expression, name))
            return _named(selected.over(rows.relation, rows.unit), alias)

        return replace(self, build=build, conditions=())

    def join(
        self, other: Frame[_T], on: Val | None = None, *, unit: bool = False, how: str = "inner"
    ) -> Frame[_T]:
        """Return rows beside matching rows: of a public frame, or of the same unit with `unit=True`."""
        if how not in _JOINS:
            hint = "how='inner' or how='left'"
            raise InvalidArgument("how is not a kind of join", place="how", hints=(hint,))
        outer, keeps_right = _JOINS[how]
        _check_frames(other)

        def build(question: Statement) -> tuple[ScopedRows, Scope]:
            left, scope = self._built(question)
            right, beside = other._built(question)
            far = [source.far() for source in beside.sources] if outer else beside.sources
            both = Scope(sources=[*scope.sources, *far], merged=scope.merged | beside.merged)
            if len({source.alias.lower() for source in both.sources}) < len(both.sources):
                _refuse("two tables of a join have one alias", "SF402", "table(name, catalog, alias=..)")
            condition = None if on is None else _condition(on, both)
            relation = tree.Join(
                left=left.relation,
                right=right.relation,
                condition=condition,
                on_unit=unit,
                outer=outer,
                keeps_right=keeps_right,
            )
            return join_rows(relation, left, right, question), both

        return replace(self, build=build, conditions=())

    def not_exists(self, other: Frame[_T], on: Val | None = None, *, unit: bool = False) -> Frame[_T]:
        """Return the rows for which another frame has no matching row."""
        return self.exists(other, on, unit=unit, negated=True)

    def exists(
        self, other: Frame[_T], on: Val | None = None, *, unit: bool = False, negated: bool = False
    ) -> Frame[_T]:
        """Return the rows for which another frame has a matching row; `negated`: has none."""
        _check_frames(other)

        def build(question: Statement) -> tuple[ScopedRows, Scope]:
            rows, scope = self._built(question)
            inner, inside = other._built(question)
            both = Scope(sources=[*scope.sources, *inside.sources])
            condition = None if on is None else _condition(on, both)
            relation = tree.SemiJoin(
                source=rows.relation, other=inner.relation, condition=condition, on_unit=unit, negated=negated
            )
            return replace(rows, relation=relation), scope

        return replace(self, build=build, conditions=())

    def union_all(self, *others: Frame[_T], alias: str = "subquery") -> Frame[_T]:
        """Return these rows and those of other frames of the same unit; columns go by their places."""
        _check_frames(*others)

        def build(question: Statement) -> tuple[ScopedRows, Scope]:
            known = question.alias(alias)
            branches = [frame._built(question)[0] for frame in (self, *others)]
            return _named(united(branches, known, question, [None] * len(branches)), alias)

        return replace(self, build=build, conditions=())

    def per_unit(self, *keys: str, alias: str = "subquery", **aggregates: Summary) -> Frame[_T]:
        """Return one row per unit and keys, with exact aggregates of the unit's own rows."""

        def build(question: Statement) -> tuple[ScopedRows, Scope]:
            known = question.alias(alias)
            rows, scope = self._built(question)
            under = question.alias(f"{known}_units")
            inner: list[tuple[str, tree.Expression]] = []
            found: list[tuple[str, tree.Aggregate]] = []
            columns = Columns(known, _units(rows))
            for position, key in enumerate(keys):
                expression = _read(col(key), scope)
                kind = _kind(expression, key)
                inner.append((f"{under}.k{position}", expression))
                columns.add(_last(key), tree.ColumnRef(name=inner[-1][0], kind=kind), kind)
            for position, (name, summary) in enumerate(aggregates.items()):
                aggregate = _aggregate(summary, scope, inner=True)
                if aggregate.kind is None:
                    _refuse("a list cannot be a column of an inner frame", "SF404")
                found.append((f"{under}.a{position}", aggregate))
                column = tree.ColumnRef(name=found[-1][0], kind=aggregate.kind)
                columns.add(name, column, aggregate.kind)
            units = tree.PerUnit(source=rows.relation, keys=tuple(inner), aggregates=tuple(found))
            return _named(columns.over(units, rows.unit), alias)

        return replace(self, build=build, conditions=())

    def readable(self) -> tuple[tree.Relation, dict[str, tree.ColumnRef]]:
        """Return the rows, and the columns that can be read of them by the names that mean one of them."""
        rows, scope = self._built(Statement("", self.catalog))
        found = [(output.name, output.column) for output in scope.all() if output.column is not None]
        known = {name: column for name, column in found if len(scope.find(name)) == 1}
        return rows.relation, known

    # -- the question ------------------------------------------------------------------------

    def group_by(self, *keys: str | Val, **named: Val) -> Grouped[_T]:
        """Return groups by columns, and by expressions under names."""
        pairs = _key_names(keys, named)
        return Grouped(frame=self, keys=pairs, sets=(tuple(range(len(pairs))),))

    def rollup(self, *keys: str | Val, **named: Val) -> Grouped[_T]:
        """Return groups by all keys, by all but the last, and so on, and by none."""
        pairs = _key_names(keys, named)
        _check_sets(len(pairs) + 1)
        return Grouped(frame=self, keys=pairs, sets=rolled_up(_places(pairs)))

    def cube(self, *keys: str | Val, **named: Val) -> Grouped[_T]:
        """Return groups by every choice of keys."""
        pairs = _key_names(keys, named)
        _check_sets(2 ** len(pairs))
        return Grouped(frame=self, keys=pairs, sets=cubed(_places(pairs)))

    def grouping_sets(self, *sets: Sequence[str], **named: Val) -> Grouped[_T]:
        """Return groups by each of several lists of keys: `grouping_sets(["region", "sex"], [])`."""
        if any(isinstance(one, str) or not all(isinstance(key, str) for key in one) for one in sets):
            hint = "grouping_sets(['region', 'decade'], [], decade=sf.col('age') // 10)"
            raise InvalidArgument("a grouping set is a list of names", place="grouping_sets", hints=(hint,))
        order = list(dict.fromkeys([*(key for one in sets for key in one), *named]))
        keys = tuple((key, val(named[key])) if key in named else (_last(key), col(key)) for key in order)
        places = tuple(tuple(sorted({order.index(key) for key in one})) for one in sets)
        if len(set(places)) != len(places) or not places:
            hint = "grouping_sets(['region'], [])"
            _refuse("grouping sets differ, and there is one at least", "SF404", hint)
        return Grouped(frame=self, keys=keys, sets=places)

    def agg(self, **aggregates: Summary) -> _T:
        """Return the question for aggregates of all rows, under names: `agg(n=sf.count())`."""
        return self.group_by().agg(**aggregates)

    def __repr__(self) -> str:
        try:
            rows, scope = self._built(Statement("", self.catalog))
        except SfumatoError as refusal:  # showing something must not fail
            return f"<rows that will be refused: {refusal.message}>"
        whose = "public" if rows.unit is None else "private"
        return f"<{whose} rows of {', '.join(scope.names())}; .agg(n=sf.count()) asks>"

    def __array__(self, *_: Any, **__: Any) -> NoReturn:
        """Refuse to become an array: scikit-learn and numpy ask every table for one."""
        raise InvalidArgument(
            "rows of a session do not become an array",
            place="table",
            hints=(
                ".agg(n=sf.count()) asks about them",
                "to choose among models, use sfumato.learn.select_model([..], db.table('people'), epsilon=1)",
            ),
        )

    def _built(self, question: Statement) -> tuple[ScopedRows, Scope]:
        rows, scope = self.build(question)
        relation = kept(rows.relation, [_condition(one, scope) for one in self.conditions])
        return replace(rows, relation=relation), scope


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Grouped(Generic[_T]):
    """Rows in groups."""

    frame: Frame[_T]
    keys: tuple[tuple[str, Val], ...]
    sets: tuple[tuple[int, ...], ...]  # positions of keys

    def agg(self, **aggregates: Summary) -> _T:
        """Return the question for aggregates of each group, under names: `agg(n=sf.count())`."""
        try:
            return self.frame.finish(self._request(aggregates))
        except RecursionError:
            _refuse("the question is nested too deeply", "SF401")

    def __repr__(self) -> str:
        return f"<groups by {', '.join(name for name, _ in self.keys) or 'nothing'}; .agg(n=sf.count()) asks>"

    def _request(self, aggregates: dict[str, Summary]) -> Request:
        question = Statement("", self.frame.catalog)
        name = question.free_table()
        rows, scope = self.frame._built(question)
        keys = [(label, _read(value, scope)) for label, value in self.keys]
        found: list[tree.Aggregate] = []
        shown = [(f"k{position}", label) for position, (label, _) in enumerate(keys)]
        for label, summary in aggregates.items():
            aggregate = _aggregate(summary, scope, inner=False)
            if aggregate not in found:
                found.append(aggregate)
            shown.append((f"a{found.index(aggregate)}", label))
        if not shown:
            _refuse("nothing is asked", "SF404", "agg(n=count())")
        query = tree.Query(
            source=rows.relation,
            keys=tuple((f"k{position}", key) for position, (_, key) in enumerate(keys)),
            grouping_sets=self.sets,
            aggregates=tuple((f"a{position}", one) for position, one in enumerate(found)),
            text="",
        )
        question.ask(NamedQuery(name=name, query=query))
        listed = ", ".join(
            f"{identifier(name)}.{identifier(column)} AS {identifier(label)}" for column, label in shown
        )
        return Request(
            text="",
            queries=tuple(question.queries),
            postprocessing=f"SELECT {listed} FROM {identifier(name)}",
        )


# -- parts ----------------------------------------------------------------------------------


def _refuse(message: str, code: str, *hints: str) -> NoReturn:
    refuse("", message, *hints, code=code)


def _check_frames(*others: object) -> None:
    if not all(isinstance(other, Frame) for other in others):
        raise InvalidArgument("another table is wanted here", place="other", hints=("db.table('places')",))


def _read(value: Any, scope: Scope) -> tree.Expression:
    def find(name: str) -> tree.ColumnRef:
        alias, dot, last = name.rpartition(".")
        found = scope.find(name) or (scope.find(last, alias) if dot else [])
        if len(found) > 1:
            _refuse(f"`{name}` is ambiguous", "SF402", "write the table's alias before it, as in col('t.x')")
        if not found and (unsupported := scope.unsupported(last, alias or None)) is not None:
            _refuse(unsupported.refusal, "SF402", *unsupported.hints)
        if not found:
            _refuse(f"no column `{name}` here", "SF402", *did_you_mean(name, scope.names()))
        if found[0].column is None:
            hint = "join with unit=True, count with count_units(), group with per_unit()"
            _refuse(f"`{name}` names the unit of protection and cannot be read", "SF406", hint)
        return found[0].column

    try:
        return val(value).build(find)
    except KindError as error:
        _refuse(str(error), "SF403")


def _condition(value: Val, scope: Scope) -> tree.Expression:
    expression = as_condition(_read(value, scope))
    if expression.kind not in (None, Kind.BOOLEAN):
        _refuse("a condition must be true or false", "SF403")
    return expression


def _aggregate(summary: Summary, scope: Scope, *, inner: bool) -> tree.Aggregate:
    if not isinstance(summary, Summary):
        raise InvalidArgument("agg takes aggregates", place="agg", hints=("count(), sum_('x'), ..",))
    if inner and (summary.bounds_per_group is not None or summary.bounds_per_row is not None):
        _refuse("bounds belong to the outermost aggregate", "SF404")
    if inner and summary.blocks is not None:
        _refuse("one unit's own rows are not divided into blocks of units", "SF404")
    if inner and summary.function is Function.COUNT_UNITS:
        _refuse("within one unit this is always 1", "SF404")
    record = summary.function.record
    arguments = tuple(as_argument(_read(argument, scope), record) for argument in summary.arguments)
    for argument in arguments:
        taken = record.takes(argument.kind, inner=inner)
        if summary.blocks is not None and argument.kind is not None:
            taken = summary.blocks.statistic.takes(argument.kind)
        if not taken:
            takes = "does not take one unit's own values" if inner else "takes numbers"
            _refuse(f"{summary.function.label.upper()} {takes}", "SF403")
    return tree.Aggregate(
        function=summary.function,
        arguments=arguments,
        where=None if summary.condition is None else _condition(summary.condition, scope),
        quantiles=summary.quantiles,
        several=summary.several,
        bounds_per_group=summary.bounds_per_group,
        bounds_per_row=summary.bounds_per_row,
        blocks=summary.blocks,
    )


def _key_names(keys: tuple[str | Val, ...], named: dict[str, Val]) -> tuple[tuple[str, Val], ...]:
    pairs: list[tuple[str, Val]] = []
    for key in keys:
        if not isinstance(key, str):
            hint = "group_by(decade=..)"
            raise InvalidArgument("an expression needs a name", place="group_by", hints=(hint,))
        pairs.append((_last(key), col(key)))
    return (*pairs, *((name, val(value)) for name, value in named.items()))


def _places(keys: tuple[tuple[str, Val], ...]) -> list[tuple[int, ...]]:
    return [(place,) for place in range(len(keys))]


def _check_sets(count: int) -> None:
    if count > MOST_GROUPING_SETS:
        _refuse(f"more than {MOST_GROUPING_SETS} grouping sets", "SF404", "grouping_sets([..], [..])")


def _named(rows: ScopedRows, alias: str) -> tuple[ScopedRows, Scope]:
    return rows, Scope(sources=[ScopedSource.of(alias, rows)])


def _units(rows: ScopedRows) -> list[Output]:
    return [output for output in rows.outputs if output.column is None]


def _kind(expression: tree.Expression, name: str) -> Kind:
    if expression.kind is None:
        _refuse(f"`{name}` needs a kind", "SF404", "lit(None).cast('real')")
    return expression.kind


def _last(name: str) -> str:
    return name.rpartition(".")[2]
