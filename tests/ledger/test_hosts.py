"""Several hosts on one ledger: clocks, versions, standbys, old copies, and what the disk holds."""

from __future__ import annotations

import time
from typing import Any

import pytest

from sfumato.core import PrivacyBudget
from sfumato.errors import LedgerError
from sfumato.ledger import Head, Ledger, verify_receipt
from sfumato.ledger.postgres.connection import CONFIRMED, WRITER
from sfumato.ledger.postgres.schema import SCHEMA
from sfumato.ledger.records import FORMAT
from tests.cli.programs import sfumato
from tests.conformance.server import Server, find
from tests.ledger.accounts import answer, before_each_statement, opened, raw, reserve, tamper
from tests.ledger.places import Databases
from tests.ledger.standby import Standby

psycopg = pytest.importorskip("psycopg")
DAY = 86_400_000


@pytest.fixture
def address(databases: Databases) -> str:
    return databases / "a"


def refused(code: str, call: Any, *arguments: Any) -> LedgerError:
    with pytest.raises(LedgerError) as refusal:
        call(*arguments)
    assert refusal.value.code == code, refusal.value
    return refusal.value


# -- the disk -----------------------------------------------------------------------------


def test_whoever_writes_or_reads_waits_for_the_disk(address):
    """Who reads what another has committed and not yet confirmed confirms it, once."""
    with opened(address) as writer, opened(address) as reader:
        answer(writer)
        reader.head()
        sent: list[str] = []
        before_each_statement(reader, sent.append)
        reader.head()
        assert not any(CONFIRMED in statement for statement in sent)  # it was seen, and confirmed, before
        connection: Any = raw(writer)
        commit, connection.commit = connection.commit, lambda **_: commit(confirm=False)
        answer(writer)  # as one who is between its commit and the disk
        reader.head()
        reader.balance("person")
        assert sum(CONFIRMED in statement for statement in sent) == 1
        answer(reader)
        assert sum(CONFIRMED in statement for statement in sent) == 3  # a charge, and its answer


def test_a_group_in_which_one_fails_waits_for_the_disk_too(address):
    """What others appended stays, and so it must be confirmed."""
    from sfumato.ledger.group_commit import WriteRequest
    from sfumato.ledger.records import Signer

    with opened(address) as ledger:
        journal = ledger._journal

        def fails() -> None:
            journal.append(Signer(at=0, public_key="taken back"))
            raise ValueError

        requests = [
            WriteRequest(lambda: journal.append(Signer(at=0, public_key="stays"))),
            WriteRequest(fails),
        ]
        sent: list[str] = []
        before_each_statement(ledger, sent.append)
        journal._write(requests)
        assert sent[-1] == f"COMMIT; {CONFIRMED}"
        assert isinstance(requests[1].error, ValueError) and ledger.head() == requests[0].result.head
        assert journal._seen == ledger.head()


def test_nobody_is_told_that_nothing_was_charged_while_that_is_not_known(address, monkeypatch):
    """The connection ends at the commit, and then another writer has the lock for longer than the wait."""
    with opened(address, wait=0.2) as ledger, psycopg.connect(address, autocommit=True) as other:
        ledger.public_key  # noqa: B018
        connection: Any = raw(ledger)
        execute = connection.execute

        def failing(statement: str, values: tuple[object, ...] = ()) -> object:
            if statement.startswith("COMMIT"):
                execute(statement, values)
                connection._connection.close()
                other.execute(f"SELECT pg_advisory_lock({WRITER})")
            return execute(statement, values)

        monkeypatch.setattr(connection, "execute", failing)
        assert "history" in refused("SF601", reserve, ledger).hints[0]
        other.execute("SELECT pg_advisory_unlock_all()")
        assert len(ledger.history()) == 1


def test_a_host_that_froze_does_not_keep_the_lock(address):
    """The server ends a transaction that is idle for a minute: ours wait for nothing but the server."""
    with opened(address) as ledger:
        assert raw(ledger).execute("SHOW idle_in_transaction_session_timeout").fetchone() == ("1min",)


# -- clocks and versions ------------------------------------------------------------------


@pytest.mark.parametrize("days", [-40, 40])
def test_dates_go_by_the_servers_clock(address, monkeypatch, days):
    clock = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: clock() + days * DAY * 1_000_000)
    with opened(address) as ledger:
        answer(ledger)
        assert abs(ledger.history()[0].at - clock() // 1_000_000) < DAY


@pytest.mark.parametrize(
    ("version", "hint"), [(FORMAT + 1, "update sfumato"), (FORMAT - 1, "format changed")]
)
def test_another_version_of_sfumato_is_refused(address, version, hint):
    with opened(address):
        tamper(address, f"UPDATE counted SET format = {version}")
        refusal = refused("SF603", Ledger.open, address)
        assert str(version) in refusal.message and hint in refusal.hints[0]


# -- what was lost ------------------------------------------------------------------------


def test_a_server_set_back_to_an_old_copy_is_found_with_an_anchor(databases, address):
    with opened(address) as ledger:
        answer(ledger)
    with psycopg.connect(databases / "other", autocommit=True) as connection:
        connection.execute('CREATE DATABASE "ledger_backup" TEMPLATE "ledger_a"')
    with opened(address) as ledger:
        answer(ledger)
        anchor = ledger.anchor()
        ledger.verify(anchor)
    with opened(databases / "backup") as ledger:
        ledger.verify()
        refused("SF602", ledger.verify, anchor)
        for _ in range(3):  # also when it has grown past the anchor again
            answer(ledger)
        refused("SF602", ledger.verify, anchor)
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute('DROP DATABASE "ledger_backup" WITH (FORCE)')


@pytest.mark.soak
def test_a_standby_is_refused_and_one_that_took_over_without_the_last_commits_is_found(monkeypatch):
    """By who has the ledger open, and by whoever holds a receipt; nobody else can know."""
    programs = find()
    assert programs is not None
    with Server(programs) as primary, Standby(primary) as standby:
        host = primary.address.split()[0].removeprefix("host=")
        address = (Databases(f"postgresql://postgres@/%s?host={host}")) / "a"
        either = address.replace(host, f"{host},{standby.host}") + "&target_session_attrs=read-write"
        with opened(either) as analyst, opened(either) as other:
            answer(analyst)
            other.head()
            standby.cut()
            refusal = refused("SF601", Ledger.open, address.replace(host, standby.host))
            assert "only be read" in refusal.message
            with reserve(analyst) as paid:
                receipt = paid.receipt(answer="e3b0")
                paid.commit(b"noisy")
            key = analyst.public_key
            primary._run("pg_ctl", "-D", str(primary._data), "-m", "immediate", "-w", "stop")
            standby.take_over()
            assert "has lost record" in refused("SF602", reserve, analyst).message
            answer(other)  # it had not seen what was lost
            other.verify()
            refused("SF602", other.verify, verify_receipt(receipt, key))
        primary._run(
            "pg_ctl", "-D", str(primary._data), "-w", "start", "-o", f"-k {host} -c listen_addresses="
        )


# -- the owner's commands -----------------------------------------------------------------

PEOPLE = "person,region\n" + "".join(f"{number},{'ns'[number % 2]}\n" for number in range(60))
INIT = ("init", "people.csv", "--unit", "person", "--one-of", "region=n,s", "--max-groups", "1", "--max-rows",
        "1", "--yes")  # fmt: skip


def test_init_begins_a_ledger_on_a_server(tmp_path, address):
    (tmp_path / "people.csv").write_text(PEOPLE)
    made = sfumato(tmp_path, *INIT, "--ledger", address)
    assert made.returncode == 0 and "ledger: postgresql:///ledger_a, begun" in made.stdout, made.stderr
    asked = sfumato(tmp_path, "query", "SELECT region, COUNT(*) AS n FROM people GROUP BY region", "-e", "1")
    assert asked.returncode == 0, asked.stderr
    again = sfumato(tmp_path, *INIT, "--ledger", address, "--project", "b.toml")
    assert again.returncode == 0 and "goes on" in again.stdout, again.stderr
    with Ledger.open(address, create=False) as ledger:
        assert len(ledger.history()) == 1
    secret = sfumato(tmp_path, *INIT, "--ledger", "postgresql://me:secret@h/x", "--project", "c.toml")
    assert secret.returncode != 0 and "no password" in secret.stderr
    assert "secret" not in secret.stdout + secret.stderr and not (tmp_path / "c.toml").exists()


def test_a_role_that_may_not_make_a_ledger_is_told_who_may(tmp_path, address):
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS reader; CREATE ROLE reader LOGIN")
    refusal = refused("SF601", Ledger.open, address.replace("postgres@", "reader@"))
    assert "may not make one" in refusal.message and "sfumato ledger create" in refusal.hints[0]
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("DROP ROLE reader")


# -- tampering with a long ledger ---------------------------------------------------------


@pytest.mark.soak
def test_tampering_with_a_thousand_records_is_found(address):
    """Deletions, edits and swaps in the server's tables, hashes mended, a tail cut: as in a file."""
    with opened(address, epsilon=100) as ledger:
        ledger.grant("person", "alice", PrivacyBudget(epsilon=90))
        ledger.bind("person", ["path"], column="id")
        while (last := ledger.head().sequence) < 1000:
            answer(
                ledger,
                idempotency_key=str(last) if last % 3 else None,
                question="q" if last % 7 == 0 else None,
            )
        noted = ledger.head()

        def found(*changes: str) -> int | None:
            with psycopg.connect(address) as connection:
                connection.execute(f"SET search_path = {SCHEMA}; SET session_replication_role = replica")
                for name in ("records", "counted"):
                    connection.execute(f"CREATE TEMP TABLE kept_{name} AS TABLE {name}")
                for change in changes:
                    connection.execute(change)
                connection.commit()
                refusal = refused("SF602", ledger.verify)
                for name in ("records", "counted"):
                    connection.execute(f"DELETE FROM {name}; INSERT INTO {name} SELECT * FROM kept_{name}")
                connection.commit()
            return refusal.sequence

        for number in range(1, 1000, 67):
            at = f"WHERE sequence = {number}"
            assert found(f"DELETE FROM records {at}") == number
            assert found(f"UPDATE records SET body = body || ' ' {at}") == number
            swap = "UPDATE records SET sequence = %s WHERE sequence = %s"
            pairs = ((0, number), (number, number + 1), (number + 1, 0))
            assert found(*(swap % pair for pair in pairs)) == number
            (body, previous) = (
                raw(ledger)
                .execute(f"SELECT body, previous FROM records WHERE sequence = {number}")
                .fetchone()
            )
            forged = body.replace('"at":"1', '"at":"2')
            hashed = f"encode(sha256(convert_to('{previous}' || chr(10) || '{forged}', 'UTF8')), 'hex')"
            assert found(f"UPDATE records SET body = '{forged}', hash = {hashed} {at}") == number + 1
        assert found("DELETE FROM records WHERE sequence > 150") is not None
        cut = [f"DELETE FROM {table} WHERE sequence > 150" for table in ("records", "query_texts")]
        tamper(address, *cut, "UPDATE counted SET records = 150")
    with Ledger.open(address) as ledger:
        assert ledger.verify().sequence == 150  # a cut that hides itself needs an anchor
        refused("SF602", ledger.verify, noted)
        refused("SF602", ledger.verify, Head(sequence=150, hash="0" * 64))


@pytest.mark.soak
def test_a_training_goes_on_from_its_checkpoint_on_another_host(databases):
    from tests.learn import test_networks

    test_networks.test_a_killed_training_goes_on_from_its_checkpoint_without_a_second_charge(databases)
