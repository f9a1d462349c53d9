"""Participants: whose rows count in one period of a stream, given who was counted in earlier periods."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

from sfumato.backends.duckdb.engine import Engine

__all__ = ["Participants"]


@dataclass(slots=True, kw_only=True, eq=False, repr=False)
class Participants:
    """Nobody counts who was counted in `most` periods before, or in one after period `since`.

    Theorem: whether a person's rows count, and what is remembered of that, is a function of the periods in
    which that same person was counted, so that another person more or less changes nothing for this one. The
    engine compares units as it does when it groups rows by them: whole numbers or whole names, never hashes.
    """

    most: int | None  # None: any number
    since: int
    earlier: Any | None  # an Arrow table of `__unit`, `used` and `period`: who was counted when; None: nobody
    counted: Any | None = None  # of `__unit` and `used`: who counts now, and in how many periods by now

    @contextmanager
    def admitted(self, engine: Engine, rows: str) -> Iterator[str]:
        """Yield the rows of those who count; note who they are."""
        with ExitStack() as stack:
            earlier = None if self.earlier is None else stack.enter_context(engine.given(self.earlier))
            if earlier is not None:
                over = f"period > {self.since}" + ("" if self.most is None else f" OR used >= {self.most}")
                refused = stack.enter_context(engine.named(f"SELECT __unit FROM {earlier} WHERE {over}"))
                if engine.one(f"SELECT count(*) FROM {refused}"):
                    rows = f"SELECT r.* FROM ({rows}) AS r ANTI JOIN {refused} AS x ON r.__unit = x.__unit"
            people = f"SELECT DISTINCT __unit, 1::INTEGER AS used FROM ({rows})"
            if earlier is not None and self.most is not None and self.most > 1:
                both = f"({people}) AS p LEFT JOIN {earlier} AS e ON p.__unit = e.__unit"
                used = "(1 + coalesce(max(e.used), 0))::INTEGER AS used"
                people = f"SELECT p.__unit, {used} FROM {both} GROUP BY p.__unit"
            self.counted = engine.table(people)
            yield rows
