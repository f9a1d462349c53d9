"""Aggregates of one unit's rows in DuckDB's SQL: real values are added up in sorted order."""

from __future__ import annotations

from decimal import Decimal

from sfumato.aggregates.registry import Function
from sfumato.backends.dialect import Writer
from sfumato.backends.duckdb.totality import finite
from sfumato.catalog.kind import MOST_DIGITS, Kind
from sfumato.errors import Unsupported
from sfumato.plan.tree import Aggregate

__all__ = ["unit_aggregate"]

_LARGEST = "1e140"  # squares of more could overflow; what lies beyond is cut to it
_HALF = 10**19  # quotients and remainders by it add up within 128 bits, over 2^63 rows
_WORD_DIGITS = 18  # decimals of no more digits add up within 128 bits, over 2^63 rows


def unit_aggregate(aggregate: Aggregate, write: Writer) -> str:
    """Return an aggregate of one unit's rows; its values depend on their order in nothing."""
    where = "" if aggregate.where is None else f" FILTER (WHERE {write(aggregate.where)})"
    function, arguments = aggregate.function, aggregate.arguments
    match function:
        case Function.COUNT_ROWS:
            return f"count(*){where}"
        case Function.COUNT:
            return f"count({write(arguments[0])}){where}"
        case Function.COUNT_DISTINCT:
            return f"count(DISTINCT {write(arguments[0])}){where}"
        case Function.COUNT_UNITS:
            return f"CASE WHEN (count(*){where}) > 0 THEN 1 ELSE 0 END::BIGINT"
        case Function.MIN | Function.MAX:
            return f"{function.label}({write(arguments[0])}){where}"
        case Function.SUM if arguments[0].kind is Kind.INTEGER:
            return f"TRY_CAST(sum({write(arguments[0])}){where} AS BIGINT)"
        case Function.SUM if arguments[0].kind is not None and arguments[0].kind.exact:
            return _exact_sum(write, write(arguments[0]), arguments[0].kind, where)
        case Function.SUM:
            value = write(arguments[0], Kind.REAL)
            return finite(f"sum({value} ORDER BY {value}){where}")
        case Function.SUM_DISTINCT if arguments[0].kind is Kind.INTEGER:
            return f"TRY_CAST(sum(DISTINCT {write(arguments[0])}){where} AS BIGINT)"
        case Function.AVG if arguments[0].kind is not None and arguments[0].kind.exact:
            value, kind = write(arguments[0]), arguments[0].kind
            total = f"sum({value}){where}" if kind is Kind.INTEGER else _exact_sum(write, value, kind, where)
            return f"CAST({total} AS DOUBLE) / nullif(count({value}){where}, 0)"
        case Function.AVG:
            value = write(arguments[0], Kind.REAL)
            total = f"sum({value} ORDER BY {value}){where}"
            return finite(f"{total} / nullif(count({value}){where}, 0)")
        case Function.QUANTILE if len(aggregate.quantiles) == 1 and not aggregate.several:
            value = write(arguments[0], Kind.REAL)
            return finite(f"quantile_cont({value}, {aggregate.quantiles[0]!r}){where}")
        case _ if function.record.standard:
            values = [_cut(write(argument, Kind.REAL)) for argument in arguments]
            ordered = ", ".join(values)
            return finite(f"{function.label}({ordered} ORDER BY {ordered}){where}")
    raise Unsupported(f"{function.label} of one unit's rows")


def _exact_sum(write: Writer, value: str, kind: Kind, where: str) -> str:
    """Add up whole numbers of 128 bits, or decimals: NULL where the sum does not fit.

    The engine's own sum of 128-bit numbers fails at the first overflow on its way, which depends on the
    order of rows. So a wide decimal is taken for the whole number that its digits are, and numbers are
    summed in halves.
    """
    total = write.dialect.sql_type(Kind.decimal(MOST_DIGITS, kind.scale))
    if 0 < kind.digits <= _WORD_DIGITS:
        return f"CAST(sum({value}){where} AS {total})"
    whole = value if not kind.digits else f"CAST(replace(CAST({value} AS VARCHAR), '.', '') AS HUGEINT)"
    half = f"{_HALF}::HUGEINT"
    upper, lower = (f"sum({whole} {name} {half}){where}" for name in ("//", "%"))
    joined = f"s.u * {half} + s.l"
    if kind.digits:
        unit = write.dialect.constant(Decimal((0, (1,), -kind.scale)))
        joined = f"CAST({joined} AS DECIMAL({MOST_DIGITS},0)) * {unit}"
    # TRY takes no aggregates; inside the function of a list it sees their values
    return f"list_transform([{{'u': {upper}, 'l': {lower}}}], lambda s: TRY({joined}))[1]"


def _cut(value: str) -> str:
    return f"CASE WHEN {value} IS NOT NULL THEN least(greatest({value}, -{_LARGEST}), {_LARGEST}) END"
