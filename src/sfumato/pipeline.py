"""The one path: every answer about private data, from every door, is made by `answer` or by its steps.

    request ──> plan ──> bounded plan ──> cost ──> reserved in the ledger
                                                      ──> exact integers ──> noise ──> release

All before the reservation is free, reads no data, and fails the same way whatever the data.
All after it is paid for: an error, a crash or a timeout burns what was reserved.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from sfumato.analysis import Bounding, Cost, bound, price_together
from sfumato.analysis.detection_threshold import with_thresholds
from sfumato.analysis.join_fanout import refuse_copies
from sfumato.analysis.loss_measurement import QuestionLoss, losses_of, main_part, priced_losses
from sfumato.analysis.partition_filter import parts_of
from sfumato.backends import Backend
from sfumato.catalog import Catalog, Policy
from sfumato.catalog.canonical import fingerprint
from sfumato.core.accountant import PrivacyBudget
from sfumato.core.events import Composed, Event
from sfumato.errors import InvalidArgument, LedgerError, QueryRefused
from sfumato.ledger import Ledger, Owner, Reservation
from sfumato.plan.conditions import with_join_conditions
from sfumato.plan.outline import labels
from sfumato.plan.request import Request
from sfumato.plan.unit_safety import check_units
from sfumato.release import Release, add_noise, cost_record, publish, tabulate
from sfumato.release.plain_tables import expected_table, sample_table
from sfumato.release.publication import loss_note
from sfumato.release.sandbox import PlainTable, check

__all__ = ["Look", "Looks", "Priced", "admit", "answer", "parts_charged", "plan", "several_looks"]


_MOST_EPSILON = 10**12


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """A request whose cost is known: what was asked, what one unit can change, what noise that takes."""

    request: Request
    unit: str
    boundings: tuple[Bounding, ...]
    costs: tuple[Cost, ...]
    parts: frozenset[str] | None = None  # of the unit's partition; None: it concerns every part
    losses: tuple[QuestionLoss, ...] = ()  # of questions whose caps or bounds may bite

    @property
    def all_boundings(self) -> tuple[Bounding, ...]:
        """What is computed: for the questions, and for what measures their losses."""
        return (*self.boundings, *(loss.bounding for loss in self.losses if loss.bounding is not None))

    @property
    def all_costs(self) -> tuple[Cost, ...]:
        """What the questions cost, and what measuring their losses does."""
        return (*self.costs, *(loss.cost for loss in self.losses if loss.cost is not None))

    @property
    def event(self) -> Event:
        """All that happens, as one batch."""
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
        return sum((cost.keys_delta for cost in self.costs), Fraction(0))


def plan(
    request: Request, *, catalog: Catalog, budget: PrivacyBudget, epsilon: Fraction | None, backend: Backend
) -> Priced:
    """Price a request: free, and a function of the request, the catalog, public tables and the budget alone.

    `epsilon` is for the whole request; several private questions in one share what it allows. What cannot run
    is refused here: whatever has a price can be answered.
    """
    request = with_join_conditions(request)
    options, queries = request.options, [named.query for named in request.queries]
    asked = options.epsilon if epsilon is None else epsilon
    if asked is not None and asked > _MOST_EPSILON:
        hint = "a usual choice is below 10"
        raise InvalidArgument("so large an epsilon protects no one", place="epsilon", hints=(hint,))
    units = {check_units(query, catalog).name for query in queries}
    if len(units) != 1:
        raise QueryRefused(
            "one request is about one unit of protection",
            code="SF406",
            text=request.text,
            hints=("ask about different units in requests of their own",),
        )
    refuse_copies(queries, catalog, backend.public_copies)
    boundings = tuple(bound(query, catalog, options, backend) for query in queries)
    losses = losses_of(request, boundings, catalog)
    costs = price_together(boundings, budget, epsilon=asked, options=options, whole=main_part(losses))
    if not all(cost.noises or cost.selections for cost in costs):
        raise QueryRefused(
            "this asks for declared groups and nothing about them",
            code="SF404",
            text=request.text,
            hints=("add an aggregate, such as COUNT(*)",),
        )
    priced = Priced(
        request=with_thresholds(request, boundings, costs),
        unit=units.pop(),
        boundings=boundings,
        costs=costs,
        parts=_parts(request, catalog),
        losses=priced_losses(losses, budget, epsilon=asked, noise=options.noise),
    )
    for bounding in priced.all_boundings:
        backend.check(bounding.query)
    _try_postprocessing(priced, _public_tables(request, backend))
    return priced


def admit(priced: Priced, policy: Policy) -> None:
    """Refuse a request that costs more than the owner lets one request cost. Free."""
    if policy.ceiling is not None and priced.epsilon > policy.ceiling:
        raise QueryRefused(
            f"epsilon = {float(priced.epsilon):g} is above the ceiling of one question",
            code="SF408",
            text=priced.request.text,
            hints=(f"the owner's policy allows at most {float(policy.ceiling):g}",),
        )


def answer(
    priced: Priced,
    *,
    catalog: Catalog,
    ledger: Ledger,
    backend: Backend,
    analyst: str | Owner,
    idempotency_key: str | None = None,
) -> Release:
    """Charge, then look: reserve the whole cost durably, run, add noise, store, and only then answer."""
    public = _before_charge(priced, catalog, ledger, backend)
    with (
        backend.admitted(),
        ledger.reserve(
            priced.unit,
            priced.event,
            priced.keys_delta,
            request_hash=priced.fingerprint(),
            data_version=backend.data_version(),  # again: the engine may have stopped while this one waited
            policy_hash=catalog.fingerprint(),
            idempotency_key=idempotency_key,
            analyst=analyst,
            parts=parts_charged(priced, catalog=catalog, ledger=ledger),
        ) as reservation,
    ):
        if reservation.replayed is not None:
            return Release.from_json(reservation.replayed.decode())
        release = _look(priced, backend, public, reservation)
        reservation.commit(release.to_json().encode())
        return release


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
class Looks:
    """Several questions under one reservation, each chosen after the answers before it."""

    looks: tuple[Look, ...]
    catalog: Catalog
    ledger: Ledger
    backend: Backend
    reservation: Reservation

    def answer(self, step: int, priced: Priced) -> Release:
        """Return the answer of a step: as it is stored, or made now, stored, and only then returned.

        The question may depend on earlier answers; its cost is the one that was declared for the step.
        """
        declared = self.looks[step - 1] if 1 <= step <= len(self.looks) else None
        if priced.unit != self.reservation.record.unit or Look.of(priced) != declared:
            raise InvalidArgument(
                f"step {step} was declared with another cost, or for another unit",
                place="step",
                hints=("what is reserved at the beginning has to cover every step exactly",),
            )
        backend = self.backend
        public = _before_charge(priced, self.catalog, self.ledger, backend)
        with backend.admitted():
            stored = self.reservation.step(
                step,
                lambda: _look(priced, backend, public, self.reservation, step).to_json().encode(),
                request_hash=priced.fingerprint(),
                data_version=backend.data_version(),
            )
        return Release.from_json(stored.decode())

    def end(self) -> None:
        """End the reservation: no further step is taken. What was not used is not given back."""
        self.reservation.commit(b"")


@contextmanager
def several_looks(
    looks: Sequence[Look],
    *,
    unit: str,
    purpose: str,
    catalog: Catalog,
    ledger: Ledger,
    backend: Backend,
    analyst: str | Owner,
    idempotency_key: str,
    data_may_change: bool,
) -> Iterator[Looks]:
    """Reserve several looks at once, as one event; whoever does the same again resumes at the next step.

    `purpose` says what the steps are for: the key is bound to it. Without `data_may_change` all steps are
    about the data as it is now; with it each step is about the data as it is then, as in a stream.

    Theorem (adaptive composition): the mechanism of each step has the event that was declared for it,
    whatever the answers before, so all of them together have the composed event that was charged.
    """
    declared = tuple(looks)
    if not declared:
        raise InvalidArgument("several looks are one at least", place="looks")
    costs = [[look.event.to_dict(), look.keys_delta] for look in declared]
    with ledger.reserve(
        unit,
        Composed(events=tuple(look.event for look in declared)),
        sum((look.keys_delta for look in declared), Fraction(0)),
        request_hash=fingerprint(purpose=purpose, unit=unit, looks=costs),
        data_version=None if data_may_change else backend.data_version(),
        policy_hash=catalog.fingerprint(),
        idempotency_key=idempotency_key,
        analyst=analyst,
        steps=len(declared),
    ) as reservation:
        yield Looks(looks=declared, catalog=catalog, ledger=ledger, backend=backend, reservation=reservation)


def _look(
    priced: Priced,
    backend: Backend,
    public: Mapping[str, Any],
    reservation: Reservation,
    step: int | None = None,
) -> Release:
    """Look at the data, which is paid for: exact integers, noise, the answer and its receipt."""
    request, tables = priced.request, []
    for named, bounding, cost in zip(request.queries, priced.boundings, priced.costs, strict=True):
        noisy = add_noise(backend.run(bounding.query), bounding, cost)
        tables.append(tabulate(named.name, noisy, bounding, cost, non_negative=request.options.non_negative))
    answered = publish(
        tuple(tables),
        request.postprocessing,
        public=public,
        cost=cost_record(*priced.all_costs),
        notes=(*dict.fromkeys(_measured(priced, backend)), *request.notes),
        labels={named.name: labels(named.query) for named in request.queries},
    )
    digest = hashlib.sha256(answered.to_json().encode()).hexdigest()  # of all but the receipt
    return replace(answered, receipt=reservation.receipt(digest, step=step))


def _public_tables(request: Request, backend: Backend) -> dict[str, Any]:
    return {name: backend.public_table(name) for name in request.public}


def _before_charge(priced: Priced, catalog: Catalog, ledger: Ledger, backend: Backend) -> dict[str, Any]:
    """Refuse what cannot be answered while it is still free; return the public tables."""
    admit(priced, catalog.policy)
    if ledger.replace_one(priced.unit):
        raise LedgerError(
            f"the budget of unit `{priced.unit}` protects against a unit that is replaced, and questions are "
            "priced for one that is added or removed",
            code="SF605",
            place="unit",
            hints=("keep a budget for questions in a ledger of its own, registered without replace_one",),
        )
    backend.data_version()  # refuses an engine that has stopped
    return _public_tables(priced.request, backend)


def _measured(priced: Priced, backend: Backend) -> tuple[str, ...]:
    """Return what is said of the limits that may bite: what they took, where that is paid for."""
    return tuple(
        loss.limits.unknown
        if loss.bounding is None or loss.cost is None
        else loss_note(loss, add_noise(backend.run(loss.bounding.query), loss.bounding, loss.cost))
        for loss in priced.losses
    )


def parts_charged(priced: Priced, *, catalog: Catalog, ledger: Ledger) -> frozenset[str] | None:
    """Return the parts that bear the cost; None: all, also where ledger and engine divide differently."""
    same = ledger.partition(priced.unit) == _partition(priced.unit, catalog)
    return priced.parts if same else None


def _try_postprocessing(priced: Priced, public: Mapping[str, Any]) -> None:
    """Refuse post-processing that cannot run, before anything is charged."""
    request = priced.request
    if request.postprocessing is None:
        return
    boundings = {named.name: one for named, one in zip(request.queries, priced.boundings, strict=True)}

    def samples() -> list[dict[str, PlainTable]]:
        if any(bounding.query.declared is None for bounding in boundings.values()):
            return []
        return [{name: sample_table(one, times) for name, one in boundings.items()} for times in (1, 10**6)]

    empty = {name: expected_table(bounding) for name, bounding in boundings.items()}
    check(empty, request.postprocessing, public=public, samples=samples)


def _parts(request: Request, catalog: Catalog) -> frozenset[str] | None:
    """Return the parts that all queries of a request together are about; None: every one."""
    found = [parts_of(named.query.source, catalog) for named in request.queries]
    known = [parts for parts in found if parts is not None]
    return frozenset().union(*known) if known and len(known) == len(found) else None


def _partition(unit: str, catalog: Catalog) -> str | None:
    """Return the attribute by which the engine divides a unit into parts."""
    tables = (table for table in catalog.tables if table.unit is not None and table.unit.name == unit)
    return next((table.partition for table in tables if table.partition is not None), None)
