"""Functions over dictionaries: values of rows that are set aside are there, and nothing fails at them.

A Parquet file stores a column as a dictionary and places in it. Where the engine holds a function for one
that cannot fail, it computes the function for the whole dictionary, also for values whose rows a filter or a
CASE has set aside. So a function that fails at a value fails for everybody.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pyarrow.parquet as parquet
import pytest

from sfumato.backends.duckdb.dialect import DUCKDB
from sfumato.catalog import Kind
from sfumato.catalog.identifiers import identifier
from sfumato.errors import Unsupported
from sfumato.plan.functions import FUNCTIONS
from sfumato.plan.tree import Cast, ColumnRef, Expression
from tests.backends.test_expressions import EXTREMES, arrow_array, signatures
from tests.soaked import rest_soaked

_ORDINARY, _ROWS, _CALLS = 8, 40, 25
_FAR = {
    Kind.DATE: (pa.date32(), pa.int32(), [1, 2, -(2**31), 2**31 - 1, 2**31 - 2, -(2**31) + 1, 2932897]),
    Kind.TIMESTAMP: (pa.timestamp("us"), pa.int64(), [1, 2**63 - 1, -(2**63), -(2**63) + 2, -(2**62), 2**62]),
}
_SHAPES = (
    "SELECT {0} AS r FROM ({1}) WHERE keep",
    "SELECT CASE WHEN keep THEN {0} END AS r FROM ({1})",
    "SELECT {0} AS r FROM ({1}) WHERE {0} IS NOT NULL",
)


def column_of(kind: Kind, step: int) -> pa.Array:
    """Return a column with an ordinary value in the rows that are kept, and extreme ones in the others."""
    values = EXTREMES[kind][1:] if kind not in _FAR else _FAR[kind][2]
    rows = [values[0] if row < _ORDINARY else values[row * step % len(values)] for row in range(_ROWS)]
    if kind not in _FAR:
        return arrow_array(rows, kind)
    of_type, stored, _ = _FAR[kind]
    return pa.Array.from_buffers(of_type, _ROWS, [None, pa.array(rows, stored).buffers()[1]])


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    kinds = [kind for kind in EXTREMES if kind is not Kind.HUGEINT]  # Parquet has no such column
    columns: dict[str, Any] = {kind.value: column_of(kind, 1) for kind in kinds}
    columns["keep"] = pa.array([row < _ORDINARY for row in range(_ROWS)])
    made = tmp_path_factory.mktemp("dictionaries") / "t.parquet"
    parquet.write_table(pa.table(columns), made)
    return made


def rendered(name: str) -> Iterator[tuple[str, Kind]]:
    """Yield the calls of a function in which all columns are one, and each written as text; and its kind."""
    calls: list[tuple[Expression, Kind]] = []
    for call in signatures(name):
        kinds = {one.kind for one in call.arguments if isinstance(one, ColumnRef)}
        if len(kinds) == 1 and (kind := kinds.pop()) is not None and kind is not Kind.HUGEINT:
            calls.append((call, kind))
    for node, kind in calls[:: max(1, len(calls) // _CALLS)]:
        for asked in (node, Cast(operand=node, kind=Kind.TEXT)):
            with contextlib.suppress(Unsupported):
                yield DUCKDB.expression(asked, dict.fromkeys(("a0", "a1", "a2"), "x")), kind


@pytest.mark.parametrize("name", rest_soaked(sorted(FUNCTIONS), 3))
def test_no_function_fails_at_a_value_that_is_set_aside(name: str, path: Path) -> None:
    with duckdb.connect() as connection:
        connection.execute("SET GLOBAL TimeZone = 'UTC'")
        for sql, kind in rendered(name):
            source = f"SELECT keep, {DUCKDB.normalised(identifier(kind.value), kind)} AS x FROM '{path}'"
            for shape in _SHAPES:
                connection.execute(f"CREATE OR REPLACE TEMP TABLE answers AS {shape.format(sql, source)}")
