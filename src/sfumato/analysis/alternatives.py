"""Alternatives: what another kind of budget would make of a question. A hint, from the plan alone.

A budget with the Gaussian rule holds many questions: their costs add up like squares. For a few large
questions Laplace noise under the pure rule errs less at the same epsilon; there epsilon itself adds up.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction

from sfumato.analysis.bounded import Bounding
from sfumato.analysis.forecast import forecasts
from sfumato.analysis.pricing import Cost, price
from sfumato.core.accountant import PrivacyBudget
from sfumato.core.noise_law import noise_laws
from sfumato.core.rules import PureRule

__all__ = ["Alternative", "alternative"]

_MUCH = 0.8  # an error this many times the present one is worth a line


@dataclass(frozen=True, slots=True, kw_only=True)
class Alternative:
    """One answer's error and how many such questions fit, under this budget and under a pure one.

    Where groups are to be found, also how many units or rows (`counted`) one needs to be shown, under each.
    """

    name: str
    error: float
    fits: int
    pure_error: float
    pure_fits: int
    least: int | None = None
    pure_least: int | None = None
    counted: str = "units"

    def __str__(self) -> str:
        errors = f"make {self.name} ±{self.pure_error:,.4g} instead of ±{self.error:,.4g}"
        if self.pure_least is not None:
            errors += f" and show groups from {self.pure_least:,} {self.counted} on instead of {self.least:,}"
        fits = f"it holds {self.pure_fits:,} such questions, this budget {self.fits:,}"
        return f'rule="pure" would {errors}; {fits}'


def alternative(
    bounding: Bounding,
    cost: Cost,
    budget: PrivacyBudget,
    *,
    size: float | None = None,
    noise: str | None = None,
) -> Alternative | None:
    """Return what a pure budget of the same epsilon and delta would do, None unless it is much better.

    The pure budget has all of its delta for keys. The answer shown is the first that has a forecast.
    """
    if isinstance(budget.rule, PureRule) or cost.part != 1:
        return None
    if not any(law.pure for law in noise_laws(noise)):
        return None
    pure = PrivacyBudget(epsilon=budget.epsilon, delta=budget.delta, keys_delta=budget.delta, rule=PureRule())
    other = price(bounding, pure, epsilon=cost.epsilon)
    pairs = (forecasts(bounding, each, size=size) for each in (cost, other))
    for one, two in zip(*pairs, strict=True):
        if one.error is not None and two.error is not None and not one.in_ranks and not one.falls_short:
            if two.error >= _MUCH * one.error:  # also where neither has noise
                return None
            rules = [each.selection() if bounding.select_keys else None for each in (cost, other)]
            (least, counted), (pure_least, _) = (
                (None, "") if rule is None else rule.counted for rule in rules
            )
            return Alternative(
                name=one.name,
                error=one.error,
                fits=_fits(cost, budget),
                pure_error=two.error,
                pure_fits=_fits(other, pure),
                least=least,
                pure_least=pure_least,
                counted=counted,
            )
    return None


def _fits(cost: Cost, budget: PrivacyBudget) -> int:
    """Return how many questions of this cost the whole budget holds."""
    charge, keys = budget.charge(cost.event, cost.keys_delta)
    fits = [math.floor(Fraction(budget.limit, max(1, charge)))]
    if keys:
        fits.append(math.floor(Fraction(budget.keys_limit, keys)))
    return min(fits)
