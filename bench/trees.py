"""Two states of this tree beside each other: does a change make anything slower?

    git worktree add ../before <commit>
    python bench/trees.py ../before [--rows 10000000] [--rounds 5]

Both run in the environment of this Python, one process each that stays, and take turns; the best of each
counts. Measured: W1, W2 and W3 of `queries.py` with users as units, twenty questions of TPC-H priced, one
release of a small table, a thousand Gaussian sums composed, and spends of a ledger by one writer.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from events import generate
from report import Row, show

__all__ = ["tree_rows"]

HERE = Path(__file__).parent
MOST = 1.03
WORK = """
import json, sys, tempfile, time
from fractions import Fraction
from pathlib import Path
import pyarrow as pa
import sfumato as sf
from sfumato.core import Composition, PrivacyBudget, events
from sfumato.ledger import OWNER, Ledger
from tests.engine.tpch import QUESTIONS, database

HASHES = {"request_hash": "r" * 64, "data_version": "1", "policy_hash": "p" * 64, "analyst": OWNER}
COLUMNS = {"region": sf.one_of(*(f"r{n:02}" for n in range(50))), "amount": sf.between(0, 100)}
COLUMNS["age"] = sf.between(0, 99)
CAPS = {"W1": (3, 20), "W2": (5, 20), "W3": (None, 20)}
TEXTS = {
    "W1": "SELECT region, COUNT(*) AS n, SUM(amount) AS s FROM events GROUP BY region",
    "W2": "SELECT word, COUNT(*) AS n FROM events GROUP BY word",
    "W3": "SELECT MEDIAN(age) AS age FROM events",
}
budget = sf.Budget(epsilon=10**6, delta=1e-6)
large = sf.connect(sys.argv[1], unit="user_id", columns=COLUMNS, budget=budget)
tpch = database()
small = pa.table({"p": range(3000), "g": [n % 7 for n in range(3000)], "x": [n % 90 for n in range(3000)]})
little = sf.connect(
    small, name="t", unit="p", max_groups=1, max_rows=1, columns={"x": sf.between(0, 90)}, budget=budget
)
ledger = Ledger.open(tempfile.mkdtemp() + "/a")
ledger.register("person", PrivacyBudget(epsilon=10**6))
turns = []
cost = events.Pure(loss=Fraction(1, 1000))


def asked(name):
    groups, rows = CAPS[name]
    caps = {"max_rows": rows} | ({"max_groups": groups} if groups else {})
    return lambda: large.sql(TEXTS[name], epsilon=1, **caps).release()


def priced():
    turns.append(1 + len(turns) / 1000)  # prices of another epsilon: none is remembered
    for text in list(QUESTIONS.values())[:20]:
        tpch.sql(text, epsilon=turns[-1]).priced()


def released():
    for place in range(10):
        text = f"SELECT g, COUNT(*) AS n, AVG(x) AS m FROM t WHERE x > {place} GROUP BY g"
        little.sql(text, epsilon=1).release()


def composed():
    for place in range(20):
        Composition([events.Gaussian(sigma=20 + place)] * 50).epsilon(1e-6)


def spent():
    for _ in range(100):
        with ledger.reserve("person", cost, 0, **HASHES) as reservation:
            reservation.commit(b"y" * 200)


doing = {**{name: asked(name) for name in TEXTS}, "price": priced, "release": released}
doing |= {"compose": composed, "spend": spent}
print("ready", flush=True)
for line in sys.stdin:
    begun = time.perf_counter()
    doing[line.strip()]()
    print(time.perf_counter() - begun, flush=True)
"""
NAMED = {
    "W1": "W1", "W2": "W2", "W3": "W3", "price": "price 20 questions of TPC-H",
    "release": "ten releases of a small table", "compose": "compose 20 batches", "spend": "100 spends",
}  # fmt: skip


def tree_rows(before: Path, *, rows: int, rounds: int) -> Iterator[Row]:
    """Time both trees in turns."""
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder) / "events.duckdb"
        generate(data, rows)
        both = [_started(tree, data) for tree in (HERE.parent, before)]
        for name, title in NAMED.items():
            times: tuple[list[float], list[float]] = ([], [])
            for turn in range(2 * rounds):
                place = (turn + turn // 2) % 2  # who is first changes
                times[place].append(_timed(both[place], name))
            ours, theirs = map(min, times)
            yield Row(
                name=f"{title}, beside {before.name}",
                ours=ours,
                rival=theirs,
                unit="s",
                ratio=ours / theirs,
                most=MOST,
            )
        for one in both:
            one.communicate()


def _started(tree: Path, data: Path) -> subprocess.Popen[str]:
    done = subprocess.Popen(
        [sys.executable, "-c", WORK, str(data)],
        cwd=tree, env={**os.environ, "PYTHONPATH": f"{tree}/src:{tree}"},
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    assert done.stdout and done.stdout.readline() == "ready\n"
    return done


def _timed(process: subprocess.Popen[str], name: str) -> float:
    assert process.stdin and process.stdout
    process.stdin.write(f"{name}\n")
    process.stdin.flush()
    return float(process.stdout.readline())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("before", type=Path)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    show(tree_rows(options.before.resolve(), rows=options.rows, rounds=options.rounds), {})
