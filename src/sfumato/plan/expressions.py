"""Row-wise expressions: a parsed SQL expression becomes one of the tree, or is refused with a caret."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import NoReturn

from sqlglot import exp

from sfumato.catalog.kind import MOST_DIGITS, Kind, kind_of
from sfumato.plan import conversions, functions, moments, syntax
from sfumato.plan.hints import did_you_mean
from sfumato.plan.numbers import KindError
from sfumato.plan.question import Statement
from sfumato.plan.scope import Output, Scope
from sfumato.plan.tree import ColumnRef, Expression, Literal, Span

__all__ = ["Expressions"]

_REMEDIES = {
    "in a pattern": "regular expressions have letters, . [..] ( ) | * + ? {2,5} ^ $ \\d \\w \\s \\b",
    "cannot mix": "convert one of them: CAST(x AS INTEGER), CAST(x AS VARCHAR)",
    "`//` takes": "FLOOR(x / y) takes any numbers",
    "one decimal exactly": "convert one of them: CAST(x AS DOUBLE), or to a DECIMAL with fewer digits",
    "digits behind the point": "convert one of them: CAST(x AS DOUBLE), or to a DECIMAL with fewer digits",
}
_MOST_DIGITS_OF_INTERVALS = 12
_FALSE = Literal(value=False, kind=Kind.BOOLEAN)


@dataclass(frozen=True, slots=True)
class Expressions:
    """Turns parsed expressions into those of the tree, within a scope.

    `replace` may answer for a node before anything else does: that is how an aggregate or a
    grouping key becomes a column of what was grouped. `outside` lets columns of the SELECT
    around this one be used, as conditions of EXISTS do.
    """

    question: Statement
    scope: Scope
    replace: Callable[[exp.Expr], Expression | None] | None = None
    outside: bool = False

    def condition(self, node: exp.Expr) -> Expression:
        """Return an expression that is true or false."""
        value = conversions.as_condition(self(node))
        if value.kind not in (None, Kind.BOOLEAN):
            self.question.refuse("a condition must be true or false", "SF403", node)
        return value

    def __call__(self, node: exp.Expr) -> Expression:
        """Return the expression of the tree for a parsed one."""
        if self.replace is not None and (replaced := self.replace(node)) is not None:
            return replaced
        try:
            return self._read(node)
        except KindError as error:
            hints = tuple(hint for word, hint in _REMEDIES.items() if word in str(error))
            self.question.refuse(str(error), "SF403", node, *hints)

    # -- by class of node --------------------------------------------------------------------

    def _read(self, node: exp.Expr) -> Expression:
        span = self.question.span(node)
        match node:
            case exp.Paren():
                return self(node.this)
            case exp.Column():
                return self._column(node)
            case exp.Literal() | exp.Boolean() | exp.Null():
                return self._literal(node)
            case exp.Neg():
                return self._negative(node, span)
            case exp.Not():
                return functions.call("not", (self.condition(node.this),), span)
            case exp.Is():
                return self._is(node, span)
            case exp.NullSafeEQ() | exp.NullSafeNEQ():
                return self._same(node, span)
            case exp.DateDiff():
                return self._difference(node, span)
            case exp.In():
                return self._in(node, span)
            case exp.Like() | exp.ILike():
                self.question.only(node, "this", "expression", "negate")
                name = "ilike" if isinstance(node, exp.ILike) else "like"
                found = functions.call(name, (self(node.this), self(node.expression)), span)
                return functions.call("not", (found,), span) if node.args.get("negate") else found
            case exp.Case() | exp.If():
                return self._case(node, span)
            case exp.Cast():
                return self._cast(node, span)
            case exp.Extract():
                self.question.only(node, "this", "expression")
                return functions.call(self._part(node.this, node), (self(node.expression),), span)
            case exp.TimestampTrunc() | exp.DateTrunc():
                self.question.only(node, "this", "unit")
                part = Literal(value=self._unit(node.args["unit"]), kind=Kind.TEXT)
                return functions.call("date_trunc", (part, self(node.this)), span)
            case exp.Trim():
                self.question.only(node, "this", "position")
                side = str(node.args.get("position") or "").upper()
                if side not in syntax.TRIMS:
                    self._refuse(node)
                return functions.call(syntax.TRIMS[side], (self(node.this),), span)
            case exp.Anonymous():
                return self._named(node, span)
            case exp.Pi():
                return Literal(value=math.pi, kind=Kind.REAL, span=span)
            case exp.Log():
                return self._logarithm(node, span)
            case exp.Pad():
                self.question.only(node, "this", "expression", "fill_pattern", "is_left")
                parts = _parts(node, ("this", "expression", "fill_pattern"))
                name = "lpad" if node.args.get("is_left") else "rpad"
                return functions.call(name, tuple(self(part) for part in parts), span)
            case exp.TimeToStr():
                self.question.only(node, "this", "format")
                both = self(node.this), self(node.args["format"])
                return functions.call("strftime", both[::-1] if both[0].kind is Kind.TEXT else both, span)
            case exp.DateAdd():
                self.question.only(node, "this", "expression")
                return self._later(node.this, node.expression, span)
            case exp.Add() | exp.Sub() if isinstance(node.expression.unnest(), exp.Interval):
                sign = -1 if isinstance(node, exp.Sub) else 1
                return self._later(node.this, node.expression.unnest(), span, sign)
        if type(node) in syntax.BINARY:
            self.question.only(node, "this", "expression", *syntax.IGNORED.get(type(node), ()))
            name, left, right = syntax.BINARY[type(node)], self(node.this), self(node.expression)
            if left.kind is Kind.DATE and name in ("+", "-"):
                return _days(name, left, right, span)
            return functions.call(name, (left, right), span)
        if type(node) in syntax.CALLS:
            name, arguments = syntax.CALLS[type(node)]
            self.question.only(node, *arguments, *syntax.IGNORED.get(type(node), ()))
            return functions.call(name, tuple(self(part) for part in _parts(node, arguments)), span)
        self._refuse(node)

    def _column(self, node: exp.Column) -> Expression:
        if not isinstance(node.this, exp.Identifier):
            self.question.refuse("`*` is not a value", "SF404", node)
        output = self.output(node)
        if output.column is None:
            hint = "it serves to join private tables, in COUNT(DISTINCT ..) and in inner GROUP BY"
            message = f"`{output.name}` names the unit of protection and cannot be read"
            self.question.refuse(message, "SF406", node, hint)
        return ColumnRef(name=output.column.name, kind=output.column.kind, span=self.question.span(node))

    def output(self, node: exp.Column) -> Output:
        """Return what a column's name means in this scope, the unit included."""
        name, alias = node.name, node.table or None
        scope: Scope | None = self.scope
        implied: Output | None = None  # it has no name of its own in its table: any other column comes first
        while scope is not None:
            found = scope.find(name, alias)
            if len(found) > 1:
                hint = "write the table's name before it, as in t.column"
                self.question.refuse(f"`{name}` is ambiguous", "SF402", node, hint)
            if found and not found[0].implied:
                return found[0]
            implied = implied or next(iter(found), None)
            scope = scope.parent if self.outside else None
        if implied is not None:
            return implied
        if (unsupported := self.scope.unsupported(name, alias)) is not None:
            self.question.refuse(unsupported.refusal, "SF402", node, *unsupported.hints)
        whole = f"{alias}.{name}" if alias else name
        here = f"columns here: {', '.join(self.scope.names()[:20])}"
        hints = did_you_mean(name, self.scope.names()) or (here,)
        self.question.refuse(f"no column `{whole}` here", "SF402", node, *hints)

    def unit(self, node: exp.Expr) -> Output | None:
        """Return the unit if the node is its column, or None."""
        node = node.unnest()
        if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
            return None
        output = self.output(node)
        return output if output.column is None else None

    def keys(self, node: exp.Expr) -> frozenset[tuple[str, str]]:
        """Return the keys that a value holds, through which paths lead to the unit: none but of a column."""
        node = node.unnest()
        if not isinstance(node, exp.Column) or not isinstance(node.this, exp.Identifier):
            return frozenset()
        return self.output(node).keys

    def _literal(self, node: exp.Expr) -> Literal:
        span = self.question.span(node)
        if isinstance(node, exp.Null):
            return Literal(value=None, kind=None, span=span)
        if isinstance(node, exp.Boolean):
            return Literal(value=bool(node.this), kind=Kind.BOOLEAN, span=span)
        if node.is_string:
            return Literal(value=str(node.this), kind=Kind.TEXT, span=span)
        return self._number(node, str(node.this), span)

    def _number(self, node: exp.Expr, text: str, span: Span | None, sign: int = 1) -> Literal:
        """Read a number: whole, decimal, or binary where it has an exponent or more than 38 digits."""
        try:
            value: int | float | Decimal
            if text.isdecimal():
                value = sign * int(text)
                if kind_of(value) is Kind.REAL:
                    hint = "whole numbers have 128 bits; 1.5e40 is a binary number"
                    self.question.refuse("this whole number is too large", "SF401", node, hint)
                return Literal(value=value, kind=kind_of(value), span=span)
            whole, _, part = text.partition(".")
            if (whole + part).isdecimal() and len(whole + part) <= MOST_DIGITS:
                value = Decimal(text) if sign > 0 else Decimal(text).copy_negate()
                kind = Kind.decimal(len(whole + part), len(part))
                return Literal(value=value, kind=kind, span=span)
            value = sign * float(text)
        except ValueError:
            self.question.refuse("this is not a number", "SF401", node)
        if value in (float("inf"), float("-inf")):
            self.question.refuse("this number is too large", "SF401", node)
        return Literal(value=value, kind=Kind.REAL, span=span)

    def _negative(self, node: exp.Neg, span: Span | None) -> Expression:
        inner = node.this.unnest()
        if isinstance(inner, exp.Literal) and not inner.is_string:
            return self._number(inner, str(inner.this), span, sign=-1)
        return functions.call("neg", (self(inner),), span)

    def _is(self, node: exp.Is, span: Span | None) -> Expression:
        self.question.only(node, "this", "expression", "negate")
        if isinstance(node.expression, exp.Boolean):  # never NULL, unlike the condition
            test = self.condition(node.this)
            meant = test if node.expression.this else functions.call("not", (test,), span)
            found = functions.call("coalesce", (meant, _FALSE), span)
        elif isinstance(node.expression, exp.Null):
            found = functions.call("is_null", (self(node.this),), span)
        else:
            hint = "IS [NOT] NULL, TRUE, FALSE or DISTINCT FROM"
            self.question.refuse("IS takes NULL, TRUE or FALSE", "SF403", node, hint)
        return functions.call("not", (found,), span) if node.args.get("negate") else found

    def _same(self, node: exp.Expr, span: Span | None) -> Expression:
        """Read IS [NOT] DISTINCT FROM: an equality for which NULL is a value like any other."""
        self.question.only(node, "this", "expression")
        sides = self(node.this), self(node.expression)
        absent = [functions.call("is_null", (side,), span) for side in sides]
        equal = functions.call("coalesce", (functions.call("=", sides, span), _FALSE), span)
        same = functions.call("or", (functions.call("and", tuple(absent), span), equal), span)
        return functions.call("not", (same,), span) if isinstance(node, exp.NullSafeNEQ) else same

    def _difference(self, node: exp.DateDiff, span: Span | None) -> Expression:
        self.question.only(node, "this", "expression", "unit", "date_part_boundary")
        part = self._unit(node.args["unit"]) if node.args.get("unit") is not None else "day"
        named = Literal(value=part, kind=Kind.TEXT)
        return functions.call("date_diff", (named, self(node.expression), self(node.this)), span)

    def _logarithm(self, node: exp.Log, span: Span | None) -> Expression:
        """Read LOG(x) and LOG10(x), to the base of ten, LOG2(x), and LOG(b, x), to the base of b."""
        name, second = self.question.name(node), node.args.get("expression")
        if name in ("log10", "log2") and second is not None:  # the parser adds their base
            return functions.call(name, (self(second),), span)
        if name != "log":
            self._refuse(node)
        if second is None:
            return functions.call("log10", (self(node.this),), span)
        return functions.call("log", (self(node.this), self(second)), span)

    def _later(self, node: exp.Expr, interval: exp.Expr, span: Span | None, sign: int = 1) -> Expression:
        """Read a moment plus an interval: INTERVAL 90 DAY, INTERVAL '3 months'."""
        self.question.only(interval, "this", "unit")
        amount, unit = interval.args.get("this"), interval.args.get("unit")
        text = str(amount.unnest().this) if isinstance(amount, exp.Expr) else ""
        part = str(unit.this).lower().removesuffix("s") if isinstance(unit, exp.Var) else ""
        number = text.strip().removeprefix("-")
        if not isinstance(interval, exp.Interval) or part not in moments.STEPS or not number.isdecimal():
            hint = f"INTERVAL 90 DAY; one whole number of {', '.join(moments.STEPS)}"
            self.question.refuse("this interval cannot be read", "SF403", interval, hint)
        if len(number) > _MOST_DIGITS_OF_INTERVALS:
            self.question.refuse("this interval is too long", "SF403", interval)
        return functions.later(self(node), part, sign * int(text), span)

    def _in(self, node: exp.In, span: Span | None) -> Expression:
        if node.args.get("query") is not None:
            self._refuse(node)
        self.question.only(node, "this", "expressions")
        members = tuple(self(member) for member in node.expressions)
        return functions.call("in", (self(node.this), *members), span)

    def _case(self, node: exp.Expr, span: Span | None) -> Expression:
        if isinstance(node, exp.If):
            self.question.only(node, "this", "true", "false")
            choices, otherwise, subject = [node], node.args.get("false"), None
        else:
            self.question.only(node, "this", "ifs", "default")
            choices, otherwise, subject = node.args["ifs"], node.args.get("default"), node.args.get("this")
        branches = []
        for choice in choices:
            if choice is not node:
                self.question.only(choice, "this", "true")
            if subject is None:
                test = self.condition(choice.this)
            else:
                test = functions.call("=", (self(subject), self(choice.this)), self.question.span(choice))
            branches.append((test, self(choice.args["true"])))
        last = Literal(value=None, kind=None) if otherwise is None else self(otherwise)
        return functions.case(tuple(branches), last, span)

    def _cast(self, node: exp.Cast, span: Span | None) -> Expression:
        self.question.only(node, "this", "to", "safe")
        to = node.args["to"]
        kind = _target(to) if isinstance(to, exp.DataType) else None
        if kind is None:
            hint = (
                "BIGINT, HUGEINT, DECIMAL(18, 2), FLOAT, DOUBLE, VARCHAR, BOOLEAN, DATE and TIMESTAMP can be"
            )
            self.question.refuse(f"cannot convert to {to.sql(dialect='duckdb')}", "SF403", node, hint)
        return conversions.cast(self(node.this), kind, span, syntax.LIMITS.get(to.this))

    def _named(self, node: exp.Anonymous, span: Span | None) -> Expression:
        self.question.only(node, "this", "expressions")
        name = str(node.this).lower()
        if name in ("date_part", "datepart") and len(node.expressions) == 2:
            part, operand = node.expressions
            return functions.call(self._part(part, node), (self(operand),), span)
        if name in syntax.NAMED:
            return functions.call(syntax.NAMED[name], tuple(self(part) for part in node.expressions), span)
        self._refuse(node)

    def _unit(self, node: exp.Expr) -> str:
        if isinstance(node, exp.Var) or (isinstance(node, exp.Literal) and node.is_string):
            return str(node.this).lower()
        self.question.refuse("the part of a date must be a constant", "SF403", node)

    def _part(self, node: exp.Expr, at: exp.Expr) -> str:
        part = syntax.PARTS.get(self._unit(node))
        if part is None:
            hint = f"known parts: {', '.join(functions.DATE_PARTS)}"
            self.question.refuse("this part of a date is not known", "SF403", at, hint)
        return part

    def _refuse(self, node: exp.Expr) -> NoReturn:
        refuse = self.question.refuse
        inner = node.unnest() if isinstance(node, exp.Subquery) else node
        if isinstance(inner, exp.Select) and any(map(syntax.has_aggregate, inner.expressions)):
            hint = "ask for it by itself first; then write the number that was released in its place"
            refuse("a number about everybody is private, too", "SF404", node, hint)
        if isinstance(node, (exp.Query, exp.In, exp.Exists, exp.All, exp.Any)):
            where = "in FROM, or as [NOT] EXISTS or [NOT] IN among the conditions of WHERE"
            hint = "conditions of WHERE are joined by AND; under OR one of them may be a subquery"
            refuse(f"a subquery can stand only {where}", "SF404", node, hint)
        if isinstance(node, exp.Window):
            hint = "aggregate first: a window over the noisy result is free"
            refuse("a window over private rows would mix people", "SF404", node, hint)
        name = self.question.name(node)
        if syntax.is_aggregate(node):
            refuse(f"the aggregate `{name}` cannot stand here", "SF404", node)
        if syntax.is_volatile(node):
            hint = "write the value itself into the question"
            refuse(f"`{name}` changes from call to call", "SF403", node, hint)
        hints = did_you_mean(name, functions.NAMES) if isinstance(node, exp.Func) else ()
        if type(node) in syntax.INSTEAD or name in syntax.INSTEAD:
            hints = (syntax.INSTEAD.get(type(node)) or syntax.INSTEAD[name],)
        refuse(f"`{name}` is not on the list of functions", "SF403", node, *hints)


def _days(name: str, day: Expression, other: Expression, span: Span | None) -> Expression:
    """Return a day some days later or earlier, or the number of days since another."""
    if name == "-" and other.kind is Kind.DATE:
        return functions.call("date_diff", (Literal(value="day", kind=Kind.TEXT), other, day), span)
    if not isinstance(other, Literal) or type(other.value) is not int:
        raise KindError(f"`{name}` takes a day and a constant number of days, or an INTERVAL")
    count = other.value if name == "+" else -other.value
    return conversions.cast(functions.later(day, "day", count, span), Kind.DATE, span)


def _target(to: exp.DataType) -> Kind | None:
    """Return the kind that a type is read as, None if there is none."""
    if to.this is not exp.DType.DECIMAL:
        return None if to.expressions else syntax.KINDS.get(to.this)
    sizes = [str(size.this) for size in to.expressions]
    if len(sizes) > 2 or not all(size.isdecimal() and len(size) <= 2 for size in sizes):
        return None
    digits, scale = (*(int(size) for size in sizes), 0)[:2]
    return Kind.decimal(digits, scale) if 1 <= digits <= MOST_DIGITS and scale <= digits else None


def _parts(node: exp.Expr, arguments: tuple[str, ...]) -> list[exp.Expr]:
    values = [node.args.get(argument) for argument in arguments]
    lists = [value if isinstance(value, list) else [value] for value in values if value is not None]
    return [part for one in lists for part in one]
