"""Outlines: the tree of a question as a few short lines, for people and for tests."""

from __future__ import annotations

import datetime
from decimal import Decimal

from sfumato.plan import tree

__all__ = ["labels", "outline", "outline_aggregate", "outline_expression", "outline_relation"]

_INFIX = {"+", "-", "*", "/", "//", "%", "=", "<>", "<", "<=", ">", ">=", "and", "or", "||"}


def labels(query: tree.Query) -> dict[str, str]:
    """Return what each key and aggregate of a question is, in a few words, by the name of its column."""
    keys = {name: outline_expression(key, alias=False) for name, key in query.keys}
    return {**keys, **{name: outline_aggregate(one, alias=False) for name, one in query.aggregates}}


def outline(query: tree.Query) -> str:
    """Return a question in short: what is asked, about which rows, by which keys."""
    lines = [f"{name} = {outline_expression(key)}" for name, key in query.keys]
    lines += [f"{name} = {outline_aggregate(aggregate)}" for name, aggregate in query.aggregates]
    if query.grouping_sets != (tuple(range(len(query.keys))),):
        sets = ", ".join(f"({', '.join(query.keys[at][0] for at in one)})" for one in query.grouping_sets)
        lines.append(f"sets {sets}")
    return "\n".join([*lines, f"of {outline_relation(query.source)}"])


def outline_relation(relation: tree.Relation) -> str:
    """Return a relation in short."""
    match relation:
        case tree.Scan(table=table, alias=alias):
            return table if table == alias else f"{table} as {alias}"
        case tree.Listed(rows=rows):
            return f"{len(rows)} listed rows"
        case tree.Filter(source=source, condition=condition):
            return f"filter({outline_relation(source)}, {outline_expression(condition)})"
        case tree.Projection(source=source, columns=columns):
            named = ", ".join(f"{name} = {outline_expression(value)}" for name, value in columns)
            return f"project({outline_relation(source)}, {named})"
        case tree.Join(left=left, right=right, condition=on, on_unit=on_unit, outer=outer):
            parts = [outline_relation(left), outline_relation(right)]
            parts += ["same unit"] if on_unit else []
            parts += [outline_expression(on)] if on is not None else []
            return f"{'left ' if outer else ''}join({', '.join(parts)})"
        case tree.PublicChoice(source=source, distinct=distinct, order=order, limit=limit, offset=offset):
            parts = [outline_relation(source), *(["distinct"] if distinct else [])]
            parts += [
                f"by {column.name}{' desc' if down else ''}{' nulls first' if nulls else ''}"
                for column, down, nulls in order
            ]
            parts += [] if limit is None else [f"first {limit}"]
            return f"choose({', '.join([*parts, *([f'after {offset}'] if offset else [])])})"
        case tree.Union(sources=sources):
            return f"union({', '.join(outline_relation(source) for source in sources)})"
        case tree.PerUnit(source=source, keys=keys, aggregates=aggregates):
            listed = [f"{name} = {outline_expression(key)}" for name, key in keys]
            listed += [f"{name} = {outline_aggregate(one)}" for name, one in aggregates]
            return f"per unit({', '.join([outline_relation(source), *listed])})"
        case tree.SemiJoin(source=source, other=other, condition=condition, on_unit=on_unit, negated=negated):
            parts = [outline_relation(source), outline_relation(other)]
            parts += ["same unit"] if on_unit else []
            parts += [outline_expression(condition)] if condition is not None else []
            return f"where {'not ' if negated else ''}exists({', '.join(parts)})"


def outline_aggregate(aggregate: tree.Aggregate, *, alias: bool = True) -> str:
    """Return an aggregate in short."""
    parts = [outline_expression(argument, alias=alias) for argument in aggregate.arguments]
    if aggregate.quantiles:
        ranks = ", ".join(str(rank) for rank in aggregate.quantiles)
        parts.append(f"[{ranks}]" if aggregate.several else ranks)
    if aggregate.bounds_per_group is not None:
        parts.append(f"group in {aggregate.bounds_per_group}")
    if aggregate.bounds_per_row is not None:
        parts.append(f"row in {aggregate.bounds_per_row}")
    name, where = aggregate.function.label, aggregate.where
    text = f"{name}({', '.join(parts)})" if parts else name
    return text if where is None else f"{text} where {outline_expression(where, alias=alias)}"


def outline_expression(expression: tree.Expression, *, alias: bool = True) -> str:
    """Return an expression in short; columns without their tables' aliases, if those are not wanted."""

    def short(part: tree.Expression) -> str:
        return outline_expression(part, alias=alias)

    match expression:
        case tree.ColumnRef(name=name):
            return name if alias else name.rsplit(".", 1)[-1]
        case tree.Literal(value=value):
            return _value(value)
        case tree.Cast(operand=operand, kind=kind, limits=limits):
            within = "" if limits is None else f"[{limits[0]}, {limits[1]}]"
            return f"{short(operand)}::{kind.value}{within}"
        case tree.Case(branches=branches, otherwise=otherwise):
            listed = [f"{short(test)}: {short(value)}" for test, value in branches]
            return f"case({', '.join([*listed, short(otherwise)])})"
        case tree.Call(function=name, arguments=(left, right)) if name in _INFIX:
            return f"({short(left)} {name} {short(right)})"
        case tree.Call(function=name, arguments=arguments):
            return f"{name}({', '.join(short(argument) for argument in arguments)})"


def _value(value: object) -> str:
    if isinstance(value, (datetime.date, datetime.datetime)):
        return value.isoformat()
    if isinstance(value, Decimal):
        return f"{value:f}"
    return "null" if value is None else repr(value).lower() if isinstance(value, bool) else repr(value)
