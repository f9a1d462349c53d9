"""Draw the pictures of docs/: make pictures."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa

from sfumato.anonymity import Goal, reach, risk_picture, trade_picture
from sfumato.attacks import differencing, linkage, reconstruction
from sfumato.lessons import LESSONS
from sfumato.plots import Picture, save

DOCS = Path(__file__).parent.parent / "docs"


def lessons() -> Iterator[tuple[str, Picture]]:
    """Yield the pictures of docs/learn/, the same on every run."""
    for name, make in LESSONS.items():
        yield f"learn/{name}", make()


def gallery() -> Iterator[tuple[str, Picture]]:
    """Yield pictures of what capabilities find among invented people, other ones on every run."""
    yield "gallery/differencing", differencing(firms=2000).pictures[0]
    yield "gallery/reconstruction", reconstruction(people=400).pictures[0]
    yield "gallery/linkage", linkage(people=40_000, victims=2_000).pictures[0]
    draw = np.random.default_rng(7)
    people = pa.table({"age": draw.integers(18, 90, 3_000), "zip": draw.integers(53_000, 53_060, 3_000)})
    made = {k: reach(people, ["age", "zip"], Goal(k=k)) for k in (2, 5, 10, 20, 50)}
    yield "gallery/risk", risk_picture(made[5].before, made[5].after)
    yield "gallery/trade", trade_picture([(k, each.loss) for k, each in made.items()])


if __name__ == "__main__":
    for name, picture in (*lessons(), *gallery()):
        save(picture, DOCS / f"{name}.svg")
