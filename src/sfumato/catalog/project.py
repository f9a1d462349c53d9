"""A project: the tables, budget, ledger and policy that a project file declares."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from sfumato.catalog.declaration import Declaration
from sfumato.catalog.policy import Policy
from sfumato.catalog.positions import Written
from sfumato.catalog.resources import Resources
from sfumato.catalog.table import Field, Table, UnsupportedColumn
from sfumato.core.accountant import PrivacyBudget
from sfumato.errors import InvalidArgument

__all__ = ["Period", "Project", "ProjectTable"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """What may be spent in each period, inside the budget for ever. Nothing carries over."""

    every: Literal["day", "week", "month", "year"]
    budget: PrivacyBudget


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectTable:
    """A table of a project: what is declared about it, and the files that hold it."""

    declaration: Declaration
    paths: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name questions use."""
        return self.declaration.name

    @property
    def source(self) -> str | list[str]:
        """What a backend opens."""
        return self.paths[0] if len(self.paths) == 1 else list(self.paths)


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """What a project file says. Paths are absolute."""

    written: Written
    tables: tuple[ProjectTable, ...]
    unit: str
    budget: PrivacyBudget
    ledger: Path
    period: Period | None = None
    policy: Policy = field(default_factory=Policy)
    engine: Resources = field(default_factory=Resources)

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
        name, declaration = declared.name, declared.declaration
        unit = declaration.unit
        known = {each.name for each in fields}
        for one in unsupported:
            if unit is not None and unit.column == one.name:
                raise self.written.refusal(
                    one.refusal, ("tables", name, "unit"), code="SF706", hints=one.hints
                )
        if unit is not None and unit.column is not None and unit.column not in known:
            raise self.written.refusal(
                f"table `{name}` has no column `{unit.column}` to name its unit",
                ("tables", name, "unit"),
                code="SF706",
                hints=(f"its columns are {', '.join(sorted(known))}",),
            )
        for column in declaration.columns:
            try:
                only = {column: declaration.columns[column]}
                Declaration(name=name, unit=None, columns=only).table(fields, unsupported)
            except InvalidArgument as error:
                raise self.written.refusal(
                    error.message, ("tables", name, "columns", column), code="SF706", hints=error.hints
                ) from None
        try:
            return declaration.table(fields, unsupported)
        except InvalidArgument as error:
            key = error.place if error.place in ("partition", "keys") else "path"
            raise self.written.refusal(
                error.message, ("tables", name, key), code="SF706", hints=error.hints
            ) from None
