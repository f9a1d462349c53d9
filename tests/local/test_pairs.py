"""Pairs: exact privacy by every draw of every holder, unbiased shares, limits that cover."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from sfumato.errors import InvalidArgument
from sfumato.local.odds import odds_of
from sfumato.local.pairs import Holdings, PairResponse

F = Fraction
SMALL = [
    PairResponse(size=1, most=1, odds=F(3)),
    PairResponse(size=2, most=1, odds=F(5, 2)),
    PairResponse(size=3, most=2, odds=F(3, 2)),
    PairResponse(size=2, most=3, odds=F(4), low=F(0), high=F(5)),
]
LEVELS = [F(-1), F(0), F(3, 5), F(1)]


def holders(protocol: PairResponse) -> list[dict[int, Fraction]]:
    """Everything that a person can hold, with a few numbers on [-1, 1]; also too many keys."""
    keys = range(protocol.size)
    sets = itertools.chain.from_iterable(itertools.combinations(keys, r) for r in range(protocol.size + 1))
    return [
        dict(zip(held, levels, strict=True))
        for held in sets
        for levels in itertools.product(LEVELS, repeat=len(held))
    ]


def law(protocol: PairResponse, held: dict[int, Fraction]) -> dict[int, Fraction]:
    """Follow the phone of the docstring through all its draws: another route than `randomise` takes."""
    items = 2 * protocol.size + protocol.most
    drawn: dict[int, Fraction] = defaultdict(F)
    places = max(len(held), protocol.most)
    for u in range(places):
        if u < len(held):
            key, level = sorted(held.items())[u]
            up = (level + 1) / 2
            for v in range(up.denominator):
                drawn[2 * key + (v < up.numerator)] += F(1, places * up.denominator)
        else:
            for v in range(protocol.most):
                drawn[2 * protocol.size + v] += F(1, places * protocol.most)
    truth = 1 + protocol.most * (protocol.odds - 1)
    a, b = truth.numerator, truth.denominator
    told: dict[int, Fraction] = defaultdict(F)
    for item, chance in drawn.items():
        for report in range(items):
            told[report] += chance * F(a if report == item else b, a + b * (items - 1))
    return told


def table(protocol: PairResponse, held: dict[int, Fraction], n: int) -> np.ndarray:
    row = np.full(protocol.size, math.nan)
    for key, level in held.items():
        row[key] = float(protocol.low + (protocol.high - protocol.low) * (level + 1) / 2)
    return np.tile(row, (n, 1))


@pytest.mark.parametrize("protocol", SMALL, ids=str)
def test_the_largest_ratio_is_the_odds(protocol):
    """Exact, over all that a person can hold, more keys than allowed included."""
    laws = [law(protocol, held) for held in holders(protocol)]
    assert all(sum(it.values()) == 1 for it in laws)
    ratio = max(a[y] / b[y] for a in laws for b in laws for y in range(protocol.single.size))
    assert ratio == protocol.max_ratio == protocol.odds


@pytest.mark.parametrize("protocol", SMALL, ids=str)
def test_shares_and_sums_of_numbers_are_unbiased(protocol):
    """Exact: a report names a held key with chance p, another with q, and leans by the number of the key."""
    for held in holders(protocol):
        if len(held) > protocol.most:
            continue
        told = law(protocol, held)
        for key in range(protocol.size):
            named = told[2 * key] + told[2 * key + 1]
            assert named == (protocol.p if key in held else protocol.q)
            lean = told[2 * key + 1] - told[2 * key]
            assert lean == held.get(key, 0) * (protocol.p - protocol.q)


@pytest.mark.parametrize("protocol", SMALL, ids=str)
def test_reports_follow_that_law(protocol):
    """False alarm below 1e-9 for all holders together; power: any report's chance off by 4% of itself."""
    n, tried = 60_000, holders(protocol)[:: max(1, len(holders(protocol)) // 6)]
    for held in tried:
        told = law(protocol, held)
        reports = protocol.randomise(table(protocol, held, n))["value"]
        counts = np.bincount(reports, minlength=protocol.single.size)
        wanted = [float(told[y]) * n for y in range(protocol.single.size)]
        assert stats.chisquare(counts, wanted, sum_check=False).pvalue > 1e-10 / len(tried)


@pytest.mark.parametrize("epsilon", [1e-6, 0.1, 1.0, 4.0, 20.0])
@pytest.mark.parametrize(("size", "most"), [(1, 1), (50, 4), (10_000_000, 30)])
def test_epsilon_is_never_exceeded_and_hardly_missed(epsilon, size, most):
    protocol = PairResponse.from_epsilon(epsilon, size=size, most=most, low=0, high=F(1, 3))
    assert protocol.max_ratio == odds_of(epsilon) and epsilon - 1e-9 < protocol.epsilon <= epsilon
    rebuilt = {key: F(it) if isinstance(it, str) else it for key, it in protocol.parameters().items()}
    assert PairResponse(**rebuilt) == protocol
    held = Holdings(people=3, owners=[0, 2], keys=[size - 1, 0], values=[0.1, 0.2])
    reports = protocol.randomise(held)
    assert protocol.valid(reports).all() and reports["value"].max() < 2**protocol.message_bits


def test_chances_are_those_of_the_paper():
    """PCKV-GRR of Gu et al. (2020) with l = m: a = (m (e - 1) + 2) / (m (e - 1) + 2 d'), where d' counts keys
    and their m dummies, and p = (m (e - 1) + 1) / (m (e - 1) + 2); half as many dummies raise a."""
    for epsilon, k, m in ((1.0, 20, 3), (2.0, 100, 1)):
        protocol = PairResponse.from_epsilon(epsilon, size=k, most=m)
        e, truth = math.exp(epsilon), float(protocol.single.p + protocol.single.q)
        paper = (m * (e - 1) + 2) / (m * (e - 1) + 2 * (k + m))
        assert paper < truth < paper * (1 + m / (2 * k + m))
        sign = float(protocol.single.p / (protocol.single.p + protocol.single.q))
        assert sign == pytest.approx((m * (e - 1) + 1) / (m * (e - 1) + 2), rel=1e-8)


def test_shares_and_means_are_found():
    """False alarm below 1e-9 in all; power: a share off by 0.02, a mean off by 0.1 of the range's half.

    The spread of repeated surveys is the stated one: a deviation off by a quarter is seen. The first key's
    mean is 5% more spread than stated, as ratios are: of 900 surveys 1.3 is still 9 deviations from that."""
    protocol = PairResponse.from_epsilon(2, size=4, most=2, low=0, high=10)
    n, surveys = 4_000, 900
    people = np.full((n, 4), math.nan)
    people[: n // 2, 0] = 7.5
    people[: n // 4, 1] = 0.0
    people[n // 2 :, 2] = np.linspace(2, 8, n // 2)
    found = []
    for _ in range(surveys):
        totals = protocol.collect(protocol.randomise(people))
        found.append(protocol.means(totals))
    for key, (share, mean) in enumerate([(F(1, 2), 7.5), (F(1, 4), 0.0), (F(1, 2), 5.0), (F(0), None)]):
        shares = np.array([it.shares.values[key] for it in found])
        deviation = math.sqrt(protocol.variance(share, n))
        assert abs(shares.mean() - float(share)) < 6.6 * deviation / math.sqrt(surveys)
        spread = ((shares - float(share)) ** 2).sum() / deviation**2
        assert stats.chi2.ppf(1e-11, surveys) < spread < stats.chi2.isf(1e-11, surveys)
        if mean is None:
            continue
        values = np.array([it.values[key] for it in found])
        deviations = np.array([it.deviations[key] for it in found])
        # The ratio is off by about its relative variance of the share: far below a tenth of a deviation here.
        assert abs(values.mean() - mean) < (6.6 / math.sqrt(surveys) + 0.3) * deviations.mean()
        if mean > 0:  # at an end values are kept in the range
            ratio = values.std() / deviations.mean()
            assert 0.75 < ratio < 1.3


@pytest.mark.parametrize("n", [1, 2, 6])
@pytest.mark.parametrize("level", [0.8, 0.95])
def test_limits_of_a_mean_cover_few_people(n, level):
    """Exact: a random sample of people who hold the key with some chance, over all counts of either sign."""
    protocol = PairResponse(size=1, most=1, odds=F(20))
    for share, mean in itertools.product((0.2, 1.0), (-1.0, 0.0, 0.7)):
        gap, q = float(protocol.p - protocol.q), float(protocol.q)
        high = q / 2 + gap * share * (1 + mean) / 2
        low = q / 2 + gap * share * (1 - mean) / 2
        covered = held = 0.0
        for up in range(n + 1):
            for down in range(n + 1 - up):
                chance = stats.multinomial.pmf([down, up, n - up - down], n, [low, high, 1 - low - high])
                found = protocol.means(np.array([down, up, n - up - down]), level)
                covered += chance * (found.low[0] - 1e-9 <= mean <= found.high[0] + 1e-9)
                held += chance * (found.shares.low[0] - 1e-9 <= share <= found.shares.high[0] + 1e-9)
        assert covered >= level - 1e-12 and held >= level - 1e-12


@pytest.mark.parametrize("signs", [(900, 1900), (1900, 900), (1400, 1400), (700, 2100), (0, 2800), (0, 0)])
def test_limits_of_a_mean_are_its_extremes_over_the_bias_and_the_share(signs):
    """The definition, by a dense search over both: neither limit may look at the wrong end of the share."""
    protocol = PairResponse(size=1, most=2, odds=F(3))
    n, level, (down, up) = 10_000, 0.9, signs
    tail, named = (1 - level) / 4, down + up
    q, gap = float(protocol.q), float(protocol.p - protocol.q)

    def limits(hits: int, trials: int) -> np.ndarray:
        low = stats.beta.ppf(tail, hits, trials - hits + 1) if hits else 0.0
        high = stats.beta.isf(tail, hits + 1, trials - hits) if hits < trials else 1.0
        return np.linspace(low, high, 401)

    shares = np.clip((limits(named, n) - q) / gap, 1e-12, 1)
    extremes = np.clip((2 * limits(up, named)[:, None] - 1) * (1 + q / (gap * shares)), -1, 1)
    found = protocol.means(np.array([down, up, n - named, 0]), level)
    assert found.low[0] == pytest.approx(extremes.min(), abs=1e-9)
    assert found.high[0] == pytest.approx(extremes.max(), abs=1e-9)


@pytest.mark.parametrize(("n", "surveys"), [(1, 300), (5, 300), (50, 300), (10_000, 100)])
def test_limits_cover_at_every_size(n, surveys):
    """A fixed group. False alarm 1e-9; power: limits that hold in under 75% of 300 surveys, 60% of 100."""
    protocol = PairResponse.from_epsilon(3, size=3, most=2)
    people = np.full((n, 3), math.nan)
    people[:, 0] = np.where(np.arange(n) % 2, 1.0, -0.4)
    people[: (n + 1) // 2, 1] = 0.9
    truths = [np.nanmean(people[:, key]) for key in (0, 1)]
    shares = (~np.isnan(people)).mean(axis=0)
    held, covered = np.zeros(3), np.zeros(2)
    for _ in range(surveys):
        found = protocol.means(protocol.collect(protocol.randomise(people)))
        held += (found.shares.low - 1e-9 <= shares) & (shares <= found.shares.high + 1e-9)
        covered += (found.low[:2] - 1e-9 <= truths) & (truths <= found.high[:2] + 1e-9)
        assert (found.low <= found.high).all() and (found.low >= -1).all() and (found.high <= 1).all()
    least = stats.binom.ppf(1e-9 / 5, surveys, 0.95)
    assert (held >= least).all() and (covered >= least).all()


def test_limits_of_a_mean_are_no_wider_than_they_must():
    """At most 1.6 times those of the delta method, at 40 000 reports of a frequent key.

    False alarm 1e-9, for their widths hardly vary; power: limits a third too wide."""
    protocol = PairResponse.from_epsilon(2, size=10, most=1)
    people = np.full((40_000, 10), math.nan)
    people[:, 0] = 0.3
    found = protocol.means(protocol.collect(protocol.randomise(people)))
    assert found.high[0] - found.low[0] <= 1.6 * 2 * 1.96 * found.deviations[0]


def test_who_holds_too_many_draws_one_of_all():
    """False alarm below 1e-9; power: a person whose first two keys alone are drawn."""
    protocol = PairResponse(size=5, most=2, odds=F(10**9))
    reports = protocol.randomise(table(protocol, dict.fromkeys(range(5), F(1)), 50_000))["value"]
    counts = np.bincount(reports, minlength=protocol.single.size)[1:10:2]
    assert counts.sum() > 49_900
    assert stats.chisquare(counts).pvalue > 1e-10


def test_holdings_in_any_order_are_the_same_people():
    """False alarm 0: with these odds reports are the truth but for a chance of 1e-14."""
    protocol = PairResponse(size=4, most=1, odds=F(10**17))
    held = Holdings(people=4, owners=[3, 0, 2], keys=[1, 3, 0], values=[1, -1, 1])
    assert held.counts.tolist() == [1, 0, 1, 1]
    told = protocol.randomise(held)["value"].tolist()
    assert told == [6, 8, 1, 3]
    whole = Holdings.of_table(np.array([[math.nan, 0.5], [1.0, math.nan]]))
    assert (whole.owners.tolist(), whole.keys.tolist(), whole.values.tolist()) == ([0, 1], [1, 0], [0.5, 1.0])


def test_totals_add_up_and_nothing_is_known_of_none():
    protocol = PairResponse.from_epsilon(1, size=3, most=2, low=0, high=4)
    value = protocol.randomise(np.full((40, 3), 2.0))["value"]
    parts = sum(protocol.collect({"value": part}) for part in np.array_split(value, 3))
    assert (parts == protocol.collect({"value": value})).all() and len(parts) == 8
    assert protocol.supports(parts).tolist() == parts[:6].reshape(3, 2).sum(axis=1).tolist()
    empty = protocol.collect(protocol.randomise(np.full((0, 3), math.nan)))
    none = protocol.means(empty)
    assert np.isnan(none.values).all() and none.low.tolist() == [0] * 3 and none.high.tolist() == [4] * 3
    assert none.shares.reports == 0 and none.shares.high.tolist() == [1] * 3
    nobody = protocol.means(np.array([0, 0, 0, 0, 0, 0, 500, 500]))
    assert np.isnan(nobody.values).all() and nobody.shares.low.tolist() == [0] * 3


def test_garbage_is_flagged():
    protocol = PairResponse.from_epsilon(1, size=3, most=2)
    garbage = np.array([-1, 8, 2**63 - 1, -(2**63), 0, 7])
    assert protocol.valid({"value": garbage}).tolist() == [False] * 4 + [True] * 2


@pytest.mark.parametrize(
    "bad",
    [
        {"owners": [0, 0], "keys": [1, 1], "values": [1.0, 0.5]},  # would be drawn twice as often
        {"owners": [0], "keys": [1, 2], "values": [1.0]},
        {"owners": [2], "keys": [1], "values": [1.0]},
        {"owners": [-1], "keys": [1], "values": [1.0]},
        {"owners": [0], "keys": [3], "values": [1.0]},
        {"owners": [0], "keys": [-1], "values": [1.0]},
        {"owners": [0], "keys": [0.5], "values": [1.0]},
        {"owners": [0], "keys": [1], "values": [math.nan]},
        {"owners": [0], "keys": [1], "values": ["x"]},
    ],
)
def test_what_nobody_can_hold_is_refused(bad):
    protocol = PairResponse.from_epsilon(1, size=3, most=1)
    with pytest.raises(InvalidArgument):
        protocol.randomise(Holdings(people=1, **bad))


def test_parameters_that_make_no_sense_are_refused():
    good = {"size": 4, "most": 2, "odds": F(2)}
    for wrong in ({"size": 0}, {"most": 0}, {"odds": F(1)}, {"size": 2**41}, {"low": F(1)}):
        with pytest.raises(InvalidArgument):
            PairResponse(**(good | wrong))
    for answers in (np.zeros(3), np.zeros((2, 3), dtype=int), np.zeros((2, 5))):
        with pytest.raises(InvalidArgument):
            PairResponse(**good).randomise(answers)
