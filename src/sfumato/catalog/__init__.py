"""What is protected: units, tables, columns with their domains."""

from sfumato.catalog.catalog import Catalog
from sfumato.catalog.domain import Between, Domain, OneOf, between, one_of
from sfumato.catalog.kind import Kind, Value, kind_of
from sfumato.catalog.table import Field, Table, Unit

__all__ = [
    "Between",
    "Catalog",
    "Domain",
    "Field",
    "Kind",
    "OneOf",
    "Table",
    "Unit",
    "Value",
    "between",
    "kind_of",
    "one_of",
]
