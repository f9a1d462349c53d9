"""`init`, `check` and `query` on a table of a PostgreSQL database."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.cli.programs import sfumato
from tests.conformance.conftest import connection, server  # noqa: F401 - fixtures
from tests.conformance.server import Server

COUNT = "SELECT region, COUNT(*) AS n FROM stays GROUP BY region"
OPTIONS = ("--unit", "person", "--one-of", "region=north,south", "--max-groups", "1", "--max-rows", "1")


def test_init_check_and_query(tmp_path: Path, server: Server, connection: Any) -> None:  # noqa: F811
    connection.execute(
        "CREATE TABLE stays AS SELECT i AS person, CASE i % 2 WHEN 0 THEN 'north' ELSE 'south' END AS region"
        " FROM generate_series(1, 2000) AS i; CREATE ROLE clerk LOGIN; GRANT SELECT ON stays TO clerk;"
        " REVOKE CREATE ON SCHEMA public FROM PUBLIC"
    )
    parts = dict(part.split("=", 1) for part in server.address.split())
    address = f"postgresql://clerk@/{parts['dbname']}?host={quote(parts['host'], safe='')}"
    made = sfumato(tmp_path, "init", address, "--table", "stays", *OPTIONS, "--yes")
    assert made.returncode == 0, made.stderr
    connection.execute("CREATE TABLE beside (x int); GRANT SELECT ON beside TO clerk")
    checked = sfumato(tmp_path, "check")
    assert checked.returncode == 0 and "stays: private, unit `person`, 2 columns" in checked.stdout
    assert "role: this role may do more than read the named tables: it may read" in checked.stdout
    asked = sfumato(tmp_path, "query", COUNT, "--epsilon", "1", "--format", "json")
    assert asked.returncode == 0, asked.stderr
    assert asked.stderr.startswith("note: this role may do more than read the named tables: it may read")
    rows = json.loads(asked.stdout)["rows"]
    assert [row["region"] for row in rows] == ["north", "south"]
    assert all(abs(row["n"] - 1000) < 100 for row in rows)
    again = sfumato(tmp_path, "init", address, "--table", "stays", *OPTIONS, "--yes", "--project", "b.toml")
    assert again.returncode != 0 and "these people have a ledger already" in again.stderr


def test_bad_addresses_are_refused_without_the_password(tmp_path: Path) -> None:
    for given, said in (
        (("postgresql://me:secret@h/x", "--table", "t"), "no password"),
        (("postgresql://me@127.0.0.1:1/x", "--table", "t"), "cannot be reached"),
        (("postgresql://me@h/x",), "--table"),
        (("postgresql://me@h/x", "a.parquet", "--table", "t"), "one database"),
        (("a.parquet", "--table", "t"), "for a database"),
    ):
        refused = sfumato(tmp_path, "init", *given, "--unit", "person", "--yes")
        assert refused.returncode != 0 and said in refused.stderr, (given, refused.stderr)
        assert "secret" not in refused.stdout + refused.stderr
        assert not list(tmp_path.iterdir())


def test_a_ledger_at_an_address_of_another_form_is_refused_without_the_password(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("person,x\n1,2\n")
    for ledger in ("host=h password=secret", " postgresql://me:secret@h/x"):
        refused = sfumato(tmp_path, "init", "t.csv", "--unit", "person", "--ledger", ledger, "--yes")
        assert refused.returncode != 0 and "neither a file nor an address" in refused.stderr, refused.stderr
        assert "secret" not in refused.stdout + refused.stderr
        assert [one.name for one in tmp_path.iterdir()] == ["t.csv"]
