"""Views of DuckDB files: which of them can be opened as tables, and how.

A view is a question that somebody else wrote, and is computed when it is read. So it is read once, when it is
opened, and copied: then no value can make a later question fail, and nothing in it changes between questions.

Of a public table any view will do that reads tables of its own file. Of a private one each row must belong
to the unit that it names. Where a row of a view is computed from one row of one table, it does, as the row
of the table does. Where it is computed from several (joins, aggregates, windows, LIMIT, DISTINCT, samples),
or from where the row lies (`rowid`), one person's row could change another's: such a view is refused. Its
owner can make a table of it.

What a view does is read off the syntax tree that the engine itself makes of it, and all that is not listed
here is refused. A file may hold macros of its own, which the engine takes for functions and operators, before
its own of the same name: `upper(name)` can be the largest name of all. So no view of such a file is opened.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NoReturn

import sqlglot
from sqlglot import TokenType
from sqlglot.errors import SqlglotError

from sfumato.errors import InvalidArgument

__all__ = ["check_view"]

_Tree = dict[str, Any]

_RELATIONS = {  # parts of a query that read tables, or divide and order rows
    *("SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "BASE_TABLE", "JOIN", "SUBQUERY", "EMPTY"),
    *("ORDER_MODIFIER", "DISTINCT_MODIFIER", "LIMIT_MODIFIER", "LIMIT_PERCENT_MODIFIER"),
    *("ORDER_DEFAULT", "ASCENDING", "DESCENDING"),
}
_EXPRESSIONS = {  # of which each has a value for every row, and reads no other row
    *("BETWEEN", "CASE", "CAST", "COLLATE", "COLUMN_REF", "COMPARISON", "CONJUNCTION", "CONSTANT"),
    *("FUNCTION", "OPERATOR", "STAR", "TYPE"),
}
_PLACES = {"alias", "query_location", "query_location_length"}
_PARTS = {  # what may be said in each part of a view whose rows are made of one row each; all else is empty
    "SELECT_NODE": {"type", "select_list", "from_table", "where_clause", "cte_map", "aggregate_handling"},
    "BASE_TABLE": {*_PLACES, "type", "schema_name", "table_name", "qualified_name"},
    "FUNCTION": {
        *(*_PLACES, "class", "type", "function_name", "arguments", "order_bys", "is_operator"),
        "qualified_name",
    },
}
_FUNCTIONS = {  # functions of the engine whose value is a function of the arguments alone
    *("+", "-", "*", "/", "//", "%", "**", "^", "||", "&", "|", "~", "<<", ">>", "~~", "!~~", "~~*", "!~~*"),
    *("~~~", "^@", "like_escape", "not_like_escape", "ilike_escape", "not_ilike_escape"),
    *("abs", "ceil", "ceiling", "exp", "fdiv", "floor", "fmod", "greatest", "isfinite", "isinf", "isnan"),
    *("least", "ln", "log", "log10", "log2", "mod", "pow", "power", "round", "sign", "sqrt", "trunc"),
    *("if", "nullif"),
    *("ascii", "chr", "concat", "concat_ws", "contains", "ends_with", "instr", "lcase", "left", "len"),
    *("length", "lower", "lpad", "ltrim", "md5", "position", "prefix", "regexp_escape", "regexp_extract"),
    *("regexp_full_match", "regexp_matches", "regexp_replace", "repeat", "replace", "reverse", "right"),
    *("rpad", "rtrim", "sha256", "split_part", "starts_with", "strip_accents", "strpos", "substr"),
    *("substring", "suffix", "translate", "trim", "ucase", "unicode", "upper"),
    *("century", "date_add", "date_diff", "date_part", "date_sub", "date_trunc", "datediff", "datepart"),
    *("datesub", "datetrunc", "day", "dayname", "dayofmonth", "dayofweek", "dayofyear", "decade", "epoch"),
    *("epoch_ms", "epoch_us", "hour", "isodow", "isoyear", "last_day", "make_date", "make_timestamp"),
    *("microsecond", "millisecond", "minute", "month", "monthname", "quarter", "second", "strftime"),
    *("strptime", "time_bucket", "timezone", "to_days", "to_hours", "to_minutes", "to_months", "to_seconds"),
    *("to_weeks", "to_years", "try_strptime", "week", "weekday", "weekofyear", "year", "yearweek"),
}


def check_view(connection: Any, attached: str, schema: str, view: str, *, private: bool) -> None:
    """Refuse a view that reads beyond the tables of its file, or whose rows may be of several people.

    Theorem: each row of a private view that passes is a function of one row of one table of its file.
    Assumes: the functions in `_FUNCTIONS` and the types of the engine are functions of their arguments.
    Proof: the engine's own tree of the view has one SELECT, whose parts are a list, one table and a condition
    (`_PARTS`). Its expressions are those of `_EXPRESSIONS`, which hold no subquery, window or lambda. Its
    names are columns that are stored in the table, never `rowid`. Its functions have names of the engine's,
    and are the engine's: the file has no macros, and the engine keeps no other function in a file.
    """
    [text] = connection.execute(
        "SELECT sql FROM duckdb_views() WHERE database_name = ? AND schema_name = ? AND view_name = ?",
        [attached, schema, view],
    ).fetchone()
    [macros] = connection.execute(
        "SELECT count(*) FROM duckdb_functions() WHERE database_name = ?", [attached]
    ).fetchone()
    if macros:
        _refuse(view, "its file has macros, which may stand for any function in it")
    columns: dict[tuple[str, str], dict[str, bool]] = {}
    for where, table, column, generated in connection.execute(
        "SELECT lower(schema_name), lower(table_name), lower(column_name), is_generated FROM duckdb_columns()"
        " SEMI JOIN duckdb_tables() USING (database_name, schema_name, table_name) WHERE database_name = ?",
        [attached],
    ).fetchall():
        columns.setdefault((where, table), {})[column] = generated
    query = _query_of(connection, text)
    if query is None or not _reads_tables(query, set(columns), schema.lower(), frozenset()):
        _refuse(view, "it reads something else than tables of its file")
    if private and not _row_by_row(query, columns, schema.lower()):
        _refuse(view, "it does not make each of its rows from one row of one table")


def _query_of(connection: Any, text: str) -> _Tree | None:
    """Return the engine's syntax tree of a view, from the statement that creates it."""
    try:
        tokens = sqlglot.tokenize(text, read="duckdb")
    except SqlglotError:
        return None
    begins = next((token.end + 1 for token in tokens if token.token_type is TokenType.ALIAS), len(text))
    [tree] = connection.execute("SELECT json_serialize_sql(?)", [text[begins:]]).fetchone()
    statements = json.loads(tree).get("statements", [])
    return statements[0]["node"] if len(statements) == 1 else None


def _reads_tables(tree: Any, tables: set[tuple[str, str]], schema: str, named: frozenset[str]) -> bool:
    """Whether all that a query reads are tables by name: no function, no file, no other database, no view."""
    if isinstance(tree, list):
        return all(_reads_tables(one, tables, schema, named) for one in tree)
    if not isinstance(tree, dict):
        return True
    if isinstance(tree.get("type"), str) and "class" not in tree and tree["type"] not in _RELATIONS:
        return False
    if tree.get("type") == "BASE_TABLE":
        where, table = tree["schema_name"].lower(), tree["table_name"].lower()
        known = (where or schema, table) in tables or (not where and table in named)
        return known and not tree["catalog_name"] and not tree["at_clause"]
    if "cte_map" in tree:
        named |= {one["key"].lower() for one in tree["cte_map"]["map"]}
    return all(_reads_tables(one, tables, schema, named) for one in tree.values())


def _row_by_row(query: _Tree, columns: dict[tuple[str, str], dict[str, bool]], schema: str) -> bool:
    """Whether each row of a query that reads tables is computed from one row of one table."""
    table = query.get("from_table") or {}
    if query["type"] != "SELECT_NODE" or table.get("type") != "BASE_TABLE":
        return False
    plain = not query["cte_map"]["map"] and query["aggregate_handling"] == "STANDARD_HANDLING"
    stored = columns.get((table["schema_name"].lower() or schema, table["table_name"].lower()), {})
    if not plain or not stored or any(stored.values()) or not (_only_parts(query) and _only_parts(table)):
        return False
    nodes = (*_expressions(query["select_list"]), *_expressions(query["where_clause"]))
    return all(_reads_one_row(node, set(stored)) for node in nodes)


def _reads_one_row(node: _Tree, stored: set[str]) -> bool:
    """Whether an expression reads columns of one row, and calls functions of the engine alone."""
    match node["class"]:
        case "COLUMN_REF":  # a table's name may stand before a column's, and a field's behind it
            names = {one.lower() for one in node["column_names"]}
            return bool(names & stored) and "rowid" not in names - stored
        case "FUNCTION":
            return node["function_name"].lower() in _FUNCTIONS and _only_parts(node)
        case other:
            return other in _EXPRESSIONS


def _only_parts(node: _Tree) -> bool:
    """Whether nothing is said in a node beyond what is listed in `_PARTS`."""
    return not any(value for key, value in node.items() if key not in _PARTS[node["type"]])


def _expressions(tree: Any) -> Iterator[_Tree]:
    if isinstance(tree, dict):
        if "class" in tree:
            yield tree
        tree = list(tree.values())
    if isinstance(tree, list):
        for one in tree:
            yield from _expressions(one)


def _refuse(view: str, reason: str) -> NoReturn:
    raise InvalidArgument(
        f"`{view}` is a view in the DuckDB file, and {reason}",
        place=view,
        hints=("make a table of it, each of whose rows is about one person: CREATE TABLE .. AS SELECT ..",),
    )
