"""Tables: private ones, whose rows belong to units of protection, and public ones."""

from __future__ import annotations

from dataclasses import dataclass

from sfumato.catalog.domain import Domain, OneOf
from sfumato.catalog.kind import Kind, kind_of
from sfumato.core.arguments import count
from sfumato.errors import InvalidArgument

__all__ = ["Field", "Table", "Unit"]


@dataclass(frozen=True, slots=True)
class Field:
    """A column: its name, its kind, and what the owner declared about it.

    `nullable=False` says that every row has a value, no NULL and no NaN: then an average of the
    column shares its count with COUNT(*), which costs less. Privacy does not rest on it.
    """

    name: str
    kind: Kind
    domain: Domain | None = None
    nullable: bool = True

    def __post_init__(self) -> None:
        if isinstance(self.domain, OneOf):
            declared = kind_of(self.domain.values[0])
            if declared is not self.kind and not (declared is Kind.INTEGER and self.kind is Kind.REAL):
                raise InvalidArgument(
                    f"the values declared for `{self.name}` are not of kind {self.kind.value}",
                    place=self.name,
                )


@dataclass(frozen=True, slots=True, kw_only=True)
class Unit:
    """Who is protected: the person named by a column, or, with `column=None`, each row by itself.

    Private tables whose units have the same name are about the same people and can be joined.
    """

    name: str
    column: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table: public if it has no unit. Rows whose unit is NULL are dropped.

    `max_groups` and `max_rows` are the contribution caps that apply unless a query gives its
    own: how many groups one unit may be in, and with the weight of how many rows in each.
    """

    name: str
    fields: tuple[Field, ...]
    unit: Unit | None
    max_groups: int | None = None
    max_rows: int | None = None

    def __post_init__(self) -> None:
        names = [field.name for field in self.fields]
        if len({name.lower() for name in names}) != len(names):
            raise InvalidArgument(f"table `{self.name}` has two columns of one name", place=self.name)
        if self.unit is not None and self.unit.column is not None and self.unit.column not in names:
            raise InvalidArgument(
                f"table `{self.name}` has no column `{self.unit.column}` to name its unit", place="unit"
            )
        for name in ("max_groups", "max_rows"):
            if getattr(self, name) is not None:
                count(getattr(self, name), name)

    @property
    def private(self) -> bool:
        """Whether rows belong to people."""
        return self.unit is not None

    def field(self, name: str) -> Field | None:
        """Return the column of that name, without regard to case."""
        return next((field for field in self.fields if field.name.lower() == name.lower()), None)
