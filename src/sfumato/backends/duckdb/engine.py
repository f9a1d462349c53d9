"""The engine at work on one question: SELECTs in, columns out, and tables that go when they are done with."""

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy.typing as npt

from sfumato.backends.arrays import array_of
from sfumato.interrupts import interruptible

__all__ = ["Engine", "with_engine"]

_T = TypeVar("_T")


class Engine:
    """A connection of its own. Names of its tables are random, so that they meet no other."""

    def __init__(self, cursor: Any) -> None:
        self._cursor = cursor

    def one(self, sql: str) -> Any:
        """Return the only value of a SELECT."""
        return self._cursor.execute(sql).fetchall()[0][0]

    def table(self, sql: str) -> Any:
        """Return the rows of a SELECT as an Arrow table."""
        return self._cursor.sql(sql).to_arrow_table()

    def columns(self, sql: str) -> list[npt.NDArray[Any]]:
        """Return the columns of a SELECT of integers as arrays."""
        return [array_of(column) for column in self.table(sql).columns]

    @contextmanager
    def named(self, sql: str, *, kept: bool = True) -> Iterator[str]:
        """Give the rows of a SELECT a name: as a table, or, unless `kept`, as the SELECT that they are."""
        if not kept:
            yield f"({sql})"
            return
        name = _name()
        self._cursor.execute(f"CREATE TEMP TABLE {name} AS {sql}")
        yield name
        self._cursor.execute(f"DROP TABLE {name}")

    @contextmanager
    def given(self, table: Any) -> Iterator[str]:
        """Give an Arrow table a name."""
        name = _name()
        self._cursor.register(name, table)
        yield name
        self._cursor.unregister(name)


def with_engine(cursor: Any, action: Callable[[Engine], _T]) -> _T:
    """Return what an action makes of a connection, and close the connection; Ctrl-C stops the action."""
    try:
        return interruptible(lambda: action(Engine(cursor)), cursor.interrupt)
    finally:
        cursor.close()


def _name() -> str:
    return f"__t{secrets.token_hex(8)}"
