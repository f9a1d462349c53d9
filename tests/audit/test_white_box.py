"""Exact epsilons are those of the definition; the audit of one run has its published figures."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sfumato.audit import exact_epsilon, finite_epsilon, one_run_epsilon
from sfumato.audit.accounting import accounts, gaussian_table, laplace_table
from sfumato.audit.one_run import one_run_miss
from sfumato.audit.white_box import product_table, repeated_table
from sfumato.core import (
    Composition,
    FiniteMechanism,
    RandomizedResponseMechanism,
    accountant,
    composition,
    events,
)
from sfumato.errors import InvalidArgument

laws = st.lists(st.integers(0, 9), min_size=2, max_size=5).filter(any)


def by_definition(p: list[Fraction], q: list[Fraction], delta: Fraction) -> float:
    """Go through every event, in both orders."""
    best = Fraction(1)
    for one, other in ((p, q), (q, p)):
        for event in itertools.product((False, True), repeat=len(p)):
            over = sum(a for a, held in zip(one, event, strict=True) if held) - delta
            under = sum(b for b, held in zip(other, event, strict=True) if held)
            if over > 0 and not under:
                return math.inf
            if under:
                best = max(best, Fraction(over) / under)
    return math.log(best)


@given(st.data())
def test_all_events_prove_no_more(data: st.DataObject) -> None:
    weights = data.draw(laws)
    others = data.draw(st.lists(st.integers(0, 9), min_size=len(weights), max_size=len(weights)).filter(any))
    p, q = ([Fraction(one, sum(side)) for one in side] for side in (weights, others))
    delta = data.draw(st.sampled_from([Fraction(0), Fraction(1, 100), Fraction(1, 5)]))
    assert exact_epsilon(p, q, delta=delta) == by_definition(p, q, delta)


def test_known_tables() -> None:
    coin = RandomizedResponseMechanism.coin_toss().matrix()
    assert finite_epsilon(coin) == math.log(3)
    assert math.isinf(exact_epsilon([1, 0], [0, 1]))
    assert exact_epsilon([1, 0], [0, 1], delta=1) == 0
    only_near = FiniteMechanism(
        [[Fraction(1, 2), Fraction(1, 2)], [Fraction(1, 4), Fraction(3, 4)], [0, 1]], neighbours=[(0, 1)]
    )
    assert finite_epsilon(only_near) == math.log(2)
    with pytest.raises(InvalidArgument):
        exact_epsilon([1], [Fraction(1, 2), Fraction(1, 2)])


def test_tables_of_noise_have_the_noise_s_cost() -> None:
    """Enumerated tables beside the closed forms of events, at several epsilons and deltas."""
    for table, event in (
        (laplace_table(4, 3), events.DiscreteLaplace(scale=Fraction(4), sensitivity=3)),
        (gaussian_table(25, 2), events.DiscreteGaussian(sigma_squared=Fraction(25), sensitivity=2)),
    ):
        assert math.isclose(sum(p for p, _ in table), 1) and math.isclose(sum(q for _, q in table), 1)
        p, q = zip(*table, strict=True)
        for delta in (1e-6, 1e-3, 0.05):
            low, high = Composition([event]).epsilon_bounds(delta)
            assert low * (1 - 1e-6) <= exact_epsilon(p, q, delta=delta) <= high * (1 + 1e-9)


def test_repeating_is_composing() -> None:
    table = [(Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4))]
    thrice = repeated_table(table, 3)
    assert sorted(thrice) == sorted(product_table(table, table, table))
    assert len(thrice) == 4 and exact_epsilon(*zip(*thrice, strict=True)) == pytest.approx(3 * math.log(3))
    assert repeated_table(table, 0) == [(1, 1)]


def test_prices_stand() -> None:
    verdicts = accounts()
    assert all(verdict.passed for verdict in verdicts) and len(verdicts) == 8
    for verdict in verdicts[:5]:  # and batches are priced tightly
        assert verdict.exact is not None and verdict.exact.low > 0.999 * verdict.claim.epsilon


def test_a_count_that_is_ignored_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """A composition that prices every event once."""
    honestly = composition.Composition.__init__

    def forgetful(self: composition.Composition, parts: object) -> None:
        honestly(self, [part[0] if isinstance(part, tuple) else part for part in parts])  # type: ignore[attr-defined]

    monkeypatch.setattr(composition.Composition, "__init__", forgetful)
    assert [verdict.caught for verdict in accounts()][:5] == [True] * 5


def test_a_budget_charged_half_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    honestly = accountant.PrivacyBudget.charge

    def cheap(self: accountant.PrivacyBudget, event: events.Event, keys_delta: float = 0) -> tuple[int, int]:
        units, keys = honestly(self, event, keys_delta)
        return units // 2, keys

    monkeypatch.setattr(accountant.PrivacyBudget, "charge", cheap)
    assert [verdict.caught for verdict in accounts()][5:] == [True] * 3


# -- one run ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("canaries", "guesses", "right", "delta", "bound"),
    [(1000, 1000, 750, 0, 0.9767), (1000, 100, 99, 1e-5, 3.0028), (10_000, 100, 100, 1e-5, 3.2023)],
)
def test_one_run_has_its_published_figures(
    canaries: int, guesses: int, right: int, delta: float, bound: float
) -> None:
    assert one_run_epsilon(canaries, guesses, right, delta=delta) == pytest.approx(bound, abs=5e-5)


def test_one_run_is_what_its_theorem_says() -> None:
    """Against the sums themselves, and at the edges."""
    q = 1 / (1 + math.exp(-1.3))
    law = [math.comb(20, k) * q**k * (1 - q) ** (20 - k) for k in range(21)]
    beta = sum(law[17:])
    alpha = max(sum(law[17 - i : 17]) / i for i in range(1, 18))
    assert one_run_miss(50, 20, 17, epsilon=1.3) == pytest.approx(beta)
    assert one_run_miss(50, 20, 17, epsilon=1.3, delta=1e-3) == pytest.approx(beta + 2 * 50 * 1e-3 * alpha)
    assert one_run_epsilon(100, 100, 50) == 0 and one_run_epsilon(100, 100, 0) == 0
    assert one_run_epsilon(10, 10, 10) < one_run_epsilon(100, 100, 100) < math.log(100)
    with pytest.raises(InvalidArgument):
        one_run_epsilon(10, 20, 5)
