"""Scopes: which columns a name can mean, and which of them is the unit that no expression may read."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sfumato.catalog.kind import Kind
from sfumato.catalog.table import UnsupportedColumn
from sfumato.catalog.unit import Unit
from sfumato.plan.tree import ColumnRef, Expression, Projection, Relation

__all__ = ["Columns", "Output", "Scope", "ScopedRows", "ScopedSource"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """A column under the name it goes by: a column of the tree, or the unit (`column=None`).

    `whole` is false for the unit of the far side of an outer join, where it may be absent. `implied` is the
    unit of a table that reaches it through keys: another column of its name comes first. `keys` are the keys
    that the column holds, where paths to the unit go through them (`catalog.keys_of`).
    """

    name: str
    column: ColumnRef | None
    whole: bool = True
    implied: bool = False
    keys: frozenset[tuple[str, str]] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopedRows:
    """A relation and its columns by name; public if it has no unit."""

    relation: Relation
    outputs: tuple[Output, ...]
    unit: Unit | None
    unsupported: tuple[UnsupportedColumn, ...] = ()  # of a table of the catalog: no question can read them

    @property
    def by_row(self) -> bool:
        """Whether each row is a unit by itself."""
        return self.unit is not None and self.unit.column is None


@dataclass(slots=True)
class Columns:
    """The columns of a SELECT list while they are read: each an expression, named under an alias."""

    alias: str
    outputs: list[Output] = field(default_factory=list)
    columns: list[tuple[str, Expression]] = field(default_factory=list)

    def add(
        self, name: str, expression: Expression, kind: Kind, keys: frozenset[tuple[str, str]] = frozenset()
    ) -> None:
        """Add a column."""
        column = ColumnRef(name=f"{self.alias}.{name}", kind=kind)
        self.columns.append((column.name, expression))
        self.outputs.append(Output(name=name, column=column, keys=keys))

    def over(self, source: Relation, unit: Unit | None) -> ScopedRows:
        """Return the columns of a relation; with none, its units alone count and it stays as it is."""
        relation = Projection(source=source, columns=tuple(self.columns)) if self.columns else source
        return ScopedRows(relation=relation, outputs=tuple(self.outputs), unit=unit)


@dataclass(frozen=True, slots=True, kw_only=True)
class ScopedSource:
    """What one entry of FROM offers, under its alias."""

    alias: str
    outputs: tuple[Output, ...]
    unsupported: tuple[UnsupportedColumn, ...] = ()

    @staticmethod
    def of(alias: str, rows: ScopedRows) -> ScopedSource:
        """Return what rows offer under an alias."""
        return ScopedSource(alias=alias, outputs=rows.outputs, unsupported=rows.unsupported)

    def far(self) -> ScopedSource:
        """Return the same source on the far side of an outer join."""
        return replace(self, outputs=tuple(replace(output, whole=False) for output in self.outputs))


@dataclass(slots=True, kw_only=True)
class Scope:
    """The sources of one SELECT; `parent` is the SELECT around it, where correlation is allowed."""

    sources: list[ScopedSource] = field(default_factory=list)
    merged: set[str] = field(default_factory=set)  # names of USING: the first source's column counts
    parent: Scope | None = None

    def find(self, name: str, alias: str | None = None) -> list[Output]:
        """Return the columns that a name can mean here; one, if it is known and not ambiguous."""
        found = [output for output in self._outputs(alias) if output.name.lower() == name.lower()]
        found = [output for output in found if not output.implied] or found
        return found[:1] if alias is None and name.lower() in self.merged else found

    def unsupported(self, name: str, alias: str | None = None) -> UnsupportedColumn | None:
        """Return the column of this name that no question can read, None if there is none."""
        for source in self.sources:
            for column in source.unsupported:
                if column.name.lower() == name.lower() and alias in (None, source.alias):
                    return column
        return None

    def names(self) -> tuple[str, ...]:
        """Return the names of all columns."""
        return tuple(output.name for source in self.sources for output in source.outputs)

    def all(self, alias: str | None = None) -> list[Output]:
        """Return the columns of `*` or of `alias.*`; a name of USING comes once."""
        outputs = [output for output in self._outputs(alias) if not output.implied]
        names = [output.name.lower() for output in outputs]
        merged = self.merged if alias is None else set()
        places = [at for at, name in enumerate(names) if name not in merged or names.index(name) == at]
        return [outputs[at] for at in places]

    def _outputs(self, alias: str | None) -> list[Output]:
        return [
            output
            for source in self.sources
            if alias is None or source.alias.lower() == alias.lower()
            for output in source.outputs
        ]
