"""Touches data: bounded plans become total SQL and exact integers.

Here is what engines share: the meaning of expressions (`expressions`) and of integers (`integers`), which of
a unit's groups and rows count and with what weight (`priorities`, `contributions`), what comes out (`exact`,
`keys`), and what is asked of an engine (`backend`). Each engine has a folder, and `registry` opens data with
the engine that reads it.
"""

from sfumato.backends.backend import Backend
from sfumato.backends.exact import Exact, ExactGroups, Members
from sfumato.backends.registry import Source, open_tables

__all__ = ["Backend", "Exact", "ExactGroups", "Members", "Source", "open_tables"]
