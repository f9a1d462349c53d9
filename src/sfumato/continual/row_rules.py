"""Row rules: for how long late rows count, and whether the same row counts twice."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.errors import InvalidArgument

__all__ = ["RowRules"]

_LATEST = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RowRules:
    """Rows that come up to `late` periods after their own count in the next period; later ones are left out.

    `duplicates` of a row, told by the column `row_id` or by all that the question reads, "count" like any
    rows, or count "once" among those of the same person that are remembered.

    >>> RowRules().late, RowRules(late=0).remembers
    (7, False)
    """

    late: int = 7
    duplicates: str = "count"
    row_id: str | None = None

    def __post_init__(self) -> None:
        if isinstance(self.late, bool) or not isinstance(self.late, int) or self.late < 0:
            raise InvalidArgument("late is a whole number of periods, 0 or more", place="late")
        if self.late > _LATEST:
            raise InvalidArgument(
                f"late is at most {_LATEST:,} periods",
                place="late",
                hints=("each period reads the rows of as many periods before it",),
            )
        if self.duplicates not in ("count", "once"):
            raise InvalidArgument(
                "duplicates count, or count once", place="duplicates", hints=('"count" or "once"',)
            )
        if not isinstance(self.row_id, str | None):
            raise InvalidArgument("row_id is the name of a column", place="row_id")

    @property
    def once(self) -> bool:
        """Whether a row that is there several times counts once."""
        return self.duplicates == "once"

    @property
    def remembers(self) -> bool:
        """Whether rows are remembered from one period to the next."""
        return self.late > 0
