"""Tables: private ones, whose rows belong to units of protection, and public ones."""

from __future__ import annotations

import math
import struct
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from decimal import Decimal
from fractions import Fraction

from sfumato.catalog.domain import Domain, KeyList, OneOf
from sfumato.catalog.kind import MOST_DIGITS, Kind, Value, kind_of
from sfumato.catalog.unit import Unit
from sfumato.core.arguments import count
from sfumato.errors import InvalidArgument

__all__ = ["CAPS", "Field", "MOST_PARTS", "Table", "UnsupportedColumn", "cap"]

MOST_PARTS = 1000
"""How many values a partition may have."""

_PARTED = (Kind.INTEGER, Kind.HUGEINT, Kind.TEXT, Kind.BOOLEAN, Kind.DATE)

_MOST = 2**31 - 1  # no unit has more rows; engines hold it in any kind of integer


def cap(value: int, name: str) -> int:
    """Return a limit on what one unit contributes: a whole number from 1 to 2^31 - 1.

    A larger one limits nothing, and is refused here: an engine that could not hold it would fail only
    where there is a row to compare it with, and so tell whether there is one.
    """
    number = count(value, name)
    if number > _MOST:
        raise InvalidArgument(f"{name} must be at most {_MOST}", place=name, hints=("give a smaller one",))
    return number


CAPS = ("max_groups", "max_rows", "max_rows_total")
"""The contribution caps: of groups, of rows in each group, of rows in all groups together."""


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
            values = tuple(_of_kind(value, self.kind) for value in self.domain.values)
            if None in values:
                raise InvalidArgument(
                    f"the values declared for `{self.name}` are not of kind {self.kind.value}",
                    place=self.name,
                )
            object.__setattr__(self, "domain", OneOf(values))


def _of_kind(value: Value, kind: Kind) -> Value:
    """Return a declared value as one of its column's kind, or None. A float is what it prints as.

    Two values that the column cannot tell apart are one here too: what a unit moves of a ROLLUP is counted
    over listed values (`analysis.pricing`).
    """
    declared = kind_of(value)
    if declared is None or not (declared.numeric and kind.numeric):
        return value if declared is kind else None
    if kind is Kind.FLOAT:
        try:
            single: float = struct.unpack("<f", struct.pack("<f", float(value)))[0]  # type: ignore[arg-type]
        except OverflowError:
            return None
        return single
    if kind.binary:
        return float(value)  # type: ignore[arg-type]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    digits = Fraction(repr(value) if isinstance(value, float) else value) * 10**kind.scale  # type: ignore[arg-type]
    most = 10**kind.digits if kind.digits else 2**63 if kind is Kind.INTEGER else 10**MOST_DIGITS
    if digits.denominator != 1 or not -most <= digits < most or abs(digits) >= 10**MOST_DIGITS:
        return None
    if kind.whole:
        return None if declared.digits else int(digits)
    return Decimal((int(digits < 0), tuple(int(digit) for digit in str(abs(int(digits)))), -kind.scale))


@dataclass(frozen=True, slots=True, kw_only=True)
class UnsupportedColumn:
    """A column that is in the data and cannot be asked about, because questions cannot use its type."""

    name: str
    of_type: str

    @property
    def refusal(self) -> str:
        """What to say of a question, a unit or a declaration that names the column."""
        return f"`{self.name}` is a column of type {self.of_type}, which questions cannot use"

    @property
    def hints(self) -> tuple[str, ...]:
        """What can be done about it."""
        return ("numbers, texts, booleans, dates and timestamps can be used: convert it before it is opened",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table: public if it has no unit. Rows whose unit is NULL are dropped.

    `max_groups`, `max_rows` and `max_rows_total` are the contribution caps (`CAPS`) that apply unless a
    query gives its own.

    `partition` names a column with listed values; every unit has one of them, for ever: a year of
    birth. The engine holds data to it: of each unit only the rows with its smallest value (or with none)
    are kept. Questions about different parts are then charged as the largest of them.
    """

    name: str
    fields: tuple[Field, ...]
    unit: Unit | None
    max_groups: int | None = None
    max_rows: int | None = None
    max_rows_total: int | None = None
    partition: str | None = None
    unsupported: tuple[UnsupportedColumn, ...] = ()  # columns that the data has and no question can use
    keys: tuple[KeyList, ...] = ()  # combinations of values that several columns may have

    _by_name: dict[str, Field] = dataclass_field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        names = [field.name for field in self.fields]
        object.__setattr__(self, "_by_name", {field.name.lower(): field for field in self.fields})
        if len(self._by_name) != len(names):
            raise InvalidArgument(f"table `{self.name}` has two columns of one name", place=self.name)
        leads = None if self.unit is None else self.unit.first_column
        if leads is not None and leads not in names:
            if (unsupported := self.unsupported_column(leads)) is not None:
                raise InvalidArgument(unsupported.refusal, place="unit", hints=unsupported.hints)
            raise InvalidArgument(
                f"table `{self.name}` has no column `{leads}` to name its unit",
                place="unit",
                hints=(f"its columns are {', '.join(sorted(names))}",),
            )
        for name in CAPS:
            if getattr(self, name) is not None:
                cap(getattr(self, name), name)
        if self.partition is not None:
            self._check_partition(self.partition)
        object.__setattr__(self, "keys", tuple(self._of_kinds(one) for one in self.keys))
        self._check_keys()

    def _of_kinds(self, listed: KeyList) -> KeyList:
        """Return a list of keys whose values are of their columns' kinds, as far as they can be."""
        kinds = {field.name: field.kind for field in self.fields}

        def fitted(name: str, value: Value) -> Value:
            found = _of_kind(value, kinds[name]) if name in kinds else None
            return value if found is None else found

        rows = (tuple(map(fitted, listed.columns, row)) for row in listed.rows)
        return KeyList(columns=listed.columns, rows=tuple(rows))

    def _check_keys(self) -> None:
        if self.keys and self.unit is None:
            raise InvalidArgument(
                f"table `{self.name}` is public, and lists its keys itself",
                place="keys",
                hints=("leave the list out: groups by its columns are those that the table has",),
            )
        names = [name for one in self.keys for name in one.columns]
        if len(set(names)) < len(names):
            raise InvalidArgument("a column is in one list of keys at most", place="keys")
        for one in self.keys:
            for name, listed in one.values().items():
                field = next((field for field in self.fields if field.name == name), None)
                if field is None or (self.unit is not None and name == self.unit.own_column):
                    raise InvalidArgument(f"table `{self.name}` has no column `{name}` to list", place="keys")
                if not isinstance(field.domain, OneOf) or not set(listed.values) <= set(field.domain.values):
                    raise InvalidArgument(
                        f"what is declared for `{name}` does not allow all values of its list of keys",
                        place="keys",
                        hints=("leave it out: the values of the list are declared by it",),
                    )

    def _check_partition(self, name: str) -> None:
        field = self.field(name)
        listed = field is not None and isinstance(field.domain, OneOf) and field.kind in _PARTED
        if not listed or self.unit is None or self.unit.own_column is None:
            raise InvalidArgument(
                f"table `{self.name}` cannot be divided by `{name}`",
                place="partition",
                hints=(
                    "a partition is a column with declared values, one_of(..): numbers, texts or dates",
                    "the unit must be a column of the table, too",
                ),
            )
        labels = self.parts()
        if len(labels) > MOST_PARTS or not all(
            1 <= len(label) <= 1024 and label.isprintable() for label in labels.values()
        ):
            raise InvalidArgument(
                f"a partition has at most {MOST_PARTS} values, all of them printable", place="partition"
            )
        if any(isinstance(value, int) and abs(value) >= 2**53 for value in labels):
            raise InvalidArgument("numbers of a partition lie below 2^53", place="partition")

    def parts(self) -> dict[object, str]:
        """Return the values of the partition, and what the ledger calls their parts."""
        field = None if self.partition is None else self.field(self.partition)
        if field is None or not isinstance(field.domain, OneOf):
            return {}
        return {value: str(value) for value in field.domain.values}

    @property
    def private(self) -> bool:
        """Whether rows belong to people."""
        return self.unit is not None

    def unsupported_column(self, name: str) -> UnsupportedColumn | None:
        """Return the column of that name whose type questions cannot use, without regard to case."""
        return next((one for one in self.unsupported if one.name.lower() == name.lower()), None)

    def field(self, name: str) -> Field | None:
        """Return the column of that name, without regard to case."""
        return self._by_name.get(name.lower())
