"""The one path: every answer about private data, from every door, is made by `answer`.

    request ──> plan ──> bounded plan ──> cost ──> reserved in the ledger
                                                      ──> exact integers ──> noise ──> release

All before the reservation is free, reads no data, and fails the same way whatever the data.
All after it is paid for: an error, a crash or a timeout burns what was reserved.
"""

from __future__ import annotations

import datetime
import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Protocol

from sfumato.analysis import BoundedQuery, Bounding, Cost, bound, price
from sfumato.analysis.shapes import scans
from sfumato.backends.exact import Exact, ExactGroups
from sfumato.catalog import Catalog
from sfumato.core.accountant import PrivacyBudget
from sfumato.core.events import Composed, Event
from sfumato.errors import QueryRefused
from sfumato.ledger import Ledger
from sfumato.plan.request import Request
from sfumato.release import Release, add_noise, cost_record, publish, tabulate
from sfumato.release.sandbox import check
from sfumato.release.sheets import expected_sheet

__all__ = ["Backend", "Priced", "answer", "plan"]


class Backend(Protocol):
    """What touches data: computes exact integers, and names the version of the data it computes from."""

    def run(self, query: BoundedQuery) -> Exact[tuple[ExactGroups, ...]]:
        """Return the exact groups of a bounded query, one entry per grouping set."""
        ...

    def data_version(self) -> str:
        """Return what tells this data from an earlier or later state of it."""
        ...

    def public_table(self, name: str) -> Any:
        """Return a public table, for post-processing."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Priced:
    """A request whose cost is known: what was asked, what one unit can change, what noise that takes."""

    request: Request
    unit: str
    boundings: tuple[Bounding, ...]
    costs: tuple[Cost, ...]

    @property
    def event(self) -> Event:
        """All that happens, as one batch."""
        events = tuple(cost.event for cost in self.costs)
        return events[0] if len(events) == 1 else Composed(events=events)

    @property
    def keys_delta(self) -> Fraction:
        """What selecting keys may cost."""
        return sum((cost.keys_delta for cost in self.costs), Fraction(0))


def plan(request: Request, *, catalog: Catalog, budget: PrivacyBudget, epsilon: Fraction | None) -> Priced:
    """Price a request: free, and a function of the request, the catalog and the budget alone.

    `epsilon` is for the whole request; several private questions in one share it equally.
    """
    options = request.options
    asked = options.epsilon if epsilon is None else epsilon
    share = None if asked is None else asked / len(request.queries)
    boundings = tuple(bound(named.query, catalog, options) for named in request.queries)
    costs = tuple(
        price(each, budget, epsilon=share, weights=options.weights, noise=options.noise) for each in boundings
    )
    if not all(cost.noises or cost.selections for cost in costs):
        raise QueryRefused(
            "this asks for declared groups and nothing about them",
            code="SF404",
            text=request.text,
            hints=("add an aggregate, such as COUNT(*)",),
        )
    return Priced(request=request, unit=_unit(request, catalog), boundings=boundings, costs=costs)


def answer(
    priced: Priced,
    *,
    catalog: Catalog,
    ledger: Ledger,
    backend: Backend,
    idempotency_key: str | None = None,
) -> Release:
    """Charge, then look: reserve the whole cost durably, run, add noise, store, and only then answer."""
    request = priced.request
    public = {name: backend.public_table(name) for name in request.public}
    _try_outer(priced, public)
    with ledger.reserve(
        priced.unit,
        priced.event,
        priced.keys_delta,
        request_hash=_fingerprint(priced),
        data_version=backend.data_version(),
        policy_hash=catalog.fingerprint(),
        idempotency_key=idempotency_key,
    ) as reservation:
        if reservation.replayed is not None:
            return Release.from_json(reservation.replayed.decode())
        tables = tuple(
            tabulate(named.name, add_noise(backend.run(bounding.query), bounding, cost), bounding, cost)
            for named, bounding, cost in zip(request.queries, priced.boundings, priced.costs, strict=True)
        )
        receipt = {
            "unit": priced.unit,
            "reservation": reservation.sequence,
            "chain": reservation.head.hash,
            "request": _fingerprint(priced),
            "at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        }
        release = publish(
            tables, request.outer, public=public, cost=cost_record(*priced.costs), receipt=receipt
        )
        reservation.commit(release.to_json().encode())
        return release


def _try_outer(priced: Priced, public: Mapping[str, Any]) -> None:
    """Refuse post-processing that cannot run, before anything is charged."""
    if priced.request.outer is not None:
        named = zip(priced.request.queries, priced.boundings, strict=True)
        sheets = {query.name: expected_sheet(bounding) for query, bounding in named}
        check(sheets, priced.request.outer, public=public)


def _unit(request: Request, catalog: Catalog) -> str:
    """Return whose budget pays: the one unit that all private tables of the request are about."""
    units = set()
    for named in request.queries:
        for scan in scans(named.query.source):
            table = catalog.table(scan.table)
            if table is not None and table.unit is not None:
                units.add(table.unit.name)
    if len(units) != 1:
        raise QueryRefused(
            "one request is about one unit of protection",
            code="SF406",
            text=request.text,
            hints=("ask about different units in requests of their own",),
        )
    return str(units.pop())


def _fingerprint(priced: Priced) -> str:
    """Return a hash of what is asked and how it is answered."""
    return hashlib.sha256(repr((priced.request, priced.boundings, priced.costs)).encode()).hexdigest()
