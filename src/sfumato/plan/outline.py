"""Outlines: the aggregates and expressions of a question in a few words, for people."""

from __future__ import annotations

import datetime
from decimal import Decimal

from sfumato.plan import tree
from sfumato.plan.request import Request

__all__ = ["labels", "outline_aggregate", "outline_expression", "outline_request"]

_INFIX = {"+", "-", "*", "/", "//", "%", "=", "<>", "<", "<=", ">", ">=", "and", "or", "||"}


def labels(query: tree.Query) -> dict[str, str]:
    """Return what each key and aggregate of a question is, in a few words, by the name of its column."""
    keys = {name: outline_expression(key) for name, key in query.keys}
    said = {name: outline_aggregate(one) for name, one in query.aggregates}
    if (choice := query.choice) is not None:
        chosen = ", ".join(each for at, each in enumerate(keys.values()) if at not in choice.per)
        name = "arg_max" if choice.largest else "arg_min"
        said = {own: f"{name}({chosen}, {score})" for own, score in said.items()}
    return {**keys, **said}


def outline_request(request: Request) -> str:
    """Return what a request asks, in a few words: for one that was built in Python, and has no text."""
    return "; ".join(_outline_query(named.query) for named in request.queries)


def _outline_query(query: tree.Query) -> str:
    said, below = labels(query), list(tree.relations(query.source))
    tables = dict.fromkeys(one.table for one in below if isinstance(one, tree.Scan))
    tests = [outline_expression(one.condition) for one in below if isinstance(one, tree.Filter)]
    parts = (
        ("", [said[name] for name, _ in query.aggregates]),
        ("of ", list(tables)),
        ("where ", tests),
        ("by ", [said[name] for name, _ in query.keys]),
    )
    return " ".join(f"{word}{', '.join(each)}" for word, each in parts if each)


def outline_aggregate(aggregate: tree.Aggregate, *, alias: bool = False) -> str:
    """Return an aggregate in short."""
    parts = [outline_expression(argument, alias=alias) for argument in aggregate.arguments]
    if aggregate.quantiles:
        ranks = ", ".join(str(rank) for rank in aggregate.quantiles)
        parts.append(f"[{ranks}]" if aggregate.several else ranks)
    if (blocks := aggregate.blocks) is not None:
        ends = f"{float(blocks.lower):g}, {float(blocks.upper):g}"
        parts = [f"{blocks.statistic.label}({', '.join(parts)})", ends, f"blocks => {blocks.number}"]
    if aggregate.bounds_per_group is not None:
        parts.append(f"group in {aggregate.bounds_per_group}")
    if aggregate.bounds_per_row is not None:
        parts.append(f"row in {aggregate.bounds_per_row}")
    name, where = aggregate.function.label, aggregate.where
    text = f"{name}({', '.join(parts)})" if parts else name
    return text if where is None else f"{text} where {outline_expression(where, alias=alias)}"


def outline_expression(expression: tree.Expression, *, alias: bool = False) -> str:
    """Return an expression in short; columns without their tables' aliases, unless those are wanted."""

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
