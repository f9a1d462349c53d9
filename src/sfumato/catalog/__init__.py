"""What is protected: units, tables, columns with their domains; policies, and the project file.

Reading order: `kind`, `domain`, `unit`, `table`, `catalog` (what is protected),
`declaration` (as it is declared), `positions`, `resources`, `project`, `reading`, `writing` (sfumato.toml).
"""

from sfumato.catalog.catalog import Analyst, Catalog, Policy
from sfumato.catalog.database_table import DatabaseTable
from sfumato.catalog.declaration import Column, Declaration
from sfumato.catalog.domain import Between, Domain, KeyList, OneOf, between, one_of
from sfumato.catalog.invariants import Invariant
from sfumato.catalog.kind import Kind, Value, kind_of
from sfumato.catalog.project import Period, Project, ProjectStream, ProjectTable
from sfumato.catalog.reading import read_project
from sfumato.catalog.resources import Resources
from sfumato.catalog.server_address import (
    has_password,
    is_address,
    is_spark_address,
    looks_like_address,
)
from sfumato.catalog.table import Field, Table, UnsupportedColumn
from sfumato.catalog.unit import Unit

__all__ = [
    "Analyst",
    "Between",
    "Catalog",
    "Column",
    "DatabaseTable",
    "Declaration",
    "Domain",
    "Field",
    "Invariant",
    "KeyList",
    "Kind",
    "OneOf",
    "Period",
    "Policy",
    "Project",
    "ProjectStream",
    "ProjectTable",
    "Resources",
    "Table",
    "Unit",
    "UnsupportedColumn",
    "Value",
    "between",
    "has_password",
    "is_address",
    "is_spark_address",
    "kind_of",
    "looks_like_address",
    "one_of",
    "read_project",
]
