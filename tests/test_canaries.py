"""No private value leaves but through noise: not in a log, an error, a warning, a progress line or a file.

One person has values that nothing else looks like. The whole product is used on them, well and badly,
and all that it says, shows and writes is searched for them, in many spellings. A second half plants leaks of
every kind and sees them found.

False alarms: the group of that one person is shown by chance with probability 1e-11 at most (all of the
delta for keys); a canary that arises from random bytes, 64 bits or more in some millions, is rarer still.
Power: any value in the clear, in base64, hexadecimal, UTF-16, as the bits of a number, or hashed without key.
"""

from __future__ import annotations

import io
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow.parquet as pq
import pytest

import sfumato as sf
from sfumato.backends.duckdb.engine import Engine
from sfumato.errors import EngineFailure, SfumatoError
from sfumato.ledger import Ledger
from tests.canaries import CANARIES, CITY, PROJECT, TEXT, Watch, forms, make_world, overheard
from tests.cli.programs import environment, sfumato

TABLES = {"people.parquet", "visits.csv"}  # where the canaries live: the only files that may hold them

ANSWERED = [
    "SELECT COUNT(*) AS n, SUM(income) AS income, AVG(weight) AS weight, MEDIAN(age) AS age FROM people",
    "SELECT city, COUNT(*) AS n FROM people GROUP BY city ORDER BY n DESC",
    "SELECT code, name, born, COUNT(*) AS n FROM people GROUP BY code, name, born",
    "SELECT n, COUNT(*) AS m FROM (SELECT person, COUNT(*) AS n FROM people GROUP BY person) GROUP BY n",
    "SELECT seen, AVG(income) AS income FROM people GROUP BY seen",
    "SELECT region, city, COUNT(*) AS n FROM people GROUP BY ROLLUP (region, city)",
    "SELECT region, MAX(income) AS most, QUANTILE(income, 0.9) AS q FROM people GROUP BY region",
    "SELECT COUNT(DISTINCT name) AS names, COUNT(DISTINCT city) AS cities FROM people",
    "SELECT COUNT(*) AS n FROM people WHERE CAST(name AS INTEGER) > 3 OR 1 / (age - 37) > 0",
    "SELECT COUNT(*) AS n FROM people WHERE name LIKE 'C%' AND income > 500000 AND born < DATE '1920-01-01'",
    "SELECT country, COUNT(*) AS n FROM people JOIN regions ON region = regions.name GROUP BY country",
    "SELECT note, SUM(cost) AS cost FROM visits GROUP BY note",
    "SELECT HISTOGRAM(age > 30) AS ages, VAR_SAMP(income) AS spread FROM people",
    "SELECT city, COUNT(*) AS n, CAST(city AS INTEGER) AS none FROM people GROUP BY city",
]
REFUSED = [
    "SELECT person, COUNT(*) AS n FROM people GROUP BY person",
    "SELECT name FROM people",
    "SELECT * FROM people",
    "SELECT MAX(city) AS c, COUNT(*) AS n FROM people",
    "SELECT COUNT(*) FROM people WHERE nome = 'x'",
    "SELECT COUNT(*) FROM people WHERE name = (SELECT MIN(name) FROM people)",
    "SELECT SUM(code) AS s FROM people",
    "SELECT COUNT(*) FROM people GROUP BY",
    "DROP TABLE people",
    "SELECT error(name) FROM people",
    "SELECT COUNT(*) FROM read_parquet('people.parquet')",
    "SELECT GETENV('HOME'), COUNT(*) FROM people",
]

# The engine's own error about it quotes a name.
QUOTING = "SELECT CAST(name AS INTEGER) FROM people WHERE name LIKE 'CAN%'"


@pytest.fixture
def watch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Iterator[Watch]:
    """Watch streams, logs, warnings and files, in a home of its own; the test says what to conclude."""
    for name in ("HOME", "TMPDIR", "XDG_STATE_HOME"):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.delenv("SFUMATO_TRACEBACK", raising=False)
    return Watch()


def conclude(watch: Watch, folder: Path, capfd: pytest.CaptureFixture[str]) -> list[tuple[str, str, str]]:
    """Return all canaries in what was heard, on streams, and in every file that is not a private table."""
    streams = capfd.readouterr()
    watch.see("standard output", streams.out)
    watch.see("standard error", streams.err)
    watch.see_files(folder, but=TABLES)
    return watch.found()


def attempt(watch: Watch, place: str, action: Callable[[], Any], *, frames: bool = True) -> Any:
    """Do something, and keep what it returns or raises."""
    try:
        result = action()
    except Exception as error:
        watch.see_error(place, error, frames=frames)
        return error
    watch.see(place, result)
    return result


def use(watch: Watch, db: sf.Database) -> None:
    """Ask all there is to ask from Python."""
    watch.see("a database", db, db.catalog, db.ledger, db.backend, db.budget)
    for text in ANSWERED:
        question = attempt(watch, f"question {text}", lambda text=text: db.sql(text, epsilon=0.5))
        assert isinstance(question, sf.Question), text
        attempt(watch, f"explain {text}", question.explain)
        attempt(watch, f"losses {text}", lambda question=question: question.losses(epsilon=0.1).explain())
        priced = attempt(watch, f"price {text}", question.priced)
        exact = db.backend.run(priced.boundings[0].query)
        watch.see("exact values", exact, [exact], {"exact": exact}, exact.reveal(), exact.reveal()[0].members)
        assert str(exact.reveal()[0]) == "<exact groups: hidden>"
        release = attempt(
            watch, f"release {text}", lambda question=question, text=text: question.release(key=text)
        )
        assert isinstance(release, sf.Release), (text, release)
        watch.see("a release", release.to_json(), release.receipt, release.cost, release.tables)
        watch.see("frames", release.to_pandas(), release.to_polars(), release.to_arrow())
        attempt(watch, "a picture", release.plot)
        attempt(watch, "a notebook", release._repr_html_)
    for text in REFUSED:
        refused = attempt(watch, f"refusal of {text}", lambda text=text: db.sql(text, epsilon=0.5).release())
        assert isinstance(refused, SfumatoError), text
    asked = db.sql(ANSWERED[0], epsilon=500)
    assert isinstance(attempt(watch, "too dear", asked.release), sf.errors.BudgetExceeded)
    for column in ("income", "weight", "code", "born", "name", "nome"):
        attempt(watch, f"bounds {column}", lambda column=column: db.bounds(column, epsilon=0.1).release())
    attempt(watch, "caps", lambda: db.caps("people", by="city", epsilon=0.1).release())
    attempt(watch, "losses", lambda: db.sql(ANSWERED[0], epsilon=0.1).losses(epsilon=0.1).release())
    attempt(watch, "declared", lambda: db.declare({"income": sf.one_of("a")}, table="people"))
    ledger, out = db.ledger, io.StringIO()
    ledger.export(out)
    watch.see("the ledger", out.getvalue(), ledger.history(), ledger.balance("person"), ledger.anchor())


def engine_that_quotes(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Let every computation end in an error of the engine's own whose text quotes a private value."""
    quoted: list[str] = []

    def fail(engine: Engine, sql: str) -> Any:
        try:
            engine._cursor.execute(
                "SELECT CAST(name AS INTEGER) FROM people WHERE name LIKE 'CAN%'"
            ).fetchall()
        except Exception as error:
            quoted.append(str(error))
            raise

    monkeypatch.setattr(Engine, "table", fail)
    return quoted


# -- nothing is found ------------------------------------------------------------------------


def test_in_python(tmp_path: Path, watch: Watch, capfd: pytest.CaptureFixture[str]) -> None:
    path = make_world(tmp_path)
    with overheard(watch):
        db = sf.open(path)
        use(watch, db)
        conclude(watch, tmp_path, capfd)  # while the ledger is open: with its write-ahead log
    assert conclude(watch, tmp_path, capfd) == []
    assert {"the file people.ledger-wal", "the file people.ledger-key"} <= watch.places
    assert "Bergen" in watch and "error[SF301]" in watch, "large groups and refusals were heard"
    assert "is charged epsilon 0.5" in watch and ": answered" in watch, "logs were heard"


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_with_an_object(tmp_path: Path, watch: Watch, capfd: pytest.CaptureFixture[str], kind: str) -> None:
    """Its version is a hash of its contents: who knows all but one value could test guesses about it."""
    make_world(tmp_path)
    table = pq.read_table(tmp_path / "people.parquet")
    people = {"pandas": table.to_pandas, "polars": lambda: pl.from_arrow(table), "arrow": lambda: table}[
        kind
    ]()
    with overheard(watch):
        db = sf.connect(
            people,
            name="people",
            unit="person",
            max_groups=1,
            max_rows=1,
            budget=sf.Budget(epsilon=3, delta=1e-9, keys_delta=1e-11),
            ledger=tmp_path / "other.ledger",
        )
        release = db.sql(ANSWERED[1], epsilon=0.5).release()
        watch.see("all", db, release, release.to_json(), db.ledger.history())
    assert conclude(watch, tmp_path, capfd) == []
    assert db.backend.data_version() not in watch and db.backend._source.digest("people") not in watch


def test_when_the_engine_fails(
    tmp_path: Path, watch: Watch, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    db = sf.open(make_world(tmp_path))
    quoted = engine_that_quotes(monkeypatch)
    with overheard(watch):
        for text in ANSWERED:
            failed = attempt(
                watch, f"failure of {text}", lambda text=text: db.sql(text, epsilon=0.1).release()
            )
            assert isinstance(failed, EngineFailure), failed
            assert failed.__cause__ is failed.__context__ is None
        for more in ((), ("--json-errors",), ("--format", "json")):
            done = sfumato(tmp_path, "query", ANSWERED[1], "-e", "0.1", *more)
            assert done.returncode == 6
            watch.see("the command line", done.stdout, done.stderr)
        asked = sfumato(tmp_path, "shell", "-e", "0.1", given=f"{ANSWERED[1]};\n")
        watch.see("the shell", asked.stdout, asked.stderr)
    assert all(TEXT in text for text in quoted) and len(quoted) >= len(ANSWERED)
    assert "charged, and not answered (EngineFailure)" in watch, "logs were heard"
    assert conclude(watch, tmp_path, capfd) == []


def test_when_a_file_is_cut_off_between_two_questions(
    tmp_path: Path, watch: Watch, capfd: pytest.CaptureFixture[str]
) -> None:
    db = sf.open(make_world(tmp_path))
    whole = (tmp_path / "people.parquet").read_bytes()
    with overheard(watch):
        for data in (whole[: len(whole) // 2], whole[:-4], b"", TEXT.encode() * 1000):
            (tmp_path / "people.parquet").write_bytes(data)
            failed = attempt(watch, "cut off", lambda: db.sql(ANSWERED[0], epsilon=0.1).release())
            assert isinstance(failed, SfumatoError), failed
    assert conclude(watch, tmp_path, capfd) == []


def test_when_tables_cannot_be_opened(
    tmp_path: Path, watch: Watch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Engines quote the line that they stumble over. Who gave the table knows it; a log must not."""
    mixed = [1, 2.5, TEXT, b"x"]
    makers = {
        "bad.csv": f'person,income\n1,2\n2,"{TEXT}\n',
        "worse.csv": f"person,income\n1,2\n{TEXT},3,4,5\n" * 50,
        "bad.parquet": TEXT,
        "cut.parquet": f"PAR1{TEXT}PAR1",
        "bad.duckdb": TEXT * 500,
        "bad.txt": TEXT,
    }
    sources: dict[str, Any] = {"pandas": pd.DataFrame({"person": mixed, "income": mixed})}
    for name, text in makers.items():
        (tmp_path / name).write_text(text)
        sources[name] = tmp_path / name
    (tmp_path / "binary.csv").write_bytes(b"person,income\n1,\xff\xfe" + TEXT.encode())
    sources["binary.csv"] = tmp_path / "binary.csv"
    budget = sf.Budget(epsilon=3)
    with overheard(watch):
        for name, source in sources.items():
            opened = attempt(
                watch,
                f"opening {name}",
                lambda source=source: sf.connect(source, name="t", unit="person", budget=budget),
                frames=False,  # the caller's own table is among them
            )
            if isinstance(source, Path):
                done = sfumato(tmp_path, "init", str(source), "--unit", "person", "--yes", "--force")
                watch.see(f"init {name}", done.stdout, done.stderr)
            assert name != "bad.parquet" or isinstance(opened, SfumatoError)
    for name in sources:
        (tmp_path / name).unlink(missing_ok=True)
    assert conclude(watch, tmp_path, capfd) == []


@pytest.mark.soak
def test_on_the_command_line(tmp_path: Path, watch: Watch, capfd: pytest.CaptureFixture[str]) -> None:
    make_world(tmp_path)
    (tmp_path / "bad.toml").write_text(PROJECT.replace("[0, 200000]", "[200000, 0]"))
    (tmp_path / "worse.toml").write_text(PROJECT + "epsilon =\n")
    (tmp_path / "unfit.toml").write_text(
        PROJECT.replace("region = { one_of", "name = { between = [0, 1] }\nregin = { one_of")
    )
    commands: list[tuple[str, ...]] = [("check",), ("check", "--format", "json"), ("budget",)]
    commands += [("check", "-p", f"{name}.toml") for name in ("bad", "worse", "unfit", "none")]
    for text in (*ANSWERED[:4], *REFUSED):
        commands += [("explain", text, "-e", "0.2"), ("query", text, "-e", "0.2", "--dry-run")]
        commands += [("query", text, "-e", "0.2", "--format", style) for style in ("json", "csv", "markdown")]
    commands += [
        ("query", ANSWERED[1], "-e", "500"),
        ("query", ANSWERED[1], "-e", "500", "--json-errors"),
        ("query", ANSWERED[1], "--error", "1e-9"),
        ("query", ANSWERED[1], "-e", "0.2", "--format", "parquet", "--output", "answer.parquet"),
        ("bounds", "income", "-e", "0.5"),
        ("bounds", "weight", "-e", "0.5", "--format", "json"),
        ("bounds", "name", "-e", "0.5"),
        ("ledger", "history"),
        ("ledger", "history", "--format", "json"),
        ("ledger", "verify"),
        ("ledger", "anchor"),
        ("ledger", "export", "out.jsonl"),
        ("budget", "--format", "json"),
    ]
    exits = set()
    with overheard(watch):
        for words in commands:
            done = sfumato(tmp_path, *words)
            exits.add(done.returncode)
            watch.see(" ".join(words), done.stdout, done.stderr)
        number = json.loads(sfumato(tmp_path, "ledger", "history", "--format", "json").stdout)
        watch.see("the history", json.dumps(number))
    assert exits == {0, 2, 3, 4}
    assert conclude(watch, tmp_path, capfd) == []
    assert {"the file out.jsonl", "the file answer.parquet"} <= watch.places


DRIVER = """
import logging, sys, warnings
logging.basicConfig(level=logging.DEBUG, stream=sys.stderr)
logging.captureWarnings(True)
from sfumato.cli import main
main()
"""
FAILING = """
from sfumato.backends.duckdb.engine import Engine
def fail(engine, sql):
    engine._cursor.execute("SELECT CAST(name AS INTEGER) FROM people WHERE name LIKE 'CAN%'").fetchall()
Engine.table = fail
"""
BROKEN = """
import sfumato.pipeline.priced_query
def fail(exact, *_, **__):
    raise ValueError(f"cannot add noise to {list(exact.reveal()[0].keys)}")
sfumato.pipeline.priced_query.add_noise = fail
"""


@pytest.mark.parametrize(
    ("before", "exit_code"),
    [
        pytest.param("", 0, id="well", marks=pytest.mark.soak),
        pytest.param(FAILING, 6, id="engine", marks=pytest.mark.soak),
        pytest.param(BROKEN, 1, id="defect"),
    ],
)
def test_in_processes_that_log_everything(tmp_path: Path, watch: Watch, before: str, exit_code: int) -> None:
    """In a fresh process, with every log and warning on standard error; and a script by a pipe."""
    make_world(tmp_path)
    home = {name: str(tmp_path / name) for name in ("HOME", "TMPDIR", "XDG_STATE_HOME")}
    script = f".tables\n.explain {ANSWERED[0]}\n{ANSWERED[1]};\n.format json\n{ANSWERED[0]};\n.budget\n"
    for words, given in ((("query", ANSWERED[1], "-e", "0.3"), None), (("shell", "-e", "0.3"), script)):
        done = subprocess.run(
            [sys.executable, "-X", "dev", "-W", "always", "-c", before + DRIVER, *words],
            cwd=tmp_path,
            input=None if given is None else given.encode(),
            stdin=subprocess.DEVNULL if given is None else None,
            capture_output=True,
            env=environment(**home),
            timeout=120,
            check=False,
        )
        assert done.returncode == exit_code, done.stderr.decode()
        watch.see(f"process {words[0]}", done.stdout, done.stderr)
    watch.see_files(tmp_path, but=TABLES)
    assert watch.found() == []
    assert "Bergen" in watch or exit_code


# -- and it would be found -------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted(CANARIES))
def test_every_form_is_found(name: str) -> None:
    for form, needle in forms(CANARIES[name]).items():
        watch = Watch()
        watch.see("somewhere", b"\x00before" + needle + b"after")
        assert ("somewhere", name, form) in watch.found()
    assert len(forms(CANARIES[name])) >= 8


def plant_in_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def say(error: EngineFailure) -> None:
        SfumatoError.__init__(error, f"the engine stumbled over {TEXT}")

    monkeypatch.setattr(EngineFailure, "__init__", say)


def plant_in_a_context(monkeypatch: pytest.MonkeyPatch) -> None:
    from sfumato.backends.duckdb import DuckDBBackend

    def guarded(backend: Any, action: Any) -> Any:
        try:
            return action()
        except Exception:
            raise EngineFailure from None

    monkeypatch.setattr(DuckDBBackend, "_guarded", guarded)


def plant_in_a_log(monkeypatch: pytest.MonkeyPatch) -> None:
    import logging

    def fail(engine: Engine, sql: str) -> Any:
        rows = engine._cursor.execute("SELECT city FROM people").fetchall()
        logging.getLogger("some.library").debug("rows: %s", rows)
        raise ValueError

    monkeypatch.setattr(Engine, "table", fail)


def plant_on_a_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    import os

    def fail(engine: Engine, sql: str) -> Any:
        os.write(2, CITY.encode("utf-16-le"))
        raise ValueError

    monkeypatch.setattr(Engine, "table", fail)


def plant_in_the_ledger(monkeypatch: pytest.MonkeyPatch) -> None:
    reserve = Ledger.reserve

    def told(ledger: Ledger, *arguments: Any, **named: Any) -> Any:
        return reserve(ledger, *arguments, **{**named, "request_hash": TEXT.encode().hex()})

    monkeypatch.setattr(Ledger, "reserve", told)


def plant_in_a_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def spill(engine: Engine, sql: str) -> Any:
        import os
        from base64 import b64encode

        (Path(os.environ["TMPDIR"]) / "spilled").write_bytes(b64encode(b"rows:" + CITY.encode()))
        raise ValueError

    monkeypatch.setattr(Engine, "table", spill)


@pytest.mark.parametrize(
    ("plant", "place"),
    [
        (plant_in_an_error, "the question"),
        (plant_in_a_context, "the question"),
        (plant_in_a_log, "a log"),
        (plant_on_a_stream, "standard error"),
        (plant_in_the_ledger, "the file people.ledger"),
        (plant_in_a_file, "the file spilled"),
    ],
)
def test_a_planted_leak_is_found(
    tmp_path: Path,
    watch: Watch,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    plant: Callable[[pytest.MonkeyPatch], None],
    place: str,
) -> None:
    db = sf.open(make_world(tmp_path))
    if plant in (plant_in_an_error, plant_in_a_context):
        engine_that_quotes(monkeypatch)
    plant(monkeypatch)
    with overheard(watch):
        attempt(watch, "the question", lambda: db.sql(ANSWERED[1], epsilon=0.1).release())
    db.ledger.close()
    assert place in {where.split(":")[0] for where, _, _ in conclude(watch, tmp_path, capfd)}
