"""What shuffled reports give away: bounds that hold for every randomiser tried, and are tight for their pair.

Oracles: exact enumeration in Fractions of shuffled reports and of the dominating pair, a direct
two-dimensional sum, mpmath for tails, and the published figures.
"""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from sfumato.errors import InvalidArgument
from sfumato.local import clones as module
from sfumato.local.clones import Clones
from sfumato.local.response import KaryResponse
from sfumato.local.shuffling import amplification, central_epsilon, closed_form, local_epsilon

F = Fraction
GROWN = [F(1), F(101, 100), F(6, 5), F(3, 2), F(2), F(29, 10)]  # e^epsilon


def both(pair: Clones, epsilon: float) -> tuple[float, float]:
    """Return the two bounds of the pair's delta."""
    return pair.at_least(epsilon), pair.at_most(epsilon)


def shuffled(laws: list[list[Fraction]]) -> dict[tuple[int, ...], Fraction]:
    """Return the exact law of how often each report occurs, by adding one person after another."""
    width = len(laws[0])
    found = {(0,) * width: F(1)}
    for law in laws:
        grown: dict[tuple[int, ...], Fraction] = defaultdict(F)
        for counts, chance in found.items():
            for y in range(width):
                grown[(*counts[:y], counts[y] + 1, *counts[y + 1 :])] += chance * law[y]
        found = grown
    return found


def true_delta(
    p: dict[tuple[int, ...], Fraction], q: dict[tuple[int, ...], Fraction], grown: Fraction
) -> Fraction:
    return sum((max(F(0), p.get(y, F(0)) - grown * q.get(y, F(0))) for y in p), F(0))


def pair_delta(odds: Fraction, cover: Fraction, others: int, grown: Fraction) -> Fraction:
    """Return the delta of the pair as its definition says: over C, A and D, in Fractions."""
    laws: list[dict[tuple[int, ...], Fraction]] = [defaultdict(F), defaultdict(F)]
    for c in range(others + 1):
        chance = math.comb(others, c) * cover**c * (1 - cover) ** (others - c)
        for a in range(c + 1):
            split = chance * F(math.comb(c, a), 2**c)
            for d, weight in ((1, odds / (odds + 1)), (0, 1 / (odds + 1))):
                laws[0][a + d, c - a + 1 - d] += split * weight
                laws[1][a + 1 - d, c - a + d] += split * weight
    return true_delta(laws[0], laws[1], grown)


# -- the pair: both bounds hold, and meet ------------------------------------------------------


@pytest.mark.parametrize("odds", [F(11, 10), F(3), F(55), F(10**8)])
@pytest.mark.parametrize("others", [0, 1, 2, 7, 25])
def test_the_bounds_enclose_the_exact_delta(odds, others):
    for pair in (Clones.of_any(odds, others), Clones.of_response(odds, others)):
        for grown in GROWN:
            epsilon = math.log(grown)
            # A float is next to ln(grown), not on it: delta falls by at most e^epsilon per unit.
            off = F(4 * grown * max(F(math.ulp(epsilon)), F(2) ** -60))
            exact = pair_delta(pair.odds, pair.cover, others, grown)
            low, high = both(pair, epsilon)
            assert F(low) - off <= exact <= F(high) + off
            assert high - low <= 1e-11 * high + 2e-14


@pytest.mark.parametrize(("odds", "others"), [(F(3), 400), (F(55), 3000), (F(55), 20_000), (F(400), 20_000)])
@pytest.mark.parametrize("epsilon", [0.0, 0.01, 0.1, 0.3, 0.7])
def test_the_bounds_enclose_a_direct_sum(odds, others, epsilon):
    """The definition once more, over every C and A whose chance is above 1e-30, in floats."""
    pair = Clones.of_any(odds, others)
    c = np.arange(others + 1)
    chances = stats.binom.pmf(c, others, float(pair.cover))
    w = float(odds / (odds + 1))
    total = 0.0
    for clones in c[chances > 1e-30]:
        a = np.arange(clones + 2)
        one, none = stats.binom.pmf(a - 1, clones, 0.5), stats.binom.pmf(a, clones, 0.5)
        excess = (w * one + (1 - w) * none) - math.exp(epsilon) * ((1 - w) * one + w * none)
        total += chances[clones] * math.fsum(excess[excess > 0])
    low, high = both(pair, epsilon)
    assert low * (1 - 1e-9) - 1e-18 <= total <= high * (1 + 1e-9) + 1e-18
    assert high - low <= 1e-9 * high + 1e-30


def test_lumps_enclose_what_they_lump():
    """Lumps of 1, 8 and 60 numbers of clones: the bounds stay in order and close to each other."""
    pair = Clones.of_any(F(3), 3_000_000)
    found = {}
    for buckets in (40_000, 4_096, 600):
        module._crowd.cache_clear()
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(module, "_BUCKETS", buckets)
            found[buckets] = both(pair, 0.005)
    module._crowd.cache_clear()
    assert (
        found[600][0]
        < found[4_096][0]
        < found[40_000][0]
        < found[40_000][1]
        < found[4_096][1]
        < found[600][1]
    )
    assert found[40_000][1] / found[40_000][0] < 1 + 1e-8
    assert found[4_096][1] / found[4_096][0] < 1 + 1e-3
    crowd = module._crowd(3_000_000, pair.cover)
    assert crowd.low.sum() <= 1 <= crowd.high.sum() + crowd.before
    assert crowd.high.sum() / crowd.low.sum() < 1 + 1e-3


@pytest.mark.parametrize("odds", [F(7, 4), F(3), F(8)])
def test_what_is_cut_off_is_counted(odds):
    """With both ends of the law of clones cut where they still matter, the upper bound stays one."""
    pair = Clones.of_any(odds, 80)
    exact = [pair_delta(odds, pair.cover, 80, grown) for grown in GROWN[:4]]
    module._crowd.cache_clear()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "_NATS", 1.0)
        crowd = module._crowd(80, pair.cover)
        bounds = [both(pair, math.log(grown)) for grown in GROWN[:4]]
    module._crowd.cache_clear()
    assert crowd.before > 1e-3 and crowd.high.sum() - crowd.low.sum() > 1e-3
    for (low, high), between in zip(bounds, exact, strict=True):
        assert low < between < high


@pytest.mark.parametrize("n", [1, 2, 3, 10, 99, 2_000, 10**9, 10**15])
def test_chances_and_tails_against_mpmath(n):
    half = n // 2
    t = np.unique(
        np.minimum(
            n, half + 1 + np.array([0, 1, 2, 0.3, 1, 3, 9] * np.sqrt([0, 0, 0, n, n, n, n])).astype(int)
        )
    )
    t = t[t >= (n + 1) / 2].astype(float)
    log, margin = module._log_chance(t, np.full(len(t), float(n)), (n / 2, n / 2))
    with mpmath.workdps(60):
        for i, k in enumerate(t):
            exact = mpmath.log(mpmath.binomial(n, int(k))) - n * mpmath.log(2)
            assert abs(exact - mpmath.mpf(log[i])) <= margin[i] <= 1e-12 + 1e-13 * math.sqrt(n)
    if n > 2_000:
        return
    low, high = (module._fraction(t, n - t + 1, depth) for depth in (255, 256))
    for i, k in enumerate(t.astype(int)):
        tail, at = sum(math.comb(n, j) for j in range(k, n + 1)), math.comb(n, int(k))
        exact = float(F(tail, at) * 2 / int(k))
        assert low[i] * (1 - 1e-12) <= exact <= high[i] * (1 + 1e-12)
    early = [module._fraction(t, n - t + 1, depth) for depth in (1, 2)]
    assert (early[0] <= low * (1 + 1e-12)).all() and (high <= early[1] * (1 + 1e-12)).all()


# -- the theorem: no shuffled randomiser gives away more -----------------------------------------


@pytest.mark.parametrize("size", [2, 3])
@pytest.mark.parametrize("odds", [F(3, 2), F(3), F(20)])
def test_no_shuffled_response_gives_away_more(size, odds):
    """Every choice of other people's answers, up to eight people; the bound is nearly reached."""
    law = [[(odds if x == y else F(1)) / (odds + size - 1) for y in range(size)] for x in range(size)]
    closest = F(0)
    for people in (1, 2, 3, 5, 8):
        response, any_ = Clones.of_response(odds, people - 1), Clones.of_any(odds, people - 1)
        for others in itertools.combinations_with_replacement(range(size), people - 1):
            known = [law[x] for x in others]
            p, q = shuffled([law[0], *known]), shuffled([law[1], *known])
            for grown in GROWN:
                if grown >= odds:
                    continue
                exact = max(true_delta(p, q, grown), true_delta(q, p, grown))
                bound = response.at_most(math.log(grown))
                assert (
                    exact
                    <= F(bound) * (1 + F(1, 10**12))
                    <= F(any_.at_most(math.log(grown))) * (1 + F(1, 10**9))
                )
                if people > 1:
                    closest = max(closest, exact / F(bound))
    assert closest > F(3, 4)


def test_no_shuffled_randomiser_gives_away_more():
    """Small random matrices, every choice of other people's answers, up to four people."""
    draw = np.random.default_rng(1)
    matrices = []
    for _ in range(24):
        outputs = int(draw.integers(2, 5))
        raw = draw.choice([1, 1, 2, 4], size=(3, outputs))
        law = [[F(int(v), int(row.sum())) for v in row] for row in raw]
        matrices.append(law)
    for law in matrices:
        odds = max(max(column) / min(column) for column in zip(*law, strict=True))
        if odds == 1:
            continue
        for people in (2, 4):
            for others in itertools.combinations_with_replacement(range(3), people - 1):
                known = [law[x] for x in others]
                p, q = shuffled([law[0], *known]), shuffled([law[1], *known])
                for grown in (F(1), F(3, 2), F(7, 2)):
                    exact = max(true_delta(p, q, grown), true_delta(q, p, grown))
                    epsilon = math.log(grown)
                    assert exact <= F(Clones.of_any(odds, people - 1).at_most(epsilon)) + F(1, 10**13)


def test_the_covers_are_those_of_the_proof():
    """Every law of a report is at least cover (a + b)/2, with equality somewhere for k-ary response."""
    odds = F(7, 2)
    for size in (2, 3, 4, 6):
        law = [[(odds if x == y else F(1)) / (odds + size - 1) for y in range(size)] for x in range(size)]
        least = min(
            2 * law[x][y] / (law[a][y] + law[b][y])
            for x in range(size) for y in range(size) for a, b in itertools.permutations(range(size), 2)
        )  # fmt: skip
        assert least == Clones.of_response(odds, 1).cover > Clones.of_any(odds, 1).cover
    # Two answers that share a likely report, which a third makes rarely: no more than 1/r holds of any.
    law = [[F(1, 2), F(1, 3), F(1, 6)], [F(1, 2), F(1, 6), F(1, 3)], [F(1, 6), F(1, 2), F(1, 3)]]
    odds = max(max(column) / min(column) for column in zip(*law, strict=True))
    least = min(2 * row[y] / (law[0][y] + law[1][y]) for row in law for y in range(3))
    assert least == 1 / odds == Clones.of_any(odds, 1).cover


# -- the numbers people ask for -------------------------------------------------------------------


def test_the_published_figures():
    """Feldman, McMillan and Talwar's own programme gives [0.16754, 0.17279], and 0.53780 on paper."""
    found = amplification(4, minimum=100_000, delta=1e-6)
    assert 0.16754 <= found.central_low <= found.central <= 0.17279
    assert found.central - found.central_low < 1e-9
    assert round(closed_form(4, 100_000, 1e-6), 5) == 0.53780
    for local, n in ((0.5, 10**4), (1, 10**5), (4, 10**6), (6, 10**7)):
        assert central_epsilon(local, n, 1e-8) <= closed_form(local, n, 1e-8)


@pytest.mark.soak
def test_more_people_less_privacy_loss_and_so_on():
    for numbers in (
        [central_epsilon(2, n, 1e-8) for n in (1, 2, 10, 100, 10**4, 10**5, 10**9)],
        [central_epsilon(2, 5000, d) for d in (0, 1e-30, 1e-15, 1e-9, 1e-6, 1e-3, 1e-2)],
        [central_epsilon(e, 5000, 1e-8) for e in (20, 12, 8, 6, 4, 2, 1, 0.1, 1e-6)],
        [central_epsilon(KaryResponse.from_epsilon(e, size=5), 5000, 1e-8) for e in (12, 6, 3, 1, 0.1)],
    ):
        assert all(a >= b * (1 - 1e-7) for a, b in itertools.pairwise(numbers))
        assert numbers[0] > numbers[-1]


@pytest.mark.parametrize("local", [1e-6, 0.1, 1, 4, 20])
@pytest.mark.parametrize(
    ("minimum", "delta"), [(1, 1e-6), (9, 0), (2, 1e-6), (50, 1e-15), (10**9, 1e-15), (10**16, 1e-6)]
)
def test_never_worse_than_the_local_epsilon(local, minimum, delta):
    found = amplification(local, minimum, delta)
    assert 0 <= found.central_low <= found.central <= found.local == local
    if minimum == 1 or delta == 0:
        assert found.central == local
    assert str(found)


@pytest.mark.parametrize(
    ("central", "minimum", "delta"), [(0.1, 10**4, 1e-6), (1, 500, 1e-9), (0.01, 10**9, 1e-12)]
)
@pytest.mark.parametrize("response", [False, True])
def test_the_way_back(central, minimum, delta, response):
    local = local_epsilon(central, minimum, delta, response=response)
    assert local > central

    def forth(epsilon: float) -> float:
        return central_epsilon(
            KaryResponse.from_epsilon(epsilon, size=3) if response else epsilon, minimum, delta
        )

    assert forth(local) <= central * (1 + 1e-7)
    assert forth(local * 1.001) > central


def test_the_way_back_at_its_ends():
    assert local_epsilon(0.5, 1, 1e-6) == local_epsilon(0.5, 1000, 0) == 0.5
    assert local_epsilon(25, 1000, 1e-6) == local_epsilon(20, 10, 1e-6) == 20
    assert local_epsilon(2, 10**13, 1e-6) == 20  # all that protocols offer
    assert local_epsilon(0.5, 2, 1e-12) == pytest.approx(0.5, abs=1e-6)


def test_a_protocol_is_read_exactly():
    coin = KaryResponse.coin_toss()
    found = amplification(coin, 1000, 1e-6)
    assert found.local == coin.epsilon
    assert found.central < central_epsilon(math.log(3), 1000, 1e-6)
    alone = amplification(KaryResponse(size=1, odds=F(3)), 1000, 1e-6)
    assert alone.central == alone.local == 0 and "no protection" in str(alone)


@pytest.mark.parametrize("minimum", [2, 3, 12])
def test_the_person_is_one_of_the_minimum(minimum):
    """The exact delta of one person among `minimum`, just above and just below what is returned."""
    coin, delta = KaryResponse.coin_toss(), F(1, 1000)
    found = central_epsilon(coin, minimum, delta)
    for factor, holds in ((1 + 1e-9, True), (1 - 1e-6, False)):
        grown = F(math.exp(found * factor))
        assert (pair_delta(coin.odds, F(1, 2), minimum - 1, grown) <= delta) == holds


def test_the_sentence_says_what_is_assumed():
    text = " ".join(str(amplification(4, 100_000, 1e-6)).split())
    for words in (
        "99,999 other honest",
        "0.1698 ",
        "delta 1e-06",
        "shuffler is trusted",
        "tells its sender",
        "one.",
    ):
        assert words in text


@pytest.mark.parametrize(
    ("arguments", "place"),
    [((0, 10, 1e-6), "local"), ((101, 10, 1e-6), "local"), ((math.nan, 10, 1e-6), "local"),
     ((1, 0, 1e-6), "minimum"), ((1, 1.5, 1e-6), "minimum"),
     ((1, 10, 1), "delta"), ((1, 10, -1e-6), "delta")],
)  # fmt: skip
def test_what_makes_no_sense_is_refused(arguments, place):
    with pytest.raises(InvalidArgument) as refused:
        central_epsilon(*arguments)
    assert refused.value.place == place
    with pytest.raises(InvalidArgument):
        local_epsilon(*arguments[:1], *arguments[1:]) if place != "local" else local_epsilon(-1, 10, 1e-6)
    with pytest.raises(InvalidArgument):
        Clones(odds=F(1), cover=F(1, 2), others=3)
    with pytest.raises(InvalidArgument):
        Clones.of_any(F(2), 3).at_most(-0.1)
