"""Participants: whose rows count in one period of a stream, given who was counted in earlier periods."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from sfumato.backends.duckdb.engine import Engine

__all__ = ["Participants"]


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class Participants:
    """Nobody counts who was counted in `most` periods before, or `lately`.

    Theorem: whether a person's rows count, and what is remembered of that, is a function of the periods in
    which that same person was counted, so that another person more or less changes nothing for this one. The
    engine compares units as it does when it groups rows by them: whole numbers or whole names, never hashes.
    """

    most: int
    earlier: Any | None  # an Arrow table of `__unit`: who was counted, once for each period; None: nobody
    lately: Any | None  # the same of the periods that are too near
    counted: Any | None = None  # of `__unit`: who counts now

    @contextmanager
    def admitted(self, engine: Engine, rows: str) -> Iterator[str]:
        """Yield the rows of those who count; note who they are."""
        import pyarrow

        with ExitStack() as stack:
            people = stack.enter_context(engine.named(f"SELECT DISTINCT __unit FROM ({rows})"))
            over = np.zeros(engine.one(f"SELECT count(*) FROM {people}"), dtype=bool)  # by their row numbers
            for before, most in ((self.earlier, self.most), (self.lately, 1)):
                if before is not None:
                    given = stack.enter_context(engine.given(before))
                    joined = f"{given} AS e JOIN {people} AS p ON e.__unit = p.__unit"
                    [found] = engine.columns(f"SELECT p.rowid FROM {joined}")
                    over |= np.bincount(found, minlength=len(over)) >= most
            if not over.any():
                self.counted = engine.table(f"SELECT * FROM {people}")
            else:
                given = stack.enter_context(engine.given(pyarrow.table({"place": np.flatnonzero(over)})))
                whose = f"SELECT __unit FROM {people} WHERE rowid IN (SELECT place FROM {given})"
                refused = stack.enter_context(engine.named(whose))
                self.counted = engine.table(f"SELECT * FROM {people} ANTI JOIN {refused} USING (__unit)")
                rows = f"SELECT r.* FROM ({rows}) AS r ANTI JOIN {refused} AS x ON r.__unit = x.__unit"
            yield rows
