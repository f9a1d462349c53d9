"""Several looks under one reservation: taken in order, stored before they are published, and resumed."""

from __future__ import annotations

import io
import json
import os
import threading
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction as F
from pathlib import Path
from typing import Any

import pytest

from sfumato.core import PrivacyBudget
from sfumato.errors import InvalidArgument, LedgerError
from sfumato.ledger import Ledger, Reservation, verify_receipt
from sfumato.ledger.journal import FILED
from sfumato.ledger.records import Committed, Link, Record, Stepped
from sfumato.ledger.verification import _Walk
from tests.ledger.accounts import opened, reserve, tamper
from tests.ledger.test_outside import documented_checker
from tests.processes import said

ASKED = {"request_hash": "step", "data_version": "1"}


def begin(ledger: Ledger, steps: int = 3, **changes: Any) -> Reservation:
    return reserve(ledger, **{"idempotency_key": "k", "steps": steps, **changes})


def refused(action: Callable[[], object]) -> str:
    with pytest.raises(LedgerError) as refusal:
        action()
    return refusal.value.code


def never() -> bytes:
    raise AssertionError("a step that was stored is not computed again")


def test_one_charge_pays_for_all_steps_and_each_is_stored(folder: Path) -> None:
    with opened(folder / "a") as ledger:
        with begin(ledger) as reservation:
            for number in (1, 2, 3):
                output = b"output %d" % number
                assert reservation.step(number, lambda output=output: output, **ASKED) == output
                assert ledger.release(reservation.sequence, step=number) == output
            assert ledger.history()[0].committed is False
            reservation.commit(b"the end")
        assert ledger.spent("person") == F(1, 100)
        entry = ledger.last_entry()
        assert entry is not None and (entry.steps, entry.taken, entry.committed) == (3, 3, True)
        assert ledger.release(reservation.sequence) == b"the end"
        again = begin(ledger)  # free: it is over, and everything is there
        assert again.replayed == b"the end" and again.step(2, never, **ASKED) == b"output 2"
        assert ledger.spent("person") == F(1, 100) and ledger.verify() == ledger.head()


def test_whoever_leaves_goes_on_with_the_next_step_and_never_again_with_a_stored_one() -> None:
    ledger = opened(None)
    with begin(ledger) as reservation:
        reservation.step(1, lambda: b"one", **ASKED)
    with begin(ledger) as resumed:
        assert resumed.sequence == reservation.sequence and resumed.taken == 1 and resumed.replayed is None
        assert resumed.step(1, never, **ASKED) == b"one"
        assert resumed.step(2, lambda: b"two", **ASKED) == b"two"
    assert refused(lambda: reservation.step(2, never, **{**ASKED, "request_hash": "other"})) == "SF606"
    assert refused(lambda: reservation.step(3, lambda: b"late", **ASKED)) == "SF608"  # it was left
    assert ledger.spent("person") == F(1, 100)


@pytest.mark.parametrize("number", [0, -1, 2, 4, True, "1", None, 2**70])
def test_only_the_next_of_the_declared_steps_is_taken(number: Any) -> None:
    ledger = opened(None)
    with begin(ledger) as reservation:
        assert refused(lambda: reservation.step(number, never, **ASKED)) == "SF608"
        for one in (1, 2, 3):
            reservation.step(one, lambda: b"x", **ASKED)
        assert refused(lambda: reservation.step(4, never, **ASKED)) == "SF608"
        reservation.commit(b"")
    assert refused(lambda: reservation.commit(b"")) == "SF608"
    assert len(ledger.history()) == 1 and ledger.verify() == ledger.head()


def test_after_the_end_nothing_is_taken() -> None:
    ledger = opened(None)
    with begin(ledger) as reservation:
        reservation.step(1, lambda: b"x", **ASKED)
        other = Reservation(ledger._journal, reservation.record, reservation.head, None)
        reservation.commit(b"early")
        assert refused(lambda: other.step(2, never, **ASKED)) == "SF608"
    assert refused(lambda: begin(ledger).step(2, never, **ASKED)) == "SF608"


def test_one_look_takes_no_steps() -> None:
    ledger = opened(None)
    with reserve(ledger) as reservation:
        assert refused(lambda: reservation.step(1, never, **ASKED)) == "SF608"


# -- what is bound ------------------------------------------------------------------------------


@pytest.mark.parametrize("changed", ["request_hash", "data_version", "policy_hash", "steps"])
def test_a_key_resumes_what_it_was_begun_for(changed: str) -> None:
    ledger = opened(None)
    begin(ledger).__exit__(None, None, None)
    assert refused(lambda: begin(ledger, **{changed: 2 if changed == "steps" else "other"})) == "SF606"


def test_nobody_else_resumes_it() -> None:
    """Another analyst with the same key begins, and pays for, something else."""
    ledger = opened(None)
    for name in ("anna", "bob"):
        ledger.grant("person", name, PrivacyBudget(epsilon=1))
    with begin(ledger, analyst="anna") as annas:
        annas.step(1, lambda: b"anna's", **ASKED)
    with begin(ledger, analyst="bob") as bobs:
        assert bobs.sequence != annas.sequence and bobs.taken == 0
        assert bobs.step(1, lambda: b"bob's", **ASKED) == b"bob's"
    assert ledger.spent("person") == F(2, 100)


def test_data_may_change_between_steps_only_where_that_was_said() -> None:
    ledger = opened(None)
    later = {**ASKED, "data_version": "2"}
    with begin(ledger) as fixed:
        assert refused(lambda: fixed.step(1, never, **later)) == "SF606"
        fixed.step(1, lambda: b"x", **ASKED)
    with begin(ledger, idempotency_key="stream", data_version=None) as stream:
        assert stream.step(1, lambda: b"monday", **ASKED) == b"monday"
        assert stream.step(2, lambda: b"tuesday", **later) == b"tuesday"
    with begin(ledger, idempotency_key="stream", data_version=None) as stream:
        assert stream.step(1, never, **later) == b"monday"  # published: whatever the data is by now
    assert ledger.verify() == ledger.head()


def test_what_could_not_be_resumed_or_bound_is_refused_before_the_charge() -> None:
    ledger = Ledger.open(None)
    ledger.register("person", PrivacyBudget(epsilon=1), partition="region")
    for changes in (
        {"idempotency_key": None},
        {"steps": 0},
        {"steps": True},
        {"steps": "2"},
        {"steps": None, "data_version": None},
        {"data_version": None, "parts": ["north"]},
    ):
        with pytest.raises(InvalidArgument):
            begin(ledger, **changes)
    assert ledger.history() == ()


# -- failures -----------------------------------------------------------------------------------


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt])
def test_a_step_that_fails_is_burnt_and_the_next_one_goes_on(error: type[BaseException]) -> None:
    """A second try would publish a law under the condition that it succeeds."""

    def fails() -> bytes:
        raise error

    ledger = opened(None)
    with begin(ledger) as reservation:
        with pytest.raises(error):
            reservation.step(1, fails, **ASKED)
        assert refused(lambda: reservation.step(1, never, **ASKED)) == "SF607"
        with pytest.raises(InvalidArgument):
            reservation.step(2, lambda: "text", **ASKED)  # type: ignore[arg-type, return-value]
    with begin(ledger) as resumed:
        assert resumed.taken == 2 and refused(lambda: resumed.step(1, never, **ASKED)) == "SF607"
        assert resumed.step(3, lambda: b"three", **ASKED) == b"three"
        assert refused(lambda: ledger.release(resumed.sequence, step=1)) == "SF608"
        assert ledger.outputs(resumed.sequence, 2) == {}
        assert ledger.outputs(resumed.sequence, 10**30) == {3: b"three"}  # without the end, and burnt steps
    assert ledger.spent("person") == F(1, 100) and ledger.verify() == ledger.head()


def test_a_busy_ledger_stores_and_publishes_nothing(folder: Path) -> None:
    with opened(folder / "a") as other, opened(folder / "a", wait=0.05) as ledger, begin(ledger) as steps:

        def compute() -> bytes:
            stack.append(other._journal.writing())
            stack[-1].__enter__()
            return b"not stored"

        stack: list[Any] = []
        with pytest.raises(LedgerError, match="stays charged") as refusal:
            steps.step(1, compute, **ASKED)
        assert refusal.value.code == "SF604" and "nothing was charged" not in str(refusal.value)
        stack[-1].__exit__(None, None, None)
        assert steps.taken == 0 and steps.step(1, lambda: b"stored", **ASKED) == b"stored"


# -- two at once --------------------------------------------------------------------------------


def test_a_second_resumer_waits_for_the_first_and_is_refused(folder: Path) -> None:
    with opened(folder / "a") as first, opened(folder / "a", wait=0.05) as second:
        with begin(first) as reservation:
            reservation.step(1, lambda: b"one", **ASKED)
            assert refused(lambda: begin(second)) == "SF604"
        with begin(second) as resumed:
            assert resumed.step(1, never, **ASKED) == b"one"
            resumed.step(2, lambda: b"two", **ASKED)


def test_of_two_that_compute_one_step_both_publish_what_the_first_stored(folder: Path) -> None:
    """As if the file of locks were gone: the ledger itself keeps a step to one output."""
    with opened(folder / "a") as ledger:
        reservation = begin(ledger)
        twin = Reservation(ledger._journal, reservation.record, reservation.head, None)
        together, told = threading.Barrier(2), {}

        def compute(name: str) -> bytes:
            together.wait(20)
            return name.encode()

        def take(name: str, held: Reservation) -> None:
            told[name] = held.step(1, lambda: compute(name), **ASKED)

        threads = [threading.Thread(target=take, args=pair) for pair in (("a", reservation), ("b", twin))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(30)
        assert told["a"] == told["b"] == ledger.release(reservation.sequence, step=1)
        assert reservation.taken == 1 and ledger.verify() == ledger.head()


# -- kills --------------------------------------------------------------------------------------

WORKERS = """
import os, signal, sys
from pathlib import Path
from tests.ledger.accounts import opened
from tests.ledger.test_steps import ASKED, PLACES, begin

def work(where):
    "Take all steps; be killed at one place."
    def die(at):
        if at == where: os.kill(os.getpid(), signal.SIGKILL)
    ledger = opened(sys.argv[1])
    append = type(ledger._journal).append
    die("before begin")
    with begin(ledger) as reservation:
        die("begun")
        for number in (1, 2, 3):
            def compute():
                die(f"computing {number}")
                print("computed", number, flush=True)
                return os.urandom(8)
            def stored(journal, record, release=None):
                link = append(journal, record, release)
                die(f"storing {number}")  # appended, and not committed
                return link
            type(ledger._journal).append = stored
            output = reservation.step(number, compute, **ASKED)
            type(ledger._journal).append = append
            die(f"stored {number}")  # and not published
            print("published", number, output.hex(), flush=True)
            die(f"published {number}")
        if reservation.replayed is None: reservation.commit(b"the end")
    die("ended")

for place in (*PLACES, "nowhere"):
    worker = os.fork()
    if worker == 0:
        try:
            work(place)
            os._exit(0)
        finally:
            os._exit(1)
    code = os.waitstatus_to_exitcode(os.waitpid(worker, 0)[1])
    assert code == (0 if place == "nowhere" else -signal.SIGKILL), (place, code)
"""
PLACES = ["before begin", "begun"]
PLACES += [f"{what} {n}" for n in (1, 2, 3) for what in ("computing", "storing", "stored", "published")]
PLACES += ["ended"]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_killed_at_every_step_and_resumed_it_publishes_each_output_once(soaked_folder: Path) -> None:
    """Each process resumes what the last left, and is killed at the next place; then one goes to the end."""
    published: dict[str, set[str]] = {}
    computed: list[str] = []
    for what, *words in map(str.split, said(WORKERS, soaked_folder / "a")):
        if what == "published":
            published.setdefault(words[0], set()).add(words[1])
        else:
            computed += words
    with opened(soaked_folder / "a") as ledger:
        assert ledger.verify() == ledger.head() and ledger.spent("person") == F(1, 100)
        [entry] = ledger.history()
        assert entry.committed and entry.taken == 3
        for number in (1, 2, 3):
            assert published[str(number)] == {ledger.release(entry.sequence, step=number).hex()}
    assert sorted(computed) == ["1", "1", "2", "2", "3", "3"]  # twice: killed before it was stored


FORKED = """
import os, sys
from tests.ledger.accounts import opened
from tests.ledger.test_steps import ASKED, begin
with opened(sys.argv[1]) as ledger, begin(ledger) as reservation:
    child = os.fork()
    if child == 0:
        print(reservation.step(1, lambda: b"child", **ASKED).decode(), flush=True)
        os._exit(0)
    os.waitpid(child, 0)
    print(reservation.step(1, lambda: b"parent", **ASKED).decode(), reservation.taken)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_reservation_that_two_processes_have_takes_a_step_once(soaked_folder: Path) -> None:
    assert said(FORKED, soaked_folder / "a") == ["child", "child 1"]


# -- what others see ----------------------------------------------------------------------------


def taken(path: Path) -> Reservation:
    with opened(path) as ledger, begin(ledger) as reservation:
        reservation.step(1, lambda: b"one", **ASKED)
        reservation.step(2, lambda: b"two", **ASKED)
        return reservation


@pytest.mark.parametrize(
    "change",
    [
        "release = substr(release, 1, 2) WHERE step = 2",
        "release = NULL WHERE step = 2",
        "step = 3 WHERE step = 2",
        "reservation = 1 WHERE step = 2",
        'body = replace(body, \'"step":"2"\', \'"step":"3"\'), step = 3 WHERE step = 2',
    ],
)
def test_a_tampered_step_is_found_and_not_published(soaked_folder: Path, change: str) -> None:
    sequence = taken(soaked_folder / "a").sequence
    tamper(soaked_folder / "a", f"UPDATE records SET {change}")
    with opened(soaked_folder / "a") as ledger:
        assert refused(ledger.verify) == "SF602"
        if "step = 3" not in change and "reservation" not in change:
            assert refused(lambda: ledger.release(sequence, step=2)) == "SF602"
            assert refused(lambda: ledger.outputs(sequence, 3)) == "SF602"
            with begin(ledger) as resumed:
                assert refused(lambda: resumed.step(2, never, **ASKED)) == "SF602"


@pytest.mark.parametrize(
    "change",
    [
        lambda record: replace(record, step=record.step + 1),
        lambda record: replace(record, step=1),
        lambda record: replace(record, reservation=1),
        lambda record: replace(record, data_version="another"),
        lambda record: replace(record, output_sha256=None),
        lambda record: Committed.of(record.reservation, b"two", record.at),  # an end, and a step after it
    ],
)
def test_steps_out_of_order_are_found_in_a_chain_with_sound_hashes(change: Callable[[Any], Record]) -> None:
    """Somebody rewrites a step and mends every hash after it; without a change the same chain is sound."""
    ledger = opened(None)
    with begin(ledger) as reservation:
        for number in (1, 2, 3):
            reservation.step(number, lambda number=number: b"two" if number == 2 else b"x", **ASKED)

    def walk(change: Callable[[Any], Record]) -> None:
        checked, previous = _Walk(), "0" * 64
        for row in ledger._journal.rows():
            record = Link(sequence=row.sequence, previous=row.previous, body=row.body).read()
            if isinstance(record, Stepped) and record.step == 2:
                record = change(record)
            link = Link(sequence=row.sequence, previous=previous, body=record.body(row.sequence))
            filed = [getattr(record, name, None) for name in FILED]
            checked.step((row.sequence, previous, link.hash, link.body, record.kind, *filed, row.release))
            previous = link.hash

    walk(lambda record: record)
    with pytest.raises(LedgerError) as refusal:
        walk(change)
    assert refusal.value.code == "SF602"


def test_an_outsider_checks_steps_too(folder: Path) -> None:
    taken(folder / "a")
    with opened(folder / "a") as ledger:
        out = io.StringIO()
        ledger.export(out)
        namespace: dict[str, Any] = {"__name__": "checker"}
        exec(documented_checker(), namespace)
        lines = out.getvalue().splitlines()
        assert namespace["check_export"](lines)[0] == ledger.anchor()
        place = next(
            n for n, line in enumerate(lines) if json.loads(json.loads(line)["body"])["kind"] == "stepped"
        )
        altered = json.dumps({**json.loads(lines[place]), "release": "eA=="})
        with pytest.raises(AssertionError):
            namespace["check_export"]([*lines[:place], altered, *lines[place + 1 :]])


def test_a_step_has_a_receipt() -> None:
    ledger = opened(None)
    with begin(ledger) as reservation:
        receipt = reservation.receipt("answer", step=2)
    assert receipt["step"] == "2 of 3"
    assert verify_receipt(receipt, ledger.public_key) == reservation.head
    with pytest.raises(LedgerError):
        verify_receipt({**receipt, "step": "1 of 3"}, ledger.public_key)
