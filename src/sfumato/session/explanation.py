"""Explanations of questions: cost and errors of any; of SQL plan, noise, levels, and what limits may take."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from sfumato.analysis import Bounding, Cost
from sfumato.analysis.batches import divided
from sfumato.analysis.forecast import forecasts
from sfumato.analysis.invariants import NOT_PROTECTED
from sfumato.analysis.loss_measurement import MEASURED_PART
from sfumato.analysis.missing_limits import BOUNDS_PART
from sfumato.analysis.shapes import scans
from sfumato.core.rules import PureRule
from sfumato.errors import InvalidArgument
from sfumato.pipeline import PricedQuery
from sfumato.plan.outline import labels
from sfumato.release.lineage import shown_columns

if TYPE_CHECKING:
    from sfumato.session.question import Question
    from sfumato.session.sql_question import SqlQuestion

__all__ = ["cost_explained", "explanation", "levels"]


def cost_explained(question: Question[Any, Any], *, size: float | None = None) -> str:
    """Explain the cost, and the errors at half, the same and double epsilon. Free."""
    from sfumato.analysis.explain import aligned, cost_lines

    priced, budget, choice = question.priced(), question.database.terms, question.choice(size=size)
    found = {}
    for factor in (Fraction(1, 2), Fraction(1), Fraction(2)):
        with suppress(InvalidArgument):  # less than what is fixed costs, as noise for a wanted error does
            outcome = choice.at(choice.epsilon * factor)
            found[outcome.epsilon] = outcome.errors
    cost = cost_lines(
        budget,
        priced.event,
        epsilon=priced.epsilon,
        delta=budget.delta_loss + priced.keys_delta,
        keys_delta=priced.keys_delta,
    )
    sections = [(question.title, []), ("cost", cost)]
    if any(found.values()):
        by_size = "" if size is None else f" in groups of {size:,g} rows"
        names = [one.name for one in next(iter(found.values()))]
        said = [[one.said.removesuffix(" (95%)") for one in errors] for errors in found.values()]
        rows = zip(names, *said, strict=True)
        heads = ("", *(f"epsilon {float(epsilon):.4g}" for epsilon in found))
        sections.append((f"expected error (95%){by_size}", aligned([heads, *rows])))
    return "\n".join("\n  ".join([title, *body]) for title, body in sections)


def explanation(question: SqlQuestion, *, size: float | None = None) -> str:
    """Explain the plan, the noise, the cost, and the error at half, the same and double epsilon. Free."""
    from sfumato.analysis.explain import explain  # few questions are explained

    if question.free:
        return "this is about public tables alone: it is answered exactly, and free"
    if question.only_free:
        return question.said_free()
    if question.epsilon is None:
        raise InvalidArgument(
            "explaining needs an epsilon", place="epsilon", hints=("ask with epsilon=0.5, for example",)
        )
    priced = question.priced()
    own = [named.options for named in question.request.queries]
    options = divided(question.request.options, priced.boundings, own)
    texts = [
        explain(
            bounding,
            question.database.terms,
            epsilon=question.epsilon,
            size=size,
            options=own,
            part=cost.part,
            aggregates=labels(named.query),
            names=question.names(),
        )
        for named, bounding, own, cost in zip(
            priced.request.queries, priced.boundings, options, priced.costs, strict=True
        )
    ]
    by_level = ["\n  ".join(["levels", *lines])] if (lines := levels(question, priced)) else []
    said = [*by_level, *_said_of_losses(priced), *_said_of_limits(priced), *_left_out(question)]
    return question.in_its_names("\n\n".join([*texts, *said]))


def levels(question: SqlQuestion, priced: PricedQuery) -> list[str]:
    """Return how far off each level of consistent answers will be, and what of them is not protected."""
    pure, lines = isinstance(question.database.terms.rule, PureRule), []
    shown = set(shown_columns(question.request).values())
    for named, bounding, cost in zip(question.request.queries, priced.boundings, priced.costs, strict=True):
        if bounding.consistency is not None:
            names = {name: name if name in shown else own for name, own in labels(named.query).items()}
            lines += _said_of_levels(bounding, cost, names, pure=pure)
    return [question.in_its_names(line) for line in lines]


def _left_out(question: SqlQuestion) -> list[str]:
    """Return what to say of columns of the asked tables that no question can use."""
    named = {scan.table for one in question.request.queries for scan in scans(one.query.source)}
    tables = [table for table in question.database.catalog.tables if table.name in named]
    lines = [f"left out of `{table.name}`: {one.refusal}" for table in tables for one in table.unsupported]
    return ["\n".join(lines)] if lines else []


def _said_of_levels(bounding: Bounding, cost: Cost, names: Mapping[str, str], *, pure: bool) -> list[str]:
    """Return how far off each level of a consistent answer will be, and what of it is not protected."""
    assert bounding.consistency is not None
    query, known = bounding.query, bounding.consistency
    shares = known.pure_shares if pure else known.shares
    lines = []
    for place in sorted(range(len(query.grouping_sets)), key=lambda one: len(query.grouping_sets[one])):
        keys = ", ".join(query.keys[at][0] for at in query.grouping_sets[place])
        share = float(shares[place])
        errors = ", ".join(
            f"{names[one.name]} ±{one.error:.4g}"
            for one in forecasts(bounding, cost, grouping_set=place)
            if one.error is not None
        )
        where = f"by {keys}" if keys else "in all"
        lines.append(f"{where}: {errors} (95%), for {share:.3g} of the cost")
    return [*lines, *(f"{NOT_PROTECTED}: {said}" for said in known.unprotected)]


def _said_of_losses(priced: PricedQuery) -> list[str]:
    """Return which limits may bite, and whether what they take is measured."""
    part = f"{float(MEASURED_PART):.0%} of the cost measures what is left out by"
    return [
        f"losses\n  {loss.limits.unknown if loss.bounding is None else f'{part} {loss.limits}'}"
        for loss in priced.losses
    ]


def _said_of_limits(priced: PricedQuery) -> list[str]:
    """Return that limits are found first, and what is shown as long as they are not known."""
    if priced.limits is None:
        return []
    found = [f"  {one.wanted}" for one in priced.limits.missing]
    shown = f"  for {float(BOUNDS_PART):.0%} of the cost; what is shown above is for very wide ones"
    return ["\n".join(["found privately, before the rest", *found, shown])]
