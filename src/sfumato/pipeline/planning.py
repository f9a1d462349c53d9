"""Planning: from a request to its price. Free, and a function of public facts alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

from sfumato.analysis import Bounding, bound, price_together
from sfumato.analysis.detection_threshold import with_thresholds
from sfumato.analysis.group_choice import with_group_choice
from sfumato.analysis.join_fanout import refuse_copies
from sfumato.analysis.loss_measurement import losses_of, main_part, priced_losses
from sfumato.analysis.missing_limits import BOUNDS_PART, MissingLimit, missing_limits, with_limits
from sfumato.analysis.partition_filter import parts_of
from sfumato.backends import Backend
from sfumato.catalog import Catalog
from sfumato.core.accountant import PrivacyBudget
from sfumato.errors import InvalidArgument, QueryRefused
from sfumato.pipeline.answering import public_tables
from sfumato.pipeline.priced import LookCost
from sfumato.pipeline.priced_query import FoundLimits, PricedQuery
from sfumato.plan.conditions import with_join_conditions
from sfumato.plan.options import DEFAULT_OPTIONS
from sfumato.plan.request import Request
from sfumato.plan.unit_safety import check_units
from sfumato.release.plain_tables import expected_table, sample_table
from sfumato.release.sandbox import PlainTable, check

__all__ = [
    "bounded_queries",
    "parts_of_request",
    "plan",
    "refuse_huge",
]

_MOST_EPSILON = 10**22  # GoogleSQL's documentation writes 1e20 for no noise, its tests up to 1e21


def plan(
    request: Request,
    *,
    catalog: Catalog,
    budget: PrivacyBudget,
    epsilon: Fraction | None,
    backend: Backend,
    part: Fraction = Fraction(1),
) -> PricedQuery:
    """Price a request: free, and a function of the request, the catalog, public tables and the budget alone.

    `epsilon` is for the whole request; several private questions in one share what it allows, or `part` of
    that. What cannot run is refused here: whatever has a price can be answered.
    """
    request, missing = missing_limits(with_join_conditions(request), catalog, backend)
    if missing:
        return _plan_to_find(request, missing, catalog, budget, epsilon, backend)
    request = with_group_choice(request, catalog, backend)
    options, queries = request.options, [named.query for named in request.queries]
    own = [named.options for named in request.queries]
    asked = options.epsilon if epsilon is None else epsilon
    refuse_huge(asked)
    if not queries:
        hint = "release() answers it: nothing is charged, and no epsilon is needed"
        raise QueryRefused(
            "this is about public tables alone, and has no price",
            code="SF404",
            text=request.text,
            hints=(hint,),
        )
    unit, boundings = bounded_queries(request, catalog, backend)
    losses = losses_of(request, boundings, catalog)
    costs = price_together(
        boundings, budget, epsilon=asked, options=options, own=own, whole=part * main_part(losses)
    )
    if not all(cost.noises or cost.selections for cost in costs):
        raise QueryRefused(
            "this asks for declared groups and nothing about them",
            code="SF404",
            text=request.text,
            hints=("add an aggregate, such as COUNT(*)",),
        )
    priced = PricedQuery(
        request=with_thresholds(request, boundings, costs),
        unit=unit,
        boundings=boundings,
        costs=costs,
        parts=parts_of_request(request, catalog),
        losses=priced_losses(losses, budget, epsilon=asked, noise=options.noise, part=part),
    )
    for bounding in priced.all_boundings:
        backend.check(bounding.query)
    _try_postprocessing(priced, public_tables(request, backend))
    return priced


def refuse_huge(epsilon: Fraction | None) -> None:
    """Refuse an epsilon that is no price any more."""
    if epsilon is not None and epsilon > _MOST_EPSILON:
        hint = "a usual choice is below 10"
        raise InvalidArgument("so large an epsilon protects no one", place="epsilon", hints=(hint,))


def bounded_queries(request: Request, catalog: Catalog, backend: Backend) -> tuple[str, tuple[Bounding, ...]]:
    """Return the unit that a request is about, and what it can change of each of its questions. Free."""
    queries = [named.query for named in request.queries]
    units = {check_units(query, catalog).name for query in queries}
    if len(units) != 1:
        raise QueryRefused(
            "one request is about one unit of protection",
            code="SF406",
            text=request.text,
            hints=("ask about different units in requests of their own",),
        )
    refuse_copies(queries, catalog, backend.public_copies)
    boundings = tuple(
        bound(named.query, catalog, named.options or request.options, backend) for named in request.queries
    )
    return units.pop(), boundings


def _plan_to_find(
    request: Request,
    missing: tuple[MissingLimit, ...],
    catalog: Catalog,
    budget: PrivacyBudget,
    epsilon: Fraction | None,
    backend: Backend,
) -> PricedQuery:
    """Price a request whose limits are found first: the rest as if they were wide, and reserved for all."""
    priced = partial(plan, catalog=catalog, budget=budget, backend=backend)
    asked = request.options.epsilon if epsilon is None else epsilon
    full = replace(request, queries=tuple(replace(one, fills_in=False) for one in request.queries))
    if len(full.queries) > 1 and any(
        (one.options or DEFAULT_OPTIONS).epsilon is None for one in full.queries
    ):
        raise QueryRefused(
            "limits of several questions are found only where each of them says what it may cost",
            code="SF405",
            text=request.text,
            hints=("give bounds: SUM(x, contribution_bounds_per_group => (0, 100))", "or ask one at a time"),
        )

    def settled(found: Sequence[tuple[Any, ...]]) -> PricedQuery:
        return priced(with_limits(full, missing, found), epsilon=asked, part=1 - BOUNDS_PART)

    typical = settled([one.typical for one in missing])
    rest = LookCost(
        event=budget.rule.claim(budget.allowance(typical.epsilon) * (1 - BOUNDS_PART)),
        keys_delta=sum((cost.keys_limit for cost in typical.costs), Fraction(0)),
    )

    def within_rest(found: Sequence[tuple[Any, ...]]) -> PricedQuery:
        later = settled(found)
        dearer = budget.rule.charge(later.event) > budget.rule.charge(rest.event)
        if dearer or later.keys_delta > rest.keys_delta:
            raise InvalidArgument("this question costs more than was reserved for it", place="epsilon")
        return later

    part = BOUNDS_PART / len(missing)
    first = tuple(priced(one.request, epsilon=asked, part=part) for one in missing)
    limits = FoundLimits(missing=missing, first=first, rest=rest, settled=within_rest)
    return replace(typical, request=request, limits=limits)


def _try_postprocessing(priced: PricedQuery, public: Mapping[str, Any]) -> None:
    """Refuse post-processing that cannot run, before anything is charged."""
    request = priced.request
    if request.postprocessing is None:
        return
    asked = list(zip(request.queries, priced.boundings, strict=True))

    def samples() -> list[dict[str, PlainTable]]:
        if any(bounding.query.declared is None for _, bounding in asked):
            return []
        return [
            {named.name: sample_table(one, times, named.reported) for named, one in asked}
            for times in (1, 10**6)
        ]

    empty = {named.name: expected_table(bounding, named.reported) for named, bounding in asked}
    check(empty, request.postprocessing, public=public, samples=samples)


def parts_of_request(request: Request, catalog: Catalog) -> frozenset[str] | None:
    """Return the parts that all queries of a request together are about; None: every one."""
    found = [parts_of(named.query.source, catalog) for named in request.queries]
    known = [parts for parts in found if parts is not None]
    return frozenset().union(*known) if known and len(known) == len(found) else None
