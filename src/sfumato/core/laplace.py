"""The Laplace mechanism: discrete Laplace noise on integers, or on real values through a grid."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from sfumato.core.additive import AdditiveNoise, StepSensitivity
from sfumato.core.adjacency import Sensitivity
from sfumato.core.arguments import FloatArray, Number, budget_quantity, positive, upper_float
from sfumato.core.events import DiscreteLaplace, Event, Pure
from sfumato.core.grid import Grid
from sfumato.core.noise import discrete_laplace
from sfumato.core.noise_law import NoiseLaw
from sfumato.core.search import least_whole, round_up

__all__ = ["LaplaceMechanism", "LaplaceNoise", "laplace_masses", "laplace_tails"]

_ROOT_TWO = math.sqrt(2)
_CLOSE = 1e-4  # scales this close, relatively, count as one: the larger


@dataclass(frozen=True, slots=True)
class LaplaceNoise(NoiseLaw):
    """P(X = x) proportional to exp(-|x| / scale) over all integers; the parameter is the scale.

    >>> LaplaceNoise(Fraction(2)).half_width(0.95), round(LaplaceNoise(Fraction(2)).tail(10), 6)
    (6, 0.004194)
    """

    name: ClassVar[str] = "laplace"
    pure: ClassVar[bool] = True
    euclidean: ClassVar[bool] = False
    fourth: ClassVar[float] = 5.0

    @property
    def variance(self) -> Fraction:
        """Twice the squared scale."""
        return 2 * self.parameter**2

    @property
    def exact_variance(self) -> float:
        """1 / (2 sinh^2(1/(2 scale)))."""
        return 0.5 / math.sinh(1 / (2 * float(self.parameter))) ** 2

    def mass(self, distance: int) -> float:
        rate = 1 / self.parameter
        exponent = min(abs(distance) * rate, Fraction(1000))  # e^-1000 is 0.0
        return math.tanh(float(rate / 2)) * math.exp(-float(exponent))

    def loss(self, to_x: int, to_y: int) -> Fraction:
        return (abs(to_y) - abs(to_x)) / self.parameter

    def tail(self, gap: int) -> float:
        """Return e^(-gap/scale) / (1 + e^(-1/scale)). Rounds: up."""
        rate = 1 / self.parameter
        # the exponent is exact until it becomes a float: one relative rounding of at most 2^-53 of 745
        exponent = float(min(gap * rate, Fraction(800)))
        return min(1.0, round_up(math.exp(-exponent) / (1 + math.exp(-upper_float(rate)))))

    def least_half_width(self, miss: Fraction) -> int:
        """P(|X| > w) = 2 exp(-(w+1)/t) / (1 + exp(-1/t)), so w + 1 >= t ln(2 / (miss (1 + exp(-1/t))))."""
        scale = self.parameter
        digits = Context(prec=60 + len(str(math.ceil(scale))), rounding=ROUND_CEILING)
        ratio = digits.divide(Decimal(scale.denominator), Decimal(scale.numerator))
        odds = digits.divide(Decimal(2 * miss.denominator), Decimal(miss.numerator))
        odds = digits.divide(odds, digits.add(1, digits.exp(-ratio)))
        return max(0, math.ceil(digits.divide(digits.ln(odds), ratio)) - 1)

    def sum_half_width(self, times: int, miss: Fraction) -> int:
        """Theorem: let X be the sum of k discrete Laplace noises, Y that of k continuous ones of the same
        scale t. For whole d >= 1, P(|X| >= d) <= P(|Y| >= d - 1/2).
        Proof: a discrete Laplace noise is the difference of the whole parts of two exponential variables,
        whose fractional parts are independent of them; so Y = X + V with V symmetric and independent of X.
        X is symmetric and unimodal, for its terms are log-concave. Given V = v, let n be v rounded:
        |X + v| >= d - 1/2 has at least the chance P(X >= d - n) + P(X >= d + n), which is at least
        2 P(X >= d): each of the n masses that the one gains is nearer to zero than one that the other loses.
        And P(Y > x) = sum over m = 1..k of C(2k - m - 1, k - 1) 2^(m - 2k) P(Gamma(m) > x / t): of two
        Poisson processes that race to k arrivals, the loser has m to go, which take Gamma(m).
        """
        if times == 1:
            return self.least_half_width(miss)
        scale, chance = float(self.parameter), float(miss) * (1 - 1e-6)
        tails, logs = _race(times)

        def covers(width: int) -> bool:
            z = (width + 0.5) / scale
            poisson = np.exp(np.arange(times) * math.log(z) - z - logs[:times])
            return bool(2 * float(poisson @ tails) <= chance)

        return least_whole(covers)

    def draw(self, size: int | None = None) -> Any:
        return discrete_laplace(self.parameter, size)

    @staticmethod
    def standard_tail(z: FloatArray) -> FloatArray:
        """Return e^(-z sqrt(2))."""
        return np.exp(-_ROOT_TWO * z)

    @staticmethod
    def standard_quantile(chance: float) -> float:
        """Return -ln(chance) / sqrt(2)."""
        return -math.log(chance) / _ROOT_TWO

    @classmethod
    def sum_tail(
        cls, laws: Sequence[NoiseLaw], sizes: Sequence[FloatArray], gap: FloatArray
    ) -> FloatArray | None:
        """Return the tail of one or two. Theorem: for two of scales a != b it is
        (a^2 exp(-d/a) - b^2 exp(-d/b)) / (a^2 - b^2)."""
        scales = [size * float(law.parameter) for law, size in zip(laws, sizes, strict=True)]
        match scales:
            case [scale]:
                with np.errstate(divide="ignore", invalid="ignore"):
                    return np.where(scale > 0, np.exp(-gap / scale), (gap <= 0) * 1.0)
            case [first, second]:
                return _two(gap, np.maximum(first, second), np.minimum(first, second))
        return None

    def event(self, shift: int) -> Event:
        return DiscreteLaplace(scale=self.parameter, sensitivity=shift)

    def joint_event(self, *, l1: int, l2_squared: int) -> Event:
        """Return the event of one shift by all of them, which costs no less (`analysis.pricing`)."""
        return self.event(l1)

    def choice(self, shift: int, part: Fraction) -> Fraction:
        """Return that part of epsilon."""
        return part * shift / self.parameter

    def widened(self, groups: int) -> LaplaceNoise:
        """Return the same noise: one shift by `groups` costs no less than any division of it."""
        return self


@dataclass(frozen=True, slots=True, init=False)
class LaplaceMechanism(AdditiveNoise):
    """Add noise X with P(X = x) proportional to exp(-|x| / scale), x a whole number of steps.

    `scale` and `sensitivity` are in the units of the value. A number as sensitivity is how
    far one person can move one answer; a `Sensitivity` how far a vector of them.

    Theorem: epsilon = sensitivity / scale, with the sensitivity in whole steps (Dwork,
    McSherry, Nissim and Smith 2006; on the integers: Ghosh, Roughgarden and Sundararajan
    2009), for | |o - x| - |o - y| | <= |x - y| at every output o.

    >>> count = LaplaceMechanism.from_epsilon(0.5)
    >>> count.scale, count.event.epsilon()
    (Fraction(2, 1), Fraction(1, 2))
    >>> count.error(0.95)  # the noise is at most 6 in 95 of 100 cases
    6
    """

    scale: Fraction
    sensitivity: Fraction | Sensitivity
    grid: Grid | None

    def __init__(
        self, scale: Number, *, sensitivity: Number | Sensitivity = 1, grid: Grid | None = None
    ) -> None:
        object.__setattr__(self, "scale", positive(scale, "scale"))
        self._declare(sensitivity, grid)

    @classmethod
    def from_epsilon(
        cls, epsilon: Number, *, sensitivity: Number | Sensitivity = 1, grid: Grid | None = None
    ) -> LaplaceMechanism:
        """Return the least noise for which all answers together cost exactly `epsilon`."""
        loss = budget_quantity(epsilon, "epsilon")
        steps = StepSensitivity.of(sensitivity, grid)
        return cls(steps.l1 / loss * steps.step, sensitivity=sensitivity, grid=grid)

    def _joint_event(self, steps: StepSensitivity) -> Event:
        return Pure(loss=steps.l1 / self.law.parameter)

    @property
    def law(self) -> LaplaceNoise:
        """The noise, in steps."""
        return LaplaceNoise(self.scale if self.grid is None else self.scale / self.grid.step)


def laplace_masses(x: npt.NDArray[np.int64], scale: float) -> FloatArray:
    """Return P(noise = x) of the discrete Laplace law."""
    return np.exp(-np.abs(x) / scale) * math.tanh(1 / (2 * scale))


def laplace_tails(least: npt.NDArray[np.int64], scale: float, *, above: bool) -> FloatArray:
    """Return P(noise >= least), or P(noise < least), of discrete Laplace noise; both accurate relatively."""
    tail = np.exp(-np.maximum(least, 1 - least) / scale) / (1 + math.exp(-1 / scale))
    return np.where((least > 0) == above, tail, 1 - tail)


def _two(gap: FloatArray, large: FloatArray, small: FloatArray) -> FloatArray:
    near = small > large * (1 - _CLOSE)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        ratio = np.where(near, 0.0, small / large) ** 2
        inner = np.where(small > 0, np.exp(-gap / small), 0.0)
        apart = (np.exp(-gap / large) - ratio * inner) / (1 - ratio)
        equal = (1 + gap / (2 * large)) * np.exp(-gap / large)
        chance: FloatArray = np.where(large > 0, np.where(near, equal, apart), (gap <= 0) * 1.0)
    return np.minimum(chance, 1.0)


@lru_cache(maxsize=64)
def _race(times: int) -> tuple[FloatArray, FloatArray]:
    """Return P(the loser has more than j arrivals to go) for j = 0..times - 1, and ln of factorials."""
    logs = np.concatenate(([0.0], np.cumsum(np.log(np.arange(1.0, 2 * times)))))
    m = np.arange(1, times + 1)
    chances = logs[2 * times - m - 1] - logs[times - 1] - logs[times - m] - (2 * times - m) * math.log(2)
    return np.cumsum(np.exp(chances)[::-1])[::-1], logs
