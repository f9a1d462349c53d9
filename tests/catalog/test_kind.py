"""Kinds are one object each, whatever makes them; declared numbers are read as their columns' kind."""

from __future__ import annotations

import copy
import pickle
from decimal import Decimal
from pathlib import Path

import pytest

from sfumato.catalog import Field, KeyList, Kind, Table, Unit, kind_of, one_of, read_project
from sfumato.errors import InvalidArgument

KINDS = [
    Kind.INTEGER,
    Kind.HUGEINT,
    Kind.FLOAT,
    Kind.REAL,
    Kind.TEXT,
    Kind.decimal(15, 2),
    Kind.decimal(38, 38),
]


@pytest.mark.parametrize("kind", KINDS)
def test_there_is_one_object_per_kind(kind: Kind) -> None:
    assert Kind(kind.value) is kind
    assert pickle.loads(pickle.dumps(kind)) is kind
    assert copy.deepcopy(kind) is kind and copy.copy(kind) is kind
    with pytest.raises(AttributeError):
        kind.value = "other"  # type: ignore[misc]


@pytest.mark.parametrize(
    "name", ["", "int", "decimal", "decimal(0,0)", "decimal(39,2)", "decimal(2,3)", "decimal(-1,0)"]
)
def test_other_names_are_no_kinds(name: str) -> None:
    with pytest.raises(ValueError, match="no kind"):
        Kind(name)


def test_constants_have_the_digits_that_they_show() -> None:
    assert kind_of(2**63 - 1) is Kind.INTEGER and kind_of(2**63) is Kind.HUGEINT
    assert kind_of(-(2**127)) is Kind.HUGEINT and kind_of(2**127) is Kind.REAL
    assert kind_of(Decimal("-0.50")) is Kind.decimal(3, 2) and kind_of(Decimal("7")) is Kind.decimal(1, 0)
    assert kind_of(Decimal("1e-39")) is Kind.REAL and kind_of(Decimal("NaN")) is Kind.REAL


@pytest.mark.parametrize(("kind", "given", "read"), [
    (Kind.decimal(15, 2), 0.07, "0.07"), (Kind.decimal(15, 2), 1, "1.00"),
    (Kind.decimal(15, 2), Decimal("-2.5"), "-2.50"),
    (Kind.REAL, Decimal("0.5"), "0.5"), (Kind.HUGEINT, 2**64, str(2**64)), (Kind.INTEGER, 5, "5"),
])  # fmt: skip
def test_declared_values_are_of_their_column_s_kind(kind: Kind, given: object, read: str) -> None:
    (value,) = Field("x", kind, one_of(given)).domain.values  # type: ignore[union-attr, arg-type]
    assert str(value) == read


@pytest.mark.parametrize(("kind", "given"), [
    (Kind.decimal(15, 2), 0.075), (Kind.decimal(3, 2), 10), (Kind.INTEGER, 0.5), (Kind.INTEGER, 2**63),
    (Kind.HUGEINT, Decimal("1.0")), (Kind.TEXT, 1), (Kind.decimal(3, 2), float("inf")),
    (Kind.FLOAT, 1e39),
])  # fmt: skip
def test_declared_values_of_another_kind_are_refused(kind: Kind, given: object) -> None:
    with pytest.raises(InvalidArgument, match="not of kind"):
        Field("x", kind, one_of(given))  # type: ignore[arg-type]


def test_lists_of_keys_are_of_their_columns_kinds() -> None:
    listed = KeyList(columns=("rate", "kind"), rows=((0.05, "a"), (0.5, "b")))
    rates = Field("rate", Kind.decimal(15, 2), one_of(0.05, 0.5))
    fields = (Field("person", Kind.INTEGER), rates, Field("kind", Kind.TEXT, one_of("a", "b")))
    table = Table(name="t", unit=Unit(name="person", column="person"), fields=fields, keys=(listed,))
    assert table.keys[0].rows == ((Decimal("0.05"), "a"), (Decimal("0.50"), "b"))


def test_what_a_column_cannot_tell_apart_is_listed_as_one_value() -> None:
    """Else a ROLLUP by it would be priced for two groups of one part each, and move one by both parts."""
    listed = KeyList(columns=("rate", "kind"), rows=((0.1, "a"), (0.1000000001, "b")))
    fields = (
        Field("person", Kind.INTEGER),
        Field("rate", Kind.FLOAT, one_of(0.1)),
        Field("kind", Kind.TEXT, one_of("a", "b")),
    )
    table = Table(name="t", unit=Unit(name="person", column="person"), fields=fields, keys=(listed,))
    (first, _), (second, _) = table.keys[0].rows
    assert first == second
    with pytest.raises(InvalidArgument, match="twice"):
        Field("rate", Kind.FLOAT, one_of(0.1, 0.1000000001))


def test_a_project_file_keeps_every_digit(tmp_path: Path) -> None:
    text = """
        ledger = "t.ledger"
        [budget]
        epsilon = 1
        [tables.t]
        path = "t.parquet"
        unit = "person"
        [tables.t.columns]
        rate = { one_of = [0.1234567890123456789, 0.5] }
        wide = { one_of = [18446744073709551615] }
        far = { one_of = [1e30] }
    """
    path = tmp_path / "sfumato.toml"
    path.write_text(text)
    columns = read_project(path).tables[0].declaration.columns
    assert columns["rate"].domain == one_of(Decimal("0.1234567890123456789"), Decimal("0.5"))
    assert columns["wide"].domain == one_of(18446744073709551615)
    assert columns["far"].domain == one_of(1e30)
