"""Post-processing: what may run over noisy tables, outside the vault, by allow-list.

The sandbox that runs it holds no private data; the list is there so that it reads no file,
calls nothing unknown, and names only tables that exist. Rendering is the parser's own, so
that nothing that was written is lost.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from sqlglot import ErrorLevel, exp

from sfumato.plan.hints import did_you_mean
from sfumato.plan.limits import LARGEST
from sfumato.plan.question import Statement
from sfumato.plan.syntax import BINARY, CALLS, KINDS, NAMED, is_volatile

__all__ = ["check", "output_names", "rebuilt", "unique"]

_WINDOWS = (
    exp.CumeDist, exp.DenseRank, exp.FirstValue, exp.Lag, exp.LastValue, exp.Lead, exp.NthValue,
    exp.Ntile, exp.PercentRank, exp.Rank, exp.RowNumber,
)  # fmt: skip
_AGGREGATES = (
    exp.ArgMax, exp.ArgMin, exp.Avg, exp.Corr, exp.Count, exp.CountIf, exp.CovarPop, exp.CovarSamp, exp.Max,
    exp.Median, exp.Min, exp.Mode, exp.PercentileCont, exp.PercentileDisc, exp.Quantile, exp.Stddev,
    exp.StddevPop, exp.StddevSamp, exp.Sum, exp.Variance, exp.VariancePop,
)  # fmt: skip
_SHAPES = (
    exp.Alias, exp.Array, exp.Boolean, exp.Column, exp.CTE, exp.Cube, exp.Distinct,
    exp.Except, exp.Filter, exp.From, exp.Group, exp.GroupingSets, exp.Having, exp.Identifier,
    exp.Intersect, exp.Join, exp.Limit, exp.Literal, exp.Null, exp.Offset, exp.Order, exp.Ordered, exp.Paren,
    exp.Qualify, exp.Rollup, exp.Select, exp.Star, exp.Subquery, exp.Table, exp.TableAlias, exp.Tuple,
    exp.Union, exp.Where, exp.Window, exp.WindowSpec, exp.With, exp.WithinGroup,
)  # fmt: skip
_EXPRESSIONS = (
    exp.ArraySize, exp.Case, exp.Cast, exp.DPipe, exp.DateAdd, exp.DateDiff, exp.DateTrunc, exp.Exists,
    exp.Extract, exp.Format, exp.ILike, exp.If, exp.In, exp.Interval, exp.Is, exp.Like, exp.Log, exp.Neg,
    exp.Not, exp.NullSafeEQ, exp.NullSafeNEQ, exp.Pad, exp.Pi, exp.StructExtract, exp.TimeToStr,
    exp.TimestampTrunc, exp.Trim, exp.TryCast,
)  # fmt: skip
_ALLOWED = {*_WINDOWS, *_AGGREGATES, *_SHAPES, *_EXPRESSIONS, *BINARY, *CALLS}
_WITH_PARTS = (exp.DateDiff, exp.DateTrunc, exp.Extract, exp.Interval, exp.TimestampTrunc)
_NAMES = {*NAMED, "date_part", "datepart", "list_extract", "mean"}
_INSTEAD: dict[type[exp.Expr], str] = {
    exp.Any: "compare with MAX or MIN of the subquery, or use IN",
    exp.Bracket: "list_extract(list, 1) is its first element",
    exp.DataType: "convert to DOUBLE, BIGINT, DECIMAL(18, 2), VARCHAR, BOOLEAN, DATE or TIMESTAMP",
    exp.Var: "leave it out",
}
_KNOWN = tuple(sorted({*_NAMES, *(name for name, _ in CALLS.values())}))


def check(node: exp.Expr, question: Statement) -> None:
    """Refuse one node of post-processing that is not on the list; its children are checked by themselves."""
    whole = isinstance(node, exp.Literal) and not node.is_string and str(node.this).isdecimal()
    if whole and int(node.this) > LARGEST:
        hint = "whole numbers have 128 bits; 1.5e40 is a binary number"
        question.refuse("this whole number is too large", "SF401", node, hint)
    if type(node) in _ALLOWED:
        return
    parent = node.parent
    match node:
        case exp.DataType() if KINDS.get(node.this) is not None and not node.expressions:
            return
        case exp.DataType() if node.this is exp.DType.DECIMAL:
            return
        case exp.DataTypeParam() if isinstance(parent, exp.DataType):
            return
        case exp.Var() if isinstance(parent, _WITH_PARTS):
            return
        case exp.Var() if isinstance(parent, exp.Ordered) and str(node.this).upper() == "ALL":
            return
        case exp.Anonymous() if str(node.this).lower() in _NAMES:
            return
        case exp.Func():
            name = question.name(node)
            volatile = ("write the value itself into the question",)
            hints = volatile if is_volatile(node) else did_you_mean(name, _KNOWN)
            question.refuse(f"`{name}` is not on the list of functions", "SF403", node, *hints)
    hints = (_INSTEAD[type(node)],) if type(node) in _INSTEAD else ()
    message = f"{type(node).__name__.upper()} is not supported here"
    question.refuse(message, "SF404", node, *hints)


def rebuilt(node: exp.Expr, change: Callable[[exp.Expr], exp.Expr]) -> exp.Expr:
    """Return the same node over changed children."""

    def changed(value: Any) -> Any:
        if isinstance(value, list):
            return [changed(part) for part in value]
        return change(value) if isinstance(value, exp.Expr) else value

    new = type(node)(**{name: changed(value) for name, value in node.args.items()})
    new.meta.update(node.meta)
    return new


def output_names(items: list[exp.Expr]) -> list[str]:
    """Return what the columns of a SELECT list are called: the alias, the column, or the text itself."""
    return [
        item.alias
        if isinstance(item, exp.Alias)
        else item.name
        if isinstance(item, exp.Column)
        else item.sql(dialect="duckdb", comments=False, unsupported_level=ErrorLevel.IGNORE)
        for item in items
    ]


def unique(names: list[str]) -> list[str]:
    """Return the names with repeated ones numbered, as engines do.

    >>> unique(["n", "N", "n_1"])
    ['n', 'N_1', 'n_1_1']
    """
    taken: set[str] = set()
    result = []
    for name in names:
        free, count = name, 0
        while free.lower() in taken:
            count += 1
            free = f"{name}_{count}"
        taken.add(free.lower())
        result.append(free)
    return result
