"""Where keys stand in a TOML text. The standard reader gives values without places; errors need both.

The text must be one that `tomllib` accepts: this scan finds places, it does not judge.
"""

from __future__ import annotations

import re
import tomllib
from dataclasses import dataclass

from sfumato.catalog.server_address import shown_line
from sfumato.errors import ProjectRefused

__all__ = ["FilePosition", "Written", "positions"]

_Path = tuple[str | int, ...]
_TOKEN = re.compile(
    r"""
    (?P<nothing> [ \t]+ | \#[^\n]* )
    | "{3} (?: \\. | [^\\] )*? "{3,5}     # up to two quotes may stand before the closing ones
    | '{3} .*? '{3,5}
    | " (?: \\. | [^"\\] )* "
    | ' [^']* '
    | [^\s\[\]{},=."'\#]+
    | .
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True, slots=True)
class FilePosition:
    """A line and a column, from 1."""

    line: int
    column: int


@dataclass(frozen=True, slots=True)
class Written:
    """A project file as it was written: what an error needs to show the line at fault."""

    file: str
    lines: tuple[str, ...]
    places: dict[tuple[str | int, ...], FilePosition]

    @staticmethod
    def of(file: str, text: str) -> Written:
        """Return the text of a file with the places of its keys."""
        return Written(file, tuple(text.splitlines()), positions(text))

    def refusal(
        self, message: str, path: tuple[str | int, ...], *, code: str, hints: tuple[str, ...] = ()
    ) -> ProjectRefused:
        """Return an error about a key, with its line; with that of its table, if the key is missing."""
        key = ".".join(str(part) for part in path)
        while path and path not in self.places:
            path = path[:-1]
        place = self.places.get(path)
        return ProjectRefused(
            message,
            code=code,
            file=self.file,
            line=place.line if place else None,
            column=place.column if place else None,
            key=key or None,
            text=shown_line(self.lines[place.line - 1]) if place else None,
            hints=hints,
        )


def positions(text: str) -> dict[tuple[str | int, ...], FilePosition]:
    """Return the place of every table, key and element of an array, by its path from the root.

    >>> positions("[budget]\\nepsilon = 3\\n")[("budget", "epsilon")]
    FilePosition(line=2, column=1)
    """
    return _Scan(text.replace("\r\n", "\n")).run()


class _Scan:
    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens = [(one[0], one.start()) for one in _TOKEN.finditer(text) if not one["nothing"]]
        self.at = 0
        self.found: dict[_Path, FilePosition] = {}
        self.counts: dict[_Path, int] = {}  # elements so far of arrays of tables

    def run(self) -> dict[_Path, FilePosition]:
        table: _Path = ()
        while letter := self._peek():
            if letter == "\n":
                self.at += 1
            elif letter == "[":
                table = self._header()
            else:
                self._pair(table)
        return self.found

    def _peek(self) -> str:
        return self.tokens[self.at][0] if self.at < len(self.tokens) else ""

    def _note(self, path: _Path, start: int) -> None:
        line = self.text.count("\n", 0, start)
        self.found.setdefault(path, FilePosition(line + 1, start - self.text.rfind("\n", 0, start)))

    def _key(self) -> list[tuple[str, int]]:
        """Read a dotted key: its parts and where each begins."""
        parts = []
        while True:
            name, start = self.tokens[self.at]
            quoted = name[0] in "\"'"
            parts.append((str(tomllib.loads(f"x = {name}")["x"]) if quoted else name, start))
            self.at += 1
            if self._peek() != ".":
                return parts
            self.at += 1

    def _within(self, base: _Path, parts: list[tuple[str, int]]) -> _Path:
        """Note each part of a key; inside an array of tables, the newest one is meant."""
        path = base
        for name, start in parts:
            path = (*path, name)
            self._note(path, start)
            if path in self.counts:
                path = (*path, self.counts[path] - 1)
        return path

    def _header(self) -> _Path:
        start = self.tokens[self.at][1]
        many = self.text.startswith("[[", start)
        self.at += 2 if many else 1
        parts = self._key()
        self.at += 2 if many else 1
        if not many:
            return self._within((), parts)
        array = (*self._within((), parts[:-1]), parts[-1][0])
        self._note(array, parts[-1][1])
        number = self.counts.get(array, 0)
        self.counts[array] = number + 1
        self._note((*array, number), start)
        return (*array, number)

    def _pair(self, base: _Path) -> None:
        path = self._within(base, self._key())
        self.at += 1  # the equals sign
        self._value(path)

    def _value(self, path: _Path) -> None:
        opening, number = self._peek(), 0
        if opening not in ("[", "{"):
            while self._peek() not in ("", ",", "]", "}", "\n"):
                self.at += 1
            return
        self.at += 1
        while self._peek() not in ("", "]", "}"):
            if self._peek() in (",", "\n"):
                self.at += 1
            elif opening == "{":
                self._pair(path)
            else:
                self._note((*path, number), self.tokens[self.at][1])
                self._value((*path, number))
                number += 1
        self.at += 1
