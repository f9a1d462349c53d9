"""Workloads of a project file: questions and tables that are asked together, by a name."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from fractions import Fraction
from pathlib import Path
from typing import Any

from sfumato.catalog.checks import Checks, Place
from sfumato.catalog.declaration import nearest
from sfumato.catalog.project import ProjectMarginals, ProjectWorkload
from sfumato.core.arguments import budget_quantity, count, positive

__all__ = ["Workloads"]

_WEIGHTS = ("cells", "tables")
_BASES = ("cells", "prefixes", "ranges")


class Workloads(Checks):
    """Reads [workloads] and [marginals]."""

    def questions(self, workloads: Any, folder: Path) -> dict[str, ProjectWorkload]:
        """Read the files of questions."""
        self.mapping(workloads, ("workloads",), "workloads are [workloads.<name>]")
        found = {}
        for name, one in workloads.items():
            at = ("workloads", name)
            self.known(one, at, "workloads.<name>", "a workload has keys of its own: file, epsilon")
            file = self.text(one, at, "file", 'the file with its questions: file = "questions.sql"')
            size = None if "size" not in one else self.attempt((*at, "size"), positive, one["size"], "size")
            found[name] = ProjectWorkload(
                file=str(folder / str(file)), epsilon=self._epsilon(one, at), size=size
            )
        return found

    def marginals(self, marginals: Any, private: Collection[str]) -> dict[str, ProjectMarginals]:
        """Read the contingency tables; whether they fit the columns is known when tables are open."""
        self.mapping(marginals, ("marginals",), "marginals are [marginals.<name>]")
        found = {}
        for name, one in marginals.items():
            at = ("marginals", name)
            self.known(one, at, "marginals.<name>", "marginals have keys of their own: columns, ways, ..")
            found[name] = ProjectMarginals(
                columns=self._columns(one, at),
                table=self._table(one, at, private),
                ways=self._ways(one, at),
                weights=self._weights(one.get("weights", "cells"), (*at, "weights")),
                bins=self._bins(one.get("bins", {}), (*at, "bins")),
                bases=self._bases(one.get("bases", {}), (*at, "bases")),
                missing=self._missing(one.get("missing", False), (*at, "missing")),
                epsilon=self._epsilon(one, at),
            )
        return found

    def _epsilon(self, one: Mapping[str, Any], at: Place) -> Fraction | None:
        if "epsilon" not in one:
            return None
        return self.attempt((*at, "epsilon"), budget_quantity, one["epsilon"], "epsilon")

    def _table(self, one: Mapping[str, Any], at: Place, private: Collection[str]) -> str | None:
        table = self.text(one, at, "table", None)
        if table is not None and table.lower() not in {name.lower() for name in private}:
            near = nearest(table, tuple(private)) or f"private tables: {', '.join(private)}"
            self.refuse(f"`{table}` is not a private table of this project", (*at, "table"), near)
        return table

    def _columns(self, one: Mapping[str, Any], at: Place) -> tuple[str, ...] | tuple[tuple[str, ...], ...]:
        hint = 'columns = ["age", "sex"] with ways = 2, or the tables: [["age", "sex"], ["job"]]'
        columns = self.need(one, at, "columns", hint)
        if _names(columns) and columns:
            return tuple(columns)
        if not isinstance(columns, list) or not columns or not all(map(_names, columns)):
            self.refuse("columns are a list of names, or of tables of names", (*at, "columns"), hint)
        return tuple(map(tuple, columns))

    def _ways(self, one: Mapping[str, Any], at: Place) -> tuple[int, ...] | None:
        if "ways" not in one:
            return None
        several = one["ways"] if isinstance(one["ways"], list) else [one["ways"]]
        return tuple(self.attempt((*at, "ways"), count, way, "ways", least=0) for way in several)

    def _weights(self, weights: Any, at: Place) -> str | dict[tuple[str, ...], Fraction]:
        if not isinstance(weights, dict):
            return self.choice(weights, at, _WEIGHTS)
        return {
            tuple(name.strip() for name in table.split(",")): self.attempt(
                (*at, table), positive, weight, "weights"
            )
            for table, weight in weights.items()
        }

    def _bins(self, bins: Any, at: Place) -> dict[str, Any]:
        self.mapping(bins, at, "bins = { age = 10 }, or their edges: { age = [0, 18, 65, 110] }")
        for name, one in bins.items():
            if not isinstance(one, list):
                self.attempt((*at, name), count, one, "bins")
        return dict(bins)

    def _bases(self, bases: Any, at: Place) -> dict[str, str]:
        self.mapping(bases, at, 'bases = { age = "prefixes" }')
        return {name: self.choice(one, (*at, name), _BASES) for name, one in bases.items()}

    def _missing(self, missing: Any, at: Place) -> bool | tuple[str, ...]:
        if isinstance(missing, bool):
            return missing
        if not _names(missing):
            self.refuse("missing is true, or a list of columns", at, 'missing = ["job"]')
        return tuple(missing)


def _names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) and one for one in value)
