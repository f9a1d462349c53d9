"""Priced requests: what was asked, what it costs, and how its answer is made once that is paid."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from sfumato.analysis import Bounding, Cost
from sfumato.analysis.invariants import NOT_PROTECTED
from sfumato.analysis.loss_measurement import QuestionLoss
from sfumato.analysis.missing_limits import MissingLimit
from sfumato.backends import Backend
from sfumato.catalog.canonical import fingerprint
from sfumato.core.events import Composed, Event
from sfumato.plan.outline import labels
from sfumato.plan.request import Request
from sfumato.release import NoisyGroups, Release, add_noise, cost_record, publish, tabulate
from sfumato.release.consistency import consistent_groups
from sfumato.release.publication import loss_note

__all__ = [
    "FoundLimits",
    "Look",
    "Priced",
    "published",
    "unprotected_totals",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """What one of several looks costs; all are declared before the first is taken."""

    event: Event
    keys_delta: Fraction = Fraction(0)

    @staticmethod
    def of(priced: Priced) -> Look:
        """Return what a question costs, to declare it, or another one of the same cost, as a step."""
        return Look(event=priced.event, keys_delta=priced.keys_delta)


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """A request whose cost is known: what was asked, what one unit can change, what noise that takes."""

    request: Request
    unit: str
    boundings: tuple[Bounding, ...]
    costs: tuple[Cost, ...]
    parts: frozenset[str] | None = None  # of the unit's partition; None: it concerns every part
    losses: tuple[QuestionLoss, ...] = ()  # of questions whose caps or bounds may bite
    limits: FoundLimits | None = (
        None  # that are found first: the rest is then only of this kind, not the same
    )

    @property
    def all_boundings(self) -> tuple[Bounding, ...]:
        """What is computed: for limits that are missing, for the questions, and for what measures losses."""
        first = () if self.limits is None else self.limits.first
        found = [bounding for one in first for bounding in one.all_boundings]
        losses = [loss.bounding for loss in self.losses if loss.bounding is not None]
        return (*found, *self.boundings, *losses)

    @property
    def all_costs(self) -> tuple[Cost, ...]:
        """What finding limits costs, what the questions cost, and what measuring their losses does."""
        first = () if self.limits is None else self.limits.first
        found = [cost for one in first for cost in one.all_costs]
        return (*found, *self.costs, *(loss.cost for loss in self.losses if loss.cost is not None))

    @property
    def event(self) -> Event:
        """All that happens, as one batch."""
        if self.limits is not None:
            return Composed(events=(*(one.event for one in self.limits.first), self.limits.rest.event))
        events = tuple(cost.event for cost in self.all_costs)
        return events[0] if len(events) == 1 else Composed(events=events)

    @property
    def epsilon(self) -> Fraction:
        """What the whole request gives away by itself: several questions in one share one epsilon."""
        return Fraction(cost_record(*self.all_costs)["epsilon"])

    def fingerprint(self) -> str:
        """Return a hash of what is asked and of what it costs. The rest follows from catalog and data."""
        return fingerprint(request=self.request, unit=self.unit, cost=cost_record(*self.all_costs))

    @property
    def keys_delta(self) -> Fraction:
        """What selecting keys may cost."""
        if self.limits is not None:
            return self.limits.rest.keys_delta
        return sum((cost.keys_delta for cost in self.costs), Fraction(0))

    def computed(self, backend: Backend, public: Mapping[str, Any]) -> Release:
        """Return the answer, without its receipt. It has to be paid for."""
        return _answered(self, backend, public)

    def read(self, stored: str) -> Release:
        """Return the answer that was stored as text."""
        return Release.from_json(stored)


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundLimits:
    """Limits that are found before the question is answered with them: `analysis.missing_limits`.

    `rest` is reserved for the question itself, whatever is found; `settled` prices it then.
    """

    missing: tuple[MissingLimit, ...]
    first: tuple[Priced, ...]
    rest: Look
    settled: Callable[[Sequence[tuple[Any, ...]]], Priced]

    def decide(self, query: int, aggregate: str) -> bool:
        """Whether the error of an aggregate of a question depends on what is found."""
        needed = [one.aggregates for one in self.missing if one.query == query]
        return any(not names or aggregate in names for names in needed)


def _answered(priced: Priced, backend: Backend, public: Mapping[str, Any]) -> Release:
    if priced.limits is not None:
        return _answered_with_limits(priced, priced.limits, backend, public)
    noisy = [
        (add_noise(backend.run(bounding.query), bounding, cost), cost)
        for bounding, cost in zip(priced.boundings, priced.costs, strict=True)
    ]
    return published(priced, noisy, backend, public, cost_record(*priced.all_costs))


def published(
    priced: Priced,
    noisy: Sequence[tuple[tuple[NoisyGroups, ...], Cost]],
    backend: Backend,
    public: Mapping[str, Any],
    cost: Mapping[str, Any],
) -> Release:
    """Return the release of a question whose noisy integers are known, with the noise that each got."""
    request, tables = priced.request, []
    unprotected = unprotected_totals(priced.boundings)
    for named, bounding, (groups, own) in zip(request.queries, priced.boundings, noisy, strict=True):
        if bounding.consistency is not None:
            groups = consistent_groups(groups, bounding, own, non_negative=request.options.non_negative)
        tables.append(
            tabulate(
                named.name,
                groups,
                bounding,
                own,
                non_negative=request.options.non_negative,
                unknown=named.unknown,
            )
        )
    return publish(
        tuple(tables),
        request.postprocessing,
        public=public,
        cost={**cost, "unprotected": list(unprotected)} if unprotected else cost,
        notes=(
            *(f"{NOT_PROTECTED}: {said}" for said in unprotected),
            *dict.fromkeys(_measured(priced, backend)),
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


def _answered_with_limits(
    priced: Priced, limits: FoundLimits, backend: Backend, public: Mapping[str, Any]
) -> Release:
    """Find the limits, and answer the question with them, for no more than was reserved for it."""
    answers = [_answered(one, backend, {}) for one in limits.first]
    found = [one.row(each.columns, each.rows) for one, each in zip(limits.missing, answers, strict=True)]
    settled = limits.settled(found)
    release = _answered(settled, backend, public)
    costs = [cost for one in limits.first for cost in one.all_costs]
    notes = tuple(one.said(row) for one, row in zip(limits.missing, found, strict=True))
    return replace(release, cost=cost_record(*costs, *settled.all_costs), notes=(*release.notes, *notes))


def _measured(priced: Priced, backend: Backend) -> tuple[str, ...]:
    """Return what is said of the limits that may bite: what they took, where that is paid for."""
    return tuple(
        loss.limits.unknown
        if loss.bounding is None or loss.cost is None
        else loss_note(loss, add_noise(backend.run(loss.bounding.query), loss.bounding, loss.cost))
        for loss in priced.losses
    )
