"""What regular expressions match, whatever the text is: automata over all texts at once.

Whether a text matches at all is one question for all engines, with one answer. *What* matches is not: RE2
prefers the first alternative, POSIX the longest match. `extent` decides whether RE2's match is always the
longest, or always the shortest, and `certain` whether what a group captures follows from what matches. Where
neither is known, an engine of the other kind refuses the pattern.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import Enum

from sfumato.backends.regexps import (
    LAST,
    WORD,
    Alternatives,
    Group,
    Place,
    Ranges,
    Repeat,
    Sequence,
    Set,
    Tree,
)

__all__ = ["Extent", "certain", "empty", "extent"]

_MOST_STEPS = 20_000  # of an automaton, before it is given up


class Extent(Enum):
    """Which match of those that begin at one place is RE2's, whatever the text is."""

    LONGEST = "longest"
    SHORTEST = "shortest"
    UNKNOWN = "unknown"


@dataclass(slots=True)
class _State:
    """Reads a code point of `ranges`, or passes a place, or goes on to several, the preferred one first."""

    after: list[int]
    ranges: Ranges | None = None
    place: str | None = None
    marked: bool = False  # inside the group in question


class _Automaton:
    """The states of a pattern, from `start` to `end`; repetitions are written out."""

    def __init__(self, tree: Tree, group: int | None = None) -> None:
        self.states = [_State([])]
        self.end, self._group, self._marked, self.repeated = 0, group, False, False
        self.start = self._built(tree, 0, False)
        cuts = {0, LAST + 1, *(end for first, last in WORD for end in (first, last + 1))}
        for state in self.states:
            cuts.update(end for first, last in state.ranges or () for end in (first, last + 1))
        self.letters = sorted(cuts)[:-1]  # one of each kind of letters that the pattern tells apart

    def _added(self, after: list[int], ranges: Ranges | None = None, place: str | None = None) -> int:
        self.states.append(_State(after, ranges, place, self._marked))
        return len(self.states) - 1

    def _built(self, tree: Tree, after: int, loops: bool) -> int:
        """Return the state from which a tree is read, and then `after`."""
        match tree:
            case Set(ranges=ranges):
                return self._added([after], ranges)
            case Place(name=name):
                return self._added([after], place=name)
            case Sequence(parts=parts):
                for part in reversed(parts):
                    after = self._built(part, after, loops)
                return after
            case Alternatives(parts=parts):
                return self._added([self._built(part, after, loops) for part in parts])
            case Group(inside=inside, number=number):
                if number is None or number != self._group:
                    return self._built(inside, after, loops)
                self._marked, self.repeated = True, loops
                start = self._built(inside, after, loops)
                self._marked = False
                return start
            case Repeat(inside=inside, least=least, most=most, greedy=greedy):
                loops = loops or most is None or most > 1
                if most is None:
                    again = self._added([])
                    start = self._built(inside, again, loops)
                    self.states[again].after = [start, after] if greedy else [after, start]
                    if least:  # x{n,} is x{n-1} x+
                        after, least = start, least - 1
                    else:  # x* is (x+)?
                        after = self._added([start, after] if greedy else [after, start])
                else:
                    end = after
                    for _ in range(most - least):
                        start = self._built(inside, after, loops)
                        after = self._added([start, end] if greedy else [end, start])
                for _ in range(least):
                    after = self._built(inside, after, loops)
                return after

    def reached(self, starts: Iterable[int], before: int | None, following: int | None) -> Iterator[int]:
        """Yield the reading states and the end that are reached without reading, the preferred ones first."""
        seen: set[int] = set()
        waiting = list(reversed(list(starts)))
        while waiting:
            one = waiting.pop()
            if one in seen:
                continue
            seen.add(one)
            state = self.states[one]
            if one == self.end or state.ranges is not None:
                yield one
            elif state.place is None or _there(state.place, before, following):
                waiting.extend(reversed(state.after))

    def read(self, states: Iterable[int], letter: int) -> Iterator[int]:
        """Yield where states go that read a letter."""
        for one in states:
            ranges = self.states[one].ranges
            if ranges and any(first <= letter <= last for first, last in ranges):
                yield self.states[one].after[0]


def _word(letter: int | None) -> bool:
    return letter is not None and any(first <= letter <= last for first, last in WORD)


def _there(place: str, before: int | None, following: int | None) -> bool:
    if place in "^$":
        return (before if place == "^" else following) is None
    return _word(before) != _word(following)


_BEFORE = (None, ord("a"), ord(" "))  # what may stand before a match


def extent(tree: Tree) -> Extent:
    """Return which match RE2 has, of those that begin where its match does."""
    automaton = _Automaton(tree)
    longest = shortest = True
    waiting: list[tuple[tuple[int, ...], frozenset[int], int | None, bool]]
    waiting = [((automaton.start,), frozenset((automaton.start,)), before, False) for before in _BEFORE]
    seen = set(waiting)
    steps = 0
    while waiting and (longest or shortest):
        preferred, possible, before, matched = waiting.pop()
        for letter in (*automaton.letters, None):
            steps += 1
            if steps > _MOST_STEPS:
                return Extent.UNKNOWN
            first = list(automaton.reached(preferred, before, letter))
            all_of_them = set(automaton.reached(possible, before, letter))
            ends, found = automaton.end in first, automaton.end in all_of_them
            kept = first[: first.index(automaton.end)] if ends else first
            longest &= ends == found
            shortest &= not (found and not matched) or (ends and not kept)
            if letter is None:
                continue
            following = (
                tuple(dict.fromkeys(automaton.read(kept, letter))),
                frozenset(automaton.read(all_of_them, letter)),
                ord("a") if _word(letter) else ord(" "),
                matched or found,
            )
            if following[1] and following not in seen:
                seen.add(following)
                waiting.append(following)
    return Extent.LONGEST if longest else Extent.SHORTEST if shortest else Extent.UNKNOWN


def empty(tree: Tree) -> bool:
    """Return whether a pattern may match nothing at all, somewhere."""
    automaton = _Automaton(tree)
    around = (None, ord("a"), ord(" "))
    return any(
        automaton.end in automaton.reached((automaton.start,), before, following)
        for before in around
        for following in around
    )


def certain(tree: Tree, group: int) -> bool:
    """Return whether what a group captures follows from the whole match: no match can be read in two ways."""
    automaton = _Automaton(tree, group)
    if automaton.repeated:
        return False
    waiting = [(automaton.start, automaton.start, before, False) for before in _BEFORE]
    seen = set(waiting)
    steps = 0
    while waiting:
        one, other, before, apart = waiting.pop()
        for letter in (*automaton.letters, None):
            ones = list(automaton.reached((one,), before, letter))
            others = list(automaton.reached((other,), before, letter))
            steps += len(ones) * len(others)
            if steps > 10 * _MOST_STEPS or (apart and automaton.end in ones and automaton.end in others):
                return False
            if letter is None:
                continue
            for first in ones:
                for second in others:
                    for after in automaton.read((first,), letter):
                        for also in automaton.read((second,), letter):
                            differs = automaton.states[first].marked != automaton.states[second].marked
                            word = ord("a") if _word(letter) else ord(" ")
                            found = (after, also, word, apart or differs)
                            if found not in seen:
                                seen.add(found)
                                waiting.append(found)
    return True
