"""Touches data: bounded plans become total SQL and exact integers.

Here is what engines share: the meaning of values and expressions (`dialect`, `functions`), of relations
(`relations`) and of integers (`integers`, `row_values`), and what comes out (`exact`, `totals`). Which groups
and rows of a unit count, and with what weight, is decided in one of two places: here, by numpy, over rows
that an engine hands over (`bounding`); or in the engine, which hands over totals of groups alone
(`statements`; `group_reader` reads what they return). `protocols` says what an engine offers. An engine has a
folder (`duckdb`, `postgres`, `spark`), whose `dialect` says how it spells values and expressions; the
`registry` opens tables with the engine that reads them.
"""

from sfumato.backends.duckdb.dialect import DUCKDB
from sfumato.backends.duckdb.participants import Participants
from sfumato.backends.duckdb.period_rows import PeriodRows
from sfumato.backends.exact import Exact, ExactGroups, Members, UnitRows
from sfumato.backends.protocols import Backend, Source
from sfumato.backends.registry import open_tables

__all__ = [
    "Backend",
    "DUCKDB",
    "Exact",
    "ExactGroups",
    "Members",
    "Participants",
    "PeriodRows",
    "Source",
    "UnitRows",
    "open_tables",
]
