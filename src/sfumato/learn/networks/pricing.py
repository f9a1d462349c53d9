"""Pricing: how much noise the steps of a training get, and what the budget is charged for all of them.

A step is discrete Gaussian noise on integers of which one unit, where it is in the sample, changes the norm
by at most the sensitivity (`clipping`); units are sampled as `sampling` says. So a step is a
`PoissonSubsampled(DiscreteGaussianVector)`, whatever parameters the steps before led to, and a training is as
many of them. The ledger is charged what is the least of two prices: of that batch by the budget's own rule,
or of the Gaussian that dominates it but for a failure (`core.approximate_gaussian`), whose chance is charged
to the delta for keys. The first is the better one under a Renyi rule and where nothing is sampled away.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from sfumato.core.accountant import PrivacyBudget
from sfumato.core.approximate_gaussian import mu_but_for
from sfumato.core.events import Event, Gaussian, PoissonSubsampled, Repeated
from sfumato.core.gaussian import GaussianNoise
from sfumato.core.rules import UNITS, RenyiRule, Rule
from sfumato.core.search import bracket, smallest
from sfumato.core.vector_noise import VectorNoise
from sfumato.errors import Unsupported
from sfumato.learn.private_rows import gaussian_budget

__all__ = ["Charged", "StepNoise", "step_noise"]

_SHARE = 10  # a training takes a tenth of the delta for keys, unless it says otherwise
_FINE = 2e-3  # of the price that is found
_TRIES = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Charged:
    """What the ledger is charged for a training: an event, and the chance that it says too little."""

    event: Event
    failure: Fraction

    @staticmethod
    def of(batch: Event, rule: Rule, failure: Fraction) -> Charged:
        """Return the lesser of the two prices of the module."""
        itself = Charged(event=batch, failure=Fraction(0))
        if not failure:
            return itself
        mu = Fraction(mu_but_for(batch, failure))
        dominating = Charged(event=Gaussian(sigma=1 / mu), failure=failure)
        return min(itself, dominating, key=lambda one: one.price(rule))

    def price(self, rule: Rule) -> Fraction:
        """Return the price in the currency of a rule. Rounds: up."""
        return Fraction(rule.charge(self.event), UNITS)


@dataclass(frozen=True, slots=True, kw_only=True)
class StepNoise:
    """The noise of each step, and what steps cost together."""

    law: GaussianNoise
    sensitivity: int
    rate: Fraction
    steps: int
    charged: Charged

    def batch(self, steps: int) -> Event:
        """Return what so many steps are, as one event."""
        return _batch(self.law, self.sensitivity, self.rate, steps)

    @property
    def multiplier(self) -> float:
        """The standard deviation of the noise, in sensitivities."""
        return math.sqrt(self.law.parameter) / self.sensitivity

    def epsilon(self, steps: int, budget: PrivacyBudget) -> float:
        """Return what the first steps give away by themselves, by the rule of the budget. Rounds: up."""
        charged = Charged.of(self.batch(steps), budget.rule, self.charged.failure)
        return budget.rule.epsilon(charged.price(budget.rule), budget.delta_loss)


def step_noise(
    budget: PrivacyBudget,
    epsilon: Fraction,
    *,
    sensitivity: int,
    rate: Fraction,
    steps: int,
    failure: Fraction | None,
) -> StepNoise:
    """Return about the least noise with which steps cost `epsilon` by themselves, by the budget's rule. Free.

    Theorem: see the module. Rounds: up: the price of the result itself was tested.
    """
    gaussian_budget(budget, "a network")
    if failure is None:
        failure = budget.keys_delta / _SHARE
    if not failure and rate < 1 and not isinstance(budget.rule, RenyiRule):
        raise Unsupported(
            "what a sample saves is charged to the delta for keys, and this budget has none",
            place="sampling",
            hints=(
                "Budget(epsilon=3, delta=1e-6) keeps a tenth of delta for that",
                "or sampling=1: everybody",
            ),
        )
    return _found(budget.rule, budget.allowance(epsilon), sensitivity, rate, steps, failure)


@lru_cache(maxsize=64)
def _found(
    rule: Rule, allowance: Fraction, sensitivity: int, rate: Fraction, steps: int, failure: Fraction
) -> StepNoise:
    tried: list[tuple[float, float]] = []  # logarithms of the noise, and of its price in allowances
    near = math.log(_first(rule, allowance, rate, steps))
    for _ in range(_TRIES):
        found = _with_noise(math.exp(near), rule, sensitivity, rate, steps, failure)
        excess = math.log(found.charged.price(rule) / allowance)
        if -_FINE <= excess <= 0:
            return found
        slope = -2.0  # the price falls about like the square of the noise
        if tried and tried[-1][0] != near:
            slope = min(-0.5, (excess - tried[-1][1]) / (near - tried[-1][0]))
        tried.append((near, excess))
        near -= (excess + _FINE / 2) / slope

    def fits(multiplier: float) -> bool:
        noise = _with_noise(multiplier, rule, sensitivity, rate, steps, failure)
        return noise.charged.price(rule) <= allowance

    enough = smallest(fits, *bracket(fits, math.exp(near)), _FINE / 2)
    return _with_noise(enough, rule, sensitivity, rate, steps, failure)


def _with_noise(
    multiplier: float, rule: Rule, sensitivity: int, rate: Fraction, steps: int, failure: Fraction
) -> StepNoise:
    law = GaussianNoise(Fraction(math.ceil(multiplier * sensitivity)) ** 2)
    batch = _batch(law, sensitivity, rate, steps)
    charged = Charged.of(batch, rule, failure)
    return StepNoise(law=law, sensitivity=sensitivity, rate=rate, steps=steps, charged=charged)


def _batch(law: GaussianNoise, sensitivity: int, rate: Fraction, steps: int) -> Event:
    vector = VectorNoise(l2_squared=sensitivity**2).event(law)
    return Repeated(event=PoissonSubsampled(event=vector, rate=rate), times=steps)


def _first(rule: Rule, allowance: Fraction, rate: Fraction, steps: int) -> float:
    """Return about the noise: the square of mu is steps rate^2 (e^(1 / sigma^2) - 1) in the limit."""
    unit = float(rule.price(Gaussian(sigma=Fraction(1))))
    squared = float(allowance) / unit / (steps * float(rate) ** 2)
    return 1.3 / math.sqrt(math.log1p(squared))
