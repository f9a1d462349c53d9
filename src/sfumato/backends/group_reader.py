"""What statements return: exact integers of groups, and of who is in which groups what selections ask."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.analysis.bounded import Measure, MeasureKind
from sfumato.backends.arrays import array_of, keys_at
from sfumato.backends.exact import ExactGroups
from sfumato.backends.group_keys import GroupKeys, key_columns
from sfumato.backends.statements import Keys, Statements
from sfumato.backends.totals import SparseCells, empty, sum_by_group
from sfumato.catalog.kind import Kind, Value
from sfumato.errors import Unsupported

__all__ = ["GroupReader"]

_Columns = Sequence[Any]  # Arrow's, or tuples
_Integers = npt.NDArray[np.int64]
_Told = tuple[_Integers, _Integers, _Integers]  # places of groups, sizes, units or weights
_WEIGHTS = 64  # that the engine itself adds up


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class GroupReader:
    """Reads the exact integers of a question.

    `read` runs a statement, and returns its columns. `later` does so once the question's statements are done,
    and converts what was returned: an error in there holds nothing.
    """

    read: Callable[[str], _Columns]
    later: Callable[[str, Callable[[_Columns], Any]], Any]
    written: Statements

    def groups(self, chosen: tuple[int, ...]) -> ExactGroups:
        """Return the groups of a grouping set, empty ones that are declared among them."""
        query, size = self.written.values.query, len(chosen)
        kinds = tuple(self.written.values.kinds[place] for place in chosen)
        columns = self.read(self.written.totals(chosen))
        keys, numbers = key_columns(columns[:size], kinds), columns[size:]
        if size and self.written.plainly_declared and not self.written.fills:
            keys, numbers = _with_declared(keys, numbers, kinds, self._declared(chosen))
        groups = GroupKeys(keys, len(numbers[0]), kinds)
        sizes, units, *sums = numbers if self.written.tells_sizes(chosen) else (None, *numbers)
        counted = _summed(_whole(units), groups)
        measures: dict[str, Any] = {}
        for measure in query.measures:
            match measure.kind:
                case MeasureKind.MOMENT | MeasureKind.UNITS:
                    measures[measure.name] = _summed(_integers(measure, sums.pop(0)), groups)
                case MeasureKind.CELLS:
                    found = self.read(self.written.cells(measure, chosen))
                    measures[measure.name] = _cells(measure, found, groups, kinds)
                case MeasureKind.DISTINCT:
                    found = self.read(self.written.distinct(measure, chosen))
                    measures[measure.name] = _distinct(measure, found, groups, kinds)
                case _:
                    raise Unsupported(f"a measure of the kind {measure.kind.name}")
        if query.declared is not None or not chosen:
            dense = {name: np.asarray(values) for name, values in measures.items()}
            return ExactGroups(grouping_set=chosen, keys=groups.keys, measures=dense, units=None)
        members = None
        if query.members and not query.row_unit:
            first = None if sizes is None else (groups.of_rows, _whole(sizes), _whole(units))
            members = _Members(
                groups=groups, chosen=chosen, kinds=kinds, first=first, later=self.later, written=self.written
            )
        return ExactGroups(
            grouping_set=chosen, keys=groups.keys, measures=measures, units=counted, members=members
        )

    def _declared(self, chosen: tuple[int, ...]) -> list[tuple[Value, ...]]:
        declared = self.written.values.query.declared or ()
        return list(dict.fromkeys(tuple(key[place] for place in chosen) for key in declared))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class _Members:
    """Asks the engine again for each round of a selection: who is in which groups stays there.

    The totals of a question may tell already what the first round asks: `first` has places of groups, sizes
    d, and how many units of the group are in d groups.

    Theorem: what a round learns is bounded for every state of the tables (`analysis.selection`), and what was
    found before is public by then. So rounds compose also where rows come or go between them; a group that
    was not there before is left out, and one that is gone weighs nothing.
    """

    groups: GroupKeys
    chosen: tuple[int, ...]
    kinds: tuple[Kind, ...]
    first: _Told | None
    later: Callable[[str, Callable[[_Columns], Any]], Any]
    written: Statements

    def __repr__(self) -> str:
        return "<members: hidden>"

    def weights(self, found: npt.NDArray[np.bool_], weight: Callable[[int], int]) -> _Integers:
        if self.first is not None and not found.any():
            places, sizes, units = self.first
        else:
            most = min(self.written.values.query.max_groups or _WEIGHTS, _WEIGHTS)
            told = [weight(size) for size in range(1, most + 1)]
            text = self.written.members(self.chosen, self._keys(found), told)
            places, sizes, units = self.later(text, self._converted)
        there = places >= 0
        different, which = np.unique(sizes[there], return_inverse=True)
        weights = [weight(size) if size else 1 for size in different.tolist()]  # 0: it is weighed already
        added = np.array(weights, dtype=np.int64)[which] * units[there]
        return sum_by_group(places[there], added, len(found)).astype(np.int64)

    def units_outside(self, shown: npt.NDArray[np.bool_]) -> int:
        text = self.written.units_outside(self.chosen, self._keys(shown))
        return int(self.later(text, lambda columns: _whole(columns[0]))[0])

    def _converted(self, columns: _Columns) -> _Told:
        *keys, sizes, units = columns
        places = self.groups.places(key_columns(keys, self.kinds), len(units))
        return places, _whole(sizes), _whole(units)

    def _keys(self, flags: npt.NDArray[np.bool_]) -> Keys:
        return list(keys_at(self.groups.keys, np.flatnonzero(flags)))


def _with_declared(
    keys: tuple[Any, ...], numbers: _Columns, kinds: tuple[Kind, ...], declared: Keys
) -> tuple[tuple[Any, ...], list[Any]]:
    """Return the rows of totals, and a row of zeros for each declared group: nobody may be in it."""
    import pyarrow

    more = key_columns(list(zip(*declared, strict=True)), kinds)
    zeros = np.zeros(len(declared), dtype=np.int64)
    return (
        tuple(pyarrow.chunked_array([*one.chunks, *two.chunks]) for one, two in zip(keys, more, strict=True)),
        [np.concatenate([_whole(column), zeros]) for column in numbers],
    )


def _whole(column: Any) -> npt.NDArray[Any]:
    """Return a column of whole numbers as an array; of Python's integers where they are beyond 64 bits."""
    import pyarrow

    if isinstance(column, np.ndarray):
        return column
    if isinstance(column, pyarrow.ChunkedArray):
        if pyarrow.types.is_integer(column.type):
            return array_of(column).astype(np.int64, copy=False)
        column = column.to_pylist()
    values = [int(value) for value in column]
    wide = any(abs(value) >= 2**63 for value in values)
    return np.array(values, dtype=object if wide else np.int64)


def _integers(measure: Measure, column: Any) -> npt.NDArray[Any]:
    """Return a column as the integers of a measure, whose type is a fact of public bounds."""
    return _whole(column).astype(empty(measure, 0).dtype, copy=False)


def _summed(values: npt.NDArray[Any], groups: GroupKeys) -> npt.NDArray[Any]:
    return sum_by_group(groups.of_rows, values, len(groups)).astype(values.dtype, copy=False)


def _distinct(
    measure: Measure, columns: _Columns, groups: GroupKeys, kinds: tuple[Kind, ...]
) -> npt.NDArray[Any]:
    *keys, numbers = columns
    values = _integers(measure, numbers)
    places = groups.places(key_columns(keys, kinds), len(values))
    found, there = empty(measure, len(groups)), places >= 0
    found[places[there]] = values[there]
    return found


def _cells(measure: Measure, columns: _Columns, groups: GroupKeys, kinds: tuple[Kind, ...]) -> SparseCells:
    *keys, numbers, added = columns
    values = _integers(measure, added)
    places = groups.places(key_columns(keys, kinds), len(values))
    there = (places >= 0) & (values != 0)
    width = len(measure.edges) - 1
    at, values = (places * width + _whole(numbers))[there], values[there]
    order = np.argsort(at)
    return SparseCells(len(groups), width, at[order], values[order])
