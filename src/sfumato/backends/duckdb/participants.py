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
    since: int | None  # None: anybody may be counted in two periods one after the other
    earlier: Any | None  # an Arrow table of `__unit` and `period`: who was counted when; None: nobody
    counted: Any | None = None  # of `__unit`: who counts now

    @contextmanager
    def admitted(self, engine: Engine, rows: str) -> Iterator[str]:
        """Yield the rows of those who count; note who they are."""
        with ExitStack() as stack:
            people = stack.enter_context(engine.named(f"SELECT DISTINCT __unit FROM ({rows})"))
            refused = None
            if self.earlier is not None:
                earlier = stack.enter_context(engine.given(self.earlier))
                refused = stack.enter_context(engine.named(self._refused(earlier, people)))
            if refused is None or not engine.one(f"SELECT count(*) FROM {refused}"):
                self.counted = engine.table(f"SELECT * FROM {people}")
            else:
                self.counted = engine.table(f"SELECT * FROM {people} ANTI JOIN {refused} USING (__unit)")
                rows = f"SELECT r.* FROM ({rows}) AS r ANTI JOIN {refused} AS x ON r.__unit = x.__unit"
            yield rows

    def _refused(self, earlier: str, people: str) -> str:
        """Return a SELECT of those among people who were counted too lately, or too often; some twice."""
        here = f"SELECT e.* FROM {earlier} AS e SEMI JOIN {people} AS p ON e.__unit = p.__unit"
        if self.most == 1:
            return f"SELECT __unit FROM ({here})"
        lately = f"SELECT __unit FROM ({here}) WHERE period > {self.since}"
        if self.most is None:
            return lately
        often = f"SELECT __unit FROM ({here}) GROUP BY __unit HAVING count(*) >= {self.most}"
        return often if self.since is None else f"{often} UNION ALL {lately}"
