"""How long hostile questions take to be priced or refused: each limit is kept, their products are not.

    python bench/hostile.py [--steps 100000]

Seconds are of this process on one core. `tests/engine/test_steps.py` asserts the steps, which are the same on
every machine.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from report import Row

from sfumato.core.steps import MOST_STEPS, limited
from sfumato.errors import SfumatoError

sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.engine.hostile import all_doors, hostile_database

_SECONDS = 2.0  # a quiet core needs about half of it


def hostile_rows(steps: int = MOST_STEPS) -> Iterator[Row]:
    """Price every hostile question once; the slowest is the row."""
    slowest = max(hostile_prices(steps), key=lambda one: one[1])
    name, seconds, taken, ended = slowest
    title = f"hostile questions, the slowest: {name}, {ended} after {taken:,} steps"
    yield Row(name=title, ours=seconds, rival=None, unit="s", ratio=seconds, most=_SECONDS)


def hostile_prices(steps: int) -> Iterator[tuple[str, float, int, str]]:
    """Yield the name, CPU seconds, steps and end of every hostile question."""
    db = hostile_database(steps=steps)
    db.sql("SELECT c0, AVG(x) AS mean FROM v GROUP BY c0", epsilon=1).explain()
    for name, door in all_doors():
        begun, ended = time.process_time(), "priced"
        with limited(steps) as counted:
            try:
                door(db)
            except SfumatoError as refusal:
                ended = refusal.code
        yield name, time.process_time() - begun, counted.taken, ended


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=MOST_STEPS)
    for name, seconds, taken, ended in hostile_prices(parser.parse_args().steps):
        print(f"{seconds:6.2f} s {taken:12,} steps  {ended:7} {name}", flush=True)
