"""Key selection: what cutting noise off costs, from the exact law of the noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from itertools import pairwise
from statistics import NormalDist

import numpy as np
import numpy.typing as npt
import pytest

from sfumato.analysis.keys import appearance, divided_appearance, divided_cut, smallest_cut
from sfumato.core.conversions import largest_mu
from sfumato.core.noise_law import NoiseLaw, noise_law

Floats = npt.NDArray[np.float64]

LAWS = [
    ("laplace", Fraction(1, 3)),
    ("laplace", Fraction(5)),
    ("laplace", Fraction(80)),
    ("gaussian", Fraction(1, 4)),
    ("gaussian", Fraction(30)),
    ("gaussian", Fraction(20000)),
]


def masses(law: NoiseLaw, reach: int) -> Floats:
    return np.array([law.mass(x) for x in range(-reach, reach + 1)])


def spread(law: NoiseLaw) -> int:
    return math.ceil(40 * math.sqrt(law.variance)) + 20


@pytest.mark.parametrize(("kind", "parameter"), LAWS)
def test_tails_are_those_of_the_law(kind: str, parameter: Fraction) -> None:
    law = noise_law(kind, parameter)
    reach = spread(law)
    all_masses = masses(law, reach)
    for gap in (1, 2, 3, reach // 8 + 1, reach // 3 + 1):
        tail = float(all_masses[reach + gap :].sum())
        assert tail <= law.tail(gap) * (1 + 1e-12) + 1e-300
        assert law.tail(gap) == pytest.approx(tail, rel=1e-9, abs=1e-300)


@pytest.mark.parametrize(("kind", "parameter"), LAWS)
def test_tails_within_a_cut_are_those_of_the_law(kind: str, parameter: Fraction) -> None:
    law = noise_law(kind, parameter)
    for cut in {max(1, law.half_width(share)) for share in (0.5, 0.9, 0.999)}:
        inside = masses(law, cut)
        for gap in {1, (cut + 1) // 2, cut, cut + 1} - {0}:
            exact = float(inside[cut + gap :].sum() / inside.sum())
            assert exact * (1 - 1e-12) <= law.tail_within(cut, gap) <= exact * (1 + 1e-8)


# -- what the cut costs ---------------------------------------------------------------------


def hockey_stick(p: Floats, q: Floats, epsilon: float) -> float:
    return float(np.maximum(0, p - math.exp(epsilon) * q).sum())


@pytest.mark.parametrize(("kind", "parameter"), LAWS)
@pytest.mark.parametrize("share", [0.5, 0.99])
@pytest.mark.parametrize("shift", [1, 3, 8])
def test_inside_the_window_nothing_is_easier_to_tell_apart(
    kind: str, parameter: Fraction, share: float, shift: int
) -> None:
    """The theorem of `analysis.keys`, at 60 epsilons: cut noise is in its window like noise without a cut.

    Power: a window that is one output wider on one side has an infinite loss there.
    """
    law = noise_law(kind, parameter)
    cut = max(shift, law.half_width(share))
    reach = max(cut, spread(law))
    one = masses(law, reach + shift)
    wide = (
        one[shift : len(one) - shift],
        one[: len(one) - 2 * shift],
    )
    # outputs -reach .. reach, of noise around 0 and around `shift`; both can produce those of the window
    window = slice(reach + shift - cut, reach + cut + 1)
    first, second = (side[window] for side in wide)
    inside = first / first.sum(), second / second.sum()
    whole = masses(law, cut)
    left = float(whole[2 * cut + 1 - shift :].sum() / whole.sum())
    assert left <= law.tail_within(cut, cut - shift + 1) * (1 + 1e-12)
    assert first.sum() == pytest.approx(second.sum(), rel=1e-9)
    for epsilon in np.linspace(0, 3 * shift / math.sqrt(law.variance) + 0.1, 60):
        for p, q in ((0, 1), (1, 0)):
            assert hockey_stick(inside[p], inside[q], epsilon) <= (
                hockey_stick(wide[p], wide[q], epsilon) + 1e-12
            )


def ways(total: int, each: int) -> Iterator[tuple[int, ...]]:
    """Yield all ways to move numbers by at most `each`, and by at most `total` in all."""
    yield ()
    for first in range(1, min(each, total) + 1):
        for rest in ways(total - first, first):
            yield (first, *rest)


@pytest.mark.parametrize(("kind", "parameter"), LAWS)
@pytest.mark.parametrize(("each", "total"), [(1, 1), (1, 5), (3, 7), (4, 8), (7, 7)])
def test_no_way_of_moving_numbers_leaves_windows_more_often(
    kind: str, parameter: Fraction, each: int, total: int
) -> None:
    law = noise_law(kind, parameter)
    for cut in {max(each, law.half_width(share)) for share in (0.5, 0.9, 0.9999)}:
        claimed = appearance(law, cut, each=each, total=total)
        left = [0.0, *(law.tail_within(cut, cut - move + 1) for move in range(1, each + 1))]
        for moves in ways(total, each):
            assert 1 - math.prod(1 - left[move] for move in moves) <= claimed + 1e-15


@pytest.mark.parametrize(("kind", "parameter"), LAWS)
@pytest.mark.parametrize(("each", "total"), [(1, 1), (1, 4), (3, 7)])
@pytest.mark.parametrize("delta", [Fraction(1, 100), Fraction(1, 10**9)])
def test_cuts_hold_and_are_the_smallest(
    kind: str, parameter: Fraction, each: int, total: int, delta: Fraction
) -> None:
    law = noise_law(kind, parameter)
    cut = smallest_cut(law, delta, each=each, total=total)
    assert appearance(law, cut, each=each, total=total) <= delta
    if cut > max(each, law.half_width(0.5)):
        assert appearance(law, cut - 1, each=each, total=total) > delta


@pytest.mark.parametrize(("kind", "parameter"), [("laplace", Fraction(5)), ("gaussian", Fraction(30))])
def test_a_lone_unit_appears_as_rarely_as_claimed(kind: str, parameter: Fraction) -> None:
    """Draw it: 2 million lone units at delta = 1e-3; and nobody at all never appears.

    False alarms: the bound is 7 standard deviations up, 1e-11. Power: a cut that is one too
    low makes the rate e^(1/5) = 1.22 times as large, 10 deviations.
    """
    draws, law = 2_000_000, noise_law(kind, parameter)
    cut = smallest_cut(law, Fraction(1, 1000), each=1, total=1)
    drawn = law.draw_within(cut, draws)
    assert np.abs(drawn).max() == cut
    exact = appearance(law, cut, each=1, total=1)
    assert exact <= 1e-3
    assert abs(np.count_nonzero(1 + drawn > cut) / draws - exact) <= 7 * math.sqrt(exact / draws)


def test_cuts_rise_as_delta_falls_and_groups_grow() -> None:
    law = noise_law("laplace", Fraction(5))
    falling = [smallest_cut(law, Fraction(1, 10**n), each=1, total=3) for n in range(2, 12)]
    assert all(low < high for low, high in pairwise(falling))
    growing = [
        smallest_cut(noise_law("gaussian", Fraction(30)), Fraction(1, 10**6), each=1, total=n)
        for n in (1, 10, 1000)
    ]
    assert all(low < high for low, high in pairwise(growing))


def test_weight_in_one_group_is_the_worst_with_laplace_noise_alone() -> None:
    """d f(G / d) <= f(G), for f is convex: a unit may divide its weight at no cost of delta."""
    law, weights = noise_law("laplace", Fraction(500)), tuple(120 // d for d in range(1, 9))
    cut = divided_cut(law, Fraction(1, 10**6), weights)
    assert cut == smallest_cut(law, Fraction(1, 10**6), each=120, total=120)
    assert divided_appearance(law, cut, weights) == appearance(law, cut, each=120, total=120)


def test_rows_of_one_unit_may_be_spread_at_no_cost_of_delta() -> None:
    """36 rows in all: the worst is a unit with all of them in one group.

    Without a cut the threshold is scale * ln(groups / (2 delta)) + 36 = 3458.
    """
    law = noise_law("laplace", Fraction(180))
    cuts = [smallest_cut(law, Fraction(1, 10**7), each=each, total=36) for each in (36, 12, 1)]
    assert cuts == sorted(cuts, reverse=True) and cuts[0] < 2600


# -- how much can be found ------------------------------------------------------------------


LABOUR = (9063, 8433, 8094, 6982, 4565, 4041, 2671, 1790, 1290, 1072, 742, 564, 510, 163, 15, 5)
"""Rows by age and status of a French survey, as in `bench/accuracy.py`: 36 of each unit, all in one group."""


def most_shown(rise: Callable[[float], float], delta: float) -> tuple[int, float]:
    """Return from how many units a group can be shown half the time, and how many of `LABOUR` can be."""
    chances = [0.0, delta]
    while len(chances) <= max(LABOUR) // 36 + 1:
        chances.append(min(1.0, rise(chances[-1]) + delta))
    return sum(chance < 0.5 for chance in chances), sum(chances[-(-rows // 36)] for rows in LABOUR)


def test_no_rule_finds_much_more_than_noise_that_is_cut_off() -> None:
    """The figures of `analysis.keys`, for (0.2, 1e-7) and units of 36 rows.

    Power: without the delta of each step the Gaussian bound would be 119, and its noise beyond one unit.
    """
    epsilon, delta = Fraction(1, 5), Fraction(1, 10**7)
    up, normal = math.exp(epsilon), NormalDist()
    half, most = most_shown(lambda chance: min(up * chance, 1 - (1 - chance) / up), float(delta))
    assert half == 70
    laplace = noise_law("laplace", 36 / epsilon)
    assert smallest_cut(laplace, delta, each=36, total=36) <= 36 * 70
    bounds, shown = [], []
    for percent in (10, 20, 30, 40, 50, 60, 70):
        keys = delta * percent / 100
        mu = largest_mu(epsilon, delta - keys)

        def rise(chance: float, mu: float = mu) -> float:
            return normal.cdf(normal.inv_cdf(chance) + mu) if chance < 1 else 1.0

        half, groups = most_shown(rise, float(keys))
        bounds.append(half)
        shown.append(groups)
        gaussian = noise_law("gaussian", Fraction((36 / mu) ** 2))
        assert 36 * (bounds[-1] - 1) < smallest_cut(gaussian, keys, each=36, total=36) < 36 * (bounds[-1] + 1)
    assert min(bounds) == 113 and bounds[0] == 116
    # OpenDP's Laplace threshold finds fewer than are possible, and more than a Gaussian mu allows.
    scale = 36 / float(epsilon)
    above = [(rows - 36) / scale - math.log(36 / (2 * float(delta))) for rows in LABOUR]
    laplace_finds = sum(1 - math.exp(-x) / 2 if x > 0 else math.exp(x) / 2 for x in above)
    assert 6.84 < most < 6.85 and 5.9 < laplace_finds < 6 and 5.31 < max(shown) < 5.32
