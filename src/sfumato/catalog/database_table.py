"""Tables of a database server, or of a catalog of Spark's: where they are, without any password."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass, field

from sfumato.errors import InvalidArgument

__all__ = ["DatabaseTable"]

_PART = r'(?:"(?:[^"\0]|"")+"|[^".\0]+)'
_NAME = re.compile(rf"{_PART}(?:\.{_PART}){{0,2}}")


@dataclass(frozen=True, slots=True, kw_only=True)
class DatabaseTable:
    """A table of a database, whose address is given or stands in a variable of the environment.

    A name may have a schema before it, in PostgreSQL by default `public`, and in Spark a catalog before that.
    Names are as they are stored, capitals too; one with a dot or a quote stands in double quotes, as in SQL.

    >>> DatabaseTable(table='clinic."Visits.2024"', address="service=clinic").place
    ('clinic', 'Visits.2024')
    """

    table: str
    address: str | None = field(default=None, repr=False)
    environment: str | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.table, str) or _NAME.fullmatch(self.table) is None:
            raise _no_name()

    @property
    def parts(self) -> tuple[str, ...]:
        """The name of the table, and of what it is in, if that is said."""
        return tuple(map(_plain, re.findall(_PART, self.table)))

    @property
    def place(self) -> tuple[str, str]:
        """The schema of PostgreSQL and the name of the table there."""
        schema, name, *more = ("public", *self.parts)[-2:] if len(self.parts) < 3 else self.parts
        if more:
            raise _no_name()
        return schema, name

    def resolved(self) -> str:
        """Return the address; refuse a variable that is not set. No error repeats an address."""
        if self.environment is None:
            return self.address or ""
        found = os.environ.get(self.environment)
        if not found:
            raise InvalidArgument(
                f"the environment variable `{self.environment}` is not set",
                place="environment",
                hints=(
                    "it holds the address: postgresql://reader@host/clinic, or sc://host:15002 of a Spark",
                ),
            )
        return found


def _no_name() -> InvalidArgument:
    return InvalidArgument(
        "this is not the name of a table of a database",
        place="table",
        hints=('table = "visits", or with its schema, "clinic.visits"; odd names in double quotes',),
    )


def _plain(name: str) -> str:
    return name[1:-1].replace('""', '"') if name.startswith('"') else name
