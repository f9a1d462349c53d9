"""Explanations: what was understood, what one unit can change, the noise, the cost and the expected error.

From the plan, the declarations and the budget alone: free, and no data is touched.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction

from sfumato.aggregates.answer import Forecast
from sfumato.analysis.alternatives import alternative
from sfumato.analysis.bounded import Bounding, Measure, MeasureKind
from sfumato.analysis.forecast import forecasts
from sfumato.analysis.pricing import Cost, Noise, price
from sfumato.core.accountant import PrivacyBudget
from sfumato.core.arguments import Number, budget_quantity
from sfumato.core.events import Event
from sfumato.core.rules import UNITS
from sfumato.plan import tree
from sfumato.plan.options import DEFAULT_OPTIONS, Options
from sfumato.plan.outline import outline_expression

__all__ = ["aligned", "cost_lines", "explain"]


def explain(
    bounding: Bounding,
    budget: PrivacyBudget,
    *,
    epsilon: Number,
    size: float | None = None,
    options: Options = DEFAULT_OPTIONS,
    part: Fraction = Fraction(1),
    aggregates: Mapping[str, str] | None = None,
    names: Mapping[str, str] | None = None,
) -> str:
    """Return a text that explains a question.

    `size` is a group size to forecast for, `part` how much of what epsilon allows the question has, beside
    others of its request; `aggregates` says what was asked for under each name, `names` what the reader calls
    them.
    """
    wanted = budget_quantity(epsilon, "epsilon")
    costs = [
        price(bounding, budget, epsilon=wanted * factor, options=options, part=part)
        for factor in (Fraction(1, 2), Fraction(1), Fraction(2))
    ]
    by_size = "" if size is None else f" in groups of {size:,g} rows"
    sections = [
        ("question", _question(bounding, aggregates or {})),
        ("one unit can change", _changes(bounding)),
        ("noise", _noises(bounding, costs[1])),
        ("cost", _cost(costs[1], budget)),
        (f"expected error (95%){by_size}", _errors(bounding, costs, size, names or {})),
    ]
    other = alternative(bounding, costs[1], budget, size=size, noise=options.noise)
    if other is not None:
        sections.append(("another budget", [str(other)]))
    return "\n".join("\n  ".join([title, *body]) for title, body in sections)


# -- what was asked -------------------------------------------------------------------------


def _question(bounding: Bounding, aggregates: Mapping[str, str]) -> list[str]:
    query = bounding.query
    lines = list(_relation(query.source, ""))
    if query.keys:
        shown = "selected privately" if bounding.select_keys else f"{len(query.declared or ())} declared"
        lines.append(
            f"grouped by {', '.join(outline_expression(key) for _, key in query.keys)}: groups {shown}"
        )
    if len(query.grouping_sets) > 1:
        names = [name for name, _ in query.keys]
        sets = [f"({', '.join(names[place] for place in one)})" for one in query.grouping_sets]
        lines.append(f"grouping sets {', '.join(sets)}")
    asked = [f"{one.name} = {aggregates.get(one.name, one.function.label)}" for one in bounding.answers]
    lines.append(f"answers {', '.join(asked)}")
    return lines


def _relation(relation: tree.Relation, indent: str) -> Iterator[str]:
    yield f"{indent}{_told(relation)}"
    for one in tree.parts(relation):
        if isinstance(one, tree.Relation):
            yield from _relation(one, indent + "  ")


def _told(relation: tree.Relation) -> str:
    match relation:
        case tree.Scan(table=table, alias=alias):
            return f"rows of {table}" + (f" as {alias}" if alias != table else "")
        case tree.Listed(rows=rows):
            return f"{len(rows)} listed rows"
        case tree.Filter(condition=condition):
            return f"where {outline_expression(condition)}"
        case tree.Projection(columns=columns):
            return f"columns {', '.join(name for name, _ in columns)}"
        case tree.Join(on_unit=on_unit, outer=outer):
            way = "each unit's own rows" if on_unit else "a public table"
            return f"{'left ' if outer else ''}joined with {way}"
        case tree.Union():
            return "all rows of"
        case tree.PublicChoice(distinct=distinct, limit=limit):
            text = "different rows of" if distinct else "rows of"
            return text if limit is None else f"the first {limit} {text}"
        case tree.PerUnit(keys=keys, aggregates=aggregates):
            by = " and ".join([*([] if relation.public else ["unit"]), *(name for name, _ in keys)])
            per = f"per {by}" if by else "over all rows"
            return f"{per}: {', '.join(name for name, _ in aggregates)}"
        case tree.SemiJoin(on_unit=on_unit, negated=negated, unless=unless):
            whose = "of the same unit " if on_unit else ""
            other = "" if unless is None else "a condition is true, or "
            return f"rows for which {other}there is {'no' if negated else 'a'} row {whose}in"


# -- what one unit can change ---------------------------------------------------------------


def _changes(bounding: Bounding) -> list[str]:
    query = bounding.query
    if query.row_unit:
        lines = ["the unit is the row: one group, one row"]
    elif query.max_groups is None:
        lines = ["one group" if query.keys else "the only group"]
    else:
        total = "" if query.max_total is None else f", with {query.max_total:,} rows in all of them together"
        lines = [f"at most {query.max_groups} groups{total}, and in each of them"]
    for measure in query.measures:
        moved = float(measure.sensitivity * _unit(measure))
        lines.append(f"  {_label(measure, bounding)} by {moved:,.6g}")
    return lines


def _label(measure: Measure, bounding: Bounding) -> str:
    users = [answer.name for answer in bounding.answers if measure.name in answer.measures]
    match measure.kind:
        case MeasureKind.UNITS:
            what = (
                "units"
                if measure.condition is None
                else f"units where {outline_expression(measure.condition)}"
            )
        case MeasureKind.DISTINCT:
            what = "sum of distinct values" if measure.factors else "distinct values"
        case MeasureKind.CELLS:
            what = f"a histogram of {len(measure.edges) - 1} cells"
        case MeasureKind.BLOCKS:
            assert measure.blocks is not None
            what = (
                f"the sum of {measure.blocks.statistic.label} over {measure.blocks.number:,} blocks of units"
            )
        case MeasureKind.MOMENT:
            real = [factor for factor in measure.factors if factor.grid.low != factor.grid.high]
            parts = [
                outline_expression(factor.expression) + (f" - {factor.centre:g}" if factor.centre else "")
                for factor in real
            ]
            what = f"sum of {' times '.join(f'({part})' for part in parts)}" if parts else "rows"
            ones = [factor.expression for factor in measure.factors if factor not in real]
            present = [outline_expression(one) for one in ones if not isinstance(one, tree.Literal)]
            if present and not parts:
                what += f" with a value of {' and '.join(present)}"
            if measure.condition is not None:
                what += f" where {outline_expression(measure.condition)}"
    return f"{what} (for {', '.join(users)})" if users else what


def _unit(measure: Measure) -> Fraction:
    """Return how much of its own unit one integer of a measure is."""
    if measure.blocks is not None:
        return measure.blocks.grid.step
    step = Fraction(1, measure.weight)
    for factor in () if measure.kind is MeasureKind.CELLS else measure.factors:
        step *= factor.grid.step
    return step


# -- noise, cost, error ---------------------------------------------------------------------


def _noises(bounding: Bounding, cost: Cost) -> list[str]:
    measures = {measure.name: measure for measure in bounding.query.measures}
    several = len(bounding.query.grouping_sets) > 1
    lines = []
    for noise in cost.noises:
        measure = measures[noise.measure]
        where = f", grouping set {noise.grouping_set + 1}" if several else ""
        told = _spread(noise, measure)
        if noise.choice is not None:
            what = "value" if bounding.query.choice is None else "group"
            told = f"nothing but a {what} that is chosen with epsilon {float(noise.choice.epsilon):.3g}"
        elif noise.finding is not None:
            cell = f"a cell that is chosen with epsilon {float(noise.finding.epsilon):.3g}"
            told = f"{told}, around {cell}" if noise.finding.intervals else f"nothing but {cell}"
        elif noise.levels > 1:
            told += f", in {noise.levels} layers of blocks of {noise.branching}"
        lines.append(f"{_label(measure, bounding)}{where}: {told}")
    for selection in cost.selections:
        where = f", grouping set {selection.grouping_set + 1}" if several else ""
        what = "groups are" if bounding.query.keys else "the answer is"
        lines.append(f"{what} shown{where} if {selection.condition}")
        if selection.rounds:
            share = float(selection.rounds[-1].law.parameter / selection.rounds[0].law.parameter)
            lines.append(
                f"  in {len(selection.rounds)} rounds: the first, for about {share:.0%} of the price,"
                " finds popular groups, and no unit spends weight on those in the next"
            )
        if bounding.select_keys and selection.delta:
            chance = f"{float(selection.delta):.3g}"
            lines.append(f"  a group that a single unit makes is shown with a chance of at most {chance}")
    for noise in cost.others:
        measure = measures[noise.measure]
        lines.append(f"everything else, {_label(measure, bounding)}: {_spread(noise, measure)}")
    return lines


def _spread(noise: Noise, measure: Measure) -> str:
    deviation = noise.law.deviation * float(_unit(measure))
    return f"discrete {noise.law.name.capitalize()}, standard deviation {deviation:,.4g}"


def _cost(cost: Cost, budget: PrivacyBudget) -> list[str]:
    alone = (
        "by itself"
        if cost.part == 1
        else f"with the rest of its request, of which it is {float(cost.part):.0%},"
    )
    return cost_lines(
        budget, cost.event, epsilon=cost.epsilon, delta=cost.delta, keys_delta=cost.keys_delta, alone=alone
    )


def cost_lines(
    budget: PrivacyBudget,
    event: Event,
    *,
    epsilon: Fraction,
    delta: Fraction,
    keys_delta: Fraction,
    alone: str = "by itself",
) -> list[str]:
    """Return what an event guarantees `alone`, and what it is charged."""
    charge = Fraction(budget.rule.charge(event), UNITS)
    part = float(charge / Fraction(max(1, budget.limit), UNITS))
    lines = [
        f"{alone} ({float(epsilon):g}, {float(delta):.3g})-private",
        f"charged {float(charge):.6g} by the {budget.rule.name} rule, {part:.2%} of the budget",
    ]
    if keys_delta:
        lines.append(f"and {float(keys_delta):.3g} of the delta for keys")
    return lines


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Return the rows of a table as lines whose columns end below each other.

    >>> aligned([("", "epsilon 1"), ("n", "±8")])
    ['   epsilon 1', 'n         ±8']
    """
    widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
    return ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]


def _errors(bounding: Bounding, costs: list[Cost], size: float | None, names: Mapping[str, str]) -> list[str]:
    columns = [forecasts(bounding, cost, size=size) for cost in costs]
    rows = [["", *(f"epsilon {float(cost.epsilon):g}" for cost in costs)]]
    for answer, *each in zip(bounding.answers, *columns, strict=True):
        rows.append([names.get(answer.name, answer.name), *(_error(one, size) for one in each)])
    lines = aligned(rows)
    if any(one.error is None and one.even is None for one in columns[1]):
        lines.append("give a group size to see the rest: it depends on how many rows a group has")
    if any(one.even is not None for one in columns[1]):
        lines.append("* if values are spread evenly over their bounds; more, if they lie closer together")
    return lines


def _error(forecast: Forecast, size: float | None) -> str:
    if forecast.even is not None:
        return f"±{forecast.even:,.4g}*"
    if forecast.error is None:
        return "by size"
    if forecast.falls_short:
        return f"≤{forecast.error:,.4g} {forecast.falls_short}"
    if forecast.in_ranks:
        return f"±{forecast.error:,.3g} rows" if size is None else f"±{forecast.error:.2%} of ranks"
    return f"±{forecast.error:,.4g}"
