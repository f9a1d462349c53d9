"""Frames: what a Spark DataFrame is computed from, and whether it is the same rows each time.

A frame is a plan, computed anew by each statement. Its rows are the data, so they must be the same each time.
The plan is read as the engine writes it, the same for classic sessions and Connect; what is not known to be
deterministic is refused by name:

    nodes          those alone that give the same rows in whatever order rows come. Not a limit, a sample, a
                   window or dropDuplicates, nor an aggregate: sums of reals and first values depend on it
    expressions    Spark itself says which depend on chance, on a file's name or on a row's place: a lateral
                   join refuses them. Beside that, the clock, the user, and functions of the user's
    rows           where columns are computed, or parsed (CSV, JSON and XML with FAILFAST and drivers of JDBC
                   fail on a value, where its column is asked about), or rows come from memory, all rows are
                   read as the frame is opened: what fails on a value fails then. Two readings must agree
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from sfumato.backends.spark.dialect import SPARK
from sfumato.errors import InvalidArgument

__all__ = ["FILE", "FramePlan", "contents", "read_plan"]

FILE = "__sf_file"
"""The column of a view that has what Spark knows of the file of a row."""

_STORED = ("Relation", "RelationV2", "HiveTableRelation")
_HELD = ("LocalRelation", "LogicalRDD", "OneRowRelation", "Range")
_SAME = ("SubqueryAlias", "View")
_BY_ROW = (
    "CTERelationDef", "CTERelationRef", "Distinct", "Except", "Filter", "Generate", "Intersect", "Join",
    "Project", "Repartition", "RepartitionByExpression", "ResolvedHint", "Sort", "Union", "WithCTE",
)  # fmt: skip
_PARSED = re.compile(r"\] (csv|json|xml|JDBCRelation)\b")  # the format of a relation, behind its columns
_NODE = re.compile(r"^[ :+-]*(~?\w+)(.*)$")
_MOVING = re.compile(
    r"\b(current_\w+|now|localtimestamp|localtime|session_user|user|UDF|\w*EvalPython)\b ?[\[(]",
    re.IGNORECASE,
)
_FORBIDDEN = "NON_DETERMINISTIC_LATERAL_SUBQUERIES"
_HINTS = (
    "the rows of a frame must be the same each time they are computed",
    "write it as a table and give that: frame.write.saveAsTable(..)",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class FramePlan:
    """What a frame is computed from: the texts of its leaves, and whether it is them as they are."""

    leaves: tuple[str, ...]
    plain: bool
    cached: bool

    @property
    def held(self) -> bool:
        """Whether all rows are in memory, and none in tables or files."""
        return all(leaf.startswith(_HELD) for leaf in self.leaves)


def read_plan(session: Any, view: str, name: str) -> FramePlan:
    """Read the plan of a frame, a view of our own session; refuse one that may give other rows each time."""
    [(text,)] = session.sql(f"EXPLAIN EXTENDED SELECT * FROM {view}").collect()
    analyzed, _, rest = text.partition("== Analyzed Logical Plan ==")[2].partition(
        "== Optimized Logical Plan =="
    )
    lines = analyzed.strip().splitlines()[1:]  # the first names the columns
    nodes = [found.groups() for line in lines if (found := _NODE.match(line))]
    inner = nodes[4:] if f"AS {FILE}#" in nodes[3][1] else nodes[3:]  # what is above is ours
    for node, _ in inner:
        if node.startswith("~"):
            raise _refused(name, "a stream")
        if node not in (*_STORED, *_HELD, *_SAME, *_BY_ROW):
            raise _refused(name, _NAMES.get(node, node))
    if found := _MOVING.search(text):
        raise _refused(name, "a Python function" if "EvalPython" in found[1] else f"`{found[1]}`")
    own = {row[0].split(".")[-1].lower() for row in session.sql("SHOW USER FUNCTIONS").collect()}
    if called := next(
        (one for one in sorted(own) if re.search(rf"\b{re.escape(one)}\(", analyzed, re.I)), None
    ):
        raise _refused(name, f"the function `{called}`")
    _check_expressions(session, view, name)
    return FramePlan(
        leaves=tuple(f"{node}{_plain(after)}" for node, after in inner if node in (*_STORED, *_HELD)),
        plain=all(node in (*_STORED, *_SAME) and not _PARSED.search(after) for node, after in inner),
        cached="InMemoryRelation" in rest,
    )


_NAMES = {
    "Aggregate": "an aggregate",
    "Deduplicate": "distinct or dropDuplicates",
    "GlobalLimit": "a limit",
    "LocalLimit": "a limit",
    "Sample": "a sample",
    "Window": "a window function",
}


def _plain(leaf: str) -> str:
    """Return what a plan says of a leaf, without its columns and their numbers."""
    return re.sub(r"\[[^\]]*#[^\]]*\]", "", leaf).strip()


def _refused(name: str, what: str) -> InvalidArgument:
    return InvalidArgument(f"the frame of table `{name}` depends on {what}", place=name, hints=_HINTS)


def _check_expressions(session: Any, view: str, name: str) -> None:
    """Refuse what Spark calls nondeterministic: it does so itself, of a lateral join."""
    failure: Exception | None = None
    try:
        session.sql(f"SELECT 1 FROM (VALUES (1), (2)) AS o(x), LATERAL (SELECT * FROM {view}) AS l").schema  # noqa: B018
    except Exception as error:
        failure = error
    if failure is not None:
        chance = _FORBIDDEN in str(failure)
        raise _refused(name, "chance, on the order of rows or on the place of files") if chance else failure


def contents(session: Any, view: str, columns: Iterable[str]) -> str:
    """Return a hash of all rows, in whatever order they come: every column of every row is computed."""
    listed = ", ".join(f"{SPARK.quoted(one)}, {SPARK.quoted(one)} IS NULL" for one in columns)
    each = f"xxhash64({listed})"
    [row] = session.sql(
        f"SELECT count(*), sum(CAST({each} AS DECIMAL(38,0))), bit_xor({each}) FROM {view}"
    ).collect()
    return repr(tuple(map(str, row)))
