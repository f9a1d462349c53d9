"""Selection: the laws, computed; their privacy, computed from the laws; the samplers against the laws."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations, product

import mpmath
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import special, stats

from sfumato.core.composition import Composition
from sfumato.core.events import Direction, Event, Pure
from sfumato.core.events.claims import BoundedRange
from sfumato.core.mechanism import Mechanism
from sfumato.core.selection import ExponentialMechanism, PermuteAndFlip, ReportNoisyMax
from sfumato.errors import InvalidArgument, Unsupported

F = Fraction
KINDS = [ExponentialMechanism, PermuteAndFlip, ReportNoisyMax]
UTILITIES = [[0, 0, 0], [0, 1, 3], [5, 5, 4], [2, 0, 2], [0, 9, 0], [3, 2, 1]]
EITHER_WAY = list(product((-1, 0, 1), repeat=3))
ONE_WAY = list(product((0, 1), repeat=3))


def worst_loss(mechanism, moves):
    losses = []
    for base in UTILITIES:
        for move in moves:
            moved = [u + m for u, m in zip(base, move, strict=True)]
            losses += [abs(mechanism.privacy_loss(i, base, moved)) for i in range(3)]
    return max(losses)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("epsilon", [F(1, 10), F(1), F(3)], ids=str)
def test_loss_is_at_most_epsilon_on_all_neighbours(kind, epsilon):
    worst = worst_loss(kind(epsilon), EITHER_WAY)
    assert 0.5 * epsilon <= worst <= float(epsilon) + 1e-10
    monotone = worst_loss(kind(epsilon, monotone=True), ONE_WAY)
    assert 0.5 * epsilon <= monotone <= float(epsilon) + 1e-10


@pytest.mark.parametrize("kind", KINDS)
def test_calling_a_two_way_utility_monotone_would_be_caught(kind):
    assert worst_loss(kind(1, monotone=True), EITHER_WAY) > 1.2


@pytest.mark.parametrize("kind", KINDS)
def test_an_understated_sensitivity_would_be_caught(kind):
    assert worst_loss(kind(1, sensitivity=F(1, 2)), EITHER_WAY) > 1.2


@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=50)
@given(
    base=st.lists(st.fractions(-3, 3, max_denominator=20), min_size=2, max_size=4),
    moves=st.lists(st.fractions(F(-1, 3), F(1, 3), max_denominator=20), min_size=4, max_size=4),
    step=st.sampled_from([F(1, 3), F(1, 4), F(2)]),
)
def test_rational_utilities_off_the_noise_grid_are_private_too(kind, base, moves, step):
    extra = {"step": step} if kind is ReportNoisyMax else {}
    mechanism = kind(1, sensitivity=F(1, 3), **extra)
    moved = [u + m for u, m in zip(base, moves, strict=False)]
    for i in range(len(base)):
        assert abs(mechanism.privacy_loss(i, base, moved)) <= 1 + 1e-9


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("utilities", [*UTILITIES, [7], [0.5, 0.25, 2.125, 1]], ids=str)
def test_pmf_is_a_law(kind, utilities):
    mechanism = kind(F(3, 2))
    assert math.fsum(mechanism.pmf(i, utilities) for i in range(len(utilities))) == pytest.approx(
        1, abs=1e-12
    )
    assert isinstance(mechanism, Mechanism)


def test_exponential_law_is_the_softmax():
    utilities = [1, 2, 4]
    weights = [math.exp(u / 4) for u in utilities]
    for i in range(3):
        assert ExponentialMechanism(0.5).pmf(i, utilities) == pytest.approx(
            weights[i] / sum(weights), rel=1e-13
        )


def test_permute_and_flip_law_is_that_of_the_walk():
    """The definition: through every order of the candidates, taking each with its probability."""
    utilities = [0, 1, 3, 3, 2]
    heads = [math.exp(-(3 - u) / 2) for u in utilities]
    chances = [0.0] * 5
    for order in permutations(range(5)):
        left = 1 / math.factorial(5)
        for i in order:
            chances[i] += left * heads[i]
            left *= 1 - heads[i]
    for i in range(5):
        assert PermuteAndFlip(1).pmf(i, utilities) == pytest.approx(chances[i], rel=1e-12)


def test_noisy_max_law_is_the_sum_over_all_noises():
    """Brute force over all triples of noises, ties to the lowest index."""
    utilities = [F(0), F(1, 2), F(1)]
    mechanism = ReportNoisyMax(4, step=F(1, 2))
    reach = 12 * math.ceil(mechanism.scale)
    noise = np.arange(-reach, reach + 1)
    law = np.exp(-np.abs(noise) / float(mechanism.scale))
    law /= law.sum()
    a, b, c = np.meshgrid(*(2 * float(u) + noise for u in utilities), indexing="ij")
    weight = law[:, None, None] * law[None, :, None] * law[None, None, :]
    winner = np.argmax(np.stack([a, b, c]), axis=0)
    for i in range(3):
        assert mechanism.pmf(i, utilities) == pytest.approx(weight[winner == i].sum(), rel=1e-4)


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("utilities", [[0, 1, 3, 3, 2], np.array([0.5, 0.25, 2.125, 1.0])], ids=str)
def test_releases_have_the_law(kind, utilities):
    """False alarm below 1e-9; power: a candidate's probability off by 25% of itself."""
    mechanism, n = kind(1), 5000
    counts = np.bincount([mechanism.release(utilities) for _ in range(n)], minlength=len(utilities))
    wanted = [mechanism.pmf(i, utilities) * n for i in range(len(utilities))]
    assert stats.chisquare(counts, wanted, sum_check=False).pvalue > 5e-10


@pytest.mark.parametrize("kind", KINDS)
def test_many_candidates_and_huge_gaps(kind):
    """With a gap of 1000 scales the best is missed with probability below 1e-400."""
    utilities = np.zeros(3000, dtype=np.int64)
    utilities[1234] = 2000
    assert kind(1).release(utilities) == 1234
    assert kind(1).release([10**40, 0, F(1, 3)]) == 0
    assert kind(1).release([5]) == 0


def test_noisy_max_compares_exactly():
    """Gaps far below a float's resolution still decide; false alarm below e^-1000 with this narrow noise."""
    utilities = [F(1), 1 + F(1, 10**30), F(1)]
    mechanism = ReportNoisyMax(10**6, sensitivity=F(1, 10**36), step=F(1, 10**36))
    assert mechanism.release(utilities) == 1
    assert ReportNoisyMax(10**6).release([3, 3, 3]) == 0  # a tie goes to the lowest index


def test_permute_and_flip_of_many_rows_has_the_law_of_each():
    """Chi-square over 200,000 rows of the same utilities, false alarm below 1e-9; and rows keep their own."""
    utilities = [0, -1, -1, -3, -7, -2]
    mechanism = PermuteAndFlip(Fraction(3, 2))
    found = mechanism.release_each(np.tile(np.array(utilities), (200_000, 1)))
    seen = np.bincount(found, minlength=6)
    expected = np.array([mechanism.pmf(i, utilities) for i in range(6)]) * 200_000
    assert stats.chi2.sf(float(((seen - expected) ** 2 / expected).sum()), 5) > 5e-10
    apart = PermuteAndFlip(1).release_each(np.array([[0, -(10**6), -(10**6)], [-(10**6), -(10**6), 0]]))
    assert apart.tolist() == [0, 2]
    assert PermuteAndFlip(1).release_each(np.zeros((0, 3), dtype=np.int64)).tolist() == []


def test_permute_and_flip_is_never_worse_than_the_exponential_mechanism():
    for utilities in UTILITIES:
        best = max(utilities)
        for gap in range(1, 10):
            worse = [i for i in range(3) if best - utilities[i] >= gap]
            exponential, flip = (sum(kind(1).pmf(i, utilities) for i in worse) for kind in KINDS[:2])
            assert flip <= exponential + 1e-12


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_error_bounds_the_gap(kind, level):
    mechanism = kind(2)
    for n in (1, 2, 6):
        gap = mechanism.error(level, candidates=n)
        for loser in range(12):
            utilities = [12] + [loser] * (n - 1)
            missed = sum(mechanism.pmf(i, utilities) for i in range(1, n)) if 12 - loser > gap else 0
            assert missed <= 1 - level
    assert mechanism.error(level, candidates=1) == 0
    assert mechanism.error(level, candidates=6) < 12


def test_noisy_max_error_is_the_smallest_for_one_rival():
    """Against the convolution of the two noises: k steps are gained with at most the allowed probability."""
    mechanism = ReportNoisyMax(F(2, 3), step=F(1, 2))
    noise = np.arange(-400, 401)
    law = np.exp(-np.abs(noise) / float(mechanism.scale))
    tails = np.cumsum(np.convolve(law, law)[::-1])[::-1] / law.sum() ** 2  # P(difference >= -800), ...
    for level in (0.6, 0.9, 0.99):
        steps = 2 * mechanism.error(level, candidates=2) + 1  # the first gap that is too rare to count
        assert steps.is_integer()
        assert tails[800 + int(steps)] <= 1 - level < tails[800 + int(steps) - 1]


def test_extreme_numbers():
    """No float overflows: a gap beyond all floats, an epsilon below all floats."""
    assert ExponentialMechanism(1).pmf(0, [0, 10**400]) == 0 and PermuteAndFlip(1).pmf(1, [0, 10**400]) == 1
    assert ExponentialMechanism(F(1, 10**400)).pmf(0, [0, 1]) == 0.5
    assert ExponentialMechanism(1).privacy_loss(0, [0, 10**400], [0, 10**400]) == 0
    for step in (None, F(1, 10**400)):
        with pytest.raises(InvalidArgument, match="1e100 steps"):
            ReportNoisyMax(F(1, 10**400) if step is None else 1, step=step)


def test_laws_too_large_to_compute_are_refused():
    with pytest.raises(Unsupported):
        PermuteAndFlip(1).pmf(0, [0] * 2001)
    with pytest.raises(Unsupported):
        ReportNoisyMax(1, step=F(1, 10**9)).pmf(0, [0, 1])
    with pytest.raises(Unsupported):
        ReportNoisyMax(10).privacy_loss(0, [0, 10**4], [0, 0])


# -- the event of a bounded range ---------------------------------------------------------


def test_events():
    assert PermuteAndFlip(0.5).event == ReportNoisyMax(0.5).event == Pure(loss=F(1, 2))
    event = ExponentialMechanism(0.5).event
    assert event == BoundedRange(loss=F(1, 2)) and event.epsilon() == F(1, 2)
    assert Event.from_dict(event.to_dict()) == event
    assert event.group(3) == BoundedRange(loss=F(3, 2))
    for bad in (0, -1, math.nan, math.inf, True, "1", None):
        with pytest.raises(InvalidArgument):
            BoundedRange(loss=bad)


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
def test_bounded_range_is_the_envelope_of_its_two_point_laws(epsilon):
    event = BoundedRange(loss=epsilon)
    t = np.linspace(0, epsilon, 20001)
    p = np.expm1(t - epsilon) / np.expm1(-epsilon)
    q = np.exp(-t) * p
    for level in np.linspace(-epsilon, epsilon, 9):
        brute = max(float((p - math.exp(level) * q).max()), 1 - math.exp(level))
        with_person, without = event.tails(np.array([level]), Direction.REMOVE)
        curve = float(with_person[0] - math.exp(level) * without[0])
        assert brute - 1e-12 <= curve <= brute + 1e-7
    mirrored = 1 - event.tails(np.linspace(-epsilon, epsilon, 7), Direction.REMOVE)[1][::-1]
    assert np.allclose(event.tails(np.linspace(-epsilon, epsilon, 7), Direction.REMOVE)[0], mirrored)
    assert [a.tolist() for a in event.tails(np.array([-9.0, 9.0]), Direction.ADD)] == [[1, 0], [1, 0]]
    assert event.support(Direction.REMOVE) == (-epsilon, epsilon)


def law(utilities, epsilon):
    return np.array([ExponentialMechanism(epsilon).pmf(i, utilities) for i in range(len(utilities))])


@given(
    st.lists(
        st.tuples(st.fractions(-3, 3, max_denominator=9), st.sampled_from([-1, 0, 1])), min_size=2, max_size=6
    ),
    st.sampled_from([F(1, 2), F(2), F(6)]),
)
def test_bounded_range_dominates_the_exponential_mechanism(candidates, epsilon):
    base = [u for u, _ in candidates]
    moved = [u + m for u, m in candidates]
    p, q = law(base, epsilon), law(moved, epsilon)
    event = ExponentialMechanism(epsilon).event
    for level in np.linspace(0, float(epsilon), 6):
        assert np.maximum(0, p - math.exp(level) * q).sum() <= event.delta(float(level)) + 1e-12
    for order in (1.1, 2, 8, 40):
        divergence = special.logsumexp(order * np.log(p) + (1 - order) * np.log(q)) / (order - 1)
        assert divergence <= order * float(event.rho()) + 1e-9
        assert divergence <= event.renyi(order) + 1e-9


def test_bounded_ranges_compose():
    """Two selections: never cheaper than the exact product laws, and far cheaper than two of any kind."""
    event = ExponentialMechanism(2).event
    both = Composition([(event, 2)])
    for base, moved in [([0, 0], [1, -1]), ([0, 0, 0], [1, -1, -1]), ([5, 0], [4, 1])]:
        p, q = law(base, 2), law(moved, 2)
        for level in (0.0, 0.5, 1.5, 3.0):
            exact = np.maximum(0, np.outer(p, p) - math.exp(level) * np.outer(q, q)).sum()
            assert exact <= both.delta(level)
    many = Composition([(BoundedRange(loss=0.1), 100)]).epsilon(1e-6)
    assert many < 0.6 * Composition([(Pure(loss=0.1), 100)]).epsilon(1e-6)


def test_the_rho_of_a_bounded_range_cannot_be_much_smaller():
    """Two halves of many candidates, one up, one down: the loss takes both ends of its range."""
    epsilon = 0.1
    p, q = law([0, 0], epsilon), law([1, -1], epsilon)
    divergence = float((p * np.log(p / q)).sum())  # order 1
    assert 0.99 * epsilon**2 / 8 <= divergence <= float(BoundedRange(loss=epsilon).rho())
    assert BoundedRange(loss=100).rho() <= 100


def test_closed_form_of_the_delta_of_a_bounded_range():
    for epsilon, level in [(1, 0.0), (1, 0.3), (2, 1.9)]:
        derived = Event.delta(BoundedRange(loss=epsilon), level)  # from the loss distribution
        assert derived == pytest.approx(BoundedRange(loss=epsilon).delta(level), rel=1e-4)
        with mpmath.workdps(30):
            wanted = (1 - mpmath.exp((mpmath.mpf(level) - epsilon) / 2)) ** 2 / (1 - mpmath.exp(-epsilon))
        assert BoundedRange(loss=epsilon).delta(level) == pytest.approx(float(wanted), rel=1e-6)
        assert BoundedRange(loss=epsilon).delta(level) >= float(wanted) * (1 - 1e-15)
    assert BoundedRange(loss=1).delta(1.0) == 0


@pytest.mark.parametrize("loss", [0.001, 0.1, 1.0, 3.0, 8.0, 20.0])
def test_the_mu_of_a_bounded_range_covers_it_and_no_smaller_one_does(loss):
    """Hockey sticks at every level, at 40 digits: below those of the Gaussian, and equal at level zero."""
    event = BoundedRange(loss=loss)
    with mpmath.workdps(40):
        mu, e = mpmath.mpf(float(event.mu())), mpmath.mpf(loss)
        for part in np.linspace(0, 0.999, 60).tolist():
            level = part * e
            mine = (1 - mpmath.exp((level - e) / 2)) ** 2 / (1 - mpmath.exp(-e))
            theirs = mpmath.ncdf(mu / 2 - level / mu) - mpmath.exp(level) * mpmath.ncdf(-mu / 2 - level / mu)
            assert mine <= theirs
            if not part:
                assert mine >= theirs * (1 - mpmath.mpf(10) ** -8)
    assert event.mu() <= Pure(loss=loss).mu()


def test_many_selections_at_once_have_the_law_of_one():
    """Nine chi-squares over 20,000 rows each, false alarm below 1e-9: a rate that is 5% off is caught."""
    mechanism = ExponentialMechanism(F(1, 3), sensitivity=2)
    rows = np.array([[0, -3, 5, 5, -40, 1], [7, 7, 7, 7, 7, 7], [0, 0, 0, 0, 0, -100]])
    for table in (rows, rows.astype(object), rows.astype(object) + 2**80):
        found = mechanism.release_each(np.repeat(table, 20_000, axis=0)).reshape(3, -1)
        for seen, row in zip(found, rows, strict=True):
            chances = np.array([mechanism.pmf(i, row) for i in range(6)])
            counted = np.bincount(seen, minlength=6)
            likely = chances * len(seen) >= 10
            statistic = ((counted - chances * len(seen)) ** 2 / (chances * len(seen)))[likely].sum()
            assert stats.chi2.sf(statistic, likely.sum() - 1) > 5e-11
    assert mechanism.release_each(np.zeros((0, 4), dtype=np.int64)).shape == (0,)
    for bad in ([1, 2], np.zeros((2, 2)), np.zeros((2, 0), dtype=np.int64), np.zeros(3, dtype=np.int64)):
        with pytest.raises(InvalidArgument):
            mechanism.release_each(bad)


# -- bad input ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("bad", [0, -1, math.nan, math.inf, float("1e400"), True, "1", None], ids=repr)
def test_senseless_parameters_are_refused(kind, bad):
    for name in ("epsilon", "sensitivity"):
        with pytest.raises(InvalidArgument) as caught:
            kind(**{"epsilon": 1, "sensitivity": 1} | {name: bad})
        assert caught.value.place == name
    if bad is not True:
        with pytest.raises(InvalidArgument):
            kind(1, monotone=bad)
    if bad is not None:
        with pytest.raises(InvalidArgument):
            ReportNoisyMax(1, step=bad)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "bad",
    [
        [],
        [math.nan],
        np.array([1, math.inf]),
        [0, "7"],
        [True],
        [None],
        "ab",
        5,
        None,
        np.zeros((2, 2)),
        [[1], [2]],
    ],
    ids=repr,
)
def test_senseless_utilities_are_refused_without_repeating_them(kind, bad):
    for use in (kind(1).release, lambda utilities: kind(1).pmf(0, utilities)):
        with pytest.raises(InvalidArgument) as caught:
            use(bad)
        assert caught.value.place == "utilities" and "inf" not in str(caught.value).replace("finite", "")


@pytest.mark.parametrize("kind", KINDS)
def test_senseless_outputs_and_levels_are_refused(kind):
    for bad in (2, -1, True, 0.0, "0", None):
        with pytest.raises(InvalidArgument):
            kind(1).pmf(bad, [1, 2])
    for level, candidates in [(0, 3), (1, 3), (math.nan, 3), (0.9, 0), (0.9, 2.5)]:
        with pytest.raises(InvalidArgument):
            kind(1).error(level, candidates=candidates)
