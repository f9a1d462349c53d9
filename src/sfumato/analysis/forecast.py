"""Forecasts: how far off an answer will be, before anything is spent, and the epsilon for a wanted error.

Each record says how far off its aggregate is (`aggregates`). Some errors depend on the size of a group,
which must be said. All of this concerns noise: what clamping and capping remove is not in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from functools import lru_cache

from sfumato.aggregates.answer import Forecast
from sfumato.aggregates.linear import fitted_widths
from sfumato.analysis.batches import price_together
from sfumato.analysis.bounded import Bounding
from sfumato.analysis.consistency import level_fits
from sfumato.analysis.pricing import Cost
from sfumato.core.accountant import PrivacyBudget
from sfumato.core.arguments import Number, budget_quantity, positive
from sfumato.core.steps import spend
from sfumato.errors import InvalidArgument
from sfumato.plan.options import DEFAULT_OPTIONS, Options

_STEPS_PER_ANSWER = 40

__all__ = ["cheapest", "forecasts", "smallest_epsilon", "worst_forecasts", "worst_of"]


def forecasts(
    bounding: Bounding, cost: Cost, *, size: float | None = None, level: float = 0.95, grouping_set: int = 0
) -> tuple[Forecast, ...]:
    """Return what to expect of every aggregate in groups of `size` rows."""
    spend(_STEPS_PER_ANSWER * len(bounding.answers))
    rows = None if size is None else float(positive(size, "size"))
    if bounding.consistency is not None:
        return _consistent(bounding, cost, level, grouping_set)
    found = []
    for answer in bounding.answers:
        noises = [cost.noise(measure, grouping_set).added for measure in answer.measures]
        found.append(answer.function.record.forecast(answer, noises, rows, level))
    return tuple(found)


def worst_forecasts(
    bounding: Bounding, cost: Cost, *, size: float | None = None, level: float = 0.95
) -> tuple[Forecast, ...]:
    """Return what to expect of every aggregate in whichever grouping set it errs most."""
    places = range(len(bounding.query.grouping_sets))
    return worst_of(forecasts(bounding, cost, size=size, level=level, grouping_set=one) for one in places)


def worst_of(sets: Iterable[tuple[Forecast, ...]]) -> tuple[Forecast, ...]:
    """Return of every aggregate the largest of several forecasts; what is not known is the largest."""
    return tuple(max(one, key=_off) for one in zip(*sets, strict=True))


def _off(forecast: Forecast) -> float:
    return math.inf if forecast.error is None else forecast.error


def _consistent(bounding: Bounding, cost: Cost, level: float, place: int) -> tuple[Forecast, ...]:
    """Return what to expect of answers that add up: the noise of estimates and rounding, as they will say."""
    fits = level_fits(bounding, cost)
    found = []
    for answer in bounding.answers:
        linear = answer.function.record.linear(answer) or dict.fromkeys(answer.measures, answer.weight)
        laws = [cost.noise(measure, place).law for measure in linear]
        fitted = [fits[measure, place] for measure in linear]
        weights = [weight / one.parts for weight, one in zip(linear.values(), fitted, strict=True)]
        [width] = fitted_widths(weights, fitted, laws, level)
        error = abs(weights[0]) * width
        found.append(Forecast(name=answer.name, error=float(math.ceil(error) if answer.integer else error)))
    return tuple(found)


def cheapest(
    bounding: Bounding | tuple[Bounding, ...],
    budget: PrivacyBudget,
    *,
    error: Number | Mapping[str, float],
    size: float | None = None,
    level: float = 0.95,
    options: Options = DEFAULT_OPTIONS,
    own: Sequence[Options | None] = (),
    whole: Fraction = Fraction(1),
) -> Fraction:
    """Return about the smallest epsilon at which every aggregate (or each that is named) errs by no more.

    Of a quantile the error is a share of the ranks in a group of `size`: 0.02 of a median, between the
    48th and the 52nd percentile. Of several questions, the epsilon for all of them together, which use
    the part `whole` of what it allows. Rounds: up, to three digits.
    """
    several = bounding if isinstance(bounding, tuple) else (bounding,)
    names = {answer.name for one in several for answer in one.answers}
    limits = (
        {name: float(positive(value, "error")) for name, value in error.items()}
        if isinstance(error, Mapping)
        else dict.fromkeys(names, float(positive(error, "error")))
    )
    if unknown := limits.keys() - names:
        raise InvalidArgument(f"no aggregate is called {', '.join(sorted(map(str, unknown)))}", place="error")

    @lru_cache
    def excess(epsilon: Fraction) -> float:
        costs = price_together(several, budget, epsilon=epsilon, options=options, own=own, whole=whole)
        worst = 0.0
        for asked, cost in zip(several, costs, strict=True):
            for one in worst_forecasts(asked, cost, size=size, level=level):
                if one.name in limits:
                    worst = max(worst, _known(one, size, limits[one.name]) / limits[one.name])
        return worst

    return smallest_epsilon(excess, budget_quantity(budget.epsilon, "epsilon"))


def _known(forecast: Forecast, size: float | None, limit: float) -> float:
    name, error = forecast.name, forecast.error
    if forecast.in_ranks and limit >= 1:
        raise InvalidArgument(
            f"the error of `{name}` is a share of ranks, and so below 1",
            place="error",
            hints=(
                "0.02 of a median: between the 48th and the 52nd percentile",
                "in the column's own unit it depends on the data: ask with an epsilon, and read the interval",
                f"several aggregates have limits of their own: error={{'{name}': 0.02, ..}}",
            ),
        )
    if (error is None and forecast.needs_size) or (forecast.in_ranks and size is None):
        raise InvalidArgument(
            f"the error of `{name}` depends on how large a group is",
            place="error",
            hints=("give a size, size=.. or --size: how many rows a group has, from public knowledge",),
        )
    if error is None:
        raise InvalidArgument(
            f"the error of `{name}` has no bound beforehand: it depends on how far values spread",
            place="error",
            hints=(
                "ask with an epsilon, and read the interval",
                "explain(size=..) says what it is if values are spread evenly over their bounds",
            ),
        )
    return error


def smallest_epsilon(
    excess: Callable[[Fraction], float], start: Fraction, *, high: Fraction | None = None
) -> Fraction:
    """Return about the smallest epsilon at which `excess`, an error over its limit, is 1 at most. Rounds: up.

    It follows error ~ 1/epsilon to where it is met, then narrows down to three digits. `high` is an epsilon
    that is known to be enough.

    >>> float(smallest_epsilon(lambda epsilon: float(3 / epsilon), Fraction(1)))
    3.0
    """
    low, epsilon = Fraction(0), _digits(start)
    for _ in range(60):
        ratio = excess(epsilon)
        if ratio <= 1:
            high = epsilon
        else:
            low = epsilon
        if high is not None and high <= low * Fraction(1001, 1000) + Fraction(1, 10**12):
            break
        guess = _digits(epsilon * Fraction(min(max(ratio, 1e-3), 1e3)))
        inside = low < guess and (high is None or guess < high)
        if not inside:
            middle = _digits((low + high) / 2) if high is not None else epsilon * 2
            if middle in (low, high):
                break
            guess = middle
        epsilon = guess
    if high is None:
        raise InvalidArgument("no epsilon makes the error this small", place="error")
    return high


def _digits(value: Fraction) -> Fraction:
    """Round up to three digits."""
    unit = Fraction(10) ** (math.floor(math.log10(value)) - 2)
    return math.ceil(value / unit) * unit
