"""Servers that are killed, locked, odd or hostile: what is charged, what is said, what the answers are."""

from __future__ import annotations

import logging
import os
import random
import signal
import threading
import time
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import psycopg
import pytest

import sfumato as sf
from sfumato.backends.postgres import PostgresTables, transaction
from sfumato.errors import EngineFailure, EngineStopped, InvalidArgument, LedgerError, Unsupported
from sfumato.ledger import Ledger
from tests.conformance.server import Server, crash_awaited, find_or_install

ROWS = 400
QUESTION = "SELECT grp, COUNT(*) AS n FROM t GROUP BY grp ORDER BY grp"
ODD = {  # what a role, a database or an address may set
    "search_path": "hostile, pg_catalog",
    "client_encoding": "LATIN1",
    "timezone": "'Asia/Kathmandu'",
    "datestyle": "'German, DMY'",
    "intervalstyle": "sql_standard",
    "default_transaction_read_only": "off",
    "default_transaction_isolation": "'read committed'",
    "idle_in_transaction_session_timeout": "'10s'",
    "statement_timeout": "'10s'",
    "gin_fuzzy_search_limit": "1",
    "row_security": "on",
}


@pytest.fixture(scope="module")
def faults(connection: Any) -> str:
    """Make a table, a role that may only read it, and hostile words; return the schema."""
    connection.execute(
        f"""
        CREATE SCHEMA faults; CREATE ROLE fragile LOGIN; GRANT USAGE ON SCHEMA faults TO fragile;
        CREATE TABLE faults.t (person int, grp text, part int);
        INSERT INTO faults.t SELECT i, CASE i % 2 WHEN 0 THEN 'Ω' ELSE 'a' END, i % 2
            FROM generate_series(1, {ROWS}) AS i;
        GRANT SELECT ON faults.t TO fragile;
        CREATE SCHEMA hostile; GRANT USAGE ON SCHEMA hostile TO PUBLIC;
        CREATE FUNCTION hostile.fail(int4, int4) RETURNS boolean LANGUAGE sql AS 'SELECT 1 / 0 = 1';
        CREATE OPERATOR hostile.= (LEFTARG = int4, RIGHTARG = int4, FUNCTION = hostile.fail);
        CREATE FUNCTION hostile.fail(text, text) RETURNS boolean LANGUAGE sql AS 'SELECT 1 / 0 = 1';
        CREATE OPERATOR hostile.= (LEFTARG = text, RIGHTARG = text, FUNCTION = hostile.fail);
        CREATE FUNCTION hostile.count() RETURNS bigint LANGUAGE sql AS 'SELECT 7::bigint';
        CREATE FUNCTION hostile.md5(text) RETURNS text LANGUAGE sql AS 'SELECT $1';
        CREATE DOMAIN hostile.text AS pg_catalog.int4; CREATE DOMAIN hostile.int8 AS pg_catalog.int4;
        """
    )
    for name, value in ODD.items():
        connection.execute(f"ALTER ROLE fragile SET {name} = {value}")
    return "faults"


@pytest.fixture
def reader(server: Server, faults: str) -> str:
    """The address of the database, for the role that may only read."""
    return server.address.replace("user=postgres", "user=fragile")


def _opened(address: str, **more: Any) -> sf.Database:
    given: dict[str, Any] = {"unit": "person", "budget": sf.Budget(epsilon=9000, delta=1e-6), **more}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        host = dict(part.split("=", 1) for part in address.split())
        where = f"postgresql:///{host['dbname']}?host={host['host']}&user={host['user']}"
        return sf.connect(where, table="faults.t", max_groups=1, max_rows=1, **given)


def _right(release: sf.Release) -> bool:
    found = dict(zip(*(release.to_arrow().column(name).to_pylist() for name in ("grp", "n")), strict=True))
    return sorted(found) == ["a", "Ω"] and all(abs(n - ROWS // 2) < 60 for n in found.values())


def test_hostile_words_and_odd_settings_of_a_role_change_nothing(reader: str) -> None:
    assert _right(_opened(reader).sql(QUESTION, epsilon=20).release())


def test_a_question_holds_one_transaction_from_the_charge_to_its_answer(
    reader: str, connection: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows that come after the charge are not in the answer, and the table cannot be altered meanwhile."""
    db = _opened(reader)
    run = type(db.backend).run

    def late(self: Any, query: Any, **more: Any) -> Any:
        connection.execute("INSERT INTO faults.t SELECT i, 'a', 0 FROM generate_series(1000, 1999) AS i")
        with pytest.raises(psycopg.errors.LockNotAvailable), connection.transaction():
            connection.execute("SET LOCAL lock_timeout = 20")
            connection.execute("ALTER TABLE faults.t ADD y int")
        return run(self, query, **more)

    monkeypatch.setattr(type(db.backend), "run", late)
    try:
        assert _right(db.sql(QUESTION, epsilon=20).release())
    finally:
        connection.execute("DELETE FROM faults.t WHERE person >= 1000")


def test_parts_are_charged_as_one_only_while_nothing_changes(reader: str, connection: Any) -> None:
    """Somebody who moves to another part, unnoticed by the server's counts, is another version."""
    db = _opened(reader, partition="part", columns={"part": sf.one_of(0, 1)})
    plain = _opened(reader)
    exact, counted = db.backend.data_version(), plain.backend.data_version()
    assert exact == db.backend.data_version() and counted == plain.backend.data_version()
    connection.execute("UPDATE faults.t SET part = 1 - part WHERE person = 1")
    assert db.backend.data_version() != exact


def test_where_rows_are_not_counted_any_change_is_another_version(
    server: Server, connection: Any, faults: str
) -> None:
    address = f"{server.address} options='-c track_counts=off'"
    tables = PostgresTables(address, {"t": (faults, "t")})
    first = tables.version()
    assert tables.version() == first
    connection.execute("CREATE TABLE faults.other (x int)")
    assert tables.version() != first


def test_a_partition_is_known_as_a_part_of_its_table(reader: str, connection: Any) -> None:
    connection.execute(
        """
        CREATE TABLE faults.whole (person int, day date) PARTITION BY RANGE (day);
        CREATE TABLE faults.one PARTITION OF faults.whole FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
        INSERT INTO faults.whole SELECT i, '2024-03-01' FROM generate_series(1, 100) AS i;
        GRANT SELECT ON faults.whole, faults.one TO fragile
        """
    )
    tables = PostgresTables(reader, {"whole": ("faults", "whole"), "one": ("faults", "one")})
    assert set(tables.identities("whole")) < set(tables.identities("one"))
    first = tables.version()
    connection.execute("ALTER TABLE faults.whole DETACH PARTITION faults.one")
    assert tables.version() != first
    connection.execute("ALTER TABLE faults.one ALTER day TYPE text")
    with pytest.raises(InvalidArgument, match="table `one` has changed"):
        tables.version()
    connection.execute("DROP TABLE faults.whole, faults.one")


def test_a_table_that_somebody_alters_is_refused_after_a_while(
    reader: str, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    db = _opened(reader)
    monkeypatch.setitem(transaction._SETTINGS, "lock_timeout", "'10ms'")
    with psycopg.connect(server.address) as other:
        other.execute("LOCK TABLE faults.t IN ACCESS EXCLUSIVE MODE")
        with pytest.raises(InvalidArgument, match="table `t` is locked") as raised:
            db.sql(QUESTION, epsilon=1).release()
    assert raised.value.__context__ is None and not db.ledger.history()


@pytest.mark.parametrize("encoding", ["LATIN1", "SQL_ASCII"])
def test_texts_that_are_not_utf8_are_refused(reader: str, connection: Any, encoding: str) -> None:
    connection.execute(f"CREATE DATABASE odd_{encoding} TEMPLATE template0 ENCODING '{encoding}' LOCALE 'C'"
                       " LOCALE_PROVIDER libc")  # fmt: skip
    with pytest.raises(InvalidArgument, match="UTF-8"):
        PostgresTables(reader.replace("dbname=postgres", f"dbname=odd_{encoding.lower()}"), {})


def test_a_service_file_names_the_server(
    reader: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "services").write_text("[clinic]\n" + reader.replace(" ", "\n"))
    monkeypatch.setenv("PGSERVICEFILE", str(tmp_path / "services"))
    assert PostgresTables("postgresql:///?service=clinic", {"t": ("faults", "t")}).fields("t")


def test_what_the_server_says_of_a_value_is_shown_nowhere(
    reader: str, connection: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """A statement fails and names a value, after a notice that does: neither is in an error or a log."""
    db = _opened(f"{reader} password=hidden")
    run = type(db.backend)._guarded

    def failing(self: Any, action: Any) -> Any:
        return run(self, lambda read: read("SELECT max(grp)::int FROM faults.t"))

    monkeypatch.setattr(type(db.backend), "_guarded", failing)
    with (
        caplog.at_level(logging.DEBUG),
        warnings.catch_warnings(record=True) as warned,
        pytest.raises(EngineFailure) as raised,
    ):
        db.sql(QUESTION, epsilon=1).release()
    said = "".join(traceback.format_exception(raised.value)) + caplog.text + "".join(map(str, warned))
    assert raised.value.__context__ is None and raised.value.__cause__ is None
    assert "Ω" not in said and "hidden" not in said and len(db.ledger.history()) == 1


@pytest.mark.parametrize("value", ["a\0", "a\ud800"])
def test_declared_values_that_the_server_cannot_hold_are_refused_before_the_charge(
    reader: str, value: str
) -> None:
    db = _opened(reader, columns={"grp": sf.one_of("a", value)})
    with pytest.raises(Unsupported):
        db.sql(QUESTION, epsilon=1).release()
    assert not db.ledger.history()


@contextmanager
def _killed(monkeypatch: pytest.MonkeyPatch, owner: str, at: int, *, hard: bool) -> Iterator[list[int]]:
    """Kill the process of the server at the `at`-th statement of a question: before it, or during it.

    The end of a transaction is one of them.
    """
    count = [0]

    def kill(pid: int) -> None:
        if hard:
            os.kill(pid, signal.SIGKILL)
        else:
            with psycopg.connect(owner, autocommit=True) as other:
                other.execute("SELECT pg_terminate_backend(%s, 2000)", (pid,))

    def counting(act: Any) -> Any:
        def counted(self: Any, *given: Any, **more: Any) -> Any:
            info = getattr(self, "connection", self).info
            count[0] += info.user == "fragile"
            if info.user != "fragile" or count[0] != at:
                return act(self, *given, **more)
            killer = threading.Thread(target=kill, args=(info.backend_pid,))
            killer.start()
            if at % 2:
                killer.join()  # before the statement; else while it runs, or after it
            try:
                return act(self, *given, **more)
            finally:
                killer.join()

        return counted

    with monkeypatch.context() as patch:
        patch.setattr(psycopg.Cursor, "execute", counting(psycopg.Cursor.execute))
        patch.setattr(psycopg.Connection, "rollback", counting(psycopg.Connection.rollback))
        yield count


@pytest.mark.soak
def test_a_killed_process_of_the_server_answers_nothing_uncharged_and_charges_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """50 runs, SIGKILL and pg_terminate_backend in turn, at random statements of a question.

    Whatever happens: an answer is right and charged once; a failure after the charge is charged once, and its
    key is burnt; a refusal before the charge costs nothing, and the same key is answered afterwards, once.
    """
    programs = find_or_install()
    assert programs is not None
    draw = random.Random(18)
    with Server(programs) as server:
        with psycopg.connect(server.address, autocommit=True) as owner:
            owner.execute(
                "CREATE SCHEMA faults; CREATE ROLE fragile LOGIN; GRANT USAGE ON SCHEMA faults TO fragile;"
                "CREATE TABLE faults.t AS SELECT i AS person, CASE i % 2 WHEN 0 THEN 'Ω' ELSE 'a' END AS grp"
                f" FROM generate_series(1, {ROWS}) AS i, generate_series(1, 200) AS j;"
                "GRANT SELECT ON faults.t TO fragile; REVOKE CREATE ON SCHEMA public FROM PUBLIC; CHECKPOINT"
            )
        reader = server.address.replace("user=postgres", "user=fragile")
        db = _opened(reader, ledger=tmp_path / "l")
        with _killed(monkeypatch, server.address, 0, hard=False) as count:
            assert _right(db.sql(QUESTION, epsilon=20).release())
        last, outcomes = count[0], {"answered": 0, "charged": 0, "free": 0}
        for number in range(50):
            spent, key = len(db.ledger.history()), f"question {number}"
            at = draw.randint(1, last) if number % 2 else last - draw.randint(0, 2)
            question, hard = db.sql(QUESTION, epsilon=20), number % 4 < 2
            awaited = crash_awaited(server.address) if hard else nullcontext()
            try:
                with awaited, _killed(monkeypatch, server.address, at, hard=hard):
                    outcome = "answered" if _right(question.release(key=key)) else "wrong"
            except EngineFailure:
                outcome = "charged"
            except EngineStopped:
                outcome = "free"
            outcomes[outcome] += 1
            assert len(db.ledger.history()) - spent == (outcome != "free")
            try:
                assert _right(question.release(key=key)) and outcome != "charged"
            except LedgerError as refused:  # a crash makes the server forget its counts: another version
                assert refused.code == "SF607" if outcome == "charged" else hard and refused.code == "SF606"
            assert len(db.ledger.history()) - spent == 1
        assert min(outcomes.values()) > 0, outcomes
    with Ledger.open(tmp_path / "l") as ledger:
        ledger.verify()


@pytest.mark.soak
def test_a_standby_is_its_primary_and_each_change_is_another_version(tmp_path: Path) -> None:
    programs = find_or_install()
    assert programs is not None
    with Server(programs) as primary, psycopg.connect(primary.address, autocommit=True) as owner:
        owner.execute("CREATE TABLE t AS SELECT 1 AS person, 'a' AS grp; CHECKPOINT")
        with Server(programs, standby_of=primary) as standby:
            place = {"t": ("public", "t")}
            first, second = (PostgresTables(one.address, place) for one in (primary, standby))
            assert first.identities("t") == second.identities("t")
            version = second.version()
            with pytest.raises(InvalidArgument, match="standby"):
                second.version(exact=True)
            owner.execute("INSERT INTO t VALUES (2, 'b')")
            deadline = time.monotonic() + 60
            while second.version() == version:
                assert time.monotonic() < deadline
