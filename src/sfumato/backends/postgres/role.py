"""What a role may do beyond reading the tables that it was given for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

__all__ = ["excess_rights"]

_ROLE = (
    "SELECT rolsuper, rolcreaterole, rolcreatedb, rolreplication FROM pg_roles WHERE rolname = current_user"
)
_WRITES = (
    "SELECT count(*) FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace"
    " WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema')"
    " AND n.nspname NOT LIKE 'pg\\_%%' AND has_schema_privilege(n.oid, 'USAGE')"
    " AND (has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')"
    " OR has_any_column_privilege(c.oid, 'INSERT, UPDATE'))"
)
_OTHERS = (
    "SELECT count(*) FROM pg_class AS c JOIN pg_namespace AS n ON n.oid = c.relnamespace"
    " WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND n.nspname NOT IN ('pg_catalog', 'information_schema')"
    " AND n.nspname NOT LIKE 'pg\\_%%' AND has_schema_privilege(n.oid, 'USAGE')"
    " AND has_any_column_privilege(c.oid, 'SELECT') AND c.oid <> ALL (%s::oid[])"
)
_CREATES = (
    "SELECT has_database_privilege(current_database(), 'CREATE') OR EXISTS (SELECT 1 FROM pg_namespace"
    " WHERE nspname NOT LIKE 'pg\\_%%' AND has_schema_privilege(oid, 'CREATE'))"
)


def excess_rights(cursor: Any, tables: Sequence[int]) -> tuple[str, ...]:
    """Return what a role may do beyond reading some tables, in words; no name of the database is in them."""
    return tuple(_excess(cursor, tables))


def _excess(cursor: Any, tables: Sequence[int]) -> Iterator[str]:
    [attributes] = cursor.execute(_ROLE).fetchall()
    if attributes[0]:
        yield "it is a superuser"
        return
    if any(attributes):
        yield "it may make roles or databases, or replicate"
    if cursor.execute(_WRITES, ()).fetchone()[0]:
        yield "it may write to tables"
    if cursor.execute(_OTHERS, (list(tables),)).fetchone()[0]:
        yield "it may read other tables"
    if cursor.execute(_CREATES, ()).fetchone()[0]:
        yield "it may create tables or schemas"
