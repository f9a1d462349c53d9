"""A census of invented people: counts by nation, state, county and block that add up.

    python examples/census.py                      20,000 people in 2,000 blocks, seconds
    python examples/census.py 1000000 100000       a million people in 100,000 blocks, minutes and 3 GB

State totals are public. Zero-concentrated privacy, discrete Gaussian noise, a spine with a share of the cost
for each level, and whole numbers from zero on, from the top down.
"""

from __future__ import annotations

import resource
import sys
import time

import numpy as np
import pyarrow as pa

import sfumato as sf

CELLS = 50
SHARES = (2, 8, 20, 70)  # nation, states, counties, blocks


def invented(people: int, blocks: int) -> tuple[pa.Table, pa.Table, pa.Table]:
    """Return people, places, and the total of each state."""
    random = np.random.default_rng(2020)  # invents people, never noise
    counties, states = max(4, blocks // 100), max(2, blocks // 2000)
    county = np.sort(np.concatenate([np.arange(counties), random.integers(0, counties, blocks - counties)]))
    state = np.sort(np.concatenate([np.arange(states), random.integers(0, states, counties - states)]))[
        county
    ]
    size = random.exponential(size=blocks)
    home = random.choice(blocks, people, p=size / size.sum())
    cell = np.minimum(random.geometric(0.08, people) - 1, CELLS - 1)
    totals = np.bincount(state[home], minlength=states)
    return (
        pa.table({"person": np.arange(people), "block": home, "cell": cell}),
        pa.table({"state": state, "county": county, "block": np.arange(blocks)}),
        pa.table({"state": np.arange(states), "n": totals}),
    )


def main(people: int = 20_000, blocks: int = 2_000) -> None:
    """Release the counts of all levels, and say how long it took and how far off they are."""
    persons, places, totals = invented(people, blocks)
    db = sf.connect(
        {"people": persons},
        unit="person",
        max_rows=1,
        max_groups=1,
        columns={"cell": sf.one_of(*range(CELLS))},
        public={"places": places, "state_totals": totals},
        invariants=[sf.Invariant(table="people", by=["state"], totals="state_totals", count="n")],
        budget=sf.Budget(epsilon=10, delta=1e-10, rule="zcdp"),
    )
    start = time.perf_counter()
    asked = db.hierarchy(
        ["state", "county", "block"],
        places="places",
        cells="cell",
        epsilon=8,
        level_shares=SHARES,
        non_negative=True,
    )
    print(asked)
    release = asked.release()
    seconds, memory = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    print(f"{len(release):,} counts in {seconds:.0f} s, {memory:.1f} GB")
    by_level: dict[int, int] = {}
    for *keys, _, count in release:
        depth = sum(key is not None for key in keys)
        by_level[depth] = by_level.get(depth, 0) + count
    print("people by level, each the same:", *by_level.values())
    for note in release.notes:
        print("--", note)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
