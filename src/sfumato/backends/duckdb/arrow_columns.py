"""Arrow columns in types whose every value the engine reads; objects are opened through this.

What the engine refuses as a whole (half floats, wide decimals) or fails at for single values (seconds beyond
its timestamps) is converted here, by a rule that has a result for every value. Moments become microseconds in
UTC, rounded as the engine rounds; those outside the years 1 to 9999 become NULL.
"""

from __future__ import annotations

from typing import Any

import pyarrow
from pyarrow import compute, types

__all__ = ["readable"]

_UNITS = {"s": 1, "ms": 10**3, "us": 10**6}  # in a second
_FIRST, _LAST = -62_135_596_800, 253_402_300_799  # the first and the last second of the years 1 to 9999
_DAY = 86_400_000  # milliseconds
_WIDEST = 38  # digits of a decimal that the engine has


def readable(column: Any) -> Any | None:
    """Return a chunked array whose values the engine reads without failing; None: it has no such type.

    Raises pyarrow.ArrowInvalid if a value is none of its type, such as a text that is not UTF-8.
    """
    of_type = column.type
    if types.is_run_end_encoded(of_type):
        return readable(pyarrow.chunked_array(map(compute.run_end_decode, column.chunks), of_type.value_type))
    if types.is_dictionary(of_type):
        column.validate(full=True)
        return column if _is_text(of_type.value_type) else readable(column.cast(of_type.value_type))
    if types.is_timestamp(of_type):
        return _microseconds(column, of_type.unit)
    if types.is_date64(of_type):
        days = compute.floor(compute.divide(_near(column, 1000).cast(pyarrow.float64()), float(_DAY)))
        return days.cast(pyarrow.int32()).cast(pyarrow.date32())  # below 2^53: exact
    if types.is_float16(of_type):
        return column.cast(pyarrow.float32())
    if types.is_integer(of_type) or types.is_floating(of_type) or types.is_boolean(of_type):
        return column
    if types.is_date32(of_type) or isinstance(of_type, pyarrow.UuidType | pyarrow.Bool8Type):
        return column
    if types.is_decimal(of_type) and of_type.precision <= _WIDEST and of_type.scale >= 0:
        column.validate(full=True)
        return column.cast(pyarrow.decimal128(of_type.precision, of_type.scale))
    if _is_text(of_type):
        column.validate(full=True)
        return column.cast(pyarrow.large_string()) if types.is_string_view(of_type) else column
    return None


def _is_text(of_type: Any) -> bool:
    return bool(types.is_string(of_type) or types.is_large_string(of_type) or types.is_string_view(of_type))


def _microseconds(column: Any, unit: str) -> Any:
    """Return moments in microseconds of UTC, halves rounded away from zero, far ones NULL."""
    if unit != "ns":
        counted = compute.multiply(_near(column, _UNITS[unit]), 10**6 // _UNITS[unit])
    else:  # of 64 bits of nanoseconds none is far
        counted = _integers(column)
        whole = compute.divide(counted, 1000)
        rest = compute.subtract(counted, compute.multiply(whole, 1000))
        up = compute.greater_equal(rest, 500).cast(pyarrow.int64())
        down = compute.less_equal(rest, -500).cast(pyarrow.int64())
        counted = compute.subtract(compute.add(whole, up), down)
    return counted.cast(pyarrow.timestamp("us"))


def _near(column: Any, per_second: int) -> Any:
    """Return the integers of moments, NULL where they are outside the years 1 to 9999."""
    counted = _integers(column)
    first, last = _FIRST * per_second, _LAST * per_second + per_second - 1
    near = compute.and_(compute.greater_equal(counted, first), compute.less_equal(counted, last))
    return compute.if_else(near, counted, pyarrow.scalar(None, pyarrow.int64()))


def _integers(column: Any) -> Any:
    return pyarrow.chunked_array([chunk.view(pyarrow.int64()) for chunk in column.chunks], pyarrow.int64())
