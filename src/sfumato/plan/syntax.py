"""What the parser's classes mean: which are functions of ours, which are aggregates, which are queries."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from sfumato.aggregates.registry import function_called
from sfumato.catalog.kind import Kind

__all__ = [
    "AGGREGATES",
    "BINARY",
    "CALLS",
    "IGNORED",
    "INSTEAD",
    "KINDS",
    "LIMITS",
    "NAMED",
    "PARTS",
    "PLAIN",
    "TRIMS",
    "conjuncts",
    "function_name",
    "has_aggregate",
    "is_aggregate",
    "is_query",
    "is_volatile",
    "within",
]

_Node = type[exp.Expr]

BINARY: dict[_Node, str] = {
    exp.Add: "+",
    exp.Sub: "-",
    exp.Mul: "*",
    exp.Div: "/",
    exp.IntDiv: "//",
    exp.Mod: "%",
    exp.EQ: "=",
    exp.NEQ: "<>",
    exp.LT: "<",
    exp.LTE: "<=",
    exp.GT: ">",
    exp.GTE: ">=",
    exp.And: "and",
    exp.Or: "or",
    exp.DPipe: "||",
}
"""Operators with two sides."""

CALLS: dict[_Node, tuple[str, tuple[str, ...]]] = {
    exp.Abs: ("abs", ("this",)),
    exp.Round: ("round", ("this", "decimals")),
    exp.Floor: ("floor", ("this",)),
    exp.Ceil: ("ceil", ("this",)),
    exp.Sqrt: ("sqrt", ("this",)),
    exp.Ln: ("ln", ("this",)),
    exp.Exp: ("exp", ("this",)),
    exp.Pow: ("power", ("this", "expression")),
    exp.Least: ("least", ("this", "expressions")),
    exp.Greatest: ("greatest", ("this", "expressions")),
    exp.Between: ("between", ("this", "low", "high")),
    exp.Coalesce: ("coalesce", ("this", "expressions")),
    exp.Nullif: ("nullif", ("this", "expression")),
    exp.Lower: ("lower", ("this",)),
    exp.Upper: ("upper", ("this",)),
    exp.Length: ("length", ("this",)),
    exp.Substring: ("substr", ("this", "start", "length")),
    exp.Replace: ("replace", ("this", "expression", "replacement")),
    exp.Concat: ("concat", ("expressions",)),
    exp.Left: ("left", ("this", "expression")),
    exp.Right: ("right", ("this", "expression")),
    exp.Contains: ("contains", ("this", "expression")),
    exp.StartsWith: ("starts_with", ("this", "expression")),
    exp.EndsWith: ("ends_with", ("this", "expression")),
    exp.Year: ("year", ("this",)),
    exp.Quarter: ("quarter", ("this",)),
    exp.Month: ("month", ("this",)),
    exp.Week: ("week", ("this",)),
    exp.Day: ("day", ("this",)),
    exp.DayOfMonth: ("day", ("this",)),
    exp.DayOfWeek: ("dow", ("this",)),
    exp.DayOfWeekIso: ("isodow", ("this",)),
    exp.DayOfYear: ("dayofyear", ("this",)),
    exp.Hour: ("hour", ("this",)),
    exp.Minute: ("minute", ("this",)),
}
"""Functions, with the parser's arguments in our order."""

NAMED: dict[str, str] = {
    "dow": "dow",
    "prefix": "starts_with",
    "suffix": "ends_with",
    "weekday": "dow",
}
"""Functions that the parser has no class for."""

IGNORED: dict[_Node, tuple[str, ...]] = {
    exp.Div: ("typed", "safe"),
    exp.DPipe: ("safe",),
    exp.Concat: ("safe", "coalesce"),
    exp.Least: ("ignore_nulls",),
    exp.Greatest: ("ignore_nulls",),
    exp.Count: ("big_int",),
}
"""Arguments by which the parser notes the dialect; they say nothing that was asked."""

PLAIN: dict[_Node, tuple[str, ...]] = {
    exp.Alias: ("this", "alias"),
    exp.Array: ("expressions",),
    exp.Boolean: ("this",),
    exp.Column: ("this", "table"),
    exp.Cube: ("expressions",),
    exp.DataType: ("this", "expressions", "nested"),
    exp.Distinct: ("expressions",),
    exp.Filter: ("this", "expression"),
    exp.From: ("this",),
    exp.GroupingSets: ("expressions",),
    exp.Having: ("this",),
    exp.Identifier: ("this", "quoted"),
    exp.Limit: ("expression",),
    exp.Literal: ("this", "is_string"),
    exp.Null: (),
    exp.Offset: ("expression",),
    exp.Order: ("this", "expressions"),
    exp.Ordered: ("this", "desc", "nulls_first"),
    exp.Paren: ("this",),
    exp.Qualify: ("this",),
    exp.Rollup: ("expressions",),
    exp.TableAlias: ("this", "columns"),
    exp.Tuple: ("expressions",),
    exp.Where: ("this",),
    exp.WithinGroup: ("this", "expression"),
}
"""What small nodes may say, wherever they stand."""

PARTS: dict[str, str] = {
    **{part: part for part in ("year", "quarter", "month", "week", "day", "dow", "hour", "minute")},
    "dayofmonth": "day",
    "dayofweek": "dow",
    "dayofyear": "dayofyear",
    "doy": "dayofyear",
    "isodow": "isodow",
    "weekday": "dow",
}
"""Parts of dates, by the names that EXTRACT and DATE_PART take."""

TRIMS = {"": "trim", "BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}
"""Which side TRIM works on."""

KINDS: dict[exp.DType, Kind] = {
    exp.DType.TINYINT: Kind.INTEGER,
    exp.DType.SMALLINT: Kind.INTEGER,
    exp.DType.INT: Kind.INTEGER,
    exp.DType.BIGINT: Kind.INTEGER,
    exp.DType.INT128: Kind.HUGEINT,
    exp.DType.UTINYINT: Kind.INTEGER,
    exp.DType.USMALLINT: Kind.INTEGER,
    exp.DType.UINT: Kind.INTEGER,
    exp.DType.UBIGINT: Kind.HUGEINT,
    exp.DType.FLOAT: Kind.FLOAT,
    exp.DType.DOUBLE: Kind.REAL,
    exp.DType.TEXT: Kind.TEXT,
    exp.DType.VARCHAR: Kind.TEXT,
    exp.DType.BOOLEAN: Kind.BOOLEAN,
    exp.DType.DATE: Kind.DATE,
    exp.DType.TIMESTAMP: Kind.TIMESTAMP,
    exp.DType.TIMESTAMPNTZ: Kind.TIMESTAMP,
}
"""Types that values can be converted to, besides DECIMAL with its digits."""

LIMITS: dict[exp.DType, tuple[int, int]] = {
    exp.DType.TINYINT: (-(2**7), 2**7 - 1),
    exp.DType.SMALLINT: (-(2**15), 2**15 - 1),
    exp.DType.INT: (-(2**31), 2**31 - 1),
    exp.DType.UTINYINT: (0, 2**8 - 1),
    exp.DType.USMALLINT: (0, 2**16 - 1),
    exp.DType.UINT: (0, 2**32 - 1),
    exp.DType.UBIGINT: (0, 2**64 - 1),
}
"""Types of whole numbers that hold fewer than their kind does."""

AGGREGATES: dict[str, str] = {
    "arbitrary": "no single person's value can be shown",
    "favg": "use AVG",
    "fsum": "use SUM",
    "kahan_sum": "use SUM",
    "sumkahan": "use SUM",
}
"""Aggregates that the parser has no class for, and that are refused, each with a hint."""

INSTEAD: dict[_Node | str, str] = {
    exp.Collate: "texts are compared letter by letter: LOWER(x) = LOWER(y) does not see case",
    exp.Escape: "LIKE takes a pattern without ESCAPE; CONTAINS(x, '50%') finds a percent sign",
    exp.Glob: "use LIKE, CONTAINS, STARTS_WITH or ENDS_WITH",
    exp.Interval: "write the date itself, or count: DATE_DIFF('day', DATE '2024-01-31', x) > 90",
    exp.Log: "LN(x) / 2.302585 is the logarithm to the base of ten",
    exp.RegexpLike: "use LIKE, CONTAINS, STARTS_WITH or ENDS_WITH",
    exp.RegexpFullMatch: "use LIKE, CONTAINS, STARTS_WITH or ENDS_WITH",
    exp.Placeholder: "write the value itself into the question",
    exp.Sign: "CASE WHEN x > 0 THEN 1 WHEN x < 0 THEN -1 ELSE 0 END",
    exp.SimilarTo: "use LIKE, CONTAINS, STARTS_WITH or ENDS_WITH",
    exp.SplitPart: "use LEFT, RIGHT or SUBSTR",
    exp.TimeToStr: "group by YEAR(x) and MONTH(x), or by DATE_TRUNC('month', x)",
    exp.Trunc: "ROUND(x), FLOOR(x), or CAST(x AS INTEGER)",
    exp.Tuple: "join several values into one: a || '|' || b",
    "dayname": "ISODOW(x) is 1 on Mondays",
    "monthname": "MONTH(x) is a number from 1 to 12",
    "strlen": "LENGTH(x) counts characters",
}
"""What to write instead of what is refused, by the parser's class or by name."""

_VOLATILE_NAMES = {
    "currval", "gen_random_uuid", "get_current_timestamp", "nextval", "now", "setseed",
    "today", "transaction_timestamp", "txid_current", "uuidv4", "uuidv7",
}  # fmt: skip
_VOLATILE = (exp.CurrentDate, exp.CurrentTime, exp.CurrentTimestamp, exp.Rand, exp.Uuid)


def conjuncts(node: exp.Expr) -> list[exp.Expr]:
    """Return the conditions that AND joins."""
    found, rest = [], [node]
    while rest:
        part = rest.pop().unnest()
        if isinstance(part, exp.And):
            rest += [part.expression, part.this]
        else:
            found.append(part)
    return found


def function_name(node: exp.Expr) -> str:
    """Return the name a function or operator goes by, for messages."""
    if isinstance(node, (exp.Anonymous, exp.AnonymousAggFunc)):
        return str(node.this).lower()
    if isinstance(node, exp.Func):
        return node.sql_name().lower()
    return type(node).__name__.lower()


def is_query(node: exp.Expr) -> bool:
    """Whether a node is a query, bare or in parentheses."""
    return isinstance(node, exp.Query)


def is_volatile(node: exp.Expr) -> bool:
    """Whether a call's value changes from call to call."""
    return isinstance(node, _VOLATILE) or function_name(node) in _VOLATILE_NAMES


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node is an aggregate call, with what modifies it."""
    if isinstance(node, (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)):
        return is_aggregate(node.this)
    if isinstance(node, exp.Anonymous):
        name = str(node.this).lower()
        return name in AGGREGATES or function_called(name) is not None
    return isinstance(node, exp.AggFunc)


def within(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the node and all below it, without entering queries."""
    yield node
    for child in node.iter_expressions():
        if not is_query(child):
            yield from within(child)


def has_aggregate(node: exp.Expr) -> bool:
    """Whether an expression contains an aggregate that is not itself a window function.

    In SUM(COUNT(*)) OVER () the sum is a window function, the count an aggregate.
    """
    if is_query(node):
        return False
    if isinstance(node, exp.Window):
        inner: exp.Expr = node.this
        while isinstance(inner, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)):
            inner = inner.this
        rest = [child for child in node.iter_expressions() if child is not node.this]
        return any(has_aggregate(child) for child in [*inner.iter_expressions(), *rest])
    return is_aggregate(node) or any(has_aggregate(child) for child in node.iter_expressions())
