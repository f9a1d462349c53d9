"""Eight analysts on one project: what a second one would find, and no longer does."""

from __future__ import annotations

import csv
import io
import json
import logging
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.backends.duckdb import DuckDBBackend
from sfumato.catalog import Catalog
from sfumato.errors import InvalidArgument, LedgerError, QueryRefused
from sfumato.ledger import OWNER, Ledger
from sfumato.pipeline import answer
from tests.cli.programs import PROJECT, make_project, sfumato
from tests.ledger.accounts import opened, reserve

NAMES = ("anna", "bob", "cleo", "dan", "eve", "finn", "gina", "hugo")
GRANTS = "".join(f"\n[policy.analysts.{name}]\nepsilon = 0.5\n" for name in NAMES)
COUNT = "SELECT COUNT(*) AS n FROM people"
HOUR = 3_600_000


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return make_project(tmp_path, PROJECT + GRANTS)


def test_a_key_is_its_analysts_and_tells_nothing_of_anothers(path: Path) -> None:
    """Each of eight uses one key for another question; each gets its own answer, twice, and pays once."""
    told = {}
    for number, name in enumerate(NAMES):
        question = sf.open(path, analyst=name).sql(f"{COUNT} WHERE age > {number}", epsilon=0.01)
        told[name] = question.release(key="monday")
        assert question.release(key="monday").to_json() == told[name].to_json()
    assert len({release.receipt["reservation"] for release in told.values()}) == 8
    with Ledger.open(path.parent / "people.ledger") as ledger:
        assert len(ledger.history()) == 8 and ledger.verify() == ledger.head()


def test_the_error_of_a_used_key_names_nothing_but_ones_own(path: Path) -> None:
    anna, bob = (sf.open(path, analyst=name) for name in NAMES[:2])
    anna.sql(COUNT, epsilon=0.01).release(key="monday")
    own = bob.sql(COUNT, epsilon=0.02).release(key="monday")
    with pytest.raises(LedgerError) as refusal:
        bob.sql(COUNT, epsilon=0.03).release(key="monday")
    assert refusal.value.code == "SF606"
    assert str(refusal.value.sequence) == own.receipt["reservation"] and "anna" not in str(refusal.value)


# -- grants: the file seeds them, the ledger rules ------------------------------------------


def test_a_lowered_grant_does_not_come_back_with_an_older_file(path: Path) -> None:
    sf.open(path, analyst="anna").sql(COUNT, epsilon=0.1).release()
    lowered = sf.Budget(epsilon=0.15, delta=1e-6)
    with Ledger.open(path.parent / "people.ledger") as ledger:
        ledger.grant("person", "anna", lowered)
    for _ in range(2):
        older = sf.open(path, analyst="anna")
        assert older.ledger.grant_balance("person", "anna").budget == lowered
        with pytest.raises(sf.errors.BudgetExceeded):
            older.sql(COUNT, epsilon=0.2).release()
    sf.open(path, analyst="bob").sql(COUNT, epsilon=0.1).release()  # whose opening writes the other grants
    assert sf.open(path, analyst="anna").ledger.grant_balance("person", "anna").budget == lowered


def test_check_shows_where_the_ledger_and_the_file_differ(path: Path) -> None:
    sf.open(path, analyst="anna").sql(COUNT, epsilon=0.1).release()
    assert "grant:" not in sfumato(path.parent, "check").stdout
    with Ledger.open(path.parent / "people.ledger") as ledger:
        ledger.grant("person", "anna", sf.Budget(epsilon=0.15, delta=1e-6))
        ledger.grant("person", "ida", sf.Budget(epsilon=0.25, delta=1e-6))
    shown = sfumato(path.parent, "check").stdout
    assert "`anna` has epsilon 0.15" in shown and "the file says epsilon 0.5" in shown
    assert "`ida` has epsilon 0.25" in shown and "bob" not in shown
    sf.open(path, analyst="ida").sql(COUNT, epsilon=0.1).release()  # the ledger's word, not the file's
    granted = sfumato(path.parent, "ledger", "grant", "anna")
    assert granted.returncode == 0 and "epsilon 0.5" in granted.stdout
    assert "anna" not in json.dumps(
        json.loads(sfumato(path.parent, "check", "--format", "json").stdout)["grants"]
    )
    assert sfumato(path.parent, "ledger", "grant", "zoe").returncode != 0


def test_ones_grant_does_not_touch_anothers_key(path: Path) -> None:
    bob = sf.open(path, analyst="bob").sql(COUNT, epsilon=0.1).release(key="monday")
    path.write_text(
        path.read_text().replace(
            "[policy.analysts.anna]\nepsilon = 0.5", "[policy.analysts.anna]\nepsilon = 0.4"
        )
    )
    again = sf.open(path, analyst="bob").sql(COUNT, epsilon=0.1).release(key="monday")
    assert again.to_json() == bob.to_json()


def test_the_fingerprint_of_a_catalog_holds_no_grants_and_all_else(path: Path) -> None:
    catalog = sf.open(path, analyst="anna").catalog
    fewer = replace(catalog, policy=replace(catalog.policy, analysts=()))
    lower = replace(catalog, policy=replace(catalog.policy, ceiling=1))
    assert catalog.policy.analysts
    assert fewer.fingerprint() == catalog.fingerprint() != lower.fingerprint()
    assert Catalog(catalog.tables[1:], catalog.policy).fingerprint() != catalog.fingerprint()


# -- memory is admitted before the charge --------------------------------------------------------


def test_of_questions_that_each_fit_alone_none_fails(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Eight ask at once. Whoever waits has not been charged; one after the other, all are answered."""
    databases = [sf.open(path, analyst=name) for name in NAMES]
    ledger, run, running = databases[0].ledger, DuckDBBackend.run, []

    def alone(self: DuckDBBackend, query: Any) -> Any:
        running.append(query)
        assert len(running) == 1, "two questions share the memory of one"
        assert sum(not entry.committed for entry in ledger.entries()) == 1, "who waits is charged already"
        try:
            return run(self, query)
        finally:
            running.clear()

    monkeypatch.setattr(DuckDBBackend, "run", alone)
    with ThreadPoolExecutor(8) as pool:
        asked = [pool.submit(db.sql(COUNT, epsilon=0.01).release) for db in databases for _ in range(2)]
        assert len({future.result(60).receipt["reservation"] for future in asked}) == 16
    assert all(entry.committed for entry in ledger.entries())


@pytest.mark.soak
def test_of_four_large_questions_none_runs_out_of_memory() -> None:
    """One takes most of the engine's memory. Where they declared less, three of four failed, charged."""
    people = 1_500_000
    frame = pa.table({"person": range(people), "key": [number % 700_000 for number in range(people)]})
    db = sf.connect(
        frame,
        name="people",
        unit="person",
        max_groups=1,
        max_rows=1,
        budget=sf.Budget(epsilon=100, delta=1e-6),
        memory="200MB",
    )
    question = db.sql("SELECT key, COUNT(*) AS n FROM people GROUP BY key", epsilon=1)
    question.release()
    with ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(question.release) for _ in range(4)]:
            assert future.result(300).columns == ("key", "n")


def test_small_questions_run_together_as_far_as_their_memory_goes(tmp_path: Path) -> None:
    """Two of 100 MB fit into 250 MB: the third waits, and is not charged until one is done."""
    text = PROJECT + '\n[engine]\nmemory = "250MB"\nquestion_memory = "100MB"\nseconds = 60\n'
    db = sf.open(make_project(tmp_path, text))
    inside, go = threading.Barrier(3), threading.Event()
    backend = db.backend

    class Watched:
        def __getattr__(self, name: str) -> Any:
            return getattr(backend, name)

        def run(self, query: Any) -> Any:
            if not go.is_set():
                inside.wait(30)
                go.wait(30)
            return backend.run(query)  # type: ignore[arg-type]

    watched = replace(db, backend=Watched())
    with ThreadPoolExecutor(3) as pool:
        asked = [pool.submit(watched.sql(COUNT, epsilon=0.01).release) for _ in range(3)]
        inside.wait(30)  # two are at work, both charged
        assert len(db.ledger.history()) == 2
        go.set()
        for future in asked:
            future.result(60)
    assert len(db.ledger.history()) == 3


def test_an_engine_that_stops_while_a_question_waits_is_noticed_before_the_charge(path: Path) -> None:
    db = sf.open(path, analyst="anna")

    class Stopping:
        stopped = False

        def __getattr__(self, name: str) -> Any:
            return getattr(db.backend, name)

        @contextmanager
        def admitted(self) -> Iterator[None]:
            self.stopped = True  # by the question before, while this one waited
            with db.backend.admitted():
                yield

        def data_version(self) -> str:
            if self.stopped:
                raise sf.errors.EngineStopped
            return db.backend.data_version()

    with pytest.raises(sf.errors.EngineStopped):
        replace(db, backend=Stopping()).sql(COUNT, epsilon=0.1).release()
    assert db.ledger.history() == ()


# -- who asks is said ------------------------------------------------------------------------


def test_the_owner_is_said_and_never_meant_by_none(path: Path) -> None:
    with pytest.raises(InvalidArgument) as refusal:
        sf.open(path, analyst=None)  # type: ignore[arg-type]
    assert refusal.value.place == "analyst"
    ledger = opened(None)
    with pytest.raises(InvalidArgument):
        reserve(ledger, analyst=None)
    with pytest.raises(TypeError):
        ledger.reserve("person", None, 0, "r", "1", "p")  # type: ignore[call-arg, arg-type]
    assert ledger.history() == ()
    db = sf.connect({"people": path.parent / "people.parquet"}, unit="person", budget=sf.Budget(epsilon=1))
    priced = db.sql(COUNT, epsilon=0.1, max_rows=1, max_groups=1).priced()
    with pytest.raises(TypeError):
        answer(priced, catalog=db.catalog, ledger=db.ledger, backend=db.backend)  # type: ignore[call-arg]
    answer(priced, catalog=db.catalog, ledger=db.ledger, backend=db.backend, analyst=OWNER)
    assert db.ledger.last_entry().analyst is None  # type: ignore[union-attr]


# -- what leaves ------------------------------------------------------------------------------


def test_dates_do_not_tell_how_long_the_data_took(tmp_path: Path) -> None:
    """Forty minutes pass between every reservation and its commit, and ten before the next."""
    clock = [1_763_340_000_000]
    with Ledger.open(tmp_path / "a", clock=lambda: clock[0]) as ledger:
        ledger.register("person", sf.Budget(epsilon=1))
        for _ in range(6):
            with reserve(ledger) as reservation:
                clock[0] += 40 * 60_000
                receipt = reservation.receipt("answer")
                reservation.commit(b"noisy")
            clock[0] += 10 * 60_000
            assert int(receipt["at"]) % HOUR == 0
        out = io.StringIO()
        ledger.export(out)
        bodies = [json.loads(json.loads(line)["body"]) for line in out.getvalue().splitlines()]
        dates = {int(body["sequence"]): int(body["at"]) for body in bodies}
        assert all(at % HOUR == 0 for at in dates.values()) and len(set(dates.values())) > 3
        for body in bodies:
            if body["kind"] == "committed":
                assert int(body["at"]) == dates[int(body["reservation"])]


def test_texts_in_csv_are_no_formulas_and_numbers_stay_numbers(tmp_path: Path) -> None:
    """A group's name, which came with the data, would run in the spreadsheet of whoever opens the export."""
    text = PROJECT.replace('["north", "south"]', '["=HYPERLINK(1)", "+1", "-1", "@x", "north"]')
    make_project(tmp_path, text)
    ask = 'SELECT region, COUNT(*) AS n, -COUNT(*) AS "=less" FROM people GROUP BY region'
    shown = sfumato(tmp_path, "query", ask, "-e", "1", "--format", "csv")
    assert shown.returncode == 0, shown.stderr
    header, *rows = csv.reader(io.StringIO(shown.stdout))
    assert header[0] == "region" and "'=less" in header
    assert {row[0] for row in rows} == {"'=HYPERLINK(1)", "'+1", "'-1", "'@x", "north"}
    less = header.index("'=less")
    assert all(float(row[1]) == -float(row[less]) for row in rows)
    assert any(row[less].startswith("-") for row in rows)


class Heard(logging.Handler):
    """Keeps what is logged."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@pytest.fixture
def heard() -> Iterator[Heard]:
    handler, root = Heard(), logging.getLogger()
    root.addHandler(handler)
    yield handler
    root.removeHandler(handler)


def test_parsing_leaves_the_loggers_alone(path: Path, heard: Heard, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also while it parses: another thread's own messages would be lost. And it says nothing itself."""

    def changed(self: logging.Logger, level: object) -> None:
        raise AssertionError("the level of a logger is the program's own")

    monkeypatch.setattr(logging.Logger, "setLevel", changed)
    monkeypatch.setattr(logging, "disable", changed)
    db = sf.open(path, analyst="anna")
    db.sql(COUNT, epsilon=0.1)
    for text in ("SELECT 1; SHOW TABLES", "SELECT COUNT(*) FROM people; VACUUM people", "EXPLAIN SELECT 1"):
        with pytest.raises(QueryRefused):
            db.sql(text)
    assert heard.lines == []
