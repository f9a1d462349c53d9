"""Explanations: what was understood, what one unit can change, the noise, the cost and the expected error.

From the plan, the declarations and the budget alone: free, and no data is touched.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from fractions import Fraction

from sfumato.analysis.answer import Bounding
from sfumato.analysis.bounded import BoundedQuery, Measure, MeasureKind
from sfumato.analysis.forecast import Forecast, forecasts
from sfumato.analysis.pricing import Cost, Noise, price
from sfumato.analysis.shares import NoiseKind
from sfumato.core.accountant import PrivacyBudget
from sfumato.core.arguments import Number, budget_quantity
from sfumato.core.rules import UNITS
from sfumato.plan.tree import (
    Call,
    Case,
    Cast,
    Column,
    Expression,
    Filter,
    Join,
    Literal,
    PerUnit,
    Project,
    Relation,
    Scan,
    SemiJoin,
    Union,
)

__all__ = ["describe", "explain"]

_OPERATORS = {"+", "-", "*", "/", "%", "=", "<>", "<", "<=", ">", ">=", "and", "or", "||"}


def explain(
    bounding: Bounding,
    budget: PrivacyBudget,
    *,
    epsilon: Number,
    size: float | None = None,
    weights: Mapping[str, Fraction] | None = None,
    noise: NoiseKind | None = None,
    keys_delta: Number | None = None,
) -> str:
    """Return a text that explains a question; `size` is a group size to forecast for."""
    wanted = budget_quantity(epsilon, "epsilon")
    costs = [
        price(bounding, budget, epsilon=wanted * factor, weights=weights, noise=noise, keys_delta=keys_delta)
        for factor in (Fraction(1, 2), Fraction(1), Fraction(2))
    ]
    sections = [
        ("question", _question(bounding)),
        ("one unit can change", _changes(bounding)),
        ("noise", _noises(bounding, costs[1])),
        ("cost", _cost(costs[1], budget)),
        (_errors_title(size), _errors(bounding, costs, size)),
    ]
    lines = []
    for title, body in sections:
        lines.append(title)
        lines += [f"  {line}" for line in body]
    return "\n".join(lines)


# -- what was asked -------------------------------------------------------------------------


def describe(expression: Expression) -> str:
    """Return an expression as text, much as it was asked."""
    match expression:
        case Column(name=name):
            return name.rsplit(".", 1)[-1]
        case Literal(value=value):
            return "NULL" if value is None else repr(value)
        case Cast(operand=operand, kind=kind):
            return f"cast({describe(operand)} as {kind.value})"
        case Case(branches=branches, otherwise=otherwise):
            parts = [f"when {describe(condition)} then {describe(value)}" for condition, value in branches]
            return f"case {' '.join(parts)} else {describe(otherwise)} end"
        case Call(function=function, arguments=(left, right)) if function in _OPERATORS:
            return f"({describe(left)} {function} {describe(right)})"
        case Call(function=function, arguments=arguments):
            return f"{function}({', '.join(describe(argument) for argument in arguments)})"


def _question(bounding: Bounding) -> list[str]:
    query = bounding.query
    lines = list(_relation(query.source, ""))
    if query.keys:
        shown = "selected privately" if bounding.select_keys else f"{len(query.declared or ())} declared"
        lines.append(f"grouped by {', '.join(describe(key) for _, key in query.keys)}: groups {shown}")
    if len(query.grouping_sets) > 1:
        names = [name for name, _ in query.keys]
        sets = [f"({', '.join(names[place] for place in one)})" for one in query.grouping_sets]
        lines.append(f"grouping sets {', '.join(sets)}")
    lines.append(f"answers {', '.join(f'{one.name} = {one.function.value}' for one in bounding.answers)}")
    return lines


def _relation(relation: Relation, indent: str) -> Iterator[str]:
    below: tuple[Relation, ...]
    match relation:
        case Scan(table=table, alias=alias):
            text, below = f"rows of {table}" + (f" as {alias}" if alias != table else ""), ()
        case Filter(source=source, condition=condition):
            text, below = f"where {describe(condition)}", (source,)
        case Project(source=source, columns=columns):
            text, below = f"columns {', '.join(name for name, _ in columns)}", (source,)
        case Join(left=left, right=right, on_unit=on_unit, outer=outer):
            way = "each unit's own rows" if on_unit else "a public table"
            text, below = f"{'left ' if outer else ''}joined with {way}", (left, right)
        case Union(sources=sources):
            text, below = "all rows of", sources
        case PerUnit(source=source, keys=keys, aggregates=aggregates):
            by = "".join(f" and {name}" for name, _ in keys)
            text, below = f"per unit{by}: {', '.join(name for name, _ in aggregates)}", (source,)
        case SemiJoin(source=source, other=other):
            text, below = "rows for which there is a row in", (source, other)
    yield f"{indent}{text}"
    for one in below:
        yield from _relation(one, indent + "  ")


# -- what one unit can change ---------------------------------------------------------------


def _changes(bounding: Bounding) -> list[str]:
    query = bounding.query
    if query.row_unit:
        lines = ["the unit is the row: one group, one row"]
    elif query.max_groups is None:
        lines = ["one group" if query.keys else "the only group"]
    else:
        lines = [f"at most {query.max_groups} groups, and in each of them"]
    return lines + [
        f"  {_label(measure, bounding)} by {_reach(measure, query)}" for measure in query.measures
    ]


def _label(measure: Measure, bounding: Bounding) -> str:
    users = [answer.name for answer in bounding.answers if measure.name in answer.measures]
    match measure.kind:
        case MeasureKind.UNITS:
            what = "units"
        case MeasureKind.DISTINCT:
            what = "distinct values"
        case MeasureKind.CELLS:
            what = f"a histogram of {len(measure.edges) - 1} cells"
        case MeasureKind.MOMENT:
            real = [factor for factor in measure.factors if factor.grid.low != factor.grid.high]
            parts = [
                describe(factor.expression) + (f" - {factor.centre:g}" if factor.centre else "")
                for factor in real
            ]
            what = f"sum of {' times '.join(f'({part})' for part in parts)}" if parts else "rows"
    return f"{what} (for {', '.join(users)})" if users else what


def _unit(measure: Measure) -> Fraction:
    """Return how much of its own unit one integer of a measure is."""
    step = Fraction(1, measure.weight)
    for factor in measure.factors if measure.kind is MeasureKind.MOMENT else ():
        step *= factor.grid.step
    return step


def _reach(measure: Measure, query: BoundedQuery) -> str:
    return f"{float(measure.reach * _unit(measure)):,.6g}"


# -- noise, cost, error ---------------------------------------------------------------------


def _noises(bounding: Bounding, cost: Cost) -> list[str]:
    measures = {measure.name: measure for measure in bounding.query.measures}
    several = len(bounding.query.grouping_sets) > 1
    lines = []
    for noise in cost.noises:
        measure = measures[noise.measure]
        where = f", grouping set {noise.grouping_set + 1}" if several else ""
        tree = f", in {noise.levels} layers of blocks of {noise.branching}" if noise.levels > 1 else ""
        lines.append(f"{_label(measure, bounding)}{where}: {_spread(noise, measure)}{tree}")
    for selection in cost.selections:
        where = f", grouping set {selection.grouping_set + 1}" if several else ""
        lines.append(
            f"groups are shown{where} if their noisy number of units is at least {selection.threshold:,};"
            f" one that a single unit makes, with a chance of at most {float(selection.delta):.3g}"
        )
    return lines


def _spread(noise: Noise, measure: Measure) -> str:
    deviation = math.sqrt(noise.variance) * float(_unit(measure))
    return f"discrete {noise.kind.capitalize()}, standard deviation {deviation:,.4g}"


def _cost(cost: Cost, budget: PrivacyBudget) -> list[str]:
    charge = Fraction(budget.rule.charge(cost.event), UNITS)
    part = float(charge / Fraction(max(1, budget.limit), UNITS))
    lines = [
        f"by itself ({float(cost.epsilon):g}, {float(cost.delta):.3g})-private",
        f"charged {float(charge):.6g} by the {budget.rule.name} rule, {part:.2%} of the budget",
    ]
    if cost.keys_delta:
        lines.append(f"and {float(cost.keys_delta):.3g} of the delta for keys")
    return lines


def _errors_title(size: float | None) -> str:
    return "expected error (95%)" + ("" if size is None else f" in groups of {size:,g} rows")


def _errors(bounding: Bounding, costs: list[Cost], size: float | None) -> list[str]:
    columns = [forecasts(bounding, cost, size=size) for cost in costs]
    head = ["", *(f"epsilon {float(cost.epsilon):g}" for cost in costs)]
    rows = [head]
    for place, answer in enumerate(bounding.answers):
        rows.append([answer.name, *(_error(column[place], size) for column in columns)])
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
    if any(one.error is None for one in columns[1]):
        lines.append("give a group size to see the rest: it depends on how many rows a group has")
    return lines


def _error(forecast: Forecast, size: float | None) -> str:
    if forecast.error is None:
        return "by size"
    if forecast.in_ranks:
        return f"±{forecast.error:,.3g} rows" if size is None else f"±{forecast.error:.2%} of ranks"
    return f"±{forecast.error:,.4g}"
