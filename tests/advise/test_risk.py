"""Risk equals the known formulas, and brute force over the outputs of the discrete mechanisms."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import reduce
from itertools import pairwise, product

import numpy as np
import pytest
from scipy.stats import norm

import sfumato as sf
from sfumato.advise import risk_of
from sfumato.advise.risk import advantage_of
from sfumato.attacks import differencing, membership
from sfumato.core.composition import Composition
from sfumato.core.conversions import largest_mu
from sfumato.core.events import (
    Composed,
    DiscreteGaussian,
    DiscreteLaplace,
    FinitePair,
    Gaussian,
    Repeated,
    ZeroConcentrated,
)
from sfumato.core.individual import IndividualPrivacy
from sfumato.core.measures import ApproximateDP, GaussianDP, PureDP, RenyiDP
from sfumato.core.rules import RenyiRule
from sfumato.core.tradeoff import TradeOff
from sfumato.errors import InvalidArgument, Unsupported

Pair = tuple[np.ndarray, np.ndarray]


def pair(weight, sensitivity: int, people: int = 1, reach: int = 100) -> Pair:
    """Return the chances of every output, with the people and without, from the definition."""
    outputs = np.arange(-reach, reach + 1)
    weights = np.array([weight(x) for x in range(-4 * reach, 4 * reach + 1)])
    total = weights.sum()

    def law(shift: int) -> np.ndarray:
        return np.array([weight(x - shift) for x in outputs]) / total

    return law(0), law(sensitivity * people)


def both(*pairs: Pair) -> Pair:
    """Return the pair of several independent outputs."""
    return reduce(lambda a, b: (np.outer(a[0], b[0]).ravel(), np.outer(a[1], b[1]).ravel()), pairs)


def power(laws: Pair, rate: float) -> float:
    """Return the power of the best test of a false-positive rate: likelihood ratios in falling order."""
    with_person, without = laws
    order = np.argsort(-with_person / without)
    hits = np.concatenate([[0], np.cumsum(with_person[order])])
    alarms = np.concatenate([[0], np.cumsum(without[order])])
    return float(np.interp(rate, alarms, hits))


def laplace(scale: float):
    return lambda x: math.exp(-abs(x) / scale)


def gaussian(variance: float):
    return lambda x: math.exp(-x * x / (2 * variance))


LAPLACE, NORMAL = (
    DiscreteLaplace(scale=4, sensitivity=2),
    DiscreteGaussian(sigma_squared=9, sensitivity=1),
)
CASES = {
    "laplace": (LAPLACE, 1, pair(laplace(4), 2)),
    "gaussian": (NORMAL, 1, pair(gaussian(9), 1)),
    "family": (NORMAL, 3, pair(gaussian(9), 1, people=3)),
    "composed": (Composed(events=(LAPLACE, NORMAL)), 1, both(pair(laplace(4), 2), pair(gaussian(9), 1))),
    "composed family": (
        Composed(events=(LAPLACE, NORMAL)),
        2,
        both(pair(laplace(4), 2, people=2), pair(gaussian(9), 1, people=2)),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_risk_is_that_of_the_best_test_by_brute_force(name):
    event, people, laws = CASES[name]
    risk = risk_of(event, people=people)
    truth = np.abs(laws[0] - laws[1]).sum() / 2
    assert truth - 1e-9 <= risk.advantage <= truth + 1e-4
    if people == 1:
        assert truth - 1e-9 <= advantage_of(event) <= truth + 1e-4
    for rate in (0.001, 0.01, 0.1, 0.5):
        best = power(laws, rate)
        assert best - 1e-9 <= risk.found(rate) <= best + 2e-3 * (best + 0.01)
    prior, best = 0.01, power(laws, 0.001)
    believed = prior * best / (prior * best + (1 - prior) * 0.001)
    assert believed - 1e-9 <= risk.posterior(prior) <= believed * 1.003


def test_the_values_of_the_formulas():
    pure = risk_of(PureDP(epsilon=1))
    assert pure.advantage == pytest.approx(0.4621, abs=5e-5)
    for prior, posterior in ((0.5, 0.7311), (0.1, 0.2320), (0.01, 0.0267)):
        assert pure.posterior(prior) == pytest.approx(posterior, abs=5e-5)
    assert pure.found(0.01) == pytest.approx(math.e * 0.01, rel=1e-6)
    for epsilon, advantage, bound in ((1, 0.1066, 0.4621), (3, 0.2808, 0.9051), (8, 0.5952, 0.9993)):
        mechanism = Gaussian(sigma=1 / Fraction(largest_mu(epsilon, 1e-5)))
        assert risk_of(mechanism).advantage == pytest.approx(advantage, abs=5e-5)
        alone = risk_of(ApproximateDP(epsilon=epsilon, delta=1e-5))
        assert alone.advantage == pytest.approx(bound, abs=5e-5)
        assert "(epsilon, delta) alone" in alone.basis


@pytest.mark.parametrize("epsilon", [1, 8, 12])
def test_bounded_losses_have_the_worst_belief_of_all_tests(epsilon):
    """At epsilon 8 and 12, tests with 1 false alarm in 1,000 would say .9099 from .01."""
    told = 1 / (1 + math.exp(epsilon))  # randomized response: the chance of a lie
    kept, lied = 1 - Fraction(told), Fraction(told)
    sources = (
        PureDP(epsilon=epsilon),
        sf.Budget(epsilon=epsilon),
        DiscreteLaplace(scale=2, sensitivity=2 * epsilon),
        FinitePair(with_person=(kept, lied), without=(lied, kept)),
    )
    for prior in (0.5, 0.01, 1e-6):
        odds = math.exp(epsilon) * prior
        for risk in map(risk_of, sources):
            assert risk.false_alarms == 0
            assert risk.posterior(prior) == pytest.approx(odds / (odds + 1 - prior), rel=1e-9)
            assert risk.posterior(prior, false_alarms=0.001) <= 1 / (1 + (1 - prior) / prior / 1000) + 1e-9
    for unbounded in (NORMAL, Composed(events=(LAPLACE, NORMAL)), ApproximateDP(epsilon=epsilon, delta=1e-9)):
        risk = risk_of(unbounded)
        assert risk.false_alarms == 0.001 and risk.posterior(0.01) == risk.posterior(0.01, false_alarms=0.001)


def test_a_budget_has_the_curve_of_its_rule():
    gaussian = sf.Budget(epsilon=1, delta=1e-5, keys_delta=0)
    assert risk_of(gaussian).advantage == pytest.approx(0.1066, abs=5e-5)
    pure = risk_of(sf.Budget(epsilon=1))
    assert pure.advantage == pytest.approx(0.4621, abs=5e-5) and "pure" in pure.basis
    renyi = sf.Budget(epsilon=1, delta=1e-5, keys_delta=0, rule=RenyiRule(order=8))
    assert risk_of(renyi).advantage < 0.4621
    keys = sf.Budget(epsilon=1, delta=1e-5)  # a tenth of delta for keys
    expected = 2 * norm.cdf(largest_mu(1, 9e-6) / 2) - 1 + 1e-6
    assert risk_of(keys).advantage == pytest.approx(expected, rel=1e-9)
    for budget in (gaussian, keys, renyi):
        assert advantage_of(budget) == pytest.approx(risk_of(budget).advantage, rel=1e-6)


def test_guarantees_have_their_own_curves():
    assert risk_of(GaussianDP(mu=1)).advantage == pytest.approx(2 * norm.cdf(0.5) - 1, rel=1e-9)
    order = risk_of(RenyiDP(order=2, epsilon=0.1), times=2)
    assert 0 < order.advantage < 1


@pytest.mark.soak
def test_zcdp_has_its_own_curve():
    zcdp = sf.Budget(epsilon=1, delta=1e-5, keys_delta=0, rule="zcdp")
    assert 0.1066 < risk_of(zcdp).advantage < 0.2
    part = Composed(events=(ZeroConcentrated(charge=Fraction(1, 4)), Gaussian(sigma=2)))  # rho is 3/8
    assert 2 * norm.cdf(math.sqrt(3) / 4) - 1 < risk_of(part).advantage <= math.sqrt(3 / 16)  # and Pinsker's


@pytest.mark.parametrize("mu", [0.1, 1.0])
@pytest.mark.parametrize("size", [2, 5])
def test_a_chain_of_gaussian_curves_is_that_of_the_group(mu, size):
    curve = TradeOff.of_mu(mu).group(size)
    for rate in (1e-6, 0.001, 0.1, 0.5):
        truth = norm.cdf(norm.ppf(rate) + size * mu)
        assert truth - 1e-12 <= curve.tpr(rate) <= truth * 1.001
    truth = 2 * norm.cdf(size * mu / 2) - 1
    assert truth <= curve.advantage() <= truth + 2e-4


def test_a_chain_of_lines_too_steep_for_floats_holds():
    curve = TradeOff(epsilons=(200.0, 800.0), deltas=(1e-310, 0.0)).group(2)
    assert curve.epsilons == pytest.approx((1600.0,)) and curve.deltas == (0.0,)


def test_a_family_is_not_more_than_its_members_in_a_chain():
    """Exact for every pair of a chain of finite laws: nothing in it tells more than the curve allows."""
    claim = risk_of(PureDP(epsilon=0.5), people=3)
    assert claim.advantage < math.expm1(1.5) / (math.exp(1.5) + 1)  # what 3 epsilon would say
    e = math.exp(0.5)
    chain = [np.array([e**j, 1]) / (e**j + 1) for j in (-1.5, -0.5, 0.5, 1.5)]  # neighbours within e each
    assert all(np.all(a / b <= e + 1e-12) and np.all(b / a <= e + 1e-12) for a, b in pairwise(chain))
    assert np.abs(chain[0] - chain[-1]).sum() / 2 <= claim.advantage
    keys = risk_of(NORMAL, keys_delta=Fraction(1, 100), people=3)
    assert keys.advantage > risk_of(NORMAL, people=3).advantage + 0.01  # each of three may be found out


def test_a_year_composes_and_does_not_add_up():
    once, year = risk_of(Gaussian(sigma=100)), risk_of(Gaussian(sigma=100), times=365)
    assert year.advantage == pytest.approx(2 * norm.cdf(math.sqrt(365) / 200) - 1, rel=1e-3)
    assert year.advantage < 365 * once.advantage / 10
    assert risk_of(Repeated(event=Gaussian(sigma=100), times=365)).advantage == year.advantage
    found = risk_of(Gaussian(sigma=100), keys_delta=1e-4, times=10)
    assert found.advantage == pytest.approx(risk_of(Gaussian(sigma=100), times=10).advantage + 1e-3, rel=1e-6)


@pytest.mark.parametrize("values", [2, 3])
def test_no_guess_of_a_secret_passes_its_bound(values):
    """The best guess of the value that a person adds to a noisy histogram, over all outputs."""
    without, plus = (law[60 - 8 : 60 + 9] for law in pair(laplace(2), 1, reach=60))
    best = 0.0
    for output in product(range(len(plus)), repeat=values):
        chances = [
            math.prod(plus[o] if at == secret else without[o] for at, o in enumerate(output))
            for secret in range(values)
        ]
        best += max(chances) / values
    bound = risk_of(DiscreteLaplace(scale=2, sensitivity=1)).guessed(values)
    assert 1 / values + 0.05 < best <= bound
    assert risk_of(PureDP(epsilon=0.5)).guessed(10) == pytest.approx(math.exp(0.5) / 10, rel=1e-9)


def test_a_mechanism_that_shows_a_secret_at_times_is_bounded_closely():
    """It shows the value with chance 1/10, and else nothing: it is guessed with chance 0.1 + 0.9 / 10."""
    shows = FinitePair(with_person=(Fraction(1, 10), Fraction(9, 10)), without=(Fraction(0), Fraction(1)))
    assert 0.19 <= risk_of(shows).guessed(10) <= 0.2 + 1e-9


def test_the_sentence_rounds_against_the_owner():
    assert "at most 56 are guessed right" in risk_of(sf.Budget(epsilon=1, delta=1e-5)).sentence
    year = risk_of(NORMAL, people=4, times=12).sentence
    assert "families of 4" in year and "12 releases" in year
    points = risk_of(NORMAL).points(11)
    assert len(points) == 11 and points[-1] == (1.0, 1.0)


def test_fifty_mixed_questions_risk_less_than_epsilon_and_delta_say():
    mixed = Composed(
        events=tuple(
            DiscreteLaplace(scale=30, sensitivity=1)
            if at % 2
            else DiscreteGaussian(sigma_squared=900, sensitivity=1)
            for at in range(50)
        )
    )
    epsilon = Composition([mixed]).epsilon(1e-6)
    crude = risk_of(ApproximateDP(epsilon=epsilon, delta=1e-6)).advantage
    actual = risk_of(mixed).advantage
    print(f"50 questions: advantage {actual:.4f}, and {crude:.4f} from (epsilon {epsilon:.3f}, delta 1e-6)")
    assert actual < crude / 3


@pytest.mark.parametrize("attack", ["membership", "differencing"])
def test_the_attackers_of_the_lab_stay_below_the_advice_and_come_close(attack):
    """Against Gaussian and Laplace noise, both attackers are the best there are.

    False alarm below 1e-9, twice. Power: noise of half the size gives .79 at epsilon 4, and not .66.
    """
    if attack == "membership":
        [point] = membership(studies=1500, people=2, traits=3, epsilons=(4.0,)).curve
        risk = risk_of(sf.Budget(epsilon=4, delta=1e-6))
    else:
        [point] = differencing(firms=1500, people=2, epsilons=(1.0,)).curve
        risk = risk_of(DiscreteLaplace(scale=1, sensitivity=1))
    bound = (1 + risk.advantage) / 2
    low, high = point.rate.interval(1 - 1e-9)
    assert low <= bound <= high
    assert abs(point.rate.share - bound) < 0.09


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: risk_of(NORMAL).posterior(0), "certainty"),
        (lambda: risk_of(NORMAL).posterior(1), "certainty"),
        (lambda: risk_of(NORMAL).posterior(0.1, false_alarms=0), "above zero"),
        (lambda: risk_of(NORMAL).guessed(1), "values"),
        (lambda: risk_of(NORMAL, people=0), "people"),
        (lambda: risk_of(NORMAL, keys_delta=0.01, times=100), "reaches 1"),
        (lambda: risk_of(3), "no risk of a int"),
    ],
)
def test_what_makes_no_sense_is_refused_in_a_sentence(call, said):
    with pytest.raises(InvalidArgument, match=said):
        call()


def test_individual_privacy_has_no_risk_for_everybody():
    with pytest.raises(Unsupported, match="individual"):
        risk_of(IndividualPrivacy(epsilon=1))
