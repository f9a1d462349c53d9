"""Finding: what one quantile of a histogram costs if it is found first and measured there afterwards.

A tree of noisy counts answers any number of quantiles at once, and pays for all of them. One quantile
q alone is a place: the cell c with D_c < 0 <= D_(c+1), where D_i = (1-q) * (rows below edge i)
- q * (rows from edge i on). In steps, each of them charged (`release/single_quantile` does them):

    find     a cell, by the exponential mechanism; its utility is min(-D_c, D_(c+1)): less the rows by which
             the cell misses the quantile, or the rows that keep the quantile in it. Where a budget counts
             pure epsilon, by permute and flip, which costs the same there and never misses by more
    anchor   with Gaussian noise: D_c itself, how far off the found place is, in rows
    annuli   the rows in 1, 1, 2, 4, .. cells to the left of that edge and to the right (without an anchor in
             1, 3, 12, 48, ..), with noise: how far that is in values, and where the quantile surely is

With q = n/d all of these are integers, if D is taken d times.

Theorem (what one unit moves): let it add c_i >= 0 to each cell i of a group, together at most
s = `count_sensitivity`. An edge with b of that below it and a above moves by (1-q) b - q a, so by at most
max(q, 1-q) * s; so do the utilities, since a minimum moves no further than what it is of. The exponential
mechanism at rate e / (2 * max(q, 1-q) * s) then has losses within a range of length e, and so has permute
and flip within -e and e. Annuli are disjoint: together they move by at most s in L1,
and so in L2. The place that was found is public when the rest is measured, so
the costs add up as for questions that are chosen after seeing answers.

Theorem (several groups): a unit in k groups meets k selections. If all k fall into one group of a coarser
grouping set, its utilities move k times as far, and the range of losses is k times as long; if only
some do, the ranges add up, so that k e covers this as well: the loss of independent selections is
the sum of theirs, and lies within a range of the summed length.

Theorem (how far off a choice is): some cell has utility 0 or more, for D rises from -q n to (1-q) n. A cell
that misses by t or more weighs at most e^(-rate t) of that one: with m cells P(miss >= t) <= m e^(-rate t).
Permute and flip passes any gap at most as often. This needs no measurement: with Laplace noise it stands
for the anchor, and an interval costs annuli alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from sfumato.aggregates.answer import Answer
from sfumato.analysis.noise_allocation import Item
from sfumato.core.events import Composed, Event, Pure, Repeated
from sfumato.core.events.claims import BoundedRange
from sfumato.core.noise_law import NoiseLaw

__all__ = [
    "QuantileSearch",
    "QuantileSearchItem",
    "exact_quantile",
    "finds",
    "found_blocks",
    "single_quantile",
]

_SHARES = {
    "laplace": (Fraction(94, 100), Fraction(0), Fraction(6, 100)),
    "gaussian": (Fraction(34, 100), Fraction(54, 100), Fraction(12, 100)),
    "gaussian points": (Fraction(70, 100), Fraction(18, 100), Fraction(12, 100)),
}
"""Shares of the cost of finding, anchor and annuli.

With Laplace noise, and where each cell is one value, the choice is the answer: it errs by ranks that fall off
exponentially whatever the values are like, and a value that many rows share is found by all of them. The
rest buys nothing but the interval, and can be left out with it. Among cells of real values Gaussian noise on
an anchor of the same cost errs less than a choice does: it is what remains of the error, and a find
that is too poor leaves a long way to correct, over which values are as uneven as they are."""
_WITHOUT_INTERVALS = (Fraction(1), Fraction(0), Fraction(0))

_INTERVAL = Fraction(1, 200)  # what the variance of annuli is worth beside that of a rank

_FINEST = 10**6  # a quantile is a fraction with at most this below, if one is
_CLOSE = Fraction(1, 10**9)  # so close, in parts of the way to the nearer end


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileSearch:
    """How one quantile of a histogram is found and measured; the annuli have the measure's own noise.

    Without `intervals` nothing is measured: the choice is all.
    """

    quantile: Fraction
    epsilon: Fraction  # range of losses of one selection, if one unit moves one group
    count_sensitivity: int
    anchor: NoiseLaw | None = None  # the anchor's noise
    intervals: bool = True
    flips: bool = False  # permute and flip instead of the exponential mechanism

    @property
    def sensitivity(self) -> int:
        """How far one unit moves a utility or the anchor, in parts of the quantile's denominator."""
        return _furthest(self.quantile) * self.count_sensitivity

    @property
    def rate(self) -> Fraction:
        """How much of the exponent one part of utility is worth."""
        return self.epsilon / (2 * self.sensitivity)

    @property
    def row_rate(self) -> Fraction:
        """How much of it one row is worth by which a cell misses the quantile."""
        return self.rate * self.quantile.denominator


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantileSearchItem(Item):
    """A histogram from which one quantile is found.

    Its noise is what on `count_sensitivity` would cost as much as all steps together: for Laplace noise
    exactly, for Gaussian noise about. Without `intervals`, where the choice is the answer, it has one step.
    """

    quantile: Fraction
    points: bool = False  # each cell is one value
    intervals: bool = True
    pure: bool = False  # the budget counts pure epsilon

    def _shares(self, law: NoiseLaw) -> tuple[Fraction, Fraction, Fraction]:
        return _shares(type(law), points=self.points, intervals=self.intervals)

    def finding(self, law: NoiseLaw) -> QuantileSearch:
        """Return the selection and the anchor's noise."""
        find, measured, around = self._shares(law)
        return QuantileSearch(
            quantile=self.quantile,
            epsilon=law.choice(self.sensitivity, find),
            count_sensitivity=self.sensitivity,
            anchor=law.scaled(_furthest(self.quantile)).share(measured) if measured else None,
            intervals=around > 0,
            flips=self.pure,
        )

    def annuli(self, law: NoiseLaw) -> NoiseLaw:
        """Return the annuli's noise; where there are none, that of the whole."""
        return law.share(self._shares(law)[2] or Fraction(1))

    def event(self, law: NoiseLaw) -> Event:
        """Return what all steps cost, in all groups of one unit."""
        found = self.finding(law)
        noises = [(found.anchor, found.sensitivity)] if found.anchor is not None else []
        noises += [(self.annuli(law), self.sensitivity)] if found.intervals else []
        events: list[Event] = []
        for multiple, times in self.shifts:
            loss = found.epsilon * multiple
            each: list[Event] = [Pure(loss=loss) if found.flips else BoundedRange(loss=loss)]
            each += [noise.event(sensitivity * multiple) for noise, sensitivity in noises]
            events += each if times == 1 else [Repeated(event=one, times=times) for one in each]
        return Composed(events=tuple(events))


def single_quantile(users: list[Answer]) -> Fraction | None:
    """Return the one quantile that is asked of a histogram, None if it serves anything else."""
    if not users or not all(user.function.record.ranks for user in users):
        return None
    asked = {q for user in users for q in user.quantiles}
    return exact_quantile(asked.pop()) if len(asked) == 1 else None


def exact_quantile(q: float) -> Fraction:
    """Return the decimal that a quantile was written as, or a shorter fraction that is as good as equal.

    >>> exact_quantile(0.9), exact_quantile(1 / 3), exact_quantile(0.0000004)
    (Fraction(9, 10), Fraction(1, 3), Fraction(1, 2500000))
    """
    written = Fraction(repr(float(q)))
    short = written.limit_denominator(_FINEST)
    near = _CLOSE * min(written, 1 - written)
    return short if abs(short - written) <= near else written


def finds(
    quantile: Fraction, cells: int, law: type[NoiseLaw], levels: int, branching: int, *, points: bool
) -> bool:
    """Tell whether finding has the smaller expected error of a rank than a tree, at equal cost.

    In squared noise of a count at that cost: a tree's rank has the noise of about a sixth of
    levels * (branching - 1) blocks, each of which pays for all levels; a found one that of its choice, or of
    its anchor.
    """
    blocks = Fraction(cells, 6) if levels == 1 else Fraction(levels * (branching - 1), 6)
    found = found_blocks(quantile, law, points=points, intervals=False)
    return bool(levels ** law.power() * blocks > found)


def found_blocks(quantile: Fraction, law: type[NoiseLaw], *, points: bool, intervals: bool) -> Fraction:
    """Return the variance of a found rank, in that of a count which costs as much; a little for its interval.

    Of the choice: a rank falls off exponentially with scale 2 max(q, 1-q) count_sensitivity / e, where e
    is the share of an epsilon, or as twice the root of the share to Gaussian noise. Or of the anchor.
    """
    furthest = max(quantile, 1 - quantile)
    find, anchor, annuli = _shares(law, points=points, intervals=intervals)
    around = _INTERVAL / annuli ** law.power() if annuli else Fraction(0)
    if anchor and not points:
        return furthest**2 / anchor + around
    return (2 * furthest**2 / find if law.euclidean else (2 * furthest / find) ** 2) + around


def _shares(law: type[NoiseLaw], *, points: bool, intervals: bool) -> tuple[Fraction, Fraction, Fraction]:
    corrected = law.euclidean and not points
    if not intervals and not corrected:
        return _WITHOUT_INTERVALS
    return _SHARES["laplace" if not law.euclidean else "gaussian" if corrected else "gaussian points"]


def _furthest(quantile: Fraction) -> int:
    return max(quantile.numerator, quantile.denominator - quantile.numerator)
