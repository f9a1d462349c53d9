"""Engines by name: the same rows, copied into each of them and opened there.

An engine joins the suites of this folder as one class here, and one name in `ENGINES`.
"""

from __future__ import annotations

import itertools
import warnings
from abc import ABC, abstractmethod
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

import sfumato as sf
from sfumato.backends import Source, open_tables
from sfumato.backends.dialect import Dialect
from sfumato.backends.duckdb.dialect import DUCKDB
from sfumato.backends.postgres import PostgresTables
from sfumato.backends.postgres.dialect import POSTGRES
from sfumato.backends.spark.dialect import SPARK
from sfumato.backends.spark.source import SparkTables
from sfumato.catalog import Catalog, Kind, Table
from sfumato.catalog.identifiers import identifier
from sfumato.session import Database
from tests.conformance import spark_session
from tests.conformance.copies import copied
from tests.conformance.server import Server
from tests.soaked import later

__all__ = ["ENGINES", "DuckDB", "Engine", "PostgreSQL", "Rows", "Spark", "arrow", "fields_of", "lean"]

Rows = dict[str, list[dict[str, Any]]]
ENGINES = ("postgresql", "spark")
"""Engines that are held against DuckDB, whose meaning is that of the documentation."""


class Engine(ABC):
    """An engine that is running, and what the suites need of it."""

    name: ClassVar[str]
    worlds: ClassVar[int] = 27
    """In how many worlds questions are asked: opening one may take seconds."""
    dialect: ClassVar[Dialect]
    by_language: ClassVar[str] = ""
    """A text that is compared as a language would, in its words."""

    def known(self, catalog: Catalog) -> Catalog:
        """Return a catalog with the kinds that the columns of this engine have."""
        return catalog

    @abstractmethod
    def tables(self, catalog: Catalog, rows: Rows) -> Source:
        """Copy rows into the engine, and open its tables."""

    @abstractmethod
    def connect(self, catalog: Catalog, rows: Rows, *, public: Collection[str], **declared: Any) -> Database:
        """Copy rows into the engine, and open its tables as users do; the catalog's kinds are taken alone."""


class DuckDB(Engine):
    """The engine that others are held against."""

    name = "duckdb"
    dialect = DUCKDB

    def tables(self, catalog: Catalog, rows: Rows) -> Source:
        return open_tables({table.name: arrow(table, rows[table.name]) for table in catalog.tables})

    def connect(self, catalog: Catalog, rows: Rows, *, public: Collection[str], **declared: Any) -> Database:
        tables = {table.name: arrow(table, rows[table.name]) for table in catalog.tables}
        private = {name: table for name, table in tables.items() if name not in public}
        return sf.connect(private, public={name: tables[name] for name in public}, **declared)


class PostgreSQL(Engine):
    """A server of the tests' own."""

    name = "postgresql"
    dialect = POSTGRES
    by_language = 'CAST({} AS text) COLLATE "en-US-x-icu"'

    def __init__(self, server: Server, connection: Any) -> None:
        self._server, self._connection = server, connection

    def tables(self, catalog: Catalog, rows: Rows) -> PostgresTables:
        schema = copied(self._connection, catalog, rows)
        places = {table.name: (schema, table.name) for table in catalog.tables}
        return PostgresTables(self._server.address, places)

    def connect(self, catalog: Catalog, rows: Rows, *, public: Collection[str], **declared: Any) -> Database:
        schema = copied(self._connection, catalog, rows)
        places = {one.name: f'"{schema}".{identifier(one.name)}' for one in catalog.tables}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the role is the server's owner
            return sf.connect(
                self._server.url,
                table={name: place for name, place in places.items() if name not in public},
                public={name: places[name] for name in public},
                **declared,
            )


def lean(cases: Iterable[Any], of_soak: int = 1, **every: int) -> list[Any]:
    """Return pairs of an engine and a case: of each engine every so many-th, and the rest for the soak.

    Of an engine that is not named all cases are for the soak. CI runs every `of_soak`-th of the rest; but
    Spark takes seconds for what takes PostgreSQL a few milliseconds, and is asked for a fifth of it.
    """

    def marks(name: str, place: int) -> Any:
        if name in every and place % every[name] == 0:
            return ()
        return later(place, 5 if name == "spark" else of_soak)

    return [
        pytest.param(name, case, marks=marks(name, place))
        for name in ENGINES
        for place, case in enumerate(cases)
    ]


_ARROW = {
    Kind.INTEGER: pa.int64(),
    Kind.HUGEINT: pa.uint64(),
    Kind.FLOAT: pa.float32(),
    Kind.REAL: pa.float64(),
    Kind.TEXT: pa.string(),
    Kind.BOOLEAN: pa.bool_(),
    Kind.DATE: pa.date32(),
    Kind.TIMESTAMP: pa.timestamp("us"),
}


def arrow(table: Table, rows: list[dict[str, Any]]) -> pa.Table:
    """Return rows as Arrow's table, each column of the type that is read as its kind."""
    types = {
        one.name: pa.decimal128(one.kind.digits, one.kind.scale) if one.kind.digits else _ARROW[one.kind]
        for one in table.fields
    }
    columns = [pa.array([row[name] for row in rows], of_type) for name, of_type in types.items()]
    return pa.table(columns, schema=pa.schema(list(types.items())))


class Spark(Engine):
    """A Spark of the tests' own, whose tables are frames of Parquet files; it has no column of 128 bits."""

    name = "spark"
    worlds = 2
    dialect = SPARK
    by_language = "CAST({} AS STRING) COLLATE UNICODE"

    def __init__(self, running: spark_session.Spark, folder: Path) -> None:
        self._session, self._folder, self._numbers = running.session, folder, itertools.count()

    def known(self, catalog: Catalog) -> Catalog:
        def known(kind: Kind) -> Kind:
            return Kind.decimal(20, 0) if kind is Kind.HUGEINT else kind

        return Catalog(
            tuple(
                replace(one, fields=tuple(replace(each, kind=known(each.kind)) for each in one.fields))
                for one in catalog.tables
            )
        )

    @contextmanager
    def settings(self, given: Mapping[str, str]) -> Iterator[None]:
        """Hold settings: sessions of tables that are opened meanwhile have them."""
        conf = self._session.conf
        before = {name: conf.get(name) for name in given}
        try:
            for name, value in given.items():
                conf.set(name, value)
            yield
        finally:
            for name, value in before.items():
                conf.set(name, value)

    def _frames(self, catalog: Catalog, rows: Rows) -> dict[str, Any]:
        frames = {}
        for table in catalog.tables:
            path = self._folder / str(next(self._numbers))
            path.mkdir()
            parquet.write_table(arrow(table, rows[table.name]), path / "rows.parquet")
            frames[table.name] = self._session.read.parquet(str(path))
        return frames

    def tables(self, catalog: Catalog, rows: Rows) -> SparkTables:
        return SparkTables(self._session, self._frames(catalog, rows))

    def connect(self, catalog: Catalog, rows: Rows, *, public: Collection[str], **declared: Any) -> Database:
        frames = self._frames(catalog, rows)
        private = {name: frame for name, frame in frames.items() if name not in public}
        return sf.connect(private, public={name: frames[name] for name in public}, **declared)


def fields_of(tables: Mapping[str, pa.Table]) -> Catalog:
    """Return the columns of tables, and nothing declared about them."""
    opened = open_tables(dict(tables))
    try:
        return Catalog(tuple(Table(name=name, fields=opened.fields(name), unit=None) for name in tables))
    finally:
        opened.close()
