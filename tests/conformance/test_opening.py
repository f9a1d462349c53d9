"""Tables of PostgreSQL are opened as they are: odd names, odd types, odd roles, hostile functions."""

from __future__ import annotations

from typing import Any

import pytest

from sfumato.backends.postgres import PostgresBackend, PostgresTables
from sfumato.catalog import Catalog, Field, Kind, Table, Unit, between
from sfumato.errors import InvalidArgument
from tests.conformance.server import Server
from tests.engine.questions import Asked
from tests.engine.replay import planned

NAME = 'odd "name" é'


@pytest.fixture(scope="module")
def odd(connection: Any) -> str:
    """Make a schema of odd tables, and return its name."""
    connection.execute(
        """
        CREATE SCHEMA "Odd ""one"; CREATE ROLE reader LOGIN; GRANT USAGE ON SCHEMA "Odd ""one" TO reader;
        SET search_path = "Odd ""one";
        CREATE TABLE "odd ""name"" é" ("Who" int, "a""b" numeric(10,2), t timestamptz, free numeric,
            pad char(5), v varchar(9), u uuid, j jsonb, l int[], wide numeric(39,2), r real);
        INSERT INTO "odd ""name"" é" ("Who", "a""b", t) VALUES
            (1, 'NaN', 'infinity'), (1, 2.5, '2024-01-01 05:30+05:30'), (2, 3, '-infinity'), (NULL, 9, now());
        CREATE VIEW seen AS SELECT random() AS x;
        CREATE TABLE hidden (who int); ALTER TABLE hidden ENABLE ROW LEVEL SECURITY;
        GRANT SELECT ON hidden TO reader;
        CREATE SCHEMA unkind; GRANT USAGE ON SCHEMA unkind TO PUBLIC;
        CREATE FUNCTION unkind.least(numeric, numeric) RETURNS numeric LANGUAGE sql AS 'SELECT 1/0.0';
        CREATE FUNCTION unkind.count(anyelement) RETURNS bigint LANGUAGE sql AS 'SELECT 7::bigint';
        RESET search_path;
        """
    )
    return 'Odd "one'


def test_columns_are_read_by_their_types(server: Server, odd: str) -> None:
    tables = PostgresTables(server.address, {"t": (odd, NAME)})
    assert {one.name: one.kind for one in tables.fields("t")} == {
        "Who": Kind.INTEGER,
        'a"b': Kind.decimal(10, 2),
        "t": Kind.TIMESTAMP,
        "v": Kind.TEXT,
        "u": Kind.TEXT,
        "r": Kind.FLOAT,
    }
    assert {one.name for one in tables.left_out("t")} == {"free", "pad", "j", "l", "wide"}


def test_odd_names_zones_and_hostile_functions_change_nothing(server: Server, odd: str) -> None:
    """NaN and infinite moments are NULL, a moment with a zone is one in UTC, and built-ins are built in."""
    tables = PostgresTables(f"{server.address} options='-c search_path=unkind'", {"t": (odd, NAME)})
    unit = Unit(name="who", column="Who")
    fields = (
        Field("Who", Kind.INTEGER),
        Field('a"b', Kind.decimal(10, 2), between(0, 4)),
        Field("t", Kind.TIMESTAMP),
    )
    catalog = Catalog((Table(name="t", fields=fields, unit=unit),))
    text = 'SELECT COUNT(*), COUNT(t), COUNT("a""b") FILTER (WHERE HOUR(t) = 0), COUNT("a""b" * 2) FROM t'
    query = planned(Asked(text, {"max_rows": 9}), catalog).query
    [groups] = PostgresBackend(tables, catalog).run(query).reveal()
    counts = [int(values[0]) for values in groups.measures.values()]
    assert counts == [3, 1024, 1024, 2048]  # a value that is there is 1,024 steps


@pytest.mark.parametrize("table", ["seen", "absent", "hidden", NAME])
def test_what_cannot_be_read_whole_is_refused_when_it_is_opened(server: Server, odd: str, table: str) -> None:
    """A view, no table, one whose rows a policy hides, one without the right to read it."""
    address = server.address.replace("user=postgres", "user=reader")
    with pytest.raises(InvalidArgument, match="table `t`") as raised:
        PostgresTables(address, {"t": (odd, table)})
    assert raised.value.__context__ is None


def test_an_address_that_is_wrong_is_not_repeated(server: Server) -> None:
    for address in (f"{server.address} password=secret", "postgresql://me:secret@localhost:1/x", "secret"):
        if "password" in address:
            address = address.replace("dbname=postgres", "dbname=nothing")
        with pytest.raises(InvalidArgument, match="cannot be reached") as raised:
            PostgresTables(address, {})
        assert "secret" not in repr(raised.value) and raised.value.__context__ is None
