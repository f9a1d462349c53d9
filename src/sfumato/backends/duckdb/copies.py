"""Objects that hold a table, copied when they are opened: nobody can change the copy.

A data frame shares its memory with Arrow tables made of it, and with whoever holds it: a number that is
changed in place later would be another version of the data under the name of the first.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import accumulate, pairwise
from typing import Any

import numpy as np
import pyarrow
from pyarrow import parquet

from sfumato.backends.duckdb.arrow_columns import readable
from sfumato.catalog.table import UnsupportedColumn
from sfumato.errors import InvalidArgument

__all__ = ["Copied", "copied", "copied_files"]

_ROUNDED = ("timestamp[ns", "date64")  # types that are read as microseconds and as days
_ROWS = 122_880  # of a batch: what the engine gives to one thread


@dataclass(frozen=True, slots=True)
class Copied:
    """An Arrow table in memory of its own, a hash of its contents, and the columns that it leaves out."""

    table: Any
    digest: str
    left_out: tuple[UnsupportedColumn, ...]
    rounded: frozenset[str] = frozenset()  # columns in which two values may have become one

    def with_rows(self, column: str) -> Any:
        """Return the table with the number of each row in a column more."""
        ends = accumulate((batch.num_rows for batch in self.table.to_batches()), initial=0)
        chunks = [pyarrow.array(np.arange(*ends_of)) for ends_of in pairwise(ends)]
        rows = pyarrow.chunked_array(chunks, pyarrow.int64())
        return self.table.append_column(column, rows)


def copied(origin: Any, name: str) -> Copied:
    """Return a copy of an object that holds a table, however it was cut into pieces."""
    if isinstance(origin, pyarrow.RecordBatch):
        origin = pyarrow.Table.from_batches([origin])
    if isinstance(origin, pyarrow.RecordBatchReader):
        origin = _whole(origin.read_all, name)
    elif type(origin).__name__.endswith("Dataset"):
        origin = _whole(origin.to_table, name)
    elif type(origin).__name__ == "DuckDBPyRelation":
        origin = _whole(origin.to_arrow_table, name)
    if isinstance(origin, pyarrow.Table):
        return _copied(zip(origin.column_names, origin.columns, strict=True), name)
    return _copied(_of_frame(origin, name, type(origin).__module__.startswith("pandas")), name)


def _whole(read: Callable[[], Any], name: str) -> Any:
    """Return the Arrow table that another object reads; refuse one that it cannot read."""
    found = _result(read)
    if found is None:
        hint = "read it into an Arrow table first: its own library then says what is wrong"
        raise InvalidArgument(f"table `{name}` cannot be read", place=name, hints=(hint,))
    return found


def copied_files(name: str, paths: tuple[str, ...], columns: tuple[tuple[str, str], ...]) -> Copied:
    """Return Parquet files that the engine cannot read safely, by way of Arrow."""
    tables = []
    try:
        for path in paths:
            with open(path, "rb") as file:
                tables.append(parquet.ParquetFile(file).read().select([column for column, _ in columns]))
        whole = pyarrow.concat_tables(tables)
    except (pyarrow.ArrowException, OSError, KeyError):
        whole = None
    if whole is None:  # raised here: the text of the other error may quote the data
        raise InvalidArgument(f"the file of table `{name}` cannot be read", place=name)
    return copied(whole, name)


def _copied(columns: Iterable[tuple[str, Any]], name: str) -> Copied:
    """Return a copy of named columns; of a column that Arrow has no type for, the type is given instead."""
    kept: list[tuple[str, Any]] = []
    rounded: list[str] = []
    left_out: list[UnsupportedColumn] = []
    for column, values in columns:
        found, of_type = None, values
        if not isinstance(values, str):
            of_type = str(values.type).split("<")[0].split("[")[0]
            found = _readable(values, name, column)
        if found is None:
            left_out.append(UnsupportedColumn(name=column, of_type=of_type))
        else:
            kept.append((column, found))
            rounded += [column] if any(one in str(values.type) for one in _ROUNDED) else []
    if not kept:
        raise InvalidArgument(f"table `{name}` has no column that can be asked about", place=name)
    if len({column.lower() for column, _ in kept}) != len(kept):
        raise InvalidArgument(f"table `{name}` has two columns of one name", place=name)
    combined = pyarrow.Table.from_arrays(
        [values for _, values in kept], names=[column for column, _ in kept]
    ).combine_chunks()
    sink = pyarrow.BufferOutputStream()
    with pyarrow.ipc.new_stream(sink, combined.schema) as writer:
        writer.write_table(combined, max_chunksize=_ROWS)
    held = sink.getvalue()
    return Copied(
        table=pyarrow.ipc.open_stream(held).read_all(),
        digest=hashlib.sha256(held).hexdigest(),
        left_out=tuple(left_out),
        rounded=frozenset(rounded),
    )


def _readable(values: Any, name: str, column: str) -> Any | None:
    """Return a column as the engine reads it; refuse values that are none of the column's type."""
    try:
        return readable(values)
    except pyarrow.ArrowException:
        of_type = values.type
    raise InvalidArgument(  # raised here: the text of the other error may quote the data
        f"column `{column}` of table `{name}` has a value that is none of its type, {of_type}",
        place=f"{name}.{column}",
        hints=("texts are UTF-8; a decimal has no more digits than its type", "or leave the column out"),
    )


def _of_frame(frame: Any, name: str, pandas: bool) -> Iterable[tuple[str, Any]]:
    """Yield the columns of a data frame, or what a column is that Arrow has no type for.

    A lazy frame is computed first. A column of objects has no type: it gets one from its values, which must
    all be of one. Nothing but NULL is text. Decimals are refused, because their digits would decide what can
    be asked.
    """
    if not pandas and hasattr(frame, "collect"):
        frame = _result(frame.collect)
    if not hasattr(frame, "columns"):
        raise InvalidArgument(
            f"table `{name}` is not a data frame, or cannot be computed",
            place=name,
            hints=("give a data frame: .to_frame() makes one, and .collect() computes a lazy one",),
        )
    for place, column in enumerate(map(str, frame.columns)):
        series = frame.iloc[:, place] if pandas else frame.get_column(column)
        make = pyarrow.array if pandas else type(series).to_arrow
        objects = str(series.dtype) == "object"
        if _result(make, series.head(0)) is None:
            yield column, str(series.dtype)
            continue
        values = _result(make, series)
        if objects and values is not None and pyarrow.types.is_null(values.type):
            values = values.cast(pyarrow.string())
        if values is None or (objects and pyarrow.types.is_decimal(values.type)):
            raise InvalidArgument(
                f"column `{column}` of table `{name}` holds objects that have no common type",
                place=f"{name}.{column}",
                hints=("give it a type: frame.astype({..}) with str, Int64, float, bool or an ArrowDtype",),
            )
        yield column, pyarrow.chunked_array([values]) if isinstance(values, pyarrow.Array) else values


def _result(make: Callable[..., Any], *arguments: Any) -> Any | None:
    """Return what another library makes, None if it raises: its error may quote the data."""
    try:
        return make(*arguments)
    except Exception:
        return None
