"""Regular expressions as trees, for engines that do not have RE2.

A pattern is one of ours (`plan/patterns.py`): its letters, classes and places mean the same in every engine
once they are written out as sets of code points. What matches: `regexp_matches.py`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from sfumato.backends.letters import folded

__all__ = [
    "Alternatives",
    "Group",
    "LAST",
    "Place",
    "Ranges",
    "Repeat",
    "Sequence",
    "Set",
    "Tree",
    "WORD",
    "complement",
    "joined",
    "parsed",
]

Ranges = tuple[tuple[int, int], ...]
"""Code points: first and last of each range, in order."""

LAST = 0x10FFFF
"""The last code point."""

_DIGITS: Ranges = ((48, 57),)
WORD: Ranges = ((48, 57), (65, 90), (95, 95), (97, 122))
"""Letters of words, between which there is no word boundary."""
_SPACE: Ranges = ((9, 10), (12, 13), (32, 32))


@dataclass(frozen=True, slots=True)
class Set:
    """One code point of some."""

    ranges: Ranges


@dataclass(frozen=True, slots=True)
class Place:
    """A place between code points: ^, $ or b."""

    name: str


@dataclass(frozen=True, slots=True)
class Group:
    """Something in parentheses; a number if it is captured."""

    inside: Tree
    number: int | None


@dataclass(frozen=True, slots=True)
class Sequence:
    """One after the other."""

    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Alternatives:
    """One or the other; the first that leads to a match is preferred."""

    parts: tuple[Tree, ...]


@dataclass(frozen=True, slots=True)
class Repeat:
    """Something several times, as often as possible, or as seldom."""

    inside: Tree
    least: int
    most: int | None
    greedy: bool


Tree = Set | Place | Group | Sequence | Alternatives | Repeat
"""A pattern."""


def complement(ranges: Ranges) -> Ranges:
    """Return all other code points.

    >>> complement(((0, 9), (11, 0x10FFFF)))
    ((10, 10),)
    """
    found, start = [], 0
    for first, last in ranges:
        if first > start:
            found.append((start, first - 1))
        start = last + 1
    return (*found, *(((start, LAST),) if start <= LAST else ()))


def joined(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Return code points in order, each once.

    >>> joined([(5, 9), (1, 3), (4, 6)])
    ((1, 9),)
    """
    found: list[tuple[int, int]] = []
    for first, last in sorted(ranges):
        if found and first <= found[-1][1] + 1:
            found[-1] = (found[-1][0], max(last, found[-1][1]))
        else:
            found.append((first, last))
    return tuple(found)


# -- reading --------------------------------------------------------------------------------

_CLASSES = {"d": _DIGITS, "w": WORD, "s": _SPACE}
_CONTROLS = {"n": "\n", "t": "\t", "r": "\r"}


def parsed(pattern: str, *, any_case: bool = False) -> Tree:
    """Return the tree of a pattern that `plan/patterns.py` let pass."""
    return _Reader(pattern, any_case).choice()


class _Reader:
    def __init__(self, text: str, any_case: bool) -> None:
        self._text, self._place, self._any_case, self._groups = text, 0, any_case, 0

    def _next(self) -> str:
        return self._text[self._place : self._place + 1]

    def _take(self, word: str) -> bool:
        found = self._text.startswith(word, self._place)
        self._place += len(word) if found else 0
        return found

    def _letter(self) -> str:
        self._place += 1
        return self._text[self._place - 1]

    def choice(self) -> Tree:
        parts = [self._sequence()]
        while self._take("|"):
            parts.append(self._sequence())
        return parts[0] if len(parts) == 1 else Alternatives(tuple(parts))

    def _sequence(self) -> Tree:
        parts: list[Tree] = []
        while self._next() not in ("", "|", ")"):
            parts.append(self._repeated(self._one()))
        return parts[0] if len(parts) == 1 else Sequence(tuple(parts))

    def _one(self) -> Tree:
        letter = self._letter()
        if letter in "^$":
            return Place(letter)
        if letter == "(":
            number = None
            if not self._take("?:"):
                number = self._groups = self._groups + 1
            inside = self.choice()
            self._take(")")
            return Group(inside, number)
        if letter == "[":
            return Set(self._class())
        if letter == ".":
            return Set(complement(((10, 10),)))
        if letter == "\\" and self._take("b"):
            return Place("b")
        self._place -= 1
        ranges, plain = self._read_letter()
        return Set(self._folded(ranges) if plain else ranges)

    def _folded(self, ranges: Ranges) -> Ranges:
        return joined(folded(ranges)) if self._any_case else ranges

    def _read_letter(self) -> tuple[Ranges, bool]:
        """Return a letter's code point, or those of a class, and whether it is a letter."""
        letter = self._letter()
        if letter == "\\":
            letter = self._letter()
            if letter.lower() in _CLASSES:
                ranges = self._folded(_CLASSES[letter.lower()])
                return ranges if letter in _CLASSES else complement(ranges), False
            letter = _CONTROLS.get(letter, letter)
        return ((ord(letter), ord(letter)),), True

    def _class(self) -> Ranges:
        opposite = self._take("^")
        found: list[tuple[int, int]] = []
        while not self._take("]"):
            ranges, plain = self._read_letter()
            if self._next() == "-" and self._text[self._place + 1 : self._place + 2] not in ("", "]"):
                self._place += 1
                (last,), _ = self._read_letter()
                ranges = ((ranges[0][0], last[1]),)
            found += self._folded(ranges) if plain else ranges
        return complement(joined(found)) if opposite else joined(found)

    def _repeated(self, one: Tree) -> Tree:
        letter = self._next()
        if letter not in ("*", "+", "?", "{") or isinstance(one, Place):
            return one
        self._place += 1
        least, most = {"*": (0, None), "+": (1, None), "?": (0, 1)}.get(letter, (0, None))
        if letter == "{":
            inside, _, _ = self._text[self._place :].partition("}")
            self._place += len(inside) + 1
            low, comma, high = inside.partition(",")
            least, most = int(low), int(high) if high else None if comma else int(low)
        return Repeat(one, least, most, greedy=not self._take("?"))
