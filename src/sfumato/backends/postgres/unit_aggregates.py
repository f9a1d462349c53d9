"""Aggregates of one unit's rows in PostgreSQL's SQL; real values are added up in sorted order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from sfumato.aggregates.registry import Function
from sfumato.backends.dialect import Writer
from sfumato.backends.postgres.totality import bound, double, finite, fitted, fused, product, quotient
from sfumato.catalog.kind import MOST_DIGITS, Kind
from sfumato.errors import Unsupported
from sfumato.plan.tree import Aggregate, Expression

__all__ = ["unit_aggregate"]

_NEAR = 2.0**960  # fewer than 2^63 of these add up to no overflow
_END = "'Infinity'::double precision"
_LARGEST = double(1e140)  # squares of more could overflow; what lies beyond is cut to it
_SCALE = -100  # and fewer than 2^63 of any, times 2^-100


def unit_aggregate(aggregate: Aggregate, write: Writer) -> str:
    """Return an aggregate of one unit's rows; its values depend on their order in nothing."""
    where = "" if aggregate.where is None else f" FILTER (WHERE {write(aggregate.where)})"
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
            return f"CASE WHEN (count(*){where}) > 0 THEN '1'::bigint ELSE '0'::bigint END"
        case Function.MIN | Function.MAX if kind is Kind.BOOLEAN:
            return f"{'bool_and' if function is Function.MIN else 'bool_or'}({write(arguments[0])}){where}"
        case Function.MIN | Function.MAX:
            return f"{function.label}({write(arguments[0])}){where}"
        case Function.SUM if kind is Kind.INTEGER:
            return fitted(f"sum({write(arguments[0])}){where}", kind)
        case Function.SUM if kind is not None and kind.exact:
            return fitted(f"sum({write(arguments[0])}){where}", Kind.decimal(MOST_DIGITS, kind.scale))
        case Function.SUM_DISTINCT if kind is Kind.INTEGER:
            return fitted(f"sum(DISTINCT {write(arguments[0])}){where}", kind)
        case Function.SUM if kind is not None:
            return _real_sum(write(arguments[0], Kind.REAL), where)
        case Function.AVG if kind is not None and not kind.exact:
            value = write(arguments[0], Kind.REAL)
            return quotient(_real_sum(value, where), f"CAST(count({value}){where} AS double precision)")
        case Function.AVG if kind is not None:
            value = write(arguments[0])
            total, of = f"sum({value}){where}", Kind.HUGEINT
            if kind is not Kind.INTEGER:
                of = Kind.decimal(MOST_DIGITS, kind.scale)
                total = fitted(total, of)
            number = f"CAST(count({value}){where} AS double precision)"
            return quotient(write.dialect.converted(total, of, Kind.REAL), number)
        case Function.QUANTILE if len(aggregate.quantiles) == 1 and not aggregate.several:
            return _quantile(write(arguments[0], Kind.REAL), aggregate.quantiles[0], aggregate.where, write)
        case _ if function.record.standard:
            return _standard(function, [write(one, Kind.REAL) for one in arguments], aggregate.where, write)
    raise Unsupported(f"{function.label} of one unit's rows in PostgreSQL")


def _real_sum(value: str, where: str) -> str:
    """Add up binary numbers in sorted order, NULL where that overflows on its way; the engine's sum raises.

    Theorem: where a value is beyond 2^960, all are added up times 2^-100: fewer than 2^63 do not overflow.
    Scaling changes no rounding but of values below 2^-900, which are nothing beside the largest. In sorted
    order the sum falls while values are negative, and then rises: it overflows on its way if the sum of the
    negative ones does, or the whole.
    """
    scale, nothing = double(2.0**_SCALE), double(0.0)
    small = f"CASE WHEN abs({value}) < {double(2.0**-900)} THEN {nothing} ELSE {value} * {scale} END"
    negative = f"CASE WHEN {value} < {nothing} THEN {small} END"
    near = f"CASE WHEN abs({value}) <= {double(_NEAR)} THEN {value} END"
    sums = [f"sum({one} ORDER BY {one}){where}" for one in (near, small, negative)]
    end, back = double(2.0**1023 * 2.0 ** (_SCALE + 1)), double(2.0**-_SCALE)

    def form(largest: str, plain: str, scaled: str, falling: str) -> str:
        whole = f"CASE WHEN abs({scaled}) < {end} THEN {scaled} * {back} END"
        far = f"CASE WHEN {falling} <= -{end} THEN NULL ELSE {whole} END"
        return finite(f"CASE WHEN {largest} <= {double(_NEAR)} THEN {plain} ELSE {far} END")

    return bound((f"max(abs({value})){where}", *sums), form)


# -- in the order of values: what DuckDB computes, operation by operation --------------------


def _listed(values: Sequence[str], where: Expression | None, write: Writer) -> list[str]:
    """Return arrays of the values of rows that have all of them, in the order of the values."""
    there = [f"{value} IS NOT NULL" for value in values]
    there += [] if where is None else [f"({write(where)})"]
    order, those = ", ".join(values), " AND ".join(there)
    return [f"array_agg({value} ORDER BY {order}) FILTER (WHERE {those})" for value in values]


def _quantile(value: str, rank: float, where: Expression | None, write: Writer) -> str:
    """QUANTILE: between two values the mean of both by weight, the last sum of which is rounded once."""

    def between(low: str, high: str, apart: str) -> str:
        infinite = f"CASE WHEN {low} = {high} THEN {low} END"
        mean = fused(low, f"({double(1.0)} - {apart})", product(high, apart))
        sized = f"CASE WHEN abs({low}) < {_END} THEN CASE WHEN abs({high}) < {_END} THEN {mean} END END"
        return f"coalesce({sized}, CASE WHEN abs({low}) = {_END} THEN {infinite} END)"

    def form(x: str) -> str:
        place = f"SELECT CAST(cardinality({x}) - 1 AS double precision) * {double(rank)} AS p OFFSET 0"
        ends = ", ".join(f"{x}[CAST({name}(r.p) AS integer) + 1] AS {name}" for name in ("floor", "ceil"))
        found = f"SELECT {ends}, r.p - floor(r.p) AS apart FROM ({place}) AS r OFFSET 0"
        mean = between("q.floor", "q.ceil", "q.apart")
        return f"(SELECT CASE WHEN q.apart = 0 THEN q.floor ELSE {mean} END FROM ({found}) AS q)"

    return finite(bound(_listed((value,), where, write), form))


def _cut(value: str) -> str:
    return f"CASE WHEN {value} IS NOT NULL THEN least(greatest({value}, -{_LARGEST}), {_LARGEST}) END"


def _fold(arrays: Sequence[str], state: Mapping[str, str], means: Mapping[str, str], result: str) -> str:
    """Return `result` after all rows: `state` says what each row makes of it, `means` what is needed twice.

    Values stand there as g.x0, g.x1, the number of the row as g.n. All is zero before the first row.
    """
    nothing, names = double(0.0), list(state)
    values = ", ".join(f"{array}[f.n + 1] AS x{place}" for place, array in enumerate(arrays))
    number = "CAST(f.n + 1 AS double precision)"
    given = f"SELECT f.*, {number} AS k, {values} FROM f WHERE f.n < cardinality({arrays[0]}) OFFSET 0"
    twice = "".join(f", {sql} AS {name}" for name, sql in means.items())
    step = ", ".join(["g.n + 1", *state.values()])
    walk = f"SELECT {step} FROM (SELECT g.*{twice} FROM ({given}) AS g OFFSET 0) AS g"
    start = ", ".join(["0", *(f"{nothing} AS {name}" for name in names)])
    rows = f"WITH RECURSIVE f(n, {', '.join(names)}) AS (SELECT {start} UNION ALL {walk})"
    last = "SELECT f.*, CAST(f.n AS double precision) AS k FROM f ORDER BY f.n DESC LIMIT 1"
    return f"({rows} SELECT CASE WHEN g.n > 0 THEN {result} END FROM ({last}) AS g)"


def _welford(value: str, own: str) -> tuple[dict[str, str], dict[str, str]]:
    """Return the mean m and the sum s of squared differences from it, and the next mean."""
    following = f"g.m{own} + {quotient(f'({value} - g.m{own})', 'g.k')}"
    square = product(f"({value} - g.n{own})", f"({value} - g.m{own})")
    return {f"m{own}": f"g.n{own}", f"s{own}": f"g.s{own} + {square}"}, {f"n{own}": following}


def _variance(own: str, less: int = 0) -> str:
    nothing = double(0.0) if not less else "NULL"
    return (
        f"CASE WHEN g.n > 1 THEN {quotient(f'g.s{own}', f'(g.k - {double(float(less))})')} ELSE {nothing} END"
    )


def _standard(function: Function, values: Sequence[str], where: Expression | None, write: Writer) -> str:
    """Variances, covariances and lines: of y alone, or of y and x."""
    arrays = _listed([_cut(value) for value in values], where, write)
    state, means = _welford("g.x0", "y")
    if len(values) > 1:
        more, next_mean = _welford("g.x1", "x")
        state, means = {**state, **more}, {**means, **next_mean}
        state["c"] = fused("(g.x1 - g.mx)", "(g.x0 - g.ny)", "g.c")
        state |= {"ty": "g.ty + g.x0", "tx": "g.tx + g.x1"}
    result = _result(function)
    return finite(bound(arrays, lambda *given: _fold(given, state, means, result)))


def _result(function: Function) -> str:
    covariance, y, x = quotient("g.c", "g.k"), _variance("y"), _variance("x")
    slope = quotient(covariance, x)
    correlation = quotient(covariance, product(f"sqrt({x})", f"sqrt({y})"))
    match function:
        case Function.VAR_POP:
            return y
        case Function.VAR_SAMP:
            return _variance("y", 1)
        case Function.STDDEV_POP:
            return f"sqrt({y})"
        case Function.STDDEV_SAMP:
            return f"sqrt({_variance('y', 1)})"
        case Function.COVAR_POP:
            return covariance
        case Function.COVAR_SAMP:
            return quotient("g.c", f"(g.k - {double(1.0)})")
        case Function.CORR:
            return correlation
        case Function.REGR_SLOPE:
            return slope
        case Function.REGR_INTERCEPT:
            means = (quotient("g.tx", "g.k"), quotient("g.ty", "g.k"))
            return fused(f"(-{slope})", *means)
        case Function.REGR_R2:
            square = bound((correlation,), lambda r: product(r, r))
            level = f"CASE WHEN {y} = 0 THEN {double(1.0)} ELSE {square} END"
            return f"CASE WHEN {x} = 0 THEN NULL ELSE {level} END"
    raise Unsupported(f"{function.label} of one unit's rows in PostgreSQL")
