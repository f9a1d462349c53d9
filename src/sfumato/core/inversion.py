"""The hockey-stick divergence of a sum of many losses, by inverting its transform.

With K(z) = ln E[e^(z L)] of the sum, any theta > 0 and z = theta + i t,

    delta(v) = E[(1 - e^(v-L))_+] = (1/2 pi) integral of e^(K(z) - z v) / (z (1 + z)) dt.

A sum over t = n d in place of the integral has no unknown error: by Poisson's summation formula it
is the sum of e^(theta k W) delta(v + k W) over all whole k, with W = 2 pi / d. No term is negative, so it is
an upper bound, and Chernoff's inequality bounds the terms other than k = 0.

Nothing is put on a grid of losses, so a billion losses of 1e-9 are as easy as ten losses of 1. Upper bounds
include a small Gaussian loss besides: composing with one more mechanism only costs more, and its transform
falls so fast that what lies beyond the last t is nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from sfumato.core.arguments import FloatArray
from sfumato.core.atoms import Atoms
from sfumato.core.search import chance_of_any, smallest

__all__ = ["Inversion", "LossSum", "log_least"]

_Complex = npt.NDArray[np.complex128]

_ULP = 2.0**-53
_DOUBLINGS = 40  # of a tilt, when looking for the right one
_SPREAD = 3e-5  # what the added Gaussian loss may add to epsilon, relatively
_CUT = 1e-4  # what the end of the sum over t may take from a lower bound on epsilon, relatively
_BEND = 0.03  # and from ln(delta)
_QUIET = 32.0  # -ln of the transform where the sum over t ends
_FAR = 18.0  # -ln of the other terms of Poisson's sum, relative to delta
_MOST = 2**16  # the most values of t
_FAINT = 1e-24  # tilted weights below this are bounded, not summed
_HIGHEST = 600.0  # exponents above this overflow
_DOUBT = 2.0**-42  # what a mass is off by at most, nearly always: a constant keeps epsilon monotone
_CHUNK = 256  # atoms that are summed in one product of matrices


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LossSum:
    """Independent losses: each law of `parts` as often as its count says, and one Gaussian loss.

    The Gaussian loss is N(`variance`/2, `variance`) under P: that of a mechanism with mu^2 = variance.
    Its saddle points show where to look; of its numbers only `infinite` carries a guarantee.
    """

    parts: Sequence[tuple[Atoms, int]]
    variance: float

    def cumulant(self, theta: float) -> tuple[float, float, float]:
        """Return K(theta) and its first two derivatives."""
        total = self.variance * np.array([theta * (1.0 + theta) / 2.0, theta + 0.5, 1.0])
        for law, count in self.parts:
            value, weights = law.tilted(theta)
            mean = float(weights @ law.losses)
            total += count * np.array([value, mean, float(weights @ np.square(law.losses - mean))])
        return float(total[0]), float(total[1]), float(total[2])

    def saddle(self, theta: float) -> tuple[float, float]:
        """Return the v whose saddle point is theta, and about ln delta(v)."""
        value, mean, variance = self.cumulant(theta)
        place = mean - 1.0 / theta - 1.0 / (1.0 + theta)
        bend = variance + 1.0 / theta**2 + 1.0 / (1.0 + theta) ** 2
        height = value - theta * place - math.log(theta) - math.log1p(theta)
        return place, height - math.log(2.0 * math.pi * bend) / 2.0

    def tilt_at_delta(self, delta: float) -> float:
        """Return the theta whose v has about this delta; that of v = 0 where v would be negative."""
        level = math.log(delta)

        def holds(theta: float) -> bool:
            place, height = self.saddle(theta)
            return place >= 0.0 and height <= level

        return self._least_tilt(holds)

    def tilt_at_epsilon(self, epsilon: float) -> float:
        """Return the theta whose v is `epsilon`."""
        return self._least_tilt(lambda theta: self.saddle(theta)[0] >= epsilon)

    @property
    def infinite(self) -> float:
        """The chance that any loss is infinite, rounded up."""
        return chance_of_any((law.infinite, count) for law, count in self.parts)

    def _least_tilt(self, holds: Callable[[float], bool]) -> float:
        """Return about the least theta at which a condition holds, around the scale of the losses' sum."""
        start = 1.0 / math.sqrt(self.cumulant(0.0)[2])
        powers = (start * 2.0**power for power in range(_DOUBLINGS))
        high = next((theta for theta in powers if holds(theta)), start * 2.0**_DOUBLINGS)
        return smallest(holds, min(high, start) / 2.0 ** (_DOUBLINGS if high == start else 1), high, 1e-9)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Inversion:
    """The transform of a sum of losses along Re z = theta, ready to be inverted at any v.

    `terms` are those of the sum over t = n `step`, without e^K(theta) and turned by e^(-i t `centre`).

    Theorem: as the module says. The masses' relative errors are the divergence's (`slack`); `error` is
    what the sum over t may be off by: the atoms' losses, the rounding of each sum (Higham 2002,
    sections 3.1 and 4.2), carried to the power by |(F+e)^n - F^n| <= n e (|F|+e)^(n-1), and what lies
    beyond the last t, where E[e^(zL)] is at most E[e^(theta L)] e^(-variance t^2/2).
    Assumes: exp, log, sin and cos are right to 2 ulp.
    """

    law: LossSum
    theta: float
    base: float
    centre: float
    step: float
    other: float
    terms: _Complex
    error: float
    turning: float
    slack: float

    @classmethod
    def above(cls, law: LossSum, theta: float, slope: float = 0.0) -> Inversion:
        """Prepare upper bounds: with a small Gaussian loss more.

        `slope` is how fast the logarithm of the divergence falls with v, where that is more than theta.
        """
        place, height = law.saddle(theta)
        steep = max(theta, slope)
        wanted = 2.0 * _SPREAD * (max(place, 0.0) + 1.0 / steep) / (1.0 + steep)
        step, other = _step(law, theta, place, height)
        variance = max(law.variance + wanted, 2.0 * _QUIET / (_MOST * step) ** 2)
        number = math.ceil(math.sqrt(2.0 * _QUIET / variance) / step)
        return cls._with(LossSum(parts=law.parts, variance=variance), theta, step, other, number, 0.0)

    @classmethod
    def below(cls, law: LossSum, theta: float, level: float) -> Inversion:
        """Prepare lower bounds near where the logarithm of the divergence, or of what it adds to, is `level`.

        Theorem: the divergence falls with v, so its mean over v to v + 2 `width` is below it. With a
        density that is two boxes convolved, the transform falls by (2 / (width t))^2 more.
        """
        place, height = law.saddle(theta)
        step, other = _step(law, theta, place, height)
        share = math.exp(min(level, height) - law.cumulant(theta)[0] + theta * place)
        # The error of epsilon that is aimed at, and that of ln(delta) which still is its slope times that.
        allowed = min(_CUT * (max(place, 0.0) + 1.0 / theta), _BEND / theta)
        last = 1.0 / (math.pi * share * theta * allowed)
        if law.variance > 0.0:
            last = min(last, math.sqrt(2.0 * _QUIET / law.variance))
        number = min(_MOST, math.ceil(last / step))
        width = 0.0
        if number == _MOST:  # then the mean may cost as much as what lies beyond the last t
            width = (4.0 / (3.0 * math.pi * share * theta)) ** (1.0 / 3.0) / (number * step)
        return cls._with(law, theta, step, other, number, width)

    @classmethod
    def _with(
        cls, law: LossSum, theta: float, step: float, other: float, number: int, width: float
    ) -> Inversion:
        t = step * np.arange(number + 1)
        centre, base = law.variance * (theta + 0.5), law.variance * theta * (1.0 + theta) / 2.0
        powers = (-law.variance * t * t / 2.0).astype(np.complex128)
        bounds, doubts = powers.real.copy(), np.zeros(number + 1)
        slack = 64.0 * _ULP * (1.0 + base)
        for atoms, count in law.parts:
            tilted = _Tilted.of(atoms, theta)
            logs, errors = tilted.logarithms(step, number)
            sizes = np.exp(logs.real) + errors
            powers += count * logs
            bounds += count * np.log(sizes)
            doubts += count * (errors / sizes + 8.0 * _ULP * np.abs(logs))
            base, centre = base + count * tilted.value, centre + count * tilted.mean
            slack += 2.0 * count * tilted.doubt
        z = theta + 1j * t
        kernel = 1.0 / (z * (1.0 + z))
        kernel[0] /= 2.0
        beyond = 1.0 / (math.pi * t[-1])
        if width > 0.0:
            kernel *= np.square(np.expm1(-width * z) / (width * z))
            beyond *= min(1.0, 4.0 / (3.0 * (width * t[-1]) ** 2))
        beyond *= math.exp(-law.variance * t[-1] * t[-1] / 2.0)
        doubts += 8.0 * _ULP * (128.0 + np.abs(powers))
        wrong = np.exp(np.minimum(bounds, 0.0)) * np.minimum(doubts, 2.0) * np.abs(kernel)
        terms: _Complex = (np.exp(powers) * kernel * (step / math.pi)).astype(np.complex128)
        return cls(
            law=law,
            theta=theta,
            base=base,
            centre=centre,
            step=step,
            other=other,
            terms=terms,
            error=float(wrong.sum()) * step / math.pi + float(beyond),
            turning=8.0 * _ULP * float(np.abs(terms) @ t),
            slack=slack,
        )

    def delta_above(self, v: float) -> float:
        """Return an upper bound on delta(v). Rounds: up."""
        found, error, height, slack = self._sum(v)
        if height + slack > _HIGHEST:
            return math.inf
        return (max(found, 0.0) + error) * math.exp(height + slack)

    def delta_below(self, v: float) -> float:
        """Return a lower bound on delta(v). Rounds: down."""
        found, error, height, slack = self._sum(v)
        if height > _HIGHEST:
            return 0.0
        # The other terms of Poisson's sum: below v, where delta <= 1, and above, by Chernoff's inequality.
        window, gap = 2.0 * math.pi / self.step, self.other - self.theta
        left = math.exp(min(_HIGHEST, -height - self.theta * window)) / -math.expm1(-self.theta * window)
        chernoff = self.law.cumulant(self.other)[0] + log_least(self.other) - self.base
        right = math.exp(min(_HIGHEST, chernoff - gap * (v + window))) / -math.expm1(-gap * window)
        return max(0.0, found - error - 1.01 * (left + right)) * math.exp(height - slack)

    def _sum(self, v: float) -> tuple[float, float, float, float]:
        """Return the sum over t, its error, the logarithm of its factor e^(K(theta) - theta v), its error."""
        turns = (self.centre - v) * self.step * np.arange(len(self.terms))
        found = float(np.sum(self.terms.real * np.cos(turns) - self.terms.imag * np.sin(turns)))
        error = self.error + self.turning * (abs(self.centre) + abs(v))
        slack = self.slack + 8.0 * _ULP * (1.0 + abs(self.base) + self.theta * abs(v))
        return found, error, self.base - self.theta * v, slack


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class _Tilted:
    """Atoms tilted by e^(theta L): `weights` of sum one at the losses mean + `gaps`.

    `value` is ln E[e^(theta L)]. The weights are right up to a factor of 1 +- `doubt`, but for
    a mass of `stray`; the losses add up to `drift` per unit of t to the transform's error.
    """

    value: float
    mean: float
    weights: FloatArray
    gaps: FloatArray
    doubt: float
    stray: float
    drift: float

    @classmethod
    def of(cls, atoms: Atoms, theta: float) -> _Tilted:
        """Tilt, and leave out what has next to no weight."""
        value, weights = atoms.tilted(theta)
        seen = weights > _FAINT
        mean = float(weights @ atoms.losses)
        gaps, blurs = atoms.losses[seen] - mean, atoms.blurs[seen]
        raised = np.abs(atoms.logs) + theta * np.abs(atoms.losses) + abs(value)
        doubts = atoms.doubts + 8.0 * _ULP * (16.0 + raised)
        return cls(
            value=value,
            mean=mean,
            weights=weights[seen],
            gaps=gaps,
            doubt=max(_DOUBT, float(np.max(doubts[seen]))),
            stray=2.0 * float(weights[~seen].sum()) + theta * float(weights[seen] @ blurs),
            drift=float(weights[seen] @ (blurs + 8.0 * _ULP * np.abs(gaps))),
        )

    def logarithms(self, step: float, number: int) -> tuple[_Complex, FloatArray]:
        """Return ln E[e^(it (L - mean))] of the tilted law at t = 0 to `number` steps, and its exp's error.

        With t = a + b, e^(itx) - 1 is the sum of those of a and b and of their product: a product
        of two matrices, whose entries are small where t x is.
        """
        inner = max(1, math.isqrt(number))
        outer = number // inner + 1
        excess, size = np.zeros((outer, inner), dtype=np.complex128), np.zeros((outer, inner))
        for at in range(0, len(self.gaps), _CHUNK):
            weights, gaps = self.weights[at : at + _CHUNK], self.gaps[at : at + _CHUNK]
            fine = _turned(np.multiply.outer(step * np.arange(inner), gaps))
            coarse = _turned(np.multiply.outer(step * inner * np.arange(outer), gaps))
            excess += (coarse @ weights)[:, None] + fine @ weights + (coarse * weights) @ fine.T
            near, far = np.abs(fine) @ weights, (np.abs(coarse) @ weights)[:, None]
            size += near + far + 2.0 * np.minimum(near, far)
        t = step * np.arange(number + 1)
        values = excess.ravel()[: number + 1]
        rounding = 4.0 * _ULP * (_CHUNK + len(self.gaps) / _CHUNK + 16.0)
        errors = self.stray + t * self.drift + rounding * size.ravel()[: number + 1]
        squares = 2.0 * values.real + np.square(np.abs(values))
        logs = np.log1p(np.maximum(squares, _ULP - 1.0)) / 2.0 + 1j * np.arctan2(
            values.imag, 1.0 + values.real
        )
        return logs, errors


def _step(law: LossSum, theta: float, place: float, height: float) -> tuple[float, float]:
    """Return a step of t that makes the other terms of Poisson's sum negligible, and a tilt that shows it.

    `place` and `height` are about where the divergence is wanted, and about its logarithm there.
    """
    below = (_FAR - height) / theta
    windows = []
    for factor in (1.1, 1.25, 1.5, 2.0, 3.0):
        other = factor * theta
        excess = law.cumulant(other)[0] - other * place + log_least(other) - height + _FAR
        windows.append((max(0.0, excess) / (other - theta), other))
    above, other = min(windows)
    return 2.0 * math.pi / (1.05 * max(below, above)), other


def log_least(theta: float) -> float:
    """Return ln of the largest e^(-theta u) (1 - e^-u) over u > 0: theta^theta / (1 + theta)^(1 + theta)."""
    return -theta * math.log1p(1.0 / theta) - math.log1p(theta)


def _turned(angles: FloatArray) -> _Complex:
    """Return e^(i angle) - 1, accurate where the angle is small."""
    turned: _Complex = 1j * np.sin(angles) - 2.0 * np.square(np.sin(angles / 2.0))
    return turned
