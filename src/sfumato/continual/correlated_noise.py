"""Correlated noise: integers u, one per number and period, of which z = C u, rounded, is independent noise.

In each period fresh noise z_t is drawn, and u_t = z_t - round(the part of C u that earlier periods make). The
noise never depends on the data: w_t = x_t + u_t is published, and u is what the state of a stream holds.

Numbers are counted in steps. Those of a period with `extra_bits` b_t are finer by 2^b_t than those of the
first one, and its fresh noise is wider by as much: counted in units it has the same deviation.

Theorem. Let two neighbouring streams x and x' change C x by a vector of length at most S, in steps of the
first period, and be different in at most m of the numbers. Then publishing w costs at most what independent
discrete Gaussian noise of the first period's parameter, 1000 or more, costs on integers that change by a
vector of length S + sqrt(m R) * (1 + slack), chosen adaptively, where R is the sum over periods of 4^-b_t
(`roundings`): the number of periods where all steps are the same; and finite for buffers, whose steps are
finer by a bit each time that a stream has become twice as long, however many periods there will be.

Proof. Given what was published up to t, w_t = x_t + z_t - r_t, where r_t is a function of u_1 .. u_(t-1),
that is of w - x: an integer, known under each of the two streams. So w_t is discrete Gaussian noise around an
integer, and the two centres differ by s_t = (x_t - r_t) - (x'_t - r'_t). Without rounding this would be the
change of C x at t. Numbers that are the same in both streams have the same u, and no difference. For the
others, in steps of the first period: r_t and r'_t are rounded by at most 2^-b_t / 2 each, together 2^-b_t, a
vector over periods of length at most sqrt(R). Buffers are rounded as well, in period t by delta_t, at most
2^-b_t 2^-16 for both streams; the part of C u that a buffer makes is off by its weight times the sum over
earlier s of rate^(t - 1 - s) delta_s, and by Young's inequality for convolutions this vector is at most
weight / (1 - rate) times as long as delta: that is `slack`. So the length of s is at most
S + sqrt(m R) (1 + slack), whatever was published. The cost of noise with shifts that are chosen adaptively is
that of the largest length which they can have (`core.rules`). In period t noise and shift are both 2^b_t
times as large in its own steps, which leaves rho as it is, and makes mu no larger: for a parameter s of 1000
or more the mu of a step is (1 / sqrt s) / (1 - 1 / (12 s)) (`core.events.lattice`), and the second factor
falls where s grows.

To make the second term small, x is counted in fine steps: `steps_for` says how fine.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.continual.factorisation import BITS, Factorisation
from sfumato.continual.rates import RATE_BITS, Buffers
from sfumato.errors import InvalidArgument

__all__ = ["CorrelatedNoise", "narrowed", "slack", "steps_for"]

_FINER = 16  # bits that buffers have behind the point
_LOW = 32  # bits of a held sum that are multiplied apart from the others
_CLOSE = 2.0**-20  # how much longer than S the shifts may be, as a part of one unit

_Integers = npt.NDArray[Any]


def narrowed(values: _Integers, bits: int) -> _Integers:
    """Return integers as int64 where all of them have at most so many bits, else as Python's.

    >>> narrowed(np.array([1, 1 << 70], dtype=object) >> 8, 62).dtype, narrowed(np.array([1]), 62).dtype
    (dtype('O'), dtype('int64'))
    """
    size = max(abs(int(values.min())), abs(int(values.max()))) if values.size else 0
    return values.astype(object if size >> bits else np.int64, copy=False)


class CorrelatedNoise:
    """The noise of a stream so far, for any number of numbers; those that come later `join` it.

    >>> from sfumato.continual.factorisation import square_root
    >>> noise = CorrelatedNoise(square_root(4))
    >>> [noise.next([z]).tolist() for z in (8, 0, 0, 0)]
    [[8], [-4], [-1], [-1]]
    """

    def __init__(self, factorisation: Factorisation | Buffers) -> None:
        self.factorisation = factorisation
        self.periods = 0
        self._held = (
            _History(factorisation) if isinstance(factorisation, Factorisation) else _Held(factorisation)
        )

    def resume(self, kept: Sequence[_Integers], periods: int) -> None:
        """Go on after earlier periods, given what was `kept` of them; all have as many numbers.

        >>> from sfumato.continual.factorisation import square_root
        >>> noise = CorrelatedNoise(square_root(4))
        >>> noise.resume([np.array([8]), np.array([-4])], 2)
        >>> noise.next([0]).tolist()
        [-1]
        """
        if self.periods:
            raise InvalidArgument("only a stream that has not begun is resumed", place="kept")
        self._held.resume(kept, periods)
        self.periods = periods

    def join(self, other: CorrelatedNoise) -> None:
        """Take in the numbers of other noise, which is of as many periods, behind its own ones.

        >>> from sfumato.continual.factorisation import square_root
        >>> noise, later = (CorrelatedNoise(square_root(4)) for _ in range(2))
        >>> noise.next([8]).tolist(), later.next([80]).tolist()
        ([8], [80])
        >>> noise.join(later)
        >>> noise.next([0, 0]).tolist()
        [-4, -40]
        """
        if (self.periods, self.factorisation) != (other.periods, other.factorisation):
            raise InvalidArgument("noise is joined to noise of the same periods", place="other")
        self._held.join(other._held)  # type: ignore[arg-type]  # of one factorisation, so of one class

    def follow(self, noise: _Integers) -> None:
        """Go on after one more period, whose noise is given."""
        if self.forgets:
            self._held.carried(len(noise))  # its steps may be finer
        self._held.add(noise)
        self.periods += 1

    def next(self, fresh: Any) -> _Integers:
        """Return the noise of the next period, in its steps, given fresh noise, one for each number."""
        drawn = np.asarray(fresh)
        if self.periods and len(drawn) != self._held.numbers:  # noise that begins later is not private
            raise InvalidArgument("numbers that come later are joined with noise of their own", place="fresh")
        if drawn.dtype != object:
            drawn = drawn.astype(np.int64, copy=False)
        noise = narrowed(drawn, 61) - narrowed(self._held.carried(len(drawn)), 61)
        self._held.add(noise)
        self.periods += 1
        return noise

    @property
    def kept(self) -> _Integers:
        """What must be kept of the newest period, besides what was kept before, if `forgets` is not set."""
        return self._held.kept

    @property
    def forgets(self) -> bool:
        """Whether what is kept of a period replaces all that was kept before."""
        return isinstance(self._held, _Held)


class _History:
    """All noise of earlier periods, in two limbs: for C with any coefficients.

    Sums are exact: a limb has so few bits that its sum with any coefficients fits in 64 bits, and whatever
    does not fit is held in Python's integers.
    """

    def __init__(self, factorisation: Factorisation) -> None:
        self._column = np.array(factorisation.coefficients, dtype=np.int64)
        self._limb = 62 - sum(factorisation.coefficients).bit_length()  # bits
        self._low: _Integers = np.zeros((0, 0), dtype=np.int64)  # period, number; with room for more periods
        self._high: _Integers = np.zeros((0, 0), dtype=np.int64)
        self._periods = 0
        self.kept: _Integers = np.zeros(0, dtype=np.int64)

    @property
    def numbers(self) -> int:
        return int(self._low.shape[1])

    def join(self, other: _History) -> None:
        known = self._periods
        self._low = np.concatenate((self._low[:known], other._low[:known]), axis=1)
        self._high = np.concatenate((self._high[:known], other._high[:known]), axis=1)

    def carried(self, numbers: int) -> _Integers:
        if self._periods >= len(self._column):
            raise InvalidArgument("the horizon of this stream is used up", place="horizon")
        self._make_room(self._periods, numbers)
        later = self._column[self._periods : 0 : -1]  # the oldest first
        low, high = (_summed(later, limb[: self._periods]) for limb in (self._low, self._high))
        total = (narrowed(high, 61 - self._limb) << self._limb) + low
        return np.asarray(total + (1 << BITS - 1) >> BITS)

    def resume(self, kept: Sequence[_Integers], periods: int) -> None:
        if len(kept) != periods:
            raise InvalidArgument("all noise of the earlier periods is needed", place="kept")
        for noise in kept:
            self.add(noise)

    def add(self, noise: _Integers) -> None:
        self._make_room(self._periods + 1, len(noise))
        high = narrowed(noise >> self._limb, self._limb)
        if high.dtype == object:
            self._high = self._high.astype(object)
        self._low[self._periods, : len(noise)] = noise & (1 << self._limb) - 1
        self._high[self._periods, : len(noise)] = high
        self._periods += 1
        self.kept = noise

    def _make_room(self, periods: int, numbers: int) -> None:
        rows, columns = self._low.shape
        if periods > rows or numbers > columns:
            shape = (max(periods, min(2 * rows, len(self._column))), max(numbers, columns))
            for name in ("_low", "_high"):
                before = getattr(self, name)
                after = np.zeros(shape, dtype=before.dtype)
                after[:rows, :columns] = before
                setattr(self, name, after)


def _summed(coefficients: npt.NDArray[np.int64], limbs: _Integers) -> _Integers:
    if limbs.dtype == object:
        return np.asarray(np.dot(coefficients.astype(object), limbs))
    return np.asarray(np.einsum("p,pn->n", coefficients, limbs))


class _Held:
    """One number per rate: each falls by its rate from period to period, and gets the new noise on top.

    Sums are in 2^-16 of the steps of the newest period. Those of at most 60 bits are multiplied by
    rates and weights of 30 bits in two parts, the lower one of 32 bits, so that nothing passes 63 bits.
    """

    def __init__(self, given: Buffers) -> None:
        self._given = given
        self._rates = np.array(given.rates, dtype=np.int64)[:, None]
        self._weights = np.array(given.weights, dtype=np.int64)[:, None]
        self._sums: _Integers = np.zeros((len(given.rates), 0), dtype=np.int64)
        self._periods = self._bits = 0

    @property
    def kept(self) -> _Integers:
        return self._sums.reshape(-1)

    @property
    def numbers(self) -> int:
        return int(self._sums.shape[1])

    def join(self, other: _Held) -> None:
        self._sums = np.concatenate((self._sums, other._sums), axis=1)

    def carried(self, numbers: int) -> _Integers:
        finer = self._given.extra_bits(self._periods + 1) - self._bits
        new = ((0, 0), (0, max(0, numbers - self._sums.shape[1])))
        self._sums = narrowed(np.pad(self._sums << finer, new), 60)
        self._bits += finer
        high, low = self._parts()
        low = (self._weights * low).sum(axis=0) + (1 << RATE_BITS + _FINER - 1)
        return np.asarray((self._weights * high).sum(axis=0) + (low >> _LOW) >> RATE_BITS + _FINER - _LOW)

    def resume(self, kept: Sequence[_Integers], periods: int) -> None:
        if len(kept) != min(1, periods):
            raise InvalidArgument("what was kept of the newest period is needed, and no other", place="kept")
        for sums in kept:
            self._sums = narrowed(sums.reshape(len(self._rates), -1), 60)
        self._periods, self._bits = periods, self._given.extra_bits(max(1, periods))

    def add(self, noise: _Integers) -> None:
        high, low = self._parts()
        fallen = (self._rates * high << _LOW - RATE_BITS) + (
            self._rates * low + (1 << RATE_BITS - 1) >> RATE_BITS
        )
        self._sums = narrowed(fallen + (narrowed(noise, 60 - _FINER) << _FINER), 60)
        self._periods += 1

    def _parts(self) -> tuple[_Integers, _Integers]:
        return self._sums >> _LOW, self._sums & (1 << _LOW) - 1


def slack(factorisation: Factorisation | Buffers) -> float:
    """Return by how much the rounding of buffers lengthens what other roundings add, as a part of that.

    Proof: that of the module.
    """
    if isinstance(factorisation, Factorisation):
        return 0.0
    one = 1 << RATE_BITS
    pairs = zip(factorisation.rates, factorisation.weights, strict=True)
    return 1.01 * math.fsum(weight / (one - rate) for rate, weight in pairs) / (1 << _FINER)


def steps_for(factorisation: Factorisation | Buffers, numbers: int, length: float) -> int:
    """Return how many steps make one unit, a power of two: rounding adds less than 2^-20 of a length.

    `numbers` is how many numbers one person may change over the whole stream, and `length`, in units, by
    how much in one period: the vector over numbers has at least that length in C x.
    """
    rounded = math.sqrt(factorisation.roundings * numbers) * (1 + slack(factorisation))
    return 1 << max(0, math.ceil(math.log2(rounded / (_CLOSE * length))))
