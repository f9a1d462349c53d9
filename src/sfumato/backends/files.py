"""Files that hold a table, as they were at one moment."""

from __future__ import annotations

import csv
import glob
import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from gzip import GzipFile
from pathlib import Path

from sfumato.errors import InvalidArgument

__all__ = ["Files", "ending", "found_files", "header_of"]

_ENDS = 1 << 16
_ENDINGS = {
    "parquet": (".parquet", ".pq"),
    "csv": (".csv", ".tsv", ".csv.gz", ".tsv.gz"),
    "duckdb": (".duckdb", ".ddb", ".db"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Files:
    """The files of a table: `stamps` are what the system says of them, `ends` hashes of their two ends.

    What is read whole when it is opened, a CSV file, has a `digest` of everything: later changes
    do not matter, for they are not seen.
    """

    paths: tuple[str, ...]
    stamps: tuple[tuple[int, ...], ...]
    ends: tuple[str, ...]
    digests: tuple[str, ...] | None

    @staticmethod
    def at(paths: tuple[str, ...], table: str, *, whole: bool = True) -> Files:
        """Look at files, before they are opened; not `whole`: at the ends of CSV files, too."""
        whole = whole and all(ending(path) == "csv" for path in paths)
        try:
            return Files(
                paths=paths,
                stamps=tuple(map(_stamp, paths)),
                ends=tuple(map(_ends, paths)),
                digests=tuple(map(_digest, paths)) if whole else None,
            )
        except OSError:
            raise InvalidArgument(
                f"the file of table `{table}` cannot be read",
                place=table,
                hints=("is it there, and may this user read it?",),
            ) from None

    @property
    def state(self) -> object:
        """What tells these files from an earlier or later version of them."""
        return (self.paths, self.digests or (self.stamps, self.ends))

    def unchanged(self, *, loaded: bool = False) -> bool:
        """Return whether they are still those that were looked at; `loaded`: until they were read whole.

        The system's clock has steps: a change within one of them shows in the ends of a file at best.
        """
        if self.digests is not None and not loaded:
            return True
        try:
            same = self.stamps == tuple(map(_stamp, self.paths))
            return same and self.ends == tuple(map(_ends, self.paths))
        except OSError:
            return False


def found_files(origin: str | Path | Sequence[str | Path], name: str) -> tuple[str, ...]:
    """Return the files of a table that paths and patterns name."""
    named = [origin] if isinstance(origin, str | Path) else list(origin)
    found: list[str] = []
    for one in named:
        text = os.path.abspath(os.path.expanduser(one))
        matches = [text] if os.path.isfile(text) else sorted(glob.glob(text, recursive=True))
        found += [path for path in matches if os.path.isfile(path)]
    if not found:
        listed = ", ".join(map(str, named))
        raise InvalidArgument(
            f"there is no file for table `{name}`: {listed}",
            place=listed,
            hints=("paths are relative to the project file, or to where you are",),
        )
    return tuple(found)


def ending(path: str) -> str:
    """Return the format that a name stands for: parquet, csv, duckdb, or whatever it ends in."""
    name = os.path.basename(path).lower()
    for known, endings in _ENDINGS.items():
        if name.endswith(endings):
            return known
    return name.rsplit(".", 1)[-1]


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


def header_of(path: Path, name: str) -> tuple[tuple[str, ...], str]:
    """Return the columns that the first line of a CSV file names, and what divides them."""
    compressed = path.name.lower().endswith(".gz")
    try:
        with GzipFile(path) if compressed else open(path, "rb") as file:
            first: str | None = file.readline(1_000_000).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError, EOFError):
        first = None
    if first is None:  # raised here: what a decoder stumbles over is kept in its error
        raise InvalidArgument(f"the file of table `{name}` cannot be read", place=name)
    tabs = ".tsv" in path.name.lower()
    mark = "\t" if tabs else max(",;|\t", key=first.count)
    names = tuple(cell.strip() for cell in next(csv.reader([first], delimiter=mark), []))
    if not names or not all(names):
        raise InvalidArgument(
            f"the first line of the file of table `{name}` names no columns",
            place=name,
            hints=("a CSV file needs a header",),
        )
    return names, mark
