"""Row values: what each row gives a bounded query, in any dialect: its unit, keys, and values of measures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from sfumato.analysis.bounded import BoundedQuery, Measure, MeasureKind
from sfumato.backends.dialect import Dialect, Writer
from sfumato.backends.integers import RowInteger, Stage, row_integer
from sfumato.backends.relations import Rendered
from sfumato.catalog.kind import Kind
from sfumato.errors import Unsupported

__all__ = ["RowValues", "presence", "row_values"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RowValues:
    """A SELECT of the unit, the keys k0, k1, .. and the values x0, x1, .. of rows, and what they mean."""

    query: BoundedQuery
    rows: str
    unit: Kind | None  # the kind of the unit; None: each row is one
    kinds: tuple[Kind, ...]  # of the keys
    integers: dict[str, RowInteger | None]  # by measure, and under `presence` whether there is a value
    distinct: dict[str, str]  # the value of each DISTINCT measure, over the columns of `rows`
    blocks: dict[str, tuple[str, ...]]  # the columns, binary numbers, of each BLOCKS measure

    @property
    def keys(self) -> tuple[str, ...]:
        """The columns of the keys."""
        return tuple(f"k{place}" for place in range(len(self.kinds)))


def row_values(
    query: BoundedQuery,
    below: Rendered,
    dialect: Dialect,
    block_columns: Callable[[Measure, Stage], tuple[str, ...]],
) -> RowValues:
    """Return what rows of a relation, the query's source, give the query."""
    if query.row_unit != below.by_row or (below.unit is None and not below.by_row):
        raise Unsupported("a query about rows whose unit is not the one that was bounded")
    stage = Stage(Writer(dialect, below.names))
    kinds = []
    listed = ["__unit"] if below.unit else []
    for place, (_, key) in enumerate(query.keys):
        if key.kind is None:
            raise Unsupported("groups by NULL")
        kinds.append(key.kind)
        listed.append(f"{dialect.canonical(stage.write(key), key.kind)} AS k{place}")
    integers: dict[str, RowInteger | None] = {}
    distinct: dict[str, str] = {}
    blocks: dict[str, tuple[str, ...]] = {}
    for measure in query.measures:
        if measure.kind is MeasureKind.DISTINCT:
            distinct[measure.name] = _distinct_value(measure, stage)
        elif measure.kind is MeasureKind.BLOCKS:
            if below.by_row:
                raise Unsupported("blocks of rows that are units by themselves")
            blocks[measure.name] = block_columns(measure, stage)
        else:
            integers[measure.name] = row_integer(measure, stage)
            if measure.kind is MeasureKind.CELLS and integers[measure.name] is None:
                raise Unsupported("a histogram of nothing")
            if measure.skips_absent:
                integers[presence(measure.name)] = _presence(integers[measure.name])
    listed += [f"{sql} AS {name}" for sql, name in stage.columns.items()]
    return RowValues(
        query=query,
        rows=f"SELECT {', '.join(listed) or 'NULL AS nothing'} FROM {dialect.rows(below.sql)}",
        unit=below.unit,
        kinds=tuple(kinds),
        integers=integers,
        distinct=distinct,
        blocks=blocks,
    )


def presence(measure: str) -> str:
    """Return the name under which it is noted whether a row has a value for a measure.

    >>> presence("m0")
    'm0?'
    """
    return f"{measure}?"


def _presence(integer: RowInteger | None) -> RowInteger:
    assert integer is not None
    return RowInteger(sql=f"CASE WHEN ({integer.sql}) IS NOT NULL THEN 1::BIGINT END", low=0, high=1)


def _distinct_value(measure: Measure, stage: Stage) -> str:
    if measure.factors:
        integer = row_integer(measure, stage)
        assert integer is not None
        return (
            f"({integer.sql})"
            if integer.scale == 1
            else f"({integer.sql} * {stage.write.dialect.constant(integer.scale)})"
        )
    if measure.value is None or measure.value.kind is None:
        raise Unsupported("distinct values of nothing")
    value = stage.write.dialect.canonical(stage.write(measure.value), measure.value.kind)
    if measure.condition is not None:
        value = f"CASE WHEN {stage.write(measure.condition, Kind.BOOLEAN)} THEN {value} END"
    return stage(value)
