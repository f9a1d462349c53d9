"""Free answers: a question that old releases determine is answered from them, and nothing is charged.

Only releases about the same version of the data, under the same declarations, are looked at; the ledger has
kept them, so they are found after a restart. An analyst is answered from what was released to that analyst: a
grant bounds what one analyst learns. The owner is answered from all of it. See `release.determined` for what
a released table determines, and `workloads.marginal_answers` for what marginals do.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import TYPE_CHECKING

from sfumato.aggregates.answer import Forecast
from sfumato.aggregates.registry import function_labelled
from sfumato.analysis import bound
from sfumato.analysis.basis import PlanHashes, shows_all
from sfumato.analysis.bounded import Bounding
from sfumato.analysis.loss_measurement import losses_of
from sfumato.analysis.missing_limits import missing_limits
from sfumato.analysis.public_keys import PublicTables
from sfumato.core.steps import spend
from sfumato.errors import QueryRefused
from sfumato.pipeline import bounded_queries
from sfumato.plan.conditions import with_join_conditions
from sfumato.plan.outline import labels
from sfumato.plan.tree import Aggregate
from sfumato.release import NoisyTable, Published, Release, publish
from sfumato.release.determined import Determined, determined
from sfumato.release.workload_release import WorkloadRelease
from sfumato.workloads.marginal_answers import determined_by_marginals
from sfumato.workloads.marginal_release import Marginals

if TYPE_CHECKING:
    from sfumato.session.database import Database
    from sfumato.session.sql_question import SqlQuestion

__all__ = ["FreeAnswer", "free_answer"]

_CHARACTERS = 100  # of a kept release that are read in one step
_COUNT = ("counted beside", Aggregate(function=function_labelled("count(*)")))


@dataclass(frozen=True, slots=True, kw_only=True)
class FreeAnswer:
    """The answer of a question that releases determine, with the numbers of their charges."""

    release: Release
    numbers: tuple[int, ...]
    errors: tuple[Forecast, ...]

    @property
    def source(self) -> str:
        """Where it comes from, in words."""
        several = ", ".join(map(str, self.numbers))
        return f"release {several}" if len(self.numbers) == 1 else f"releases {several}"


@dataclass(frozen=True, slots=True)
class _Source:
    number: int
    found: Determined
    errors: tuple[Forecast, ...]

    @property
    def error(self) -> float:
        """How far off it is, to compare sources of the same answer."""
        return sum(one.error or 0.0 for one in self.errors)


def free_answer(question: SqlQuestion) -> FreeAnswer | None:
    """Return the answer of a question that kept releases determine, None if they do not."""
    database, request = question.database, question.request
    if question.free or request.sought is not None or request.options.losses:
        return None
    request, missing = missing_limits(with_join_conditions(request), database.catalog, database.backend)
    if missing:
        return None
    unit, boundings = bounded_queries(request, database.catalog, database.backend)
    if not all(map(shows_all, boundings)) or database.ledger.last_entry(unit) is None:
        return None
    chosen = []
    for named, bounding in zip(request.queries, boundings, strict=True):
        asked = [bounding]
        with suppress(QueryRefused):  # a sum may have been measured around a count, if rows can be counted
            counted = replace(named.query, aggregates=(*named.query.aggregates, _COUNT))
            beside = bound(counted, database.catalog, named.options or request.options, database.backend)
            asked.append(_only(beside, {answer.name for answer in bounding.answers}))
        sources = [
            _Source(number, found, _errors(one, found.table))
            for number, table in _tables(database, unit, bounding)
            for one in asked
            if not (isinstance(table, Marginals) and request.options.non_negative)  # they are not raised
            if (found := _determined(named.name, one, table, database.backend)) is not None
        ]
        if not sources:
            return None
        best = min(sources, key=lambda source: source.error)
        shown = best.found.table.shown_as(request.options)
        chosen.append(replace(best, found=replace(best.found, table=shown)))
    numbers = tuple(sorted({one.number for one in chosen}))
    tables = tuple(one.found.table for one in chosen)
    public = {name: database.backend.public_table(name) for name in request.public}
    limits = [loss.limits.unknown for loss in losses_of(request, boundings, database.catalog)]
    release = publish(
        tables,
        request.postprocessing,
        public=public,
        cost={"epsilon": Fraction(0), "delta": Fraction(0), "keys_delta": Fraction(0), "events": []},
        notes=(*dict.fromkeys((*_notes(chosen, numbers), *limits)), *request.notes, *request.query_notes),
        labels={named.name: labels(named.query) for named in request.queries},
        reported={named.name: named.reported for named in request.queries},
    )
    return FreeAnswer(
        release=release, numbers=numbers, errors=tuple(error for one in chosen for error in one.errors)
    )


def _determined(
    name: str, bounding: Bounding, released: NoisyTable | Marginals, tables: PublicTables
) -> Determined | None:
    if isinstance(released, Marginals):
        return determined_by_marginals(name, bounding, released, tables)
    return determined(name, bounding, released, tables)


def _tables(
    database: Database, unit: str, bounding: Bounding
) -> Iterator[tuple[int, NoisyTable | Marginals]]:
    """Yield the tables that were released about the rows of a question, for the data as it is."""
    stored = database.ledger.releases(
        unit,
        data_version=database.backend.data_version(),
        policy_hash=database.catalog.fingerprint(),
        analyst=database.analyst,
        mark=PlanHashes.of(bounding.query).rows,
    )
    for number, text in stored:
        spend(len(text) // _CHARACTERS)
        read = Published.from_json(text.decode())
        if isinstance(read, Marginals):
            yield number, read
            continue
        releases = read.releases if isinstance(read, WorkloadRelease) else (read,)
        for release in releases:
            if isinstance(release, Release):
                yield from ((number, table) for table in release.tables)


def _only(bounding: Bounding, names: Set[str]) -> Bounding:
    """Return a question with some of its answers, and what is measured for them."""
    answers = tuple(answer for answer in bounding.answers if answer.name in names)
    used = {name for answer in answers for name in answer.measures}
    measures = tuple(one for one in bounding.query.measures if one.name in used)
    return replace(bounding, answers=answers, query=replace(bounding.query, measures=measures))


def _errors(bounding: Bounding, table: NoisyTable) -> tuple[Forecast, ...]:
    return tuple(
        answer.function.record.forecast(
            answer, [table.noise(measure, 0) for measure in answer.measures], None, 0.95
        )
        for answer in bounding.answers
    )


def _notes(chosen: list[_Source], numbers: tuple[int, ...]) -> Iterator[str]:
    which = f"release {numbers[0]}" if len(numbers) == 1 else f"releases {', '.join(map(str, numbers))}"
    yield f"this follows from {which}: nothing was charged"
    for name in dict.fromkeys(name for one in chosen for name in one.found.left_out):
        yield f"rows whose `{name}` is NULL or not on its list are not in it"
    if any(one.found.several_rows for one in chosen):
        yield "of a unit with several rows the one counts that counted in the release"
