"""Files that hold a table, as they were at one moment."""

from __future__ import annotations

import csv
import glob
import hashlib
import os
import time
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from gzip import GzipFile
from pathlib import Path

from sfumato.catalog.table import Field
from sfumato.errors import InvalidArgument

__all__ = [
    "Files",
    "ending",
    "files_there",
    "found_files",
    "headers_of",
    "path_identity",
    "refuse_drift",
    "refuse_repeated",
    "state_here",
]

_ENDS = 1 << 16
_STEP, _COARSE = 20_000_000, 2_000_000_000  # of a file system's clock, in nanoseconds
_ENDINGS = {
    "parquet": (".parquet", ".pq"),
    "csv": (".csv", ".tsv", ".csv.gz", ".tsv.gz"),
    "duckdb": (".duckdb", ".ddb", ".db"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The files of a table: `stamps` are what the system says of them, `ends` hashes of their two ends.

    What is read whole when it is opened, a CSV file, has a digest of everything: later changes are not seen.
    """

    paths: tuple[str, ...]
    stamps: tuple[tuple[int, ...], ...]
    ends: tuple[str, ...]
    digests: tuple[str, ...] | None

    @staticmethod
    def at(paths: tuple[str, ...], table: str, *, whole: bool = True) -> Files:
        """Look at files, before they are opened; not `whole`: at the ends of CSV files, too.

        A DuckDB file with commits in files beside it is refused: the engine would read them, too.

        Theorem: a change after this look changes a stamp, unless it is made through memory that is mapped.
        Assumes: the system's clock is not set back, and has steps of `_STEP` at most, or of `_COARSE` where
        its times are whole seconds. No link or folder on the path leads elsewhere and back between two looks.
        Proof: the last change of each file lies more than a step back (`_wait_a_step`).
        """
        whole = whole and all(ending(path) == "csv" for path in paths)
        if _has_log(paths):
            raise InvalidArgument(
                f"the DuckDB file of table `{table}` has changes that are committed and not yet in the file",
                place=table,
                hints=(
                    "a program that writes it was stopped, or still runs: its changes are in a `.wal` file",
                    "open the file once with DuckDB for writing and close it: then the file has them",
                ),
            )
        try:
            for path in paths:
                _wait_a_step(path)
            return Files(
                paths=paths,
                stamps=tuple(map(_stamp, paths)),
                ends=tuple(map(_ends, paths)),
                digests=tuple(map(_digest, paths)) if whole else None,
            )
        except OSError:
            pass
        raise InvalidArgument(
            f"the file of table `{table}` cannot be read",
            place=table,
            hints=("is it there, and may this user read it?",),
        )

    @property
    def state(self) -> object:
        """What tells these files from an earlier or later version of them."""
        return (self.paths, self.digests or (self.stamps, self.ends))

    @property
    def states(self) -> tuple[object, ...]:
        """What tells each of these files from an earlier or later version of it."""
        return tuple(zip(self.paths, self.digests or zip(self.stamps, self.ends, strict=True), strict=True))

    def identities(self, fields: tuple[Field, ...]) -> tuple[str, ...]:
        """Return texts that identify files that hold a table of these columns, under whatever name.

        Two facts of a file: its path, links followed, and a hash of its length, its beginning and its end; a
        renamed or copied file has the second, a file with new rows the first. Tables of one DuckDB file are
        told apart by their columns. The ledger keeps keyed hashes of these texts only.
        """
        pairs = zip(self.paths, self.ends, strict=True)
        found = [text for path, ends in pairs for text in (path_identity(path), f"ends {ends}")]
        if any(ending(path) == "duckdb" for path in self.paths):
            columns = repr([(field.name, field.kind.value) for field in fields])
            found = [f"{text} table {columns}" for text in found]
        return tuple(found)

    def unchanged(self, *, loaded: bool = False) -> bool:
        """Return whether they are still those that were looked at; `loaded`: until they were read whole."""
        if self.digests is not None and not loaded:
            return True
        try:
            same = self.stamps == tuple(map(_stamp, self.paths)) and not _has_log(self.paths)
            return same and self.ends == tuple(map(_ends, self.paths))
        except OSError:
            return False


def path_identity(path: str) -> str:
    """Return the text that identifies a file by where it lies."""
    return f"path {os.path.realpath(path)}"


def state_here(path: str) -> tuple[object, ...] | None:
    """Return what tells a file from an earlier or later version of it; None: it is not on this machine."""
    try:
        _wait_a_step(path)
        return (_stamp(path), _ends(path))
    except OSError:
        return None


def found_files(origin: str | Path | Sequence[str | Path], name: str) -> tuple[str, ...]:
    """Return the files of a table that paths and patterns name; refuse one that names none, or a file twice.

    Where each row is a unit by itself, a file that is read twice makes two units of each person.
    """
    found = [(one, _matching(one)) for one in _listed(origin)]
    missing = [one for one, paths in found if not paths]
    if missing or not found:
        listed = ", ".join(map(str, missing))
        raise InvalidArgument(
            f"there is no file for table `{name}`: {listed}",
            place=listed,
            hints=("paths are relative to the project file, or to where you are",),
        )
    files = tuple(path for _, paths in found for path in paths)
    refuse_repeated(name, files)
    return files


def files_there(origin: str | Path | Sequence[str | Path]) -> tuple[str, ...]:
    """Return the files that paths and patterns name, as far as they are there."""
    return tuple(path for one in _listed(origin) for path in _matching(one))


def _listed(origin: str | Path | Sequence[str | Path]) -> list[str | Path]:
    return [origin] if isinstance(origin, str | Path) else list(origin)


def _matching(named: str | Path) -> list[str]:
    """Return the files that a path or a pattern names, each path once."""
    text = os.path.abspath(os.path.expanduser(named))
    matches = {text} if os.path.isfile(text) else set(glob.glob(text, recursive=True))
    return sorted(path for path in matches if os.path.isfile(path))


def refuse_repeated(name: str, paths: Sequence[str]) -> None:
    """Refuse files of a table two of which are one file, links followed: each row of it would count twice."""
    seen: set[tuple[int, int]] = set()
    for place, path in enumerate(paths):
        try:
            known = os.stat(path)
        except OSError:  # what cannot be read is refused where it is opened
            continue
        if (known.st_dev, known.st_ino) in seen:
            raise InvalidArgument(
                f"file {place + 1} of table `{name}` is one of its other files: its rows would count twice",
                place=name,
                hints=("name each file once; a link is the file that it leads to",),
            )
        seen.add((known.st_dev, known.st_ino))


def ending(path: str) -> str:
    """Return the format that a name stands for: parquet, csv, duckdb, or whatever it ends in."""
    name = os.path.basename(path).lower()
    for known, endings in _ENDINGS.items():
        if name.endswith(endings):
            return known
    return name.rsplit(".", 1)[-1]


def _has_log(paths: tuple[str, ...]) -> bool:
    """Return whether a DuckDB file has a log beside it: `.wal`, or while it is merged `.wal.checkpoint`.

    The engine looks for it beside the file that a link leads to. It puts `.wal` at the end of the path, or
    before the first question mark in it.
    """
    places = {place for path in paths if ending(path) == "duckdb" for place in (path, os.path.realpath(path))}
    divided = (map(glob.escape, place.partition("?")) for place in places)
    return any(glob.glob(f"{before}.wal*{mark}{after}") for before, mark, after in divided)


def _wait_a_step(path: str) -> None:
    """Wait until a later change has a later time: a file that was just written waits for the next step."""
    changed = os.stat(path).st_ctime_ns
    left = (_COARSE if changed % 1_000_000_000 == 0 else _STEP) - (time.time_ns() - changed)
    if 0 < left <= _COARSE:  # more is a clock that went back: what comes then has another time
        time.sleep(left / 1e9)


def _stamp(path: str) -> tuple[int, ...]:
    known = os.stat(path)
    return (known.st_dev, known.st_ino, known.st_size, known.st_mtime_ns, known.st_ctime_ns)


def _ends(path: str) -> str:
    with open(path, "rb") as file:
        size = os.fstat(file.fileno()).st_size
        beginning = file.read(_ENDS)
        file.seek(max(0, size - _ENDS))
        return hashlib.sha256(b"%d\n" % size + beginning + b"\n" + file.read(_ENDS)).hexdigest()


def _digest(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def refuse_drift(name: str, place: int, first: Mapping[str, str], found: Mapping[str, str]) -> None:
    """Refuse a file of a table whose columns or types are not those of the first file."""
    differing = first.keys() ^ found.keys() or {one for one in first if first[one] != found[one]}
    if not differing:
        return
    column = min(differing)
    if column in found and column in first:
        what = f"has `{column}` as {found[column]}, and the first file as {first[column]}"
    else:
        what = f"{'lacks' if column in first else 'has'} the column `{column}`"
    raise InvalidArgument(
        f"the files of table `{name}` differ: file {place + 1} {what}",
        place=f"{name}.{column}",
        hints=("write all files with the same columns and types", "or open them as tables of their own"),
    )


def headers_of(paths: Sequence[str], name: str) -> list[tuple[tuple[str, ...], str]]:
    """Return, for each CSV file of a table, the columns that its first line names, and what divides them.

    All files name the same columns, in any order. Another first line is refused without its words: in a file
    that has no header they are somebody's values.
    """
    found = [_header_of(Path(path), name) for path in paths]
    names = found[0][0]
    for place, (others, _) in enumerate(found):
        if sorted(others) != sorted(names):
            lacking = [column for column in names if column not in others]
            said = f"the first line of file {place + 1} of table `{name}` is not the header of the first file"
            raise InvalidArgument(
                f"{said}: it lacks `{lacking[0]}`" if lacking else said,
                place=name,
                hints=("every file needs a header with the same columns, in any order",),
            )
    return found


def _header_of(path: Path, name: str) -> tuple[tuple[str, ...], str]:
    """Return the columns that the first line of a CSV file names, and what divides them.

    The first one may have no name: it is the index of a data frame, and nobody can ask about it. A line that
    may hold somebody's values is refused, and not shown: a header has no numbers.
    """
    first = _first_line(path)
    if first is None:
        raise InvalidArgument(
            f"the file of table `{name}` cannot be read", place=name, hints=("is it text in UTF-8?",)
        )
    mark = "\t" if ".tsv" in path.name.lower() else max(",;|\t", key=first.count)
    names = _cells(first, mark)
    reason, hint = None, "a CSV file needs a header: a name for every column, each once"
    if not any(names):
        reason = "names no columns"
    elif not all(names[1:]):
        reason = "has a column without a name"
    elif len({one.lower() for one in names}) != len(names):
        reason = "names two columns alike"
    elif any(map(_is_number, names)):
        reason = "has a number where a header has a name"
    if reason is not None:
        raise InvalidArgument(
            f"the first line of the file of table `{name}` {reason}", place=name, hints=(hint,)
        )
    return names, mark


def _first_line(path: Path) -> str | None:
    """Return the first line of a file, None if it cannot be read; what a decoder stumbles over stays here."""
    try:
        with GzipFile(path) if path.name.lower().endswith(".gz") else open(path, "rb") as file:
            return file.readline(1_000_000).decode("utf-8-sig").rstrip("\r\n")
    except (OSError, UnicodeDecodeError, EOFError, zlib.error):
        return None


def _cells(line: str, mark: str) -> tuple[str, ...]:
    """Return what a line divides into; nothing if its quotes do not close, or lines end in another way."""
    if line.count('"') % 2:
        return ()
    try:
        return tuple(cell.strip() for cell in next(csv.reader([line], delimiter=mark), []))
    except csv.Error:
        return ()


def _is_number(text: str) -> bool:
    try:
        return float(text) is not None
    except ValueError:
        return False
