"""The release of marginals: noisy integers of residuals, and every table and sum that they determine."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import numpy.typing as npt

from sfumato.analysis.basis import Basis
from sfumato.catalog.kind import Kind, Value
from sfumato.core.arguments import FloatArray
from sfumato.core.gaussian_sums import GaussianSum
from sfumato.core.noise_law import NoiseLaw
from sfumato.errors import InvalidArgument
from sfumato.plan.hints import did_you_mean
from sfumato.release import Published
from sfumato.release.frames import frame_library
from sfumato.release.sandbox import PlainTable
from sfumato.workloads.marginal_columns import MarginalColumn
from sfumato.workloads.marginal_noise import MarginalNoise
from sfumato.workloads.marginal_tables import MarginalTables
from sfumato.workloads.residuals import Subset, residual_plan

if TYPE_CHECKING:
    import pyarrow

    from sfumato.pages import Page

__all__ = ["MarginalTable", "Marginals", "NoisyCount"]


@dataclass(frozen=True, slots=True)
class NoisyCount:
    """A count of a release, and its noise. The float64 value may be off by `rounding` besides.

    >>> from sfumato.core.gaussian import GaussianNoise
    >>> noise = GaussianSum.of([(GaussianNoise(Fraction(4)), np.array([1.0]))])
    >>> [round(end, 3) for end in NoisyCount(100.0, noise).interval()]
    [96.0, 104.0]
    """

    value: float
    noise: GaussianSum
    rounding: float = 0.0

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise."""
        return self.noise.deviation

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the (low, high) that covers the exact count with probability `level`, or a little more."""
        width = self.noise.half_width(level) + self.rounding
        return self.value - width, self.value + width


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class MarginalTable:
    """One contingency table: estimated counts, an axis per column, with the deviation of each."""

    columns: tuple[MarginalColumn, ...]
    counts: FloatArray
    deviations: FloatArray
    half_widths: Callable[[float], FloatArray]  # of the intervals of a level

    def __repr__(self) -> str:
        from sfumato.workloads.marginal_display import first_cells

        return first_cells(self)

    def to_arrow(self, level: float | None = None) -> pyarrow.Table:
        """Return an Arrow table, a row per cell; with a level, with the ends of intervals."""
        return self._plain(level).arrow()

    def to_pandas(self, level: float | None = None) -> Any:
        """Return a pandas frame, a row per cell."""
        frame_library("pandas")
        return self.to_arrow(level).to_pandas()

    def _plain(self, level: float | None) -> PlainTable:
        places = np.indices(self.counts.shape).reshape(len(self.columns), -1)
        values: list[list[Any]] = [
            [column.labels[place] for place in each.tolist()]
            for column, each in zip(self.columns, places, strict=True)
        ]
        names, types = [column.name for column in self.columns], [column.type for column in self.columns]
        numbers = {"n": self.counts, "deviation": self.deviations}
        if level is not None:
            width = self.half_widths(level)
            numbers |= {"n_low": self.counts - width, "n_high": self.counts + width}
        for name, array in numbers.items():
            names.append(name)
            types.append("DOUBLE")
            values.append(array.reshape(-1).tolist())
        return PlainTable(columns=tuple(names), types=tuple(types), values=tuple(values))


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Marginals(Published):
    """Published contingency tables, all of which agree. Everything in it may be shown to anybody.

    `measured` holds the noisy integers of each residual, `laws` the noise on them, and `weight` how many rows
    a unit of the counts' integers is; tables, counts and their deviations follow, also for sets of columns
    that are part of a table that was asked for.

    >>> import pyarrow as pa
    >>> import sfumato as sf
    >>> people = pa.table({"who": range(900), "sex": ["f", "m", "f"] * 300, "age": [30, 40, 50] * 300})
    >>> columns = {"sex": sf.one_of("f", "m"), "age": sf.between(0, 100)}
    >>> budget = sf.Budget(epsilon=9, delta=1e-6)
    >>> db = sf.connect(
    ...     people, name="people", unit="who", columns=columns, max_rows=1, max_groups=1, budget=budget
    ... )
    >>> release = db.marginals(["sex", "age"], ways=2, bins={"age": 4}, epsilon=8).release()
    >>> release.table("sex", "age").counts.shape
    (2, 4)
    >>> abs(release.count(sex="f").value - 600) < 30
    True
    """

    kind: ClassVar[str] = "marginals"

    columns: tuple[MarginalColumn, ...]
    weights: tuple[tuple[Subset, float], ...]
    measured: tuple[npt.NDArray[Any], ...]
    laws: tuple[NoiseLaw, ...]
    weight: Fraction = Fraction(1)
    kinds: tuple[Kind | None, ...] = ()  # of the keys of cells
    basis: Basis | None = None  # what it was measured from: later questions may follow from it
    estimates: MarginalTables = field(init=False, repr=False)

    def __post_init__(self) -> None:
        plan = residual_plan([column.base for column in self.columns], dict(self.weights))
        shapes = [tuple(plan.bases[i].rows for i in residual) for residual in plan.residuals]
        if [one.shape for one in self.measured] != shapes or len(self.laws) != len(shapes):
            raise InvalidArgument("these are not the residuals of the tables", place="measured")
        noise = MarginalNoise(plan=plan, laws=self.laws, weight=float(self.weight))
        object.__setattr__(self, "estimates", MarginalTables(noise=noise, measured=self.measured))

    @property
    def tables(self) -> tuple[tuple[str, ...], ...]:
        """The tables that were asked for, by the names of their columns."""
        return tuple(tuple(self.columns[i].name for i in table) for table, _ in self.weights)

    @property
    def cells(self) -> int:
        """How many cells all tables have together."""
        return sum(math.prod(len(self.columns[i].labels) for i in table) for table, _ in self.weights)

    def table(self, *columns: str) -> MarginalTable:
        """Return one table, with its axes in the order of the names; without names, the total."""
        places = [self._place(name) for name in columns]
        order = tuple(sorted(places))
        if len(set(order)) < len(places):
            raise InvalidArgument("a table has each column once", place="columns")
        axes = [order.index(place) for place in places]
        noise, counts = self.estimates.noise, self.estimates.table(order)
        rounding = _rounding(counts)
        return MarginalTable(
            columns=tuple(self.columns[place] for place in places),
            counts=counts.transpose(axes),
            deviations=np.sqrt(noise.cell_variances(order)).transpose(axes),
            half_widths=lambda level: noise.cell_half_widths(order, level).transpose(axes) + rounding,
        )

    def count(self, **cells: Value | Sequence[Value]) -> NoisyCount:
        """Return how many rows are in the cells of these labels: `count(sex="f", job=["nurse", "baker"])`.

        A column is given a label or several, and all of its cells if it is not named. The deviation is
        exactly that of the sum: noise that cells have in common is allowed for.
        """
        chosen = {self._place(name): labels for name, labels in cells.items()}
        order = tuple(sorted(chosen))
        query = np.ones(())
        for place in order:
            column, labels = self.columns[place], chosen[place]
            several: Any = labels if isinstance(labels, (list, tuple, set, frozenset)) else [labels]
            part = np.zeros(len(column.labels))
            part[[column.place(label) for label in several]] = 1
            query = np.multiply.outer(query, part)
        return self._sum(order, query)

    def sum_of(self, *columns: str, query: npt.ArrayLike) -> NoisyCount:
        """Return a weighted sum of the cells of a table: `query` has a weight per cell, as `table` counts."""
        shape = self.table(*columns).counts.shape
        weights = np.array(query, dtype=np.float64)
        if weights.shape != shape or not np.isfinite(weights).all():
            raise InvalidArgument(
                f"a query of this table has {' x '.join(map(str, shape))} finite weights", place="query"
            )
        places = [self._place(name) for name in columns]
        order = tuple(sorted(places))
        return self._sum(order, weights.transpose([places.index(place) for place in order]))

    def _sum(self, columns: Subset, query: FloatArray) -> NoisyCount:
        counts = self.estimates.table(columns)
        return NoisyCount(
            float((query * counts).sum()),
            self.estimates.noise.sum_noise(columns, query),
            rounding=float(np.abs(query).max(initial=0.0)) * _rounding(counts),
        )

    def errors(self) -> dict[tuple[str, ...], float]:
        """Return the error of each table that was asked for."""
        return {names: self.error(*names) for names in self.tables}

    def error(self, *columns: str) -> float:
        """Return the root of the mean variance of what is asked about a table: cells, or prefixes, .."""
        return math.sqrt(self.estimates.noise.mean_variance(tuple(sorted(map(self._place, columns)))))

    def half_widths(self, level: float = 0.95) -> dict[tuple[str, ...], float]:
        """Return what an answer of each table stays within: the ± that its price said."""
        return {names: self.half_width(*names, level=level) for names in self.tables}

    def half_width(self, *columns: str, level: float = 0.95) -> float:
        """Return what a cell of a table stays within; where cells or answers differ, a typical one."""
        return self.estimates.noise.half_width(tuple(sorted(map(self._place, columns))), level)

    def _place(self, name: str) -> int:
        names = [column.name for column in self.columns]
        if name not in names:
            raise InvalidArgument(
                f"no column `{name}` is in these tables", place="columns", hints=did_you_mean(name, names)
            )
        return names.index(name)

    def document(self) -> Page:
        """Return which tables there are and how far off their cells are."""
        from sfumato.workloads.marginal_display import page

        return page(self)

    def _plain(self) -> dict[str, Any]:
        columns = tuple(
            {one.name: getattr(column, one.name) for one in fields(column)} for column in self.columns
        )
        return {**Published._plain(self), "columns": columns, "measured": tuple(map(_packed, self.measured))}

    @staticmethod
    def _fields_of(plain: dict[str, Any]) -> dict[str, Any]:
        columns = tuple(MarginalColumn(**one) for one in plain["columns"])
        return {**plain, "columns": columns, "measured": tuple(map(_unpacked, plain["measured"]))}


def _rounding(counts: FloatArray) -> float:
    """Return what float64 may add to a cell: see `marginal_tables`."""
    return 1e-12 * float(np.abs(counts).sum())


def _packed(values: npt.NDArray[Any]) -> dict[str, Any]:
    """Return integers as text: those of 64 bits as the bytes of the narrowest type that holds them."""
    if values.dtype == object:
        return {"shape": values.shape, "integers": tuple(values.reshape(-1).tolist())}
    ends = (int(values.min()), int(values.max()))
    width = next(
        size for size in (1, 2, 4, 8) if -(1 << (8 * size - 1)) <= ends[0] and ends[1] < 1 << (8 * size - 1)
    )
    narrow = np.ascontiguousarray(values, dtype=f"<i{width}")
    return {"shape": values.shape, "width": width, "bytes": base64.b64encode(narrow.tobytes()).decode()}


def _unpacked(stored: Mapping[str, Any]) -> npt.NDArray[Any]:
    if "integers" in stored:
        return np.array(stored["integers"], dtype=object).reshape(stored["shape"])
    found = np.frombuffer(base64.b64decode(stored["bytes"]), dtype=f"<i{stored['width']}")
    return found.astype(np.int64).reshape(stored["shape"])
