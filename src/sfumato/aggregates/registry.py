"""The aggregates there are: a name of the tree for each, and its record."""

from __future__ import annotations

from enum import Enum

from sfumato.aggregates.counts import Count, CountDistinct, CountRows, CountUnits
from sfumato.aggregates.histograms import Histogram
from sfumato.aggregates.modes import ChosenGroup, Mode
from sfumato.aggregates.moments import Correlation, Covariance, Variance
from sfumato.aggregates.ranks import Extreme, Quantile
from sfumato.aggregates.record import AggregateRecord
from sfumato.aggregates.regressions import Determination, FittedLine
from sfumato.aggregates.sample_and_aggregate import SampleAndAggregate
from sfumato.aggregates.sums import Average, Sum, SumDistinct

__all__ = ["Function", "function_called", "function_labelled"]


class Function(Enum):
    """What an aggregate computes. The names are what SQL and Python call it."""

    COUNT_ROWS = CountRows("count(*)", ("count_star",))
    COUNT = Count("count")
    COUNT_DISTINCT = CountDistinct("count(distinct)")
    COUNT_UNITS = CountUnits("count(distinct unit)")
    SUM = Sum("sum", ("sum",))
    SUM_DISTINCT = SumDistinct("sum(distinct)")
    AVG = Average("avg", ("avg", "mean"))
    VAR_POP = Variance("var_pop", ("var_pop",))
    VAR_SAMP = Variance("var_samp", ("var_samp", "variance", "var"), sample=True)
    STDDEV_POP = Variance("stddev_pop", ("stddev_pop",), root=True)
    STDDEV_SAMP = Variance("stddev_samp", ("stddev_samp", "stddev", "std"), sample=True, root=True)
    COVAR_POP = Covariance("covar_pop", ("covar_pop",))
    COVAR_SAMP = Covariance("covar_samp", ("covar_samp",), sample=True)
    CORR = Correlation("corr", ("corr",))
    REGR_SLOPE = FittedLine("regr_slope", ("regr_slope",))
    REGR_INTERCEPT = FittedLine("regr_intercept", ("regr_intercept",), at_zero=True)
    REGR_R2 = Determination("regr_r2", ("regr_r2",))
    QUANTILE = Quantile("quantile")
    MIN = Extreme("min", ("min",), rank=0.005)
    MAX = Extreme("max", ("max",), rank=0.995)
    MODE = Mode("mode", ("mode",))
    ARG_MAX = ChosenGroup("arg_max")
    ARG_MIN = ChosenGroup("arg_min", largest=False)
    HISTOGRAM = Histogram("histogram", ("histogram",))
    SAMPLE_AND_AGGREGATE = SampleAndAggregate("sample_and_aggregate")

    record: AggregateRecord
    """All that is known about it."""
    label: str
    """How it is shown and stored."""

    def __init__(self, record: AggregateRecord) -> None:
        self.record = record
        self.label = record.label


_CALLED = {name: one for one in Function for name in one.record.names}
_LABELLED = {one.label: one for one in Function}


def function_called(*names: str) -> Function | None:
    """Return the aggregate that SQL calls by one of these names, None if there is none."""
    return next((_CALLED[name.lower()] for name in names if name.lower() in _CALLED), None)


def function_labelled(label: str) -> Function:
    """Return the aggregate that was stored under a label."""
    return _LABELLED[label]
