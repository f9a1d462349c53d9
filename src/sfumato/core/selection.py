"""Selecting one of many candidates: exponential mechanism, permute-and-flip, report-noisy-max.

Every candidate has a utility, computed from private data, that one person can change by
at most `sensitivity`. All decisions are exact: utilities are integers or rationals (a
float stands for its binary value), coins have exactly the bias exp(-x).

Utilities must be finite; a `Grid` makes every value so. The refusal of a list that is not depends on the
list, and is meant for the programmer. A mechanism is monotone if one more person can only raise all
utilities, or only lower them: counts are. Half the noise is then enough.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.core.arguments import FloatArray, Number, budget_quantity, count, exact, positive, upper_float
from sfumato.core.coins import bernoulli_exp, bernoulli_exp_multiples
from sfumato.core.events import Event, Pure
from sfumato.core.events.claims import BoundedRange
from sfumato.core.exponential import log_above
from sfumato.core.laplace import laplace_masses, laplace_tails
from sfumato.core.mechanism import confidence
from sfumato.core.noise import discrete_laplace
from sfumato.core.search import least_whole
from sfumato.core.uniform import uniform_below
from sfumato.errors import InvalidArgument, Unsupported

__all__ = ["ExponentialMechanism", "PermuteAndFlip", "ReportNoisyMax"]

_Utilities = Sequence[Number] | npt.NDArray[Any]

_MOST_TERMS = 10**7
_AT_ONCE = 1 << 20  # coins
_FAR = 10**300  # an exponent beyond which all are alike
_WIDEST = 10**100  # noise beyond which no utility is left
_REACH = 45  # in scales: what lies beyond has a probability below 1e-19


@dataclass(frozen=True, slots=True, init=False)
class _Selection:
    """What the three mechanisms share: their parameters and the reading of utilities."""

    epsilon: Fraction
    sensitivity: Fraction
    monotone: bool

    def __init__(self, epsilon: Number, *, sensitivity: Number = 1, monotone: bool = False) -> None:
        object.__setattr__(self, "epsilon", budget_quantity(epsilon, "epsilon"))
        object.__setattr__(self, "sensitivity", positive(sensitivity, "sensitivity"))
        if not isinstance(monotone, bool):
            raise InvalidArgument("monotone must be True or False", place="monotone")
        object.__setattr__(self, "monotone", monotone)

    @property
    def event(self) -> Event:
        """What one selection costs."""
        return Pure(loss=self.epsilon)


class _ByGap(_Selection):
    """A candidate's chance is exp(-rate * (best - utility)) times a share that depends on all of them."""

    __slots__ = ()

    def pmf(self, output: int, utilities: _Utilities) -> float:
        """Return the probability of a candidate, accurate to 1e-12."""
        exponents = self._floats(utilities)
        i = _index(output, len(exponents))
        return math.exp(-exponents[i]) * self._share(exponents, i)

    def privacy_loss(self, output: int, x: _Utilities, y: _Utilities) -> float:
        """Return ln(pmf(output, x) / pmf(output, y)), accurate to 1e-12."""
        with_x, with_y = self._floats(x), self._floats(y)
        i = _index(output, min(len(with_x), len(with_y)))
        return float(with_y[i] - with_x[i]) + math.log(self._share(with_x, i) / self._share(with_y, i))

    def error(self, level: float = 0.95, *, candidates: int) -> float:
        """Return how far below the best the selected utility may be, with probability `level` at least.

        Theorem: a candidate g below the best is selected with probability exp(-rate * g) at most; sum over
        the rivals. Rounds: up.
        """
        miss, rivals = 1 - confidence(level), count(candidates, "candidates") - 1
        if rivals <= miss:
            return 0.0
        return upper_float(Fraction(log_above(rivals / miss)) / self._rate)

    @property
    def _rate(self) -> Fraction:
        """How much of the exponent a unit of utility is worth."""
        return self.epsilon / (self.sensitivity if self.monotone else 2 * self.sensitivity)

    def _floats(self, utilities: _Utilities) -> FloatArray:
        """Return the exponents as floats, for formulas."""
        return np.array([float(min(x, _FAR)) for x in self._exponents(utilities)])

    def _exponents(self, utilities: _Utilities) -> npt.NDArray[Any]:
        """Return rate * (best - utility) for every candidate: exact, and zero for the best."""
        values, where = _distinct(utilities)
        best = max(values)
        return np.array([self._rate * (best - value) for value in values], dtype=object)[where]

    @abstractmethod
    def _share(self, exponents: FloatArray, i: int) -> float: ...


class ExponentialMechanism(_ByGap):
    """Select candidate i with probability proportional to exp(rate * utility_i).

    The rate is epsilon / (2 * sensitivity), or epsilon / sensitivity if monotone.

    Theorem: epsilon-DP (McSherry and Talwar 2007), and the loss has range epsilon (Durfee and
    Rogers 2019): ln P(i)/Q(i) is rate * (u_i - v_i) plus a constant, and u_i - v_i lies in an
    interval of twice the sensitivity; of once the sensitivity if monotone, whose rate is double.

    >>> ExponentialMechanism(1).pmf(0, [7, 7])
    0.5
    """

    __slots__ = ()

    @property
    def event(self) -> Event:
        """What one selection costs: a bounded range, a quarter of the rho of epsilon alone."""
        return BoundedRange(loss=self.epsilon)

    def release(self, utilities: _Utilities) -> int:
        """Return the index of the selected candidate.

        Theorem: a uniform candidate, kept with probability exp(-rate * (best - utility)), has
        the stated law; the best is always kept, so it takes at most as many trials as there
        are candidates, on average.
        """
        exponents = self._exponents(utilities)
        while True:
            trials = uniform_below(len(exponents), size=min(len(exponents), 4096))
            kept = np.flatnonzero(bernoulli_exp(exponents[trials]))
            if len(kept):
                return int(trials[kept[0]])

    def release_each(self, utilities: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Return the index of one selected candidate per row of integer utilities.

        Theorem: as `release`, with the same law for each row, and rows independent of one another:
        the first kept of these uniform candidates is the first kept of them all.
        """
        rows, width = _table(utilities)
        best = utilities.max(axis=1) if rows else utilities[:, 0]
        chosen = np.zeros(rows, dtype=np.int64)
        pending, tries = np.arange(rows), 16
        while len(pending):
            tries = min(tries * 2, max(16, _AT_ONCE // len(pending)))
            waiting = []
            for part in np.array_split(pending, -(-len(pending) * tries // _AT_ONCE)):
                trials = uniform_below(width, size=len(part) * tries).reshape(len(part), tries)
                gaps = best[part][:, None] - utilities[part[:, None], trials]
                kept = bernoulli_exp_multiples(self._rate, gaps)
                done = kept.any(axis=1)
                chosen[part[done]] = trials[done, kept[done].argmax(axis=1)]
                waiting.append(part[~done])
            pending = np.concatenate(waiting)
        return chosen

    def _share(self, exponents: FloatArray, i: int) -> float:
        return 1 / math.fsum(np.exp(-exponents))


class PermuteAndFlip(_ByGap):
    """Go through the candidates in random order; take each with probability exp(-rate * (best - utility)).

    Theorem: epsilon-DP, and never worse than the exponential mechanism: every gap is exceeded
    with at most its probability (McKenna and Sheldon 2020).

    >>> round(PermuteAndFlip(1).pmf(0, [1, 0]), 6), round(ExponentialMechanism(1).pmf(0, [1, 0]), 6)
    (0.696735, 0.622459)
    """

    __slots__ = ()

    def release(self, utilities: _Utilities) -> int:
        """Return the index of the selected candidate.

        Theorem: the coins do not depend on the order, so all may be tossed at once; the first
        head in a random order is then equally likely to be any of the heads. The best always
        shows heads, so there is one.
        """
        heads = np.flatnonzero(bernoulli_exp(self._exponents(utilities)))
        return int(heads[uniform_below(len(heads))])

    def release_each(self, utilities: npt.NDArray[Any]) -> npt.NDArray[np.int64]:
        """Return the index of one selected candidate per row of integer utilities: `release` for each."""
        rows, width = _table(utilities)
        chosen = np.zeros(rows, dtype=np.int64)
        for part in np.array_split(np.arange(rows), max(1, -(-rows * width // _AT_ONCE))):
            if not len(part):
                continue
            gaps = utilities[part].max(axis=1)[:, None] - utilities[part]
            heads = bernoulli_exp_multiples(self._rate, gaps)
            numbers = np.cumsum(heads, axis=1)
            wanted = np.zeros(len(part), dtype=np.int64)
            for many in np.unique(numbers[:, -1]).tolist():
                alike = np.flatnonzero(numbers[:, -1] == many)
                wanted[alike] = 1 + uniform_below(many, size=len(alike))
            chosen[part] = (numbers == wanted[:, None]).argmax(axis=1)
        return chosen

    def _share(self, exponents: FloatArray, i: int) -> float:
        """Return the mean of 1 / (1 + other heads), of which one is chosen.

        Theorem: it is the integral over t in [0, 1] of prod (1 - p_j + p_j t): a polynomial, which
        Gauss-Legendre quadrature with half as many nodes as candidates integrates exactly.
        """
        if len(exponents) > 2000:
            raise Unsupported("the law of this selection is computed for at most 2000 candidates")
        nodes, weights = np.polynomial.legendre.leggauss(len(exponents) // 2 + 1)
        tails = -np.expm1(-np.delete(exponents, i))  # 1 - p_j, which is exactly zero for the best
        t = (nodes + 1) / 2
        return float(weights @ np.prod(1 - np.outer(1 - t, 1 - tails), axis=1)) / 2


@dataclass(frozen=True, slots=True, init=False)
class ReportNoisyMax(_Selection):
    """Add discrete Laplace noise to every utility, report the index of the largest; ties to the lowest index.

    Noise is a whole number of `step`s (default: the sensitivity), with scale shift / epsilon
    in steps, where shift = ceil(2 * sensitivity / step), or ceil(sensitivity / step) if monotone.

    Theorem: epsilon-DP. Fix the others' noise; candidate i wins exactly when its own noise is
    at least some r, whatever the rule for ties. For a neighbour the best rival gains at most
    2 * sensitivity on i (sensitivity, if monotone), so i wins there when its noise is at least
    r + shift; and P(X >= r) <= exp(shift / scale) * P(X >= r + shift) term by term (Dwork and
    Roth 2014, Theorem 3.9; the shift is rounded up to whole steps, as the noise is).

    >>> choice = ReportNoisyMax(1, monotone=True)  # counts: one person only raises them
    >>> choice.release([310, 295, 40]) in {0, 1, 2}, choice.event.epsilon()
    (True, Fraction(1, 1))
    """

    step: Fraction

    def __init__(
        self, epsilon: Number, *, sensitivity: Number = 1, monotone: bool = False, step: Number | None = None
    ) -> None:
        _Selection.__init__(self, epsilon, sensitivity=sensitivity, monotone=monotone)
        object.__setattr__(self, "step", self.sensitivity if step is None else positive(step, "step"))
        if self.scale > _WIDEST:
            raise InvalidArgument(
                "the noise would be wider than 1e100 steps",
                place="epsilon" if step is None else "step",
                hints=("choose a larger epsilon or a larger step",),
            )

    @property
    def scale(self) -> Fraction:
        """The scale of the noise, in steps."""
        change = self.sensitivity if self.monotone else 2 * self.sensitivity
        return math.ceil(change / self.step) / self.epsilon

    def release(self, utilities: _Utilities) -> int:
        """Return the index of the candidate that is largest after noise."""
        values, where = _distinct(utilities)
        steps = [value / self.step for value in values]
        common = math.lcm(*(value.denominator for value in steps))  # then every comparison is of integers
        whole = np.array([int(value * common) for value in steps], dtype=object)[where]
        noise = discrete_laplace(self.scale, size=len(whole)).astype(object)
        return int(np.argmax(whole + common * noise))

    def pmf(self, output: int, utilities: _Utilities) -> float:
        """Return the probability of a candidate, accurate to 1e-12, by summing over its noise."""
        values, where = _distinct(utilities)
        mine = values[where[_index(output, len(where))]]
        gaps = [(mine - value) / self.step for value in values]
        furthest = max(0, math.ceil(-min(gaps)))
        reach = math.ceil(_REACH * self.scale) + 1
        if (furthest + 2 * reach) * len(where) > _MOST_TERMS:
            hint = "use fewer candidates, a larger step or a larger epsilon"
            raise Unsupported("the law of this selection has too many terms to sum", hints=(hint,))
        noise = np.arange(-reach, furthest + reach + 1)
        scale = float(self.scale)
        chances = laplace_masses(noise, scale)
        for j, kind in enumerate(where):
            if j != output:
                # An earlier candidate must stay strictly below, a later one may tie.
                most = math.ceil(gaps[kind]) - 1 if j < output else math.floor(gaps[kind])
                chances = chances * laplace_tails(noise + most + 1, scale, above=False)
        return math.fsum(chances)

    def privacy_loss(self, output: int, x: _Utilities, y: _Utilities) -> float:
        """Return ln(pmf(output, x) / pmf(output, y))."""
        with_x, with_y = self.pmf(output, x), self.pmf(output, y)
        if with_x == 0 or with_y == 0:
            raise Unsupported("this candidate's probability is below the smallest float")
        return math.log(with_x / with_y)

    def error(self, level: float = 0.95, *, candidates: int) -> float:
        """Return how far below the best the selected utility may be, with probability `level` at least.

        Theorem: a candidate must gain its gap as the difference of two noises, at least k steps
        with probability c^2 a^k ((k+1)/(1-a) + a/(1-a)^2 + 2a^2/((1-a)(1-a^2))), where
        a = exp(-1/scale) and c = (1-a)/(1+a); sum over the rivals. Rounds: up.
        """
        miss, rivals = float(1 - confidence(level)), count(candidates, "candidates") - 1
        scale = float(self.scale)
        a, b = math.exp(-1 / scale), -math.expm1(-1 / scale)

        def exceeds(k: int) -> float:
            rest = (k + 1) / b + a / b**2 + 2 * a**2 / (b**2 * (1 + a))
            return rivals * (b / (1 + a)) ** 2 * math.exp(-k / scale) * rest

        return upper_float(least_whole(lambda k: exceeds(k + 1) <= miss * (1 - 1e-12)) * self.step)


def _distinct(utilities: _Utilities) -> tuple[list[Fraction], npt.NDArray[np.intp]]:
    """Return the distinct utilities as exact numbers, and for every candidate which of them it has."""
    if isinstance(utilities, (str, bytes)) or not isinstance(utilities, (Sequence, np.ndarray)):
        raise InvalidArgument("utilities must be a list or an array of numbers", place="utilities")
    if not len(utilities) or (isinstance(utilities, np.ndarray) and utilities.ndim != 1):
        raise InvalidArgument(
            "utilities must be a list of at least one number",
            place="utilities",
            hints=("the candidates must be public: an empty set is no choice",),
        )
    if isinstance(utilities, np.ndarray) and utilities.dtype.kind in "iuf" and utilities.dtype.itemsize <= 8:
        if not np.isfinite(utilities).all():
            raise _not_finite()
        values, where = np.unique(utilities, return_inverse=True)
        return [exact(value.item(), "utilities") for value in values], where
    try:
        each = [exact(value, "utilities") for value in utilities]
    except InvalidArgument:
        raise _not_finite() from None  # without the value: it is private
    return each, np.arange(len(each))


def _not_finite() -> InvalidArgument:
    hint = "put private values through a Grid first: it gives every value a finite place"
    return InvalidArgument("every utility must be a finite number", place="utilities", hints=(hint,))


def _table(utilities: npt.NDArray[Any]) -> tuple[int, int]:
    """Return how many rows and candidates a table of integer utilities has."""
    if not isinstance(utilities, np.ndarray) or utilities.ndim != 2 or utilities.dtype.kind not in "iO":
        raise InvalidArgument("utilities must be a table of integers, a row per choice", place="utilities")
    rows, width = utilities.shape
    return rows, count(width, "candidates")


def _index(output: int, size: int) -> int:
    if count(output, "output", least=0) >= size:
        raise InvalidArgument(f"output must be the index of one of {size} candidates", place="output")
    return int(output)
