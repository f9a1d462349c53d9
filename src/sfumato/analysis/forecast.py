"""Forecasts: how far off an answer will be, before anything is spent, and the epsilon for a wanted error.

Counts, sums and histograms have an error that does not depend on data. Averages and what else is
divided by a count have one that falls with the size of the group, which must be said; quantiles
have a rank that is off by so many rows. Where it also depends on where the values lie between
their bounds, the forecast is for the worst place; deviations that are divided by are those of
values spread evenly. All of this concerns noise: what clamping and capping remove is not in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache

from sfumato.analysis.answer import Answer, Bounding
from sfumato.analysis.batches import price_together
from sfumato.analysis.finding import Finding
from sfumato.analysis.pricing import Cost, Noise
from sfumato.analysis.shares import NoiseKind
from sfumato.core.accountant import PrivacyBudget
from sfumato.core.arguments import Number, budget_quantity, positive
from sfumato.core.calibration import gaussian_error, laplace_error
from sfumato.errors import InvalidArgument
from sfumato.plan.tree import Function

__all__ = ["Forecast", "cheapest", "forecasts"]

_COUNTS = {
    Function.COUNT_ROWS,
    Function.COUNT,
    Function.COUNT_UNITS,
    Function.COUNT_DISTINCT,
    Function.HISTOGRAM,
}
_RANKS = {Function.QUANTILE, Function.MIN, Function.MAX}
_ROOTS = {Function.STDDEV_POP, Function.STDDEV_SAMP}
_CLEAR = 6  # deviations at which a count around a quantile tells the density there
_EVEN = math.sqrt(12)  # values spread evenly over a width deviate by width / sqrt(12)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The half-width that holds an answer's noise with the stated probability.

    `error` is None if it depends on the group's size and none was given. In ranks: of a group of a
    stated size the quantile asked for, plus or minus `error`; without a size, that many rows.
    """

    name: str
    error: float | None
    in_ranks: bool = False
    needs_size: bool = False


def forecasts(
    bounding: Bounding,
    cost: Cost,
    *,
    size: float | None = None,
    level: float = 0.95,
    grouping_set: int = 0,
) -> tuple[Forecast, ...]:
    """Return what to expect of every aggregate in groups of `size` rows."""
    if size is not None:
        size = float(positive(size, "size"))
    return tuple(_forecast(answer, cost, size, level, grouping_set) for answer in bounding.answers)


def cheapest(
    bounding: Bounding | tuple[Bounding, ...],
    budget: PrivacyBudget,
    *,
    error: Number | Mapping[str, float],
    size: float | None = None,
    level: float = 0.95,
    weights: Mapping[str, Fraction] | None = None,
    noise: NoiseKind | None = None,
    keys_delta: Number | None = None,
) -> Fraction:
    """Return about the smallest epsilon at which every aggregate (or each that is named) errs by no more.

    Of several questions, the epsilon for all of them together. Rounds: up, to three digits.
    """
    several = bounding if isinstance(bounding, tuple) else (bounding,)
    names = {answer.name for one in several for answer in one.answers}
    limits = (
        {name: float(positive(value, "error")) for name, value in error.items()}
        if isinstance(error, Mapping)
        else dict.fromkeys(names, float(positive(error, "error")))
    )
    if unknown := limits.keys() - names:
        raise InvalidArgument(f"no aggregate is called {', '.join(sorted(unknown))}", place="error")

    @lru_cache
    def excess(epsilon: Fraction) -> float:
        costs = price_together(
            several, budget, epsilon=epsilon, weights=weights, noise=noise, keys_delta=keys_delta
        )
        worst = 0.0
        for asked, cost in zip(several, costs, strict=True):
            for place in range(len(asked.query.grouping_sets)):
                for one in forecasts(asked, cost, size=size, level=level, grouping_set=place):
                    if one.name in limits:
                        worst = max(worst, _known(one) / limits[one.name])
        return worst

    return _smallest(excess, budget_quantity(budget.epsilon, "epsilon"))


def _known(forecast: Forecast) -> float:
    if forecast.error is None:
        raise InvalidArgument(
            f"the error of `{forecast.name}` depends on how large a group is",
            place="error",
            hints=(
                "give a size, size=.. or --size: how many rows to expect in a group, from public knowledge",
            ),
        )
    return forecast.error


def _smallest(excess: Callable[[Fraction], float], start: Fraction) -> Fraction:
    """Follow error ~ 1/epsilon to where it is met, then narrow down to three digits."""
    low, high, epsilon = Fraction(0), None, _digits(start)
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


# -- one aggregate --------------------------------------------------------------------------


def _forecast(answer: Answer, cost: Cost, size: float | None, level: float, place: int) -> Forecast:
    noises = [cost.noise(measure, place) for measure in answer.measures]
    name, function = answer.name, answer.function
    if function in _COUNTS:
        return Forecast(name=name, error=_width(noises[0], level) * float(answer.weight))
    if function is Function.SUM and len(noises) == 1:
        return Forecast(name=name, error=_width(noises[0], level) * float(answer.scale))
    z = _quantile(level)
    if function is Function.SUM:
        count, total = (_deviation(noise) for noise in noises)
        spread = math.hypot(answer.centre * float(answer.weight) * count, float(answer.scale) * total)
        return Forecast(name=name, error=z * spread)
    if function in _RANKS and noises[0].finding is not None:
        rows = _found(noises[0], noises[0].finding, answer, size, z, level)
        return Forecast(name=name, error=rows if size is None else min(1.0, rows / size), in_ranks=True)
    if function in _RANKS:
        blocks = max(1.0, noises[0].levels * (noises[0].branching - 1) / 6)
        if noises[0].levels == 1:
            blocks = max(1.0, (len(answer.edges) - 1) / 6)
        rows = z * _deviation(noises[0]) * math.sqrt(blocks) * float(answer.weight)
        return Forecast(name=name, error=rows if size is None else rows / size, in_ranks=True)
    if size is None:
        return Forecast(name=name, error=None, needs_size=True)
    return Forecast(name=name, error=z * _ratio(answer, noises) / size, needs_size=True)


def _found(
    noise: Noise, finding: Finding, answer: Answer, size: float | None, z: float, level: float
) -> float:
    """Return by how many rows the rank of a found quantile is off.

    Where values are dense enough to correct it, by its anchor's noise and about a quarter of the way
    that it is corrected; in a group that is too small for that, by that whole way. Rows that share one
    value share all of its ranks.
    """
    parts = float(answer.weight)
    way = parts * float(1 / (finding.rate * finding.quantile.denominator))  # the rank's scale when found
    anchor = Noise(
        measure=noise.measure,
        grouping_set=noise.grouping_set,
        kind=noise.kind,
        parameter=finding.anchor,
        event=noise.event,
    )
    off = parts * _deviation(anchor) / finding.quantile.denominator
    annuli = (len(answer.edges) - 2).bit_length() + 1
    if size is not None and size < _CLEAR * parts * _deviation(noise) * math.sqrt(2 * annuli):
        return max(z * off, -math.log(1 - level) * way)
    return z * math.hypot(off, way * math.sqrt(2) / 4)


def _ratio(answer: Answer, noises: list[Noise]) -> float:
    """Return the deviation of an answer times the size of its group, to first order in the noise.

    With m the mean's distance from the centre, at most the half-width h: an average moves by
    dS - m dN, a variance by dQ - 2 m dS + (m^2 - v) dN, a covariance by dC - m' dS - m dS' + .. dN.
    """
    deviations = [_deviation(noise) for noise in noises]
    count = deviations[0] * float(answer.weight)
    x, y = float(answer.scale), float(answer.second_scale)
    h = _half(answer, 0)
    match answer.function:
        case Function.AVG:
            return math.hypot(x * deviations[1], h * count)
        case Function.VAR_POP | Function.VAR_SAMP | Function.STDDEV_POP | Function.STDDEV_SAMP:
            total = math.hypot(x**2 * deviations[2], 2 * h * x * deviations[1], h**2 * count)
            return total / (2 * 2 * h / _EVEN) if answer.function in _ROOTS else total
        case Function.CORR:
            g = _half(answer, 1)
            return x * y * deviations[5] / ((2 * h / _EVEN) * (2 * g / _EVEN))
        case _:
            g = _half(answer, 1)
            return math.hypot(
                x * y * deviations[3], g * x * deviations[1], h * y * deviations[2], h * g * count
            )


def _half(answer: Answer, place: int) -> float:
    """Return how far a factor can be from its centre: its bounds, as the measures have them."""
    return max(answer.half_widths[place], 1e-300)  # values that are all one


def _width(noise: Noise, level: float) -> float:
    if noise.kind == "laplace":
        return float(laplace_error(noise.parameter, level))
    return float(gaussian_error(noise.parameter, level))


def _deviation(noise: Noise) -> float:
    return math.sqrt(noise.variance)


def _quantile(level: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf((1 + level) / 2)
