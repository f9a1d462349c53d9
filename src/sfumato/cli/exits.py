"""How a command ends: exit codes that scripts can rely on, and errors as text or as JSON."""

from __future__ import annotations

import errno
import json
import os
import sys
from collections.abc import Sequence
from itertools import pairwise

from sfumato.errors import (
    BudgetExceeded,
    EngineBusy,
    EngineFailure,
    InvalidArgument,
    LedgerError,
    ProjectRefused,
    SfumatoError,
)

__all__ = [
    "EXITS",
    "NO_ROOM",
    "exit_of",
    "report",
    "report_unexpected",
    "report_usage",
    "unwritten",
    "wants_json",
]

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

NO_ROOM = (errno.ENOSPC, errno.EFBIG, errno.EDQUOT, errno.EIO)
"""What the system says where nothing more can be written."""


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


def unwritten(error: OSError) -> InvalidArgument:
    """Return the refusal of a report for which there is no room."""
    return InvalidArgument(
        f"the output could not be written: {error.strerror}",
        place="standard output",
        hints=("make room, or write it elsewhere",),
    )


def report(error: SfumatoError, *, as_json: bool) -> int:
    """Write a refusal to standard error; return its exit code."""
    code = exit_of(error)
    text = json.dumps({"error": {**error.to_dict(), "exit": code}}) if as_json else str(error)
    sys.stderr.write(f"{text}\n")
    sys.stderr.flush()
    return code


def report_usage(message: str, *, as_json: bool) -> int:
    """Write that options or arguments make no sense; return the exit code."""
    hint = "sfumato --help, or sfumato COMMAND --help"
    return report(InvalidArgument(message, hints=(hint,)), as_json=as_json)


def report_unexpected(error: BaseException, *, as_json: bool) -> int:
    """Write that there is a defect, without what it says: that might quote the data."""
    if os.environ.get("SFUMATO_TRACEBACK"):
        raise error
    defect = SfumatoError(
        f"something failed that should not have ({type(error).__name__})",
        hints=("its text is not shown, for it might quote the data; SFUMATO_TRACEBACK=1 shows it",),
    )
    return report(defect, as_json=as_json)
