"""PostgreSQL's own form of statements gives what the plain form of all engines gives, under the same salt."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from sfumato.analysis.bounded import BoundedQuery, MeasureKind
from sfumato.backends.postgres import PostgresBackend
from sfumato.backends.postgres.compile import PostgresStatements
from sfumato.backends.statements import Statements
from sfumato.errors import Unsupported
from tests.conformance.comparing import Worlds, shown
from tests.conformance.engines import Engine
from tests.engine.questions import Asked, questions
from tests.engine.replay import SALT, planned
from tests.engine.worlds import CATALOG
from tests.soaked import rest_soaked

OWN = ("_once", "_entry", "_matched", "_chosen_rows", "_first_groups", "_cell_counts", "_numbered_values")


class Plain(PostgresStatements):
    """Words of PostgreSQL in the form of all engines."""


for name in OWN:
    setattr(Plain, name, Statements.__dict__[name])


class PlainBackend(PostgresBackend):
    statements = Plain


@pytest.fixture(scope="module")
def postgres(postgresql: Engine) -> Worlds:
    return Worlds(postgresql)


def capped(query: BoundedQuery) -> BoundedQuery:
    """Return a question whose caps bind, for most people."""
    measures = tuple(
        replace(one, max_values=2) if one.kind is MeasureKind.DISTINCT else one for one in query.measures
    )
    groups = query.max_groups and min(query.max_groups, 2)
    return replace(query, measures=measures, max_groups=groups, max_rows=query.max_rows and 3, members=False)


def both(tables: Any, query: BoundedQuery) -> list[Any]:
    return [
        shown(kind(tables, CATALOG).run(query, _salt=SALT).reveal())
        for kind in (PostgresBackend, PlainBackend)
    ]


@pytest.mark.parametrize("batch", rest_soaked(range(300, 312), 6))
def test_both_forms_give_the_same_integers(postgres: Worlds, batch: int) -> None:
    tables, different, same = postgres.tables(batch % 3, "huge"), [], 0
    for one in questions(batch, 12):
        try:
            ours, plain = both(tables, capped(planned(one).query))
        except Unsupported:
            continue
        same += ours == plain
        different += [one.text] if ours != plain else []
    assert not different and same > 4


HISTOGRAM = "SELECT v.word, MEDIAN(v.qty), COUNT(DISTINCT v.qty) FROM visits AS v GROUP BY v.word"


@pytest.mark.parametrize(
    ("method", "old", "new"),
    [
        ("_cell_counts", "n > 3", "n > 4"),
        ("_numbered_values", "n > 2", "n > 9"),
        ("_chosen_rows", "place <= 2", "place <= 3"),
    ],
)
def test_planted_errors_of_the_fast_form_are_caught(
    postgres: Worlds, monkeypatch: pytest.MonkeyPatch, method: str, old: str, new: str
) -> None:
    tables = postgres.tables(1, "huge")
    query = capped(planned(Asked(HISTOGRAM, {"max_groups": 2, "max_rows": 3})).query)
    ours, plain = both(tables, query)
    assert ours == plain
    written = getattr(PostgresStatements, method)

    def planted(self: PostgresStatements, *given: Any) -> str:
        return written(self, *given).replace(old, new)

    monkeypatch.setattr(PostgresStatements, method, planted)
    ours, plain = both(tables, query)
    assert ours != plain
