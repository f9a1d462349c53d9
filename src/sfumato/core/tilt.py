"""The tilted Fourier transform: many-fold convolution that is accurate in a far tail.

A plain FFT has round-off of about 1e-16 of the *largest* mass everywhere, so that a tail of 1e-15 drowns in
it. Multiplying every mass by e^(theta l) moves the tail to the middle; the convolution of tilted measures is
the tilted convolution. Dividing by e^(theta l) afterwards scales the round-off down with the masses.

Whatever the transform may get wrong (round-off, wrap-around, what lies outside its window) is one number:
a tilted mass that may be anywhere. What it adds to the curve at epsilon, or takes from it, is at most that
mass times e^(cumulant - theta epsilon), for only losses above epsilon count.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from sfumato.core.arguments import FloatArray
from sfumato.core.loss_sketch import NEGLIGIBLE, WindowPlan
from sfumato.core.losses import LossDistribution
from sfumato.core.search import chance_of_any

__all__ = ["TiltedLaw", "convolve"]

_Laws = Sequence[tuple[LossDistribution, int]]

_ULP = 2.0**-53
_PASS = 10.0 * _ULP  # round-off of one pass of the transform, relative to the sum of absolute inputs
_MOST_SIZE = 2**24
_FAINT = 60.0  # spectral values below e^-60 are bounded, not computed


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TiltedLaw:
    """A composed measure: `masses` times e^(cumulant - theta l) at the grid points l from index `first` on.

    It holds up to a factor of 1 +- `slack`, and up to a tilted mass of `stray` anywhere; in any
    one point up to `blur`.
    """

    step: float
    first: int
    masses: FloatArray
    theta: float
    cumulant: float
    stray: float
    blur: float
    infinite: float
    slack: float

    def delta_above(self, epsilon: float) -> float:
        """Return an upper bound on the hockey-stick divergence of the composed measure. Rounds: up."""
        losses, masses = self._untilted(epsilon)
        finite = float(masses @ -np.expm1(epsilon - losses)) + float(self._astray(np.array(epsilon)))
        return finite * (1.0 + self.slack) + self.infinite

    def delta_below(self, epsilon: float) -> float:
        """Return a lower bound on it. Rounds: down."""
        losses, masses = self._untilted(epsilon)
        finite = float(masses @ -np.expm1(epsilon - losses)) - float(self._astray(np.array(epsilon)))
        return max(0.0, finite * (1.0 - self.slack)) + self.infinite

    def epsilon_above(self, delta: float, least: float = 0.0) -> float:
        """Return an epsilon >= least at which the divergence is at most `delta`, inf if none is seen.

        Rounds: up.
        """
        allowed = (delta - self.infinite) / (1.0 + self.slack)
        if allowed <= 0.0:
            return math.inf
        for start in (max(least, self._quarter), least):
            losses, mass, curve = self._curve(start, allowed)
            doubt = self._astray(losses) + 4.0 * len(self.masses) * _ULP * mass
            small = np.flatnonzero(curve + doubt <= allowed)
            if len(losses) and not len(small):
                return math.inf
            if len(small) and small[0] > 0:
                j = int(small[0])
                # Up to loss j the curve is mass - e^(epsilon - l_j) (mass - curve), with the values at j.
                rest = min(mass[j], max(curve[j], allowed - doubt[j - 1]))
                ratio = (mass[j] - rest) / (mass[j] - curve[j]) if mass[j] > curve[j] else 1.0
                return float(max(losses[j - 1], losses[j] + math.log(max(ratio, _ULP))))
        if self.delta_above(least) <= delta:
            return least
        return float(losses[0]) if len(losses) else math.inf

    def epsilon_below(self, delta: float) -> float:
        """Return an epsilon >= 0 below which the divergence exceeds `delta`. Rounds: down."""
        needed = (delta - self.infinite) / (1.0 - self.slack)
        if needed <= 0.0:
            return math.inf
        for start in (self._quarter, 0.0):
            losses, mass, curve = self._curve(start, needed)
            lack = needed + 4.0 * len(self.masses) * _ULP * mass + self._astray(losses)
            enough = np.flatnonzero(curve >= lack)
            if len(enough):
                j = min(int(enough[-1]) + 1, len(losses) - 1)
                ratio = (mass[j] - lack[j - 1]) / (mass[j] - curve[j]) if mass[j] > lack[j - 1] else 0.0
                inside = losses[j] + math.log(min(1.0, ratio)) if ratio > 0.0 else 0.0
                return float(max(losses[j - 1], inside))
        return 0.0

    def coarsened(self, factor: int) -> tuple[LossDistribution, float]:
        """Return an upper bound on a grid `factor` times as wide, and the tilted mass it may lack.

        Theorem: "connect the dots", as in `LossDistribution.pessimistic`. Rounds: up.
        """
        # What is below this may be nothing but round-off.
        floor = 0.25 * min(self.stray, 1.0) / len(self.masses)
        seen = np.flatnonzero(self.masses > floor)
        begin, end = int(seen[0]), int(seen[-1]) + 1
        first = (self.first + begin) // factor
        before = self.first + begin - first * factor
        padded = np.pad(self.masses[begin:end], (before, -(before + end - begin) % factor))
        losses = (first * factor + np.arange(len(padded))) * self.step
        factors = np.exp(np.minimum(self.cumulant - self.theta * losses, 700.0))
        cells = np.maximum(padded, 0.0) * factors * (1.0 + self.slack)
        share = np.expm1(-self.step * np.arange(factor)) / math.expm1(-self.step * factor)
        cells = cells.reshape(-1, factor)
        masses = np.append(cells @ (1.0 - share), 0.0)
        masses[1:] += cells @ share
        indices = first + np.arange(len(masses))
        step = self.step * factor
        law = LossDistribution(step=step, indices=indices, masses=masses, infinite=self.infinite)
        return law, 1.25 * self.stray

    def ceiling(self, first: int, last: int) -> FloatArray:
        """Return an upper bound on the untilted mass of every point of a range inside the window."""
        losses = np.arange(first, last + 1) * self.step
        masses = np.maximum(self.masses[first - self.first : last + 1 - self.first], 0.0) + self.blur
        bound: FloatArray = masses * np.exp(np.minimum(self.cumulant - self.theta * losses, 700.0))
        return bound * (1.0 + self.slack)

    def tail_above(self, index: int) -> float:
        """Return an upper bound on the untilted mass beyond a point: in the window, and astray."""
        _, masses = self._untilted((index + 0.5) * self.step)
        return (float(masses.sum()) + float(self._astray(np.array(index * self.step)))) * (1.0 + self.slack)

    @property
    def _quarter(self) -> float:
        return max(0.0, (self.first + len(self.masses) // 4) * self.step)

    def _astray(self, epsilon: FloatArray) -> FloatArray:
        """Bound what stray mass does to the curve."""
        bound: FloatArray = self.stray * np.exp(np.minimum(self.cumulant - self.theta * epsilon, 700.0))
        return bound

    def _untilted(self, epsilon: float) -> tuple[FloatArray, FloatArray]:
        """Return the losses above `epsilon` in the window and their masses."""
        start = max(0, math.floor(epsilon / self.step) + 1 - self.first)
        losses = np.arange(self.first + start, self.first + len(self.masses)).astype(np.float64) * self.step
        factors = np.exp(np.minimum(self.cumulant - self.theta * losses, 700.0))
        return losses, np.maximum(self.masses[start:], 0.0) * factors

    def _curve(self, start: float, level: float) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return losses, the mass from each on, and the curve there, around where it falls to `level`.

        The curve lies below the mass, and above 0.63 times the mass one unit further up.
        """
        losses, masses = self._untilted(start)
        mass = _suffix_sums(masses)
        quiet = (self.cumulant + math.log(max(4.0 * self.stray / level, 1e-300))) / max(self.theta, _ULP)
        beyond = max(int(np.searchsorted(-mass, -level / 2.0)), int(np.searchsorted(losses, quiet)))
        stop = min(len(losses), beyond + 2)
        begin = max(0, int(np.searchsorted(-mass, -level / 0.5)) - math.ceil(1.0 / self.step) - 2)
        # Sums of masses times e^-l, block by block so that nothing overflows; e^-300 and less is left out.
        block = max(1, math.floor(300.0 / self.step))
        curve = mass[begin:stop].copy()
        for at in range(begin, stop, block):
            gaps = losses[at : at + 2 * block] - losses[at]
            lowered = _suffix_sums(masses[at : at + 2 * block] * np.exp(-gaps))
            number = min(block, stop - at)
            curve[at - begin : at - begin + number] -= np.exp(gaps[:number]) * lowered[:number]
        return losses[begin:stop], mass[begin:stop], curve


def convolve(
    parts: _Laws, plan: WindowPlan, *, stray: float = 0.0, window: tuple[int, int] | None = None
) -> TiltedLaw:
    """Compose distributions on one grid, each as many times as its count says.

    `stray` is a tilted mass that the parts may lack; `window` the indices to cover at least.

    Theorem: a pass of the transform errs by at most `_PASS` times the sum of the absolute
    inputs (Higham 2002, section 24.1, whose induction holds for the largest entry too), so
    a forward transform of mass one errs by e = passes * _PASS; |(F+e)^n - F^n| <= n e (|F|+e)^(n-1).
    In one point the inverse errs by the mean of that over frequencies, and in the sum over all
    points by the root of its sum of squares (Parseval, Cauchy-Schwarz). The window's ends are bounded
    by Chernoff's inequality at further tilts.
    Assumes: numpy's FFT makes at most log2(size) + 2 passes.
    """
    theta, step = plan.theta, plan.step
    base = [law.tilted(theta) for law, _ in parts]
    pairs = list(zip(parts, base, strict=True))
    cumulant = math.fsum(count * value for (_, count), (value, _) in pairs)
    mean = math.fsum(count * float(weights @ law.indices) for (law, count), (_, weights) in pairs)
    first, left = _end(parts, plan, cumulant, mean, plan.lower, -1)
    last, right = _end(parts, plan, cumulant, mean, plan.upper, 1)
    if window is not None:
        first, last = min(first, window[0]), max(last, window[1])
    size = _fast_size(last - first + 1)

    error = (math.log2(size) + 2.0) * _PASS
    alive = np.arange(size // 2 + 1)
    spectrum = np.ones(len(alive), dtype=np.complex128)
    bound = np.zeros(len(alive))  # of ln |spectrum|
    doubt = np.full(len(alive), error + 16.0 * _ULP)  # relative to that bound
    offset = 0
    for (law, count), (_, weights) in pairs:
        centre = round(float(weights @ law.indices))
        offset += count * centre
        placed = np.bincount((law.indices - centre) % size, weights=weights, minlength=size)
        values = np.fft.rfft(placed)[alive]
        largest = np.abs(values) + error
        bound += count * np.log(largest)
        doubt += count * (error / largest + 8.0 * _ULP) + _FAINT * _ULP
        seen = bound > -_FAINT
        alive, bound, doubt, spectrum = alive[seen], bound[seen], doubt[seen], spectrum[seen]
        if count == 1:
            spectrum *= values[seen]
        else:
            spectrum *= np.exp(count * np.log(np.where(values[seen] == 0.0, 1e-300, values[seen])))
    # Turning the phases moves the result around the circle, so that it begins at `first`.
    turns = (alive * ((first - offset) % size) % size) / size
    full = np.zeros(size // 2 + 1, dtype=np.complex128)
    full[alive] = spectrum * np.exp(2j * math.pi * turns)
    wrong = np.exp(bound) * doubt
    faint = size * math.exp(-_FAINT)
    noise = math.sqrt(2.0) * float(np.linalg.norm(wrong)) + faint
    peak = (2.0 * float(wrong.sum()) + faint) / size

    rounding = 8.0 + abs(cumulant) + 2.0 * theta * max(abs(first), abs(first + size)) * step + size
    for (law, count), (value, _) in pairs:
        rounding += count * (16.0 + abs(value) + 2.0 * theta * float(np.max(np.abs(law.losses))))
    return TiltedLaw(
        step=step,
        first=first,
        masses=np.fft.irfft(full, size),
        theta=theta,
        cumulant=cumulant,
        stray=stray + left + right + noise,
        blur=stray + left + right + peak,
        infinite=chance_of_any((law.infinite, count) for law, count in parts),
        slack=rounding * _ULP,
    )


def _end(
    parts: _Laws, plan: WindowPlan, cumulant: float, mean: float, tilt: float | None, sign: int
) -> tuple[int, float]:
    """Return the last grid point of the window on one side, and a bound on the tilted mass beyond it."""
    edge = sum(count * int(law.indices[-1 if sign > 0 else 0]) for law, count in parts)
    widest = math.floor(mean) + sign * (_MOST_SIZE // 2)
    if tilt is None:
        return (edge, 0.0) if edge * sign <= widest * sign else (widest, 1.0)
    further = math.fsum(count * law.cumulant(plan.theta + sign * tilt) for law, count in parts) - cumulant
    place = sign * min(sign * edge, sign * widest, math.ceil((further + NEGLIGIBLE) / (tilt * plan.step)))
    beyond = 0.0 if place == edge else math.exp(min(0.0, further - tilt * sign * place * plan.step))
    # Where so much mass sits on the very edge that no tilt bounds it, the window goes that far.
    if beyond > math.exp(1.0 - NEGLIGIBLE) and edge * sign <= widest * sign:
        return edge, 0.0
    return place, beyond


def _fast_size(least: int) -> int:
    """Return an even number of small prime factors, at least as large as needed."""
    power = 1 << max(6, (least - 1).bit_length())
    return min(size for size in (power, power // 8 * 5, power // 4 * 3) if size >= least)


def _suffix_sums(values: FloatArray) -> FloatArray:
    sums: FloatArray = np.cumsum(values[::-1])[::-1]
    return sums
