"""The same questions over the same rows in two engines: what is the same, what is refused, what differs."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from sfumato.analysis.bounded import BoundedQuery
from sfumato.backends import Source
from sfumato.backends.exact import ExactGroups, Membership
from sfumato.errors import EngineFailure, QueryRefused, Unsupported
from tests.conformance.copies import without_nul
from tests.conformance.engines import DuckDB, Engine, Rows
from tests.conformance.refusals import reason, reasons
from tests.engine.questions import Asked
from tests.engine.replay import SALT, Recorded, planned
from tests.engine.worlds import _PUBLIC, _UNIQUE, CATALOG, NEIGHBOURS, crowd, newcomer

__all__ = ["Compared", "Worlds", "admitted", "compare", "compare_together", "shown", "uncapped"]

ALL = 10**6  # groups and values of a unit that count: more than there are
SIZES = ((12, 60), (40, 200), (5, 0))  # people and rows of the worlds


class Worlds:
    """Small worlds, with one person more or without, in an engine and in DuckDB; copied when first used."""

    def __init__(self, engine: Engine) -> None:
        self.engine, self.catalog = engine, engine.known(CATALOG)
        self._tables: dict[tuple[str, int, str | None], Source] = {}

    def rows(self, seed: int, more: str | None) -> Rows:
        """Return the rows of a world, and of the public tables beside it."""
        people, rows = SIZES[seed]
        found = crowd(seed, people=people, rows=rows)
        found = found if more is None else found + newcomer(more, seed, 1000 + seed)
        private = {
            name: [{key: without_nul(value) for key, value in row.items()} for row in held]
            for name, held in found.tables.items()
        }
        return {**private, "places": list(_PUBLIC), "capitals": list(_UNIQUE)}

    def tables(self, seed: int, more: str | None, *, engine: Engine | None = None) -> Any:
        """Return the open tables of a world; the order of rows is another in each engine."""
        engine = engine or self.engine
        place = (engine.name, seed, more)
        if place not in self._tables:
            rows = self.rows(seed, more)
            for held in rows.values():
                random.Random(repr(place)).shuffle(held)
            self._tables[place] = engine.tables(self.catalog, rows)
        return self._tables[place]

    def run(self, query: BoundedQuery, seed: int, more: str | None) -> Recorded:
        """Run a query in the engine."""
        return _recorded(self.tables(seed, more).backend(self.catalog), query)

    def neighbours(self, place: int) -> tuple[int, str]:
        """Return one of the worlds, and who joins it; where opening takes seconds, one world for all."""
        seed = place % len(SIZES) if self.engine.worlds > len(SIZES) else 1
        return seed, NEIGHBOURS[(place + 7) % len(NEIGHBOURS)]

    def both(self, place: int) -> tuple[Any, Any]:
        """Return the backends of one of the worlds, of DuckDB and of the engine."""
        seed, more = _PLACES[place % self.engine.worlds]
        ours, theirs = self.tables(seed, more, engine=_DUCKDB), self.tables(seed, more)
        return ours.backend(self.catalog), theirs.backend(self.catalog)


_DUCKDB = DuckDB()
_FIRST = ((1, "extreme"), (1, None))
_PLACES = tuple(dict.fromkeys((*_FIRST, *itertools.product((0, 1, 2), (None, *NEIGHBOURS)))))


def _recorded(backend: Any, query: BoundedQuery) -> Recorded:
    try:
        return Recorded((), backend.run(query, _salt=SALT).reveal(), None)
    except EngineFailure as failure:
        return Recorded((), (), str(failure))


def uncapped(query: BoundedQuery) -> BoundedQuery:
    """Return a query in which all groups and values of a unit count: engines choose by their own hashes."""
    return replace(
        query,
        max_groups=None if query.max_groups is None else ALL,
        measures=tuple(replace(one, max_values=ALL) for one in query.measures),
    )


def shown(groups: tuple[ExactGroups, ...]) -> list[Any]:
    """Return all there is to groups, types included, in a form that can be compared."""
    return [
        (
            one.grouping_set,
            [tuple(map(_exactly, key)) for key in one.keys],
            {name: np.asarray(values).tolist() for name, values in one.measures.items()},
            {name: values.dtype for name, values in one.measures.items()},
            None if one.units is None else one.units.tolist(),
            None if one.members is None else _told(one.members, len(one.keys)),
        )
        for one in groups
    ]


def _exactly(value: Any) -> tuple[str, Any]:
    """Return a value beside its type; 0.0 and -0.0 are told apart."""
    return type(value).__name__, repr(value) if isinstance(value, float) else value


def _told(members: Membership, size: int) -> list[Any]:
    """Return what selections learn of who is where: before anything was found, and after."""
    nothing, half = np.zeros(size, dtype=np.bool_), np.arange(size) % 2 == 0
    weights = [members.weights(found, lambda d: 8 ** min(d, 15)).tolist() for found in (nothing, half)]
    return [*weights, members.units_outside(half)]


@dataclass(slots=True)
class Compared:
    """How many questions have the same exact integers, or are refused, and what is wrong with others."""

    same: int = 0
    planned: int = 0  # refused by the plan, which knows no engine
    refused: Counter[str] = field(default_factory=Counter)  # by the engine: why
    wrong: list[str] = field(default_factory=list)

    def unlisted(self, engine: Engine) -> list[str]:
        """Return what an engine refuses for another reason than those of its page's examples."""
        return [why for why in self.refused if reason(why) not in reasons(engine.name)]


def admitted(asked: Asked, backend: Any, catalog: Any, found: Compared) -> BoundedQuery | None:
    """Return a question that the plan and an engine allow; count in `found` why it is none."""
    try:
        query = uncapped(planned(asked, catalog).query)
    except QueryRefused:
        found.planned += 1
        return None
    try:
        backend.check(query)
    except Unsupported as refusal:
        found.refused[str(refusal).splitlines()[0].partition(": ")[2]] += 1
        return None
    return query


def _difference(query: BoundedQuery, ours: Any, theirs: Any) -> str | None:
    recorded = _recorded(theirs, query)
    if recorded.error is not None:
        return "fails"
    mine, yours = shown(ours.run(query, _salt=SALT).reveal()), shown(recorded.groups)
    return None if mine == yours else f"{mine} != {yours}"[:2000]


def compare(asked: Sequence[Asked], catalog: Any, backends: Callable[[int], tuple[Any, Any]]) -> Compared:
    """Ask questions of two engines, each of the backends that its place gives."""
    found = Compared()
    for place, one in enumerate(asked):
        ours, theirs = backends(place)
        query = admitted(one, theirs, catalog, found)
        if query is None:
            continue
        wrong = _difference(query, ours, theirs)
        if wrong is None:
            found.same += 1
        else:
            found.wrong.append(f"{one.text}: {wrong}")
    return found


def compare_together(
    expressions: Sequence[str],
    form: Callable[[Sequence[str]], Asked],
    size: int,
    catalog: Any,
    backends: Callable[[int], tuple[Any, Any]],
) -> Compared:
    """Ask for several expressions in one question: those that an engine does not refuse.

    Where such a question differs, its expressions are asked one by one. Who is in which groups is not asked:
    of many keys that takes statements as long as all of their values, which are compared as they are.
    """
    found = Compared()
    _, any_backend = backends(0)
    asked = [one for one in expressions if admitted(form([one]), any_backend, catalog, found)]
    for place, start in enumerate(range(0, len(asked), size)):
        some = asked[start : start + size]
        ours, theirs = backends(place)
        query = replace(uncapped(planned(form(some), catalog).query), members=False)
        if _difference(query, ours, theirs) is None:
            found.same += len(some)
            continue
        alone = compare([form([one]) for one in some], catalog, lambda _, pair=(ours, theirs): pair)
        found.same += alone.same
        found.wrong += alone.wrong or [f"together: {some}"]
    return found
