"""Touches data: bounded plans become total SQL and exact integers.

Here is what engines share: the meaning of values and expressions (`dialect`, `functions`), of relations
(`relations`) and of integers (`integers`), which of a unit's groups and rows count and with what weight
(`priorities`, `contributions`), and what comes out (`exact`, `totals`). Each engine has a folder (`duckdb`),
whose `dialect` says how the engine spells values and expressions; the `registry` opens tables with the
engine that reads them.
"""

from sfumato.backends.duckdb.backend import Backend
from sfumato.backends.duckdb.dialect import DUCKDB
from sfumato.backends.duckdb.participants import Participants
from sfumato.backends.duckdb.period_rows import PeriodRows
from sfumato.backends.duckdb.source import Source
from sfumato.backends.exact import Exact, ExactGroups, Members, UnitRows
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
