"""sfumato: publish what the records say about the population, almost nothing about a person."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sfumato import core, errors
    from sfumato.catalog import between, one_of
    from sfumato.ledger import OWNER
    from sfumato.plan.summaries import (
        aggregate,
        avg,
        corr,
        count,
        count_distinct,
        count_units,
        covar_pop,
        covar_samp,
        histogram,
        max_,
        median,
        min_,
        quantile,
        stddev_pop,
        stddev_samp,
        sum_,
        var_pop,
        var_samp,
    )
    from sfumato.plan.values import call, col, lit, when
    from sfumato.release import Release
    from sfumato.session import Budget, Database, Question, connect, open

__all__ = [
    "Budget",
    "Database",
    "OWNER",
    "Question",
    "Release",
    "__version__",
    "aggregate",
    "avg",
    "between",
    "call",
    "col",
    "connect",
    "core",
    "corr",
    "count",
    "count_distinct",
    "count_units",
    "covar_pop",
    "covar_samp",
    "errors",
    "histogram",
    "lit",
    "max_",
    "median",
    "min_",
    "one_of",
    "open",
    "quantile",
    "stddev_pop",
    "stddev_samp",
    "sum_",
    "var_pop",
    "var_samp",
    "when",
]

__version__ = "0.1.0"

_HOMES = {
    "Budget": "session",
    "Database": "session",
    "OWNER": "ledger",
    "Question": "session",
    "Release": "release",
    "aggregate": "plan.summaries",
    "avg": "plan.summaries",
    "between": "catalog",
    "call": "plan.values",
    "col": "plan.values",
    "connect": "session",
    "corr": "plan.summaries",
    "count": "plan.summaries",
    "count_distinct": "plan.summaries",
    "count_units": "plan.summaries",
    "covar_pop": "plan.summaries",
    "covar_samp": "plan.summaries",
    "histogram": "plan.summaries",
    "lit": "plan.values",
    "max_": "plan.summaries",
    "median": "plan.summaries",
    "min_": "plan.summaries",
    "one_of": "catalog",
    "open": "session",
    "quantile": "plan.summaries",
    "stddev_pop": "plan.summaries",
    "stddev_samp": "plan.summaries",
    "sum_": "plan.summaries",
    "var_pop": "plan.summaries",
    "var_samp": "plan.summaries",
    "when": "plan.values",
}


def __getattr__(name: str) -> Any:
    """Import a part of the package when it is first used."""
    if name in _HOMES:
        return getattr(importlib.import_module(f"sfumato.{_HOMES[name]}"), name)
    if name in __all__:
        return importlib.import_module(f"sfumato.{name}")
    raise AttributeError(f"module 'sfumato' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
