"""Materialized views: which of them can be opened as private tables.

The rows of a materialized view are stored, but the server computes them anew at each REFRESH, by a query that
it keeps. Where that query makes a row from several rows, one person's row could change another's: such a view
is refused as a private table. Its owner can make an ordinary table of it.

What the query does is read off the tree that the server keeps of it. Each node begins with a brace and its
name, and the server puts a backslash before every brace and space of a name or a text: none can imitate one.
"""

from __future__ import annotations

import re
from typing import Any

__all__ = ["is_row_by_row"]

_TREE = (
    "SELECT r.oid, r.ev_action::text FROM pg_rewrite AS r WHERE r.ev_class = %s AND r.rulename = '_RETURN'"
)
_NODE = re.compile(r"(?<!\\)\{(\w+)")
_NODES = {  # parts of a query of one table, and expressions that read one row
    *(
        "QUERY",
        "ALIAS",
        "FROMEXPR",
        "RANGETBLENTRY",
        "RTE",
        "RANGETBLREF",
        "RTEPERMISSIONINFO",
        "TARGETENTRY",
    ),
    *("ARRAY", "ARRAYEXPR", "BOOLEANTEST", "BOOLEXPR", "CASE", "CASEEXPR", "CASETESTEXPR", "CASEWHEN"),
    *("COALESCE", "COALESCEEXPR", "COERCEVIAIO", "COLLATE", "COLLATEEXPR", "CONST", "DISTINCTEXPR"),
    *("FUNCEXPR", "MINMAX", "MINMAXEXPR", "NULLIFEXPR", "NULLTEST", "OPEXPR", "RELABELTYPE"),
    *("SCALARARRAYOPEXPR", "SUBSCRIPTINGREF", "VAR", "WHEN"),
}
_EMPTY = ("cteList", "groupClause", "groupingSets", "havingQual", "limitCount", "limitOffset", "rowMarks")
_ELSEWHERE = (  # what the query depends on, beyond its own columns and those of ordinary tables
    "SELECT count(DISTINCT c.oid) FILTER (WHERE c.oid <> %(view)s),"
    " count(*) FILTER (WHERE c.oid IS NULL OR c.relrowsecurity"
    " OR c.oid <> %(view)s AND c.relkind NOT IN ('r', 'p'))"
    " FROM pg_depend AS d"
    " LEFT JOIN pg_class AS c ON d.refclassid = 'pg_class'::regclass AND c.oid = d.refobjid"
    " WHERE d.classid = 'pg_rewrite'::regclass AND d.objid = %(rule)s"
)
_FAR = (  # parts of the table that another server holds, where they may be a view
    "WITH RECURSIVE f(oid) AS (SELECT refobjid FROM pg_depend WHERE classid = 'pg_rewrite'::regclass"
    " AND objid = %(rule)s AND refclassid = 'pg_class'::regclass AND refobjid <> %(view)s"
    " UNION SELECT i.inhrelid FROM pg_inherits AS i JOIN f ON i.inhparent = f.oid)"
    " SELECT count(*) FROM f JOIN pg_class AS c ON c.oid = f.oid WHERE c.relkind NOT IN ('r', 'p')"
)
_MOVING = (  # functions, also those of operators, that may be more than a function of their arguments
    "SELECT count(*) FROM pg_proc AS p WHERE (p.provolatile <> 'i' OR p.proretset OR p.oid >= 16384)"
    " AND p.oid IN (SELECT unnest(%(functions)s::oid[])"
    " UNION SELECT o.oprcode FROM pg_operator AS o WHERE o.oid = ANY (%(operators)s::oid[]))"
)


def is_row_by_row(cursor: Any, view: int) -> bool:
    """Return whether each row of a materialized view is made from one row of one table.

    Theorem: then each row of the view is a function of one row of one ordinary table, as it was stored.
    Assumes: immutable functions that the server brings itself are functions of their arguments.
    Proof: the tree has one QUERY and one item in its FROM. It depends on one table, which has no row
    security and no part on another server, and on no function, operator or type of a user. Its nodes are
    those of `_NODES`: no join, subquery, aggregate, window, DISTINCT, ORDER BY or sample is there. The
    clauses of `_EMPTY` are empty. So the query computes a list of expressions of each row that meets a
    condition. Both read stored columns of that row alone, for the hidden ones (`ctid`) have negative numbers.
    """
    [(rule, tree)] = cursor.execute(_TREE, (view,)).fetchall()
    nodes = _NODE.findall(tree)
    if set(nodes) - _NODES or nodes.count("QUERY") != 1 or nodes.count("RANGETBLREF") != 1:
        return False
    if " :varattno -" in tree or not all(f" :{field} <> " in tree for field in _EMPTY):
        return False
    found = cursor.execute(_ELSEWHERE, {"view": view, "rule": rule}).fetchall()
    [(far,)] = cursor.execute(_FAR, {"view": view, "rule": rule}).fetchall()
    called = {
        which: [int(oid) for oid in re.findall(rf" :{field} (\d+)", tree)]
        for which, field in (("functions", "funcid"), ("operators", "opno"))
    }
    [(moving,)] = cursor.execute(_MOVING, called).fetchall()
    return bool(found == [(1, 0)] and not far and not moving)
