"""The aggregates there are."""

from __future__ import annotations

from enum import Enum

__all__ = ["Function"]


class Function(Enum):
    """What an aggregate computes."""

    COUNT_ROWS = "count(*)"
    COUNT = "count"
    COUNT_DISTINCT = "count(distinct)"
    COUNT_UNITS = "count(distinct unit)"
    SUM = "sum"
    AVG = "avg"
    VAR_POP = "var_pop"
    VAR_SAMP = "var_samp"
    STDDEV_POP = "stddev_pop"
    STDDEV_SAMP = "stddev_samp"
    COVAR_POP = "covar_pop"
    COVAR_SAMP = "covar_samp"
    CORR = "corr"
    QUANTILE = "quantile"
    MIN = "min"
    MAX = "max"
    HISTOGRAM = "histogram"
