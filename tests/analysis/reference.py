"""A slow engine in plain Python: what a bounded query means, word by word.

Numbers are ints, Fractions, or floats that are infinite or NaN; None is NULL.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from sfumato.analysis.bounded import BoundedQuery, Factor, Measure, MeasureKind
from sfumato.catalog import Kind
from sfumato.plan.tree import Call, Case, Cast, ColumnRef, Expression, Literal

Row = Mapping[str, Any]


# -- expressions ----------------------------------------------------------------------------


def evaluate(expression: Expression, row: Row) -> Any:
    match expression:
        case ColumnRef(name=name):
            return row[name]
        case Literal(value=value):
            return Fraction(value) if isinstance(value, float) else value
        case Case(branches=branches, otherwise=otherwise):
            for condition, value in branches:
                if evaluate(condition, row) is True:
                    return evaluate(value, row)
            return evaluate(otherwise, row)
        case Cast(operand=operand, kind=kind):
            return _cast(evaluate(operand, row), kind)
        case Call(function=function, arguments=arguments):
            return _call(function, [evaluate(argument, row) for argument in arguments])
    raise TypeError(expression)


def _cast(value: Any, kind: Kind) -> Any:
    if value is None or isinstance(value, str):
        return None
    if kind is Kind.INTEGER and isinstance(value, (float, Fraction)):
        return None if isinstance(value, float) and not math.isfinite(value) else round(value)
    return int(value) if kind is Kind.INTEGER else value


def _call(function: str, x: list[Any]) -> Any:
    if function == "is_null":
        return x[0] is None
    if function == "coalesce":
        return next((value for value in x if value is not None), None)
    if function in ("least", "greatest"):
        present = [value for value in x if value is not None]
        return (min if function == "least" else max)(present) if present else None
    if function == "and":
        return False if False in x else (None if None in x else True)
    if any(value is None for value in x):
        return None
    if function == "nullif":
        return None if x[0] == x[1] else x[0]
    if function == "not":
        return not x[0]
    try:
        return _OPERATORS[function](*x)
    except (ZeroDivisionError, OverflowError, ValueError):
        return None


def _power(base: Any, exponent: Any) -> Any:
    if Fraction(exponent).denominator == 1 and abs(exponent) < 100:
        return Fraction(base) ** int(exponent)
    return Fraction(math.pow(base, exponent))


_OPERATORS: dict[str, Any] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: Fraction(a) / Fraction(b),
    "%": lambda a, b: a - b * math.trunc(Fraction(a) / Fraction(b)),
    "neg": lambda a: -a,
    "abs": abs,
    "floor": math.floor,
    "ceil": math.ceil,
    "round": lambda a, places=0: Fraction(math.floor(a * 10**places + Fraction(1, 2))) / 10**places,
    "sqrt": lambda a: Fraction(math.sqrt(a)),
    "ln": lambda a: Fraction(math.log(a)),
    "exp": lambda a: Fraction(math.exp(a)),
    "power": _power,
    "length": len,
    "=": lambda a, b: a == b,
    "<": lambda a, b: a < b,
    ">": lambda a, b: a > b,
    "<=": lambda a, b: a <= b,
    ">=": lambda a, b: a >= b,
    "between": lambda a, low, high: low <= a <= high,
}


# -- bounded queries ------------------------------------------------------------------------


def run(query: BoundedQuery, rows: Sequence[tuple[int, Row]], salt: str = "salt") -> list[dict[Any, Any]]:
    """Return for each grouping set {key: {measure: integer or cells}}; groups without rows are absent."""
    kept: dict[tuple[int, Any], list[Row]] = {}
    for unit, row in rows:
        key = tuple(evaluate(expression, row) for _, expression in query.keys)
        if query.declared is None or key in query.declared:
            kept.setdefault((unit, key), []).append(row)
    if query.max_groups is not None:
        by_unit: dict[int, list[Any]] = {}
        for unit, key in kept:
            by_unit.setdefault(unit, []).append(key)
        for unit, keys in by_unit.items():
            for key in sorted(keys, key=lambda key: _hash(salt, unit, key))[query.max_groups :]:
                del kept[unit, key]
    answer = []
    for grouping_set in query.grouping_sets:
        groups: dict[Any, Any] = {}
        for (unit, key), own in kept.items():
            coarse = tuple(key[place] for place in grouping_set)
            group = groups.setdefault(coarse, {measure.name: _empty(measure) for measure in query.measures})
            for measure in query.measures:
                _contribute(group, measure, own, query.max_rows, salt, unit)
        added_up = {one.name for one in query.measures if one.kind is MeasureKind.DISTINCT and one.factors}
        answer.append({key: _finished(group, added_up) for key, group in groups.items()})
    return answer


def _empty(measure: Measure) -> Any:
    match measure.kind:
        case MeasureKind.CELLS:
            return [0] * (len(measure.edges) - 1)
        case MeasureKind.DISTINCT:
            return set()
        case _:
            return 0


def _finished(group: dict[str, Any], added_up: set[str]) -> dict[str, Any]:
    return {
        name: value if not isinstance(value, set) else sum(value) if name in added_up else len(value)
        for name, value in group.items()
    }


def _contribute(
    group: dict[str, Any], measure: Measure, own: list[Row], max_rows: int | None, salt: str, unit: int
) -> None:
    counting = [row for row in own if measure.condition is None or evaluate(measure.condition, row) is True]
    weight = Fraction(min(len(own), max_rows or len(own)), len(own))
    match measure.kind:
        case MeasureKind.UNITS:
            group[measure.name] += bool(counting)
        case MeasureKind.DISTINCT:
            values = {
                _steps(measure.factors[0], row) if measure.value is None else evaluate(measure.value, row)
                for row in counting
            } - {None}
            group[measure.name] |= set(
                sorted(values, key=lambda one: _hash(salt, unit, one))[: measure.max_values]
            )
        case MeasureKind.MOMENT:
            total, there = 0, False
            for row in counting:
                product = 1
                for factor in measure.factors:
                    steps = _steps(factor, row)
                    product = None if product is None or steps is None else product * steps
                total += product or 0
                there = there or product is not None
            if measure.clamp is not None and measure.factors and not there:
                pass  # a sum of nothing is NULL, and adds nothing
            elif measure.clamp is not None:
                group[measure.name] += min(max(total, measure.clamp[0]), measure.clamp[1])
            else:
                group[measure.name] += math.trunc(total * weight)
        case MeasureKind.CELLS:
            cells = _empty(measure)
            for row in counting:
                place = _steps(measure.factors[0], row)
                if place is not None:
                    cells[place] += 1
            for place, number in enumerate(cells):
                group[measure.name][place] += math.trunc(number * measure.weight * weight)


def _steps(factor: Factor, row: Row) -> int | None:
    value = evaluate(factor.expression, row)
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return None
    if isinstance(value, float) and math.isinf(value):
        return factor.grid.to_integer(value)
    return factor.grid.to_integer(Fraction(value) - Fraction(factor.centre))


def _hash(salt: str, *parts: Any) -> str:
    return hashlib.sha256(repr((salt, parts)).encode()).hexdigest()
