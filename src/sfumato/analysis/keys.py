"""Key selection: how large a noisy number must be before the key of its group may be shown.

Each group has a whole number c >= 0 (of units, of rows, or a weight), and 0 where nobody is. Its noise N is
drawn under the condition |N| <= cut: what is beyond is drawn again. A group is shown if c + N > cut, so that
a group that nobody is in is never shown, and need not be known.

Theorem (what the cut costs). Let one unit move the number of a group from c to c + v, 0 <= v <= cut. Both
sides can produce the outputs from c + v - cut to c + cut, the window. Each side leaves the window with the
same chance, f(v) = P(N > cut - v | |N| <= cut), as noise is symmetric. Inside the window:

1. A group that only this unit is in (c = 0) is not shown: no output is above cut.
2. The two sides are no easier to tell apart than with noise that has no cut, whose event is charged. For let
   R be the curve of the power of the tests "output < t" over their level, for noise without a cut. Losses
   fall along the integers (the noise is log-concave), so these tests are the best ones and R is concave. With
   p and q the chances of an output below the window on one side and on the other, the curve inside the window
   is the part of R between (q, p) and (1 - p, 1 - q), stretched to the unit square. Its slope at x is
   that of R at q + (1 - p - q) x. For x <= q / (p + q) that is to the right of x, where R rises no faster
   than at x, and both curves begin at 0; beyond, R rises no slower than at x, and both curves end at 1. So
   the curve is nowhere above R, and no measure of privacy loss is larger (Blackwell; Dong, Roth, Su 2022).

So the whole costs the noise's event, and delta = the chance that some number of the unit leaves its window.
For one number this is the truncated geometric law, with which selection is optimal (Desfontaines, Voss,
Gipson, Mandayam 2022).

Theorem (how much can be found). Let s(n) be the chance that a group of n units, each in no other group, is
shown: s(0) = 0. With a pure epsilon, but for a chance of delta, s(n) <= e^epsilon s(n - 1) + delta; with a
Gaussian mu, s(n) <= Phi(Phi^-1(s(n - 1)) + mu) + delta, for the two error curves of neighbours say so (Dong,
Roth, Su 2022). No rule finds more. For (0.2, 1e-7), all of delta for keys, the first reaches one half at 70
units. The second does at 113, and however delta is split into that of mu and that of keys not before: the
mu of (epsilon, delta) is a stronger promise than (epsilon, delta) itself. Noise that is cut off is within one
unit of both.

Theorem (the worst unit). The steps of f are the noise's masses at cut - v, which rise with v <= cut: f is
convex, and f(0) = 0. Where a unit moves each number by at most `each` and all of them by at most `total`, the
sum of f is largest where as many numbers as possible move by `each` and one by the rest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

from sfumato.core.noise_law import NoiseLaw
from sfumato.core.search import least_whole, lower_float, round_up

__all__ = ["appearance", "divided_appearance", "divided_cut", "smallest_cut"]

_HALF = Fraction(1, 2)


def appearance(law: NoiseLaw, cut: int, *, each: int, total: int) -> float:
    """Return the chance that some number of one unit leaves its window. Rounds: up.

    Assumes: each <= total and each <= cut.
    """
    whole, rest = divmod(total, each)
    return _sum((whole, law.tail_within(cut, cut - each + 1)), (1, law.tail_within(cut, cut - rest + 1)))


def smallest_cut(law: NoiseLaw, delta: Fraction, *, each: int, total: int) -> int:
    """Return the smallest cut, of at least half the draws, at which `appearance` is at most delta."""
    return _smallest(lambda cut: appearance(law, cut, each=each, total=total), _least(law, each), delta)


def divided_appearance(law: NoiseLaw, cut: int, weights: Sequence[int]) -> float:
    """Return the chance that some number leaves its window, of a unit that divides its weight. Rounds: up.

    A unit that is in d groups weighs weights[d - 1] in each: the largest of d f(weights[d - 1]) over d.
    Beyond 64 groups several d are taken together: as many groups as the last of them, each of the weight of
    the first. Assumes: weights fall, and are at most the cut.
    """
    return max(
        _sum((groups, law.tail_within(cut, cut - weight + 1))) for weight, groups in _together(weights)
    )


def divided_cut(law: NoiseLaw, delta: Fraction, weights: Sequence[int]) -> int:
    """Return the smallest cut, of at least half the draws, at which `divided_appearance` is at most delta.

    Each number of groups has its own smallest cut, for its chance falls; the largest of these is it.
    """
    level = _least(law, weights[0])
    *some, last = _together(weights)
    for weight, groups in (last, *some):  # most groups or one need most, as a rule: the rest is one look each

        def chance(cut: int, weight: int = weight, groups: int = groups) -> float:
            return _sum((groups, law.tail_within(cut, cut - weight + 1)))

        level = _smallest(chance, level, delta)
    return level


def _together(weights: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Yield the weight of a unit, and in how many groups; beyond 64 several numbers of groups are one."""
    first = 1
    while first <= len(weights):
        last = min(len(weights), first if first <= 64 else first + first // 32)
        yield weights[first - 1], last
        first = last + 1


def _least(law: NoiseLaw, each: int) -> int:
    """Return the smallest cut to try: windows are not empty, and at most every other draw is drawn again."""
    return max(each, law.half_width(_HALF))


def _sum(*chances: tuple[int, float]) -> float:
    return min(1.0, round_up(sum(times * chance for times, chance in chances)))


def _smallest(chance: Callable[[int], float], least: int, delta: Fraction) -> int:
    """Return the smallest cut from `least` up at which a chance, which falls, is at most delta."""
    allowed = lower_float(delta)
    return least_whole(lambda cut: chance(cut) <= allowed, least)
