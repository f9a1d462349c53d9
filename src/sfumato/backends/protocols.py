"""What every engine offers: sources, which are open tables, and backends, which compute bounded queries."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, Protocol

from sfumato.analysis.bounded import BoundedQuery
from sfumato.backends.exact import Exact, ExactGroups, UnitRows
from sfumato.catalog.catalog import Catalog
from sfumato.catalog.kind import Value
from sfumato.catalog.table import Field, UnsupportedColumn
from sfumato.plan.tree import Expression, Projection, Relation

if TYPE_CHECKING:
    from sfumato.backends.duckdb.participants import Participants
    from sfumato.backends.duckdb.period_rows import PeriodRows

__all__ = ["Backend", "Source"]


class Backend(Protocol):
    """Computes bounded queries over open tables. What goes wrong in an engine is `EngineFailure`.

    What an engine cannot do with the one meaning is refused by name, by `check`, before anything is charged.
    """

    def run(
        self,
        query: BoundedQuery,
        *,
        participants: Participants | None = None,
        rows: PeriodRows | None = None,
        _salt: int | None = None,
    ) -> Exact[tuple[ExactGroups, ...]]:
        """Return the exact integers of every group, one entry per grouping set."""
        ...

    def check_rows(self, purpose: str) -> None:
        """Refuse what needs rows, where they do not leave the engine: before anything is charged."""
        ...

    def training_rows(self, relation: Projection) -> Exact[UnitRows]:
        """Return the rows of a relation of numbers, a unit's own beside each other."""
        ...

    def row_hash(self) -> str:
        """Return what tells the hashes of rows from those of another version of the engine."""
        ...

    def parts(self, name: str) -> tuple[str, ...]:
        """Return a hash of each file of a table."""
        ...

    def admitted(self) -> AbstractContextManager[None]:
        """Hold what one question needs of the engine; wait for it while others run."""
        ...

    def data_version(self) -> str:
        """Return what tells this data from an earlier or later state; refuse an engine that has stopped."""
        ...

    def public_table(self, name: str) -> Any:
        """Return a public table in Arrow's form, for post-processing."""
        ...

    def under(self, catalog: Catalog) -> Backend:
        """Return a backend over the same data under other declarations."""
        ...

    def public_keys(
        self, relation: Relation, keys: Sequence[Expression], most: int
    ) -> tuple[tuple[Value, ...], ...] | None:
        """Return the different values of keys over public rows in their order; None: more than `most`."""
        ...

    def public_copies(self, name: str, columns: tuple[str, ...]) -> int:
        """Return how many rows of a public table have the same values, at most; without columns, all."""
        ...

    def check(self, query: BoundedQuery) -> None:
        """Refuse a query that this engine has no words for. Reads nothing private."""
        ...

    def check_names(self) -> None:
        """Refuse names of units of which two are read as one."""
        ...


class Source(Protocol):
    """Open tables: facts about them, and no values."""

    def fields(self, table: str) -> tuple[Field, ...]:
        """Return the columns of a table and their kinds."""
        ...

    def left_out(self, table: str) -> tuple[UnsupportedColumn, ...]:
        """Return the columns of a table that cannot be asked about."""
        ...

    def version(self) -> str:
        """Return a hash that differs where the data may differ."""
        ...

    def identities(self, table: str) -> tuple[str, ...]:
        """Return texts that identify where a table comes from."""
        ...

    def backend(self, catalog: Catalog, *, threads: int | None = None) -> Backend:
        """Return what computes bounded queries from these tables."""
        ...

    def close(self) -> None:
        """Close the tables."""
        ...
