"""Questions about tables of a real PostgreSQL, from an address or a project file to the answer."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import sfumato as sf
from sfumato.errors import (
    EngineFailure,
    EngineStopped,
    InvalidArgument,
    ProjectRefused,
    SfumatoError,
    Unsupported,
)
from sfumato.learn import LinearRegression
from sfumato.ledger import Ledger
from tests.conformance.server import Server
from tests.engine.questions import Asked
from tests.engine.replay import planned

BUDGET = sf.Budget(epsilon=1000, delta=1e-6)
CAPS: dict[str, Any] = {"max_groups": 3, "max_rows": 3}
COLUMNS = {"visits.region": sf.one_of("north", "south"), "visits.cost": sf.between(0, 100)}
SHORT = "CREATE TABLE clinic.short (person int, v int); GRANT SELECT ON clinic.short TO analyst"
COUNT = "SELECT COUNT(*) AS n FROM visits"


@pytest.fixture(scope="module")
def clinic(connection: Any) -> Iterator[str]:
    """Make a small clinic, and name its schema."""
    connection.execute(
        """
        CREATE SCHEMA clinic; CREATE ROLE analyst LOGIN; GRANT USAGE ON SCHEMA clinic TO analyst;
        REVOKE CREATE ON SCHEMA public FROM PUBLIC;
        CREATE TABLE clinic.visits (id int, person int, region text, cost int);
        INSERT INTO clinic.visits SELECT i, i % 500, CASE WHEN i % 4 = 0 THEN 'north' ELSE 'south' END, i % 50
            FROM generate_series(0, 999) AS i;
        CREATE TABLE clinic.people (who int, age int);
        INSERT INTO clinic.people SELECT i, 20 + i % 60 FROM generate_series(0, 499) AS i;
        CREATE TABLE clinic.lines (visit int, price int);
        INSERT INTO clinic.lines SELECT i, 5 FROM generate_series(0, 999) AS i;
        CREATE TABLE clinic.places (region text, capital text);
        INSERT INTO clinic.places VALUES ('north', 'Umea'), ('south', 'Lund');
        CREATE VIEW clinic.dice AS SELECT 1 AS person, random() AS x;
        CREATE MATERIALIZED VIEW clinic.kept AS SELECT person, cost FROM clinic.visits;
        CREATE FOREIGN DATA WRAPPER far; CREATE SERVER far FOREIGN DATA WRAPPER far;
        CREATE FOREIGN TABLE clinic.far (person int) SERVER far;
        CREATE TABLE clinic.parted (person int) PARTITION BY RANGE (person);
        CREATE FOREIGN TABLE clinic.part PARTITION OF clinic.parted FOR VALUES FROM (0) TO (9) SERVER far;
        GRANT SELECT ON clinic.kept, clinic.far, clinic.parted, clinic.part TO analyst;
        GRANT SELECT ON clinic.visits, clinic.people, clinic.lines, clinic.places, clinic.dice TO analyst;
        """
    )
    yield "clinic"
    connection.execute(
        "DROP SCHEMA clinic CASCADE; DROP FOREIGN DATA WRAPPER far CASCADE;"
        " DROP OWNED BY analyst; DROP ROLE analyst"
    )


@pytest.fixture
def address(server: Server, clinic: str) -> str:
    """The address of the database, for a role that may only read."""
    parts = dict(part.split("=", 1) for part in server.address.split())
    return f"postgresql://analyst@/{parts['dbname']}?host={quote(parts['host'], safe='')}"


def _connect(address: str, table: Any = "clinic.visits", **more: Any) -> sf.Database:
    given: dict[str, Any] = {"unit": "person", "columns": COLUMNS, "budget": BUDGET, **CAPS, **more}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return sf.connect(address, table=table, **given)


def _near(release: Any, column: str) -> list[float]:
    return [round(float(value)) for value in release.to_arrow().column(column).to_pylist()]


def test_exact_numbers_are_read_exactly_and_keys_are_not_shown(address: str, connection: Any) -> None:
    """Programs tell psycopg to read `numeric` as a float, for all their connections."""
    import psycopg
    from psycopg.types.numeric import NumericBinaryLoader

    class AsFloat(NumericBinaryLoader):
        def load(self, data: Any) -> Any:
            return float(super().load(data))

    connection.execute("CREATE TABLE clinic.far_sums (person int, kind numeric(5,2), x bigint)")
    connection.execute(f"INSERT INTO clinic.far_sums VALUES (1, 1.5, {2**53 - 1}), (2, 1.5, {2**53 - 1})")
    connection.execute("GRANT SELECT ON clinic.far_sums TO analyst")
    before = psycopg.adapters.get_loader(psycopg.adapters.types["numeric"].oid, psycopg.pq.Format.BINARY)
    assert before is not None
    psycopg.adapters.register_loader("numeric", AsFloat)
    try:
        db = _connect(address, "clinic.far_sums", columns={"x": sf.between(-(2**53), 2**53)})
        replay = planned(Asked("SELECT kind, SUM(x) AS n FROM far_sums GROUP BY kind", {}), db.catalog)
        [groups] = db.backend.run(replay.query).reveal()
    finally:
        psycopg.adapters.register_loader("numeric", before)
    assert [type(value) for (value,) in groups.keys] == [Decimal]
    assert "1.5" not in repr(groups.keys)


def test_questions_are_answered_with_joins_public_tables_and_paths_to_the_unit(address: str) -> None:
    """False alarm below 1e-9: the noise of the sum has a scale of 1, that of counts one of at most 0.25."""
    names = {name: f"clinic.{name}" for name in ("visits", "people", "lines")}
    unit = {"visits": "person", "people": "who", "lines": "visit -> visits.id -> person"}
    db = _connect(
        address,
        names,
        unit=unit,
        protects="person",
        columns={**COLUMNS, "people.age": sf.between(0, 100), "lines.price": sf.between(0, 10)},
        public={"places": "clinic.places"},
    )
    asked = [
        ("SELECT region, COUNT(*) AS n FROM visits GROUP BY region ORDER BY region", [250, 750]),
        ("SELECT MONTHNAME(DATE '2024-01-01') AS m, COUNT(*) AS n FROM visits GROUP BY 1", [1000]),
        ("SELECT COUNT(DISTINCT person) AS n FROM visits", [500]),
        ("SELECT COUNT(*) AS n FROM visits v JOIN people p ON v.person = p.who WHERE p.age < 50", [520]),
        ("SELECT SUM(price) AS n FROM lines", [5000]),
        (f"{COUNT} v JOIN places c ON v.region = c.region WHERE c.capital = 'Umea'", [250]),
    ]
    for text, expected in asked:
        found = _near(db.sql(text, epsilon=100).release(), "n")
        near = [abs(a - b) <= max(12, b // 125) for a, b in zip(found, expected, strict=True)]
        assert all(near), (text, found)
    kept = _connect(address, "clinic.kept", columns=None)
    assert abs(_near(kept.sql("SELECT COUNT(*) AS n FROM kept", epsilon=100).release(), "n")[0] - 1000) <= 12
    exact = db.sql("SELECT capital FROM places ORDER BY capital").release()
    assert exact.to_arrow().column("capital").to_pylist() == ["Lund", "Umea"]


def test_a_project_file_names_the_database_by_a_variable(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "sfumato.toml"
    file.write_text(
        """
        ledger = "people.ledger"
        [sources.clinic]
        environment = "CLINIC_ADDRESS"
        [tables.visits]
        source = "clinic"
        table = "clinic.visits"
        unit = "person"
        max_groups = 1
        max_rows = 2
        [budget]
        epsilon = 100
        delta = 1e-6
        """
    )
    Ledger.open(tmp_path / "people.ledger").close()
    with pytest.raises(SfumatoError, match="CLINIC_ADDRESS"):
        sf.open(file)
    monkeypatch.setenv("CLINIC_ADDRESS", address)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        [found] = _near(sf.open(file).sql(COUNT, epsilon=50).release(), "n")
    assert abs(found - 1000) < 20


@pytest.mark.parametrize(
    "written",
    [
        '[sources.clinic]\naddress = "postgresql://me:secret@h/d"',
        '[sources]\nclinic = { adress = "host=h password=secret" }',
        'source = { clinic = "postgresql://me:secret@h/d" }',
        '[tables.u]\npath = ["postgresql://me:secret@h/d"]',
        '[sources.clinic]\naddress = "postgresql://me:secret@h/d',
        "[sources.clinic]\naddress = me:secret@h",
    ],
)
def test_a_password_in_a_project_file_is_refused_and_not_shown(tmp_path: Path, written: str) -> None:
    file = tmp_path / "sfumato.toml"
    file.write_text(f'ledger = "l"\n{written}\n[tables.t]\nsource = "clinic"\nunit = "u"\n')
    with pytest.raises(ProjectRefused, match=r"no password|not TOML") as raised:
        sf.open(file)
    assert "secret" not in str(raised.value) + repr(raised.value)


@pytest.mark.parametrize(
    ("given", "table", "match"),
    [
        ("postgresql://me:secret@127.0.0.1:1/x", "t", "no server listens"),
        ("postgresql://me:secret@[::1/x?no", "t", "address cannot be read"),
        ("postgresql://me:secret@h/x?secret=\0", "t", "cannot be reached"),
        (None, "clinic.dice", "a view or a foreign table"),
        (None, "visits", r"`visits` is not there(.|\n)*mean clinic.visits"),
        (None, "clinic.far", "a view or a foreign table"),
        (None, "clinic.parted", "parts that are foreign tables"),
        (None, None, "say which table"),
        (None, "a.b.c", "not the name of a table"),
    ],
)
def test_bad_addresses_and_tables_are_refused_without_a_secret(
    address: str, given: str | None, table: Any, match: str
) -> None:
    with pytest.raises(InvalidArgument, match=match) as raised:
        _connect(given or address, table, columns=None)
    assert "secret" not in str(raised.value) + repr(raised.value) and raised.value.__context__ is None


def test_what_needs_rows_or_memory_is_refused_by_name(address: str) -> None:
    with pytest.raises(InvalidArgument, match="`memory` is not for PostgreSQL"):
        _connect(address, memory="1GB")
    db = _connect(address)
    with pytest.raises(Unsupported, match="training on tables of PostgreSQL"):
        LinearRegression(label="cost", features=["region"], epsilon=1).fit(db.table("visits"))
    assert not db.ledger.history()
    backend = db.backend
    for asked in (backend.row_hash, lambda: backend.parts("visits"), lambda: backend.training_rows(None)):  # type: ignore[arg-type]
        with pytest.raises(Unsupported, match="PostgreSQL"):
            asked()


@pytest.fixture
def short(connection: Any, clinic: str) -> Iterator[str]:
    """A table that a test may change or drop."""
    connection.execute(f"{SHORT}; INSERT INTO clinic.short VALUES (1, 2)")
    yield "clinic.short"
    connection.execute("DROP TABLE IF EXISTS clinic.short")


def _short(address: str, **more: Any) -> sf.Database:
    return _connect(address, "clinic.short", columns={"v": sf.between(0, 9)}, **more)


@pytest.mark.parametrize(
    ("between", "match"),
    [
        ("DROP TABLE clinic.short", "changed since it was opened, or is gone"),
        (f"DROP TABLE clinic.short; {SHORT}", "changed since it was opened, or is gone"),
        ("ALTER TABLE clinic.short ALTER v TYPE bigint", "changed since it was opened, or is gone"),
        ("REVOKE SELECT ON clinic.short FROM analyst", "cannot be read"),
    ],
)
def test_what_happens_before_the_charge_is_said_and_costs_nothing(
    address: str, connection: Any, short: str, between: str, match: str
) -> None:
    db = _short(address)
    question = db.sql("SELECT COUNT(*) AS n FROM short", epsilon=1)
    connection.execute(between)
    with pytest.raises(InvalidArgument, match=match) as raised:
        question.release()
    assert raised.value.__context__ is None
    assert not db.ledger.history()


def test_a_backend_process_that_is_killed_after_the_charge_is_one_failure(
    address: str, connection: Any, short: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The charge stays, nothing of the server's text is shown, and the next question is answered."""
    db = _short(address)
    run = type(db.backend).run

    def killed(self: Any, query: Any, **more: Any) -> Any:
        guarded = self._guarded

        def act(action: Any) -> Any:
            def kill_first(cursor: Any) -> Any:
                connection.execute("SELECT pg_terminate_backend(%s)", (cursor.connection.info.backend_pid,))
                return action(cursor)

            return guarded(kill_first)

        monkeypatch.setattr(self, "_guarded", act)
        return run(self, query, **more)

    with monkeypatch.context() as patch:
        patch.setattr(type(db.backend), "run", killed)
        with pytest.raises(EngineFailure) as raised:
            db.sql("SELECT COUNT(*) AS n FROM short", epsilon=1).release()
    assert raised.value.__context__ is None and len(db.ledger.history()) == 1
    monkeypatch.undo()
    assert db.sql("SELECT COUNT(*) AS n FROM short", epsilon=1).release() is not None


def test_a_server_that_is_gone_is_noticed_before_the_charge(address: str, short: str) -> None:
    db = _short(address)
    question = db.sql("SELECT COUNT(*) AS n FROM short", epsilon=1)
    db.backend._tables._address = "postgresql://me:secret@127.0.0.1:1/x"  # type: ignore[attr-defined]
    with pytest.raises(EngineStopped) as raised:
        question.release()
    assert raised.value.__context__ is None and not db.ledger.history()


def test_a_table_is_known_again_and_its_changes_are_noticed(
    address: str, connection: Any, short: str, tmp_path: Path
) -> None:
    ledger = tmp_path / "l.ledger"
    db = _short(address, ledger=ledger)
    first = db.backend.data_version()
    assert db.backend.data_version() == first
    connection.execute("INSERT INTO clinic.short VALUES (2, 3)")
    connection.execute("SELECT pg_stat_force_next_flush()")
    connection.execute("SELECT 1")
    assert db.backend.data_version() != first
    db.sql("SELECT COUNT(*) AS n FROM short", epsilon=1).release()
    connection.execute("ALTER TABLE clinic.short RENAME TO other")
    try:
        with pytest.raises(SfumatoError, match="`other`"):  # the same table, as other people's
            _connect(address, "clinic.other", unit="v", columns=None, ledger=ledger, distinct=True)
    finally:
        connection.execute("ALTER TABLE clinic.other RENAME TO short")


def test_a_role_that_may_more_is_warned_of(address: str, short: str) -> None:
    more = {"unit": "person", "budget": BUDGET}
    with pytest.warns(UserWarning, match="may read other tables") as warned:
        sf.connect(address, table=short, **more)
    assert warned[0].filename == __file__
    with pytest.warns(UserWarning, match="superuser"):
        sf.connect(address.replace("analyst@", "postgres@"), table=short, **more)
