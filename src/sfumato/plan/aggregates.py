"""Aggregates: a parsed aggregate call becomes one of the tree, with its FILTER, DISTINCT and bounds."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import NoReturn

from sqlglot import exp

from sfumato.aggregates.registry import Function, function_called
from sfumato.aggregates.sample_and_aggregate import (
    DEFAULT_BLOCKS,
    MOST_BLOCKS,
    BlockDesign,
    BlockStatistic,
    statistic_called,
)
from sfumato.catalog.kind import Kind
from sfumato.plan.conditions import conjunction
from sfumato.plan.conversions import as_argument
from sfumato.plan.expressions import Expressions
from sfumato.plan.hints import did_you_mean
from sfumato.plan.limits import is_number
from sfumato.plan.question import Statement
from sfumato.plan.syntax import AGGREGATES, IGNORED, is_aggregate
from sfumato.plan.tree import Aggregate, Expression, Span

__all__ = ["Aggregates"]

_MOST_PARTS = 1000
_KNOWN = (
    "count", "count_if", "median", "percentile_cont", "quantile", "quantile_cont",
    *(name for one in Function for name in one.record.names),
)  # fmt: skip
_MANY = ("no argument", "one argument", "two arguments")
_NUMBER_OF = {
    Kind.BOOLEAN: "count truths with COUNT_IF(condition)",
    Kind.DATE: "take a number from it: YEAR(..), MONTH(..), DATE_DIFF('day', DATE '2024-01-01', ..)",
    Kind.TEXT: "count its values: COUNT(DISTINCT ..), GROUP BY; or read numbers from it: CAST(.. AS DOUBLE)",
    Kind.TIMESTAMP: "take a number from it: YEAR(..), HOUR(..), DATE_DIFF('minute', .., ..)",
}
_SAMPLED = "SAMPLE_AND_AGGREGATE(KURTOSIS(x), -2, 10, blocks => 50)"
_WITHIN_ONE_UNIT = "of one unit's own rows there are COUNT, SUM, AVG, MIN, MAX, MEDIAN, SUM(DISTINCT integer)"
_MOST_OF = "ask: SELECT key, {} AS m FROM .. GROUP BY key HAVING COUNT(*) > 99 ORDER BY m{} LIMIT 1"
_GROUP_OF = "ask: SELECT {}(key, n) FROM (SELECT key, COUNT(*) AS n FROM .. GROUP BY key)"
_NO_SINGLE_VALUE = "no single person's value can be shown; ask for MEDIAN, QUANTILE or HISTOGRAM"


@dataclass(frozen=True, slots=True)
class Aggregates:
    """Reads aggregate calls within a scope. `inner`: of one unit's own rows, so any kind has a MIN."""

    question: Statement
    expressions: Expressions
    inner: bool = False

    def __call__(self, node: exp.Expr) -> Aggregate:
        """Return the aggregate of the tree for a parsed call, its FILTER included."""
        conditions: list[Expression] = []
        call = node
        if isinstance(call, exp.Filter):
            conditions.append(self.expressions.condition(call.expression.this))
            call = call.this
        if isinstance(call, exp.CountIf):
            self.question.only(call, "this")
            if call.args.get("this") is None:
                self.question.refuse("COUNT_IF takes a condition", "SF403", call)
            conditions.insert(0, self.expressions.condition(call.this))
            found = Aggregate(function=Function.COUNT_ROWS)
        else:
            found = self._function(call)
        return replace(found, where=conjunction(conditions), span=self.question.span(node))

    def _function(self, call: exp.Expr) -> Aggregate:
        match call:
            case exp.Anonymous() if str(call.this).lower() == Function.SAMPLE_AND_AGGREGATE.label:
                return self._sampled(call)
            case exp.Count():
                return self._count(call)
            case exp.Sum(this=exp.Distinct(expressions=[value])):
                self.question.only(call, "this")
                added = self._value(value, call, Function.SUM_DISTINCT)
                return Aggregate(function=Function.SUM_DISTINCT, arguments=(added,))
            case exp.Median():
                self.question.only(call, "this")
                return self._quantile(call.args.get("this"), (0.5,), call)
            case exp.Quantile() if call.args.get("quantile") is not None:
                self.question.only(call, "this", "quantile")
                return self._ranked(call.this, call.args["quantile"], call)
            case exp.PercentileCont() | exp.PercentileDisc() if call.args.get("expression") is not None:
                self.question.only(call, "this", "expression")
                return self._ranked(call.this, call.expression, call)
            case exp.WithinGroup(this=exp.PercentileCont() | exp.PercentileDisc()):
                return self._within_group(call)
            case exp.ApproxQuantiles() if call.args.get("expression") is not None:
                return self._approximate(call)
        anonymous = isinstance(call, exp.Anonymous)
        names = type(call).sql_names() if isinstance(call, exp.Func) else []
        known = function_called(*([str(call.this)] if anonymous else names))
        if known is None:
            self._refuse(call)
        return Aggregate(function=known, arguments=self._values(call, known))

    def _values(self, call: exp.Expr, function: Function) -> tuple[Expression, ...]:
        arity = function.record.arity
        if isinstance(call, exp.Anonymous):
            self.question.only(call, "this", "expressions")
            nodes = call.expressions
            if len(nodes) != arity:
                self.question.refuse(f"`{call.this}` takes {_MANY[arity]}", "SF403", call)
        else:
            places = ("this", "expression")[:arity]
            self.question.only(call, *places)
            nodes = [call.args.get(place) for place in places]
        return tuple(self._value(node, call, function) for node in nodes)

    def _count(self, call: exp.Count) -> Aggregate:
        self.question.only(call, "this", *IGNORED[exp.Count])
        counted = call.args.get("this")
        if counted is None or isinstance(counted, exp.Star):
            if isinstance(counted, exp.Star):
                self.question.only(counted)
            return Aggregate(function=Function.COUNT_ROWS)
        if isinstance(counted, exp.Distinct):
            if len(counted.expressions) != 1:
                self.question.refuse("COUNT(DISTINCT ..) takes one expression", "SF404", call)
            value = counted.expressions[0]
            unit = self.expressions.unit(value)
            if unit is None:
                return Aggregate(function=Function.COUNT_DISTINCT, arguments=(self.expressions(value),))
            hint = "count it on the side that the join preserves, or filter with EXISTS"
            self.question.check_whole(unit, value, hint)
            if self.inner:
                self.question.refuse("within one unit this is always 1", "SF404", call)
            return Aggregate(function=Function.COUNT_UNITS)
        unit = self.expressions.unit(counted)
        if unit is not None:  # no row lacks it, as long as no outer join adds rows without one
            hint = "COUNT(*) counts rows, COUNT(DISTINCT ..) counts units"
            self.question.check_whole(unit, counted, hint)
            return Aggregate(function=Function.COUNT_ROWS)
        return Aggregate(function=Function.COUNT, arguments=(self.expressions(counted),))

    def _value(self, node: exp.Expr | None, call: exp.Expr, function: Function) -> Expression:
        if node is None:
            name = self.question.name(call).upper()
            arity = function.record.arity
            hint = f"{name}(x, y)" if arity == 2 else f"{name}(x)"
            empty = re.search(rf"\b{name}\s*\(\s*\)", self.question.text, re.IGNORECASE)
            at = call if empty is None else Span(*empty.span())  # it has no part that knows its place
            self.question.refuse(f"{name} takes {_MANY[arity]}", "SF403", at, hint)
        if isinstance(node, exp.Distinct):
            hint = "only COUNT and SUM can be DISTINCT"
            name = self.question.name(call).upper()
            self.question.refuse(f"{name}(DISTINCT ..) is not supported", "SF404", call, hint)
        if isinstance(node, exp.Order):
            self.question.refuse("ORDER BY inside this aggregate changes nothing", "SF404", node)
        value = as_argument(self.expressions(node), function.record)
        if value.kind is not None and not function.record.takes(value.kind, inner=self.inner):
            instead = _WITHIN_ONE_UNIT if self.inner else function.record.instead.get(value.kind)
            takes = "does not take one unit's own values: " if self.inner else "takes numbers, got "
            message = f"{self.question.name(call).upper()} {takes}{value.kind.value}"
            self.question.refuse(message, "SF403", node, instead or _NUMBER_OF[value.kind])
        if value.kind is None:
            self.question.refuse(f"{self.question.name(call).upper()} of NULL is NULL", "SF403", call)
        return value

    def _within_group(self, node: exp.WithinGroup) -> Aggregate:
        order = node.args.get("expression")
        if not isinstance(order, exp.Order):
            hint = "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x)"
            self.question.refuse("WITHIN GROUP takes one ORDER BY", "SF403", node, hint)
        self.question.only(order, "expressions")
        if len(order.expressions) != 1:
            self.question.refuse("WITHIN GROUP orders by one expression", "SF404", node)
        ordered = order.expressions[0]
        self.question.only(node.this, "this")
        return self._ranked(ordered.this, node.this.this, node.this, bool(ordered.args.get("desc")))

    def _ranked(
        self, value: exp.Expr, ranks: exp.Expr, call: exp.Expr, descending: bool = False
    ) -> Aggregate:
        several = isinstance(ranks, exp.Array)
        found = []
        for rank in ranks.expressions if several else [ranks]:
            if not isinstance(rank, exp.Literal) or rank.is_string or not is_number(str(rank.this)):
                hint = "a number between 0 and 1, or a list of them: QUANTILE(x, [0.25, 0.75])"
                self.question.refuse("a rank must be a constant", "SF403", call, hint)
            exact = Fraction(str(rank.this))
            if exact > 1:
                hint = "QUANTILE(x, 0.9) is the value below which nine in ten lie"
                self.question.refuse("a rank lies between 0 and 1", "SF403", rank, hint)
            found.append(float(1 - exact if descending else exact))
        if not found:
            hint = "QUANTILE(x, [0.25, 0.5, 0.75])"
            self.question.refuse("the list of ranks is empty", "SF403", call, hint)
        return self._quantile(value, tuple(found), call, several)

    def _approximate(self, call: exp.ApproxQuantiles) -> Aggregate:
        """Read GoogleSQL's APPROX_QUANTILES(x, n): the n + 1 ends of n parts with as many rows each."""
        self.question.only(call, "this", "expression")
        number = call.expression
        parts = int(number.this) if isinstance(number, exp.Literal) and str(number.this).isdigit() else 0
        if not 1 <= parts <= _MOST_PARTS:
            hint = f"a whole number from 1 to {_MOST_PARTS}: APPROX_QUANTILES(x, 4) are quartiles"
            self.question.refuse("this is no number of parts", "SF403", call, hint)
        ranks = tuple(float(Fraction(place, parts)) for place in range(parts + 1))
        return self._quantile(call.this, ranks, call, several=True)

    def _quantile(
        self, node: exp.Expr | None, ranks: tuple[float, ...], call: exp.Expr, several: bool = False
    ) -> Aggregate:
        value = self._value(node, call, Function.QUANTILE)
        return Aggregate(function=Function.QUANTILE, arguments=(value,), quantiles=ranks, several=several)

    def _sampled(self, call: exp.Anonymous) -> Aggregate:
        """Read SAMPLE_AND_AGGREGATE(KURTOSIS(x), lower, upper, blocks => 50)."""
        question = self.question
        question.only(call, "this", "expressions")
        if self.inner:
            question.refuse("one unit's own rows are not divided into blocks of units", "SF404", call)
        named = [part for part in call.expressions if isinstance(part, (exp.Kwarg, exp.PropertyEQ))]
        plain = [part for part in call.expressions if part not in named]
        for part in named:
            question.only(part, "this", "expression")
        if len(plain) != 3 or [part.this.name.lower() for part in named] not in ([], ["blocks"]):
            message = (
                "SAMPLE_AND_AGGREGATE takes a statistic, between which ends it lies, and a number of blocks"
            )
            question.refuse(message, "SF403", call, _SAMPLED)
        statistic, nodes = self._statistic(plain[0])
        lower, upper = (self._constant(end, call) for end in plain[1:])
        number = self._constant(named[0].expression, call) if named else Fraction(DEFAULT_BLOCKS)
        if not lower < upper:
            question.refuse("the lower end comes first, and is below the upper one", "SF403", call, _SAMPLED)
        if number.denominator != 1 or not 2 <= number <= MOST_BLOCKS:
            question.refuse(f"blocks is a whole number from 2 to {MOST_BLOCKS:,}", "SF403", call, _SAMPLED)
        arguments = tuple(self._value(node, plain[0], Function.SAMPLE_AND_AGGREGATE) for node in nodes)
        for argument, node in zip(arguments, nodes, strict=True):
            if argument.kind is not None and not statistic.takes(argument.kind):
                message = f"{statistic.label.upper()} takes numbers, got {argument.kind.value}"
                question.refuse(message, "SF403", node, _NUMBER_OF[argument.kind])
        return Aggregate(
            function=Function.SAMPLE_AND_AGGREGATE,
            arguments=arguments,
            blocks=BlockDesign(statistic=statistic, number=int(number), lower=lower, upper=upper),
        )

    def _statistic(self, node: exp.Expr) -> tuple[BlockStatistic, list[exp.Expr]]:
        """Return the statistic that a call is of, and its arguments."""
        anonymous = isinstance(node, exp.Anonymous)
        names = [str(node.this)] if anonymous else node.sql_names() if isinstance(node, exp.Func) else []
        statistic = statistic_called(*names)
        if statistic is None:
            known = ", ".join(one.label.upper() for one in BlockStatistic)
            self.question.refuse("this is no statistic of a block", "SF403", node, f"known are {known}")
        places = ("expressions",) if anonymous else ("this", "expression")[: statistic.arity]
        self.question.only(node, *places, *(("this",) if anonymous else ()))
        given = node.expressions if anonymous else [node.args.get(place) for place in places]
        nodes = [value for value in given if value is not None]
        if len(nodes) != statistic.arity:
            message = f"{statistic.label.upper()} takes {_MANY[statistic.arity]}"
            self.question.refuse(message, "SF403", node)
        return statistic, nodes

    def _constant(self, node: exp.Expr, call: exp.Expr) -> Fraction:
        negative = isinstance(node, exp.Neg)
        number = node.this if negative else node
        if not isinstance(number, exp.Literal) or number.is_string or not is_number(str(number.this)):
            self.question.refuse("this must be a number", "SF403", call, _SAMPLED)
        found = Fraction(str(number.this).replace("_", ""))
        return -found if negative else found

    def _refuse(self, call: exp.Expr) -> NoReturn:
        around = call
        while isinstance(call, (exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup, exp.Filter)):
            call = call.this
        name = self.question.name(call)
        hint = AGGREGATES.get(name) or ""
        if around is not call and name in _KNOWN:
            hint = f"write {name.upper()}(x) with nothing after it: NULL is skipped anyway"
        elif isinstance(call, exp.ApproxDistinct):
            hint = "use COUNT(DISTINCT ..)"
        elif isinstance(call, (exp.ArgMax, exp.ArgMin)):
            sides = ("MAX(x)", " DESC") if isinstance(call, exp.ArgMax) else ("MIN(x)", "")
            inner = any(map(is_aggregate, call.iter_expressions()))
            hint = _GROUP_OF.format(name.upper()) if inner else _MOST_OF.format(*sides)
        elif isinstance(call, (exp.AnyValue, exp.First, exp.Last)):
            hint = _NO_SINGLE_VALUE
        elif isinstance(call, (exp.ArrayAgg, exp.GroupConcat)):
            hint = "rows cannot be listed; aggregate them"
        elif isinstance(call, (exp.LogicalAnd, exp.LogicalOr)):
            hint = "use COUNT_IF(condition)"
        elif isinstance(call, (exp.PercentileCont, exp.PercentileDisc, exp.Quantile)):
            hint = "PERCENTILE_CONT(0.5) WITHIN GROUP (ORDER BY x), or QUANTILE(x, 0.5)"
        hints = (hint,) if hint else did_you_mean(name, _KNOWN)
        self.question.refuse(f"the aggregate `{name}` has no private form here", "SF403", call, *hints)
