"""The table of which measure implies which: its examples against the code, its constants against brute force.

A constant is found again from laws alone: the coin toss, of which every pure pair is a coarser view; two
bell curves on a fine grid; two coins; every answer of a small survey.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from pathlib import Path
from statistics import NormalDist

import numpy as np
import pytest

from sfumato import core
from sfumato.core.arguments import Number
from sfumato.core.individual import local_sensitivity
from sfumato.core.measures import Guarantee
from sfumato.errors import Unsupported
from sfumato.local.shuffling import central_epsilon

PAGE = Path(__file__).parent.parent / "docs/learn/implications.md"
EXAMPLE = re.compile(r"^\| ([^|]+) → ([^|]+) \| [^|]+ \| [^|]+: \w+ ([\d.]+) \|$", re.MULTILINE)
ROWS = {(start, follows): shown for start, follows, shown in EXAMPLE.findall(PAGE.read_text())}

Law = np.ndarray[tuple[int], np.dtype[np.float64]]
ORDERS = 1 + np.geomspace(1e-4, 100, 400)
COIN = (np.array([math.e, 1.0]) / (1 + math.e), np.array([1.0, math.e]) / (1 + math.e))  # pure epsilon 1
STEP = 1e-3
GRID = np.arange(-12, 13, STEP)
BELLS = tuple(STEP * np.exp(-((GRID - mu) ** 2) / 2) / math.sqrt(2 * math.pi) for mu in (1, 0))  # mu 1


def delta(laws: tuple[Law, ...], epsilon: float) -> float:
    """Return what the first law has above e^epsilon times the second, summed over outputs."""
    return float(np.maximum(laws[0] - math.exp(epsilon) * laws[1], 0).sum())


def renyi(laws: tuple[Law, ...], order: float) -> float:
    kept = laws[1] > 0
    return math.log(float((laws[0][kept] ** order * laws[1][kept] ** (1 - order)).sum())) / (order - 1)


def rho(laws: tuple[Law, ...]) -> float:
    """Return the least rho: the largest divergence over its order."""
    return max(renyi(laws, order) / order for order in ORDERS)


def delta_of_bells(mu: float, epsilon: float) -> float:
    normal = NormalDist()
    return normal.cdf(mu / 2 - epsilon / mu) - math.exp(epsilon) * normal.cdf(-mu / 2 - epsilon / mu)


def mu(laws: tuple[Law, ...]) -> float:
    """Return the least mu whose bell curves are nowhere harder to tell apart: by bisection."""
    epsilons = np.linspace(0, 3, 61)
    low, high = 0.01, 5.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        enough = all(delta_of_bells(middle, epsilon) >= delta(laws, epsilon) for epsilon in epsilons)
        low, high = (low, middle) if enough else (middle, high)
    return high


def epsilon_of_coins(order: float, value: float, allowed: float) -> float:
    """Return the largest epsilon at which two coins of this divergence still differ by `allowed`."""
    heads = np.geomspace(allowed * (1 + 1e-9), 1 - 1e-9, 20_000)
    low, high = 0.0, 20.0
    while high - low > 1e-6:
        middle = (low + high) / 2
        other = (heads - allowed) * math.exp(-middle)
        powers = heads**order * other ** (1 - order) + (1 - heads) ** order * (1 - other) ** (1 - order)
        low, high = (middle, high) if np.log(powers).min() / (order - 1) <= value else (low, middle)
    return high


def leaking(chance: float) -> tuple[Law, ...]:
    """Return the coin toss that, with some chance, says openly which of both it is."""
    first, second = ((1 - chance) * law for law in COIN)
    return np.array([*first, chance, 0.0]), np.array([*second, 0.0, chance])


def largest_loss_of_a_survey(people: int) -> float:
    """Return the largest loss when one of several people who toss coins has another answer."""
    truth = 0.75
    losses = []
    for answers in itertools.product((0, 1), repeat=people):
        other = (1 - answers[0], *answers[1:])
        for said in itertools.product((0, 1), repeat=people):
            here, there = (
                math.prod(truth if word == mine else 1 - truth for word, mine in zip(said, each, strict=True))
                for each in (answers, other)
            )
            losses.append(math.log(here / there))
    return max(losses)


def largest_loss_of_replacing() -> float:
    """Return the largest loss of two counts of pure epsilon 1, when a person moves between them."""
    count, outputs = core.LaplaceMechanism.from_epsilon(1), range(-3, 5)
    return max(
        float(count.privacy_loss(left, 1, 0) + count.privacy_loss(right, 0, 1))
        for left, right in itertools.product(outputs, outputs)
    )


def largest_loss_of_these_rows() -> float:
    """Return the largest loss between two ages and their neighbours, of their maximum at pure epsilon 1."""
    ages, noisy = (0, 9), core.LaplaceMechanism.from_epsilon(1, sensitivity=9)
    neighbours = [(0,), (9,), *((*ages, new) for new in range(10))]
    return max(
        float(noisy.privacy_loss(output, max(ages), max(other)))
        for output in range(-5, 20)
        for other in neighbours
    )


def part_of(share: float) -> tuple[Law, ...]:
    """Return a law that is the second one, given an event of this chance: its loss is the same everywhere."""
    return np.array([1.0, 0.0]), np.array([share, 1 - share])


PURE, GAUSSIAN = core.PureDP(epsilon=1), core.GaussianDP(mu=1)
CONCENTRATED, RENYI = core.ZeroConcentratedDP(rho=0.5), core.RenyiDP(order=8, epsilon=0.5)
APPROXIMATE = core.ApproximateDP(epsilon=1, delta=0.01)
INDIVIDUAL_SCALE = core.IndividualPrivacy(epsilon=1).scale(local_sensitivity(max, (0, 9), range(10)))

ATTAINED: dict[tuple[str, str], tuple[Number, Callable[[], float]]] = {
    ("pure", "approximate, at a smaller epsilon'"): (PURE.delta_at(0.5), lambda: delta(COIN, 0.5)),
    ("pure", "Gaussian"): (PURE.to_gaussian().mu, lambda: mu(COIN)),
    ("pure", "zCDP"): (PURE.to_zero_concentrated().rho, lambda: rho(COIN)),
    ("pure", "Renyi"): (PURE.to_renyi(2).epsilon, lambda: renyi(COIN, 2)),
    ("pure", "individual"): (9 / INDIVIDUAL_SCALE, largest_loss_of_these_rows),
    ("pure, with or without a person", "pure, of a person who is replaced"): (
        PURE.group(2).epsilon,
        largest_loss_of_replacing,
    ),
    ("Gaussian", "approximate"): (GAUSSIAN.delta_at(1), lambda: delta(BELLS, 1)),
    ("Gaussian", "zCDP"): (GAUSSIAN.to_zero_concentrated().rho, lambda: renyi(BELLS, 3) / 3),
    ("Gaussian", "Renyi"): (GAUSSIAN.to_renyi(2).epsilon, lambda: renyi(BELLS, 2)),
    ("zCDP", "Renyi"): (CONCENTRATED.to_renyi(2).epsilon, lambda: renyi(BELLS, 2)),
    ("Renyi", "Renyi of a lower order"): (
        RENYI.to_renyi(2).epsilon,
        lambda: renyi(part_of(math.exp(-0.5)), 2),
    ),
    ("Renyi", "approximate"): (RENYI.to_approximate(1e-6).epsilon, lambda: epsilon_of_coins(8, 0.5, 1e-6)),
    ("approximate", "approximate, at a smaller epsilon'"): (
        APPROXIMATE.delta_at(0.5),
        lambda: delta(leaking(0.01), 0.5),
    ),
    ("local", "pure, of an answer that is replaced"): (
        core.RandomizedResponseMechanism.coin_toss().epsilon,
        lambda: largest_loss_of_a_survey(3),
    ),
}
"""What the code says, and how to find a law that has no less."""
BOUNDED: dict[tuple[str, str], float] = {
    ("zCDP", "approximate"): float(CONCENTRATED.to_approximate(1e-6).epsilon),
    ("local", "shuffled, among n honest people"): central_epsilon(1, 300, 1e-6),
}


@pytest.mark.parametrize("row", ATTAINED, ids=" to ".join)
def test_a_constant_is_what_the_code_says_and_what_brute_force_finds(row: tuple[str, str]) -> None:
    said, find = ATTAINED[row]
    assert f"{float(said):.4g}" == ROWS[row]
    assert find() == pytest.approx(float(said), rel=2e-4)


def test_the_table_has_every_conversion() -> None:
    """No arrow is missing that the code has, and none is there that brute force does not know."""
    assert set(ROWS) == {*ATTAINED, *BOUNDED}
    measures: dict[str, Guarantee] = {
        "pure": PURE, "approximate": APPROXIMATE, "Gaussian": GAUSSIAN, "zCDP": CONCENTRATED, "Renyi": RENYI
    }  # fmt: skip
    arrows: dict[str, Callable[[Guarantee], Guarantee]] = {
        "pure": lambda start: start.to_pure(),
        "Gaussian": lambda start: start.to_gaussian(),
        "zCDP": lambda start: start.to_zero_concentrated(),
        "Renyi": lambda start: start.to_renyi(2),
        "approximate": lambda start: start.to_approximate(0.1),
    }
    listed = {(start, re.split(",| of ", follows)[0]) for start, follows in ROWS}
    for start, guarantee in measures.items():
        for follows, convert in arrows.items():
            if start != follows or start in ("Renyi", "approximate"):
                try:
                    convert(guarantee)
                except Unsupported:
                    assert (start, follows) not in listed
                else:
                    assert (start, follows) in listed


def test_bounds_lie_between_what_is_attained_and_what_is_on_paper() -> None:
    """zCDP: above bell curves of that rho. Shuffling: above coin tosses among people who all say no."""
    for row, bound in BOUNDED.items():
        assert f"{bound:.4g}" == ROWS[row]
    shown = BOUNDED["zCDP", "approximate"]
    assert delta_of_bells(1, shown) < 1e-6 and shown < 0.5 + 2 * math.sqrt(0.5 * math.log(1e6))

    yes, others = 1 / (1 + math.e), 299  # a person's no becomes a yes with this chance
    counts = np.array([math.comb(others, k) * yes**k * (1 - yes) ** (others - k) for k in range(others + 1)])
    with_yes, with_no = (np.convolve(counts, [1 - said, said]) for said in (1 - yes, yes))
    shuffled = BOUNDED["local", "shuffled, among n honest people"]
    assert max(delta((with_yes, with_no), shuffled), delta((with_no, with_yes), shuffled)) < 1e-6
    assert delta((with_yes, with_no), shuffled / 2) > 1e-6, "and not far above"


def test_what_never_follows_has_a_witness() -> None:
    assert mu(COIN) > math.sqrt(2 * rho(COIN)) * 1.2, "the coin toss has rho, and not the mu of that rho"
    assert np.log(BELLS[0] / BELLS[1]).max() > 10, "the loss of bell curves goes on to the end of the grid"
    first, second = leaking(0.01)
    assert first[2] > 0 and second[2] == 0, "an output that only one of both has: no divergence is finite"
    rare = tuple(np.array([chance, 1 - chance]) for chance in (1e-6, 1.6e-12))
    assert renyi(rare, 2) < 0.5 and renyi(rare, 8) > 10, "order 2 hardly sees what order 8 does"


PRICES = re.findall(
    r"^\| (\w+) \| ([^|]*) \| ([^|]*) \|$", PAGE.read_text().split("## A family")[1], re.MULTILINE
)


def test_families_and_two_releases_cost_what_the_table_says() -> None:
    assert [name for name, *_ in PRICES[1:]] == ["pure", "approximate", "Gaussian", "zCDP", "Renyi", "local"]
    assert core.PureDP(epsilon=2).group(3).epsilon == 6
    both = core.ApproximateDP(epsilon=1, delta=0.001).group(3)
    assert float(both.delta) == pytest.approx(0.001 * math.expm1(3) / math.expm1(1)) and both.epsilon == 3
    assert core.GaussianDP(mu=2).group(3).mu == 6 and core.ZeroConcentratedDP(rho=2).group(3).rho == 18
    assert core.RenyiDP(order=16, epsilon=1).group(4) == core.RenyiDP(order=4, epsilon=9)
    thrice = (
        STEP * np.exp(-((GRID - 3) ** 2) / 2) / math.sqrt(2 * math.pi),
        BELLS[1],
    )  # three people shift it
    assert renyi(thrice, 2) == pytest.approx(9 * renyi(BELLS, 2))
