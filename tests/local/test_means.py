"""Means: exact laws by every draw a phone can make, no bias, known variances, limits that cover."""

from __future__ import annotations

import itertools
import math
from collections import defaultdict
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from sfumato.errors import InvalidArgument
from sfumato.local import rounding
from sfumato.local.means import Duchi, MeanProtocol
from sfumato.local.odds import odds_of
from sfumato.local.piecewise import Hybrid, Piecewise, best_for_number
from sfumato.local.rounding import bounds_of, round_at_random

F = Fraction
UNIT = {"low": F(-1), "high": F(1)}
SMALL = [
    Duchi(**UNIT, odds=F(3)),
    Duchi(low=F(1, 10), high=F(7, 2), odds=F(7, 5)),
    Piecewise(**UNIT, odds=F(5, 2), outputs=7, window=3),
    Piecewise(low=F(0), high=F(110), odds=F(4, 3), outputs=6, window=1),
    Hybrid(**UNIT, odds=F(5, 2), outputs=6, window=2, chance=F(2, 5)),
    Hybrid(low=F(-3), high=F(1, 2), odds=F(4), outputs=5, window=2, chance=F(1, 3)),
]
MAKERS = [
    Duchi.from_epsilon, Piecewise.from_epsilon, Piecewise.tuned, Hybrid.from_epsilon, Hybrid.tuned,
]  # fmt: skip
EPSILONS = [1e-6, 0.01, 0.3, 0.61, 1.0, 2.0, 4.0, 9.0, 20.0]

# -- every draw of a phone, as the docstrings tell it: another route than `randomise` takes ------------


def rounded(x: Fraction, protocol, cells: int) -> list[tuple[int, Fraction]]:
    place = (min(max(x, protocol.low), protocol.high) - protocol.low) * cells
    place /= protocol.high - protocol.low
    n, r, b = math.floor(place), (place % 1).numerator, (place % 1).denominator
    if b > 100:  # what the draws add up to
        return [(n, 1 - place % 1), (n + 1, place % 1)]
    return [(n + (u < r), F(1, b)) for u in range(b)]


def phone_duchi(protocol, x: Fraction):
    a, b = protocol.odds.numerator, protocol.odds.denominator
    for bit, chance in rounded(x, protocol, 1):
        for u in range(a + b):
            yield (bit if u < a else 1 - bit), chance / (a + b)


def phone_piecewise(protocol, x: Fraction):
    a, b, outputs, window = (
        protocol.odds.numerator, protocol.odds.denominator, protocol.outputs, protocol.window,
    )  # fmt: skip
    total = (a - b) * window + b * outputs
    for s, chance in rounded(x, protocol, outputs - window):
        for u in range(total):
            inside = u < (a - b) * window
            for v in range(window if inside else outputs):
                yield (s + v if inside else v), chance / total / (window if inside else outputs)


def phone_hybrid(protocol, x: Fraction):
    c, d = protocol.chance.numerator, protocol.chance.denominator
    for u in range(d):
        for report, chance in (phone_piecewise if u < c else phone_duchi)(protocol, x):
            yield (report if u < c else protocol.outputs + report), chance / d


def law(protocol: MeanProtocol, x: Fraction) -> dict[int, Fraction]:
    phone = {"duchi": phone_duchi, "piecewise": phone_piecewise, "hybrid": phone_hybrid}[protocol.name]
    chances: dict[int, Fraction] = defaultdict(F)
    for report, chance in phone(protocol, x):
        chances[report] += chance
    return chances


def numbers(protocol: MeanProtocol) -> list[Fraction]:
    """Every grid point, and some numbers between and beyond."""
    low, width = protocol.low, protocol.high - protocol.low
    inside = [F(i, protocol.cells) for i in range(protocol.cells + 1)] + [F(1, 7), F(5, 9)]
    return [low + width * it for it in inside] + [low - 1]


def worth(protocol: MeanProtocol, report: int) -> Fraction:
    """What one report says of the number, in the units of the range."""
    sums = protocol.sums(protocol.collect({"value": np.array([report])}))
    assert sums.reports == 1 and sums.squares == sums.total**2
    half = (protocol.high - protocol.low) / 2
    return protocol.low + half + half * sums.total


@pytest.mark.parametrize("protocol", SMALL, ids=lambda it: it.name)
def test_the_largest_ratio_is_the_odds(protocol):
    laws = [law(protocol, x) for x in numbers(protocol)]
    assert all(sum(it.values()) == 1 for it in laws)
    reports = sorted(laws[0])
    assert all(sorted(it) == reports for it in laws)
    ratios = [a[y] / b[y] for a, b in itertools.product(laws, repeat=2) for y in reports]
    assert max(ratios) == protocol.max_ratio == protocol.odds
    assert protocol.valid({"value": np.array(reports)}).all()


@pytest.mark.parametrize("protocol", SMALL, ids=lambda it: it.name)
def test_no_bias_and_the_exact_variance(protocol):
    """Exact rationals: the average report is the clamped number, on the grid, between and beyond."""
    for x in numbers(protocol):
        inside = min(max(x, protocol.low), protocol.high)
        chances = law(protocol, x)
        assert sum(chance * worth(protocol, y) for y, chance in chances.items()) == inside
        variance = sum(chance * (worth(protocol, y) - inside) ** 2 for y, chance in chances.items())
        assert protocol.variance(inside, 3) == pytest.approx(float(variance / 3), rel=1e-14)
        half = (protocol.high - protocol.low) / 2
        assert float(variance / half**2) <= protocol.worst_variance * (1 + 1e-12)
        assert (
            max(abs((worth(protocol, y) - half - protocol.low) / half) for y in chances)
            == protocol.largest_report
        )


@pytest.mark.parametrize("protocol", SMALL, ids=lambda it: it.name)
def test_reports_follow_that_law(protocol):
    """False alarm below 1e-9 for all numbers together; power: any report's chance off by 4% of itself."""
    n, tried = 100_000, numbers(protocol)[-4:]
    for x in tried:
        chances = law(protocol, F(float(x)))
        counts = np.bincount(protocol.randomise(np.full(n, float(x)))["value"], minlength=max(chances) + 1)
        reports = sorted(chances)
        assert counts.sum() == counts[reports].sum()
        wanted = [float(chances[y]) * n for y in reports]
        assert stats.chisquare(counts[reports], wanted, sum_check=False).pvalue > 1e-10 / len(tried)


# -- variances, and the choice between protocols ------------------------------------------------------


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("epsilon", EPSILONS)
def test_epsilon_is_never_exceeded_and_hardly_missed(make, epsilon):
    protocol = make(epsilon)
    assert protocol.max_ratio == odds_of(epsilon)
    assert epsilon - 1e-9 < protocol.epsilon <= epsilon
    rebuilt = {key: F(it) if isinstance(it, str) else it for key, it in protocol.parameters().items()}
    assert type(protocol)(**rebuilt) == protocol


@pytest.mark.parametrize("epsilon", EPSILONS[1:])
def test_variances_are_the_published_ones(epsilon):
    """Wang et al. (2019): the discrete grid costs less than one part in five thousand, at every number."""
    e, h = math.exp(epsilon), math.exp(epsilon / 2)
    duchi, piecewise = Duchi.from_epsilon(epsilon), Piecewise.from_epsilon(epsilon)
    for x in np.linspace(-1, 1, 21).tolist():
        assert duchi.variance(x, 1) == pytest.approx(((e + 1) / (e - 1)) ** 2 - x**2, rel=1e-6)
        published = x**2 / (h - 1) + (h + 3) / (3 * (h - 1) ** 2)
        assert piecewise.variance(x, 1) == pytest.approx(published, rel=2e-4)
    assert duchi.variance(0, 7) == duchi.worst_variance / 7
    assert piecewise.worst_variance == pytest.approx(piecewise.variance(1, 1), rel=1e-4)


@pytest.mark.parametrize(
    ("epsilon", "duchi", "piecewise", "hybrid"),
    [(1, 4.683, 5.224, 4.289), (2, 1.724, 1.228, 1.042), (4, 1.076, 0.241, 0.219)],
)
def test_worst_cases_of_the_table(epsilon, duchi, piecewise, hybrid):
    found = [it.from_epsilon(epsilon).worst_variance for it in (Duchi, Piecewise, Hybrid)]
    for mine, published in zip(found, (duchi, piecewise, hybrid), strict=True):
        assert abs(mine - published) <= 5e-4 + 2e-4 * published  # three digits are printed; the grid's part
    assert all(it < 8 / epsilon**2 or epsilon == 4 for it in found)  # what Laplace noise would have


@pytest.mark.parametrize("epsilon", [0.3, 0.6, 0.65, 1.0, 3.0, 6.0, 12.0])
def test_no_other_window_or_chance_is_better(epsilon):
    """Brute force over windows and chances finds nothing more than 0.1% below the tuned protocols."""
    e = math.exp(epsilon)
    duchi = ((e + 1) / (e - 1)) ** 2
    best = {"piecewise": math.inf, "hybrid": math.inf}
    for share in np.geomspace(1e-3, 0.6, 300):
        constant, rise = Piecewise.limit(e, share)
        best["piecewise"] = min(best["piecewise"], constant + rise)
        for chance in np.linspace(0, 1, 101):
            flat, steep = chance * constant + (1 - chance) * duchi, chance * rise - (1 - chance)
            best["hybrid"] = min(best["hybrid"], flat + max(steep, 0))
    for name, make in (("piecewise", Piecewise.tuned), ("hybrid", Hybrid.tuned)):
        assert make(epsilon).worst_variance <= best[name] * 1.001
    for make in MAKERS:
        assert best_for_number(epsilon).worst_variance <= make(epsilon).worst_variance * (1 + 1e-12)
    assert (best_for_number(epsilon).name == "duchi") == (epsilon < 0.61)
    assert (Hybrid.from_epsilon(epsilon).chance == 0) == (epsilon < 0.61)


@pytest.mark.parametrize("make", MAKERS)
def test_estimates_spread_as_stated(make):
    """False alarm 1e-9 over all four checks, by their normal laws; power: a bias of 0.02 of a deviation, or a
    variance off by a tenth, with the large grids that `from_epsilon` makes."""
    for epsilon, x in ((1.0, 0.37), (4.0, -1.0)):
        protocol, n = make(epsilon, low=-1, high=1), 300_000
        sums = protocol.sums(protocol.collect(protocol.randomise(np.full(n, x))))
        variance = protocol.variance(x, 1)
        assert abs(float(sums.total / n) - x) < 6.5 * math.sqrt(variance / n)
        spread = float(sums.squares / n) - 2 * x * float(sums.total / n) + x * x
        # The fourth moment is at most (reach + 1)^2 variances.
        assert abs(spread - variance) < 6.5 * math.sqrt(
            (float(protocol.largest_report) + 1) ** 2 * variance / n
        )


# -- rounding ----------------------------------------------------------------------------------------


@given(
    st.floats(-20, 20) | st.integers(-12, 12) | st.sampled_from([0.1, -3.3, math.inf, -math.inf]),
    st.sampled_from([(-1, 1), (0, 10), (0.1, 0.7), (-3.3, 12), (F(1, 3), F(22, 7)), (1e6, 1e6 + 1)]),
    st.sampled_from([1, 2, 3, 422, 5_638_775]),
    st.integers(0, 2**64 - 1),
    st.integers(-3, 3),
)
def test_rounding_is_decided_exactly(value, bounds, cells, word, offset):
    """With given random words the answer is that of exact arithmetic, also where floats cannot tell."""
    low, high = bounds_of(*bounds)
    clamped = low if value == -math.inf else high if value == math.inf else min(max(F(value), low), high)
    place = (clamped - low) * cells / (high - low)
    part = place % 1
    for drawn in (word, math.floor(part * 2**64) + offset):
        if not 0 <= drawn < 2**64 or (part * 2**64 != drawn and math.floor(part * 2**64) == drawn):
            continue  # not a word, or one that more random bits must settle
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(rounding, "random_words", lambda n, it=drawn: np.full(n, it, dtype=np.uint64))
            found = round_at_random(np.array([value]), low, high, cells)
        assert found.tolist() == [math.floor(place) + (F(drawn, 2**64) < part)]


def test_rounding_has_no_bias_where_the_first_word_does_not_settle_it(monkeypatch):
    """False alarm 1e-9; power: a chance of a third that is off by 0.05. A word that ends at the decision."""
    word = math.floor(F(1, 3) * 2**64)
    monkeypatch.setattr(rounding, "random_words", lambda n: np.full(n, word, dtype=np.uint64))
    up = round_at_random(np.full(20_000, 1.0), F(0), F(3), 1).sum()
    # Given that word, U is below 1/3 with the chance that is left: the next bits of 1/3 say 1/3 again.
    assert stats.binomtest(int(up), 20_000, 1 / 3).pvalue > 1e-9


@pytest.mark.parametrize(
    "bad", [[math.nan], ["1"], [None], [[1.0]], [True], [1 + 2j]], ids=str
)  # fmt: skip
def test_what_is_no_number_is_refused_and_not_repeated(bad):
    for make in MAKERS:
        with pytest.raises(InvalidArgument) as caught:
            make(1).randomise(np.array(bad))
        assert "nan" not in str(caught.value).lower() and caught.value.place == "answers"


@pytest.mark.parametrize(("low", "high"), [(1, 1), (2, 1), (0, math.inf), (0, 1e40), (0, 1e-40), ("0", 1)])
def test_ranges_that_make_no_sense_are_refused(low, high):
    for make in MAKERS:
        with pytest.raises(InvalidArgument):
            make(1, low=low, high=high)


def test_parameters_that_make_no_sense_are_refused():
    for bad in ({"odds": F(1)}, {"window": 7}, {"window": 0}, {"outputs": 2**31 + 1}):
        with pytest.raises(InvalidArgument):
            Piecewise(**({**UNIT, "odds": F(2), "outputs": 7, "window": 3} | bad))
    with pytest.raises(InvalidArgument):
        Hybrid(**UNIT, odds=F(2), outputs=7, window=3, chance=F(3, 2))
    with pytest.raises(InvalidArgument):
        Duchi(**UNIT, odds=F(2)).variance(2, 1)


# -- collecting --------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("epsilon", [1e-6, 1.0, 20.0])
def test_totals_add_up_and_are_exact(make, epsilon):
    protocol = make(epsilon, low=0, high=110)
    value = protocol.randomise(np.array([0, 17, 110, 30, 500] * 20))["value"]
    assert protocol.valid({"value": value}).all()
    assert value.max() < 2**protocol.message_bits or getattr(protocol, "chance", 1) == 0
    parts = sum(protocol.collect({"value": part}) for part in np.array_split(value, 7))
    whole = protocol.collect({"value": value})
    assert (parts == whole).all() and whole.dtype == np.int64
    each = [worth(protocol, y) for y in value.tolist()]
    assert protocol.mean(whole).value == pytest.approx(float(sum(each) / len(each)), rel=1e-12)
    empty = protocol.collect(protocol.randomise(np.array([], dtype=np.float64)))
    assert (empty == 0).all() and len(empty) == len(whole)
    nothing = protocol.mean(empty)
    assert math.isnan(nothing.value) and (nothing.low, nothing.high, nothing.reports) == (0, 110, 0)


def test_sums_of_squares_do_not_overflow():
    protocol = Piecewise(**UNIT, odds=F(3), outputs=2**31, window=2**20)
    value = np.full(100_000, 2**31 - 1)
    sums = protocol.sums(protocol.collect({"value": value}) * 20_000)
    assert sums.reports == 2 * 10**9
    assert (
        sums.squares == sums.reports * protocol.largest_report**2
        and sums.total == sums.reports * protocol.largest_report
    )


@pytest.mark.parametrize("make", MAKERS)
def test_garbage_is_flagged(make):
    protocol = make(1)
    garbage = np.array([-1, -(2**63), 2**63 - 1, 10**6])
    assert protocol.valid({"value": garbage}).tolist() == [False] * 4
    assert protocol.valid({"value": np.array([], dtype=np.int64)}).shape == (0,)
    below = Hybrid.from_epsilon(0.3)  # has no piecewise way, and no phone sends such a report
    assert below.valid({"value": np.array([0, below.outputs - 1, below.outputs])}).tolist() == [False] * 2 + [
        True
    ]


# -- limits ------------------------------------------------------------------------------------------


def coverage(protocol: MeanProtocol, people: list[Fraction], level: float) -> float:
    """Return the exact chance that the limits hold a fixed group's mean; they depend on the sum alone."""
    laws = [law(protocol, x) for x in people]
    chances: dict[tuple[Fraction, ...], Fraction] = {
        (0,) * len(protocol.collect({"value": np.array([0])})): F(1)
    }
    for one in laws:
        after: dict[tuple[Fraction, ...], Fraction] = defaultdict(F)
        for totals, chance in chances.items():
            for y, more in one.items():
                added = protocol.collect({"value": np.array([y])}).tolist()
                after[tuple(a + b for a, b in zip(totals, added, strict=True))] += chance * more
        chances = after
    truth = float(sum(people) / len(people))
    covered = F(0)
    for totals, chance in chances.items():
        mean = protocol.mean(np.array(totals), level)
        covered += chance * (mean.low - 1e-12 <= truth <= mean.high + 1e-12)
    return float(covered)


@pytest.mark.parametrize("protocol", [SMALL[0], SMALL[2], SMALL[4]], ids=lambda it: it.name)
@pytest.mark.parametrize("people", [[1], [0], [-1], [1, 1], [1, -1, 1], [1, 1, 1, 1]], ids=str)
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_limits_cover_few_people(protocol, people, level):
    """Exact: the chance of every total, by every draw of every phone."""
    assert len(people) < protocol.enough or protocol.name == "duchi"
    assert coverage(protocol, [F(x) for x in people], level) >= level


POPULATIONS = {
    "at an end": lambda n: np.full(n, 1.0),
    "in the middle": lambda n: np.zeros(n),
    "at both ends": lambda n: np.where(np.arange(n) % 2, 1.0, -1.0),
    "a few at an end": lambda n: np.where(np.arange(n) % 50 == 0, 1.0, -0.9),
}


@pytest.mark.parametrize("make", [Duchi.from_epsilon, Piecewise.from_epsilon, Hybrid.tuned])
@pytest.mark.parametrize(
    ("n", "surveys"),
    [
        pytest.param(1, 400, marks=pytest.mark.soak),
        (5, 400),
        pytest.param(50, 400, marks=pytest.mark.soak),
        (10_000, 50),
    ],
)
def test_limits_cover_at_every_size(make, n, surveys):
    """False alarm 1e-9 over the eight cases of a test; power: limits that hold in less than 82% of 400
    surveys, half of 50. Small sizes use Chernoff's limits, ten thousand Student's."""
    for epsilon in (0.5, 4.0):
        protocol = make(epsilon)
        for population in POPULATIONS.values():
            answers = population(n)
            reports = protocol.randomise(np.tile(answers, surveys))["value"].reshape(surveys, n)
            means = [protocol.mean(protocol.collect({"value": it})) for it in reports]
            truth = answers.mean()
            covered = sum(it.low - 1e-12 <= truth <= it.high + 1e-12 for it in means)
            assert covered >= stats.binom.ppf(1e-9 / 8, surveys, 0.95)
            assert all(-1 <= it.low <= it.high <= 1 for it in means)


@pytest.mark.parametrize("make", MAKERS)
def test_limits_cover_a_random_sample_of_rare_answers(make):
    """False alarm 1e-9; power: limits that hold in less than 78% of 250 surveys. One in forty answers is
    high: if epsilon is large, a sum of so few reports is skewed, and Student's limits miss too often."""
    surveys, n = 250, 60
    rng = np.random.default_rng(1)
    for epsilon in (1.0, 8.0, 20.0):
        protocol = make(epsilon)
        answers = np.where(rng.random(surveys * n) < 1 / 40, 1.0, -1.0)
        reports = protocol.randomise(answers)["value"].reshape(surveys, n)
        means = [protocol.mean(protocol.collect({"value": it})) for it in reports]
        covered = sum(it.low <= -0.95 <= it.high for it in means)
        assert covered >= stats.binom.ppf(1e-9 / 3, surveys, 0.95)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("n", [100, 1_000, 100_000])
def test_limits_are_no_wider_than_they_must(make, n):
    """At most 1.55 times the normal ones of people at both ends, and near 1 times once there are enough.

    False alarm 1e-9; power: limits a tenth too wide."""
    protocol = make(2.0)
    answers = POPULATIONS["at both ends"](n)
    mean = protocol.mean(protocol.collect(protocol.randomise(answers)))
    a, b = protocol.moments
    half = 1.96 * math.sqrt((a + b) / n)
    assert mean.high - mean.low <= 2 * half * (1.05 if n == 100_000 else 1.55)
    assert mean.deviation == pytest.approx(half / 1.96, rel=0.02 if n == 100_000 else 0.5)
    assert protocol.name == "duchi" or (n >= protocol.enough) == (n >= 1000)
