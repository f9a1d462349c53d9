"""A pair of laws on finitely many outcomes: everything about it follows from a sorted table.

Outcomes with the same likelihood ratio are merged, which changes no cost (the ratio is a
sufficient statistic), and sorted by falling loss. Every test worth running then rejects
on the first few outcomes, so cumulative sums, exact ones, are the whole story.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import accumulate

import numpy as np

from sfumato.core.arguments import Cost, FloatArray, upper_float
from sfumato.core.exponential import exp_below, log_above
from sfumato.core.normal import tail_quantile
from sfumato.core.search import exp_excess, round_up

__all__ = ["PairTable", "pair_table"]

_Row = tuple[Fraction, ...]
_FAINTEST = Fraction(1, 10**280)
_FEW = 512  # outcomes whose losses are worth 0.1 ms each
_MOST_INTERVALS = 1000
_LARGEST_LEVEL = 5000  # e^5000 is exact enough a stand-in for infinity, and still computable


@dataclass(frozen=True, slots=True, kw_only=True)
class PairTable:
    """Outcomes by falling loss ln(p/q), with what both laws put on them."""

    masses: tuple[tuple[Fraction, Fraction], ...]
    losses: FloatArray
    """One per outcome, rounded up; inf and -inf where one law puts nothing."""
    upper_p: FloatArray
    """Entry j is what P puts on the first j outcomes, j = 0 .. n; `upper_q` the same for Q."""
    upper_q: FloatArray
    lower_p: FloatArray
    """Entry j is what P puts on all but the first j outcomes; `lower_q` the same for Q."""
    lower_q: FloatArray

    def tails(self, levels: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return (P(L > level), Q(L > level)) for each level."""
        certain = int(np.count_nonzero(self.losses == math.inf))  # above every level, even inf
        above = np.maximum(np.searchsorted(-self.losses, -levels, side="left"), certain)
        return self.upper_p[above], self.upper_q[above]

    def support(self) -> tuple[float, float]:
        """Return the smallest and largest finite loss."""
        finite = self.losses[np.isfinite(self.losses)]
        return (float(finite[-1]), float(finite[0])) if len(finite) else (0.0, 0.0)

    @property
    def symmetric(self) -> bool:
        """Whether exchanging the two laws gives the same table."""
        return all(first == last[::-1] for first, last in zip(self.masses, self.masses[::-1], strict=True))

    @property
    def _faint(self) -> bool:
        """Whether some probability is too small for floats: nothing is then said but by exact ratios."""
        return any(0 < mass < _FAINTEST for pair in self.masses for mass in pair)

    def epsilon(self) -> float:
        """Return the largest |loss|: inf, or the next float above its exact value."""
        (p, q), (last_p, last_q) = self.masses[0], self.masses[-1]
        return math.inf if q == 0 or last_p == 0 else log_above(max(p / q, last_q / last_p))

    def delta(self, level: Fraction) -> float:
        """Return the sum of the positive parts of p - e^level q, in exact arithmetic. Rounds: up."""
        factor = exp_below(min(level, Fraction(_LARGEST_LEVEL)))
        total = Fraction(0)
        for p, q in self.masses:  # by falling ratio: the first that fails is the last looked at
            if p <= factor * q:
                break
            total += p - factor * q
        return upper_float(total)

    def mu(self) -> float:
        """Return the smallest mu; inf if some outcome tells the laws apart for certain.

        Theorem: the trade-off curve is a polygon, and a Gaussian curve is convex, so it is below
        the polygon iff it is below its corners: mu >= quantile(1 - false positive rate) -
        quantile(false negative rate) at each (Dong, Roth, Su 2022, Definition 2.6). Rounds: up.
        """
        if not np.isfinite(self.losses).all() or self._faint:
            return math.inf
        inner = slice(1, -1)  # to reject nothing, or everything, says nothing
        without = _quantile(self.lower_q[inner], self.upper_q[inner])
        with_person = _quantile(self.lower_p[inner], self.upper_p[inner])
        # A quantile is off by 1e-14 of 1 or of itself, and by an ulp of its chance times the Mills ratio.
        slack = 2.0**-45 * (2.0 + np.abs(without) + np.abs(with_person))
        return round_up(float((without - with_person + slack).max(initial=0.0)))

    def cumulant(self, excess: FloatArray) -> FloatArray:
        """Return ln E_P[e^(t L)] for each t > 0: the Renyi divergence of order 1 + t, times t."""
        if self.losses[0] == math.inf or self._faint:
            return np.full_like(excess, math.inf)
        p = np.array([float(p) for p, _ in self.masses])
        losses, p = self.losses[p > 0], p[p > 0]
        divergence = float(p @ exp_excess(-losses))  # E[L] = E[L + e^-L - 1], no term negative
        result = np.empty_like(excess)
        for index, t in enumerate(excess.tolist()):
            if t * losses[0] < 600:  # no term is negative, so that nothing cancels
                result[index] = math.log1p(float(p @ exp_excess(t * losses)) + t * divergence)
            else:
                tilted = t * losses[0] + math.log(float(p @ np.exp(t * (losses - losses[0]))))
                result[index] = max(0.0, tilted) + t * losses[0] * 2.0**-48
        return result

    def rho(self) -> Cost:
        """Return the smallest rho with divergence <= order * rho at every order, in this direction.

        Theorem: K(a) = (a-1) D_a is convex and K(0) <= 0 = K(1), so between two orders K lies below
        its chord A(a-1) - B a with A, B >= 0, whose quotient by a(a-1) is at most (sqrt(A) -
        sqrt(B))^2, or its value at an end if that point is outside; and D_a <= epsilon settles all
        large orders. Intervals are split until the bound is within 1e-10 of a value attained (within
        1e-6 where the loss is almost normal, so that all orders ask for almost the same).
        Rounds: up.
        """
        top = float(self.losses[0])
        if top == 0 or math.isinf(top) or self._faint:
            return Fraction(0) if top == 0 else math.inf
        best = 0.0
        # Orders minus 1: from almost the order 1, whose limit the first interval holds, to epsilon/rho.
        least = float(self.cumulant(np.array([2.0**-40]))[0]) * 2.0**40
        last = max(2.0, 2 * top / least)
        ends = np.concatenate([[0.0, 2.0**-40], np.geomspace(2.0**-20, last, 64)])
        values = np.concatenate([[0.0], self.cumulant(ends[1:])])
        left, right, at_left, at_right = ends[:-1], ends[1:], values[:-1], values[1:]
        settled = top / (1 + last)
        while len(left) and len(left) < _MOST_INTERVALS:
            best = max(best, float((at_right / (right * (1 + right))).max()))
            bounds = _chord_bound(left, right, at_left, at_right)
            open_ = (bounds > best * (1 + 1e-10)) & (right - left > 2.0**-40 * right) & (right > 2.0**-40)
            settled = max(settled, float(bounds[~open_].max(initial=0.0)))
            left, right, at_left, at_right = left[open_], right[open_], at_left[open_], at_right[open_]
            middle = np.where(left > 0, np.sqrt(np.maximum(left, 2.0**-45) * right), right / 2)
            at_middle = self.cumulant(middle)
            left, right = np.concatenate([left, middle]), np.concatenate([middle, right])
            at_left, at_right = np.concatenate([at_left, at_middle]), np.concatenate([at_middle, at_right])
        return round_up(
            max(best, settled, float(_chord_bound(left, right, at_left, at_right).max(initial=0.0)))
        )


def _chord_bound(
    left: FloatArray, right: FloatArray, at_left: FloatArray, at_right: FloatArray
) -> FloatArray:
    """Bound K(a)/(a(a-1)) between the orders 1+left and 1+right, K being below its chord."""
    slope = (at_right - at_left) / (right - left)
    b = np.maximum(0.0, slope * right - at_right)  # minus the chord at order 1
    a = np.maximum(0.0, slope + b)
    inner = (np.sqrt(a) - np.sqrt(b)) ** 2
    with np.errstate(divide="ignore", invalid="ignore"):
        peak = np.where(b > 0, 1 / (np.sqrt(a / b) - 1), 0.0)  # the order, minus 1, of that maximum
        at_ends = np.maximum(
            np.where(left > 0, at_left / (left * (1 + left)), slope), at_right / (right * (1 + right))
        )
    bound: FloatArray = np.where((peak >= left) & (peak <= right), np.maximum(inner, at_ends), at_ends)
    return np.where(np.isnan(bound), math.inf, bound)


def _quantile(below: FloatArray, above: FloatArray) -> FloatArray:
    """Return the normal quantile of `below` = 1 - `above`, from the smaller of the two, which is not zero."""
    return np.where(below <= above, -1.0, 1.0) * tail_quantile(np.log(np.minimum(below, above)))


@lru_cache(maxsize=64)
def pair_table(with_person: _Row, without: _Row) -> PairTable:
    """Return the sorted table of two laws given outcome by outcome."""
    merged: dict[Fraction, tuple[Fraction, Fraction]] = {}
    for p, q in zip(with_person, without, strict=True):
        if p or q:
            share = p / (p + q)  # rises with p/q, and is finite
            known_p, known_q = merged.get(share, (Fraction(0), Fraction(0)))
            merged[share] = known_p + p, known_q + q
    masses = tuple(merged[share] for share in sorted(merged, reverse=True))
    upper_p = list(accumulate((p for p, _ in masses), initial=Fraction(0)))
    upper_q = list(accumulate((q for _, q in masses), initial=Fraction(0)))
    return PairTable(
        masses=masses,
        losses=_freeze(_losses(masses)),
        upper_p=_freeze([float(mass) for mass in upper_p]),
        upper_q=_freeze([float(mass) for mass in upper_q]),
        lower_p=_freeze([float(1 - mass) for mass in upper_p]),
        lower_q=_freeze([float(1 - mass) for mass in upper_q]),
    )


def _losses(masses: tuple[tuple[Fraction, Fraction], ...]) -> list[float]:
    """Return ln(p/q) of outcomes in falling order, rounded up by at most a few floats."""
    if len(masses) <= _FEW:
        return [_loss(p, q) for p, q in masses]
    first, *middle, last = masses
    top = _loss(*first)
    return [top, *(min(top, _quick_loss(p, q)) for p, q in middle), _loss(*last)]


def _quick_loss(p: Fraction, q: Fraction) -> float:
    """Return ln(p/q), rounded up by a few floats; to the next where that is hard in floats."""
    ratio, change = p / q, (p - q) / q
    if not Fraction(1, 10**300) < ratio < 10**300:
        return _loss(p, q)
    value = math.log1p(change) if abs(change) < Fraction(1, 2) else math.log(ratio)
    return value + 4 * math.ulp(value)


def _loss(p: Fraction, q: Fraction) -> float:
    """Return ln(p/q), rounded up; to the next float if it is positive."""
    if p == 0 or q == 0:
        return math.inf if p else -math.inf
    if p >= q:
        return log_above(p / q)
    return math.nextafter(-log_above(q / p), math.inf)


def _freeze(values: list[float]) -> FloatArray:
    array = np.array(values)
    array.flags.writeable = False
    return array
