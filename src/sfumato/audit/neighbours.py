"""Neighbours: pairs of inputs that differ by one unit, proposed because mechanisms have failed on their like.

Nothing here is random: the same schema has the same neighbours. No real data is read.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

from sfumato.audit.black_box import Pair
from sfumato.core.arguments import Number, count, exact, positive
from sfumato.errors import InvalidArgument

__all__ = ["answers", "numbers"]

_LONGEST = 40_000  # people in a trap
_WORDS = (8, 16, 32)  # bits of integers that may run over


def numbers(lower: Number, upper: Number) -> tuple[Pair, ...]:
    """Propose lists of numbers between bounds, and the same with one number more.

    Nobody and somebody; values at, inside and far beyond the bounds; NaN and infinities; ties at the
    median; a crowd whose range one more person changes; sums at which floats round the other way (for
    32-bit floats: 64-bit ones need 2^26 people) and at which integers of 8, 16 and 32 bits run over.

    >>> numbers(0, 1)[0]
    Pair(name='nobody and one person at the upper bound', left=[], right=[1.0])
    """
    low, high = float(exact(lower, "lower")), float(exact(upper, "upper"))
    if not low < high:
        raise InvalidArgument("the lower bound must be below the upper one", place="lower")
    return tuple(_numbers(low, high))


def _numbers(low: float, high: float) -> Iterator[Pair]:
    middle = (low + high) / 2
    far = max(abs(low), abs(high), 1.0) * 1e6
    crowd = [low + (high - low) * (7 * place % 11) / 10 for place in range(11)]
    for name, base in (("nobody", []), ("a crowd", crowd), ("a crowd at the lower bound", [low] * 9)):
        for what, value in (
            ("one person at the upper bound", high),
            ("one person at the lower bound", low),
            ("one person far above the bounds", far),
            ("one person far below the bounds", -far),
        ):
            yield Pair(name=f"{name} and {what}", left=list(base), right=[*base, value])
    for what, value in (("NaN", math.nan), ("infinity", math.inf), ("minus infinity", -math.inf)):
        yield Pair(name=f"a crowd and one person with {what}", left=crowd, right=[*crowd, value])
    for name, base in (
        ("ties at the median, and one person more", [low] * 4 + [middle] * 4 + [high] * 4),
        ("two halves, and one person between them", [low] * 5 + [high] * 5),
        ("the edge of a tie, and one person more", [low] * 6 + [high] * 4),
    ):
        yield Pair(name=name, left=base, right=[*base, high])
    yield from _rounding(low, high)
    yield from _running_over(high)


def _rounding(low: float, high: float) -> Iterator[Pair]:
    """Sums that one person lifts over a power of two, from where every further number rounds up.

    Theorem: let a 32-bit sum stand at 2^k - upper, and numbers of a bit more than half a unit in the last
    place of 2^k follow. Below 2^k each adds about itself; above, each is rounded up to twice that. One
    person at the upper bound, first in the list, so moves the sum by twice the upper bound (Casacuberta,
    Shoemate, Vadhan and Wagaman 2022 have this and worse).
    """
    if low > 0 or high <= 0:
        return
    size = 2.0 ** math.ceil(math.log2(high)) * 4096  # reached by some four thousand people at the bound
    people = math.floor(size / high) - 1
    start = [high] * people
    rest = size - high - people * high
    small = size * 2.0**-24 * (1 + 2.0**-10)
    follow = [small] * math.ceil(high / small)
    if people + len(follow) <= _LONGEST:
        base = [*start, rest, *follow]
        yield Pair(
            name="a sum at which 32-bit floats round up, and one person", left=base, right=[high, *base]
        )


def _running_over(high: float) -> Iterator[Pair]:
    for bits in _WORDS:
        people = math.floor((2 ** (bits - 1) - 1) / high) if high > 0 else _LONGEST
        if 0 < people < _LONGEST:
            base = [high] * people
            yield Pair(
                name=f"a sum at which {bits}-bit integers run over, and one person",
                left=base,
                right=[*base, high],
            )


def answers(size: int, *, step: Number = 1, level: Number = 0) -> tuple[Pair, ...]:
    """Propose answers to `size` queries around a level, and what one person may make of them.

    All up, all down, the first half up and the second down, every other one, one alone, the last against
    all others: the patterns that break sparse vectors and private choices.

    >>> [pair.right for pair in answers(4)][:3]
    [[1, 1, 1, 1], [-1, -1, -1, -1], [1, 1, -1, -1]]
    """
    many = count(size, "size")
    base, move = exact(level, "level"), positive(step, "step")
    half = many // 2
    patterns = {
        "all answers up": [1] * many,
        "all answers down": [-1] * many,
        "the first half up, the second down": [1] * half + [-1] * (many - half),
        "every other answer up, the rest down": [1 if place % 2 else -1 for place in range(many)],
        "one answer up": [1] + [0] * (many - 1),
        "one answer up, all others down": [1] + [-1] * (many - 1),
        "one answer down, all others up": [-1] + [1] * (many - 1),
    }
    same, up, down = (_plain(base + move * sign) for sign in (0, 1, -1))
    to = {0: same, 1: up, -1: down}
    pairs = [
        Pair(name=name, left=[same] * many, right=[to[sign] for sign in signs])
        for name, signs in patterns.items()
    ]
    left, right = [same] * (many - 1) + [up], [up] * (many - 1) + [same]
    return (*pairs, Pair(name="all but the last up, the last down", left=left, right=right))


def _plain(number: Fraction) -> int | float:
    return int(number) if number.denominator == 1 else float(number)
