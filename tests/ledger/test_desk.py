"""Processes that write for each other: once each, on the disk before anyone is told, whoever dies when."""

from __future__ import annotations

import os
import re
import signal
import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path

import pytest

from sfumato.core import PrivacyBudget
from sfumato.core.events import Pure, Repeated
from sfumato.errors import BudgetExceeded, LedgerError
from sfumato.ledger import Ledger, Reservation, desk, log
from sfumato.ledger.desk import Desk, Paper
from sfumato.ledger.proposal import Proposal
from sfumato.ledger.records import Committed
from tests.ledger.accounts import HUNDREDTH, opened, reserve
from tests.ledger.test_processes import run_together
from tests.processes import start

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no locks of processes")


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever attends is waited for: what is tested here is order, not speed."""
    monkeypatch.setattr(desk, "_PAUSE", 60.0)
    monkeypatch.setattr(desk, "_PATIENCE", 30.0)
    monkeypatch.setattr(desk, "_DOUBT", 1000.0)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A ledger with a desk beside it."""
    path = tmp_path / "a"
    opened(path).close()
    assert Desk.at(f"{path}-desk", path, create=True) is not None
    return path


def attend(ledger: Ledger) -> Desk:
    """Let a ledger be the one that writes for others, as if it had just written twice."""
    clerk = ledger._journal._clerk
    clerk._find_desk(ledger._journal)
    assert clerk._desk is not None and clerk._place is not None
    clerk._desk.tell_of_writing(clerk._place, time.monotonic())
    clerk._desk.tell_of_writing(clerk._place, time.monotonic())
    return clerk._desk


def retire(table: Desk) -> None:
    """Let nobody attend any more."""
    table._put(desk._ATTENDANT_AT, desk._ATTENDANT.pack(10**6, 0.0))


def until(condition: Callable[[], object]) -> None:
    """Wait for others."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.001)


def asked(table: Desk) -> bool:
    """Return whether something lies on the desk."""
    return any(table._get(0, desk._PLACES * desk._TICKET.size))


class Call:
    """A call in a thread, and what came of it."""

    def __init__(self, work: Callable[[], object]) -> None:
        self.outcome: object = None
        self._thread = threading.Thread(target=self._run, args=(work,))
        self._thread.start()

    def _run(self, work: Callable[[], object]) -> None:
        try:
            self.outcome = work()
        except BaseException as error:
            self.outcome = error

    def result(self) -> object:
        self._thread.join(60)
        assert not self._thread.is_alive()
        return self.outcome


@pytest.fixture
def syncs(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """Who waited for the disk in this process, by thread."""
    calls: list[int] = []
    sync = log._sync

    def counted(file: int) -> None:
        sync(file)
        calls.append(threading.get_ident())

    monkeypatch.setattr(log, "_sync", counted)
    yield calls


def requests(ledger: Ledger) -> list[str]:
    return [entry.request_hash for entry in ledger.history()]


# -- one writes for the other -------------------------------------------------------------------


def test_who_attends_writes_for_who_asks_and_waits_for_the_disk_once(path: Path, syncs: list[int]) -> None:
    with opened(path) as first, opened(path) as second:
        assert first.public_key == second.public_key
        table = attend(first)
        charge = Call(lambda: reserve(second, request_hash="second"))
        until(lambda: asked(table))
        syncs.clear()
        own = reserve(first, request_hash="first")
        reservation = charge.result()
        assert isinstance(reservation, Reservation)
        assert syncs == [threading.get_ident()], "one sync, by who attends"
        assert reservation.sequence == own.sequence + 1 and reservation.head == first.head()
        assert reservation.record.request_hash == "second"
        answer = Call(lambda: reservation.commit(b"second's"))
        until(lambda: asked(table))
        own.commit(b"first's")
        assert answer.result() == first.head()
        assert (first.release(own.sequence), first.release(reservation.sequence)) == (b"first's", b"second's")
        assert first.spent("person") == Fraction(2, 100)
        assert first.verify() == second.head()


def test_what_another_charged_is_what_one_would_have_charged_oneself(tmp_path: Path) -> None:
    """Parts, analysts and renewals: the records differ in time and place alone."""
    records = []
    for shared in (False, True):
        path = tmp_path / str(shared)
        with Ledger.open(path) as ledger:
            ledger.register("person", PrivacyBudget(epsilon=1), partition="year")
            ledger.grant("person", "ann", PrivacyBudget(epsilon=Fraction(1, 2)))
        Desk.at(f"{path}-desk", path, create=shared)
        with Ledger.open(path) as first, Ledger.open(path) as second:
            reserve(first, parts=["1970"])
            if shared:
                table = attend(first)
            call = Call(lambda: reserve(second, analyst="ann", parts=["1970", "1980"], request_hash="r"))
            if shared:
                until(lambda: asked(table))  # noqa: B023
            reserve(first) if shared else call.result()
            made = call.result()
            assert isinstance(made, Reservation)
            records.append(made.record)
            second.verify()
    alone, shared_ = records
    assert alone.analyst_spent == shared_.analyst_spent == alone.units
    assert (alone.units, alone.event, alone.parts, alone.binding[1:3]) == (
        shared_.units, shared_.event, shared_.parts, shared_.binding[1:3],
    )  # fmt: skip
    assert alone.totals.parts == shared_.totals.parts


def test_a_record_is_the_same_whoever_wrote_it(path: Path) -> None:
    event = Repeated(event=HUNDREDTH, times=3)
    with opened(path) as first, opened(path) as second:
        table = attend(first)
        call = Call(lambda: reserve(second, event))
        until(lambda: asked(table))
        own = reserve(first, event)
        made = call.result()
        assert isinstance(made, Reservation)
        assert made.record.event == own.record.event == event.to_dict()
        assert made.record.nonce != own.record.nonce


def test_what_was_not_asked_for_is_not_taken_for_an_answer(path: Path, monkeypatch) -> None:
    """An attendant that writes something else than it was asked is found out."""
    with opened(path) as first, opened(path) as second:
        table = attend(first)
        call = Call(lambda: reserve(second))
        until(lambda: asked(table))
        serve = first._journal.serve
        assert serve is not None
        cheaper = re.compile(rb'"units":"[0-9]*"')
        first._journal.serve = lambda words: serve(cheaper.sub(b'"units":"1"', words))
        reserve(first)
        refusal = call.result()
        assert isinstance(refusal, LedgerError) and refusal.code == "SF602"


def test_a_transaction_that_fails_as_it_begins_is_over(path: Path, monkeypatch) -> None:
    with opened(path) as first, opened(path, wait=0.2) as second:
        assert first.public_key == second.public_key

        def failing(_: object) -> None:
            raise sqlite3.OperationalError("of an unknown kind")

        monkeypatch.setattr(first._journal, "_look", failing)
        with pytest.raises(LedgerError):
            reserve(first)
        assert reserve(second).sequence  # nobody holds the right to write any more


def test_what_does_not_fit_is_refused_by_who_asked_for_it(path: Path) -> None:
    with opened(path) as first, opened(path) as second:
        table = attend(first)
        dear = Call(lambda: reserve(second, Pure(loss=Fraction(99, 100))))
        until(lambda: asked(table))
        reserve(first, Pure(loss=Fraction(2, 100)))
        assert isinstance(dear.result(), BudgetExceeded)
        stranger = Call(lambda: reserve(second, analyst="eve"))
        until(lambda: asked(table))
        reserve(first)
        refusal = stranger.result()
        assert isinstance(refusal, LedgerError) and refusal.code == "SF609"
        assert len(requests(first)) == 2 and first.spent("person") == Fraction(3, 100)
        first.verify()


def test_nobody_is_granted_what_the_other_process_only_proposes(tmp_path: Path) -> None:
    """The attendant has proposed a grant that is not on record; it is not for others to use."""
    path = tmp_path / "a"
    opened(path).close()
    Desk.at(f"{path}-desk", path, create=True)
    with opened(path) as first, opened(path) as second:
        table = attend(first)
        eve = Proposal(unit="person", grants=(("eve", PrivacyBudget(epsilon=1)),))
        first._accounts._proposed[eve] = None
        stranger = Call(lambda: reserve(second, analyst="eve"))
        until(lambda: asked(table))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(type(first._accounts), "settle", lambda self, unit: (self.on_record(unit), ()))
            reserve(first)
        refusal = stranger.result()
        assert isinstance(refusal, LedgerError) and refusal.code == "SF609"


@pytest.mark.parametrize("whose", ["who asks", "who writes"])
def test_a_ledger_with_a_clock_of_its_own_writes_for_itself_alone(path: Path, whose: str) -> None:
    clocks: dict[str, object] = {"clock": lambda: 10**12}
    with (
        Ledger.open(path, **(clocks if whose == "who writes" else {})) as first,  # type: ignore[arg-type]
        Ledger.open(path, **(clocks if whose == "who asks" else {})) as second,  # type: ignore[arg-type]
    ):
        if whose == "who writes":
            first._journal._clerk._find_desk(first._journal)
            assert first._journal._clerk._desk is None
        else:
            attend(first)
            assert reserve(second).record.at == 10**12


def test_keys_and_proposals_and_long_answers_are_written_by_oneself(path: Path, monkeypatch) -> None:
    """Somebody attends, and nothing is laid on the desk."""
    laid = []
    ask = Desk.ask
    monkeypatch.setattr(Desk, "ask", lambda *arguments: laid.append(ask(*arguments)) or laid[-1])
    with opened(path) as first, opened(path) as second:
        attend(first)
        with reserve(second, idempotency_key="k") as reservation:
            assert laid == []
            attend(first)
            reservation.commit(bytes(20_000))
            assert laid == [None]
        attend(first)
        second.propose(Proposal(unit="person", grants=(("ann", PrivacyBudget(epsilon=1)),)))
        assert reserve(second, analyst="ann").record.analyst == "ann"
        assert laid == [None] and second.verify() == second.head()


# -- what may lie on a desk -----------------------------------------------------------------------


def test_a_record_too_long_for_a_note_is_written_by_who_asked(path: Path) -> None:
    with opened(path) as first, opened(path) as second:
        table = attend(first)
        long = Call(lambda: reserve(second, request_hash="x" * 1024, data_version="y", analyst=None))
        until(lambda: asked(table))
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(desk, "_NOTE_AT", desk._PLACE - desk._FRAME.size - 200)
            reserve(first)
            made = long.result()
        assert isinstance(made, Reservation) and requests(first).count("x" * 1024) == 1


@pytest.mark.parametrize("change", ["half written", "another file", "nonsense", "another answer", "nobody's"])
def test_only_whole_asks_of_the_living_about_this_file_are_taken_up(path: Path, change: str) -> None:
    with opened(path) as first:
        table = attend(first)
        answer = Committed.of(reserve(first).sequence, b"an answer", 1).body(0).encode()
        words = {"nonsense": b"{}", "another answer": answer + b"\nanother"}.get(
            change, answer + b"\nan answer"
        )
        file = (1, 2) if change == "another file" else first._journal.identity
        place = table.take_place()
        assert place is not None
        ticket = table.ask(place, words, file)
        assert ticket is not None
        if change == "half written":
            table._put(desk._start(place) + desk._ASK_AT + desk._FRAME.size, b"!")
        if change == "nobody's":
            table._own.discard(place)
            table._unlock_place(place)
        before = first.head().sequence
        reserve(first)
        assert first.head().sequence == before + 1
        assert table.noted(place, ticket) == (b"" if change in ("nonsense", "another answer") else None)
        if change != "nobody's":
            table.leave_place(place)
        first.verify()


@pytest.mark.parametrize("found", ["nonsense", "nothing", "a folder", "no rights", "cut short"])
def test_whatever_is_found_in_place_of_a_desk_is_done_without(path: Path, found: str, monkeypatch) -> None:
    """Two ledgers write in turns, each waiting for the other, and nobody is harmed."""
    for name, seconds in (("_PAUSE", 0.005), ("_PATIENCE", 0.1), ("_DOUBT", 1.0)):  # as they are
        monkeypatch.setattr(desk, name, seconds)
    beside = Path(f"{path}-desk")
    match found:
        case "nonsense":
            beside.write_bytes(bytes(range(1, 256)) * 5000)
        case "nothing":
            beside.unlink()
        case "a folder":
            beside.unlink()
            beside.mkdir()
        case "no rights":
            monkeypatch.setattr(desk, "opened_beside", _refused)
    Desk.forget_all()
    with opened(path) as first, opened(path, wait=20) as second:
        for number in range(3):
            with first._journal.writing():
                call = Call(lambda: reserve(second))
                time.sleep(0.02)
            assert isinstance(call.result(), Reservation)
            if found == "cut short":
                os.truncate(beside, 100 * number)
            assert reserve(first).sequence
        assert len(requests(first)) == 6
        first.verify()


def _refused(*_: object, **__: object) -> int:
    raise PermissionError(13, "Permission denied")


@pytest.mark.parametrize("what", ["asking", "noting"])
def test_on_a_full_disk_one_writes_by_oneself(path: Path, what: str, monkeypatch) -> None:
    """The desk takes nothing more, neither asks nor notes. Charges are written all the same."""
    with opened(path) as first, opened(path) as second:
        assert first.public_key == second.public_key
        table, put = attend(first), os.pwrite

        def full(file: int, data: bytes, at: int) -> int:
            size = {"asking": 200, "noting": 0}[what]
            return put(file, data[:1], at) if len(data) > size else put(file, data, at)

        monkeypatch.setattr(desk, "_PATIENCE", 0.05)
        if what == "asking":
            monkeypatch.setattr(os, "pwrite", full)
        call = Call(lambda: reserve(second, request_hash="second"))
        if what == "noting":
            until(lambda: asked(table))
            monkeypatch.setattr(os, "pwrite", full)
            reserve(first)
        assert isinstance(call.result(), Reservation)
        monkeypatch.undo()
        assert requests(first).count("second") == 1
        first.verify()


@pytest.mark.parametrize("served", [True, False])
def test_an_ask_that_cannot_be_taken_off_the_desk_is_charged_once(
    path: Path, served: bool, monkeypatch
) -> None:
    """The disk refuses to take it back, for a while: from who writes, and from who asked."""
    look, wait = threading.Event(), Desk.wait
    monkeypatch.setattr(Desk, "wait", lambda *arguments: look.wait(20) and wait(*arguments))
    with opened(path) as first, opened(path) as second:
        assert first.public_key == second.public_key
        table, put = attend(first), os.pwrite
        call = Call(lambda: reserve(second, request_hash="second"))
        until(lambda: asked(table))

        def stuck(file: int, data: bytes, at: int) -> int:
            if at < desk._ATTENDANT_AT and not any(data):
                raise OSError(28, "No space left on device")
            return put(file, data, at)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(os, "pwrite", stuck)
            for _ in range(3 * served):
                reserve(first)  # time and again it could be taken up
            retire(table)
            look.set()
            assert isinstance(call.result(), Reservation)
        attend(first)
        for _ in range(3):
            reserve(first)  # now that it could be taken off
        assert isinstance(reserve(second, request_hash="again"), Reservation)  # without a place, by itself
        assert requests(first).count("second") == requests(first).count("again") == 1


@pytest.mark.parametrize("group", [True, False])
def test_a_desk_is_for_those_who_may_write_the_ledger(tmp_path: Path, group: bool, monkeypatch) -> None:
    path = tmp_path / "a"
    opened(path).close()
    os.chmod(path, 0o660)

    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    if not group:
        monkeypatch.setattr(os, "fchown", refuse)
    assert Desk.at(f"{path}-desk", path, create=True) is not None
    made = os.stat(f"{path}-desk")
    assert (made.st_mode & 0o777, made.st_gid) == (0o660 if group else 0o600, os.stat(path).st_gid)


def test_a_ledger_that_the_collector_closes_does_not_stop_another(path: Path, monkeypatch) -> None:
    """While the desk is looked at, with the right to write, a forgotten ledger is collected."""
    with opened(path) as first:
        table = attend(first)
        forgotten = [opened(path)]
        attend(forgotten[0])
        attend(first)
        place = table.take_place()
        assert place is not None and table.ask(place, b"{}", first._journal.identity)
        lock_place, seen = Desk._lock_place, []

        def collected(self: Desk, place: int) -> bool:
            seen.append(len(forgotten))
            forgotten.clear()
            return lock_place(self, place)

        monkeypatch.setattr(Desk, "_lock_place", collected)
        table._own.discard(place)  # so that its lock has to be looked at
        call = Call(lambda: reserve(first))
        assert isinstance(call.result(), Reservation) and seen[0] == 1


def test_an_ask_that_was_interrupted_is_taken_back(path: Path, monkeypatch) -> None:
    with opened(path) as first, opened(path) as second:
        assert first.public_key == second.public_key
        table = attend(first)
        monkeypatch.setattr(Desk, "wait", lambda *_: _interrupt())
        with pytest.raises(KeyboardInterrupt):
            reserve(second, request_hash="interrupted")
        monkeypatch.undo()
        assert not asked(table)
        reserve(first, request_hash="later")
        assert requests(first) == ["later"]


def _interrupt() -> bool:
    raise KeyboardInterrupt


def test_two_who_ask_the_same_in_the_same_moment_are_charged_twice(path: Path, monkeypatch) -> None:
    """Who writes for another is interrupted before its commit; a third writes the very same in its place."""
    with opened(path) as first, opened(path) as second, opened(path) as third:
        for ledger in (first, second, third):
            assert ledger.public_key
            monkeypatch.setattr(ledger._journal, "now", lambda: 10**12)
        third._journal.serve = None  # it writes by itself
        table = attend(first)
        call = Call(lambda: reserve(second))
        until(lambda: asked(table))
        with pytest.MonkeyPatch.context() as patch:
            note = Paper.note
            patch.setattr(Paper, "note", lambda self, link: note(self, link) or _interrupt())
            with pytest.raises(KeyboardInterrupt):
                first._journal.write(lambda: None)
        twin = reserve(third)
        retire(table)
        made = call.result()
        assert isinstance(made, Reservation) and made.sequence != twin.sequence
        assert first.spent("person") == Fraction(2, 100)
        made.commit(b"second's")
        twin.commit(b"third's")
        first.verify()


def test_when_all_places_are_taken_one_writes_by_oneself(path: Path) -> None:
    with opened(path) as first:
        table = attend(first)
        taken = [table.take_place() for _ in range(desk._PLACES)]
        assert taken[-1] is None and len(set(taken)) == desk._PLACES
        with opened(path) as second:
            assert reserve(second).sequence
        for place in taken:
            if place is not None:
                table.leave_place(place)


# -- who dies, who stops, who is never told -------------------------------------------------------

ATTENDANT = """
import os, signal, sys, time
from sfumato.ledger import desk, log
from sfumato.ledger.desk import Desk, Paper
from tests.ledger.accounts import opened, reserve
from tests.ledger.test_desk import asked, attend, until

desk._PAUSE, desk._DOUBT = 60.0, 1000.0
path, step, how = sys.argv[1:4]
ledger = opened(path)
assert ledger.public_key
table = attend(ledger)
print("ready", flush=True)

def end():
    os.kill(os.getpid(), signal.SIGKILL if how == "die" else signal.SIGSTOP)

def before(owner, name):
    known = getattr(owner, name)
    def changed(*arguments):
        end()
        return known(*arguments)
    setattr(owner, name, changed)

def after(owner, name):
    known = getattr(owner, name)
    def changed(*arguments):
        result = known(*arguments)
        end()
        return result
    setattr(owner, name, changed)

until(lambda: asked(table))
if step == "taken up": before(Paper, "note")
elif step == "noted": after(Paper, "note")
elif step == "committed": before(log, "_sync")
elif step == "synced": before(Desk, "settle")
elif step == "settled": after(Desk, "settle")
elif step == "never": signal.pause()
elif step == "no sync":
    def failing(file): raise OSError(5, "Input/output error")
    log._sync = failing
try:
    with reserve(ledger, request_hash="attendant"):
        print("charged", flush=True)
except Exception as error:
    print(error.code, flush=True)
"""

STEPS = {"taken up": 0, "noted": 0, "committed": 1, "synced": 1, "settled": 1}
"""When an attendant ends, and how many charges of its own are on record then."""


def attendant(path: Path, step: str, how: str) -> subprocess.Popen[str]:
    worker = start(ATTENDANT, path, step, how)
    assert worker.stdout is not None and worker.stdout.readline() == "ready\n"
    return worker


@pytest.mark.parametrize("step", STEPS)
def test_an_attendant_that_dies_at_any_step_leaves_one_charge(
    path: Path, step: str, syncs: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who asked is charged once, and waits for the disk itself unless it was told that it is done."""
    with opened(path) as ledger:
        assert ledger.public_key
        with attendant(path, step, "die") as worker:
            table = ledger._journal._clerk
            call = Call(lambda: reserve(ledger, request_hash="asked"))
            assert worker.wait(60) == -signal.SIGKILL
            assert table._desk is not None
            retire(table._desk)
            syncs.clear()
            reservation = call.result()
        assert isinstance(reservation, Reservation) and reservation.record.request_hash == "asked"
        assert sorted(requests(ledger)) == ["asked"] + ["attendant"] * STEPS[step]
        assert ledger.spent("person") == Fraction(1 + STEPS[step], 100)
        reservation.commit(b"answer")
        ledger.verify()


@pytest.mark.parametrize("step", STEPS)
def test_an_attendant_that_stops_at_any_step_is_not_waited_for_too_long(path: Path, step: str) -> None:
    """While it holds the right to write, nobody knows what becomes of the charge; it stays one."""
    with opened(path, wait=0.5) as ledger:
        assert ledger.public_key
        with attendant(path, step, "stop") as worker:
            call = Call(lambda: reserve(ledger, request_hash="asked"))
            until(lambda: _stopped(worker.pid))
            retire(ledger._journal._clerk._desk)  # type: ignore[arg-type]
            outcome = call.result()
            worker.send_signal(signal.SIGCONT)
            until(lambda: _stopped(worker.pid) or worker.poll() is not None)
            worker.send_signal(signal.SIGCONT)
            assert worker.wait(60) == 0
        retire(ledger._journal._clerk._desk)  # type: ignore[arg-type]
        if STEPS[step]:
            assert isinstance(outcome, Reservation)
            outcome.commit(b"answer")
        else:
            assert isinstance(outcome, LedgerError) and outcome.code == "SF601", outcome
            assert "stays charged" in outcome.hints[0]
        assert sorted(requests(ledger)) == ["asked", "attendant"]
        ledger.verify()


def _stopped(process: int) -> bool:
    return Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()[0] == "T"


def test_an_attendant_that_saw_the_disk_fail_tells_nobody_that_it_is_done(
    path: Path, syncs: list[int]
) -> None:
    with opened(path) as ledger:
        assert ledger.public_key
        with attendant(path, "no sync", "die") as worker:
            syncs.clear()
            call = Call(lambda: reserve(ledger, request_hash="asked"))
            assert worker.stdout is not None and worker.stdout.readline() == "SF601\n"
            retire(ledger._journal._clerk._desk)  # type: ignore[arg-type]
            assert isinstance(call.result(), Reservation)
        assert syncs, "who asked has waited for the disk itself"
        assert sorted(requests(ledger)) == ["asked", "attendant"]


def test_an_answer_that_was_perhaps_written_is_never_written_again(path: Path) -> None:
    """After a stopped attendant the reservation is over, and what it had written stays."""
    with opened(path, wait=0.5) as ledger:
        reservation = reserve(ledger)
        with attendant(path, "noted", "stop") as worker:
            call = Call(lambda: reservation.commit(b"answer"))
            until(lambda: _stopped(worker.pid))
            retire(ledger._journal._clerk._desk)  # type: ignore[arg-type]
            refusal = call.result()
            assert isinstance(refusal, LedgerError) and refusal.code == "SF601"
            with pytest.raises(LedgerError) as again:
                reservation.commit(b"other")
            assert again.value.code == "SF608"
            worker.send_signal(signal.SIGCONT)
            assert worker.wait(60) == 0
        assert ledger.release(reservation.sequence) == b"answer"
        ledger.verify()


def test_who_cannot_look_what_became_of_an_ask_does_not_say_that_nothing_did(path: Path) -> None:
    """The attendant has gone, and another thread of the asker's own process keeps the connection busy."""
    with opened(path) as first, opened(path, wait=0.3) as second:
        assert first.public_key == second.public_key
        table = attend(first)
        call = Call(lambda: reserve(second))
        until(lambda: asked(table))
        with second._journal.reading():
            retire(table)
            refusal = call.result()
        assert isinstance(refusal, LedgerError) and refusal.code == "SF601", refusal


def test_what_one_takes_back_to_write_oneself_is_written_by_nobody_else(path: Path, monkeypatch) -> None:
    """The attendant comes back in the moment between the asker's look and its own charge."""
    with opened(path) as first, opened(path) as second:
        assert first.public_key == second.public_key  # made now, so that the next commit is that of a look
        table = attend(first)
        monkeypatch.setattr(desk, "_PATIENCE", 0.0)
        commit, looks = second._journal.commit, []

        def interrupted() -> None:
            commit()
            if not looks:
                looks.append(reserve(first, request_hash="first"))

        monkeypatch.setattr(second._journal, "commit", interrupted)
        reserve(second, request_hash="second")
        assert looks and looks[0].sequence < first.head().sequence and not asked(table)
        assert sorted(requests(first)) == ["first", "second"]


ASKER = """
import sys
from sfumato.ledger import desk
from tests.ledger.accounts import opened, reserve
desk._PAUSE, desk._PATIENCE, desk._DOUBT = 60.0, 30.0, 1000.0
ledger = opened(sys.argv[1])
assert ledger.public_key
print("ready", flush=True)
reserve(ledger, request_hash="dead")
"""


def test_nobody_writes_for_the_dead(path: Path) -> None:
    with opened(path) as first:
        table = attend(first)
        with start(ASKER, path) as worker:
            until(lambda: asked(table))
            worker.kill()
        reserve(first, request_hash="alive")
        assert requests(first) == ["alive"]


RACE = """
import sys
from sfumato.ledger.desk import Desk
from tests.ledger.accounts import opened, reserve
elsewhere = 0
known = Desk.noted
def noted(self, place, ticket):
    global elsewhere
    note = known(self, place, ticket)
    elsewhere += bool(note)
    return note
Desk.noted = noted
ledger = opened(sys.argv[1], 1000)
print("ready", flush=True)
sys.stdin.readline()
for number in range(150):
    with reserve(ledger, request_hash=f"{sys.argv[2]} {number}") as reservation:
        assert reservation.record.request_hash == f"{sys.argv[2]} {number}"
        reservation.commit(f"{sys.argv[2]} {number}".encode())
print(elsewhere)
"""


def test_six_processes_spend_without_pause_and_each_gets_its_own(tmp_path: Path) -> None:
    """900 spends, with the real times of patience; many are written by others, and each is there once."""
    path = tmp_path / "a"
    opened(path, 1000).close()
    elsewhere = sum(map(int, run_together(RACE, 6, path)))
    with opened(path, 1000) as ledger:
        entries = list(ledger.entries())
        expected = {f"{process} {number}" for process in range(6) for number in range(150)}
        assert len(entries) == 900 and {entry.request_hash for entry in entries} == expected
        for entry in entries:
            assert ledger.release(entry.sequence).decode() == entry.request_hash
        assert ledger.spent("person") == 9
        ledger.verify()
    assert elsewhere > 0, "nobody wrote for anybody"
