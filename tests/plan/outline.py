"""Outlines: the tree of a question as a few short lines, for fixtures."""

from __future__ import annotations

from functools import partial

from sfumato.plan import tree
from sfumato.plan.outline import outline_aggregate, outline_expression

expression_of = partial(outline_expression, alias=True)
aggregate_of = partial(outline_aggregate, alias=True)


def outline(query: tree.Query) -> str:
    """Return a question in short: what is asked, about which rows, by which keys."""
    lines = [f"{name} = {expression_of(key)}" for name, key in query.keys]
    lines += [f"{name} = {aggregate_of(aggregate)}" for name, aggregate in query.aggregates]
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
            return f"filter({outline_relation(source)}, {expression_of(condition)})"
        case tree.Projection(source=source, columns=columns):
            named = ", ".join(f"{name} = {expression_of(value)}" for name, value in columns)
            return f"project({outline_relation(source)}, {named})"
        case tree.Join(left=left, right=right, condition=on, on_unit=on_unit, outer=outer):
            parts = [outline_relation(left), outline_relation(right)]
            parts += ["same unit"] if on_unit else []
            parts += [expression_of(on)] if on is not None else []
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
            listed = [f"{name} = {expression_of(key)}" for name, key in keys]
            listed += [f"{name} = {aggregate_of(one)}" for name, one in aggregates]
            return f"per unit({', '.join([outline_relation(source), *listed])})"
        case tree.SemiJoin(source=source, other=other, condition=condition, on_unit=on_unit, negated=negated):
            parts = [outline_relation(source), outline_relation(other)]
            parts += ["same unit"] if on_unit else []
            parts += [expression_of(condition)] if condition is not None else []
            return f"where {'not ' if negated else ''}exists({', '.join(parts)})"
