"""Priced questions: what was asked, what it costs, and how its answer is made once that is paid."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Any

from sfumato.analysis import Bounding, Cost
from sfumato.analysis.invariants import NOT_PROTECTED
from sfumato.analysis.loss_measurement import QuestionLoss
from sfumato.analysis.missing_limits import MissingLimit
from sfumato.core.events import Composed, Event
from sfumato.pipeline.priced import Look, LookCost, PricedAnswer
from sfumato.plan.outline import labels
from sfumato.plan.request import Request
from sfumato.release import NoisyGroups, Release, add_noise, cost_record, publish, tabulate
from sfumato.release.consistency import consistent_groups
from sfumato.release.publication import loss_note

__all__ = [
    "FoundLimits",
    "PricedQuery",
    "published",
    "unprotected_totals",
]


@dataclass(frozen=True, kw_only=True)
class PricedQuery(PricedAnswer[Release]):
    """A question whose cost is known: what was asked, what one unit can change, what noise that takes."""

    answer_type = Release

    request: Request
    unit: str
    boundings: tuple[Bounding, ...]
    costs: tuple[Cost, ...]
    parts: frozenset[str] | None = None  # of the unit's partition; None: it concerns every part
    losses: tuple[QuestionLoss, ...] = ()  # of questions whose caps or bounds may bite
    limits: FoundLimits | None = (
        None  # that are found first: the rest is then only of this kind, not the same
    )

    @cached_property
    def all_boundings(self) -> tuple[Bounding, ...]:
        """What is computed: for limits that are missing, for the questions, and for what measures losses."""
        first = () if self.limits is None else self.limits.first
        found = [bounding for one in first for bounding in one.all_boundings]
        losses = [loss.bounding for loss in self.losses if loss.bounding is not None]
        return (*found, *self.boundings, *losses)

    @cached_property
    def all_costs(self) -> tuple[Cost, ...]:
        """What finding limits costs, what the questions cost, and what measuring their losses does."""
        first = () if self.limits is None else self.limits.first
        found = [cost for one in first for cost in one.all_costs]
        return (*found, *self.costs, *(loss.cost for loss in self.losses if loss.cost is not None))

    @cached_property
    def event(self) -> Event:
        """All that happens, as one batch."""
        if self.limits is not None:
            return Composed(events=(*(one.event for one in self.limits.first), self.limits.rest.event))
        events = tuple(cost.event for cost in self.all_costs)
        return events[0] if len(events) == 1 else Composed(events=events)

    @property
    def epsilon(self) -> Fraction:
        """What the whole request gives away by itself: several questions in one share one epsilon."""
        return Fraction(self.cost_record()["epsilon"])

    @property
    def delta(self) -> Fraction:
        """The delta of that epsilon."""
        return Fraction(self.cost_record()["delta"])

    @property
    def keys_delta(self) -> Fraction:
        """What selecting keys may cost."""
        if self.limits is not None:
            return self.limits.rest.keys_delta
        return sum((cost.keys_delta for cost in self.costs), Fraction(0))

    @property
    def unprotected(self) -> tuple[str, ...]:
        """What answers show exactly, because the policy declares it public."""
        return unprotected_totals(self.all_boundings)

    def asked(self) -> dict[str, Any]:
        """Return the request and what it costs. The rest follows from catalog and data."""
        return super().asked()

    def _costs(self) -> dict[str, Any]:
        return cost_record(*self.all_costs)

    def computed(self, look: Look) -> Release:
        """Return the answer, without its receipt. It has to be paid for."""
        return _answered(self, look)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundLimits:
    """Limits that are found before the question is answered with them: `analysis.missing_limits`.

    `rest` is reserved for the question itself, whatever is found; `settled` prices it then.
    """

    missing: tuple[MissingLimit, ...]
    first: tuple[PricedQuery, ...]
    rest: LookCost
    settled: Callable[[Sequence[tuple[Any, ...]]], PricedQuery]

    def decide(self, query: int, aggregate: str) -> bool:
        """Whether the error of an aggregate of a question depends on what is found."""
        needed = [one.aggregates for one in self.missing if one.query == query]
        return any(not names or aggregate in names for names in needed)


def _answered(priced: PricedQuery, look: Look) -> Release:
    if priced.limits is not None:
        return _answered_with_limits(priced, priced.limits, look)
    noisy = [
        (add_noise(look.backend.run(bounding.query), bounding, cost), cost)
        for bounding, cost in zip(priced.boundings, priced.costs, strict=True)
    ]
    return published(priced, noisy, look, priced.cost_record())


def published(
    priced: PricedQuery,
    noisy: Sequence[tuple[tuple[NoisyGroups, ...], Cost]],
    look: Look,
    cost: Mapping[str, Any],
) -> Release:
    """Return the release of a question whose noisy integers are known, with the noise that each got."""
    request, tables = priced.request, []
    unprotected = unprotected_totals(priced.boundings)
    for named, bounding, (groups, own) in zip(request.queries, priced.boundings, noisy, strict=True):
        if bounding.consistency is not None:
            groups = consistent_groups(groups, bounding, own, non_negative=request.options.non_negative)
        tables.append(
            tabulate(named.name, groups, bounding, own, options=request.options, unknown=named.unknown)
        )
    return publish(
        tuple(tables),
        request.postprocessing,
        public=look.public,
        cost={**cost, "unprotected": list(unprotected)} if unprotected else cost,
        notes=(
            *(f"{NOT_PROTECTED}: {said}" for said in unprotected),
            *dict.fromkeys(_measured(priced, look)),
            *request.notes,
            *request.query_notes,
        ),
        labels={named.name: labels(named.query) for named in request.queries},
        reported={named.name: named.reported for named in request.queries},
    )


def unprotected_totals(boundings: Sequence[Bounding]) -> tuple[str, ...]:
    """Return what answers show exactly, because the policy declares it public."""
    known = [one.consistency.unprotected for one in boundings if one.consistency is not None]
    return tuple(dict.fromkeys(said for each in known for said in each))


def _answered_with_limits(priced: PricedQuery, limits: FoundLimits, look: Look) -> Release:
    """Find the limits, and answer the question with them, for no more than was reserved for it."""
    answers = [_answered(one, replace(look, public={})) for one in limits.first]
    found = [one.row(each.columns, each.rows) for one, each in zip(limits.missing, answers, strict=True)]
    settled = limits.settled(found)
    release = _answered(settled, look)
    costs = [cost for one in limits.first for cost in one.all_costs]
    notes = tuple(one.said(row) for one, row in zip(limits.missing, found, strict=True))
    return replace(release, cost=cost_record(*costs, *settled.all_costs), notes=(*release.notes, *notes))


def _measured(priced: PricedQuery, look: Look) -> tuple[str, ...]:
    """Return what is said of the limits that may bite: what they took, where that is paid for."""
    return tuple(
        loss.limits.unknown
        if loss.bounding is None or loss.cost is None
        else loss_note(loss, add_noise(look.backend.run(loss.bounding.query), loss.bounding, loss.cost))
        for loss in priced.losses
    )
