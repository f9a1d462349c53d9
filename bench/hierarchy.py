"""A hierarchy in one consistent release: the census example at full size, and errors beside two plain ways.

python bench/hierarchy.py
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from report import Row, show

import sfumato as sf
from sfumato.analysis import price
from sfumato.analysis.consistency import level_deviations
from sfumato.plan.options import Options

__all__ = ["hierarchy_rows"]

EXAMPLES = Path(__file__).parent.parent / "examples"
SECONDS, GIGABYTES = 600.0, 4.0
LEVELS = ("block", "county", "state", "nation")
GAUSSIAN = Options(noise="gaussian")


def hierarchy_rows(people: int = 1_000_000, blocks: int = 100_000) -> Iterator[Row]:
    """Measure the census, and compare variances with independent levels and with blocks alone."""
    yield from _census(people, blocks)
    yield from _errors()


def _census(people: int, blocks: int) -> Iterator[Row]:
    command = [sys.executable, str(EXAMPLES / "census.py"), str(people), str(blocks)]
    text = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    found = re.search(r"([\d,]+) counts in (\d+) s, ([\d.]+) GB", text)
    assert found is not None
    title = f"census, {people:,} people, {found[1]} counts that add up"
    seconds, memory = float(found[2]), float(found[3])
    yield Row(name=title, ours=seconds, rival=None, unit="s", ratio=seconds, most=SECONDS)
    yield Row(name=f"{title}: memory", ours=memory, rival=None, unit="GB", ratio=memory, most=GIGABYTES)


def _errors() -> Iterator[Row]:
    """Compare deviations at one epsilon: they follow from the plan, and no data is asked."""
    sys.path.insert(0, str(EXAMPLES))
    from census import invented

    persons, places, _ = invented(2_000, 2_000)
    db = sf.connect(
        {"people": persons},
        unit="person",
        max_rows=1,
        max_groups=1,
        public={"places": places},
        budget=sf.Budget(epsilon=8, delta=1e-10, rule="zcdp"),
    )
    rolled = "FROM people JOIN places USING (block) GROUP BY ROLLUP (state, county, block)"
    asked = [
        db.hierarchy(["state", "county", "block"], places="places", epsilon=1),
        db.sql(f"SELECT state, county, block, COUNT(*) AS n {rolled}", epsilon=1),
        db.sql("SELECT block, COUNT(*) AS n FROM people JOIN places USING (block) GROUP BY block", epsilon=1),
    ]
    boundings = [one.priced().boundings[0] for one in asked]
    costs = [price(one, db.terms, epsilon=1, options=GAUSSIAN) for one in boundings]
    deviations = level_deviations(boundings[0], costs[0])
    alone = costs[2].noises[0].law.deviation
    groups = [len({key[:depth] for key in boundings[0].query.declared or ()}) for depth in (3, 2, 1, 0)]
    for place, level in enumerate(LEVELS):
        ours, apart = deviations["m0", place], costs[1].noises[place].law.deviation
        sums = alone * (groups[0] / groups[place]) ** 0.5
        title = f"deviation by {level}, consistent"
        yield from [
            Row(
                name=f"{title} (rival: levels independently)",
                ours=ours,
                rival=apart,
                unit="",
                ratio=ours / apart,
                most=1.0,
            ),
            Row(
                name=f"{title} (rival: blocks alone)",
                ours=ours,
                rival=sums,
                unit="",
                ratio=ours / sums,
                most=1.0 if place else 2.0,  # of the blocks themselves, nothing beats measuring them alone
            ),
        ]


if __name__ == "__main__":
    show(hierarchy_rows(*map(int, sys.argv[1:])), {})
