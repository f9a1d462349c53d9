"""What the parser's classes mean: which are functions of ours, which are aggregates, which are queries."""

from __future__ import annotations

from collections.abc import Iterator

from sqlglot import exp

from sfumato.aggregates.registry import Function, function_called
from sfumato.catalog.kind import Kind
from sfumato.plan.functions import DATE_PARTS

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

_ONE_ARGUMENT = (
    exp.Abs, exp.Ceil, exp.Day, exp.DayOfYear, exp.Exp, exp.Floor, exp.Hour, exp.Length, exp.Ln, exp.Lower,
    exp.Minute, exp.Month, exp.Quarter, exp.Second, exp.Sign, exp.Sqrt, exp.Upper, exp.Week,
    exp.Year, exp.Dayname, exp.Monthname,
)  # fmt: skip
_TWO_ARGUMENTS = {
    exp.Contains: "contains",
    exp.EndsWith: "ends_with",
    exp.Left: "left",
    exp.Nullif: "nullif",
    exp.Pow: "power",
    exp.Right: "right",
    exp.StartsWith: "starts_with",
}
_WITH_PATTERN = {  # and what follows it
    exp.RegexpExtract: ("regexp_extract", "group"),
    exp.RegexpFullMatch: ("regexp_full_match", "options"),
    exp.RegexpLike: ("regexp_matches", "flag"),
    exp.RegexpReplace: ("regexp_replace", "replacement", "modifiers"),
}

CALLS: dict[_Node, tuple[str, tuple[str, ...]]] = {
    **{node: (node.__name__.lower(), ("this",)) for node in _ONE_ARGUMENT},
    exp.DayOfMonth: ("day", ("this",)),
    exp.DayOfWeek: ("dow", ("this",)),
    exp.DayOfWeekIso: ("isodow", ("this",)),
    **{node: (name, ("this", "expression")) for node, name in _TWO_ARGUMENTS.items()},
    exp.Between: ("between", ("this", "low", "high")),
    exp.Coalesce: ("coalesce", ("this", "expressions")),
    exp.Concat: ("concat", ("expressions",)),
    exp.ConcatWs: ("concat_ws", ("expressions",)),
    exp.Greatest: ("greatest", ("this", "expressions")),
    exp.LastDay: ("last_day", ("this",)),
    exp.Least: ("least", ("this", "expressions")),
    **{node: (name, ("this", "expression", *rest)) for node, (name, *rest) in _WITH_PATTERN.items()},
    exp.Replace: ("replace", ("this", "expression", "replacement")),
    exp.Round: ("round", ("this", "decimals")),
    exp.SplitPart: ("split_part", ("this", "delimiter", "part_index")),
    exp.StrPosition: ("position", ("this", "substr")),
    exp.StrToTime: ("strptime", ("this", "format")),
    exp.Substring: ("substr", ("this", "start", "length")),
    exp.TimeToUnix: ("epoch", ("this",)),
    exp.Trunc: ("trunc", ("this", "decimals")),
}
"""Functions, with the parser's arguments in our order."""

NAMED: dict[str, str] = {
    "dow": "dow",
    "prefix": "starts_with",
    "suffix": "ends_with",
    "try_strptime": "strptime",
    "weekday": "dow",
}
"""Functions that the parser has no class for."""

IGNORED: dict[_Node, tuple[str, ...]] = {
    exp.Div: ("typed", "safe"),
    exp.DPipe: ("safe",),
    exp.Concat: ("safe", "coalesce"),
    exp.ConcatWs: ("safe", "coalesce"),
    exp.Least: ("ignore_nulls",),
    exp.Greatest: ("ignore_nulls",),
    exp.Count: ("big_int",),
    exp.RegexpExtract: ("null_if_pos_overflow",),
    exp.RegexpReplace: ("single_replace",),
}
"""Arguments by which the parser notes the dialect; they say nothing that was asked."""

_ONE_CHILD = (exp.Boolean, exp.From, exp.Having, exp.Neg, exp.Not, exp.Paren, exp.Qualify, exp.Where)

PLAIN: dict[_Node, tuple[str, ...]] = {
    **dict.fromkeys(_ONE_CHILD, ("this",)),
    **dict.fromkeys(
        (exp.Array, exp.Cube, exp.Distinct, exp.GroupingSets, exp.Rollup, exp.Tuple), ("expressions",)
    ),
    **dict.fromkeys((exp.Limit, exp.Offset), ("expression",)),
    **dict.fromkeys((exp.Filter, exp.WithinGroup), ("this", "expression")),
    exp.Alias: ("this", "alias"),
    exp.Column: ("this", "table"),
    exp.DataType: ("this", "expressions", "nested"),
    exp.Identifier: ("this", "quoted"),
    exp.Literal: ("this", "is_string"),
    exp.Null: (),
    exp.Order: ("this", "expressions"),
    exp.Ordered: ("this", "desc", "nulls_first"),
    exp.TableAlias: ("this", "columns"),
}
"""What small nodes may say, wherever they stand: `sql.request_of` refuses those that say more."""

PARTS: dict[str, str] = {
    **{part: part for part in DATE_PARTS},
    "dayofmonth": "day",
    "dayofweek": "dow",
    "doy": "dayofyear",
    "epoch": "epoch",
    "weekday": "dow",
}
"""Parts of dates, by the names that EXTRACT and DATE_PART take."""

TRIMS = {"": "trim", "BOTH": "trim", "LEADING": "ltrim", "TRAILING": "rtrim"}
"""Which side TRIM works on."""

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

KINDS: dict[exp.DType, Kind] = {
    **dict.fromkeys(LIMITS, Kind.INTEGER),
    exp.DType.BIGINT: Kind.INTEGER,
    exp.DType.UBIGINT: Kind.HUGEINT,
    exp.DType.INT128: Kind.HUGEINT,
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

_SAMPLED = ("entropy", "geomean", "geometric_mean", "kurtosis", "kurtosis_pop", "mad", "skewness")

AGGREGATES: dict[str, str] = {
    **{
        name: f"by blocks of people: SAMPLE_AND_AGGREGATE({name.upper()}(x), 0, 10), between 0 and 10"
        for name in _SAMPLED
    },
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
    exp.Interval: "add it to a date: DATE '2024-01-31' - INTERVAL 90 DAY",
    exp.Placeholder: "write the value itself into the question",
    exp.SimilarTo: "use REGEXP_FULL_MATCH, LIKE, CONTAINS, STARTS_WITH or ENDS_WITH",
    exp.Tuple: "join several values into one: a || '|' || b",
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


def is_volatile(node: exp.Expr) -> bool:
    """Whether a call's value changes from call to call."""
    return isinstance(node, _VOLATILE) or function_name(node) in _VOLATILE_NAMES


def is_aggregate(node: exp.Expr) -> bool:
    """Whether a node is an aggregate call, with what modifies it."""
    if isinstance(node, (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)):
        return is_aggregate(node.this)
    if isinstance(node, exp.Anonymous):
        name = str(node.this).lower()
        sampled = name == Function.SAMPLE_AND_AGGREGATE.label
        return sampled or name in AGGREGATES or function_called(name) is not None
    return isinstance(node, exp.AggFunc)


def within(node: exp.Expr) -> Iterator[exp.Expr]:
    """Yield the node and all below it, without entering queries."""
    below = [node]
    while below:
        yield (one := below.pop())
        below += [child for child in one.iter_expressions(reverse=True) if not isinstance(child, exp.Query)]


def has_aggregate(node: exp.Expr) -> bool:
    """Whether an expression contains an aggregate that is not itself a window function.

    In SUM(COUNT(*)) OVER () the sum is a window function, the count an aggregate.
    """
    if isinstance(node, exp.Query):
        return False
    if isinstance(node, exp.Window):
        inner: exp.Expr = node.this
        while isinstance(inner, (exp.Filter, exp.IgnoreNulls, exp.RespectNulls, exp.WithinGroup)):
            inner = inner.this
        rest = [child for child in node.iter_expressions() if child is not node.this]
        return any(has_aggregate(child) for child in [*inner.iter_expressions(), *rest])
    return is_aggregate(node) or any(has_aggregate(child) for child in node.iter_expressions())
