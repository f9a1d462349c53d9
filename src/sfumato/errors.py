"""Errors: each has a code, a place and hints, built from schema, plan and policy only.

    SfumatoError                 the root; catch this
    ├── InvalidArgument          SF1xx  a parameter makes no sense; also a ValueError
    ├── Unsupported              SF2xx  well-formed, but no sound treatment is known
    └── BudgetExceeded           SF3xx  the budget does not cover the cost; nothing was charged

No message ever contains a private value: the constructors take parameters that
the analyst wrote or the owner declared, never data.
"""

from __future__ import annotations

from fractions import Fraction

__all__ = ["BudgetExceeded", "InvalidArgument", "SfumatoError", "Unsupported"]


class SfumatoError(Exception):
    """Any refusal of this package."""

    code = "SF000"

    def __init__(self, message: str, *, place: str | None = None, hints: tuple[str, ...] = ()) -> None:
        self.message = message
        self.place = place
        self.hints = hints
        super().__init__(str(self))

    def __str__(self) -> str:
        lines = [f"error[{self.code}]: {self.message}"]
        if self.place is not None:
            lines.append(f"  at {self.place}")
        lines.extend(f"hint: {hint}" for hint in self.hints)
        return "\n".join(lines)


class InvalidArgument(SfumatoError, ValueError):
    """A parameter has the wrong type or lies outside its range."""

    code = "SF101"


class Unsupported(SfumatoError):
    """A request that is understood, but for which no sound treatment is implemented."""

    code = "SF201"


class BudgetExceeded(SfumatoError):
    """The budget cannot pay for a request; nothing was charged."""

    code = "SF301"

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
