"""The one path: every answer about private data, from every door, is made by `answer`.

    request ──> plan ──> bounded plan ──> cost ──> reserved in the ledger
                                                      ──> exact integers ──> noise ──> release

All before the reservation is free, reads no data, and fails the same way whatever the data.
All after it is paid for: an error, a crash or a timeout burns what was reserved.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, Protocol

from sfumato.analysis import BoundedQuery, Bounding, Cost, bound, price_together
from sfumato.analysis.detection_threshold import with_thresholds
from sfumato.analysis.join_fanout import refuse_copies
from sfumato.analysis.loss_measurement import QuestionLoss, losses_of, main_part, priced_losses
from sfumato.analysis.partition_filter import parts_of
from sfumato.analysis.public_keys import PublicValues, with_public_keys
from sfumato.backends.exact import Exact, ExactGroups
from sfumato.catalog import Catalog, Policy, Unit, Value
from sfumato.catalog.canonical import fingerprint
from sfumato.core.accountant import PrivacyBudget
from sfumato.core.events import Composed, Event
from sfumato.errors import InvalidArgument, LedgerError, QueryRefused
from sfumato.ledger import Ledger, Owner
from sfumato.plan.outline import labels
from sfumato.plan.request import Request
from sfumato.plan.unit_safety import check_units
from sfumato.release import Release, add_noise, cost_record, publish, tabulate
from sfumato.release.loss_notes import loss_note
from sfumato.release.noise import NoisyGroups
from sfumato.release.plain_tables import expected_table, sample_table
from sfumato.release.sandbox import PlainTable, check

__all__ = ["Backend", "Priced", "admit", "answer", "parts_charged", "plan"]


_MOST_EPSILON = 10**12


class Backend(Protocol):
    """What touches data: computes exact integers, and names the version of the data it computes from."""

    def run(self, query: BoundedQuery) -> Exact[tuple[ExactGroups, ...]]:
        """Return the exact groups of a bounded query, one entry per grouping set."""
        ...

    def check(self, query: BoundedQuery) -> None:
        """Refuse a bounded query that `run` could not compute, whatever the data. Reads none."""
        ...

    def admitted(self) -> AbstractContextManager[None]:
        """Hold what one question may take of the engine; wait for it while other questions run."""
        ...

    def data_version(self) -> str:
        """Return what tells this data from an earlier or later state of it."""
        ...

    def public_table(self, name: str) -> Any:
        """Return a public table, for post-processing."""
        ...

    def under(self, catalog: Catalog) -> Backend:
        """Return what computes from the same data, of which something else is declared."""
        ...

    def public_copies(self, table: str, columns: tuple[str, ...]) -> int:
        """Return the largest number of rows of a public table that agree in some columns."""
        ...

    def public_values(self, table: str, column: str) -> tuple[Value, ...] | None:
        """Return the different values of a public column, without NULL; None where there are too many."""
        ...


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
        record = cost_record(*self.all_costs)
        return Fraction(record["epsilon"])

    def fingerprint(self) -> str:
        """Return a hash of what is asked and of what it costs. The rest follows from catalog and data."""
        return fingerprint(request=self.request, unit=self.unit, cost=cost_record(*self.all_costs))

    @property
    def keys_delta(self) -> Fraction:
        """What selecting keys may cost."""
        return sum((cost.keys_delta for cost in self.costs), Fraction(0))


def plan(
    request: Request,
    *,
    catalog: Catalog,
    budget: PrivacyBudget,
    epsilon: Fraction | None,
    public_values: PublicValues,
) -> Priced:
    """Price a request: free, and a function of the request, the catalog, public tables and the budget alone.

    `epsilon` is for the whole request; several private questions in one share what it allows.
    """
    options, queries = request.options, [named.query for named in request.queries]
    asked = options.epsilon if epsilon is None else epsilon
    _check_epsilon(asked)
    unit = _one_unit([check_units(query, catalog) for query in queries], request)
    known = with_public_keys(catalog, queries, public_values)
    boundings = tuple(bound(query, known, options) for query in queries)
    losses = losses_of(request, boundings, known)
    costs = price_together(
        boundings,
        budget,
        epsilon=asked,
        weights=options.weights,
        noise=options.noise,
        keys_delta=options.delta,
        whole=main_part(losses),
    )
    if not all(cost.noises or cost.selections for cost in costs):
        raise QueryRefused(
            "this asks for declared groups and nothing about them",
            code="SF404",
            text=request.text,
            hints=("add an aggregate, such as COUNT(*)",),
        )
    return Priced(
        request=with_thresholds(request, boundings, costs),
        unit=unit,
        boundings=boundings,
        costs=costs,
        parts=_parts(request, catalog),
        losses=priced_losses(losses, budget, epsilon=asked, noise=options.noise),
    )


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
    request = priced.request
    backend.data_version()  # refuses an engine that has stopped
    public = {name: backend.public_table(name) for name in request.public}
    _refuse_what_cannot_run(priced, catalog, ledger, backend, public)
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
        noisy = [
            add_noise(backend.run(bounding.query), bounding, cost)
            for bounding, cost in zip(priced.boundings, priced.costs, strict=True)
        ]
        answered = _published(priced, noisy, _measured(priced, backend), public)
        digest = hashlib.sha256(answered.to_json().encode()).hexdigest()  # of all but the receipt
        release = replace(answered, receipt=reservation.receipt(digest))
        reservation.commit(release.to_json().encode())
        return release


def _refuse_what_cannot_run(
    priced: Priced, catalog: Catalog, ledger: Ledger, backend: Backend, public: Mapping[str, Any]
) -> None:
    """Refuse, before anything is charged, whatever is known to fail afterwards."""
    admit(priced, catalog.policy)
    if ledger.replace_one(priced.unit):
        raise LedgerError(
            f"the budget of unit `{priced.unit}` protects against a unit that is replaced, and questions are "
            "priced for one that is added or removed",
            code="SF605",
            place="unit",
            hints=("keep a budget for questions in a ledger of its own, registered without replace_one",),
        )
    _try_postprocessing(priced, public)
    refuse_copies((named.query for named in priced.request.queries), catalog, backend.public_copies)
    for bounding in (*priced.boundings, *(loss.bounding for loss in priced.losses)):
        if bounding is not None:
            backend.check(bounding.query)


def _measured(priced: Priced, backend: Backend) -> tuple[str, ...]:
    """Return what is said of the limits that may bite: what they took, where that is paid for."""
    return tuple(
        loss.limits.unknown
        if loss.bounding is None or loss.cost is None
        else loss_note(loss, add_noise(backend.run(loss.bounding.query), loss.bounding, loss.cost))
        for loss in priced.losses
    )


def _published(
    priced: Priced,
    noisy: Sequence[tuple[NoisyGroups, ...]],
    lost: tuple[str, ...],
    public: Mapping[str, Any],
) -> Release:
    """Return the answer: noisy sums as averages and quantiles with intervals, and then post-processing."""
    request = priced.request
    tables = tuple(
        tabulate(named.name, groups, bounding, cost, non_negative=request.options.non_negative)
        for named, groups, bounding, cost in zip(
            request.queries, noisy, priced.boundings, priced.costs, strict=True
        )
    )
    return publish(
        tables,
        request.postprocessing,
        public=public,
        cost=cost_record(*priced.all_costs),
        notes=(*dict.fromkeys(lost), *request.notes),
        labels={named.name: labels(named.query) for named in request.queries},
    )


def parts_charged(priced: Priced, *, catalog: Catalog, ledger: Ledger) -> frozenset[str] | None:
    """Return the parts that bear the cost; None: all, also where ledger and engine divide differently."""
    same = ledger.partition(priced.unit) == _partition(priced.unit, catalog)
    return priced.parts if same else None


def _try_postprocessing(priced: Priced, public: Mapping[str, Any]) -> None:
    """Refuse post-processing that cannot run, before anything is charged."""
    if priced.request.postprocessing is not None:
        named = zip(priced.request.queries, priced.boundings, strict=True)
        boundings = {query.name: bounding for query, bounding in named}
        sheets = {name: expected_table(bounding) for name, bounding in boundings.items()}

        def samples() -> list[dict[str, PlainTable]]:
            made = [
                {name: sample_table(bounding, times) for name, bounding in boundings.items()}
                for times in (1, 1_000_000)
            ]
            known = [{name: one for name, one in each.items() if one is not None} for each in made]
            return [each for each in known if len(each) == len(sheets)]

        check(sheets, priced.request.postprocessing, public=public, samples=samples)


def _check_epsilon(epsilon: Fraction | None) -> None:
    if epsilon is not None and epsilon > _MOST_EPSILON:
        raise InvalidArgument(
            "so large an epsilon protects no one", place="epsilon", hints=("a usual choice is below 10",)
        )


def _one_unit(units: Sequence[Unit], request: Request) -> str:
    """Return whose budget pays: the one unit that all questions of the request are about."""
    names = {unit.name for unit in units}
    if len(names) != 1:
        raise QueryRefused(
            "one request is about one unit of protection",
            code="SF406",
            text=request.text,
            hints=("ask about different units in requests of their own",),
        )
    return names.pop()


def _parts(request: Request, catalog: Catalog) -> frozenset[str] | None:
    """Return the parts that all queries of a request together are about; None: every one."""
    found = [parts_of(named.query.source, catalog) for named in request.queries]
    known = [parts for parts in found if parts is not None]
    return frozenset().union(*known) if known and len(known) == len(found) else None


def _partition(unit: str, catalog: Catalog) -> str | None:
    """Return the attribute by which the engine divides a unit into parts."""
    tables = (table for table in catalog.tables if table.unit is not None and table.unit.name == unit)
    return next((table.partition for table in tables if table.partition is not None), None)
