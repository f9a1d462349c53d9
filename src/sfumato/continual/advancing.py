"""Advancing a stream: each period that is over is computed, committed and published, once and in order.

    reserve all periods (once) ──> for each period: exact integers ──> + correlated noise
                                      ──> noise, people and output to the state ──> output to the ledger

Theorem: one output at most is published of each period, and the noise of all published periods is one draw of
`CorrelatedNoise`. For the ledger holds one output per step, and takes it from `compute`, which hands out what
the state holds or, where that has nothing of the period, what it has just committed there. A state that lacks
a published period, or has periods that the ledger does not have, but for the next one, is refused before
anything is computed. A period that failed is skipped for ever: its noise is drawn and kept, so that later
periods have the law that was priced.
Assumes: ledger and state are not both replaced by older copies; only an anchor of the ledger tells that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from contextlib import closing
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.analysis.bounded import BoundedQuery
from sfumato.backends import Backend, Participants, PeriodRows
from sfumato.catalog import Catalog
from sfumato.continual.appearing_keys import AppearingKeys
from sfumato.continual.correlated_noise import CorrelatedNoise
from sfumato.continual.pricing import PricedStream
from sfumato.continual.state import CommittedPeriod, StreamState
from sfumato.continual.stored_outputs import stored_output
from sfumato.errors import Unsupported
from sfumato.interrupts import deferred
from sfumato.ledger import Ledger, Owner, Reservation
from sfumato.pipeline import reserved_steps
from sfumato.release.noise import SortedKeys, add_correlated_noise
from sfumato.release.storage import dump, encode

__all__ = ["advance", "key_of"]

_FORMAT = 1
_HASHED_BY = b"hashed by"
_NONE = np.zeros(0, dtype=np.int64)


def key_of(name: str) -> str:
    """Return the idempotency key under which a stream is charged.

    >>> key_of("visits")
    'stream visits'
    """
    return f"stream {name}"


def advance(
    stream: PricedStream,
    until: int,
    *,
    catalog: Catalog,
    ledger: Ledger,
    backend: Backend,
    analyst: str | Owner,
    purpose: str | None = None,
) -> None:
    """Charge the stream, unless it was, and publish the periods up to one that were not published yet."""
    if ledger.on_server:  # nothing was charged: the state holds rows of people, and noise to come
        raise Unsupported(
            "a stream needs a ledger in a file: its state, which is secret, lies beside it",
            hints=("keep the ledger of streams in a file, with a budget of its own",),
        )
    with reserved_steps(
        stream,
        stream.periods.horizon,
        catalog=catalog,
        ledger=ledger,
        backend=backend,
        analyst=analyst,
        idempotency_key=key_of(stream.name),
        purpose=purpose,
    ) as reservation:
        if reservation.replayed is not None:
            return  # the horizon is used up, and all of it was published
        stream = stream.as_charged(reservation.record.happened())
        published = _newest_output(ledger, reservation)
        state = StreamState.open(
            ledger.path, reservation.sequence, str(reservation.head), create=published is None
        )
        with closing(state):
            state.check(reservation.taken, published)
            if reservation.taken < until:
                _Advancing(stream, state, backend, reservation).publish(until)
        if reservation.taken == stream.periods.horizon:
            reservation.commit(b"")


def _newest_output(ledger: Ledger, reservation: Reservation) -> tuple[int, bytes] | None:
    """Return the newest period that was published, and its output."""
    for number in range(reservation.taken, 0, -1):
        if (output := stored_output(ledger, reservation.sequence, number)) is not None:
            return number, output
    return None


class _Advancing:
    """Computes periods, one after the other."""

    def __init__(
        self, stream: PricedStream, state: StreamState, backend: Backend, reservation: Reservation
    ) -> None:
        self._stream, self._state, self._backend, self._reservation = stream, state, backend, reservation
        self._settled = (0, "")  # the last period that was computed here, and from which version of the data
        self._parts = backend.parts(stream.by.scan.table) if stream.late_by_file else ()
        self._row_hash = backend.row_hash().encode() if stream.rows.remembers else b""
        self._keys = None if stream.rule is None else AppearingKeys(stream, stream.rule, state.keys())
        self._sorted = SortedKeys()
        self._shown: tuple[Any, Any] = (None, None)  # declared keys, and as they are stored
        self._noise = CorrelatedNoise(stream.factorisation)
        if self._keys is None:
            self._noise.resume(state.noises(newest=self._noise.forgets), state.last)

    def publish(self, until: int) -> None:
        backend, asked = self._backend, self._reservation.record.request_hash
        for number in range(self._reservation.taken + 1, until + 1):
            version, committed = backend.data_version(), self._state.last >= number
            compute = partial(self._committed, number)
            if not committed:  # what it needs is read here: a state that is damaged takes no step
                participants = self._participants(number)
                query, rows = self._rows(number, version, participants)
                compute = partial(self._computed, number, query, participants, rows)
            with backend.admitted(), deferred():
                self._reservation.step(number, compute, request_hash=asked, data_version=version)
            self._settled = (0, "") if committed else (number, version)

    def _committed(self, number: int) -> bytes:
        """Return the output of a period that was committed, and not published."""
        output = self._state.output(number)
        assert output is not None, "a period that was skipped is never published"
        return output

    def _computed(
        self, number: int, query: BoundedQuery, participants: Participants | None, rows: PeriodRows | None
    ) -> bytes:
        """Return the output of a period, once it is committed."""
        state, stream = self._state, self._stream
        skipped = [self._skipped(one) for one in range(state.last + 1, number)]
        exact = self._backend.run(query, participants=participants, rows=rows)
        people = None if participants is None else participants.counted
        seen = None
        if rows is not None and rows.found is not None:
            seen = rows.found.replace_schema_metadata({_HASHED_BY: self._row_hash})
        keys, kept = b"", _NONE
        if self._keys is not None:
            keys, published = self._keys.period(exact)
            output = self._output(number, published)
        else:
            drawn = self._drawn()
            laws = tuple(stream.laws)
            noise = dict(zip(laws, np.split(drawn, len(laws)), strict=True))
            steps = {name: stream.steps(name, number) for name in laws}
            noisy = add_correlated_noise(exact, stream.bounding, self._sorted, steps, noise)
            measures = {name: values.tolist() for name, values in noisy.measures.items()}
            if noisy.keys is not self._shown[0]:
                self._shown = noisy.keys, encode(noisy.keys)
            output = self._output(number, {"keys": self._shown[1], "measures": measures})
            kept = self._noise.kept
        last = CommittedPeriod(
            number=number, noise=kept, output=output, people=people, rows=seen, parts=self._parts, keys=keys
        )
        needed = {"rows": number + 1 - stream.rows.late, "people": 1, "parts": number}  # from which on
        if stream.capped and stream.participation.periods >= stream.periods.horizon:
            needed["people"] = number - stream.participation.apart + 2
        state.commit([*skipped, last], forget=self._noise.forgets, needed=needed)
        return output

    def _skipped(self, number: int) -> CommittedPeriod:
        """Return a period that failed, whose noise is drawn and kept."""
        if self._keys is not None:
            return CommittedPeriod(number=number, noise=_NONE, output=None, keys=self._keys.failed())
        self._drawn()
        return CommittedPeriod(number=number, noise=self._noise.kept, output=None)

    def _participants(self, number: int) -> Participants | None:
        """Return who may be counted in a period, given who was counted before it; None: everybody."""
        import pyarrow

        stream, cap = self._stream, self._stream.participation
        if not stream.capped:
            return None
        often = cap.periods < number  # so that somebody may have been counted so often
        before = self._state.people(1) if often else []
        near = self._state.people(number - cap.apart + 1)  # none, where periods may follow each other
        earlier, lately = (pyarrow.concat_tables(one) if one else None for one in (before, near))
        return Participants(most=cap.periods, earlier=earlier, lately=lately)

    def _rows(
        self, number: int, version: str, participants: Participants | None
    ) -> tuple[BoundedQuery, PeriodRows | None]:
        """Return what is computed of a period, and which of its rows count; None: all of them.

        Where the period before was computed from the same data, no row is late.
        """
        stream, rules = self._stream, self._stream.rows
        if not rules.remembers and not rules.once:
            return stream.query(number), None
        known = self._state.parts(number - 1)  # none, if that period failed
        new = tuple(place for place, part in enumerate(self._parts) if part not in known)
        since, seen = number, list[Any]()
        if new or not self._parts:
            since, seen = self._seen(number)
        if self._settled == (number - 1, version):
            since = number
        query = stream.query(number, since)
        if stream.late_by_person and since == number:
            return query, None
        return query, PeriodRows(
            relation=stream.by.rows(query.source),
            on_time=stream.by.from_on(stream.periods.begin(number)),
            moment=stream.by.column,
            every=stream.periods.every,
            start=stream.periods.start,
            row_id=stream.by.row_id,
            once=rules.once,
            late=since < number,
            seen=seen,
            remember=not stream.late_by_person and rules.remembers,
            by_person=stream.late_by_person,
            counted=None if participants is None else participants.earlier,
            parts=new if len(new) < len(self._parts) else None,
        )

    def _seen(self, number: int) -> tuple[int, list[Any]]:
        """Return since which period rows may be late, and what periods since then have seen.

        Rows that were seen through another hash cannot be compared: those periods have no late rows any more.
        """
        oldest = max(1, number - self._stream.rows.late)
        if self._stream.late_by_person:
            return oldest, []
        seen: list[Any] = []
        since = number
        while since > oldest:
            table = self._state.rows(since - 1)
            if table is not None and table.schema.metadata[_HASHED_BY] != self._row_hash:
                break
            since -= 1
            seen += [] if table is None else [table]
        return since, seen

    def _drawn(self) -> npt.NDArray[Any]:
        """Return the noise of the next period: of each measure in turn, of all of its groups."""
        stream = self._stream
        number = self._noise.periods + 1
        return self._noise.next(
            np.concatenate([stream.fresh(name, number, stream.groups) for name in stream.laws])
        )

    def _output(self, number: int, published: Mapping[str, Any]) -> bytes:
        stream = self._stream
        said: Mapping[str, Any] = {
            "format": _FORMAT,
            "stream": stream.name,
            "period": number,
            "begin": stream.periods.begin(number).isoformat(),
            "end": stream.periods.end(number).isoformat(),
            "steps": {name: stream.steps(name, number) for name in stream.laws},
            **published,
        }
        digest = hashlib.sha256(dump(dict(said)).encode()).hexdigest()
        return dump({**said, "receipt": self._reservation.receipt(digest, step=number)}).encode()
