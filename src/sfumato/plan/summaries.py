"""Aggregates in Python: `count()`, `sum_("income")`, `quantile("age", [0.25, 0.75])`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from sfumato.aggregates.registry import Function, function_called
from sfumato.aggregates.sample_and_aggregate import (
    DEFAULT_BLOCKS,
    MOST_BLOCKS,
    BlockDesign,
    BlockStatistic,
    statistic_called,
)
from sfumato.core.arguments import exact
from sfumato.errors import InvalidArgument
from sfumato.plan.limits import FURTHEST
from sfumato.plan.values import Val, col, val

__all__ = [
    "Summary",
    "aggregate",
    "avg",
    "corr",
    "count",
    "count_distinct",
    "count_units",
    "covar_pop",
    "covar_samp",
    "histogram",
    "max_",
    "median",
    "min_",
    "mode",
    "quantile",
    "sample_and_aggregate",
    "stddev_pop",
    "stddev_samp",
    "sum_",
    "sum_distinct",
    "var_pop",
    "var_samp",
]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Summary:
    """An aggregate that becomes one of the tree once it is known which columns there are."""

    function: Function
    arguments: tuple[Val, ...] = ()
    condition: Val | None = None
    quantiles: tuple[float, ...] = ()
    several: bool = False
    bounds_per_group: tuple[float, float] | None = None
    bounds_per_row: tuple[float, float] | None = None
    blocks: BlockDesign | None = None

    def where(self, condition: Val) -> Summary:
        """Return the aggregate of the rows for which a condition holds."""
        both = condition if self.condition is None else self.condition & condition
        return replace(self, condition=both)

    def clamp_rows(self, low: Any, high: Any) -> Summary:
        """Return the aggregate with each value clamped between two bounds."""
        if not self.function.record.clamps or len(self.arguments) != 1:
            hint = "clamp_groups bounds how many rows of one unit count"
            message = f"{self.function.label} has no values to clamp"
            raise InvalidArgument(message, place="clamp_rows", hints=(hint,))
        return replace(self, bounds_per_row=_bounds(low, high))

    def clamp_groups(self, low: Any, high: Any) -> Summary:
        """Return the aggregate with what one unit adds to a group clamped between two bounds."""
        if not self.function.record.adds_up:
            message = f"{self.function.label} does not add up"
            raise InvalidArgument(message, place="clamp_groups", hints=("clamp_rows bounds single values",))
        return replace(self, bounds_per_group=_bounds(low, high))


def aggregate(name: str, *values: Any) -> Summary:
    """Return an aggregate by the name that SQL has for it: `aggregate("corr", "height", "weight")`.

    >>> aggregate("corr", "height", "weight").function.label
    'corr'
    """
    function = function_called(name) if isinstance(name, str) else None
    if function is None or len(values) != function.record.arity:
        known = ", ".join(sorted(called for one in Function for called in one.record.names))
        message = "there is no aggregate of this name that takes this number of values"
        hints = (f"known are {known}", "count, count_distinct, median and quantile are functions")
        raise InvalidArgument(message, place="aggregate", hints=hints)
    return Summary(function=function, arguments=tuple(_column(value) for value in values))


def count(value: Any = None) -> Summary:
    """Count rows, or the rows in which a value is present.

    >>> count().function.label, count("age").function.label
    ('count(*)', 'count')
    """
    if value is None:
        return Summary(function=Function.COUNT_ROWS)
    return Summary(function=Function.COUNT, arguments=(_column(value),))


def count_distinct(value: Any) -> Summary:
    """Count the different values.

    >>> count_distinct("region").function.label
    'count(distinct)'
    """
    return Summary(function=Function.COUNT_DISTINCT, arguments=(_column(value),))


def count_units() -> Summary:
    """Count the units of protection: people, not rows.

    >>> count_units().function.label
    'count(distinct unit)'
    """
    return Summary(function=Function.COUNT_UNITS)


def sum_(value: Any) -> Summary:
    """Add up.

    >>> sum_("cost").clamp_groups(0, 500).bounds_per_group
    (0.0, 500.0)
    """
    return Summary(function=Function.SUM, arguments=(_column(value),))


def sum_distinct(value: Any) -> Summary:
    """Add up the different values, each once.

    >>> sum_distinct("size").function.label
    'sum(distinct)'
    """
    return Summary(function=Function.SUM_DISTINCT, arguments=(_column(value),))


def avg(value: Any) -> Summary:
    """Average.

    >>> avg("cost").where(col("age") >= 18).function.label
    'avg'
    """
    return Summary(function=Function.AVG, arguments=(_column(value),))


def var_pop(value: Any) -> Summary:
    """Variance, divided by n.

    >>> var_pop("cost").function.label
    'var_pop'
    """
    return Summary(function=Function.VAR_POP, arguments=(_column(value),))


def var_samp(value: Any) -> Summary:
    """Variance, divided by n - 1.

    >>> var_samp("cost").function.label
    'var_samp'
    """
    return Summary(function=Function.VAR_SAMP, arguments=(_column(value),))


def stddev_pop(value: Any) -> Summary:
    """Standard deviation, divided by n.

    >>> stddev_pop("cost").function.label
    'stddev_pop'
    """
    return Summary(function=Function.STDDEV_POP, arguments=(_column(value),))


def stddev_samp(value: Any) -> Summary:
    """Standard deviation, divided by n - 1.

    >>> stddev_samp("cost").function.label
    'stddev_samp'
    """
    return Summary(function=Function.STDDEV_SAMP, arguments=(_column(value),))


def covar_pop(value: Any, other: Any) -> Summary:
    """Covariance, divided by n.

    >>> covar_pop("height", "weight").function.label
    'covar_pop'
    """
    return Summary(function=Function.COVAR_POP, arguments=(_column(value), _column(other)))


def covar_samp(value: Any, other: Any) -> Summary:
    """Covariance, divided by n - 1.

    >>> covar_samp("height", "weight").function.label
    'covar_samp'
    """
    return Summary(function=Function.COVAR_SAMP, arguments=(_column(value), _column(other)))


def corr(value: Any, other: Any) -> Summary:
    """Correlation.

    >>> corr("height", "weight").function.label
    'corr'
    """
    return Summary(function=Function.CORR, arguments=(_column(value), _column(other)))


def min_(value: Any) -> Summary:
    """Smallest value, as a private quantile.

    >>> min_("age").function.label
    'min'
    """
    return Summary(function=Function.MIN, arguments=(_column(value),))


def max_(value: Any) -> Summary:
    """Largest value, as a private quantile.

    >>> max_("age").function.label
    'max'
    """
    return Summary(function=Function.MAX, arguments=(_column(value),))


def histogram(value: Any) -> Summary:
    """How many values lie in each cell.

    >>> histogram("age").function.label
    'histogram'
    """
    return Summary(function=Function.HISTOGRAM, arguments=(_column(value),))


def mode(value: Any) -> Summary:
    """Most frequent value, chosen privately.

    >>> mode("region").function.label
    'mode'
    """
    return Summary(function=Function.MODE, arguments=(_column(value),))


def median(value: Any) -> Summary:
    """Value in the middle.

    >>> median("age").quantiles
    (0.5,)
    """
    return quantile(value, 0.5)


def quantile(value: Any, rank: float | Sequence[float]) -> Summary:
    """Return the value below which a share of the values lies; several, for a list of shares.

    >>> quantile("age", [0.25, 0.75]).quantiles
    (0.25, 0.75)
    """
    several = isinstance(rank, Sequence)
    ranks = tuple(rank) if isinstance(rank, Sequence) else (rank,)
    if not ranks or any(not 0 <= exact(one, "rank") <= 1 for one in ranks):
        hint = "quantile('x', 0.9), or a list of ranks"
        raise InvalidArgument("a rank lies between 0 and 1", place="rank", hints=(hint,))
    return Summary(
        function=Function.QUANTILE,
        arguments=(_column(value),),
        quantiles=tuple(float(one) for one in ranks),
        several=several,
    )


def sample_and_aggregate(
    statistic: str, *values: Any, lower: Any, upper: Any, blocks: int = DEFAULT_BLOCKS
) -> Summary:
    """Return the mean of a statistic over disjoint blocks of people, each clamped between two ends.

    For what no bound on one person is known: kurtosis, skewness, mad, entropy, geomean, corr and others. It
    estimates the statistic of a sample as large as one block.

    >>> sample_and_aggregate("kurtosis", "income", lower=-2, upper=10).blocks.number
    50
    """
    found = statistic_called(statistic) if isinstance(statistic, str) else None
    if found is None or len(values) != found.arity:
        known = ", ".join(one.label for one in BlockStatistic)
        message = "there is no statistic of this name that takes this number of values"
        raise InvalidArgument(message, place="statistic", hints=(f"known are {known}",))
    ends = exact(lower, "lower"), exact(upper, "upper")
    if not ends[0] < ends[1]:
        raise InvalidArgument("lower must be below upper", place="lower", hints=("lower=-2, upper=10",))
    if not isinstance(blocks, int) or isinstance(blocks, bool) or not 2 <= blocks <= MOST_BLOCKS:
        raise InvalidArgument(f"blocks is a whole number from 2 to {MOST_BLOCKS:,}", place="blocks")
    return Summary(
        function=Function.SAMPLE_AND_AGGREGATE,
        arguments=tuple(_column(value) for value in values),
        blocks=BlockDesign(statistic=found, number=blocks, lower=ends[0], upper=ends[1]),
    )


def _column(value: Any) -> Val:
    """Return a value; a bare string names a column here."""
    return col(value) if isinstance(value, str) else val(value)


def _bounds(low: Any, high: Any) -> tuple[float, float]:
    if exact(low, "low") > exact(high, "high"):
        raise InvalidArgument("the lower bound must not be above the upper one", hints=("swap them",))
    if max(-exact(low, "low"), exact(high, "high")) > FURTHEST:
        raise InvalidArgument("these bounds are too far apart", hints=("give bounds that values reach",))
    return float(low), float(high)
