"""Discrete Gaussian noise on a vector: the norm of a change is all that counts."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest

from sfumato.core.accountant import PrivacyBudget, PrivacyFilter
from sfumato.core.composition import Composition
from sfumato.core.events import DiscreteGaussian, DiscreteGaussianVector, Event
from sfumato.errors import InvalidArgument

SQUARES = [Fraction(1, 9), Fraction(1), Fraction(13, 2), Fraction(900), Fraction(10**6)]


@pytest.mark.parametrize("square", SQUARES, ids=str)
def test_no_change_within_the_norm_costs_more(square):
    """Every vector of integers with squares summing to at most 9, as a batch of its entries, has a smaller
    mu, rho, Renyi divergence and delta. A mu that leaves out the lattice's excess fails at small sigma."""
    event = DiscreteGaussianVector(sigma_squared=square, l2_squared=9)
    for change in product(range(4), repeat=3):
        if not 0 < sum(d * d for d in change) <= 9:
            continue
        entries = [DiscreteGaussian(sigma_squared=square, sensitivity=d) for d in change if d]
        assert sum(Fraction(entry.mu()) ** 2 for entry in entries) <= Fraction(event.mu()) ** 2
        assert sum(entry.rho() for entry in entries) <= event.rho()
        assert sum(entry.renyi(3.5) for entry in entries) <= event.renyi(3.5) * (1 + 1e-12)


@pytest.mark.parametrize("square", [Fraction(1), Fraction(25)], ids=str)
def test_its_delta_covers_the_entries_together(square):
    event = DiscreteGaussianVector(sigma_squared=square, l2_squared=6)
    together = Composition([DiscreteGaussian(sigma_squared=square, sensitivity=d) for d in (1, 1, 2)])
    for epsilon in (0.0, 0.3, 1.0, 3.0):
        low, _ = together.delta_bounds(epsilon)
        assert low <= event.delta(epsilon) <= low * 1.35 + 1e-12


def test_a_budget_accepts_it_and_a_record_keeps_it():
    event = DiscreteGaussianVector(sigma_squared=400, l2_squared=7)
    assert PrivacyFilter(PrivacyBudget(epsilon=1, delta=1e-6)).spend(event) > 0
    assert Event.from_dict(event.to_dict()) == event
    assert event.group(3) == DiscreteGaussianVector(sigma_squared=400, l2_squared=63)


@pytest.mark.parametrize("bad", [0, -1, float("nan"), float("inf"), True, "1", None], ids=repr)
def test_senseless_parameters_are_refused(bad):
    with pytest.raises(InvalidArgument):
        DiscreteGaussianVector(sigma_squared=bad, l2_squared=1)
    with pytest.raises(InvalidArgument):
        DiscreteGaussianVector(sigma_squared=1, l2_squared=bad)
