"""Everything else: the groups that are not shown, as one row; what one unit moves, and what it costs."""

from __future__ import annotations

import zlib
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import sfumato as sf
from sfumato.analysis import Bounding, Cost, bound, price
from sfumato.backends.exact import ExactGroups
from sfumato.core.events import DiscreteGaussian, DiscreteGaussianVector, DiscreteLaplace
from sfumato.core.gaussian import GaussianNoise
from sfumato.plan.options import Options
from sfumato.plan.sql import parse
from sfumato.release import Release
from sfumato.release.noise import rest_of
from tests.engine.doors import open_door
from tests.engine.replay import BUDGET, record
from tests.engine.worlds import CATALOG, NEIGHBOURS, crowd, newcomer

TEXTS = (
    "SELECT v.word, COUNT(*), SUM(v.qty), MEDIAN(v.age) FROM visits AS v GROUP BY v.word",
    "SELECT v.word, COUNT(*), COUNT(DISTINCT v.person), AVG(v.amount) FROM visits AS v GROUP BY v.word",
    "SELECT v.word, COUNT(*), SUM(v.qty) FROM lone AS v GROUP BY v.word",
)
CAPS: dict[str, Any] = {"max_groups": 3, "max_rows": 2, "others": True}


def planned(text: str, noise: Any) -> tuple[Bounding, Cost]:
    (named,) = parse(text, CATALOG).queries
    bounding = bound(named.query, CATALOG, Options(**CAPS))
    return bounding, price(bounding, BUDGET, epsilon=Fraction(1, 2), options=Options(noise=noise))


def vectors(groups: ExactGroups, bounding: Bounding, share: int) -> dict[str, dict[Any, Any]]:
    """Return all numbers of each measure that noise is released of, if a share of the keys is shown."""
    keys = [repr(key) for key in groups.keys]
    shown = np.array(
        [at for at, key in enumerate(keys) if zlib.crc32(key.encode()) % 3 < share], dtype=np.int64
    )
    rest = rest_of(groups, shown, bounding.query)
    found = {}
    for name, values in groups.measures.items():
        decides = bounding.query.measures and name == _deciding(bounding)
        at = range(len(keys)) if decides else shown.tolist()
        found[name] = {keys[place]: np.atleast_1d(values[place]) for place in at} | {None: rest[name].ravel()}
    return found


def _deciding(bounding: Bounding) -> str | None:
    from sfumato.analysis.selection import units_measure

    return units_measure(bounding.query)


def undercharged(bounding: Bounding, cost: Cost) -> list[str]:
    """Tell which measures one unit more moves further than is paid for, whatever is shown."""
    wrong = []
    world = crowd(0, people=12, rows=60)
    (before,) = record(bounding.query, world.opened(), threads=1).groups
    for kind in NEIGHBOURS:
        (after,) = record(bounding.query, (world + newcomer(kind, 0, 999)).opened(), threads=1).groups
        for share in range(4):
            sides = [vectors(groups, bounding, share) for groups in (before, after)]
            for noise, other in zip(cost.noises, cost.others, strict=True):
                loss = Fraction(0)
                old, new = (side[noise.measure] for side in sides)
                for key in dict.fromkeys([*old, *new]):
                    zero = np.zeros(1, dtype=np.int64)
                    moved = [int(x) for x in np.atleast_1d(new.get(key, zero) - old.get(key, zero))]
                    parameter = (other if key is None else noise).law.parameter
                    far = sum(abs(x) for x in moved)
                    loss += far**2 / parameter if noise.law.name == "gaussian" else far / parameter
                if loss > paid(noise.event, noise.levels):
                    wrong.append(f"{noise.measure}, {kind}, {share}")
    return wrong


def paid(event: Any, levels: int) -> Fraction:
    """Return the shifts that an event is charged for, per layer: squares over variances, or over scales."""
    total = Fraction(0)
    for part, times in event.parts():
        match part:
            case DiscreteLaplace(scale=scale, sensitivity=shift):
                total += Fraction(shift) * times / scale
            case DiscreteGaussian(sigma_squared=variance, sensitivity=shift):
                total += Fraction(shift) ** 2 * times / variance
            case DiscreteGaussianVector(sigma_squared=variance, l2_squared=norm):
                total += norm * times / variance
    return total / levels


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
@pytest.mark.parametrize("text", TEXTS)
def test_one_person_more_moves_no_more_than_is_paid_for(text: str, noise: Any) -> None:
    assert undercharged(*planned(text, noise)) == []


def test_noise_that_is_not_wider_is_caught() -> None:
    bounding, cost = planned(TEXTS[0], "gaussian")
    narrow = tuple(replace(one, law=type(one.law)(one.law.parameter / 3)) for one in cost.others)
    assert undercharged(bounding, replace(cost, others=narrow))


@pytest.mark.parametrize("noise", ["laplace", "gaussian"])
def test_numbers_that_decide_are_used_twice(noise: Any) -> None:
    """Charged as without everything else, the number of units would be undercharged."""
    for text in TEXTS[1:]:
        bounding, cost = planned(text, noise)
        alone, options = replace(bounding, others=False), Options(noise=noise)
        plain = price(alone, BUDGET, epsilon=Fraction(1, 2), options=options)
        name = _deciding(bounding)
        noises = tuple(
            replace(
                one,
                event=replace(one.event, times=one.event.times - 1)
                if one.event.times > 2  # type: ignore[attr-defined]
                else one.event.event,  # type: ignore[attr-defined]
            )
            if one.measure == name
            else one
            for one in cost.noises
        )
        assert plain.noises and undercharged(bounding, replace(cost, noises=noises))


def test_what_comes_out() -> None:
    """A group for every row that is shown, and one more; it survives storage."""
    door = open_door(crowd(1, people=40, rows=200), sf.Budget(epsilon=100, delta=1e-6))
    caps = {"max_groups": 3, "max_rows": 5, "others": True}
    release = door.sql(
        "SELECT v.word, COUNT(*) AS n FROM visits v GROUP BY v.word", epsilon=9, **caps
    ).release()
    assert release.column("word")[-1] == "everything else"
    assert any("`everything else`" in note for note in release.notes)
    again = Release.from_json(release.to_json())
    assert again.rows == release.rows and again.intervals(0.9) == release.intervals(0.9)
    ages = door.sql(
        "SELECT v.age, v.day, COUNT(*) AS n FROM visits v GROUP BY ALL", epsilon=9, **caps
    ).release()
    assert ages.rows[-1][:2] == (None, None) and any("all NULL" in note for note in ages.notes)
    regions = "SELECT v.region, COUNT(*) AS n FROM visits v GROUP BY v.region"
    listed = door.sql(regions, epsilon=9, **caps).release()
    assert sorted(listed.column("region")) == ["east", "everything else", "north", "south"]
    assert listed.cost["keys_delta"] == 0


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("SELECT COUNT(*) FROM visits v", "no GROUP BY"),
        ("SELECT v.word, COUNT(*) FROM visits v GROUP BY ROLLUP(v.word)", "plain GROUP BY"),
        ("SELECT v.word, COUNT(DISTINCT v.qty) FROM visits v GROUP BY v.word", "values that differ"),
        (
            "SELECT v.word, COUNT(DISTINCT v.person) FILTER (WHERE v.age > 3) FROM visits v GROUP BY v.word",
            "units that differ",
        ),
        ("SELECT v.member, COUNT(*) FROM visits v GROUP BY v.member", "keys of text"),
    ],
)
def test_what_has_no_everything_else(text: str, message: str) -> None:
    (named,) = parse(text, CATALOG).queries
    with pytest.raises(sf.errors.QueryRefused, match=message):
        bound(named.query, CATALOG, Options(**CAPS))


@pytest.mark.parametrize(
    "parameter", [Fraction(1, 3), Fraction(1), Fraction(9, 2), Fraction(900), Fraction(2000)]
)
@pytest.mark.parametrize("groups", [2, 3, 7, 50])
def test_the_wider_noise_of_the_sum_costs_no_more_than_the_groups(parameter: Fraction, groups: int) -> None:
    """In certified mu, where whole numbers are coarse: one step of the sum costs a k-th of one in a group."""
    variance = GaussianNoise(parameter).widened(groups).parameter
    one = Fraction(DiscreteGaussian(sigma_squared=parameter, sensitivity=1).mu()) ** 2
    step = Fraction(DiscreteGaussian(sigma_squared=variance, sensitivity=1).mu()) ** 2
    assert step * groups <= one
    assert variance >= groups * parameter
