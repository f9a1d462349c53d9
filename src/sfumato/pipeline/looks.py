"""Several looks under one reservation: each step is stored before it is published."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from fractions import Fraction
from typing import TypeVar

from sfumato.backends import Backend
from sfumato.catalog import Catalog
from sfumato.catalog.canonical import fingerprint
from sfumato.core.events import Composed
from sfumato.errors import InvalidArgument
from sfumato.ledger import Ledger, Owner, Reservation
from sfumato.pipeline.answering import before_charge, looked, refuse_unready, reserved
from sfumato.pipeline.priced import Look, LookCost, Priced, PricedAnswer
from sfumato.release import Published

__all__ = [
    "Looks",
    "reserved_steps",
    "several_looks",
]

_Answer = TypeVar("_Answer", bound=Published)


@dataclass(frozen=True, slots=True, kw_only=True)
class Looks:
    """Several questions under one reservation, each chosen after the answers before it."""

    looks: tuple[LookCost, ...]
    catalog: Catalog
    ledger: Ledger
    backend: Backend
    reservation: Reservation

    def answer(self, step: int, priced: PricedAnswer[_Answer]) -> _Answer:
        """Return the answer of a step: as it is stored, or made now, stored, and only then returned.

        The question may depend on earlier answers; its cost is the one that was declared for the step.
        """
        declared = self.looks[step - 1] if 1 <= step <= len(self.looks) else None
        if priced.unit != self.reservation.record.unit or LookCost.of(priced) != declared:
            raise InvalidArgument(
                f"step {step} was declared with another cost, or for another unit",
                place="step",
                hints=("what is reserved at the beginning has to cover every step exactly",),
            )
        backend = self.backend
        public = before_charge(priced, self.catalog, self.ledger, backend)
        look = Look(backend=backend, public=public)
        with backend.admitted():
            stored = self.reservation.step(
                step,
                lambda: looked(priced, look, self.reservation, step).to_json().encode(),
                request_hash=priced.fingerprint(),
                data_version=backend.data_version(),
            )
        return priced.read(stored.decode())

    def end(self) -> None:
        """End the reservation: no further step is taken. What was not used is not given back."""
        self.reservation.commit(b"")


@contextmanager
def several_looks(
    looks: Sequence[LookCost],
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
    refuse_unready(unit, ledger, backend)
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
    priced: Priced,
    steps: int,
    *,
    catalog: Catalog,
    ledger: Ledger,
    backend: Backend,
    analyst: str | Owner,
    idempotency_key: str,
    purpose: str | None = None,
    data_may_change: bool = True,
) -> Iterator[Reservation]:
    """Reserve one event for several steps; the same again resumes them.

    Without `data_may_change` all steps are about the data as it is now; with it data comes in between.
    """
    before_charge(priced, catalog, ledger, backend)
    with reserved(
        priced,
        catalog=catalog,
        ledger=ledger,
        data_version=None if data_may_change else backend.data_version(),
        analyst=analyst,
        idempotency_key=idempotency_key,
        purpose=purpose,
        steps=steps,
    ) as reservation:
        yield reservation
