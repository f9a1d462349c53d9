"""The private block: SELECT with aggregates over people, split into a private question and free arithmetic.

    SELECT region, SUM(x) / COUNT(*) AS mean FROM people GROUP BY region HAVING COUNT(*) > 10

asks privately for k0 = region, a0 = SUM(x), a1 = COUNT(*), and then reads

    SELECT k0 AS region, a0 / a1 AS mean FROM released WHERE a1 > 10
"""

from __future__ import annotations

from sqlglot import exp

from sfumato.plan.aggregates import Aggregates
from sfumato.plan.context import Context, Released
from sfumato.plan.contributions import claimed, clause_of, with_clause
from sfumato.plan.expressions import Expressions
from sfumato.plan.groups import Grouping
from sfumato.plan.postprocessing import released_subquery
from sfumato.plan.postprocessing_rules import check, output_names, rebuilt, unique
from sfumato.plan.request import NamedQuery, reported_column
from sfumato.plan.scope import Scope, ScopedRows
from sfumato.plan.syntax import has_aggregate, is_aggregate, within
from sfumato.plan.tree import GROUPING_SET, Aggregate, Query

__all__ = ["private_block"]

_NO_KEYS = (
    exp.Alias, exp.Array, exp.DataType, exp.Distinct, exp.Identifier, exp.Tuple, exp.WindowSpec,
)  # fmt: skip


def private_block(
    select: exp.Select, rows: ScopedRows, scope: Scope, groups: Grouping, context: Context
) -> Released:
    """Add the private question of a SELECT, and return what is left of it over the noisy table."""
    return _Block(select, rows, scope, groups, context).read()


class _Block:
    def __init__(
        self, select: exp.Select, rows: ScopedRows, scope: Scope, groups: Grouping, context: Context
    ) -> None:
        self.select = select
        self.rows = rows
        self.scope = scope
        self.groups = groups
        self.context = context
        self.question = context.question
        self.expressions = Expressions(context.question, scope)
        self.collect = Aggregates(context.question, self.expressions)
        self.clause = clause_of(select, context.question)
        self.aggregates: dict[Aggregate, int] = {}
        self.reported: list[tuple[str, str]] = []
        self.table = context.question.free_table()
        self.items: dict[str, tuple[str, exp.Expr]] = {}

    def read(self) -> Released:
        question = self.question
        items = self.select.expressions
        names = unique(output_names(items))
        values = []
        for item, name in zip(items, names, strict=True):
            value = self._change(item.unalias(), aliases="last")
            values.append(exp.Alias(this=value, alias=exp.to_identifier(name, quoted=True)))
            if isinstance(item, exp.Alias):
                self.items.setdefault(item.alias.lower(), (item.alias, value))
        table = exp.Table(this=exp.to_identifier(self.table, quoted=True))
        result = exp.Select(expressions=values, from_=exp.From(this=table))
        for name in ("having", "qualify", "windows", "order", "limit", "offset", "distinct"):
            clause = self.select.args.get(name)
            if clause:
                self._clause(name, clause, result)
        query = Query(
            source=self.rows.relation,
            keys=tuple((f"k{position}", key) for position, key in enumerate(self.groups.keys)),
            grouping_sets=self.groups.sets,
            aggregates=tuple((f"a{position}", one) for position, one in enumerate(self.aggregates)),
            text=question.text,
        )
        asked = NamedQuery(name=self.table, query=query, reported=tuple(dict.fromkeys(self.reported)))
        question.ask(with_clause(asked, self.clause, self.rows, self.scope, question))
        return Released(result, tuple(names))

    def _clause(self, name: str, clause: exp.Expr, result: exp.Select) -> None:
        if name == "having":
            condition = self._change(clause.this, aliases="last")
            if condition.find(exp.Window) is not None:
                self.question.refuse("HAVING comes before windows", "SF404", clause, "use QUALIFY")
            result.set("where", exp.Where(this=condition))
        elif name == "distinct":
            self.question.only(clause)
            result.set("distinct", exp.Distinct())
        elif name == "windows":
            result.set("windows", [rebuilt(window, self._change) for window in clause])
        else:
            result.set(name, self._change(clause, aliases="first" if name == "order" else "last"))

    def _change(self, node: exp.Expr, aliases: str = "") -> exp.Expr:
        """Return an expression over the noisy table; `aliases` says when names of the SELECT list count."""
        if isinstance(node, exp.Query):
            return released_subquery(node, self.context)
        if isinstance(node, exp.Star) or (isinstance(node, exp.Column) and isinstance(node.this, exp.Star)):
            self.question.refuse("`*` would show rows", "SF404", node, "COUNT(*) counts them")
        if aliases == "first" and self._is_alias(node):
            return self._alias(node, plain=isinstance(node.parent, exp.Ordered))
        if isinstance(node, (exp.Grouping, exp.GroupingId)):
            return self._grouping(node)
        if is_aggregate(node) and not isinstance(node.parent, exp.Window):
            aggregate, report = claimed(self.collect(node), node, self.clause, self.question)
            name = f"a{self.aggregates.setdefault(aggregate, len(self.aggregates))}"
            if report is None:
                return self._noisy(name)
            self.reported.append((name, report))
            return self._noisy(reported_column(name, report))
        if isinstance(node, exp.Window):
            return self._window(node, aliases)
        if not has_aggregate(node) and not any(
            isinstance(part, (exp.Query, exp.Window)) for part in within(node)
        ):
            key = self._key(node)
            if key is not None:
                return key
        if isinstance(node, exp.Column):
            if aliases == "last" and self._is_alias(node):
                return self._alias(node, plain=False)
            hint = "add it to GROUP BY, or aggregate it"
            self.question.refuse(f"`{node.name}` is neither grouped by nor aggregated", "SF404", node, hint)
        check(node, self.question)
        return rebuilt(node, lambda child: self._change(child, aliases))

    def _key(self, node: exp.Expr) -> exp.Expr | None:
        columns = [part for part in within(node) if isinstance(part, exp.Column)]
        if not columns or isinstance(
            node, (exp.Order, exp.Ordered, exp.Limit, exp.Offset, exp.Qualify, exp.Where)
        ):
            return None
        if not all(self.scope.find(column.name, column.table or None) for column in columns):
            if isinstance(node, exp.Column) and not self._is_alias(node):
                self.expressions(node)  # refuses the unknown name
            return None
        if isinstance(node, _NO_KEYS):
            return None
        position = self.groups.position(self.expressions(node))
        return None if position is None else self._noisy(f"k{position}")

    def _grouping(self, node: exp.Expr) -> exp.Expr:
        """Return GROUPING(a, b, ..): a bit for each, the last the lowest, set where it is summed over.

        The plan alone says so for each grouping set, and the noisy table in which set a row is.
        """
        self.question.only(node, "expressions")
        positions = []
        for argument in node.expressions:
            position = self.groups.position(self.expressions(argument))
            if position is None:
                hint = "GROUPING takes keys of GROUP BY"
                self.question.refuse("this is not grouped by", "SF404", argument, hint)
            positions.append(position)
        if not positions:
            self.question.refuse("GROUPING takes keys of GROUP BY", "SF403", node)
        masks = []
        for one in self.groups.sets:
            bits = "".join("0" if position in one else "1" for position in positions)
            masks.append(exp.Literal.number(int(bits, 2)))
        if len(masks) == 1:
            return masks[0]
        place = self._noisy(GROUPING_SET)
        tests = [exp.EQ(this=place.copy(), expression=exp.Literal.number(at)) for at in range(len(masks))]
        ifs = [exp.If(this=test, true=mask) for test, mask in zip(tests, masks, strict=True)]
        return exp.Case(ifs=ifs)

    def _window(self, node: exp.Window, aliases: str) -> exp.Expr:
        """Return a window over the noisy result: its function is not an aggregate of people."""

        def function(part: exp.Expr) -> exp.Expr:
            check(part, self.question)
            if isinstance(part, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls)):
                inner = part.this
                return rebuilt(part, lambda child: function(child) if child is inner else self._change(child))
            return rebuilt(
                part, lambda child: child.copy() if isinstance(child, exp.Star) else self._change(child)
            )

        def change(child: exp.Expr) -> exp.Expr:
            if isinstance(child, exp.Identifier):
                return child.copy()
            return function(child) if child is node.this else self._change(child, aliases)

        check(node, self.question)
        return rebuilt(node, change)

    def _is_alias(self, node: exp.Expr) -> bool:
        return isinstance(node, exp.Column) and not node.table and node.name.lower() in self.items

    def _alias(self, node: exp.Expr, plain: bool) -> exp.Expr:
        name, value = self.items[node.name.lower()]
        return exp.column(exp.to_identifier(name, quoted=True)) if plain else exp.Paren(this=value.copy())

    def _noisy(self, name: str) -> exp.Column:
        return exp.Column(
            this=exp.to_identifier(name, quoted=True), table=exp.to_identifier(self.table, quoted=True)
        )
