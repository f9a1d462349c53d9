"""One question of each kind about a small invented table, and the texts in which its answer is shown.

`python -m tests.golden.write` writes the ledger and the texts; `test_golden` says when to do that.
"""

from __future__ import annotations

import datetime
import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

import sfumato as sf
from sfumato import learn
from sfumato.session import Database

__all__ = ["ASKED", "DATA", "Asked", "copy_kept", "opened", "texts"]

DATA = Path(__file__).parents[1] / "data" / "golden"
_LEDGER = "people.ledger"
_KEPT = (_LEDGER, f"{_LEDGER}-key", f"{_LEDGER}-streams")

_STYLES = re.compile(r"<style>.*?</style>", re.DOTALL)  # `sfumato.pages` has them; they are no text of a kind

_REGIONS, _JOBS = ("north", "south", "west"), ("farmer", "miner", "nurse", "smith", "teacher")
_START = datetime.date(2026, 1, 1)


def people() -> pa.Table:
    """Return 900 invented people, one row each, by arithmetic alone."""
    number = range(900)
    return pa.table(
        {
            "person": pa.array(number, pa.int64()),
            "region": [_REGIONS[(7 * one) % 3] for one in number],
            "job": [_JOBS[(one * one) % 5] for one in number],
            "age": pa.array([18 + (37 * one) % 60 for one in number], pa.int64()),
            "income": pa.array([1000.0 + 13.5 * ((71 * one) % 300) for one in number], pa.float64()),
            "ill": [(37 * one) % 60 > 30 for one in number],
            "day": [_START + datetime.timedelta(days=one % 5) for one in number],
        }
    )


@contextmanager
def opened(folder: Path) -> Iterator[Database]:
    """Open the table with the ledger of a folder."""
    columns = {
        "region": sf.one_of(*_REGIONS),
        "age": sf.between(18, 80),
        "income": sf.between(0, 5100),
        "ill": sf.one_of(True, False),
    }
    budget = sf.Budget(epsilon=1000, delta=1e-6)
    database = sf.connect(
        people(), name="people", unit="person", columns=columns, max_rows=1, max_groups=1,
        budget=budget, ledger=folder / _LEDGER,
    )  # fmt: skip
    try:
        yield database
    finally:
        database.ledger.close()


def copy_kept(source: Path, folder: Path) -> None:
    """Copy the files of a ledger that is closed, readable by their owner alone."""
    shutil.rmtree(folder / _KEPT[2], ignore_errors=True)
    folder.mkdir(exist_ok=True)
    for name in _KEPT[:2]:
        shutil.copyfile(source / name, folder / name)
        (folder / name).chmod(0o600)
    shutil.copytree(source / _KEPT[2], folder / _KEPT[2])


@dataclass(frozen=True, slots=True)
class Asked:
    """What is asked: `question` makes it, `release` answers it under a key."""

    question: Callable[[Database], Any]
    release: Callable[[Any, str], Any]


def _sql(text: str, **options: Any) -> Asked:
    return Asked(lambda db: db.sql(text, **options), lambda question, key: question.release(key=key))


def _released(question: Callable[[Database], Any]) -> Asked:
    return Asked(question, lambda asked, key: asked.release(key=key))


def _fitted(estimator: Callable[[], Any]) -> Asked:
    return _released(lambda db: estimator().question(db.table("people")))


def _model(db: Database) -> Any:
    estimator = learn.LogisticRegression(label="ill", features=["age"], epsilon=1)
    return estimator.fit(db.table("people"), key="logistic")


def _stream(db: Database) -> Any:
    return db.stream(
        "SELECT region, COUNT(*) AS n FROM people GROUP BY region",
        name="daily", by="day", every="day", start="2026-01-01", horizon=30, epsilon=1,
    )  # fmt: skip


_COUNTS = {
    "n": "SELECT COUNT(*) AS n FROM people",
    "age": "SELECT region, AVG(age) FROM people GROUP BY region",
}
ASKED = {
    "count": _sql("SELECT COUNT(*) AS n FROM people", epsilon=1),
    "groups": _sql(
        "SELECT region, COUNT(*) AS n, AVG(age) AS age, SUM(income) AS income FROM people GROUP BY region",
        epsilon=1,
    ),
    "found_groups": _sql("SELECT job, COUNT(*) AS n FROM people GROUP BY job ORDER BY n DESC", epsilon=1),
    "quantiles": _sql("SELECT region, QUANTILE(age, [0.1, 0.5, 0.9]) FROM people GROUP BY region", epsilon=1),
    "histogram": _sql("SELECT HISTOGRAM(age) AS ages, MODE(region) AS usual FROM people", epsilon=1),
    "moments": _sql("SELECT VAR_POP(age), CORR(age, income), COUNT(DISTINCT job) FROM people", epsilon=1),
    "outside": _sql(
        "SELECT region, n / SUM(n) OVER () AS share FROM (SELECT region, COUNT(*) AS n FROM people"
        " GROUP BY region) ORDER BY share LIMIT 2",
        epsilon=1,
    ),
    "levels": _sql("SELECT region, ill, COUNT(*) AS n FROM people GROUP BY ROLLUP(region, ill)", epsilon=1),
    "hierarchy": _released(lambda db: db.hierarchy(["region", "ill"], epsilon=1)),
    "bounds": _released(lambda db: db.bounds("income", epsilon=1)),
    "losses": _released(lambda db: db.sql("SELECT SUM(age) FROM people", epsilon=1).losses(epsilon=1)),
    "workload": _released(lambda db: db.workload(_COUNTS, epsilon=1)),
    "marginals": _released(
        lambda db: db.marginals(["region", "ill", "age"], ways=2, bins={"age": 4}, epsilon=1)
    ),
    "stream": Asked(_stream, lambda stream, key: stream.advance(now="2026-01-05")),
    "logistic": _fitted(lambda: learn.LogisticRegression(label="ill", features=["age"], epsilon=1)),
    "linear": _fitted(lambda: learn.LinearRegression(label="income", features=["age", "region"], epsilon=1)),
    "additive": _fitted(lambda: learn.AdditiveClassifier(label="ill", features=["age"], epsilon=1)),
    "clusters": _fitted(lambda: learn.KMeans(clusters=2, features=["age", "income"], epsilon=1)),
    "network": _fitted(
        lambda: learn.NeuralNetwork(label="ill", features=["age"], epsilon=1, steps=4)
    ),
    "fairness": _released(
        lambda db: learn.fairness_report(_model(db), db.table("people"), groups=["region"], epsilon=1)
    ),
    "selection": _released(
        lambda db: learn.select_model(
            [learn.LogisticRegression(label="ill", features=[one]) for one in ("age", "income")],
            db.table("people"),
            epsilon=1,
        )
    ),
}  # fmt: skip


def texts(name: str, database: Database) -> str:
    """Return all texts of one kind: its price, its fingerprint, its stored answer and how that is shown."""
    asked = ASKED[name]
    question = asked.question(database)
    found = {"question": repr(question)}
    if hasattr(question, "explain"):
        found["explanation"] = question.explain()
    if hasattr(question, "_repr_html_"):
        found["question in a notebook"] = question._repr_html_()
    found["fingerprint"] = question.priced().fingerprint()
    answer = asked.release(question, name)
    found["answer"] = repr(answer)
    for method in ("_repr_html_", "to_markdown", "to_csv"):
        if hasattr(answer, method):
            found[method.strip("_")] = str(getattr(answer, method)())
    if hasattr(answer, "to_json"):
        found["stored"] = answer.to_json()
    whole = "".join(f"==== {title}\n{text.rstrip(os.linesep)}\n" for title, text in found.items())
    return _STYLES.sub("<style/>", whole)
