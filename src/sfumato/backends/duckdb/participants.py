"""Participants: whose rows count in one period of a stream, given who was counted in earlier periods."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from sfumato.backends.duckdb.engine import Engine

__all__ = ["Participants"]


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class Participants:
    """Nobody counts who was counted in `most` periods before, or in one after period `since`.

    Theorem: whether a person's rows count is a function of the periods in which that same person was counted,
    so that another person more or less changes nothing for this one. The engine compares units as it does
    when it groups rows by them: whole numbers or whole names, never their hashes.
    """

    earlier: Any | None  # an Arrow table of `__unit` and `period`: who was counted when; None: nobody
    most: int
    since: int
    counted: Any | None = None  # an Arrow table of `__unit`: who counts now, once the engine has looked

    @contextmanager
    def admitted(self, engine: Engine, rows: str) -> Iterator[str]:
        """Yield the rows of those who count; note who they are."""
        if self.earlier is None:
            self.counted = engine.table(f"SELECT DISTINCT __unit FROM ({rows})")
            yield rows
            return
        with engine.given(self.earlier) as earlier:
            over = f"count(*) >= {self.most} OR max(period) > {self.since}"
            text = f"SELECT __unit FROM {earlier} GROUP BY __unit HAVING {over}"
            with engine.named(text) as refused:
                admitted = f"SELECT r.* FROM ({rows}) AS r ANTI JOIN {refused} AS x ON r.__unit = x.__unit"
                self.counted = engine.table(f"SELECT DISTINCT __unit FROM ({admitted})")
                yield admitted
