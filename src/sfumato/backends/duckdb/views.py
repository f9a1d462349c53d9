"""Views of DuckDB files: which of them can be opened as tables, and how.

A view is a question that somebody else wrote, and is computed when it is read. So it is read once, when it is
opened, and copied: then no value can make a later question fail, and nothing in it changes between questions.

Of a public table any view will do that reads tables of its own file. Of a private one each row must belong
to the unit that it names. Where a row of a view is computed from one row of one table, it does, as the row
of the table does. Where it is computed from several (joins, aggregates, windows, LIMIT, DISTINCT), one
person's row could change another person's: such a view is refused. Its owner can make a table of it.
"""

from __future__ import annotations

from typing import Any, NoReturn

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from sfumato.errors import InvalidArgument
from sfumato.plan.syntax import has_aggregate, is_volatile

__all__ = ["check_view"]

_ROW_BY_ROW = {"kind", "hint", "expressions", "from_", "where"}


def check_view(connection: Any, attached: str, schema: str, view: str, *, private: bool) -> None:
    """Refuse a view that reads beyond the tables of its file, or whose rows may be of several people."""
    [text] = connection.execute(
        "SELECT sql FROM duckdb_views() WHERE database_name = ? AND schema_name = ? AND view_name = ?",
        [attached, schema, view],
    ).fetchone()
    tables = connection.execute(
        "SELECT lower(schema_name), lower(table_name) FROM duckdb_tables() WHERE database_name = ?",
        [attached],
    ).fetchall()
    query = _query_of(text)
    if query is None or not _reads_tables(query, set(tables), schema):
        _refuse(view, "reads something else than tables of its file")
    if private and not _row_by_row(query):
        _refuse(view, "does not make each of its rows from one row of one table")


def _query_of(text: str) -> exp.Expr | None:
    try:
        statement = sqlglot.parse_one(text, read="duckdb")
    except SqlglotError:
        return None
    query = statement.args.get("expression") if isinstance(statement, exp.Create) else None
    return query if isinstance(query, exp.Query) else None


def _reads_tables(query: exp.Expr, tables: set[tuple[str, str]], schema: str) -> bool:
    """Whether all that a query reads are tables by name: no function, no file, no other database, no view."""
    named = {cte.alias.lower() for cte in query.find_all(exp.CTE)}
    for node in query.find_all(exp.Table):
        if not isinstance(node.this, exp.Identifier) or node.args.get("catalog") is not None:
            return False
        own = (node.db or schema).lower(), node.name.lower()
        if own not in tables and (node.db or node.name.lower() not in named):
            return False
    return not any(query.find(kind) for kind in (exp.Unnest, exp.Lateral, exp.Values, exp.Pivot))


def _row_by_row(query: exp.Expr) -> bool:
    """Whether each row of a query is computed from one row of one table."""
    if not isinstance(query, exp.Select) or any(
        value and name not in _ROW_BY_ROW for name, value in query.args.items()
    ):
        return False
    if len(list(query.find_all(exp.Table))) != 1 or len(list(query.find_all(exp.Query))) != 1:
        return False
    return not has_aggregate(query) and not any(
        isinstance(node, (exp.Window, exp.Explode, exp.Anonymous)) or is_volatile(node)
        for node in query.walk()
    )


def _refuse(view: str, reason: str) -> NoReturn:
    raise InvalidArgument(
        f"`{view}` is a view in the DuckDB file, and {reason}",
        place=view,
        hints=("make a table of it, each of whose rows is about one person: CREATE TABLE .. AS SELECT ..",),
    )
