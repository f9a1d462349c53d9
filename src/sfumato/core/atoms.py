"""The privacy loss of one sampled Gaussian as finitely many atoms, from above and from below.

A Gaussian of scale sigma on a sample of rate r has the likelihood ratio M = 1 - r + r X at the output u,
with X = e^(s u - s^2/2), s = 1/sigma, and u of the law N(0,1) without the person. Its loss is ln M with the
person and -ln M without, and every price is a mean of a convex function of X. So the law of X is all that
needs to be cut into pieces, once for every rate:

* from above, each cell of outputs is replaced by its two ends so that the mean of X stays (Edmundson 1956,
  Madansky 1959; for loss distributions "connect the dots", Doroshenko et al. 2022);
* from below, by its centre of gravity (Jensen 1906; merging outputs is post-processing).

Masses and losses are accurate *relatively*: a rate of 1e-9 has losses of 1e-9, and a billion of them add up
to something. Differences of tails, as in `losses`, cannot give that.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from sfumato.core.arguments import FloatArray
from sfumato.core.events.base import Direction
from sfumato.core.normal import tail_quantile, upper_tail

__all__ = ["Atoms", "sampled_gaussian"]

_ULP = 2.0**-53
_CELL = 0.008  # the width of a cell of outputs, in standard deviations
_CELL_RATIO = 0.025  # the most that s u may change over a cell
_BOTTOM = -13.5  # below this output lies less than 1e-40 of N(0,1)
_TAIL = 2.0**-42  # the relative error of a normal tail
_FAINTEST = 1e-60  # a tail beyond which nothing is looked at
_NODES = 8
_OVERFLOW = 300.0


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Atoms:
    """P-mass e^`logs[j]` at the loss `losses[j]`, and at most P-mass `infinite` of infinite loss.

    Each mass is right up to a factor of 1 +- `doubts[j]`, each loss up to +- `blurs[j]`. The true
    masses add up to 1 - `lack`.
    """

    losses: FloatArray
    logs: FloatArray
    doubts: FloatArray
    blurs: FloatArray
    infinite: float
    lack: float

    def parted(self, mass: float) -> tuple[Atoms, Atoms]:
        """Return the atoms but for the largest losses, and those: of P-mass `mass` at most."""
        order = np.argsort(self.losses)
        above = np.cumsum(np.exp(self.logs[order])[::-1])[::-1]
        first = int(np.searchsorted(-above, -mass))
        large = float(above[first]) if first < len(order) else 0.0
        return self._of(order[:first], self.lack + large), self._of(order[first:], 1.0 - large)

    def times(self, count: float) -> Atoms:
        """Return the atoms with `count` times their mass."""
        lack = 1.0 - count * (1.0 - self.lack)
        return replace(self, logs=self.logs + math.log(count), doubts=self.doubts + 4.0 * _ULP, lack=lack)

    def _of(self, some: npt.NDArray[np.int64], lack: float) -> Atoms:
        return Atoms(
            losses=self.losses[some],
            logs=self.logs[some],
            doubts=self.doubts[some],
            blurs=self.blurs[some],
            infinite=0.0,
            lack=lack,
        )

    def tilted(self, theta: float) -> tuple[float, FloatArray]:
        """Return ln E[e^(theta L)] over the atoms, and the masses tilted by e^(theta L), of sum one.

        The logarithm of a mean near one is that of one and of small terms: a billion times it is accurate.
        """
        exponents = self.logs + theta * self.losses
        top = float(exponents.max())
        if self.lack > 0.5 or top > _OVERFLOW:
            value = top + math.log(float(np.exp(exponents - top).sum()))
        else:
            masses = np.exp(self.logs)
            small = np.abs(theta * self.losses) < 0.5
            grown = np.exp(exponents) - masses
            grown[small] = masses[small] * np.expm1(theta * self.losses[small])
            value = math.log1p(float(grown.sum()) - self.lack)
        weights = np.exp(exponents - value)
        return value, weights / float(weights.sum())


def sampled_gaussian(
    shift: float, rate: float, direction: Direction, *, above: bool, failure: float
) -> Atoms:
    """Return atoms for a Gaussian of sigma = 1/`shift` on a sample of rate `rate`.

    P-mass of at most `failure` far out counts as infinite loss, or, from below, as one atom.

    Theorem: with `above`, every hockey-stick divergence of the atoms, and of any composition with
    them, is at least the mechanism's; without it, at most (see the module). Mass below the first cell
    is shared between that cell's end and X = 0, which it never reaches.
    Assumes: 0 < shift <= 20; the masses' and losses' stated errors, which follow from
    IEEE arithmetic, from 2 ulp for exp, expm1 and log1p, and from a quadrature whose own error is
    below 1e-17: Gauss's rule of 8 nodes on cells over which the integrand changes by a factor below 2.
    """
    removed = direction is Direction.REMOVE
    # Beyond `top` lies P-mass of at most `failure`: outputs of N(s, 1) and of N(0, 1).
    top = shift + _reach(failure / rate) if failure < rate else _reach(failure)
    top = max(top, _reach(failure)) if rate < 1.0 else top
    masses, ratios, places, doubts = _cells(shift, top) if above else _centres(shift, top)
    with np.errstate(divide="ignore"):
        logs, losses = np.log(masses), np.log1p(rate * ratios)
    rounding = 4.0 * _ULP * (np.abs(places) * shift + shift * shift)
    grown = rate / (1.0 + rate * ratios)
    blurs = 4.0 * _ULP * np.abs(losses) + grown * (4.0 * _ULP * np.abs(ratios) + rounding * (1.0 + ratios))
    infinite = 0.0
    if above:
        beyond = upper_tail(top)
        if removed:
            infinite = (rate * upper_tail(top - shift) + (1.0 - rate) * beyond) * (1.0 + _TAIL)
        else:  # moved up to the last knot
            logs[-1] = np.logaddexp(logs[-1], math.log(max(beyond, 1e-300)))
    kept = np.isfinite(logs) & np.isfinite(losses)
    losses, logs, doubts, blurs = losses[kept], logs[kept], doubts[kept], blurs[kept]
    if removed:
        logs, doubts = logs + losses, doubts + blurs
    else:
        losses = -losses
    return Atoms(losses=losses, logs=logs, doubts=doubts, blurs=blurs, infinite=infinite, lack=infinite)


_Rule = tuple[FloatArray, FloatArray, FloatArray, FloatArray]


@lru_cache(maxsize=32)
def _grid(shift: float, top: float) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return knots, and for each cell between them the masses of N(0,1) that go to its lower and upper end.

    All knots but the last are multiples of one width, so that they do not move with `top`. The fourth
    is each cell's mean of e^(s (u - lower end)) - 1.
    """
    width = min(_CELL, _CELL_RATIO / shift)
    knots = np.append(np.arange(math.floor(_BOTTOM / width), math.ceil(top / width)) * width, top)
    nodes, weights = np.polynomial.legendre.leggauss(_NODES)
    places = (nodes + 1.0) / 2.0
    gaps = np.diff(knots)[:, None]
    outputs = knots[:-1, None] + gaps * places
    masses = np.exp(-outputs * outputs / 2.0) * (gaps * weights) / math.sqrt(8.0 * math.pi)
    risen = np.expm1(shift * gaps * places)
    upper = masses * risen / np.expm1(shift * gaps)
    lower = masses * np.expm1(-shift * gaps * (1.0 - places)) / np.expm1(-shift * gaps)
    total = masses.sum(axis=1)
    return knots, lower.sum(axis=1), upper.sum(axis=1), (masses * risen).sum(axis=1) / total


def _cells(shift: float, top: float) -> _Rule:
    """Return atoms at the knots and at X = 0: masses, X - 1, outputs, relative errors of the masses."""
    knots, lower, upper, _ = _grid(shift, top)
    below, pulled = _bottom(shift, float(knots[0]))
    first = below * pulled  # the share of the bottom that goes to the first knot
    masses = np.concatenate([[below * (1.0 - pulled)], [first], np.zeros(len(knots) - 1)])
    masses[1:-1] += lower
    masses[2:] += upper
    ratios = np.concatenate([[-1.0], np.expm1(shift * knots - shift * shift / 2.0)])
    places = np.concatenate([[0.0], knots])
    doubts = _doubts(places)
    doubts[:2] += _TAIL
    doubts[0] += _TAIL / max(1.0 - pulled, _TAIL)
    return masses, ratios, places, doubts


def _centres(shift: float, top: float) -> _Rule:
    """Return atoms at the cells' centres of gravity, and one for all that lies below or above."""
    knots, lower, upper, risen = _grid(shift, top)
    starts = shift * knots[:-1] - shift * shift / 2.0
    below, pulled = _bottom(shift, float(knots[0]))
    start, beyond = math.expm1(shift * float(knots[0]) - shift * shift / 2.0), upper_tail(top)
    masses = np.concatenate([[below], lower + upper, [beyond]])
    inner = np.expm1(starts) + np.exp(starts) * risen
    ratios = np.concatenate([[(start + 1.0) * pulled - 1.0], inner, [upper_tail(top - shift) / beyond - 1.0]])
    places = np.concatenate([knots[:1], knots])
    doubts = _doubts(places)
    doubts[[0, -1]] += 4.0 * _TAIL
    return masses, ratios, places, doubts


def _bottom(shift: float, first: float) -> tuple[float, float]:
    """Return the mass of N(0,1) below the first knot, and the mean there of X over its value at the knot."""
    below = upper_tail(-first)
    grown = math.exp(min(shift * first - shift * shift / 2.0, 0.0))
    if grown == 0.0:
        return below, 0.0
    return below, min(1.0, upper_tail(shift - first) / (below * grown))


def _doubts(places: FloatArray) -> FloatArray:
    """Return the relative error of a mass by quadrature: places, squares and exponentials are rounded."""
    doubts: FloatArray = _ULP * (64.0 + 4.0 * np.square(places))
    return doubts


def _reach(mass: float) -> float:
    """Return a z beyond which N(0,1) has at most about `mass`."""
    return float(tail_quantile(np.array([math.log(min(0.5, max(mass, _FAINTEST)))]))[0])
