"""The one path: every answer about private data, from every door, is made by `answer` or by its steps.

    request ──> plan ──> bounded plan ──> cost ──> reserved in the ledger
                                                      ──> exact integers ──> noise ──> release

All before the reservation is free, reads no data, and fails the same way whatever the data.
All after it is paid for: an error, a crash or a timeout burns what was reserved.
"""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any, Protocol, Self, TypeVar

from sfumato.analysis import Bounding, Cost, bound, price_together
from sfumato.analysis.detection_threshold import with_thresholds
from sfumato.analysis.invariants import NOT_PROTECTED
from sfumato.analysis.join_fanout import refuse_copies
from sfumato.analysis.loss_measurement import QuestionLoss, losses_of, main_part, priced_losses
from sfumato.analysis.missing_limits import BOUNDS_PART, MissingLimit, missing_limits, with_limits
from sfumato.analysis.partition_filter import parts_of
from sfumato.backends import Backend
from sfumato.catalog import Catalog, Policy
from sfumato.catalog.canonical import fingerprint
from sfumato.core.accountant import PrivacyBudget
from sfumato.core.events import Composed, Event
from sfumato.errors import InvalidArgument, LedgerError, QueryRefused
from sfumato.interrupts import deferred
from sfumato.ledger import Ledger, Owner, Reservation
from sfumato.plan.conditions import with_join_conditions
from sfumato.plan.outline import labels, outline_request
from sfumato.plan.request import DEFAULT_OPTIONS, Request
from sfumato.plan.unit_safety import check_units
from sfumato.release import NoisyGroups, Release, add_noise, cost_record, publish, tabulate
from sfumato.release.consistency import consistent_groups
from sfumato.release.plain_tables import expected_table, sample_table
from sfumato.release.publication import loss_note
from sfumato.release.sandbox import PlainTable, check

__all__ = [
    "Chargeable",
    "FoundLimits",
    "Look",
    "Looks",
    "Payable",
    "Priced",
    "Published",
    "admit",
    "answer",
    "answer_public",
    "bounded_queries",
    "parts_charged",
    "parts_of_request",
    "plan",
    "published",
    "refuse_huge",
    "reserved_steps",
    "several_looks",
    "unprotected_totals",
]


_MOST_EPSILON = 10**22  # GoogleSQL's documentation writes 1e20 for no noise, its tests up to 1e21

_LOG = logging.getLogger("sfumato")
_LOG.addHandler(logging.NullHandler())  # silent unless the program that uses it says where records go


class Published(Protocol):
    """What leaves: it can be stored as text, and bears the receipt of its charge."""

    def to_json(self) -> str: ...

    def with_receipt(self, receipt: Mapping[str, Any]) -> Self: ...


_Answer = TypeVar("_Answer", bound=Published)
_Answer_co = TypeVar("_Answer_co", bound=Published, covariant=True)


class Chargeable(Protocol):
    """What has a price, and can be charged: a question, a workload of many, or a stream."""

    @property
    def request(self) -> Request: ...

    @property
    def unit(self) -> str: ...

    @property
    def event(self) -> Event: ...

    @property
    def epsilon(self) -> Fraction: ...

    def fingerprint(self) -> str: ...


class Payable(Chargeable, Protocol[_Answer_co]):
    """What `answer` has to know of a request whose cost is known: a question, or a workload of many.

    `computed` looks at the data, which is paid for by then, and returns the answer without its receipt;
    `read` returns the answer that was stored as text.
    """

    @property
    def parts(self) -> frozenset[str] | None: ...

    @property
    def all_boundings(self) -> tuple[Bounding, ...]: ...

    @property
    def keys_delta(self) -> Fraction: ...

    def computed(self, backend: Backend, public: Mapping[str, Any]) -> _Answer_co: ...

    def read(self, stored: str) -> _Answer_co: ...


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


def plan(
    request: Request,
    *,
    catalog: Catalog,
    budget: PrivacyBudget,
    epsilon: Fraction | None,
    backend: Backend,
    part: Fraction = Fraction(1),
) -> Priced:
    """Price a request: free, and a function of the request, the catalog, public tables and the budget alone.

    `epsilon` is for the whole request; several private questions in one share what it allows, or `part` of
    that. What cannot run is refused here: whatever has a price can be answered.
    """
    request, missing = missing_limits(with_join_conditions(request), catalog, backend)
    if missing:
        return _plan_to_find(request, missing, catalog, budget, epsilon, backend)
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
    priced = Priced(
        request=with_thresholds(request, boundings, costs),
        unit=unit,
        boundings=boundings,
        costs=costs,
        parts=parts_of_request(request, catalog),
        losses=priced_losses(losses, budget, epsilon=asked, noise=options.noise, part=part),
    )
    for bounding in priced.all_boundings:
        backend.check(bounding.query)
    _try_postprocessing(priced, _public_tables(request, backend))
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
) -> Priced:
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

    def settled(found: Sequence[tuple[Any, ...]]) -> Priced:
        return priced(with_limits(full, missing, found), epsilon=asked, part=1 - BOUNDS_PART)

    typical = settled([one.typical for one in missing])
    rest = Look(
        event=budget.rule.claim(budget.allowance(typical.epsilon) * (1 - BOUNDS_PART)),
        keys_delta=sum((cost.keys_limit for cost in typical.costs), Fraction(0)),
    )

    def within_rest(found: Sequence[tuple[Any, ...]]) -> Priced:
        later = settled(found)
        dearer = budget.rule.charge(later.event) > budget.rule.charge(rest.event)
        if dearer or later.keys_delta > rest.keys_delta:
            raise InvalidArgument("this question costs more than was reserved for it", place="epsilon")
        return later

    part = BOUNDS_PART / len(missing)
    first = tuple(priced(one.request, epsilon=asked, part=part) for one in missing)
    limits = FoundLimits(missing=missing, first=first, rest=rest, settled=within_rest)
    return replace(typical, request=request, limits=limits)


def admit(priced: Chargeable, policy: Policy) -> None:
    """Refuse a request that costs more than the owner lets one request cost. Free."""
    if policy.ceiling is not None and priced.epsilon > policy.ceiling:
        raise QueryRefused(
            f"epsilon = {float(priced.epsilon):g} is above the ceiling of one question",
            code="SF408",
            text=priced.request.text,
            hints=(f"the owner's policy allows at most {float(policy.ceiling):g}",),
        )


def answer(
    priced: Payable[_Answer],
    *,
    catalog: Catalog,
    ledger: Ledger,
    backend: Backend,
    analyst: str | Owner,
    idempotency_key: str | None = None,
    purpose: str | None = None,
    tell: Callable[[str], object] = lambda step: None,
) -> _Answer:
    """Charge, then look: reserve the whole cost durably, run, add noise, store, and only then answer.

    The ledger keeps a `purpose`, and where the policy says so the text of the question, for the owner alone.
    `tell` hears the name of each step as it begins. Ctrl-C is a `KeyboardInterrupt` that says whether the
    question was charged.
    """
    reservation: Reservation | None = None

    def begin(step: str) -> None:
        _LOG.debug("%s", step)
        tell(step)

    try:
        public = _before_charge(priced, catalog, ledger, backend)
        begin("waiting for memory")
        with backend.admitted(), ExitStack() as stack:
            begin("charging")
            with deferred():
                reservation = stack.enter_context(
                    ledger.reserve(
                        priced.unit,
                        priced.event,
                        priced.keys_delta,
                        request_hash=priced.fingerprint(),
                        data_version=backend.data_version(),  # again: the engine may have stopped meanwhile
                        policy_hash=catalog.fingerprint(),
                        idempotency_key=idempotency_key,
                        analyst=analyst,
                        parts=parts_charged(priced, catalog=catalog, ledger=ledger),
                        question=_kept_text(priced.request, catalog.policy),
                        purpose=purpose,
                    )
                )
            if reservation.replayed is not None:
                _LOG.info("reservation %d: answered again, free", reservation.sequence)
                return priced.read(reservation.replayed.decode())
            _LOG.info(
                "reservation %d: unit %r is charged epsilon %.6g",
                reservation.sequence,
                priced.unit,
                priced.epsilon,
            )
            begin("computing")
            published = _look(priced, backend, public, reservation)
            begin("storing")
            with deferred():
                reservation.commit(published.to_json().encode())
            _LOG.info("reservation %d: answered", reservation.sequence)
            return published
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_interrupted(reservation, ledger)) from None
    except BaseException as error:
        if reservation is not None:
            _LOG.warning(
                "reservation %d: charged, and not answered (%s)", reservation.sequence, type(error).__name__
            )
        raise


def _interrupted(reservation: Reservation | None, ledger: Ledger) -> str:
    """Say whether a question that was interrupted is charged, and whether its answer is kept."""
    if reservation is None or reservation.replayed is not None:
        return "interrupted: nothing was charged"
    number = reservation.sequence
    _LOG.warning("reservation %d: interrupted", number)
    charged = f"interrupted: the question was charged, as reservation {number}"
    try:
        ledger.release(number)
    except LedgerError:
        return f"{charged}, and was not answered; what was charged stays spent"
    return (
        f"{charged}, and its answer is kept: `sfumato ledger show {number}`, or db.ledger.release({number})"
    )


def answer_public(request: Request, *, backend: Backend) -> Release:
    """Answer a request about public tables alone: exactly, and free, for nothing in them is anybody's."""
    if request.queries or request.postprocessing is None:
        raise InvalidArgument("this asks about people, and is charged", place="request")
    cost = {"epsilon": Fraction(0), "delta": Fraction(0), "keys_delta": Fraction(0), "events": []}
    return publish(
        (),
        request.postprocessing,
        public=_public_tables(request, backend),
        cost=cost,
        notes=("this is about public tables alone: exact, and nothing was charged", *request.notes),
    )


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
        return priced.read(stored.decode())

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
        purpose=purpose if catalog.policy.keep_questions else None,
    ) as reservation:
        yield Looks(looks=declared, catalog=catalog, ledger=ledger, backend=backend, reservation=reservation)


@contextmanager
def reserved_steps(
    priced: Chargeable,
    steps: int,
    *,
    catalog: Catalog,
    ledger: Ledger,
    backend: Backend,
    analyst: str | Owner,
    idempotency_key: str,
    purpose: str | None = None,
) -> Iterator[Reservation]:
    """Reserve one event for several steps on data that comes in between; the same again resumes them."""
    _before_charge(priced, catalog, ledger, backend)
    with ledger.reserve(
        priced.unit,
        priced.event,
        0,
        request_hash=priced.fingerprint(),
        data_version=None,
        policy_hash=catalog.fingerprint(),
        idempotency_key=idempotency_key,
        analyst=analyst,
        steps=steps,
        question=_kept_text(priced.request, catalog.policy),
        purpose=purpose,
    ) as reservation:
        yield reservation


def _look(
    priced: Payable[_Answer],
    backend: Backend,
    public: Mapping[str, Any],
    reservation: Reservation,
    step: int | None = None,
) -> _Answer:
    """Look at the data, which is paid for: exact integers, noise, the answer and its receipt."""
    answered = priced.computed(backend, public)
    digest = hashlib.sha256(answered.to_json().encode()).hexdigest()  # of all but the receipt
    unprotected = unprotected_totals(priced.all_boundings)
    return answered.with_receipt(reservation.receipt(digest, step=step, unprotected=unprotected))


def unprotected_totals(boundings: Sequence[Bounding]) -> tuple[str, ...]:
    """Return what answers show exactly, because the policy declares it public."""
    known = [one.consistency.unprotected for one in boundings if one.consistency is not None]
    return tuple(dict.fromkeys(said for each in known for said in each))


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


def _kept_text(request: Request, policy: Policy) -> str | None:
    """Return what the ledger keeps of a question: its text, or its outline if it was asked in Python."""
    return (request.text or outline_request(request)) if policy.keep_questions else None


def _public_tables(request: Request, backend: Backend) -> dict[str, Any]:
    return {name: backend.public_table(name) for name in request.public}


def _before_charge(priced: Chargeable, catalog: Catalog, ledger: Ledger, backend: Backend) -> dict[str, Any]:
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


def parts_charged(priced: Payable[Any], *, catalog: Catalog, ledger: Ledger) -> frozenset[str] | None:
    """Return the parts that bear the cost; None: all, also where ledger and engine divide differently."""
    same = ledger.partition(priced.unit) == _partition(priced.unit, catalog)
    return priced.parts if same else None


def _try_postprocessing(priced: Priced, public: Mapping[str, Any]) -> None:
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


def _partition(unit: str, catalog: Catalog) -> str | None:
    """Return the attribute by which the engine divides a unit into parts."""
    tables = (table for table in catalog.tables if table.unit is not None and table.unit.name == unit)
    return next((table.partition for table in tables if table.partition is not None), None)
