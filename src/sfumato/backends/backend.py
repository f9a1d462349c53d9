"""A backend: what the one path asks of an engine, whichever it is."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol

from sfumato.analysis.bounded import BoundedQuery
from sfumato.backends.exact import Exact, ExactGroups
from sfumato.catalog import Catalog, Value
from sfumato.plan.tree import Expression, Relation

__all__ = ["Backend"]


class Backend(Protocol):
    """What touches data: computes exact integers, and names the version of the data it computes from."""

    def run(self, query: BoundedQuery) -> Exact[tuple[ExactGroups, ...]]:
        """Return the exact groups of a bounded query, one entry per grouping set."""
        ...

    def check(self, query: BoundedQuery) -> None:
        """Refuse a bounded query that `run` could not compute, whatever the data. Reads none."""
        ...

    def admitted(self) -> AbstractContextManager[None]:
        """Hold what one question may take of the engine; wait for it while other questions run."""
        ...

    def data_version(self) -> str:
        """Return what tells this data from an earlier or later state of it."""
        ...

    def public_table(self, name: str) -> Any:
        """Return a public table, for post-processing."""
        ...

    def under(self, catalog: Catalog) -> Backend:
        """Return a backend over the same data under other declarations."""
        ...

    def public_copies(self, table: str, columns: tuple[str, ...]) -> int:
        """Return the largest number of rows of a public table that agree in some columns."""
        ...

    def public_keys(
        self, relation: Relation, keys: Sequence[Expression], most: int
    ) -> tuple[tuple[Value, ...], ...] | None:
        """Return the different values of keys over public rows, without NULL; None: more than `most`."""
        ...
