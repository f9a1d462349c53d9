"""The ladder: no person moves its levels by more than is paid for, and what it says of totals holds."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction as F

import numpy as np
import pytest

from sfumato.core.events import DiscreteGaussianVector
from sfumato.core.ladder import DEPTH, CapLadder, GaussianLadder, LaplaceLadder, divided
from sfumato.core.ladder_estimates import estimate
from sfumato.errors import InvalidArgument

Parts = Mapping[int, Sequence[int]]
TOP, UNIT = 12, 2**20


def people(seed: int, number: int) -> list[list[int]]:
    """Return vectors of whole numbers: of every size up to beyond the ladder, of one entry to forty."""
    draw = random.Random(seed)
    found = []
    for _ in range(number):
        size = draw.choice([1, 1, 2, 5, 40])
        largest = 2 ** draw.randrange(0, TOP + 3)
        found.append([draw.randint(-largest if draw.random() < 0.3 else 0, largest) for _ in range(size)])
    return [*found, [0], [1], [2**TOP], [2**TOP + 1], [2**TOP - 1], [3, 4]]


def l1(vector: Sequence[int]) -> F:
    return F(sum(map(abs, vector)))


def l2(vector: Sequence[int]) -> F:
    """Return at least the Euclidean norm, to 2^-30."""
    square = sum(one * one for one in vector) << 60
    root = math.isqrt(square)
    return F(root + (root * root < square), 2**30)


def moved(parts: Parts, norm: Callable[[Sequence[int]], F]) -> F:
    """Return the sum of the norms of a person's parts, each in units of its level."""
    return sum((norm(part) / (2**level * UNIT) for level, part in parts.items()), F(0))


def shifts(parts: Parts, size: int) -> F:
    """Return the sum of squares of what a person moves the published levels by, each in its level's unit."""
    totals = np.zeros((TOP + 1, size), dtype=object)
    for level, part in parts.items():
        totals[level] += np.array(part, dtype=object)
    ladder = GaussianLadder(top=TOP, unit=UNIT, variance=F(1))
    published = ladder.published(totals)
    return sum((F(int(one) ** 2, 4**place) for place, row in enumerate(published) for one in row), F(0))


@pytest.mark.parametrize("norm", [l1, l2])
def test_one_person_moves_all_levels_together_by_one(norm: Callable[[Sequence[int]], F]) -> None:
    for vector in people(1, 300):
        parts = divided(vector, norm(vector), top=TOP, unit=UNIT)
        assert len(parts) <= 2 and moved(parts, norm) <= 1 + (norm is l2) * F(1, 2**20)


def test_one_person_moves_gaussian_levels_by_what_is_paid_for() -> None:
    paid = GaussianLadder(top=TOP, unit=UNIT, variance=F(1)).l2_squared
    reached = max(
        shifts(divided(vector, l2(vector), top=TOP, unit=UNIT), len(vector)) / paid
        for vector in people(2, 200)
    )
    assert F(99, 100) < reached <= 1


def test_noise_pays_for_what_one_person_moves_whatever_a_part_is() -> None:
    """By the laws that are drawn from: a scale without its unit or its level costs more than the event."""
    epsilon = F(1, 2)
    for unit in (1, 7, UNIT):
        pure = LaplaceLadder(top=TOP, unit=unit, epsilon=epsilon)
        normal = GaussianLadder(top=TOP, unit=unit, variance=F(1000 * unit**2))
        losses, rhos = [], []
        for one in people(7, 60):
            totals = np.zeros((TOP + 1, len(one)), dtype=object)
            for level, part in divided(one, l1(one), top=TOP, unit=unit).items():
                totals[level] += np.array(part, dtype=object)
            rows = enumerate(pure.published(totals))
            losses.append(sum((sum(map(abs, row)) / pure.noise(at).parameter for at, row in rows), F(0)))
            totals[:] = 0
            for level, part in divided(one, l2(one), top=TOP, unit=unit).items():
                totals[level] += np.array(part, dtype=object)
            moves = enumerate(normal.published(totals), normal.lowest)
            rhos.append(
                sum(
                    (F(int(d) ** 2) / (2 * normal.noise(at).variance) for at, row in moves for d in row), F(0)
                )
            )
        assert F(99, 100) * epsilon < max(losses) <= epsilon
        rho = normal.event().rho()
        assert isinstance(rho, F) and F(99, 100) * rho < max(rhos) <= rho


def test_parts_sum_to_the_person_and_spreading_keeps_totals() -> None:
    for vector in people(3, 200):
        parts = divided(vector, l1(vector), top=TOP, unit=UNIT)
        kept = min(F(1), F(2**TOP) / (l1(vector) or 1))
        for place, one in enumerate(vector):
            whole = F(sum(part[place] for part in parts.values()), UNIT)
            assert abs(whole - one * kept) <= F(2, UNIT)
    alone = [divided([rows], F(rows), top=TOP, unit=1) for rows in range(1, 2**TOP)]
    assert all(sum(part[0] for part in parts.values()) == rows for rows, parts in enumerate(alone, 1))
    ladder = GaussianLadder(top=3, variance=F(100))
    totals = np.array([[5], [7], [0], [11]], dtype=object)
    assert ladder.published(totals).sum() == ladder.steps * 23
    assert len(ladder.published(totals)) == 4 + DEPTH == len(ladder.deviations())


# Planted: each moves the levels by more than is paid for.


def without_scale(vector: Sequence[int], norm: F) -> dict[int, list[int]]:
    """The upper share without its scale."""
    parts = divided(vector, norm, top=TOP, unit=UNIT)
    highest = max(parts)
    return {**parts, highest: [2 * one for one in parts[highest]]} if len(parts) == 2 else parts


def in_three_levels(vector: Sequence[int], norm: F) -> dict[int, list[int]]:
    parts = divided(vector, norm, top=TOP, unit=UNIT)
    lowest = min(parts)
    return {**parts, max(0, lowest - 1): [one // 2 for one in parts[lowest]]} if lowest else parts


def by_a_smaller_norm(vector: Sequence[int], norm: F) -> dict[int, list[int]]:
    """The level of the largest entry alone."""
    return divided(vector, F(max(map(abs, vector), default=0)), top=TOP, unit=UNIT)


def rounded_up(vector: Sequence[int], norm: F) -> dict[int, list[int]]:
    parts = divided(vector, norm, top=TOP, unit=UNIT)
    return {level: [one + (one > 0) for one in part] for level, part in parts.items()}


@pytest.mark.parametrize("planted", [without_scale, in_three_levels, by_a_smaller_norm, rounded_up])
def test_planted_divisions_are_caught(
    planted: Callable[[Sequence[int], F], dict[int, list[int]]],
) -> None:
    paid = GaussianLadder(top=TOP, unit=UNIT, variance=F(1)).l2_squared
    some = people(4, 200)
    assert max(moved(planted(one, l1(one)), l1) for one in some) > 1
    assert max(shifts(planted(one, l2(one)), len(one)) / paid for one in some) > 1


@pytest.mark.parametrize("variance", [F(1, 50), F(1, 2), F(3), F(1000)])
def test_the_event_covers_every_level_alone(variance: F) -> None:
    """A person may be in one level alone: the whole costs no less than the levels that it is spread to."""
    ladder = GaussianLadder(top=6, variance=variance)
    event = ladder.event()
    for level in range(7):
        alone = np.zeros((7, 1), dtype=object)
        alone[level] = 2**level
        moves = enumerate(ladder.published(alone)[:, 0], ladder.lowest)
        each = [(int(d), ladder.noise(at)) for at, d in moves if d]
        assert sum((law.event(d).rho() for d, law in each), F(0)) <= event.rho()  # type: ignore[misc]
        squares = sum((F(law.event(d).mu()) ** 2 for d, law in each), F(0))
        assert squares <= F(event.mu()) ** 2


def test_a_level_with_too_little_noise_costs_more_than_the_event_says() -> None:
    """Planted: noise that does not grow with the level."""
    ladder = GaussianLadder(top=6, variance=F(1000))
    moves = ladder.published(np.array([[0]] * 6 + [[64]], dtype=object))[:, 0]
    cost = sum((ladder.noise(-DEPTH).event(int(d)).rho() for d in moves if d), F(0))  # type: ignore[misc]
    assert cost > 100 * ladder.event().rho()  # type: ignore[operator]


def test_the_event_is_raised_where_a_wider_step_costs_more(monkeypatch: pytest.MonkeyPatch) -> None:
    from sfumato.core.events import DiscreteGaussian

    true = DiscreteGaussian.mu

    def raised(event: DiscreteGaussian) -> F:
        return F(true(event)) * (2 if event.sigma_squared > 100 else 1)

    ladder = GaussianLadder(top=6, variance=F(3))
    before = ladder.event()
    monkeypatch.setattr(DiscreteGaussian, "mu", raised)
    after = ladder.event()
    assert isinstance(before, DiscreteGaussianVector) and isinstance(after, DiscreteGaussianVector)
    assert after.l2_squared > 3 * before.l2_squared


def levels(rows: Sequence[int], top: int) -> np.ndarray:
    """Return the exact totals of the levels of people with so many rows each."""
    totals = np.zeros((top + 1, 1), dtype=object)
    for one in rows:
        for level, part in divided([one], F(one), top=top, unit=1).items():
            totals[level] += part[0]
    return totals


def tails(seed: int) -> list[list[int]]:
    """Return people of three tails: one row each, a few, very many for some."""
    draw = random.Random(seed)
    return [
        [1] * 400,
        [1 + int(draw.expovariate(0.3)) for _ in range(400)],
        [min(2**10, int(draw.paretovariate(1.1))) for _ in range(400)],
    ]


def ladders(top: int) -> list[CapLadder]:
    return [LaplaceLadder(top=top, epsilon=F(1)), GaussianLadder(top=top, variance=F(769, 4))]


@pytest.mark.parametrize("place", range(3))
@pytest.mark.parametrize("kind", [0, 1], ids=["laplace", "gaussian"])
def test_limits_of_what_was_left_out_hold(place: int, kind: int) -> None:
    """At level 0.9, each of 400 draws misses with at most 0.1; 100 misses have a chance below 1e-16."""
    rows, ladder = tails(5)[place], ladders(12)[kind]
    totals, below, above = levels(rows, 12), 0, 0
    for _ in range(400):
        found = estimate(ladder, ladder.release(totals)[:, 0])
        left = sum(rows) - found.total
        below += found.at_least(0.9) > max(left, 0)
        above += found.at_most(0.9) < left
    assert below < 100 and above < 100


@pytest.mark.parametrize("kind", [0, 1], ids=["laplace", "gaussian"])
def test_totals_are_near_what_the_best_cap_would_give(kind: int) -> None:
    """With 30,000 people of few rows nothing is lost, and noise is that of a cap of a few rows."""
    rows = tails(6)[1] * 75
    ladder = ladders(14)[kind]
    found = [estimate(ladder, ladder.release(levels(rows, 14))[:, 0]) for _ in range(3)]
    assert all(abs(one.total - sum(rows)) < 0.02 * sum(rows) for one in found)
    assert all(3 <= one.stop <= 8 for one in found)


@pytest.mark.parametrize("wrong", [{"top": -1}, {"top": 3, "unit": 0}])
def test_a_ladder_without_levels_is_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(InvalidArgument):
        LaplaceLadder(epsilon=F(1), **wrong)
