"""Constants that steer a function: regular expressions, formats of dates, paddings, places of parts.

An engine refuses a bad one, or fails at it, only when it runs. So each is checked here, before anything is
charged, and what is not known for certain to be read by the engine is refused.

Regular expressions are a part of RE2: letters, `.`, `[..]`, `\\d \\w \\s` and their opposites, `\\b`, `^`,
`$`, groups, `|`, `* + ? {2,5}`. There is no `\\B`: RE2 finds that place between two bytes of one letter, too;
what is put there makes a text that is not valid, and the engine fail. RE2 reads a text in time that is linear
in it, whatever the text is; a pattern has at most 200 characters, and at most 250 parts once its repetitions
are written out, so that no value of one person can take much time or memory.
"""

from __future__ import annotations

from sfumato.catalog.kind import Value
from sfumato.plan.numbers import KindError

__all__ = [
    "check_extract",
    "check_format",
    "check_match",
    "check_padding",
    "check_regexp_replace",
    "check_split",
    "groups_of",
]

_MOST_PADDED = 2**16  # characters of what LPAD and RPAD make

_LONGEST = 200  # characters of a pattern or a format
_MOST_PARTS = 250  # of a pattern, repetitions written out
_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")
_CLASSES = frozenset("dDwWsS")
_SPECIAL = frozenset("()[]{}*+?|\\^$.")
_CONTROLS = frozenset("ntr")
_MOST_DEPTH = 20
_PLAIN = frozenset("aAbBcdfGgHhIjmMnpSTuUVwWxXyY%")  # what DuckDB has of strftime, time zones left out
_UNPADDED = frozenset("dmHIMSjy")


def check_format(constants: list[Value]) -> None:
    """Refuse a format of STRFTIME or STRPTIME that the engine does not read; time zones are none.

    >>> check_format(["%Y-%m"]), check_format(["%-d %B"])
    (None, None)
    """
    text = str(constants[0])
    if not text or len(text) > _LONGEST:
        raise KindError(f"takes a format of 1 to {_LONGEST} characters")
    place = 0
    while (place := text.find("%", place)) >= 0:
        unpadded = text[place + 1 : place + 2] == "-"
        letter = text[place + 1 + unpadded : place + 2 + unpadded]
        if letter not in (_UNPADDED if unpadded else _PLAIN) or not letter:
            raise KindError(f"does not know `{text[place : place + 2 + unpadded]}` in a format of dates")
        place += 2 + unpadded


def check_split(constants: list[Value]) -> None:
    """Refuse what is not the number of a part."""
    if not isinstance(constants[1], int) or abs(constants[1]) >= 2**31:
        raise KindError("takes the number of a part")


def check_padding(constants: list[Value]) -> None:
    """Refuse a length that is no length of ours, and nothing to fill it with."""
    length, padding = constants
    if not isinstance(length, int) or not 0 <= length <= _MOST_PADDED or not padding:
        raise KindError(f"takes a length of 0 to {_MOST_PADDED:,}, and a text to fill it with")


def check_match(constants: list[Value]) -> None:
    """Refuse a pattern, or options, of REGEXP_MATCHES."""
    groups_of(str(constants[0]))
    _check_options(str((*constants, "")[1]), "ci")


def check_extract(constants: list[Value]) -> None:
    """Refuse a pattern, or the number of a group that it does not have."""
    groups, wanted = groups_of(str(constants[0])), (*constants, 0)[1]
    if not isinstance(wanted, int) or not 0 <= wanted <= min(groups, 9):
        raise KindError("takes the number of a group of the pattern, up to 9")


def check_regexp_replace(constants: list[Value]) -> None:
    """Refuse a pattern, a replacement that refers to groups, or options."""
    groups_of(str(constants[0]))
    _check_options(str((*constants, "")[2]), "cgi")
    if "\\" in str(constants[1]):
        raise KindError("takes a replacement without a backslash")


def _check_options(text: str, known: str) -> None:
    """Refuse letters of a function's options that are not known, or that stand there twice."""
    if any(letter not in known for letter in text) or len(set(text)) < len(text):
        raise KindError(f"takes options of the letters {', '.join(known)}")


def groups_of(pattern: str) -> int:
    """Return how many groups a regular expression captures; raise `KindError` if it is not one of ours.

    >>> groups_of("^(a|b)+(?:c{2,3})[^x-z]*\\\\.$")
    1
    """
    if len(pattern) > _LONGEST:
        raise KindError(f"takes a pattern of at most {_LONGEST} characters")
    reader = _Pattern(pattern)
    parts = reader.alternatives(0)
    if reader.place < len(pattern):
        raise KindError(f"cannot read `{pattern[reader.place :]}` in a pattern")
    if parts > _MOST_PARTS:
        raise KindError(f"takes a pattern of at most {_MOST_PARTS} parts, its repetitions written out")
    return reader.groups


class _Pattern:
    """Reads a pattern from left to right; each method returns how many parts it is."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.place = 0
        self.groups = 0

    def _next(self) -> str:
        return self.text[self.place : self.place + 1]

    def _take(self, word: str) -> bool:
        found = self.text.startswith(word, self.place)
        self.place += len(word) if found else 0
        return found

    def _refuse(self) -> KindError:
        rest = self.text[self.place :] or self.text
        return KindError(f"cannot read `{rest}` in a pattern")

    def alternatives(self, depth: int) -> int:
        """Read what | separates."""
        if depth > _MOST_DEPTH:
            raise KindError("takes a pattern whose groups are not nested so deeply")
        parts = self._sequence(depth)
        while self._take("|"):
            parts += 1 + self._sequence(depth)
        return parts

    def _sequence(self, depth: int) -> int:
        parts = 0
        while self._next() not in ("", "|", ")"):
            one = self._one(depth)
            parts += one * (self._times() if one else 1)
        return parts

    def _one(self, depth: int) -> int:
        """Read one part; 0 for a place, which cannot be repeated."""
        letter = self._next()
        if letter in ("^", "$"):
            self.place += 1
            if self._next() in ("*", "+", "?", "{"):
                raise self._refuse()
            return 0
        if self._take("("):
            if not self._take("?:"):
                if self._next() == "?":
                    raise self._refuse()
                self.groups += 1
            parts = self.alternatives(depth + 1)
            if not self._take(")"):
                raise self._refuse()
            return parts + 1
        if self._take("["):
            return self._class()
        if letter == "\\":
            if self.text.startswith("b", self.place + 1):
                self.place += 2
                if self._next() in ("*", "+", "?", "{"):
                    raise self._refuse()
                return 0
            self._letter()
            return 1
        if letter in _SPECIAL - {"."}:
            raise self._refuse()
        self.place += 1
        return 1

    def _letter(self) -> str:
        """Read a letter or what is escaped; return the letter, nothing for a class of letters."""
        if not self._take("\\"):
            self.place += 1
            return self.text[self.place - 1]
        escaped = self._next()
        if not escaped or escaped not in _PUNCTUATION | _CLASSES | _CONTROLS:
            raise self._refuse()
        self.place += 1
        return "" if escaped in _CLASSES else {"n": "\n", "t": "\t", "r": "\r"}.get(escaped, escaped)

    def _class(self) -> int:
        """Read a class of letters, behind its opening bracket."""
        self._take("^")
        while True:
            if self._next() in ("", "[", "]"):
                raise self._refuse()
            first = self._letter()
            if self._next() == "-" and self.text[self.place + 1 : self.place + 2] not in ("", "]"):
                self.place += 1
                last = "" if self._next() == "[" else self._letter()
                if not first or not last or last < first:
                    raise self._refuse()
            if self._take("]"):
                return 1

    def _times(self) -> int:
        """Read how often the part before is repeated; an open end counts once more."""
        times = 1
        if self._next() in ("*", "+", "?"):
            self.place += 1
        elif self._take("{"):
            least, _, most = (inside := self.text[self.place :].partition("}")[0]).partition(",")
            numbers = [number for number in (least, most) if number]
            fits = all(number.isascii() and number.isdecimal() and len(number) < 4 for number in numbers)
            if (
                not least
                or not fits
                or (most and int(most) < int(least))
                or "}" not in self.text[self.place :]
            ):
                raise self._refuse()
            self.place += len(inside) + 1
            times = max(int(number) for number in numbers) + ("," in inside and not most)
        else:
            return 1
        self._take("?")
        if self._next() in ("*", "+", "?", "{"):
            raise self._refuse()
        return max(1, times)
