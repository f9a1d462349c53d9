"""Expected errors: how far off a column of an answer will be, as a number and in words."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.aggregates.answer import Forecast

__all__ = ["ExpectedError", "ON_LIMITS", "error_of"]

ON_LIMITS = "depends on limits that are found first"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExpectedError:
    """How far off a column will be: a 95% half-width, or None where that depends on the data."""

    name: str
    error: float | None
    said: str
    share: bool = False  # it is a share of ranks, and so below 1

    @staticmethod
    def of(one: Forecast, name: str, *, size: float | None = None, on_limits: bool = False) -> ExpectedError:
        """Return the error of a forecast under the name that a reader knows.

        `size` is what the forecast took for the size of a group. With `on_limits`, limits are found first.
        """
        return ExpectedError(
            name=name,
            error=None if on_limits else one.error,
            said=error_of(one, size=size, on_limits=on_limits),
            share=one.in_ranks and size is not None,
        )

    @staticmethod
    def within(name: str, half_width: float) -> ExpectedError:
        """Return an error that is known as half of a 95% interval.

        >>> ExpectedError.within("age", 12.345).said
        '±12.35 (95%)'
        """
        return ExpectedError(name=name, error=half_width, said=f"±{half_width:.4g} (95%)")


def error_of(one: Forecast, *, size: float | None = None, on_limits: bool = False) -> str:
    """Return the error that is expected, as text; `size` is what the forecast took for that of a group."""
    if on_limits:
        return ON_LIMITS
    if one.error is None:
        return "depends on the group's size"
    if one.falls_short:
        return f"at most {one.error:.4g} {one.falls_short} (95%)"
    if one.in_ranks:
        return f"±{one.error:.4g} rows in rank (95%)" if size is None else f"±{one.error:.2%} of ranks (95%)"
    return f"±{one.error:.4g} (95%)"
