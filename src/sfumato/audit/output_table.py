"""Output tables: outputs of any kind in columns, so that events are searched in all at once.

An output may be a number of any size, NaN, None, a text, a tuple, an array, a dict, a table, an exception,
or nested ones of these. Every place in it becomes a column; a place that an output does not have is
`absent` there. An exception is an output as well: its type and its text are columns.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.errors import InvalidArgument

__all__ = ["OutputColumn", "OutputColumns", "OutputTable", "atom", "output_table_of"]

_MOST_PLACES = 256  # of one output that are looked at; of a longer one, the first, and the length
_ABSENT = object()  # what a place holds that an output does not have


@dataclass(frozen=True, slots=True, eq=False)
class OutputColumns:
    """Outputs that are laid out already: numbers by place, one per trial; NaN where an output lacks it.

    A place that is not listed is one that no output has: nothing tells it from a column of NaN.

    >>> OutputColumns(3, {"n": np.array([1.0, 2.0, np.nan])}).trials
    3
    """

    trials: int
    places: Mapping[str, npt.NDArray[Any]]

    def __post_init__(self) -> None:
        if any(len(array) != self.trials or array.dtype.kind not in "biuf" for array in self.places.values()):
            raise InvalidArgument("columns must be numbers, one per trial", place="outputs")


@dataclass(frozen=True, slots=True, eq=False)
class OutputColumn:
    """One place of all outputs: `numbers` are NaN where there is none.

    `atoms` tell any two values apart: texts, or None where all values are numbers of one `kind`.
    """

    numbers: npt.NDArray[np.float64]
    atoms: npt.NDArray[Any] | None
    kind: str

    def among(self, rows: slice) -> OutputColumn:
        """Return some of the outputs."""
        return OutputColumn(self.numbers[rows], None if self.atoms is None else self.atoms[rows], self.kind)

    def texts(self) -> npt.NDArray[Any]:
        """Return every atom as a text."""
        if self.atoms is not None:
            return self.atoms
        python = {"float": float, "int": int, "bool": bool}[self.kind]
        return np.array([atom(python(value)) for value in self.numbers.tolist()], dtype=object)


@dataclass(frozen=True, slots=True, eq=False)
class OutputTable:
    """Columns by the name of their place, and how many outputs there are."""

    columns: dict[str, OutputColumn]
    size: int
    of_numbers: bool = False  # a column that is not there is one of NaN

    def among(self, rows: slice) -> OutputTable:
        """Return some of the outputs."""
        size = len(range(*rows.indices(self.size)))
        columns = {name: column.among(rows) for name, column in self.columns.items()}
        return OutputTable(columns, size, self.of_numbers)

    def column(self, name: str) -> OutputColumn:
        """Return a column; one that no output of this table has is absent everywhere."""
        found = self.columns.get(name)
        if found is not None:
            return found
        if self.of_numbers:
            return OutputColumn(np.full(self.size, np.nan), None, "float")
        atoms = np.full(self.size, atom(_ABSENT), dtype=object)
        return OutputColumn(np.full(self.size, np.nan), atoms, "mixed")


def output_table_of(outputs: Any) -> OutputTable:
    """Lay outputs out in columns.

    >>> table = output_table_of([(1, "a"), (2.5, None), ValueError("no")])
    >>> list(table.columns)
    ['out[0]', 'out[1]', 'out', 'out text', 'length of out']
    >>> table.column("out[0]").numbers.tolist()
    [1.0, 2.5, nan]
    """
    if isinstance(outputs, OutputColumns):
        laid = {name: _column(array.astype(np.float64)) for name, array in outputs.places.items()}
        return OutputTable(laid, outputs.trials, True)
    if isinstance(outputs, np.ndarray) and outputs.dtype.kind in "biuf" and outputs.ndim in (1, 2):
        if outputs.ndim == 1:
            return OutputTable({"out": _column(outputs)}, len(outputs))
        width = min(outputs.shape[1], _MOST_PLACES)
        return OutputTable({f"out[{at}]": _column(outputs[:, at]) for at in range(width)}, len(outputs))
    if not isinstance(outputs, Sequence | np.ndarray) or isinstance(outputs, str | bytes):
        raise InvalidArgument(
            "a run must return a list or an array with one output per trial",
            place="run",
            hints=("audit.repeated(f) makes a run of a function f(data) of one output",),
        )
    found: dict[str, dict[int, Any]] = {}
    for row, output in enumerate(outputs):
        for name, value in _places("out", output):
            found.setdefault(name, {}).setdefault(row, value)
    size = len(outputs)
    columns = {
        name: _column(_array([values.get(row, _ABSENT) for row in range(size)]))
        for name, values in found.items()
    }
    order = sorted(columns, key=lambda name: (name.startswith("length"), name.endswith("text")))
    return OutputTable({name: columns[name] for name in order}, size)


def atom(value: Any) -> str:
    """Return a text that two values share only if nothing tells them apart: 1 is not 1.0, nor -0.0 0.0."""
    return "absent" if value is _ABSENT else f"{type(value).__name__} {value!r}"


def _places(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    match value:
        case BaseException():
            yield name, f"error {type(value).__name__}"
            yield f"{name} text", str(value)
        case np.generic():
            yield name, value.item()
        case np.ndarray():
            yield from _listed(name, value.tolist() if value.ndim else [value.item()])
        case Mapping():
            yield f"length of {name}", len(value)
            for key in sorted(value, key=repr)[:_MOST_PLACES]:
                yield from _places(f"{name}[{key!r}]", value[key])
        case tuple() | list():
            yield from _listed(name, value)
        case set() | frozenset():
            yield f"length of {name}", len(value)
            for member in sorted(value, key=repr)[:_MOST_PLACES]:
                yield f"{name} has {member!r}", True
        case None | bool() | int() | float() | str() | bytes():
            yield name, value
        case _:
            yield from _other(name, value)


def _listed(name: str, values: Sequence[Any]) -> Iterator[tuple[str, Any]]:
    yield f"length of {name}", len(values)
    for at, value in enumerate(values[:_MOST_PLACES]):
        yield from _places(f"{name}[{at}]", value)


def _other(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """Tables of Arrow, pandas and polars column by column, releases as their rows; others as they print."""
    if hasattr(value, "to_pydict"):
        yield from _places(name, value.to_pydict())
    elif hasattr(value, "to_arrow"):
        yield from _places(name, value.to_arrow().to_pydict())
    elif hasattr(value, "columns") and hasattr(value, "__getitem__"):
        yield from _places(name, {str(one): list(value[one]) for one in value.columns})
    elif hasattr(value, "__array__"):
        yield from _places(name, np.asarray(value))
    else:
        yield name, f"{type(value).__name__}: {value!r}"


def _array(values: list[Any]) -> npt.NDArray[Any]:
    """Return numbers as numbers, where all of one column are of one kind."""
    kinds = {type(value) for value in values}
    if kinds in ({float}, {bool}) or (kinds == {int} and all(abs(value) < 2**53 for value in values)):
        return np.array(values)
    array = np.empty(len(values), dtype=object)
    array[:] = values
    return array


def _column(array: npt.NDArray[Any]) -> OutputColumn:
    if array.dtype.kind == "f":
        return OutputColumn(array.astype(np.float64), None, "float")
    if array.dtype.kind in "biu" and (array.dtype.itemsize < 8 or not len(array) or _narrow(array)):
        return OutputColumn(array.astype(np.float64), None, "bool" if array.dtype.kind == "b" else "int")
    values = array.tolist()
    numbers = np.array([_number(value) for value in values])
    atoms = np.array([atom(value) for value in values], dtype=object)
    return OutputColumn(numbers, atoms, "mixed")


def _narrow(array: npt.NDArray[Any]) -> bool:
    return bool(array.max() <= 2**53 and array.min() >= -(2**53))


def _number(value: Any) -> float:
    if isinstance(value, bool | int | float):
        try:
            return float(value)
        except OverflowError:
            return math.inf if value > 0 else -math.inf
    return math.nan
