"""A project: the tables, budget, ledger and policy that a project file declares."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal

from sfumato.catalog.catalog import Policy
from sfumato.catalog.database_table import DatabaseTable
from sfumato.catalog.declaration import Declaration
from sfumato.catalog.positions import Written
from sfumato.catalog.resources import Resources
from sfumato.catalog.table import Field, Table, UnsupportedColumn
from sfumato.core.accountant import PrivacyBudget
from sfumato.errors import InvalidArgument

__all__ = ["Period", "Project", "ProjectMarginals", "ProjectStream", "ProjectTable", "ProjectWorkload"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """What may be spent in each period, inside the budget for ever. Nothing carries over."""

    every: Literal["day", "week", "month", "year"]
    budget: PrivacyBudget


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectTable:
    """A table of a project: what is declared about it, and the files or the database that hold it."""

    declaration: Declaration
    paths: tuple[str, ...] = ()
    database: DatabaseTable | None = None

    @property
    def name(self) -> str:
        """The name questions use."""
        return self.declaration.name

    @property
    def key(self) -> str:
        """The key of the project file that says where the table is."""
        return "path" if self.database is None else "source"

    @property
    def source(self) -> str | list[str] | DatabaseTable:
        """What a backend opens."""
        if self.database is not None:
            return self.database
        return self.paths[0] if len(self.paths) == 1 else list(self.paths)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectWorkload:
    """Questions of a file that are asked together, under an epsilon for all and for groups of a size."""

    file: str
    epsilon: Fraction | None = None
    size: Fraction | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectMarginals:
    """Contingency tables that are asked together; fields are the arguments of `Database.marginals`."""

    columns: tuple[str, ...] | tuple[tuple[str, ...], ...]
    table: str | None = None
    ways: tuple[int, ...] | None = None
    weights: str | Mapping[tuple[str, ...], Fraction] = "cells"
    bins: Mapping[str, Any] = field(default_factory=dict)
    bases: Mapping[str, str] = field(default_factory=dict)
    missing: bool | tuple[str, ...] = False
    epsilon: Fraction | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectStream:
    """A question about each period, as it is declared: `Database.stream` says what its parts mean."""

    name: str
    question: str
    by: str
    every: str
    start: datetime.date | str
    epsilon: Fraction
    horizon: int | None = None
    design: int | None = None
    periods: int = 1
    apart: int = 1
    late: int = 7
    duplicates: str = "count"
    row_id: str | None = None
    purpose: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """What a project file says. Paths are absolute."""

    written: Written
    tables: tuple[ProjectTable, ...]
    unit: str
    budget: PrivacyBudget
    ledger: Path | str  # a file, or the address of a database on a server
    people: int | None = None  # how many units there are, where that is public
    period: Period | None = None
    policy: Policy = field(default_factory=Policy)
    engine: Resources = field(default_factory=Resources)
    workloads: Mapping[str, ProjectWorkload] = field(default_factory=dict)
    marginals: Mapping[str, ProjectMarginals] = field(default_factory=dict)
    streams: tuple[ProjectStream, ...] = ()

    @property
    def partition(self) -> str | None:
        """The column by which units are divided into parts."""
        found = (table.declaration.partition for table in self.tables)
        return next((each for each in found if each is not None), None)

    def table(
        self,
        declared: ProjectTable,
        fields: tuple[Field, ...],
        unsupported: tuple[UnsupportedColumn, ...] = (),
    ) -> Table:
        """Return a declared table with its real columns; refuse, with the line, what does not fit them."""
        try:
            return declared.declaration.table(fields, unsupported)
        except InvalidArgument as error:
            place = error.place or ""
            at: tuple[str, ...] = (place,) if place in ("unit", "partition", "keys") else (declared.key,)
            if place in declared.declaration.columns:
                at = ("columns", place)
            raise self.written.refusal(
                error.message, ("tables", declared.name, *at), code="SF706", hints=error.hints
            ) from None
