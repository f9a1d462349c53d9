"""Record and replay of marginals: generated workloads over the engine's worlds, with one person more.

The salt is frozen. Whatever rows a person brings, the integers of every residual move by no more than
what is charged; no statement, shape or error depends on who is there.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from fractions import Fraction
from functools import cache
from typing import Any

import numpy as np
import pytest

from sfumato.backends import Source
from sfumato.plan.options import Options
from sfumato.workloads import marginals
from sfumato.workloads.marginal_columns import marginal_column
from sfumato.workloads.marginals import MarginalWorkload, PricedMarginals, plan_marginals
from tests.engine.replay import BUDGET, record
from tests.engine.worlds import CATALOG, NEIGHBOURS, crowd, newcomer

BINS: dict[str, Any] = {
    "age": 5, "amount": [-20, 0, 0.1, 99.5, 100], "qty": None, "big": 3, "score": 4, "region": None,
    "member": None, "day": 6, "at": 3, "price": 4, "rate": [-1, -0.25, 0, 1], "code": 7, "single": 3,
}  # fmt: skip


@cache
def opened(world: int, more: str | None) -> Source:
    base = crowd(world, people=12, rows=60)
    return (base if more is None else base + newcomer(more, world, 1000 + world)).opened()


def workload(seed: int) -> MarginalWorkload:
    """Return tables of two or three columns, some with a cell for no value, some by prefixes or ranges."""
    source = random.Random(seed)
    table = CATALOG.table("lone" if seed % 5 == 0 else "visits")
    assert table is not None
    names = source.sample(sorted(BINS), 4)
    columns = []
    for name in names:
        known = table.field(name)
        assert known is not None
        asked = source.choice(("cells", "cells", "prefixes", "ranges"))
        columns.append(marginal_column(known, BINS[name], asked, missing=source.random() < 0.7))
    tables = [(0, 1), (1, 2, 3)] if seed % 2 else [(0, 1, 2), (3,), (0, 3)]
    weights = tuple((one, source.choice((1.0, 5.0))) for one in tables)
    return MarginalWorkload(table=table.name, columns=tuple(columns), weights=weights).tuned()


def priced(seed: int) -> PricedMarginals:
    caps = (
        {"max_groups": 1, "max_rows": 1},
        {"max_groups": 3, "max_rows": 2},
        {"max_groups": 4, "max_rows": 3, "max_rows_total": 7},
    )
    return plan_marginals(
        workload(seed),
        catalog=CATALOG,
        budget=BUDGET,
        epsilon=Fraction(1, 2),
        options=Options(**caps[seed % 3]),
        backend=opened(0, None).backend(CATALOG),
    )


def wrongs(asked: PricedMarginals, world: int, kinds: tuple[str, ...]) -> list[str]:
    """Tell what one person more changed that was not paid for."""
    found = []
    before = record(asked.bounding.query, opened(world, None), threads=1)
    exact = list(asked._residuals(before.groups[0]))
    for kind in kinds:
        after = record(asked.bounding.query, opened(world, kind), threads=1)
        if after.error is not None or before.error is not None:
            found.append(f"{kind}: an error: {before.error}, {after.error}")
            continue
        if after.statements != before.statements:
            found.append(f"{kind}: another statement")
        for residual, old, new, event in zip(
            asked.plan.residuals, exact, asked._residuals(after.groups[0]), asked.event.events, strict=True
        ):
            if old.shape != new.shape or old.dtype != new.dtype:
                found.append(f"{kind}: another shape of residual {residual}")
            elif int(np.square((new - old).astype(object)).sum()) > event.l2_squared:
                found.append(f"{kind}: residual {residual} moved too far")
    return found


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=[pytest.mark.soak] if seed >= 8 else []) for seed in range(40)]
)
def test_one_person_more_stays_within_what_is_charged(seed: int) -> None:
    kinds = (
        NEIGHBOURS if seed >= 8 else tuple(NEIGHBOURS[(seed + step) % len(NEIGHBOURS)] for step in (0, 2, 5))
    )
    assert wrongs(priced(seed), seed % 3, kinds) == []


@pytest.mark.parametrize(
    "lie",
    [
        lambda bounding: 1,
        lambda bounding: bounding.query.max_groups or 1,
        lambda bounding: bounding.query.measures[0].sensitivity,
    ],
    ids=("one row", "rows forgotten", "groups forgotten"),
)
def test_a_planted_lie_is_caught(lie: Callable[[Any], int], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(marginals, "_most_counted", lie)
    assert any(wrongs(priced(seed), seed % 3, ("upper", "huge")) for seed in (1, 2, 4))
