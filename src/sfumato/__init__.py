"""sfumato: publish what the records say about the population, almost nothing about a person."""

from __future__ import annotations

import sys as _sys
from typing import TYPE_CHECKING

# The source may be on the path of any Python; pip refuses by itself.
if _sys.version_info < (3, 11):  # noqa: UP036
    raise ImportError(
        f"sfumato needs Python 3.11 or newer; this is Python {_sys.version_info[0]}.{_sys.version_info[1]}"
    )

from sfumato.contents import contents as _contents

if TYPE_CHECKING:
    from sfumato import core, errors
    from sfumato.catalog import Invariant, between, one_of
    from sfumato.continual import Participation
    from sfumato.ledger import OWNER
    from sfumato.plan.summaries import *
    from sfumato.plan.values import call, col, lit, when
    from sfumato.release import Release
    from sfumato.session import Budget, Database, Question, connect, open

__all__ = [
    "Budget",
    "Database",
    "Invariant",
    "OWNER",
    "Participation",
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
    "mode",
    "one_of",
    "open",
    "quantile",
    "sample_and_aggregate",
    "stddev_pop",
    "stddev_samp",
    "sum_",
    "sum_distinct",
    "var_pop",
    "var_samp",
    "when",
]

__version__ = "0.1.0"

__getattr__, __dir__ = _contents(
    __name__,
    __all__,
    {
        "": ["core", "errors"],
        "catalog": ["Invariant", "between", "one_of"],
        "continual": ["Participation"],
        "ledger": ["OWNER"],
        "plan.values": ["call", "col", "lit", "when"],
        "release": ["Release"],
        "session": ["Budget", "Database", "Question", "connect", "open"],
    },
    rest="plan.summaries",
)
