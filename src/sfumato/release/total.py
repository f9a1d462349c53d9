"""Total arithmetic over noisy numbers: what has no value becomes NULL, and nothing that was paid for is lost.

The rule is that of row-wise expressions. A cast that fails, an overflow, a position that no text has:
NULL, where it stands, so that COALESCE around it works. A quotient by a noisy zero, the logarithm of
nothing: NULL, not infinite. What the engine gives no such form (an argument of a window function, a
subquery of several rows) fails as a whole; `publication` then shows the noisy table itself.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from sfumato.plan.syntax import CALLS

__all__ = ["FINITE", "FINITE_MACRO", "total"]

FINITE = "finite_or_null"
FINITE_MACRO = f"""
    CREATE MACRO {FINITE}(given) AS list_transform([given], lambda one:
        NULLIF(NULLIF(NULLIF(one, 'nan'::DOUBLE), 'inf'::DOUBLE), '-inf'::DOUBLE))[1]
"""
"""NULL for a number that is not finite. Three times NULLIF would copy their argument eight times."""

# Of numbers that may not be finite: arithmetic, and moments.
_ENDLESS: set[Any] = {exp.Div, exp.Mul, exp.Sqrt, exp.Ln, exp.Log, exp.Exp, exp.Pow}
_ENDLESS |= {exp.Corr, exp.CovarPop, exp.CovarSamp, exp.Stddev, exp.StddevPop, exp.StddevSamp}
_ENDLESS |= {exp.Variance, exp.VariancePop}
_FAILING: set[Any] = {exp.Add, exp.Sub, exp.Mul, exp.Div, exp.IntDiv, exp.Mod, exp.Neg, exp.Anonymous}
_FAILING |= {exp.DateAdd, exp.DateDiff, exp.DateTrunc, exp.Extract, exp.Format, exp.Log, exp.Pad}
_FAILING |= {exp.TimestampTrunc, exp.TimeToStr}
_FAILING |= {*CALLS} - {exp.Between, exp.Coalesce, exp.Greatest, exp.Least, exp.Nullif}  # as their arguments
_NOT_OF_A_ROW = (exp.AggFunc, exp.Query, exp.Window, exp.Exists)  # TRY cannot stand around these


@lru_cache(maxsize=64)
def total(sql: str, *, finite: bool = True) -> str:
    """Return a statement whose arithmetic and conversions cannot fail, and whose numbers are finite.

    >>> total('SELECT "a" / "b" AS "c" FROM "t"')
    'SELECT FINITE_OR_NULL(TRY("a" / "b")) AS "c" FROM "t"'
    """
    try:
        statement = sqlglot.parse_one(sql, read="duckdb")
    except SqlglotError:  # the engine will say so
        return sql
    return str(_changed(statement, finite).sql("duckdb"))


def _changed(node: Any, finite: bool) -> Any:
    """Return a node over changed children."""
    for name, value in list(node.args.items()):
        if isinstance(value, list):
            node.set(name, [_changed(part, finite) if isinstance(part, exp.Expr) else part for part in value])
        elif isinstance(value, exp.Expr):
            node.set(name, _changed(value, finite))
    if type(node) is exp.Cast:
        return exp.TryCast(this=node.this, to=node.to)
    found = node
    if type(node) in _FAILING and not any(isinstance(part, _NOT_OF_A_ROW) for part in node.walk()):
        found = exp.Try(this=node)
    if (
        finite
        and type(node) in _ENDLESS
        and not isinstance(node.parent, (exp.Filter, exp.WithinGroup, exp.Window))
    ):
        found = exp.Anonymous(this=FINITE, expressions=[found])
    return found
