"""Features: which columns of private rows become which numbers, from public declarations alone.

A number is moved by its declared bounds to [-1, 1], and clamped; where it is missing it is 0, the middle of
its bounds. A column with listed values has one feature for each of them, 1 where a row has that value; with
two values, and for booleans, one feature that is -1 or 1. Where there is no value, or one that is not listed,
all of them are 0.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
import numpy.typing as npt

from sfumato.analysis.domains import columns_of
from sfumato.analysis.ranges import UNKNOWN, Known
from sfumato.catalog.kind import Kind, Value
from sfumato.core.arguments import FloatArray
from sfumato.errors import InvalidArgument
from sfumato.plan.builder import Frame
from sfumato.plan.hints import did_you_mean
from sfumato.plan.tree import ColumnRef
from sfumato.plan.values import Val, col, when

__all__ = [
    "Columns",
    "Features",
    "MOST_FEATURES",
    "ModelColumn",
    "Numbers",
    "declared_features",
    "declared_label",
    "public_codes",
    "public_column",
    "session_table",
]

MOST_FEATURES = 4_000

Numbers = npt.NDArray[np.float32]
Columns = Mapping[str, FloatArray]
"""What is read of each column: numbers, NaN where there is none; of listed values their places, or -1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelColumn:
    """A column, and how it is encoded: by its listed `values`, or as a number by its bounds."""

    name: str
    values: tuple[Value, ...] = ()
    lower: float = 0.0
    upper: float = 0.0

    def plain(self) -> dict[str, Any]:
        """Return the column as plain data, from which `ModelColumn(**plain)` makes it again."""
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the features that the column becomes."""
        if len(self.values) in (0, 2):
            return (self.name if not self.values else f"{self.name}={self.values[1]}",)
        return tuple(f"{self.name}={value}" for value in self.values)

    def read(self) -> Val:
        """Return what is read of a private row: the number, or the place of its value in the list, or -1."""
        if not self.values:
            return col(self.name).cast("real")
        places = ((col(self.name) == value, place) for place, value in enumerate(self.values))
        return when(*places, otherwise=-1)

    def accuracy(self, truth: Sequence[Any], predicted: npt.NDArray[Any]) -> float:
        """Return the share of public rows with a listed label whose class is predicted."""
        codes = public_codes(truth, self.values)
        if not (codes >= 0).any():
            raise InvalidArgument("no row has a listed label", place=self.name)
        right = codes == public_codes(predicted.tolist(), self.values)
        return float(right[codes >= 0].mean())

    def public(self, values: Sequence[Any]) -> FloatArray:
        """Return the same of values of a public table."""
        if self.values:
            return public_codes(values, self.values).astype(np.float64)
        try:
            return np.array([math.nan if value is None else value for value in values], dtype=np.float64)
        except (TypeError, ValueError):
            raise InvalidArgument(
                f"the model takes `{self.name}` as a number, and these values are none",
                place=self.name,
                hints=(f"what is missing is None: {{{self.name!r}: [1.5, None]}}",),
            ) from None

    def encoded(self, read: FloatArray) -> Numbers:
        """Return the features of rows, of which `read` was read: each a function of its own row alone."""
        if not self.values:
            middle, half = (self.lower + self.upper) / 2, (self.upper - self.lower) / 2
            if half == 0:
                return np.zeros((len(read), 1), dtype=np.float32)
            with np.errstate(all="ignore"):  # a warning of a value far away would tell that it is there
                inside = np.clip((read - middle) / half, -1.0, 1.0)
            return np.nan_to_num(inside, nan=0.0).astype(np.float32)[:, None]
        if len(self.values) == 2:
            return np.where(read < 0, 0, 2 * read - 1).astype(np.float32)[:, None]
        return np.asarray(read[:, None] == np.arange(len(self.values)), dtype=np.float32)


@dataclass(frozen=True, slots=True)
class Features:
    """The columns that a model is made of, in their order.

    >>> age = ModelColumn(name="age", lower=0, upper=100)
    >>> job = ModelColumn(name="job", values=("baker", "cook", "smith"))
    >>> Features((age, job)).names
    ('age', 'job=baker', 'job=cook', 'job=smith')
    >>> Features((age, job)).of_public({"age": [75, None], "job": ["cook", "king"]})
    array([[0.5, 0. , 1. , 0. ],
           [0. , 0. , 0. , 0. ]], dtype=float32)
    """

    columns: tuple[ModelColumn, ...]

    def __post_init__(self) -> None:
        if not 0 < len(self.names) <= MOST_FEATURES:
            raise InvalidArgument(
                f"a model has 1 to {MOST_FEATURES:,} features, and these columns make {len(self.names):,}",
                place="features",
                hints=("name fewer columns: features=['age', 'job']",),
            )

    @property
    def names(self) -> tuple[str, ...]:
        """The names of all features."""
        return tuple(name for column in self.columns for name in column.names)

    @property
    def width(self) -> int:
        """How many features there are."""
        return len(self.names)

    def encoded(self, read: Columns) -> Numbers:
        """Return the features of rows, of whose columns `read` was read: a row for each."""
        return np.concatenate([column.encoded(read[column.name]) for column in self.columns], axis=1)

    def of_public(self, data: Any) -> Numbers:
        """Return the features of a public table: a frame of pandas, polars or Arrow, or a mapping."""
        columns = {one.name: public_column(data, one.name) for one in self.columns}
        if len(set(map(len, columns.values()))) > 1:
            raise InvalidArgument("these columns differ in length", place="columns")
        return self.encoded({one.name: one.public(columns[one.name]) for one in self.columns})


def public_column(data: Any, name: str) -> list[Any]:
    """Return a column of a public table as Python's values."""
    if isinstance(data, Frame):
        raise InvalidArgument(
            "a prediction about rows of a session would tell about their people",
            place="table",
            hints=("predict about public rows: a data frame, an Arrow table or a mapping of columns",),
        )
    try:
        found = data[name]
    except (KeyError, IndexError, TypeError, ValueError):
        found = None
    except Exception:  # polars has errors of its own
        found = None
    if not isinstance(found, Iterable) or isinstance(found, str):
        raise InvalidArgument(
            f"there is no column `{name}` here",
            place=name,
            hints=("give a table with the columns of the model: a data frame, or a mapping of columns",),
        )
    for method in ("to_pylist", "to_list", "tolist"):
        if hasattr(found, method):
            return list(getattr(found, method)())
    return list(found)


def public_codes(values: Sequence[Any], listed: Sequence[Value]) -> npt.NDArray[np.int64]:
    """Return the place of each public value in a list, -1 where it is not listed."""
    places = {value: place for place, value in enumerate(listed)}

    def place(value: Any) -> int:
        try:
            return places.get(value, -1)
        except TypeError:  # what cannot be hashed is in no list
            return -1

    return np.fromiter(map(place, values), dtype=np.int64, count=len(values))


def declared_features(frame: Frame[Any], names: Sequence[str] | None, *, but: Sequence[str]) -> Features:
    """Return the features of named columns, or of all whose bounds or values are declared. Free.

    Columns `but` are no features: the label, above all.
    """
    columns = _columns(frame)
    if names is None:
        found = [_feature(name, *known) for name, known in columns.items() if name not in but]
        chosen = tuple(one for one in found if one is not None)
        if not chosen:
            raise InvalidArgument(
                "no column of these rows has declared bounds or values",
                place="features",
                hints=("declare them: columns={'age': sf.between(0, 110), 'job': sf.one_of('a', 'b')}",),
            )
        return Features(chosen)
    if isinstance(names, str) or not names or len(set(names)) < len(names):
        raise InvalidArgument(
            "features are a list of different columns, by name",
            place="features",
            hints=("features=['age', 'job']",),
        )
    return Features(tuple(_named(columns, name, but) for name in names))


def declared_label(frame: Frame[Any], name: str) -> ModelColumn:
    """Return the label of rows, by its declared values, or bounds. Free."""
    return _named(_columns(frame), name, ())


def session_table(given: Any) -> Frame[Any]:
    """Return what a model can be fitted to: rows of a table of a session; refuse arrays and data frames."""
    if isinstance(given, Frame):
        return given
    raise InvalidArgument(
        "a model is fitted to a table of a session, and not to arrays or data frames",
        place="fit",
        hints=(
            "model.fit(db.table('people'))",
            "to choose among models, use sfumato.learn.select_model: cross-validation looks at private rows",
        ),
    )


def _columns(frame: Frame[Any]) -> dict[str, tuple[ColumnRef, Known]]:
    relation, columns = session_table(frame).readable()
    known = columns_of(relation, frame.catalog)
    return {name: (column, known.get(column.name, UNKNOWN)) for name, column in columns.items()}


def _named(columns: Mapping[str, tuple[ColumnRef, Known]], name: str, but: Sequence[str]) -> ModelColumn:
    if name in but:
        raise InvalidArgument(f"`{name}` is the label, and no feature", place="features")
    if name not in columns:
        raise InvalidArgument(
            f"these rows have no column `{name}` that can be read",
            place=str(name),
            hints=tuple(did_you_mean(str(name), tuple(columns))),
        )
    column, known = columns[name]
    found = _feature(name, column, known)
    if found is None:
        hints = tuple(_cures(column.kind, name))
        raise InvalidArgument(f"`{name}` has no declared bounds or values", place=name, hints=hints)
    return found


def _cures(kind: Kind, name: str) -> Iterator[str]:
    if kind in (Kind.DATE, Kind.TIMESTAMP):
        yield f"make a number of it: db.table(..).select(.., year=sf.call('year', sf.col({name!r})))"
        return
    domain = "sf.between(0, 100)" if kind.numeric else "sf.one_of('a', 'b')"
    yield f"declare them: columns={{{name!r}: {domain}}}"
    yield "do not read them off the data: what is public knowledge of the column will do"


def _feature(name: str, column: ColumnRef, known: Known) -> ModelColumn | None:
    if column.kind is Kind.BOOLEAN:
        return ModelColumn(name=name, values=(False, True))
    if known.values and (known.declared or not column.kind.numeric):
        return ModelColumn(name=name, values=known.values)
    ends = None if known.interval is None else (known.interval.low, known.interval.high)
    if not column.kind.numeric or ends is None or any(map(math.isinf, ends)):
        return None
    return ModelColumn(name=name, lower=float(ends[0]), upper=float(ends[1]))
