"""Kills of Spark, in a process of its own: `python -m tests.conformance.spark_faults {executor,driver} RUNS`.

A question is asked while an executor of a local cluster is killed, or the driver's JVM. What is printed is
one line of JSON for each run: what came out, and what the ledger says.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import tempfile
import threading
import time
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import sfumato as sf
from sfumato.errors import EngineFailure, EngineStopped
from tests.conformance.spark_session import Spark, find_or_install
from tests.engine.questions import Asked
from tests.engine.replay import planned

ROWS = 400_000
TEXT = "SELECT region, COUNT(*) AS n, SUM(cost) AS s FROM visits GROUP BY region ORDER BY region"
CLUSTER = {
    "spark.master": "local-cluster[2,1,1024]",
    "spark.executor.memory": "1g",
    "spark.deploy.maxExecutorRetries": "-1",
    "spark.sql.adaptive.enabled": "true",
    "spark.sql.codegen.wholeStage": "true",
    "spark.sql.codegen.factoryMode": "FALLBACK",
    "spark.sql.shuffle.partitions": "4",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def _processes() -> dict[int, tuple[int, str]]:
    """Return the parent and the command of each process."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
            found[int(folder.name)] = (parent, (folder / "cmdline").read_text())
        except OSError:
            continue
    return found


def executors(driver: int) -> list[int]:
    """Return the executors that a driver's JVM has started and that have begun to work."""
    processes = _processes()
    return [
        pid for pid, (parent, text) in processes.items() if parent == driver and "ExecutorBackend" in text
    ]


def _until(condition: Any) -> None:
    end = time.monotonic() + 120
    while not condition():
        if time.monotonic() > end:
            raise TimeoutError
        time.sleep(0.05)


class Killing:
    """A Spark of its own, a table, and questions during which something is killed."""

    def __init__(self, spark: Spark, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        self.driver = spark.session._sc._gateway.proc.pid
        path = str(folder / "visits")
        made = "CAST(id % 5000 AS INT) AS person, concat('r', id % 7) AS region, CAST(id % 50 AS INT) AS cost"
        spark.session.sql(f"SELECT {made} FROM range(0, {ROWS}, 1, 8)").write.parquet(path)
        self.frame = spark.session.read.parquet(path)

    def database(self, ledger: Path, *, declared: bool = True) -> sf.Database:
        """Open the table with a ledger; where regions are not declared, executors keep who is in which."""
        regions = {"region": sf.one_of(*(f"r{n}" for n in range(7)))} if declared else {}
        return sf.connect(
            self.frame,
            name="visits",
            unit="person",
            columns={**regions, "cost": sf.between(0, 50)},
            max_groups=7,
            max_rows=100,
            budget=sf.Budget(epsilon=10_000, delta=1e-6),
            ledger=ledger,
        )

    def exact(self, db: sf.Database) -> str:
        """Return the exact integers of the question, under one choice of groups."""
        query = planned(Asked(TEXT, {"max_groups": 3, "max_rows": 5}), db.catalog).query
        with db.backend.admitted():
            [groups] = db.backend.run(query, _salt=7).reveal()
            found = np.arange(len(groups.keys)) % 2 == 0
            told = None if groups.members is None else groups.members.weights(found, lambda d: 10**d).tolist()
        totals = [
            (key, *(int(one[at]) for one in groups.measures.values())) for at, key in enumerate(groups.keys)
        ]
        return repr((totals, told))

    def asked(self, db: sf.Database, kill: Any, *, exact: bool = False) -> dict[str, Any]:
        """Ask, and kill meanwhile; return what came out."""
        killer = threading.Thread(target=kill)
        question = db.sql(TEXT, epsilon=1000)
        killer.start()
        out: dict[str, Any] = {}
        try:
            if exact:
                out["exact"] = self.exact(db)
                out["alive"] = killer.is_alive()
            table = question.release().to_arrow()
            out["answer"] = [[round(float(x)) for x in table.column(name).to_pylist()] for name in ("n", "s")]
        except (EngineFailure, EngineStopped) as error:
            out["error"], out["context"] = error.code, error.__context__ is not None
        killer.join()
        out["charged"] = len(db.ledger.history())
        return out


def main(what: str, runs: int) -> None:
    """Kill, so many times."""
    warnings.simplefilter("ignore")
    java = find_or_install()
    assert java is not None
    draw = random.Random(18)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if what == "driver":
            for run, door in enumerate(("before", "during", "after")[:runs]):
                spark = Spark(java)
                killing = Killing(spark, folder / door)
                db = killing.database(folder / f"{run}.ledger")
                if door == "before":
                    os.kill(killing.driver, signal.SIGKILL)
                    out = killing.asked(db, lambda: None)
                elif door == "during":
                    out = killing.asked(db, partial(_kill_running, killing.driver, db))
                else:
                    out = killing.asked(db, lambda: None)
                    os.kill(killing.driver, signal.SIGKILL)
                    out["again"] = killing.asked(db, lambda: None)  # the same question: paid for already
                print(json.dumps({"door": door, **out}), flush=True)
                spark.forget()
            return
        with Spark(java, **CLUSTER) as spark:
            killing = Killing(spark, folder)
            plain = killing.database(folder / "plain.ledger", declared=False)
            first = killing.database(folder / "first.ledger")
            exacts, begun = [killing.exact(first), killing.exact(plain)], time.monotonic()
            killing.asked(first, lambda: None, exact=True)
            seconds = time.monotonic() - begun
            for run in range(runs):
                _until(lambda: len(executors(killing.driver)) == 2)
                db = killing.database(folder / f"{run}.ledger", declared=run % 2 == 0)
                exact = exacts[run % 2]

                def kill() -> None:
                    time.sleep(draw.uniform(0, seconds))
                    os.kill(draw.choice(executors(killing.driver)), signal.SIGKILL)

                out = killing.asked(db, kill, exact=True)
                out["exact"] = out.get("exact", exact) == exact
                print(json.dumps(out), flush=True)


def _kill_running(driver: int, db: sf.Database) -> None:
    """Kill the driver as soon as the question is charged."""
    _until(lambda: db.ledger.history())
    os.kill(driver, signal.SIGKILL)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
