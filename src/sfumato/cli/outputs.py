"""Where what a command shows goes: standard output, or a file, whole or not at all.

Nothing lands on what it was made from: a ledger, its key, a table, a project file. A regular file is
replaced by a whole new one; what is there as a link, a pipe or a device is written through, and stays.
"""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from sfumato.cli.screen import silence
from sfumato.errors import InvalidArgument

if TYPE_CHECKING:
    from sfumato.catalog import Project

__all__ = ["PROJECT_FILE", "can_write", "check_apart", "kept", "write", "writing"]

PROJECT_FILE = "the project file"
_PAID = "it was paid for and is kept: `sfumato ledger history`, then `sfumato ledger show NUMBER`"


def kept(project: Project | None, ledger: str | os.PathLike[str] | None = None) -> dict[str, str]:
    """Return the files and folders that no output may land on or in, and what each of them is."""
    from sfumato.backends.files import files_there
    from sfumato.catalog import is_address
    from sfumato.continual.state import states_of
    from sfumato.ledger.open_reservations import files_of

    found: dict[str, str] = {}
    for path in (ledger, None if project is None else project.ledger):
        if path is not None and not is_address(str(path)):
            found |= dict.fromkeys(map(str, files_of(Path(path))), "the ledger, or belongs to it")
            found[str(states_of(Path(os.path.realpath(path))))] = "where the states of streams are"
    if project is not None:
        found[project.written.file] = PROJECT_FILE
        for table in project.tables:
            found |= dict.fromkeys(files_there(table.paths), f"the data of table `{table.name}`")
    return found


def check_apart(path: str | os.PathLike[str], keep: dict[str, str], place: str) -> None:
    """Refuse to write over a file that must stay, or into a folder that is not for answers."""
    for one, what in keep.items():
        if _same(path, one) or _same(os.path.dirname(os.path.realpath(path)), one):
            raise InvalidArgument(f"{path} is {what}", place=place, hints=("name another file",))


def _same(one: str | os.PathLike[str], other: str | os.PathLike[str]) -> bool:
    if os.path.realpath(one) == os.path.realpath(other):
        return True
    with suppress(OSError):
        return os.path.samefile(one, other)
    return False


def can_write(
    output: str | None, keep: dict[str, str], *, style: str = "table", place: str = "--output"
) -> None:
    """Refuse an output that cannot be written: before anything is spent on what would go there."""
    if output is None:
        if style == "parquet" and sys.stdout.isatty():
            raise InvalidArgument(
                "Parquet is not for a terminal",
                place="--output",
                hints=("name a file: --output answer.parquet",),
            )
        return
    check_apart(output, keep, place)
    folder = os.path.dirname(os.path.realpath(output))
    there = os.path.isdir(folder) and os.access(folder, os.W_OK)
    if os.path.isdir(output) or not (os.access(output, os.W_OK) if _through(output) else there):
        raise InvalidArgument(
            "what is asked for cannot be written there",
            place=place,
            hints=("name a file in a folder that exists",),
        )


def write(
    data: bytes, output: str | None, *, paid: bool = True, place: str = "--output", private: bool = False
) -> None:
    """Write an answer to standard output, or to a file: whole, or not at all."""
    with writing(output, paid=paid, place=place, private=private) as file:
        file.write(data)


@contextmanager
def writing(
    output: str | None, *, paid: bool = True, place: str = "--output", private: bool = False
) -> Iterator[BinaryIO]:
    """Open standard output or a file to write to; a failure says whether what is lost was paid for.

    A new file that is `private` can be read by its owner alone.
    """
    try:
        if output is None:
            yield sys.stdout.buffer
            sys.stdout.flush()
        elif _through(output):
            with open(output, "wb") as file:
                yield file
        else:
            with _replaced(Path(os.path.realpath(output)), 0o600 if private else 0o666) as file:
                yield file
    except BrokenPipeError:  # the reader has left: the program ends, and it is no failure
        raise
    except OSError as error:
        if output is None:
            silence()
        raise InvalidArgument(
            f"the answer could not be written: {error.strerror or type(error).__name__}",
            place="standard output" if output is None else place,
            hints=(_PAID,) if paid else (),
        ) from None


def _through(output: str) -> bool:
    """Return whether there is something that is written through: a pipe or a device."""
    with suppress(OSError):
        return not stat.S_ISREG(os.stat(output).st_mode)
    return False


@contextmanager
def _replaced(target: Path, mode: int) -> Iterator[BinaryIO]:
    """Write a new file beside another, and put it in its place when it is complete."""
    draft = target.with_name(f".sfumato-{os.urandom(8).hex()}")
    try:
        descriptor = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        with os.fdopen(descriptor, "wb") as file:
            with suppress(FileNotFoundError):
                os.fchmod(descriptor, stat.S_IMODE(target.stat().st_mode))
            yield file
        os.replace(draft, target)
    finally:
        draft.unlink(missing_ok=True)
