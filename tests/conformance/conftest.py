"""One PostgreSQL for all tests of a worker, and one Spark for all tests of a run.

A PostgreSQL takes less than a second to start. Spark takes many: the tests that use it are moved to the
front, so that they are all in the first worker's share, and no other worker takes any of them over.
`engine` is each of them by its name.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests.conformance import spark_session
from tests.conformance.comparing import Worlds
from tests.conformance.engines import ENGINES, Engine, PostgreSQL
from tests.conformance.engines import Spark as OnSpark
from tests.conformance.server import ABSENT, Server, find_or_install


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the tests that use Spark first; the others keep their order."""
    items.sort(key=lambda item: not _uses_spark(item))


def _uses_spark(item: pytest.Item) -> bool:
    given = getattr(getattr(item, "callspec", None), "params", {})
    return "spark" in getattr(item, "fixturenames", ()) or given.get("engine") == "spark"


@pytest.fixture(scope="session")
def server() -> Iterator[Server]:
    """A server that is running."""
    programs = find_or_install()
    if programs is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(ABSENT)
    with Server(programs) as running:
        yield running


@pytest.fixture(scope="session")
def connection(server: Server) -> Iterator[Any]:
    """The owner's connection, to make tables with."""
    import psycopg

    with psycopg.connect(server.address, autocommit=True) as opened:
        opened.execute("SET timezone = 'UTC'; SET datestyle = 'ISO, YMD'; SET extra_float_digits = 1")
        yield opened


@pytest.fixture(scope="session")
def spark() -> Iterator[spark_session.Spark]:
    """A Spark that is running: `spark.session` is classic, `spark.remote()` a session of Connect."""
    java = spark_session.find_or_install()
    if java is None:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(spark_session.ABSENT)
    with spark_session.Spark(java) as running:
        yield running


@pytest.fixture(scope="session")
def postgresql(server: Server, connection: Any) -> PostgreSQL:
    """PostgreSQL, as one of the engines."""
    return PostgreSQL(server, connection)


@pytest.fixture(scope="session")
def on_spark(spark: spark_session.Spark, tmp_path_factory: pytest.TempPathFactory) -> OnSpark:
    """Spark, as one of the engines."""
    return OnSpark(spark, tmp_path_factory.mktemp("spark"))


FIXTURES = {"postgresql": "postgresql", "spark": "on_spark"}


@pytest.fixture(
    scope="session",
    params=[pytest.param(name, marks=[pytest.mark.soak] if name == "spark" else []) for name in ENGINES],
)
def engine(request: pytest.FixtureRequest) -> Engine:
    """Each engine that is held against DuckDB."""
    found: Engine = request.getfixturevalue(FIXTURES[request.param])
    return found


@pytest.fixture(scope="session")
def worlds(engine: Engine) -> Worlds:
    """Small worlds in each engine."""
    return Worlds(engine)
