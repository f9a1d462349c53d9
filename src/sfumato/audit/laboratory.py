"""The laboratory: invented worlds of a catalog, opened in the engine, for one question after another.

The one place outside `release.noise` that opens exact values: of rows that the auditor was given or made
up, with a salt that it chose. No database, and no ledger, leads here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from sfumato.analysis.bounded import BoundedQuery
from sfumato.audit.black_box import Pair
from sfumato.audit.worlds import Rows, arrow_tables, tables
from sfumato.backends import Source, open_tables
from sfumato.backends.exact import ExactGroups
from sfumato.catalog import Catalog
from sfumato.errors import SfumatoError

__all__ = ["Laboratory", "Ran"]

_SALT = 0x9E3779B97F4A7C15

Ran = tuple[ExactGroups, ...] | str
"""What a run computed, or what it said when it failed."""


class Laboratory:
    """Pairs of neighbouring worlds, each opened once.

    `neighbours` are pairs of rows of every table; unless given, they are proposed from the catalog alone.
    """

    def __init__(
        self,
        catalog: Catalog,
        *,
        neighbours: Sequence[Pair] | None = None,
        public: Mapping[str, list[dict[str, Any]]] | None = None,
    ) -> None:
        self.catalog = catalog
        self.pairs = tuple(tables(catalog, public=public) if neighbours is None else neighbours)
        self._sources: dict[int, Source] = {}

    def source(self, rows: Rows) -> Source:
        """Return the tables of one side of a pair, in the engine."""
        if id(rows) not in self._sources:
            self._sources[id(rows)] = open_tables(arrow_tables(rows, self.catalog), threads=1)
        return self._sources[id(rows)]

    def run(self, query: BoundedQuery, rows: Rows, catalog: Catalog) -> Ran:
        """Return the exact integers of a bounded query under the frozen salt."""
        backend = self.source(rows).backend(catalog, threads=1)
        try:
            ran: tuple[ExactGroups, ...] = backend.run(query, _salt=_SALT).reveal()
            return ran
        except SfumatoError as error:  # an engine that stumbles over somebody tells of them
            return str(error)

    def close(self) -> None:
        """Close all worlds."""
        for source in self._sources.values():
            source.close()
        self._sources.clear()
