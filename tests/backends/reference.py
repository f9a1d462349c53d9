"""A tiny executor in plain Python: what `analysis/bounded.py` says, row by row and with big integers."""

from __future__ import annotations

import math
from collections import defaultdict
from fractions import Fraction
from functools import lru_cache
from typing import Any

import duckdb

from sfumato.analysis.bounded import BoundedQuery, Measure, MeasureKind
from sfumato.plan.tree import Call, ColumnRef, Expression, Literal

__all__ = ["evaluate", "reference"]

MASK = 2**64 - 1


def mix(word: int) -> int:
    word ^= word >> 32
    for _ in range(2):
        word = word * 0xD6E8FEB86659FD93 & MASK
        word ^= word >> 32
    return word


CONNECTION = duckdb.connect()


@lru_cache(maxsize=None, typed=True)
def engine_hash(*values: Any) -> int:
    types = {int: "BIGINT", str: "VARCHAR", float: "DOUBLE"}
    casts = ", ".join(f"CAST(? AS {types.get(type(value), 'VARCHAR')})" for value in values)
    return int(CONNECTION.execute(f"SELECT hash({casts})", list(values)).fetchall()[0][0])


def evaluate(node: Expression, row: dict[str, Any]) -> Any:
    """Evaluate the few expressions that the tests of queries use."""
    match node:
        case ColumnRef(name=name):
            value = row[name]
            return None if isinstance(value, float) and math.isnan(value) else value
        case Literal(value=value):
            return value
        case Call(function=">=", arguments=(left, right)):
            a, b = evaluate(left, row), evaluate(right, row)
            return None if a is None or b is None else a >= b
    raise NotImplementedError


def order(key: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple((value is None, value if value is not None else 0) for value in key)


def trunc(value: Fraction) -> int:
    return math.trunc(value)


def row_value(measure: Measure, row: dict[str, Any]) -> int | None:
    """The integer of a row, or None if it does not count."""
    if measure.condition is not None and evaluate(measure.condition, row) is not True:
        return None
    product = 1
    for factor in measure.factors:
        value = evaluate(factor.expression, row)
        if value is None:
            return None
        product *= factor.grid.to_integer(float(value) - factor.centre)
    return product


def reference(
    query: BoundedQuery, rows: list[dict[str, Any]], unit: str | None, salt: int
) -> list[dict[tuple[Any, ...], dict[str, Any]]]:
    """Return, for each grouping set, key -> measure -> integer (or list of cells); `units` is one of them."""
    declared = None if query.declared is None else set(query.declared)
    held: dict[Any, dict[tuple[Any, ...], list[dict[str, Any]]]] = defaultdict(lambda: defaultdict(list))
    for place, row in enumerate(rows):
        who = place if unit is None else row[unit]
        if who is None:
            continue
        key = tuple(evaluate(expression, row) for _, expression in query.keys)
        if declared is not None and key not in declared:
            continue
        held[who][key].append(row)
    kept: dict[Any, dict[tuple[Any, ...], list[dict[str, Any]]]] = {}
    hashes: dict[tuple[Any, ...], int] = {}
    for who, groups in held.items():
        own = (
            mix((who & MASK if isinstance(who, int) else engine_hash(who)) ^ salt) if unit is not None else 0
        )

        def priority(key: tuple[Any, ...], own: int = own) -> int:
            if key not in hashes:
                hashes[key] = engine_hash(*key) if key else 0
            return mix(own ^ hashes[key])

        ranked = sorted(groups, key=lambda key: (priority(key), order(key)))
        most = query.max_groups if query.max_groups is not None and unit is not None else len(ranked)
        kept[who] = {key: groups[key] for key in ranked[:most]}
    results = []
    for chosen in query.grouping_sets:
        results.append(_one_set(query, kept, chosen, unit, hashes, salt))
    return results


def _capped(rows: list[dict[str, Any]], query: BoundedQuery) -> int:
    return len(rows) if query.max_rows is None else min(len(rows), query.max_rows)


def _one_set(
    query: BoundedQuery, kept: Any, chosen: tuple[int, ...], unit: str | None, hashes: Any, salt: int
) -> dict[tuple[Any, ...], dict[str, Any]]:
    table: dict[tuple[Any, ...], dict[str, Any]] = {}

    def group(key: tuple[Any, ...]) -> dict[str, Any]:
        part = tuple(key[place] for place in chosen)
        if part not in table:
            table[part] = {"units": 0}
            for measure in query.measures:
                cells = measure.kind is MeasureKind.CELLS
                table[part][measure.name] = [0] * (len(measure.edges) - 1) if cells else 0
        return table[part]

    if query.declared is not None:
        for key in query.declared:
            group(key)
    elif not chosen:
        group(tuple(None for _ in query.keys))
    seen: dict[tuple[str, tuple[Any, ...]], set[Any]] = defaultdict(set)
    for who, groups in kept.items():
        own = (
            mix((who & MASK if isinstance(who, int) else engine_hash(who)) ^ salt) if unit is not None else 0
        )
        for key, rows in groups.items():
            here, part = group(key), tuple(key[place] for place in chosen)
            seen["units", part].add(who)
            n = len(rows)
            weight = Fraction(_capped(rows, query), n)
            whole = sum(_capped(own_rows, query) for own_rows in groups.values())
            if query.max_total is not None and whole > query.max_total:
                weight *= Fraction(query.max_total, whole)
            for measure in query.measures:
                values = [row_value(measure, row) for row in rows]
                match measure.kind:
                    case MeasureKind.MOMENT if measure.clamp is not None:
                        total = sum(value for value in values if value is not None)
                        if any(value is not None for value in values) or not measure.factors:
                            here[measure.name] += min(max(total, measure.clamp[0]), measure.clamp[1])
                    case MeasureKind.MOMENT:
                        total = sum(value for value in values if value is not None)
                        here[measure.name] += trunc(total * weight)
                    case MeasureKind.UNITS:
                        if any(value is not None for value in values):
                            seen[measure.name, part].add(who)
                    case MeasureKind.CELLS:
                        for cell in {value for value in values if value is not None}:
                            count = values.count(cell)
                            here[measure.name][cell] += trunc(count * measure.weight * weight)
                    case MeasureKind.DISTINCT:
                        different = {
                            value if measure.value is None else evaluate(measure.value, row)
                            for row, value in zip(rows, values, strict=True)
                            if value is not None
                        } - {None}
                        group_priority = mix(
                            own ^ (hashes[key] if key in hashes else engine_hash(*key) if key else 0)
                        )
                        ranked = sorted(
                            different, key=lambda value: (mix(group_priority ^ engine_hash(value)), value)
                        )
                        most = measure.max_values if unit is not None else len(ranked)
                        seen[measure.name, part] |= set(ranked[:most])
    added_up = {one.name for one in query.measures if one.kind is MeasureKind.DISTINCT and one.factors}
    for (name, part), members in seen.items():
        table[part][name] = sum(members) if name in added_up else len(members)
    return table
