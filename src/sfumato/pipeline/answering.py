"""Answering: charge, then look. The one place where a reservation is made for one answer."""

from __future__ import annotations

import hashlib
import logging
from contextlib import ExitStack
from fractions import Fraction
from typing import Any, TypeVar

from sfumato.backends import Backend
from sfumato.catalog import Catalog, Policy
from sfumato.errors import InvalidArgument, LedgerError, QueryRefused
from sfumato.interrupts import deferred
from sfumato.ledger import Ledger, Owner, Reservation
from sfumato.pipeline.priced import Look, Priced, PricedAnswer, Tell, silent
from sfumato.plan.outline import outline_request
from sfumato.plan.request import Request
from sfumato.release import Published, Release, publish

__all__ = [
    "admit",
    "answer",
    "answer_public",
    "before_charge",
    "kept_text",
    "looked",
    "parts_charged",
    "public_tables",
    "refuse_unready",
    "reserved",
]

_Answer = TypeVar("_Answer", bound=Published)

_LOG = logging.getLogger("sfumato")
_LOG.addHandler(logging.NullHandler())  # silent unless the program that uses it says where records go


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
    priced: PricedAnswer[_Answer],
    *,
    catalog: Catalog,
    ledger: Ledger,
    backend: Backend,
    analyst: str | Owner,
    idempotency_key: str | None = None,
    purpose: str | None = None,
    tell: Tell = silent,
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
        public = before_charge(priced, catalog, ledger, backend)
        begin("waiting for memory")
        with backend.admitted(), ExitStack() as stack:
            begin("charging")
            with deferred():
                reservation = stack.enter_context(
                    reserved(
                        priced,
                        catalog=catalog,
                        ledger=ledger,
                        data_version=backend.data_version(),  # again: the engine may have stopped meanwhile
                        analyst=analyst,
                        idempotency_key=idempotency_key,
                        purpose=purpose,
                    )
                )
            number = reservation.sequence
            if reservation.replayed is not None:
                _LOG.info("reservation %d: answered again, free", number)
                return priced.read(reservation.replayed.decode())
            _LOG.info("reservation %d: unit %r is charged epsilon %.6g", number, priced.unit, priced.epsilon)
            begin("computing")
            published = looked(priced, Look(backend=backend, public=public, tell=tell), reservation)
            begin("storing")
            with deferred():
                reservation.commit(published.to_json().encode())
            _LOG.info("reservation %d: answered", number)
            return published
    except KeyboardInterrupt:
        raise KeyboardInterrupt(_interrupted(reservation, ledger)) from None
    except BaseException as error:
        if reservation is not None:
            _LOG.warning(
                "reservation %d: charged, and not answered (%s)", reservation.sequence, type(error).__name__
            )
        raise


def answer_public(request: Request, *, backend: Backend) -> Release:
    """Answer a request about public tables alone: exactly, and free, for nothing in them is anybody's."""
    if request.queries or request.postprocessing is None:
        raise InvalidArgument("this asks about people, and is charged", place="request")
    cost = {"epsilon": Fraction(0), "delta": Fraction(0), "keys_delta": Fraction(0), "events": []}
    return publish(
        (),
        request.postprocessing,
        public=public_tables(request, backend),
        cost=cost,
        notes=("this is about public tables alone: exact, and nothing was charged", *request.notes),
    )


def parts_charged(priced: Priced, *, catalog: Catalog, ledger: Ledger) -> frozenset[str] | None:
    """Return the parts that bear the cost; None: all, also where ledger and engine divide differently."""
    same = ledger.partition(priced.unit) == _partition(priced.unit, catalog)
    return priced.parts if same else None


def public_tables(request: Request, backend: Backend) -> dict[str, Any]:
    return {name: backend.public_table(name) for name in request.public}


def before_charge(priced: Priced, catalog: Catalog, ledger: Ledger, backend: Backend) -> dict[str, Any]:
    """Refuse what cannot be answered while it is still free; return the public tables."""
    admit(priced, catalog.policy)
    refuse_unready(priced.unit, ledger, backend)
    return public_tables(priced.request, backend)


def refuse_unready(unit: str, ledger: Ledger, backend: Backend) -> None:
    """Refuse a budget whose neighbours are not those of prices, and an engine that has stopped."""
    if ledger.replace_one(unit):
        raise LedgerError(
            f"the budget of unit `{unit}` protects against a unit that is replaced, and questions are "
            "priced for one that is added or removed",
            code="SF605",
            place="unit",
            hints=("keep a budget for questions in a ledger of its own, registered without replace_one",),
        )
    backend.data_version()  # refuses an engine that has stopped


def reserved(
    priced: Priced,
    *,
    catalog: Catalog,
    ledger: Ledger,
    data_version: str | None,
    analyst: str | Owner,
    idempotency_key: str | None,
    purpose: str | None,
    steps: int | None = None,
) -> Reservation:
    """Charge what is priced, durably, for one look or for several steps."""
    return ledger.reserve(
        priced.unit,
        priced.event,
        priced.keys_delta,
        request_hash=priced.fingerprint(),
        data_version=data_version,
        policy_hash=catalog.fingerprint(),
        idempotency_key=idempotency_key,
        analyst=analyst,
        parts=parts_charged(priced, catalog=catalog, ledger=ledger),
        steps=steps,
        question=kept_text(priced.request, catalog.policy),
        purpose=purpose,
    )


def looked(
    priced: PricedAnswer[_Answer], look: Look, reservation: Reservation, step: int | None = None
) -> _Answer:
    """Look at the data, which is paid for: exact integers, noise, the answer and its receipt."""
    answered = priced.computed(look)
    digest = hashlib.sha256(answered.to_json().encode()).hexdigest()  # of all but the receipt
    return answered.with_receipt(reservation.receipt(digest, step=step, unprotected=priced.unprotected))


def kept_text(request: Request, policy: Policy) -> str | None:
    """Return what the ledger keeps of a question: its text, or its outline if it was asked in Python."""
    return (request.text or outline_request(request)) if policy.keep_questions else None


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


def _partition(unit: str, catalog: Catalog) -> str | None:
    """Return the attribute by which the engine divides a unit into parts."""
    tables = (table for table in catalog.tables if table.unit is not None and table.unit.name == unit)
    return next((table.partition for table in tables if table.partition is not None), None)
