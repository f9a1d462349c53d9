"""Bounded queries give the same exact integers on all engines; one person more stays in the box on each."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from sfumato.analysis.bounded import MeasureKind
from sfumato.backends.postgres import PostgresBackend, PostgresTables
from sfumato.backends.statements import Statements
from sfumato.catalog import Catalog, Field, Kind, Table, Unit
from sfumato.errors import EngineFailure, QueryRefused, Unsupported
from tests.conformance.comparing import Worlds, compare, shown, uncapped
from tests.conformance.engines import Engine, lean
from tests.engine.questions import Asked, questions
from tests.engine.replay import SALT, leaves, planned
from tests.engine.worlds import CATALOG

BATCHES, EACH = 66, 8


@pytest.fixture(scope="module")
def postgres(postgresql: Engine) -> Worlds:
    return Worlds(postgresql)


def _batches(first: int) -> list[Any]:
    """Return pairs of an engine and a batch."""
    return lean(range(first, first + BATCHES), of_soak=2, postgresql=33)


def asked(batch: int, engine: str) -> list[Asked]:
    """Return the questions of a batch; of Spark, which takes seconds for one, every fourth."""
    return list(questions(batch, EACH))[batch % 4 :: 4] if engine == "spark" else list(questions(batch, EACH))


@pytest.mark.parametrize(("engine", "batch"), _batches(0), indirect=["engine"])
def test_queries_give_the_same_integers(worlds: Worlds, batch: int) -> None:
    """Questions of a generator, in worlds with people of every kind."""
    some = asked(batch, worlds.engine.name)
    found = compare(some, worlds.catalog, lambda place: worlds.both(batch + 7 * place))
    assert not found.wrong and not found.unlisted(worlds.engine)
    assert found.same + found.refused.total() == len(some)
    assert found.same >= EACH // 4 or len(some) < EACH


@pytest.mark.parametrize(("engine", "batch"), _batches(100), indirect=["engine"])
def test_one_person_more_stays_in_the_box(worlds: Worlds, batch: int) -> None:
    found, (seed, more) = [], worlds.neighbours(batch)
    for one in asked(batch, worlds.engine.name):
        replay = planned(one, worlds.catalog)
        try:
            before, after = (worlds.run(replay.run, seed, who) for who in (None, more))
        except Unsupported:
            continue
        found += [(one.text, more, wrong) for wrong in leaves(replay, before, after)]
    assert found == []


WORDS = "SELECT v.word, v.member, COUNT(*), SUM(v.qty) FROM {} AS v GROUP BY v.word, v.member"


@pytest.mark.parametrize("table", ["visits", "named"])
def test_groups_of_a_unit_are_chosen_by_their_priorities(postgres: Worlds, table: str) -> None:
    """The choice is recomputed from the rows, and the hashes that the engine gives their units and keys."""
    query = planned(Asked(WORDS.format(table), {"max_groups": 2, "max_rows": 3})).query
    query = replace(query, members=False)
    tables = postgres.tables(1, "huge")
    written = PostgresBackend(tables, CATALOG)._statements(replace(query, max_groups=None), SALT)
    with tables.reading() as cursor:
        entries = cursor.execute(
            f"{written._with_kept()}SELECT __unit, k0, k1, n, {written._priority()} FROM entries"
        ).fetchall()
    by_unit = defaultdict(list)
    for unit, word, member, rows, priority in entries:
        by_unit[unit].append((priority, (word is None, word or "", member is None, member), rows))
    assert max(map(len, by_unit.values())) > 10
    expected: Counter[Any] = Counter()
    for own in by_unit.values():
        for _, (no_word, word, no_member, member), rows in sorted(own)[:2]:
            key = (None if no_word else word, None if no_member else member)
            expected[key] += min(rows, 3)
    [groups] = PostgresBackend(tables, CATALOG).run(query, _salt=SALT).reveal()
    counted = next(one.name for one in query.measures if one.kind is MeasureKind.MOMENT and not one.factors)
    found = dict(zip(map(tuple, groups.keys), groups.measures[counted].tolist(), strict=True))
    assert found == dict(expected)
    [other] = PostgresBackend(tables, CATALOG).run(query, _salt=SALT + 1).reveal()
    assert shown((other,)) != shown((groups,))


def test_a_choice_by_the_order_of_rows_is_caught(postgres: Worlds, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a cap that is forgotten, and a weight that is."""
    replay = planned(Asked(WORDS.format("visits"), {"max_groups": 2, "max_rows": 3}))

    def caught() -> list[str]:
        before, after = (postgres.run(replay.run, 1, who) for who in (None, "huge"))
        return list(leaves(replay, before, after))

    assert caught() == []
    plain = Statements.totals
    for old, new in (("place <= 2", "place <= 3"), ("least(n, 3)", "n")):

        def planted(self: Statements, chosen: tuple[int, ...], old: str = old, new: str = new) -> str:
            assert old in plain(self, chosen)
            return plain(self, chosen).replace(old, new)

        with monkeypatch.context() as patch:
            patch.setattr(Statements, "totals", planted)
            assert caught(), new


def test_a_row_that_is_a_unit_is_not_made_two(postgres: Worlds) -> None:
    """Two places of the public table are in the south, and one capital is."""
    backend = PostgresBackend(postgres.tables(0, None), CATALOG)
    assert backend.public_copies("places", ("region",)) == 2
    assert backend.public_copies("capitals", ("region",)) == 1 and backend.public_copies("places", ()) == 5
    joined = "SELECT COUNT(*) FROM lone AS v JOIN {} AS p ON v.region = p.region"
    backend.check(planned(Asked(joined.format("capitals"), {})).query)
    with pytest.raises(QueryRefused):
        backend.check(planned(Asked(joined.format("places"), {})).query)


def test_keys_of_128_bits_are_as_they_are(postgres: Worlds) -> None:
    """Whole numbers of 39 digits are beyond Arrow's usual decimals: nobody's number makes a question fail."""
    person = Unit(name="person", column="person")
    fields = (Field("person", Kind.INTEGER), Field("number", Kind.TEXT))
    catalog = Catalog((Table(name="t", fields=fields, unit=person),))
    numbers = [2**127 - 1, -(2**127) + 1, 10**38, 5]
    rows = {"t": [{"person": at, "number": str(one)} for at, one in enumerate(numbers)]}
    text = "SELECT CAST(number AS HUGEINT) AS k, COUNT(*) FROM t GROUP BY k"
    query = uncapped(planned(Asked(text, {"max_groups": 1, "max_rows": 1}), catalog).query)
    [groups] = postgres.engine.tables(catalog, rows).backend(catalog).run(query, _salt=SALT).reveal()
    assert list(groups.keys) == [(one,) for one in sorted(numbers)]
    assert next(iter(groups.measures.values())).tolist() == [1] * len(numbers)


SETTINGS = {
    "transaction_read_only": "on",
    "transaction_isolation": "repeatable read",
    "search_path": "pg_catalog, pg_temp",
    "timezone": "UTC",
    "statement_timeout": "1h",
}


def test_a_transaction_sees_one_state_and_cannot_write(postgres: Worlds) -> None:
    import psycopg

    tables = postgres.tables(0, None)
    with tables.reading() as cursor:
        shows = {name: cursor.execute(f"SHOW {name}").fetchone()[0] for name in SETTINGS}
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            cursor.execute("CREATE TABLE public.nothing (x int)")
    assert shows == SETTINGS


def test_a_failure_says_nothing(postgres: Worlds) -> None:
    """A statement that fails is one error, whatever it was about; its context holds nothing."""
    query = planned(Asked("SELECT COUNT(*) FROM visits AS v", {"max_rows": 3})).query
    tables = postgres.tables(0, None)
    gone = partial(PostgresTables.__new__, PostgresTables)()
    for name in ("_address", "_seconds", "_fields", "_left_out"):
        setattr(gone, name, getattr(tables, name))
    gone._stored = dict.fromkeys(tables._stored, '"no such schema"."secret"')
    with pytest.raises(EngineFailure) as raised:
        PostgresBackend(gone, CATALOG).run(query)
    assert raised.value.__context__ is None and "secret" not in str(raised.value)
