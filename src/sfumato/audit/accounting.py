"""Accounting as a subject: what batches and budgets are said to cost, beside what enumeration says they do.

Every case is small enough to write down all outcomes, so the exact epsilon at a delta is known; the price
must not be below it. Budgets are spent to the last drop, and all that was admitted is enumerated together.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np

from sfumato.audit.subject import Claim, ExactEpsilon, Verdict
from sfumato.audit.white_box import exact_epsilon, product_table, repeated_table
from sfumato.core.accountant import PrivacyBudget, PrivacyFilter
from sfumato.core.composition import Composition
from sfumato.core.events import DiscreteGaussian, DiscreteLaplace, Event, FinitePair, RandomizedResponse
from sfumato.core.rules import GaussianRule, PureRule, Rule, ZeroConcentratedRule
from sfumato.errors import BudgetExceeded

__all__ = ["accounts", "gaussian_table", "laplace_table"]

_Table = list[tuple[Any, Any]]
_TOSS = RandomizedResponse(truth=Fraction(3, 4), choices=2)
_COIN: _Table = [(Fraction(3, 4), Fraction(1, 4)), (Fraction(1, 4), Fraction(3, 4))]
_ODD: _Table = [
    (Fraction(1, 2), Fraction(1, 4)),
    (Fraction(3, 8), Fraction(1, 4)),
    (Fraction(1, 8), Fraction(1, 2)),
]


def laplace_table(scale: float, shift: int) -> _Table:
    """Return the two laws of discrete Laplace noise on 0 and on `shift`, outcomes of one ratio merged.

    All outputs at 0 and below are one, and all from the shift on.
    """
    fall = math.exp(-1 / scale)
    level = (1 - fall) / (1 + fall)
    inner = [(level * fall**at, level * fall ** (shift - at)) for at in range(1, shift)]
    tail = 1 / (1 + fall)
    return [(tail, tail * fall**shift), *inner, (tail * fall**shift, tail)]


def gaussian_table(sigma_squared: float, shift: int, times: int = 1) -> _Table:
    """Return the two laws of discrete Gaussian noise on 0 and on `shift`, drawn `times` times.

    The loss is linear in the output, so only the sum of outputs matters. Outputs beyond forty standard
    deviations, of probability below 1e-300, are left out.
    """
    reach = math.ceil(40 * math.sqrt(sigma_squared))
    outputs = np.arange(-reach, reach + 1)
    weights = np.exp(-(outputs.astype(np.float64) ** 2) / (2 * sigma_squared))
    law = weights / weights.sum()
    total = np.array([1.0])
    for _ in range(times):
        total = np.convolve(total, law)
    size = shift * times
    first = np.concatenate([total, np.zeros(size)])
    second = np.concatenate([np.zeros(size), total])
    # an output that only one law reaches is one that both do, with a probability below what floats hold
    both = (first > 1e-290) & (second > 1e-290)
    return list(zip(first[both].tolist(), second[both].tolist(), strict=True))


def accounts() -> tuple[Verdict, ...]:
    """Return a verdict on the price of each batch and each budget."""
    return (*_batches(), *_budgets())


def _batches() -> Iterator[Verdict]:
    odd = FinitePair(with_person=tuple(p for p, _ in _ODD), without=tuple(q for _, q in _ODD))
    laplace = DiscreteLaplace(scale=Fraction(4), sensitivity=3)
    gaussian = DiscreteGaussian(sigma_squared=Fraction(25), sensitivity=2)
    small = Fraction(1, 10**6)
    for name, parts, table in (
        ("100 coin tosses", [(_TOSS, 100)], repeated_table(_COIN, 100)),
        ("12 uneven choices", [(odd, 12)], repeated_table(_ODD, 12)),
        ("20 discrete Laplace releases", [(laplace, 20)], repeated_table(laplace_table(4, 3), 20)),
        ("9 discrete Gaussian releases", [(gaussian, 9)], gaussian_table(25, 2, 9)),
        (
            "coin tosses, Laplace and Gaussian releases together",
            [(_TOSS, 3), (laplace, 4), (gaussian, 1)],
            product_table(
                repeated_table(_COIN, 3), repeated_table(laplace_table(4, 3), 4), gaussian_table(25, 2)
            ),
        ),
    ):
        yield _verdict(f"the price of {name}", Composition(parts).epsilon(small), small, table)


def _budgets() -> Iterator[Verdict]:
    """Spend budgets until they refuse, and enumerate what they admitted."""
    small = Fraction(1, 10**5)
    cases: tuple[tuple[Rule, Fraction, Event, Any], ...] = (
        (PureRule(), Fraction(0), _TOSS, lambda times: repeated_table(_COIN, times)),
        (
            ZeroConcentratedRule(),
            small,
            DiscreteLaplace(scale=Fraction(20), sensitivity=3),
            lambda times: repeated_table(laplace_table(20, 3), times),
        ),
        (
            GaussianRule(),
            small,
            DiscreteGaussian(sigma_squared=Fraction(400), sensitivity=3),
            lambda times: gaussian_table(400, 3, times),
        ),
    )
    for rule, delta, event, table in cases:
        budget = PrivacyBudget(epsilon=4, delta=delta, rule=rule)
        allowance, times = PrivacyFilter(budget), 0
        with suppress(BudgetExceeded):
            while True:
                allowance.spend(event)
                times += 1
        verdict = _verdict(f"a budget of 4 under the {rule.name} rule", 4.0, delta, table(times))
        yield replace(verdict, notes=(f"it admitted {times} releases",))


def _verdict(name: str, price: float, delta: Fraction, table: _Table) -> Verdict:
    p, q = zip(*table, strict=True)
    rational = all(isinstance(one, Fraction | int) for one in p)
    exact = exact_epsilon(p, q, delta=delta if rational else float(delta))
    return Verdict(
        name=name,
        claim=Claim(epsilon=price, delta=float(delta)),
        exact=ExactEpsilon(low=exact, high=exact, pair="a person in the data and not"),
        about=f"all {len(table)} outcomes enumerated",
    )
