"""Forecasts: how far off an answer will be, before anything is spent, and the epsilon for a wanted error.

Counts, sums and histograms have an error that does not depend on data. Averages, variances and
covariances have one that falls with the size of the group, which must be said; the forecast is the
interval that a release will show where values lie at the worst place between their bounds. A standard
deviation is then off by at most the root of what its square is: so far if all values are one. A
correlation divides by deviations that nobody knows, so that it has no worst case short of the whole
range: what is said is for values spread evenly, and nothing can be asked by it. Quantiles have a rank
that is off by so many rows, or by a share of a group of a stated size.

All of this concerns noise: what clamping and capping remove is not in it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache

import numpy as np

from sfumato.aggregates import moments
from sfumato.aggregates.answer import Answer
from sfumato.aggregates.registry import Function
from sfumato.analysis.batches import price_together
from sfumato.analysis.bounded import Bounding
from sfumato.analysis.pricing import Cost, Noise
from sfumato.analysis.single_quantile import QuantileSearch
from sfumato.core.accountant import PrivacyBudget
from sfumato.core.arguments import Number, budget_quantity, positive
from sfumato.core.noise_law import NoiseLaw
from sfumato.core.noise_sums import miss
from sfumato.errors import InvalidArgument

__all__ = ["Forecast", "cheapest", "forecasts"]

_CLEAR = 6  # deviations at which a count around a quantile tells the density there
_COUNTS = {
    Function.COUNT_ROWS,
    Function.COUNT,
    Function.COUNT_UNITS,
    Function.COUNT_DISTINCT,
    Function.HISTOGRAM,
}
_RANKS = {Function.QUANTILE, Function.MIN, Function.MAX}
_SQUARES = {Function.STDDEV_POP: Function.VAR_POP, Function.STDDEV_SAMP: Function.VAR_SAMP}
_ESTIMATES = {
    Function.AVG: moments.mean,
    Function.VAR_POP: moments.variance,
    Function.VAR_SAMP: moments.variance,
    Function.COVAR_POP: moments.covariance,
    Function.COVAR_SAMP: moments.covariance,
}
_EVEN = 1 / 3  # values spread evenly over a half-width have a third of its square as their variance


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """The half-width that holds an answer's noise with the stated probability.

    `error` is None if it depends on the group's size and none was given, and for a correlation, of which
    only `even` is known: the same for values spread evenly between their bounds. In ranks: of a group of
    a stated size the quantile asked for, plus or minus `error`; without a size, that many rows.
    """

    name: str
    error: float | None
    in_ranks: bool = False
    needs_size: bool = False
    even: float | None = None


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
    noise: str | None = None,
    keys_delta: Number | None = None,
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
        raise InvalidArgument(f"no aggregate is called {', '.join(sorted(unknown))}", place="error")

    @lru_cache
    def excess(epsilon: Fraction) -> float:
        costs = price_together(
            several,
            budget,
            epsilon=epsilon,
            weights=weights,
            noise=noise,
            keys_delta=keys_delta,
            whole=whole,
        )
        worst = 0.0
        for asked, cost in zip(several, costs, strict=True):
            for place in range(len(asked.query.grouping_sets)):
                for one in forecasts(asked, cost, size=size, level=level, grouping_set=place):
                    if one.name in limits:
                        worst = max(worst, _known(one, size, limits[one.name]) / limits[one.name])
        return worst

    return _smallest(excess, budget_quantity(budget.epsilon, "epsilon"))


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
            hints=(
                "give a size, size=.. or --size: how many rows to expect in a group, from public knowledge",
            ),
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
    laws = [noise.law for noise in noises]
    name, function = answer.name, answer.function
    if function in _COUNTS:
        return Forecast(name=name, error=laws[0].half_width(level) * float(answer.weight))
    if function is Function.SUM and len(noises) == 1:
        return Forecast(name=name, error=laws[0].half_width(level) * float(answer.scale))
    if function is Function.SUM:
        return Forecast(name=name, error=moments.half_width(answer, laws, miss(level)))
    if function in _RANKS and noises[0].finding is not None:
        rows = _found(noises[0], noises[0].finding, answer, size, _quantile(level), level)
        return Forecast(name=name, error=rows if size is None else min(1.0, rows / size), in_ranks=True)
    if function in _RANKS:
        z = _quantile(level)
        blocks = max(1.0, noises[0].levels * (noises[0].branching - 1) / 6)
        if noises[0].levels == 1:
            blocks = max(1.0, (len(answer.edges) - 1) / 6)
        rows = z * laws[0].deviation * math.sqrt(blocks) * float(answer.weight)
        return Forecast(name=name, error=rows if size is None else min(1.0, rows / size), in_ranks=True)
    if size is None:
        return Forecast(name=name, error=None, needs_size=True)
    if function is Function.CORR:
        return Forecast(name=name, error=None, even=_even(answer, laws, size, level))
    if function in _SQUARES:
        square = _worst(replace(answer, function=_SQUARES[function]), laws, size, level)
        return Forecast(name=name, error=min(math.sqrt(square), _range(answer)), needs_size=True)
    error = min(_worst(answer, laws, size, level), _range(answer))
    return Forecast(name=name, error=error, needs_size=True)


def _found(
    noise: Noise, finding: QuantileSearch, answer: Answer, size: float | None, z: float, level: float
) -> float:
    """Return by how many rows the rank of a found quantile is off.

    With Laplace noise by the choice: where values are spread evenly around the quantile, a miss exceeds t
    with probability e^(-rate t). With Gaussian noise, where values are dense enough to correct it, by its
    anchor's noise and about a quarter of the way that it is corrected; in a group that is too small for that,
    by that whole way. Rows that share one value share all of its ranks.
    """
    parts = float(answer.weight)
    way = parts * float(1 / finding.row_rate)  # the rank's scale when found
    if finding.anchor is None:
        return -math.log(1 - level) * way
    off = parts * finding.anchor.deviation / finding.quantile.denominator
    annuli = (len(answer.edges) - 2).bit_length() + 1
    if size is not None and size < _CLEAR * parts * noise.law.deviation * math.sqrt(2 * annuli):
        return max(z * off, -math.log(1 - level) * way)
    return z * math.hypot(off, way * math.sqrt(2) / 4)


def _worst(answer: Answer, laws: list[NoiseLaw], size: float, level: float) -> float:
    """Return the half-width of the interval of a ratio where all values are as far from the centre as can be.

    With m the mean's distance from the centre, at most the half-width h, the noise of an average is
    dS - m dN, of a variance dQ - 2 m dS + (m^2 - v) dN with v at most h^2 - m^2, of a covariance
    dC - m' dS - m dS' + (m m' - c) dN: largest at m = h, where v and c are zero. The noise of the sums
    themselves is taken to have made the group smaller, and the means larger, than they are.
    """
    weight, scales = float(answer.weight), (float(answer.scale), float(answer.second_scale))
    lost = weight * laws[0].half_width(level)
    if size <= 2 * lost:
        return math.inf
    n = size - lost
    far = []
    for place in range(len(answer.half_widths)):
        half, noise = _half(answer, place), scales[place] * laws[1 + place].half_width(level)
        far.append((half * size + noise) / n / scales[place])
    sums = [n / weight, *(n * one for one in far), n * far[0] * far[-1]][: len(laws)]
    free = replace(answer, lower=None, upper=None, centre=0.0, second_centre=0.0)
    found = _ESTIMATES[answer.function](free, [np.array([one]) for one in sums], laws, miss(level))
    return float(max(found.high[0] - found.values[0], found.values[0] - found.low[0]))


def _even(answer: Answer, laws: list[NoiseLaw], size: float, level: float) -> float:
    """Return the same of a correlation of values spread evenly between their bounds, at its widest."""
    weight, x, y = float(answer.weight), float(answer.scale), float(answer.second_scale)
    h, g = _half(answer, 0), _half(answer, 1)
    widths = []
    for rho in (0.0, 0.5):
        products = (h * h / x / x, g * g / y / y, rho * h * g / x / y)
        sums = [size / weight, 0.0, 0.0, *(size * _EVEN * product for product in products)]
        found = moments.correlation(answer, [np.array([one]) for one in sums], laws, miss(level))
        widths.append(float(found.high[0] - found.low[0]) / 2)
    return max(widths)


def _range(answer: Answer) -> float:
    """Return how far two answers can be apart at all."""
    return math.inf if answer.lower is None or answer.upper is None else answer.upper - answer.lower


def _half(answer: Answer, place: int) -> float:
    """Return how far a factor can be from its centre: its bounds, as the measures have them."""
    return max(answer.half_widths[place], 1e-300)  # values that are all one


def _quantile(level: float) -> float:
    from statistics import NormalDist

    return NormalDist().inv_cdf((1 + level) / 2)
