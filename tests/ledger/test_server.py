"""A ledger on a server: connections that end at any moment, unfit servers, roles, tampering."""

from __future__ import annotations

import os
import re
import signal
import threading
import time
import traceback
from datetime import date
from fractions import Fraction as F
from typing import Any

import pytest

import sfumato as sf
from sfumato.catalog import read_project
from sfumato.core import PrivacyBudget
from sfumato.errors import BudgetExceeded, InvalidArgument, LedgerError, ProjectRefused, Unsupported
from sfumato.ledger import Ledger
from sfumato.ledger.journal import Row
from sfumato.ledger.postgres.connection import WITHOUT_FSYNC
from sfumato.ledger.postgres.schema import SCHEMA
from tests.conformance.server import crash_awaited
from tests.ledger.accounts import answer, opened, raw, reserve
from tests.ledger.places import Databases
from tests.processes import ROOT
from tests.soaked import rest_soaked

psycopg = pytest.importorskip("psycopg")
END = (
    "SELECT pid, pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE pid <> pg_backend_pid() AND datname = current_database()"
)


@pytest.fixture
def address(databases: Databases) -> str:
    return databases / "a"


def ended(address: str) -> None:
    """End the connections that a database has, and wait for their end; others may be opened meanwhile."""
    with psycopg.connect(address, autocommit=True) as connection:
        killed = connection.execute(END).fetchall()
        alive = "SELECT 1 FROM pg_stat_activity WHERE pid = ANY(%s)"
        while connection.execute(alive, ([pid for pid, _ in killed],)).fetchone():
            pass


def processes(address: str) -> list[int]:
    """Return the server's processes for a database."""
    query = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
    with psycopg.connect(address, autocommit=True) as connection:
        return [pid for (pid,) in connection.execute(query).fetchall()]


def at_commit(ledger: Ledger, monkeypatch: pytest.MonkeyPatch, address: str, *, sent: bool) -> None:
    """End the connection at the next COMMIT: before it is sent, or after it and before the answer."""
    connection: Any = raw(ledger)
    execute = connection.execute

    def failing(statement: str, values: tuple[object, ...] = ()) -> object:
        if "COMMIT" in statement.split("; "):
            if sent:
                execute(statement, values)
            ended(address)
        return execute(statement, values)

    monkeypatch.setattr(connection, "execute", failing)


def test_a_connection_that_ended_while_idle_is_opened_again(address):
    with opened(address) as ledger:
        answer(ledger)
        ended(address)
        answer(ledger)
        with reserve(ledger, idempotency_key="k") as reservation:
            ended(address)  # after the charge, while the data is read
            reservation.commit(b"noisy")
        assert ledger.spent("person") == F(3, 100) and answer(ledger, idempotency_key="k") == b"noisy"
        ledger.verify()


@pytest.mark.parametrize("sent", [True, False])
def test_an_uncertain_commit_is_resolved_by_the_chain(address, monkeypatch, sent):
    with opened(address) as ledger:
        ledger.public_key  # noqa: B018  # on record before
        at_commit(ledger, monkeypatch, address, sent=sent)
        if sent:
            assert answer(ledger) == b"noisy"
        else:
            with pytest.raises(LedgerError) as refusal:
                answer(ledger)
            assert refusal.value.code == "SF604"  # certainly not charged
        assert [entry.committed for entry in ledger.history()] == [True] * sent
        assert ledger.spent("person") == F(sent, 100)
        ledger.verify()


def test_a_key_is_answered_again_after_the_server_ended_all_connections(address):
    with opened(address) as ledger:
        assert answer(ledger, idempotency_key="k") == b"noisy"
        ended(address)
        assert answer(ledger, b"other", idempotency_key="k") == b"noisy"
        ended(address)
        assert answer(ledger, b"more", idempotency_key="l") == b"more"
        assert ledger.spent("person") == F(2, 100)


def test_a_server_that_ends_idle_sessions_does_not_make_a_reservation_look_burnt(address):
    with opened(address) as ledger, psycopg.connect(address, autocommit=True) as connection:
        if connection.info.server_version < 140_000:
            pytest.skip("a setting of PostgreSQL 14")
        name = connection.info.dbname
        connection.execute(f'ALTER DATABASE "{name}" SET idle_session_timeout = 100')
        with opened(address) as first, opened(address, wait=0.05) as second:
            with reserve(first, idempotency_key="k") as reservation:
                time.sleep(0.4)
                with pytest.raises(LedgerError) as refusal:
                    reserve(second, idempotency_key="k")
                assert refusal.value.code == "SF604"  # it is being answered
                reservation.commit(b"noisy")
            assert answer(second, idempotency_key="k") == b"noisy"
        assert ledger.spent("person") == F(1, 100)


@pytest.mark.parametrize("sent", [True, False])
def test_an_answer_whose_commit_was_uncertain_is_stored_once(address, monkeypatch, sent):
    with opened(address) as ledger, reserve(ledger, idempotency_key="k") as reservation:
        at_commit(ledger, monkeypatch, address, sent=sent)
        reservation.commit(b"noisy")
        assert answer(ledger, b"other", idempotency_key="k") == b"noisy"
        assert ledger.spent("person") == F(1, 100)
        ledger.verify()


def test_where_the_server_stays_away_the_error_says_that_it_is_not_known(address, monkeypatch):
    with opened(address, wait=0.05) as ledger:
        ledger.public_key  # noqa: B018
        at_commit(ledger, monkeypatch, address, sent=True)
        monkeypatch.setattr(ledger._journal, "_address", "postgresql://postgres@127.0.0.1:1/none")
        with pytest.raises(LedgerError, match="during a commit") as refusal:
            reserve(ledger)
        assert refusal.value.code == "SF601" and "history" in refusal.value.hints[0]
    with opened(address) as ledger:
        assert ledger.spent("person") == F(1, 100)  # charged, and nothing was answered


def test_a_connection_that_ends_within_a_transaction_charges_nothing(address, monkeypatch):
    with opened(address) as ledger:
        ledger.public_key  # noqa: B018
        connection: Any = raw(ledger)
        execute = connection.execute

        def failing(statement: str, values: tuple[object, ...] = ()) -> object:
            if statement.startswith("SELECT sequence"):
                ended(address)
            return execute(statement, values)

        monkeypatch.setattr(connection, "execute", failing)
        with pytest.raises(LedgerError) as refusal:
            reserve(ledger)
        assert refusal.value.code == "SF601"
        assert ledger.spent("person") == 0
        answer(ledger)
        ledger.verify()


@pytest.mark.parametrize(("rounds", "how"), [(5, "end"), pytest.param(50, "kill", marks=pytest.mark.soak)])
def test_killed_server_processes_lose_and_double_nothing(address, rounds, how):
    """Ended, or killed with SIGKILL, after which the server recovers from its log, at random moments."""
    answered: list[str] = []
    over = threading.Event()

    def spend(number: int) -> None:
        with opened(address, epsilon=10**6) as ledger:
            count = 0
            while not over.is_set():
                request, count = f"{number} {count}", count + 1
                try:
                    answer(ledger, request.encode(), request_hash=request, idempotency_key=request)
                except LedgerError as error:
                    assert error.code in ("SF601", "SF604", "SF607", "SF608"), error
                    continue
                answered.append(request)

    opened(address, epsilon=10**6).close()
    threads = [threading.Thread(target=spend, args=(number,)) for number in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(rounds):
        before = len(answered)
        while len(answered) < before + 3 and any(thread.is_alive() for thread in threads):
            over.wait(0.005)
        over.wait(os.urandom(1)[0] / 256 * 0.02)
        if how == "end":
            ended(address)
        else:
            process = processes(address)[0]
            with crash_awaited(address):
                os.kill(process, signal.SIGKILL)
    over.set()
    for thread in threads:
        thread.join()
    with opened(address, epsilon=10**6) as ledger:
        ledger.verify()
        requests = [entry.request_hash for entry in ledger.history()]
        assert len(set(requests)) == len(requests) and set(answered) <= set(requests)
        assert len(answered) >= 3 * rounds and ledger.spent("person") * 100 == len(requests)
        stored = {entry.request_hash: entry for entry in ledger.history()}
        for request in answered:
            assert ledger.release(stored[request].sequence) == request.encode()


# -- servers that cannot keep a ledger ----------------------------------------------------


def test_a_server_that_does_not_wait_for_its_disk_is_refused(address, monkeypatch):
    monkeypatch.delenv(WITHOUT_FSYNC)
    with pytest.raises(LedgerError, match="wait for its disk") as refusal:
        Ledger.open(address)
    assert refusal.value.code == "SF601"


def test_commits_wait_for_the_disk_whatever_the_role_says(address):
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(f'ALTER DATABASE "{connection.info.dbname}" SET synchronous_commit = off')
    with opened(address) as ledger:
        assert raw(ledger).execute("SHOW synchronous_commit").fetchone() == ("on",)


def test_a_database_that_can_only_be_read_is_refused(address):
    opened(address).close()
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute(
            f'ALTER DATABASE "{connection.info.dbname}" SET default_transaction_read_only = on'
        )
    with pytest.raises(LedgerError, match="only be read"):
        Ledger.open(address)


def test_a_database_without_a_ledger_is_refused_unless_one_may_be_made(address):
    with pytest.raises(LedgerError, match="no ledger"):
        Ledger.open(address, create=False)


def test_a_server_that_lost_what_was_seen_is_refused(address):
    with opened(address) as ledger:
        answer(ledger)
        with psycopg.connect(address, autocommit=True) as connection:  # as an old copy that took over
            connection.execute(f"SET search_path = {SCHEMA}; SET session_replication_role = replica")
            connection.execute("DELETE FROM records WHERE sequence > 3; UPDATE counted SET records = 3")
        ended(address)
        with pytest.raises(LedgerError, match="has lost record") as refusal:
            answer(ledger)
        assert refusal.value.code == "SF602"


SECRET = "hunter2xyz"


@pytest.mark.parametrize(
    "address",
    [
        f"postgresql://ada:{SECRET}@127.0.0.1:1/ledger",
        f"postgresql://ada:{SECRET}@127.0.0.1:port/ledger",
        f"postgresql://ada:a@{SECRET}/b@127.0.0.1/ledger",
        f"postgresql://127.0.0.1:1/ledger?password={SECRET}&nonsense=1",
        f"postgresql://127.0.0.1:1/ledger?password={SECRET}",
        f"postgresql://[{SECRET}/ledger",
    ],
)
def test_no_error_prints_a_password(address):
    with pytest.raises(LedgerError) as refusal:
        Ledger.open(address, wait=1)
    assert refusal.value.code == "SF601"
    assert SECRET not in "".join(traceback.format_exception(refusal.value, chain=True)).replace(address, "")
    error: BaseException | None = refusal.value
    while error is not None:
        assert SECRET not in str(error) and SECRET not in repr(error)
        error = error.__cause__ or error.__context__


def test_a_project_file_holds_no_password_and_errors_repeat_none(tmp_path):
    for ledger in (f"postgresql://ada:{SECRET}@db/ledger", f"postgresql://db/ledger?pass%77ord={SECRET}"):
        file = tmp_path / "sfumato.toml"
        file.write_text(
            f'ledger = "{ledger}"\n'
            '[tables.t]\npath = "t.csv"\nunit = "id"\n[budget]\nepsilon = 1\ndelta = 1e-6\n'
        )
        with pytest.raises(ProjectRefused, match="no password") as refusal:
            read_project(file)
        assert SECRET not in str(refusal.value)


@pytest.mark.parametrize(
    "ledger",
    [
        f"host=db password={SECRET} dbname=ledger",
        f" postgresql://ada:{SECRET}@db/ledger",
        f"postgresql+psycopg://ada:{SECRET}@db/ledger",
        f"jdbc:postgresql://db/ledger?password={SECRET}",
        "service=ledger",
    ],
)
def test_an_address_of_another_form_is_no_name_of_a_file(tmp_path, monkeypatch, ledger):
    """A file of that name would be one host's own ledger, a second budget, and show the password."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidArgument, match="neither a file nor an address") as refusal:
        Ledger.open(ledger)
    assert SECRET not in str(refusal.value) and not list(tmp_path.iterdir())
    file = tmp_path / "sfumato.toml"
    file.write_text(
        f"ledger = '{ledger}'\n"
        '[tables.t]\npath = "t.csv"\nunit = "id"\n[budget]\nepsilon = 1\ndelta = 1e-6\n'
    )
    with pytest.raises(ProjectRefused, match="neither a file nor an address") as refused:
        read_project(file)
    assert SECRET not in str(refused.value)


def test_a_stream_is_refused_before_it_is_charged(address, tmp_path):
    (tmp_path / "t.csv").write_text("id,day\n1,2026-01-01\n2,2026-01-02\n")
    db = sf.connect(
        tmp_path / "t.csv", name="t", unit="id", budget=PrivacyBudget(epsilon=1, delta=1e-6), ledger=address,
        max_groups=1, max_rows=1, columns={"day": sf.between(date(2000, 1, 1), date(2099, 12, 31))},
    )  # fmt: skip
    stream = db.stream(
        "SELECT COUNT(*) AS n FROM t",
        by="day",
        every="day",
        start="2026-01-01",
        horizon=4,
        epsilon=0.5,
        name="s",
    )
    with pytest.raises(Unsupported, match="ledger in a file"):
        stream.advance()
    with Ledger.open(address) as ledger:
        assert ledger.history() == ()


# -- tampering ----------------------------------------------------------------------------


def test_records_are_only_appended_even_by_the_owner(address):
    with opened(address) as ledger:
        answer(ledger, question="SELECT 1")
        for statement in (
            "UPDATE records SET body = body",
            "DELETE FROM records",
            "TRUNCATE records",
            "INSERT INTO records SELECT * FROM records LIMIT 1",
            "INSERT INTO query_texts VALUES (1, 'x')",
            "UPDATE query_texts SET text = 'x'",
        ):
            with psycopg.connect(address) as connection, pytest.raises(psycopg.errors.IntegrityError):
                connection.execute(f"SET search_path = {SCHEMA}")
                connection.execute(statement)
        ledger.verify()


@pytest.mark.parametrize("column", rest_soaked(Row._fields, 4))
def test_every_edit_behind_the_triggers_is_found(address, column):
    with opened(address, epsilon=10) as ledger:
        ledger.grant("person", "alice", PrivacyBudget(epsilon=1))
        ledger.bind("person", ["path"], column="id")
        answer(ledger, idempotency_key="k", analyst="alice")
        with reserve(ledger, idempotency_key="steps", steps=2) as steps:
            steps.step(1, lambda: b"out", request_hash="r", data_version="1")
        last = ledger.verify().sequence
        connection = psycopg.connect(address)
        with connection:
            connection.execute(f"SET search_path = {SCHEMA}; SET session_replication_role = replica")
            whole, bytes_ = column in ("sequence", "reservation", "step"), column == "release"
            change = (
                f"{column} + 100"
                if whole
                else f"{column} || {chr(39)}x{chr(39)}{'::bytea' if bytes_ else ''}"
            )
            for number in range(1, last + 1):
                with connection.transaction(force_rollback=False):
                    connection.execute("CREATE TEMP TABLE IF NOT EXISTS kept (LIKE records)")
                    connection.execute("TRUNCATE kept")
                    connection.execute(
                        "INSERT INTO kept SELECT * FROM records WHERE sequence = %s", (number,)
                    )
                    done = connection.execute(
                        f"UPDATE records SET {column} = {change} "
                        f"WHERE sequence = %s AND {column} IS NOT NULL",
                        (number,),
                    )
                connection.commit()
                if done.rowcount:
                    with pytest.raises(LedgerError) as refusal:
                        ledger.verify()
                    assert refusal.value.code == "SF602"
                connection.execute("DELETE FROM records WHERE sequence IN (%s, %s)", (number, number + 100))
                connection.execute("INSERT INTO records SELECT * FROM kept")
                connection.commit()
        ledger.verify()


@pytest.mark.parametrize(
    "change",
    [
        "DELETE FROM records WHERE sequence = (SELECT max(sequence) FROM records)",
        "DELETE FROM records WHERE sequence = 3",
        "ALTER TABLE records DISABLE TRIGGER never_changed",
        "DROP INDEX one_request",
        "CREATE OR REPLACE FUNCTION never() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN new; END'",
        "UPDATE signing_key SET secret = '\\x00'",
    ],
)
def test_what_was_cut_or_switched_off_is_found(address, change):
    with opened(address) as ledger:
        ledger.bind("person", ["path"], column="id")
        answer(ledger)
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(f"SET search_path = {SCHEMA}; SET session_replication_role = replica")
            connection.execute(change)
        with pytest.raises(LedgerError) as refusal, opened(address) as again:
            again.verify()
            answer(again)
        assert refusal.value.code == "SF602"


# -- roles --------------------------------------------------------------------------------


def test_an_analyst_appends_charges_of_their_own_and_nothing_else(databases, address):
    """The statements to paste are those of the page."""
    page = (ROOT / "docs" / "ledger.md").read_text()
    (grants,) = re.findall(r"```sql\n(.*?)```", page, re.DOTALL)
    with opened(address) as ledger:
        ledger.grant("person", "ana", PrivacyBudget(epsilon=F(1, 50)))
        answer(ledger, question="SELECT 1")
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("DROP ROLE IF EXISTS ana")
        connection.execute(grants)
        name = connection.info.dbname
    theirs = address.replace("postgres@", "ana@")
    with Ledger.open(theirs, create=False) as ledger:
        for _ in range(2):
            answer(ledger, analyst="ana", question="SELECT 2")
        with pytest.raises(BudgetExceeded):
            answer(ledger, analyst="ana")
        for refused in (
            lambda: answer(ledger),  # as the owner
            lambda: ledger.grant("person", "ana", PrivacyBudget(epsilon=1)),
            lambda: ledger.register("other", PrivacyBudget(epsilon=1), distinct=True),
            lambda: ledger.erase_query_texts(),
            lambda: ledger.query_texts(ledger.history()),
        ):
            with pytest.raises(LedgerError) as refusal:
                refused()
            assert refusal.value.code in ("SF601", "SF612")
    with psycopg.connect(theirs, autocommit=True) as connection:
        for statement in (
            "SELECT text FROM query_texts",
            "DELETE FROM records",
            "UPDATE counted SET records = 0",
            "UPDATE signing_key SET secret = secret",
            "ALTER TABLE records DISABLE TRIGGER ALL",
            "SET session_replication_role = replica",
        ):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                connection.execute(f"SET search_path = {SCHEMA}")
                connection.execute(statement)
    with opened(address) as ledger:
        assert ledger.spent("person") == F(3, 100) and ledger.verify()
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("DROP OWNED BY ana; DROP ROLE ana")
    assert name
