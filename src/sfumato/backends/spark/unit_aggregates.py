"""Aggregates of one unit's rows in Spark's SQL; real values are added up in sorted order."""

from __future__ import annotations

from sfumato.aggregates.registry import Function
from sfumato.backends.dialect import Writer
from sfumato.backends.spark.totality import bound, double, finite
from sfumato.catalog.kind import MOST_DIGITS, Kind
from sfumato.errors import Unsupported
from sfumato.plan.tree import Aggregate

__all__ = ["unit_aggregate"]

_HALF_DIGITS = 18  # of a quotient that is a BIGINT; 10^10 rows of such numbers add up in 28 digits
_HEADROOM = 10  # digits that the engine adds to those of a sum
_LARGEST = double(1e140)  # squares of more could overflow; what lies beyond is cut to it
_DEVIATIONS = (Function.VAR_POP, Function.VAR_SAMP, Function.STDDEV_POP, Function.STDDEV_SAMP)


def unit_aggregate(aggregate: Aggregate, write: Writer) -> str:
    """Return an aggregate of one unit's rows; its values depend on their order in nothing."""
    where = "" if aggregate.where is None else f" FILTER (WHERE {write(aggregate.where, Kind.BOOLEAN)})"
    function, arguments = aggregate.function, aggregate.arguments
    kind = arguments[0].kind if arguments else None
    match function:
        case Function.COUNT_ROWS:
            return f"count(*){where}"
        case Function.COUNT:
            return f"count({write(arguments[0])}){where}"
        case Function.COUNT_DISTINCT:
            return f"count(DISTINCT {write(arguments[0])}){where}"
        case Function.COUNT_UNITS:
            return f"CASE WHEN (count(*){where}) > 0 THEN 1L ELSE 0L END"
        case Function.MIN | Function.MAX:
            return f"{function.label}({write(arguments[0])}){where}"
        case Function.SUM | Function.SUM_DISTINCT if kind is Kind.INTEGER:
            one = "DISTINCT " if function is Function.SUM_DISTINCT else ""
            return f"try_cast({_whole_sum(one, write(arguments[0]), where)} AS BIGINT)"
        case Function.SUM if kind is not None and kind.digits:
            return _exact_sum(write, write(arguments[0]), kind, where)
        case Function.SUM if kind is not None and kind.binary:
            return finite(_real_sum(write(arguments[0], Kind.REAL), where))
        case Function.AVG if kind is not None and kind.binary:
            value = write(arguments[0], Kind.REAL)
            return finite(f"try_divide({_real_sum(value, where)}, CAST(count({value}){where} AS DOUBLE))")
        case Function.AVG if kind is Kind.INTEGER or (kind is not None and kind.digits):
            value = write(arguments[0])
            if kind is Kind.INTEGER:
                total, of = _whole_sum("", value, where), Kind.HUGEINT
            else:
                total, of = _exact_sum(write, value, kind, where), Kind.decimal(MOST_DIGITS, kind.scale)
            number = f"CAST(count({value}){where} AS DOUBLE)"
            return finite(f"try_divide({write.dialect.converted(total, of, Kind.REAL)}, {number})")
        case Function.QUANTILE if aggregate.quantiles in ((0.0,), (0.5,), (1.0,)) and not aggregate.several:
            return _quantile(write(arguments[0], Kind.REAL), aggregate.quantiles[0], where)
        case _ if function in _DEVIATIONS:
            return _deviation(function, write(arguments[0], Kind.REAL), where)
    raise Unsupported(f"{function.label} of one unit's rows in Spark")


def _whole_sum(one: str, value: str, where: str) -> str:
    """Add up whole numbers of 64 bits as decimals: 2^63 times 2^63 rows have fewer than 38 digits."""
    return f"try_sum({one}CAST({value} AS DECIMAL(38,0))){where}"


def _exact_sum(write: Writer, value: str, kind: Kind, where: str) -> str:
    """Add up decimals, NULL where the sum has more than 38 digits, but not where it has them on its way.

    The engine holds ten more digits than a decimal has; where there are no ten more, quotients and remainders
    by a power of ten are added up instead, and joined with one sign.
    """
    total = write.dialect.sql_type(Kind.decimal(MOST_DIGITS, kind.scale))
    if kind.digits + _HEADROOM <= MOST_DIGITS:
        return f"CAST(try_sum({value}){where} AS {total})"
    tens = max(0, kind.digits - kind.scale - _HALF_DIGITS)
    if tens + kind.scale + _HEADROOM > MOST_DIGITS:
        raise Unsupported("a sum of one unit's decimals with so many digits behind the point in Spark")
    unit = f"'{10**tens}'::DECIMAL({tens + 1},0)"
    upper = f"try_sum(CAST({value} div {unit} AS DECIMAL(28,0))){where}"
    lower = f"try_sum({value} % {unit}){where}"

    def joined(high: str, low: str) -> str:
        high, low = f"({high} + {low} div {unit})", f"({low} % {unit})"
        turn = f"CASE WHEN {high} > 0 AND {low} < 0 THEN 1 WHEN {high} < 0 AND {low} > 0 THEN -1 ELSE 0 END"
        return bound(
            (high, low, turn), lambda h, lo, t: _sum(f"{h} - {t}", f"{lo} + {t} * {unit}", unit, total)
        )

    return bound((upper, lower), joined)


def _sum(high: str, low: str, unit: str, total: str) -> str:
    product = f"try_multiply(CAST({high} AS DECIMAL(38,0)), {unit})"
    return f"try_add(try_cast({product} AS {total}), try_cast({low} AS {total}))"


def _real_sum(value: str, where: str) -> str:
    """Add up binary numbers in sorted order, one after the other; NULL of none."""
    added = "aggregate({0}, 0D, (a, x) -> a + x)"
    return bound((_ordered(value, where),), lambda x: f"CASE WHEN size({x}) > 0 THEN {added.format(x)} END")


def _ordered(value: str, where: str) -> str:
    return f"array_sort(collect_list({value}){where})"


def _quantile(value: str, rank: float, where: str) -> str:
    """Return the first, the last or the middle value: of two in the middle the mean, which is rounded once.

    DuckDB adds half of the lower one, unrounded, to half of the other. Half of a number is exact unless that
    is smaller than all normal ones; then the sum of the one and twice that half is, or its half is.
    """

    def middle(x: str) -> str:
        low, high = (f"get({x}, shiftright(size({x}) - {less}, 1))" for less in (1, 0))
        half = f"({high} * 0.5D)"
        mean = f"CASE WHEN abs({low}) < 1D THEN ({low} + 2D * {half}) * 0.5D ELSE {low} * 0.5D + {half} END"
        return f"CASE WHEN size({x}) % 2 = 1 THEN {low} ELSE {mean} END"

    if rank != 0.5:
        return finite(f"{'max' if rank else 'min'}({value}){where}")
    return finite(bound((_ordered(value, where),), middle))


def _deviation(function: Function, value: str, where: str) -> str:
    """Return what DuckDB computes, operation by operation: a mean that moves, and squares around it."""
    cut = f"CASE WHEN {value} IS NOT NULL THEN least(greatest({value}, -{_LARGEST}), {_LARGEST}) END"
    mean = "(t.m + (x - t.m) / (t.n + 1D))"
    step = f"named_struct('n', t.n + 1D, 'm', {mean}, 's', t.s + (x - {mean}) * (x - t.m))"
    if function in (Function.VAR_POP, Function.STDDEV_POP):
        result = "CASE WHEN t.n > 1D THEN t.s / greatest(t.n, 1D) WHEN t.n = 1D THEN 0D END"
    else:
        result = "CASE WHEN t.n > 1D THEN t.s / greatest(t.n - 1D, 1D) END"
    if function in (Function.STDDEV_POP, Function.STDDEV_SAMP):
        result = f"sqrt({result})"
    start = "named_struct('n', 0D, 'm', 0D, 's', 0D)"
    return finite(f"aggregate({_ordered(cut, where)}, {start}, (t, x) -> {step}, t -> {result})")
