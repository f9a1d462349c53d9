"""Selection in rounds, by its exact law: which groups are found, in every pair of small neighbours."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.analysis.selection import Selection
from sfumato.backends.exact import Members
from sfumato.core.noise_law import NoiseLaw
from sfumato.release.weighted_selection import weights_of

_Units = list[tuple[str, ...]]
_Law = dict[frozenset[str], float]

_NEWCOMERS = (
    "A",
    "N",
    "NM",
    "NMO",
    "AN",
    "AB",
    "ABN",
    "ANM",
    "ABC",
)  # N, M and O are in nobody else's groups


def _chance(law: NoiseLaw, cut: int, gap: int) -> float:
    """Return P(noise >= gap | |noise| <= cut)."""
    if gap >= 1:
        return law.tail_within(cut, min(gap, cut + 1))
    return 1 - law.tail_within(cut, min(1 - gap, cut + 1))


def _law(units: _Units, selection: Selection) -> _Law:
    """Return the chance of each set of groups to be found, by going through all outcomes of all rounds."""
    groups = sorted({group for unit in units for group in unit})
    members = Members(
        groups=np.array([groups.index(group) for unit in units for group in unit], dtype=np.int64),
        sizes=np.array([len(unit) for unit in units], dtype=np.int64),
    )
    law: _Law = {frozenset(): 1.0}
    for one in selection.rounds:
        after: _Law = {}
        for found, chance in law.items():
            flags = np.array([group in found for group in groups], dtype=np.bool_)
            weights = dict(zip(groups, weights_of(members, flags, selection).tolist(), strict=True))
            free = [group for group in groups if group not in found]
            passes = [_chance(one.law, one.cut, one.cut + 1 - weights[group]) for group in free]
            for chosen in itertools.product((True, False), repeat=len(free)):
                more = frozenset(group for group, flag in zip(free, chosen, strict=True) if flag)
                odds = math.prod(p if flag else 1 - p for p, flag in zip(passes, chosen, strict=True))
                after[found | more] = after.get(found | more, 0.0) + chance * odds
        law = after
    return law


def _distance(one: _Law, other: _Law, epsilon: float) -> float:
    return math.fsum(max(0.0, p - math.exp(epsilon) * other.get(found, 0.0)) for found, p in one.items())


def _neighbours() -> Iterator[tuple[_Units, _Units]]:
    for size in (0, 1, 2, 5, 10, 14, 20, 30, 60):
        for shared in ("A", "AB", "ABC"):
            units = [tuple(shared)] * size
            for newcomer in _NEWCOMERS:
                yield units, [*units, tuple(newcomer)]


@pytest.mark.long
@pytest.mark.parametrize(
    ("rule", "epsilon"), [("pure", 1.0), ("pure", 8.0), ("gaussian", 1.0), ("gaussian", 8.0)]
)
def test_what_is_found_tells_no_more_than_is_stated(rule: str, epsilon: float) -> None:
    database = sf.connect(
        pd.DataFrame({"person": [1], "place": ["a"]}),
        name="visits",
        unit="person",
        budget=sf.Budget(epsilon=20, delta=1e-3, rule=rule),
        max_groups=3,
    )
    [cost] = database.sql("SELECT place FROM visits GROUP BY place", epsilon=epsilon).priced().costs
    [selection] = cost.selections
    assert len(selection.rounds) == 2
    worst = 0.0
    for without, with_one in _neighbours():
        laws = _law(without, selection), _law(with_one, selection)
        worst = max(worst, _distance(*laws, epsilon), _distance(*laws[::-1], epsilon))
    assert worst <= cost.delta * (1 + Fraction(1, 10**9))
    if rule == "pure":  # keys are all that its delta is for, and nearly all of it is used
        assert worst >= Fraction(9, 10) * cost.delta
