"""Admission: questions wait for their memory in turn, and one that waits too long is refused, uncharged."""

from __future__ import annotations

import math
import os
import threading
import time
from pathlib import Path
from typing import Any

import duckdb
import psycopg
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

import sfumato as sf
from sfumato.backends import open_tables
from sfumato.backends.duckdb import admission
from sfumato.backends.duckdb.admission import Admission, MemoryShares
from sfumato.backends.duckdb.source import DuckDBTables
from sfumato.catalog.resources import MOST_SECONDS, Resources, memory_bytes
from sfumato.errors import EngineBusy, InvalidArgument


def later(seconds: float = 30) -> float:
    return time.monotonic() + seconds


def test_shares_add_up_to_no_more_than_there_is() -> None:
    shares, held, most = MemoryShares(100), [0], [0]
    lock = threading.Lock()

    def work(amount: int) -> None:
        for _ in range(20):
            with shares.taken(amount, later()):
                with lock:
                    held[0] += amount
                    most[0] = max(most[0], held[0])
                with lock:
                    held[0] -= amount

    threads = [threading.Thread(target=work, args=(amount,)) for amount in (30, 30, 50, 100, 70)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
        assert not thread.is_alive()
    assert held == [0] and 0 < most[0] <= 100
    with shares.taken(1000, later()):  # more than there is: all of it
        pass


def test_whoever_came_first_is_admitted_first() -> None:
    """A large one that waits is not overtaken by small ones that would fit."""
    shares, order = MemoryShares(100), []
    first = shares.taken(60, later())
    first.__enter__()

    def work(amount: int) -> None:
        with shares.taken(amount, later()):
            order.append(amount)

    threads = []
    for number, amount in enumerate((100, 10), start=1):
        threads.append(threading.Thread(target=work, args=(amount,)))
        threads[-1].start()
        while len(shares._queue) < number:
            pass
    assert order == []
    first.__exit__(None, None, None)
    for thread in threads:
        thread.join(30)
    assert order == [100, 10]


def test_whoever_waits_too_long_is_refused_and_holds_nothing() -> None:
    shares = MemoryShares(100)
    with shares.taken(100, later()):
        with pytest.raises(EngineBusy) as refusal, shares.taken(1, later(0.01)):
            raise AssertionError
        assert refusal.value.code == "SF503" and not shares._queue
    with shares.taken(100, later(0)):
        pass


def test_a_thread_is_admitted_once_and_two_engines_share_the_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "_PROCESS", MemoryShares(150))
    one, other = (Admission(100, question=None, wait=0.01) for _ in range(2))
    refused: list[object] = []

    def ask() -> None:
        try:
            with other.admitted():
                refused.append("admitted")
        except EngineBusy as refusal:
            refused.append(refusal.code)

    with one.admitted(), one.admitted():  # a statement within a question takes no second share
        thread = threading.Thread(target=ask)
        thread.start()
        thread.join(30)
    assert refused == ["SF503"]
    with other.admitted():
        pass


def test_a_question_within_a_question_about_other_data_does_not_wait_for_itself(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(admission, "_PROCESS", MemoryShares(100))
    one, other = (Admission(100, question=None, wait=0.01) for _ in range(2))
    for _ in range(2):
        with one.admitted(), other.admitted():
            pass


def test_the_memory_of_the_process_is_that_of_an_engine_without_a_limit(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    found = []
    for memory in ("100MB", None):
        monkeypatch.setattr(admission, "_PROCESS", None)
        open_tables({"t": pa.table({"a": [1]})}, memory=memory).close()
        assert (admission._PROCESS is None) == (memory is not None)
        found.append(admission._process_shares()._capacity)
    assert found[0] == found[1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_does_not_wait_for_its_parents_questions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(admission, "_PROCESS", MemoryShares(100))
    with Admission(100, question=None, wait=0.01).admitted():
        child = os.fork()
        if child == 0:
            try:
                with Admission(100, question=None, wait=0.01).admitted():
                    os._exit(0)
            finally:
                os._exit(1)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def test_amounts_of_memory() -> None:
    assert memory_bytes("1.5GiB") == 1610612736 and memory_bytes("476.8 MiB") == 499961036
    for wrong in ("8", "8 apples", "-1GB", "1e999GB", "", None, 8, "99999999999GB"):
        with pytest.raises(InvalidArgument):
            Resources(memory=wrong) if wrong is not None else memory_bytes(wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "seconds",
    [0, -1, math.nan, math.inf, 1e300, 10**400, 10**9, True, "60", None, MOST_SECONDS + 1],
    ids=lambda seconds: str(seconds)[:9],
)
def test_how_long_a_statement_may_take_is_stated_in_what_every_engine_can_count(seconds: Any) -> None:
    """PostgreSQL counts milliseconds in 31 bits: with more it was called unreachable."""
    with pytest.raises(InvalidArgument) as refused:
        Resources(seconds=seconds)
    assert refused.value.place == "seconds" and refused.value.hints
    with pytest.raises(InvalidArgument) as refused:
        sf.connect("postgresql://nobody@127.0.0.1:1/none", table="people", unit="who", seconds=seconds)
    assert refused.value.place == "seconds"


def test_the_longest_time_of_a_statement_is_one_that_engines_take() -> None:
    longest = Resources(seconds=MOST_SECONDS).seconds
    assert int(longest * 1000) < 2**31 and longest < threading.TIMEOUT_MAX
    sf.connect(
        pa.table({"who": [1, 2]}), name="people", unit="who", budget=sf.Budget(epsilon=1), seconds=longest
    )


def test_an_opening_that_takes_too_long_is_refused_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    def late(*_: object) -> None:
        raise duckdb.InterruptException("INTERRUPT Error: secret")

    monkeypatch.setattr(DuckDBTables, "_describe", late)
    with pytest.raises(InvalidArgument, match="longer than `seconds`") as refused:
        open_tables({"people": pa.table({"who": [1, 2]})})
    assert "secret" not in str(refused.value) and refused.value.__context__ is None


ENDINGS = {
    "longer than `seconds`": duckdb.InterruptException("INTERRUPT Error: secret"),
    "more than `memory`": duckdb.OutOfMemoryException("Out of Memory Error: secret"),
}


@pytest.mark.parametrize("said", ENDINGS)
@pytest.mark.parametrize("step", ["file", "view", "names"])
def test_limits_are_not_called_broken_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str, said: str
) -> None:
    """A file that was slow to open was called unreadable, and its names of people no UTF-8."""
    path = tmp_path / "people.duckdb"
    with duckdb.connect(str(path)) as connection:
        connection.execute("CREATE TABLE t AS SELECT 'a' AS who; CREATE VIEW people AS FROM t")
    if step == "names":
        parquet.write_table(pa.table({"who": ["a"]}), path := tmp_path / "people.parquet")

    def ended(*_: object, **__: object) -> None:
        raise ENDINGS[said]

    place = {"file": "attached_table", "view": "table_row", "names": "_whole_texts"}[step]
    monkeypatch.setattr(f"sfumato.backends.duckdb.source.{place}", ended)
    with pytest.raises(InvalidArgument, match=said) as refused:
        sf.connect(path, name="people", unit="who", budget=sf.Budget(epsilon=1))
    assert "secret" not in str(refused.value) and refused.value.__context__ is None


def test_a_duckdb_file_that_is_open_for_writing_is_refused_by_that_name(tmp_path: Path) -> None:
    with duckdb.connect(str(path := tmp_path / "people.duckdb")) as connection:
        connection.execute("CREATE TABLE people AS SELECT 1 AS who; CHECKPOINT")
        with pytest.raises(InvalidArgument, match="open for writing"):
            open_tables({"people": path})


def test_a_server_that_takes_too_long_to_open_is_not_called_unreachable(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def late(*_: object, **__: object) -> None:
        raise psycopg.errors.QueryCanceled("canceling statement due to statement timeout: secret")

    monkeypatch.setattr("sfumato.backends.postgres.source.transaction", late)
    with pytest.raises(InvalidArgument, match="longer than `seconds`") as refused:
        sf.connect("postgresql:///x", table="t", unit="who", budget=sf.Budget(epsilon=1))
    assert "secret" not in str(refused.value)
