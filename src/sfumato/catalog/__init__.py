"""What is protected: units, tables, columns with their domains; policies, and the project file.

Reading order: `kind`, `domain`, `key_list`, `table`, `policy`, `catalog` (what is protected),
`declaration` (as it is declared), `positions`, `resources`, `project`, `reading`, `writing` (sfumato.toml).
"""

from sfumato.catalog.catalog import Catalog
from sfumato.catalog.declaration import Column, Declaration
from sfumato.catalog.domain import Between, Domain, OneOf, between, one_of
from sfumato.catalog.key_list import KeyList
from sfumato.catalog.kind import Kind, Value, kind_of
from sfumato.catalog.policy import Analyst, Policy
from sfumato.catalog.project import Period, Project, ProjectTable
from sfumato.catalog.reading import read_project
from sfumato.catalog.resources import Resources
from sfumato.catalog.table import Field, Table, Unit, UnsupportedColumn

__all__ = [
    "Analyst",
    "Between",
    "Catalog",
    "Column",
    "Declaration",
    "Domain",
    "Field",
    "KeyList",
    "Kind",
    "OneOf",
    "Period",
    "Policy",
    "Project",
    "ProjectTable",
    "Resources",
    "Table",
    "Unit",
    "UnsupportedColumn",
    "Value",
    "between",
    "kind_of",
    "one_of",
    "read_project",
]
