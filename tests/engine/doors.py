"""The whole path over small worlds: databases with a ledger, and one whose data must not be touched."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any, NoReturn

from sfumato.analysis import BoundedQuery
from sfumato.backends import Source
from sfumato.backends.duckdb import DuckDBBackend
from sfumato.backends.exact import Exact, ExactGroups
from sfumato.core.accountant import PrivacyBudget
from sfumato.ledger import Ledger
from sfumato.session import Database
from tests.engine.worlds import CATALOG, World

__all__ = ["Forbidden", "Store", "locked", "open_door"]

BUDGET = PrivacyBudget(epsilon=3, delta=1e-6, keys_delta=1e-7)


class Store:
    """A backend over open tables, which counts how often it is asked."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._engine = DuckDBBackend(source, CATALOG)
        self.runs = 0

    def run(self, query: BoundedQuery) -> Exact[tuple[ExactGroups, ...]]:
        self.runs += 1
        return self._engine.run(query)

    def admitted(self) -> AbstractContextManager[None]:
        return self._engine.admitted()

    def data_version(self) -> str:
        return self._source.version()

    def check(self, query: BoundedQuery) -> None:
        self._engine.check(query)

    def public_copies(self, table: str, columns: tuple[str, ...]) -> int:
        return self._engine.public_copies(table, columns)

    def public_table(self, name: str) -> Any:
        return self._source.cursor().sql(f'SELECT * FROM "{name}"').to_arrow_table()

    def public_keys(self, relation: Any, keys: Any, most: int) -> Any:
        return self._engine.public_keys(relation, keys, most)


class Forbidden:
    """A backend that must not be reached: not the rows, not their version, not even public tables."""

    def run(self, query: BoundedQuery) -> NoReturn:
        raise AssertionError("data was read")

    def admitted(self) -> AbstractContextManager[None]:
        return nullcontext()

    def data_version(self) -> NoReturn:
        raise AssertionError("data was looked at")

    def check(self, query: BoundedQuery) -> None:
        pass

    def public_copies(self, table: str, columns: tuple[str, ...]) -> NoReturn:
        raise AssertionError("a public table was read")

    def public_table(self, name: str) -> NoReturn:
        raise AssertionError("a public table was read")

    def public_keys(self, relation: Any, keys: Any, most: int) -> NoReturn:
        raise AssertionError("a public table was read")


def locked(budget: PrivacyBudget = BUDGET) -> Database:
    """Return a database whose data cannot be read."""
    return _database(Forbidden(), budget)


def open_door(world: World, budget: PrivacyBudget = BUDGET) -> Database:
    """Return a database over a world, with a fresh ledger."""
    return _database(Store(world.opened()), budget)


def _database(backend: Any, budget: PrivacyBudget) -> Database:
    ledger = Ledger.open(None)
    for unit in ("person", "name", "row"):
        ledger.register(unit, budget, distinct=True)
    return Database(catalog=CATALOG, terms=budget, ledger=ledger, backend=backend, unit="person")
