"""Vectors: two heights of the density, the law of a report against quadrature, no bias, radii that cover."""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from sfumato.errors import InvalidArgument
from sfumato.local import vectors
from sfumato.local.odds import odds_of
from sfumato.local.vectors import PrivUnit

F = Fraction
STEPS = 32767
CASES = [(0.5, 2), (1.0, 3), (4.0, 10), (1.0, 100), (8.0, 100), (20.0, 2), (12.0, 1000)]


def unit(size: int, *, seed: int = 1) -> np.ndarray:
    drawn = np.random.default_rng(seed).normal(size=size)
    return drawn / np.linalg.norm(drawn)


def decode(reports: dict[str, np.ndarray]) -> np.ndarray:
    """Read the wire by hand: the high byte first, negatives as 65536 more."""
    octets = reports["vector"].astype(np.int64)
    steps = octets[:, 0::2] * 256 + octets[:, 1::2]
    return np.where(steps >= 2**15, steps - 2**16, steps)


def density(size: int):
    constant = mpmath.gamma(mpmath.mpf(size) / 2) / (
        mpmath.sqrt(mpmath.pi) * mpmath.gamma(mpmath.mpf(size - 1) / 2)
    )
    return lambda angle: constant * mpmath.sin(angle) ** (size - 2)  # of the angle between y and v


def moments(protocol: PrivUnit) -> tuple[float, float, float]:
    """Return the cap's share, E<y, v> and E<y, v>^2 by quadrature over the angle."""
    f, edge = density(protocol.size), mpmath.acos(protocol.threshold)
    inner = [edge * i / 8 for i in range(9)]
    outer = [edge + (mpmath.pi - edge) * i / 8 for i in range(9)]

    def over(power: int, nodes: list) -> float:
        return mpmath.quad(lambda a: f(a) * mpmath.cos(a) ** power, nodes)

    share, e = over(0, inner), mpmath.mpf(protocol.odds.numerator) / protocol.odds.denominator
    total = e * share + 1 - share
    first, second = ((e * over(k, inner) + over(k, outer)) / total for k in (1, 2))
    return float(share), float(first), float(second)


@pytest.mark.parametrize(("epsilon", "size"), CASES)
def test_two_heights_whose_ratio_is_the_odds(epsilon, size):
    """Exact rationals for the heights; the share of the cap by quadrature, which knows no beta law."""
    protocol = PrivUnit.from_epsilon(epsilon, size=size)
    p, cap = protocol.chance, protocol.cap
    assert (p / cap) / ((1 - p) / (1 - cap)) == protocol.max_ratio == odds_of(epsilon)
    assert epsilon - 1e-9 < protocol.epsilon <= epsilon
    share, bias, second = moments(protocol)
    assert share == pytest.approx(float(cap), rel=1e-9)
    assert bias == pytest.approx(protocol.bias, rel=1e-9)
    across = (1 - second) / (size - 1)
    assert protocol._second_moment() == pytest.approx(max(second, across), rel=1e-6, abs=3e-10)
    rebuilt = {key: F(it) if isinstance(it, str) else it for key, it in protocol.parameters().items()}
    assert PrivUnit(**rebuilt) == protocol
    assert protocol.message_bits == 16 * size


@pytest.mark.parametrize(("epsilon", "variance"), [(1, 629.3), (4, 42.8), (8, 12.7)])
def test_variances_of_the_table(epsilon, variance):
    protocol = PrivUnit.from_epsilon(epsilon, size=100)
    assert protocol.variance(1, 1) == pytest.approx(variance, abs=0.05)
    assert protocol.variance(F(1, 2), 10) == pytest.approx((protocol.variance(1, 1) + 0.75) / 10, rel=1e-12)


@pytest.mark.parametrize(("epsilon", "size"), CASES)
def test_no_other_cap_is_better(epsilon, size):
    protocol = PrivUnit.from_epsilon(epsilon, size=size)
    for factor in (0.5, 0.9, 0.99, 1.01, 1.1, 1.5):
        cap = protocol.cap * F(factor)
        if cap < 1:
            other = PrivUnit(size=size, odds=protocol.odds, cap=cap)
            assert other.bias <= protocol.bias * (1 + 1e-9)


@pytest.mark.parametrize(("epsilon", "size"), [(0.5, 2), (1.0, 3), (4.0, 10), (8.0, 100)])
def test_reports_follow_that_law(epsilon, size):
    """False alarm 1e-9 for the three checks together: binomial, Kolmogorov-Smirnov along v and across it.

    Power: a chance of the cap off by 0.02, or a distribution function off by 0.02 anywhere."""
    n, v = 50_000, unit(size)
    protocol = PrivUnit.from_epsilon(epsilon, size=size)
    y = decode(protocol.randomise(np.tile(v, (n, 1)))) / STEPS
    t = y @ v
    noise = np.random.default_rng(0).uniform(-1, 1, n) * 1e-7  # no ties, and less than the grid
    shape, cap, p = (size - 1) / 2, float(protocol.cap), float(protocol.chance)
    # A grid of 2^-15 blurs the edge of the cap: what lies within it is settled either way.
    near = np.abs(t - protocol.threshold) < 2e-4
    inside = (t >= protocol.threshold).sum()
    low, high = inside - near.sum(), inside + near.sum()
    least, most = stats.binom.ppf([1e-10, 1 - 1e-10], n, p)
    assert high >= least and low <= most

    def distribution(x: np.ndarray) -> np.ndarray:
        tail = stats.beta.sf((1 + np.clip(x, -1, 1)) / 2, shape, shape)
        return 1 - np.where(tail <= cap, tail * p / cap, p + (tail - cap) * (1 - p) / (1 - cap))

    # Near the ends of a circle the blur is larger than what n reports can tell: it is allowed for.
    blur = 4e-5 * math.sqrt(size)
    assert _distance(t + noise, distribution, blur) < stats.kstwobign.isf(3e-10) / math.sqrt(n)
    if size > 2:
        other = unit(size, seed=2)
        other -= (other @ v) * v
        other /= np.linalg.norm(other)
        across = (y @ other) / np.sqrt(np.maximum(1 - t**2, 1e-9))
        even = stats.beta((size - 2) / 2, (size - 2) / 2)
        clear = t**2 < 0.99
        found = _distance(across[clear] + noise[clear], lambda x: even.cdf((1 + x) / 2), 20 * blur)
        assert found < stats.kstwobign.isf(3e-10) / math.sqrt(clear.sum())


def _distance(drawn: np.ndarray, distribution, blur: float) -> float:
    """Return how far the empirical distribution is from the stated one, shifted by at most `blur`."""
    x = np.sort(drawn)
    n = len(x)
    above = np.arange(1, n + 1) / n - distribution(x + blur)
    below = distribution(x - blur) - np.arange(n) / n
    return max(above.max(), below.max())


@pytest.mark.parametrize("length", [0.0, 0.3, 1.0, 1e-200, 1e200])
def test_no_bias_and_the_stated_error(length):
    """False alarm 1e-9 for both checks; power: a bias of a fifth of the vector, a variance off by 8%.

    Longer vectors are shortened to the norm; vectors of no length have the largest error."""
    n, size, norm = 20_000, 10, F(5, 2)
    protocol = PrivUnit.from_epsilon(4, size=size, norm=norm)
    truth = unit(size) * min(length, 1.0) * float(norm)
    reports = protocol.randomise(np.tile(unit(size) * length * float(norm), (n, 1)))
    each = decode(reports) * float(norm) / (protocol.bias * STEPS)
    totals = protocol.collect(reports)
    mean = protocol.mean(totals)
    assert mean.values == pytest.approx(each.mean(axis=0), rel=1e-9, abs=1e-12)
    assert mean.deviations == pytest.approx(each.std(axis=0, ddof=1) / math.sqrt(n), rel=1e-9)
    off = (each.mean(axis=0) - truth) / mean.deviations
    assert np.abs(off).max() < stats.norm.isf(1e-10 / size)
    # A report has always the same length: only its part along the truth varies.
    error = ((each - truth) ** 2).sum(axis=1)
    stated = protocol.variance(F(min(length, 1.0)) * norm, 1)
    assert abs(error.mean() - stated) <= 6.5 * error.std() / math.sqrt(n) + 1e-6 * stated


def test_rounding_to_the_wire_has_no_bias_and_costs_next_to_nothing(monkeypatch):
    """False alarm 1e-9; power: rounding down or to the nearest, which is off by up to half a step."""
    size, n = 2, 100_000
    protocol = PrivUnit.from_epsilon(1, size=size)
    y = np.array([0.6 + 0.3 / STEPS, 0.0])
    y[1] = math.sqrt(1 - y[0] ** 2)
    monkeypatch.setattr(PrivUnit, "_directions", lambda self, given: np.tile(y, (len(given), 1)))
    monkeypatch.setattr(PrivUnit, "_inner_products", lambda self, n: (np.ones(n), np.zeros(n)))
    steps = decode(protocol.randomise(np.ones((n, size))))
    for column in range(size):
        exact = y[column] * STEPS
        assert set(np.unique(steps[:, column])) <= {math.floor(exact), math.ceil(exact)}
        up = int((steps[:, column] > exact).sum())
        assert stats.binomtest(up, n, exact % 1).pvalue > 5e-10
    spread = ((steps - y * STEPS) ** 2).sum(axis=1).mean() / STEPS**2
    assert spread <= size / (4 * STEPS**2) * 1.01


@pytest.mark.parametrize("n", [1, 5, 50, 1000])
def test_the_radius_covers(n):
    """False alarm 1e-9 for both; power: a radius that holds in less than 78% of 250 surveys.

    It is at most four times the root of the mean squared error, which no radius can be far below."""
    surveys, size = 250, 10
    for epsilon in (1.0, 8.0):
        protocol = PrivUnit.from_epsilon(epsilon, size=size)
        people = np.array([unit(size, seed=i % 3) for i in range(n)])
        reports = protocol.randomise(np.tile(people, (surveys, 1)))["vector"].reshape(surveys, n, -1)
        means = [protocol.mean(protocol.collect({"vector": it})) for it in reports]
        held = sum(np.linalg.norm(it.values - people.mean(axis=0)) <= it.radius for it in means)
        assert held >= stats.binom.ppf(5e-10, surveys, 0.95)
        assert means[0].radius <= 4 * math.sqrt((protocol.variance(1, 1) + 1) / n)


def test_totals_add_up_also_in_small_batches(monkeypatch):
    protocol = PrivUnit.from_epsilon(2, size=7)
    reports = protocol.randomise(np.tile(unit(7), (100, 1)))
    whole = protocol.collect(reports)
    monkeypatch.setattr(vectors, "_AT_ONCE", 20)
    parts = sum(protocol.collect({"vector": part}) for part in np.array_split(reports["vector"], 3))
    steps = decode(reports)
    assert (whole == parts).all() and whole.dtype == np.int64
    assert whole.tolist() == [100, *steps.sum(axis=0), *(steps**2).sum(axis=0)]
    assert protocol.valid(reports).all()
    assert protocol.valid(protocol.randomise(np.tile(unit(7), (100, 1)))).all()


def test_garbage_is_flagged():
    protocol = PrivUnit.from_epsilon(2, size=4)
    for octet in (0, 1, 127, 128, 255):
        assert not protocol.valid({"vector": np.full((3, 8), octet, dtype=np.uint8)}).any()
    good = protocol.randomise(np.tile(unit(4), (500, 1)))
    assert protocol.valid(good).all()
    for bad in (good["vector"][:, :6], good["vector"].astype(np.int64), good["vector"][:, 0]):
        assert protocol.valid({"vector": bad}).tolist() == [False] * 500
    lowest = np.zeros((1, 8), dtype=np.uint8)
    lowest[0, 0] = 0x80  # -32768, which no phone sends
    assert not protocol.valid({"vector": lowest}).any()
    assert protocol.valid({"vector": np.zeros((0, 8), dtype=np.uint8)}).shape == (0,)


def test_nothing_and_one_report():
    protocol = PrivUnit.from_epsilon(1, size=5, norm=3)
    empty = protocol.collect(protocol.randomise(np.zeros((0, 5))))
    assert not empty.any()
    nothing = protocol.mean(empty)
    assert np.isnan(nothing.values).all() and nothing.radius == 3 and nothing.reports == 0
    one = protocol.mean(protocol.collect(protocol.randomise(np.zeros((1, 5)))))
    assert np.isfinite(one.deviations).all() and one.reports == 1


@pytest.mark.parametrize(("epsilon", "size"), [(1e-6, 2), (1e-6, 10_000), (20, 2), (20, 10_000), (1, 10**6)])
def test_extremes_still_send_unit_vectors(epsilon, size):
    protocol = PrivUnit.from_epsilon(epsilon, size=size)
    assert 0 < protocol.cap <= F(1, 2) and 0 <= protocol.threshold < 1 and 0 < protocol.bias < 1
    reports = protocol.randomise(np.tile(unit(size), (3, 1)))
    assert protocol.valid(reports).all()


@pytest.mark.parametrize(
    "bad", [np.zeros(4), np.zeros((2, 3)), np.full((1, 4), math.nan), np.full((1, 4), math.inf), [["a"] * 4]]
)
def test_what_is_no_vector_is_refused_and_not_repeated(bad):
    with pytest.raises(InvalidArgument) as caught:
        PrivUnit.from_epsilon(1, size=4).randomise(np.array(bad))
    assert caught.value.place == "answers"


def test_parameters_that_make_no_sense_are_refused():
    good = {"size": 4, "odds": F(2), "cap": F(1, 3)}
    for wrong in ({"size": 1}, {"size": 10**7}, {"odds": F(1)}, {"cap": F(0)}, {"cap": F(1)}, {"norm": F(0)}):
        with pytest.raises(InvalidArgument):
            PrivUnit(**(good | wrong))
    with pytest.raises(InvalidArgument):
        PrivUnit.from_epsilon(1, size=1)
    with pytest.raises(InvalidArgument):
        PrivUnit.from_epsilon(1, size=4).variance(2, 1)
