"""Tampering: every edit, deletion and swap of a record in a ledger of 1,000 is found."""

from __future__ import annotations

import itertools
import json
import sqlite3
from fractions import Fraction as F

import pytest

from sfumato.core import PrivacyBudget
from sfumato.errors import LedgerError
from sfumato.ledger import OWNER, Head, Ledger, Renewal
from sfumato.ledger.canonical import canonical
from sfumato.ledger.journal import Journal, Row
from sfumato.ledger.records import Link, Record
from sfumato.ledger.schema import STATEMENTS
from sfumato.ledger.verification import _Walk
from tests.ledger.accounts import HASHES, HUNDREDTH, answer, opened, raw, reserve

RECORDS = 1000
COLUMNS = Row._fields[1:]
SOME = range(1, RECORDS + 1, 37)
TRIGGERS = [statement for statement in STATEMENTS if statement.startswith("CREATE TRIGGER")]


@pytest.fixture(scope="module")
def ledger():
    """Return a ledger of 1,000 records of every kind, some of them burnt, some under keys."""
    ledger = opened(None, epsilon=100)
    ledger.register(
        "household",
        PrivacyBudget(epsilon=1),
        renewal=Renewal(every="day", budget=PrivacyBudget(epsilon=F(1, 2))),
        partition="region",
        distinct=True,
    )
    ledger.grant("person", "alice", PrivacyBudget(epsilon=90))
    ledger.bind("person", ["path"], column="id")
    ledger.bind("person", ["another path"], column="who")
    for part in ("north", "south"):
        ledger.reserve("household", HUNDREDTH, 0, **HASHES, parts=[part])
    for key in ("ended", "not ended"):
        with reserve(ledger, idempotency_key=key, steps=3) as reservation:
            for number in (1, 2):
                reservation.step(number, lambda: b"an output", request_hash="r", data_version="1")
            if key == "ended":
                reservation.commit(b"the end")
    for _ in range(3):
        answer(ledger, question="SELECT 1", purpose="a reason")
    ledger.erase_query_texts([ledger.history()[-1].sequence])
    for number in range(1_000):
        if ledger.head().sequence >= RECORDS - 1:
            break
        if number % 7 == 0:
            reserve(ledger, idempotency_key=f"burnt {number}" if number % 2 else None)
        else:
            key = f"key {number}" if number % 3 else None
            analyst = "alice" if number % 2 else OWNER
            answer(ledger, b"release %d" % number, idempotency_key=key, analyst=analyst)
    while ledger.head().sequence < RECORDS:
        reserve(ledger)
    assert ledger.head().sequence == RECORDS
    return ledger


@pytest.fixture(scope="module")
def rows(ledger) -> list[Row]:
    return list(ledger._journal.rows())


def tampered(ledger: Ledger, *statements: tuple[str, tuple[object, ...]]) -> Ledger:
    """Return a copy of a ledger, changed by someone who knows how to get past the triggers."""
    journal = Journal(None, 1, create=True)
    journal._connection.close()
    journal._connection = sqlite3.connect(":memory:", isolation_level=None)
    raw(ledger).backup(journal._connection)
    for trigger in TRIGGERS:
        journal._connection.execute(f"DROP TRIGGER {trigger.split()[2]}")
    for statement, values in statements:
        journal._connection.execute(statement, values)
    for trigger in TRIGGERS:
        journal._connection.execute(trigger)
    journal._key = ledger._journal._key
    return Ledger(journal)


def found(ledger: Ledger, anchor: Head | None = None) -> int | None:
    """Return at which record verification stops."""
    with pytest.raises(LedgerError) as refusal:
        ledger.verify(anchor)
    assert refusal.value.code == "SF602"
    return refusal.value.sequence


def changes(column: str, value: object) -> list[object]:
    """Return other values for a column: the smallest change there is, nothing at all, another type."""
    match value:
        case None:
            return [1, "x", b""]
        case int():
            return [value + 1, None]
        case bytes():
            return [value + b"x", value[:-1], b"", None, "x"]
        case str():
            last = "0" if value[-1] != "0" else "1"
            middle = len(value) // 2
            return [
                value + " ",
                value[:-1] + last,
                value[:middle] + chr(ord(value[middle]) ^ 1) + value[middle + 1 :],
                value.encode(),
                "",
            ]
        case _:
            raise AssertionError(column)


def test_the_ledger_is_sound(ledger, rows):
    assert ledger.verify() == ledger.head() and len(rows) == RECORDS
    assert {row.kind for row in rows} == set(Record.registry)
    assert tampered(ledger).verify() == ledger.head()


def test_every_edit_of_every_record_is_found(rows):
    """Exhaustively: each column of each record, changed in several ways, after the records before it."""
    walk, edits = _Walk(), 0
    for row in rows:
        for place, column in enumerate(COLUMNS, start=1):
            for value in changes(column, row[place]):
                edited = (*row[:place], value, *row[place + 1 :])
                with pytest.raises(LedgerError):
                    walk.step(edited)  # what is refused changes nothing
                edits += 1
        walk.step(row)
    assert edits > 20 * RECORDS


@pytest.mark.soak
def test_every_swap_of_two_records_is_found(rows):
    """Exhaustively: whichever two records change places, the first of them no longer follows."""
    walk = _Walk()
    for i, row in enumerate(rows):
        for j in range(i + 1, len(rows)):
            with pytest.raises(LedgerError) as refusal:
                walk.step((row[0], *rows[j][1:]))  # stops before it has changed anything
            assert refusal.value.sequence == i + 1
        walk.step(row)


def test_every_deletion_is_found(rows):
    """Exhaustively: the record after the missing one does not follow the one before it."""
    walk = _Walk()
    for row, after in itertools.pairwise(rows):
        with pytest.raises(LedgerError) as refusal:
            walk.step(after)
        assert refusal.value.sequence == row.sequence
        with pytest.raises(LedgerError):
            walk.step((row.sequence, *after[1:]))  # also where the rest is moved up
        walk.step(row)


def test_deletions_in_the_file_are_found(ledger):
    for sequence in (*SOME, RECORDS):
        deleted = tampered(ledger, ("DELETE FROM records WHERE sequence = ?", (sequence,)))
        assert found(deleted) == min(sequence, RECORDS - 1)


def test_edits_in_the_file_are_found(ledger):
    """One column of some records, in the database itself; SQLite itself refuses to empty some of them."""
    for sequence in SOME:
        column = COLUMNS[sequence % len(COLUMNS)]
        update = f"UPDATE records SET {column} = coalesce({column}, '') || 'x' WHERE sequence = ?"
        assert found(tampered(ledger, (update, (sequence,)))) == sequence


def test_neighbours_that_change_places_are_found(ledger):
    for sequence in SOME[:-1]:
        move = "UPDATE records SET sequence = ? WHERE sequence = ?"
        swap = ((0, sequence), (sequence, sequence + 1), (sequence + 1, 0))
        assert found(tampered(ledger, *((move, pair) for pair in swap))) == sequence


def test_an_edit_that_mends_its_own_hash_breaks_the_next_link(ledger, rows):
    for sequence, previous, _, body, *_ in rows[1:-1:50]:
        forged = Link(sequence=sequence, previous=previous, body=body.replace('"at":"1', '"at":"2'))
        update = "UPDATE records SET body = ?, hash = ? WHERE sequence = ?"
        assert found(tampered(ledger, (update, (forged.body, forged.hash, sequence)))) == sequence + 1


# -- what only an anchor shows ------------------------------------------------------------


def test_a_truncated_tail_needs_an_anchor(ledger):
    cut = tampered(
        ledger,
        ("DELETE FROM records WHERE sequence > 150", ()),
        ("UPDATE sqlite_sequence SET seq = 150", ()),
    )
    assert cut.verify().sequence == 150
    assert found(cut, ledger.head()) == 150


def test_a_rewritten_ledger_needs_an_anchor(ledger):
    noted = ledger.head()
    rewritten = opened(None, epsilon=100)
    while rewritten.head().sequence < RECORDS + 5:
        answer(rewritten)
    rewritten.verify()
    assert found(rewritten, noted) == RECORDS


def test_an_anchor_of_any_age_fits_the_ledger_it_came_from(ledger, rows):
    for row in rows[::99]:
        assert ledger.verify(Head(sequence=row[0], hash=row[2])) == ledger.head()


# -- contradictions with sound hashes -----------------------------------------------------


def forged(rows: list[Row], change) -> None:
    """Walk rows whose bodies are changed and whose chain is then mended from there on."""
    walk, previous = _Walk(), "0" * 64
    for row in rows:
        body = change(row)
        link = Link(sequence=row[0], previous=previous, body=body)
        walk.step((row[0], previous, link.hash, body, *row[4:]))
        previous = link.hash


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ('"units":"1000000000000000000"', '"units":"1"'),  # a cheaper charge
        ('"spent":"5000000000000000000"', '"spent":"0"'),  # a total that forgets
        ('"limit":"10000000000000000000000"', '"limit":"1"'),  # less than was spent
        ('"format":"6"', '"format":"7"'),
        ('"column":"id"', '"column":7'),  # not what names a unit
        ('"column":"who"', '"column":null'),  # rows for people
        ('"keys_units":"0"', '"keys_units":0'),  # not canonical
        ('"keys_units":"0"', '"keys_units":"00"'),
        ('"keys_units":"0"', '"keys_units":"-1"'),
        ('"kind":"reserved"', '"kind":"refunded"'),
        ('"spent":"2000000000000000000"}', '"spent":"1"}'),  # an analyst's total, or an epoch's, that forgets
        ('"north":["1000000000000000000"', '"north":["0"'),  # a part's
        ('"distinct":true', '"distinct":false'),  # a second budget nobody vouched for
        ('"partition":"region"', '"partition":null'),  # parts without a partition
        ('"limit":"9000000000000000000000"', '"limit":"1"'),  # a grant that was not given
        ('"steps":"3"', '"steps":"1"'),  # fewer steps than were taken
        ('"steps":"3"', '"steps":null'),  # steps that nobody declared
        ('"key":"ended"', '"key":null'),  # steps that nobody could resume
    ],
)
def test_a_mended_chain_must_still_add_up(rows, old, new):
    forged(rows, lambda row: row[3])
    assert any(old in row[3] for row in rows)
    with pytest.raises(LedgerError):
        forged(rows, lambda row: row[3].replace(old, new))


@pytest.mark.parametrize("buried", [False, True])
def test_an_altered_total_stops_spending_too(ledger, buried):
    """Nobody has to call verify: the next charge notices, also where the chain has grown since."""
    ledger = tampered(ledger)
    if buried:
        ledger.reserve("household", HUNDREDTH, 0, **HASHES)
    query = "SELECT sequence, body FROM records WHERE kind = 'reserved' AND unit = 'person'"
    sequence, body = raw(ledger).execute(f"{query} ORDER BY sequence DESC").fetchone()
    fields = json.loads(body)
    cheaper = canonical({**fields, "spent": fields["units"]})
    with pytest.raises(LedgerError) as refusal:
        reserve(tampered(ledger, ("UPDATE records SET body = ? WHERE sequence = ?", (cheaper, sequence))))
    assert refusal.value.code == "SF602" and refusal.value.sequence == sequence


def test_an_altered_release_is_not_replayed():
    ledger = opened(None)
    answer(ledger, b"true", idempotency_key="k")
    changed = tampered(ledger, ("UPDATE records SET release = x'00' WHERE release IS NOT NULL", ()))
    with pytest.raises(LedgerError) as refusal:
        answer(changed, idempotency_key="k")
    assert refusal.value.code == "SF602"


def test_a_record_hidden_from_its_index_is_found(ledger):
    hidden = tampered(ledger, ("UPDATE records SET kind = 'x' WHERE sequence = ?", (RECORDS,)))
    assert found(hidden) == RECORDS


def test_the_tables_refuse_what_a_slip_of_a_program_would_do(ledger):
    for statement in (
        "UPDATE records SET body = body",
        "DELETE FROM records",
        "INSERT INTO records (sequence, previous, hash, body, kind) VALUES (5000, '', '', '', '')",
        "REPLACE INTO records SELECT * FROM records WHERE sequence = 2",
    ):
        with pytest.raises(sqlite3.DatabaseError, match="records are"):
            raw(ledger).execute(statement)
    for change in ("DROP TRIGGER never_deleted", "CREATE TABLE more (x)", "DROP INDEX one_request"):
        other = tampered(ledger)
        raw(other).execute(change)
        assert found(other) is None
