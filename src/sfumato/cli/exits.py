"""How a command ends: exit codes that scripts can rely on, and errors as text or as JSON."""

from __future__ import annotations

import errno
import json
import os
import shutil
import sys
import textwrap
from collections.abc import Sequence
from itertools import pairwise

from sfumato.cli.screen import silence
from sfumato.errors import (
    BudgetExceeded,
    EngineBusy,
    EngineFailure,
    InvalidArgument,
    LedgerError,
    ProjectRefused,
    SfumatoError,
)

__all__ = ["EXITS", "exit_of", "refusal_of", "report", "wants_json"]

EXITS = {
    0: "done",
    1: "something failed that should not have: a defect",
    2: "usage: an option, an argument or the project file makes no sense",
    3: "refused: the question cannot be asked, or the policy forbids it; or an audit found a false claim",
    4: "budget: it does not cover the cost; nothing was charged",
    5: "ledger: it cannot be trusted, reached or used in this way; nothing was answered",
    6: "engine: it did not finish, and what was reserved stays spent; or was busy, and nothing was charged",
    130: "interrupted",
}
"""Every exit code and what it means; they do not change."""

_NO_ROOM = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO)  # where nothing more can be written


def exit_of(error: SfumatoError) -> int:
    """Return the exit code of a refusal; an error of no kind is a defect."""
    if type(error) is SfumatoError:
        return 1
    match error:
        case InvalidArgument() | ProjectRefused():
            return 2
        case BudgetExceeded():
            return 4
        case LedgerError():
            return 5
        case EngineBusy() | EngineFailure():
            return 6
        case _:
            return 3


def wants_json(arguments: Sequence[str]) -> bool:
    """Return whether errors are to be JSON: with --json-errors, and where the answer would be."""
    return any(
        one in ("--json-errors", "--format=json", "-fjson") or (one in ("--format", "-f") and after == "json")
        for one, after in pairwise([*arguments, ""])
    )


def refusal_of(error: Exception) -> SfumatoError:
    """Return what is reported of an error. A defect's own text is not shown: it might quote the data."""
    if isinstance(error, SfumatoError):
        return error
    if hasattr(error, "format_message"):  # of the parser of the command line
        hint = "sfumato --help, or sfumato COMMAND --help"
        return InvalidArgument(error.format_message(), hints=(hint,))
    if isinstance(error, OSError) and error.errno in _NO_ROOM:
        silence()
        return InvalidArgument(
            f"the output could not be written: {error.strerror}",
            place="standard output",
            hints=("make room, or write it elsewhere",),
        )
    if os.environ.get("SFUMATO_TRACEBACK"):
        raise error
    return SfumatoError(
        f"something failed that should not have ({type(error).__name__})",
        hints=("its text is not shown, for it might quote the data; SFUMATO_TRACEBACK=1 shows it",),
    )


def report(error: SfumatoError, *, as_json: bool) -> int:
    """Write a refusal to standard error; return its exit code."""
    code = exit_of(error)
    text = json.dumps({"error": {**error.to_dict(), "exit": code}}) if as_json else _folded(str(error))
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
    return code


def _folded(text: str) -> str:
    """Return a refusal with lines that end between words, on a terminal; a question above its mark stays."""
    if not sys.stderr.isatty():
        return text
    folded = textwrap.TextWrapper(
        shutil.get_terminal_size().columns,
        subsequent_indent="  ",
        break_long_words=False,
        break_on_hyphens=False,
    )
    return "\n".join(line if line.startswith(" ") else folded.fill(line) for line in text.splitlines())
