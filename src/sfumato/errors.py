"""Errors: each has a code, a place and hints, built from schema, plan and policy only.

    SfumatoError                 the root; catch this
    ├── InvalidArgument          SF1xx  a parameter makes no sense; also a ValueError
    ├── Unsupported              SF2xx  well-formed, but no sound treatment is known
    ├── BudgetExceeded           SF3xx  the budget does not cover the cost; nothing was charged
    ├── QueryRefused             SF4xx  a question that cannot be asked; refused before data is read
    ├── EngineFailure            SF501  the engine did not finish; one text, whatever the reason
    ├── EngineStopped            SF502  the engine answers nothing more; nothing was charged
    ├── EngineBusy               SF503  other questions hold the engine's memory; nothing was charged
    ├── LedgerError              SF6xx  the ledger cannot be trusted, reached or used in this way
    └── ProjectRefused           SF7xx  a project file that makes no sense, with its line

    RoleWarning                  no error: a role in a database may do more than read the tables

No message ever contains a private value: the constructors take parameters that
the analyst wrote or the owner declared, never data.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any, ClassVar

__all__ = [
    "BudgetExceeded",
    "EngineBusy",
    "EngineFailure",
    "EngineStopped",
    "InvalidArgument",
    "LedgerError",
    "ProjectRefused",
    "QueryRefused",
    "RoleWarning",
    "SfumatoError",
    "Unsupported",
]


_WIDEST = 160  # characters of a line that are shown, around what is at fault


class SfumatoError(Exception):
    """Any refusal of this package.

    >>> error = InvalidArgument("epsilon must be above 0", place="epsilon", hints=("try 0.5",))
    >>> isinstance(error, SfumatoError), error.code, error.hints
    (True, 'SF101', ('try 0.5',))
    """

    code = "SF000"
    details: ClassVar[tuple[str, ...]] = ()  # what else errors of this kind carry

    def __init__(self, message: str, *, place: str | None = None, hints: tuple[str, ...] = ()) -> None:
        self.message = message
        self.place = place
        self.hints = hints
        super().__init__(str(self))

    def __str__(self) -> str:
        hints = (f"hint: {hint}" for hint in self.hints)
        return "\n".join([f"error[{self.code}]: {self.message}", *self._where(), *hints])

    def _where(self) -> list[str]:
        return [] if self.place is None else [f"  at {self.place}"]

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of this error, JSON-ready: what a program reads instead of the text."""
        known = {"code": self.code, "message": self.message, "place": self.place, "hints": list(self.hints)}
        more = {name: getattr(self, name) for name in self.details}
        return known | {name: str(it) if isinstance(it, Fraction) else it for name, it in more.items()}


class InvalidArgument(SfumatoError, ValueError):
    """A parameter has the wrong type or lies outside its range.

    >>> print(InvalidArgument("epsilon must be above 0", place="epsilon", hints=("try 0.5",)))
    error[SF101]: epsilon must be above 0
      at epsilon
    hint: try 0.5
    """

    code = "SF101"


class Unsupported(SfumatoError):
    """A request that is understood, but for which no sound treatment is implemented.

    >>> print(Unsupported("drawing needs Altair", hints=("install it: pip install 'sfumato[plots]'",)))
    error[SF201]: drawing needs Altair
    hint: install it: pip install 'sfumato[plots]'
    """

    code = "SF201"


class BudgetExceeded(SfumatoError):
    """The budget cannot pay for a request; nothing was charged.

    >>> error = BudgetExceeded("0.1 left, 0.5 needed", requested=Fraction(1, 2), remaining=Fraction(1, 10))
    >>> error.code, error.remaining
    ('SF301', Fraction(1, 10))
    """

    code = "SF301"
    details = ("requested", "remaining")

    def __init__(
        self,
        message: str,
        *,
        requested: Fraction,
        remaining: Fraction,
        place: str | None = None,
        hints: tuple[str, ...] = (),
    ) -> None:
        self.requested = requested
        self.remaining = remaining
        super().__init__(message, place=place, hints=hints)


class QueryRefused(SfumatoError):
    """A question that cannot be asked, with a caret under the part of it that is at fault.

    SF401 syntax   SF402 unknown name   SF403 function or operator   SF404 shape of the query
    SF405 missing bounds or caps   SF406 mixes units of protection   SF407 not a question
    SF408 against the owner's policy   SF409 no release determines the answer
    SF410 takes too many steps to price

    >>> asked = "SELECT AVG(agee) FROM t"
    >>> print(QueryRefused("no column `agee` here", code="SF402", text=asked, start=11, end=15))
    error[SF402]: no column `agee` here
      SELECT AVG(agee) FROM t
                 ^^^^
    """

    code = "SF404"
    details = ("text", "start", "end")

    def __init__(
        self,
        message: str,
        *,
        code: str,
        text: str,
        start: int | None = None,
        end: int | None = None,
        hints: tuple[str, ...] = (),
    ) -> None:
        self.code = code
        self.text = text
        self.start = start
        self.end = end
        super().__init__(message, hints=hints)

    def _where(self) -> list[str]:
        if self.start is None:
            return []
        begin = self.text.rfind("\n", 0, self.start) + 1
        line, at = self.text[begin:].split("\n", 1)[0], self.start - begin
        if len(line) > _WIDEST:
            skipped = max(0, min(at - _WIDEST // 2, len(line) - _WIDEST))
            line, at = line[skipped : skipped + _WIDEST], at - skipped
        width = max(1, min((self.end or self.start + 1) - self.start, len(line) - at))
        return [f"  {line}", f"  {' ' * at}{'^' * width}"]


class EngineBusy(SfumatoError):
    """Other questions held the engine's memory for longer than a statement may take; nothing was charged.

    >>> EngineBusy().code
    'SF503'
    """

    code = "SF503"

    def __init__(self) -> None:
        super().__init__(
            "other questions held the engine's memory for longer than one statement may take",
            hints=(
                "nothing was charged; try again",
                "a smaller `question_memory` lets more questions run at a time",
            ),
        )


class EngineFailure(SfumatoError):
    """The engine did not finish. The text is always the same: what went wrong could tell about the data.

    >>> EngineFailure().code
    'SF501'
    """

    code = "SF501"

    def __init__(self) -> None:
        super().__init__(
            "the engine did not finish; what was reserved for the question stays spent",
            hints=("the reason is not shown, because it can depend on private values",),
        )


class EngineStopped(SfumatoError):
    """The engine answers nothing more, which was noticed before anything was charged.

    >>> EngineStopped().code
    'SF502'
    """

    code = "SF502"

    def __init__(self) -> None:
        super().__init__(
            "the engine has stopped, or was closed; nothing was charged", hints=("open the data again",)
        )


class LedgerError(SfumatoError):
    """The ledger did not agree, so nothing may be answered.

    SF601 cannot be opened, read or written   SF602 damaged, altered, or not a ledger   SF603 another format
    SF604 busy for longer than the stated wait   SF605 unknown unit, or another budget for a known one
    SF606 idempotency key used for another request   SF607 burnt idempotency key
    SF608 reservation used twice or too late   SF609 an analyst without a grant
    SF610 a second unit, or a source of another unit   SF611 a receipt that is not genuine
    SF612 texts of questions, asked for by somebody who does not own the ledger
    SF613 the state of a stream is missing, old, damaged, or that of another stream

    `sequence` is the number of the record at fault, where there is one.

    >>> LedgerError("record 7 does not fit the one before", code="SF602", sequence=7).sequence
    7
    """

    code = "SF601"
    details = ("sequence",)

    def __init__(
        self,
        message: str,
        *,
        code: str,
        place: str | None = None,
        sequence: int | None = None,
        hints: tuple[str, ...] = (),
    ) -> None:
        self.code = code
        self.sequence = sequence
        super().__init__(message, place=place, hints=hints or _LEDGER_HINTS.get(code, ()))


_LEDGER_HINTS = {"SF602": ("restore a copy and compare its head with one kept elsewhere",)}


class ProjectRefused(SfumatoError):
    """A project file that cannot be used, with the line and the key at fault.

    SF701 cannot be read   SF702 not TOML   SF703 unknown key   SF704 missing key
    SF705 wrong value   SF706 contradicts the tables that it names

    `file` is the path as it was given, `line` and `column` count from 1, `key` is the dotted key.

    >>> print(ProjectRefused("unknown key", code="SF703", file="sfumato.toml", line=4, key="budget.epsilno"))
    error[SF703]: unknown key
      at sfumato.toml:4
    """

    code = "SF705"
    details = ("file", "line", "column", "key", "text")

    def __init__(
        self,
        message: str,
        *,
        code: str,
        file: str,
        line: int | None = None,
        column: int | None = None,
        key: str | None = None,
        text: str | None = None,
        hints: tuple[str, ...] = (),
    ) -> None:
        self.code = code
        self.file = file
        self.line = line
        self.column = column
        self.key = key
        self.text = text
        place = file if line is None else f"{file}:{line}" if column is None else f"{file}:{line}:{column}"
        super().__init__(message, place=place, hints=hints)

    def _where(self) -> list[str]:
        return [*super()._where(), *([] if self.text is None else [f"  | {self.text}"])]


class RoleWarning(UserWarning):
    """A role in a database that may do more than read the tables: its password is worth more to a thief.

    >>> import warnings
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", RoleWarning)  # do not go on with such a role
    """
