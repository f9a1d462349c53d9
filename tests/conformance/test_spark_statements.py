"""Spark's own form of statements: the groups of a unit that count, and integers that are wide."""

from __future__ import annotations

import math
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from fractions import Fraction
from functools import partialmethod
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from sfumato.analysis.bounded import BoundedQuery, Factor, Measure, MeasureKind
from sfumato.backends.relations import Relations
from sfumato.backends.spark.compile import SparkStatements
from sfumato.backends.spark.dialect import SPARK
from sfumato.backends.spark.group_masks import ROUNDS
from sfumato.backends.spark.sessions import pin
from sfumato.backends.spark.source import SparkTables
from sfumato.catalog import Catalog, Field, Kind, Table, Unit
from sfumato.core.grid import Grid
from sfumato.errors import Unsupported
from sfumato.plan.tree import Call, ColumnRef, Literal, Scan
from tests.conformance.comparing import shown
from tests.conformance.spark_session import Spark
from tests.engine.replay import SALT

FIELDS = {"person": Kind.INTEGER, "word": Kind.TEXT, "value": Kind.INTEGER}
CATALOG = Catalog(
    (
        Table(
            name="t",
            fields=tuple(Field(name=name, kind=kind) for name, kind in FIELDS.items()),
            unit=Unit(name="person", column="person"),
        ),
    )
)
WORD, VALUE = (ColumnRef(name=f"t.{name}", kind=FIELDS[name]) for name in ("word", "value"))
GROUPS, ROWS, VALUES = 2, 3, 2


def _sum(name: str, most: int) -> Measure:
    grid = Grid(step=1, lower=-most, upper=most)
    factor = Factor(expression=VALUE, centre=0.0, grid=grid)
    return Measure(name=name, kind=MeasureKind.MOMENT, factors=(factor,), sensitivity=ROWS * most)


FEW = (("a",), ("nobody",), ("d",), ("b",))
ADDED = {"narrow": 2**20, "wide": 2**45}
QUERY = BoundedQuery(
    source=Scan(table="t", alias="t", columns=(WORD, VALUE)),
    row_unit=False,
    keys=(("word", WORD),),
    grouping_sets=((0,),),
    declared=None,
    max_groups=GROUPS,
    max_rows=ROWS,
    measures=(
        Measure(name="n", kind=MeasureKind.MOMENT, sensitivity=ROWS),
        *(_sum(name, most) for name, most in ADDED.items()),
        Measure(name="d", kind=MeasureKind.DISTINCT, value=VALUE, max_values=VALUES, sensitivity=VALUES),
    ),
)


def _rows(people: int = 12) -> list[dict[str, Any]]:
    source = random.Random(18)
    words, values = [None, "a", "b", "c", "d ", "d"], [None, 0, 1, 7, -(2**44) - 1, 2**45, 2**60]
    return [
        {"person": source.randrange(people), "word": source.choice(words), "value": source.choice(values)}
        for _ in range(300)
    ]


def _expected(
    rows: list[dict[str, Any]], hashes: dict[Any, int], *, most_groups: int = GROUPS, most_rows: int = ROWS
) -> dict[Any, Any]:
    """Return the totals of each group in Python's integers; `hashes` are the engine's."""
    units: defaultdict[Any, defaultdict[Any, list[Any]]] = defaultdict(lambda: defaultdict(list))
    for row in rows:
        units[row["person"]][row["word"]].append(row["value"])
    totals: defaultdict[Any, Counter[str]] = defaultdict(Counter)
    distinct: defaultdict[Any, set[int]] = defaultdict(set)
    for person, groups in units.items():
        for word in sorted(groups, key=lambda word: hashes[person, word])[:most_groups]:
            values = groups[word]
            top, bottom = min(len(values), most_rows), len(values)
            totals[word]["n"] += top
            for name, most in ADDED.items():
                whole = sum(max(-most, min(most, value)) for value in values if value is not None)
                share = abs(whole) * top // bottom
                totals[word][name] += share if whole >= 0 else -share
            own = sorted({*values} - {None}, key=lambda value: hashes.get((person, word, value), 0))
            distinct[word] |= set(own[:VALUES])
    return {word: {**found, "d": len(distinct[word])} for word, found in totals.items()}


def _opened(spark: Spark, folder: Path, rows: list[dict[str, Any]]) -> SparkTables:
    pq.write_table(pa.Table.from_pylist(rows), folder / "t.parquet")
    return SparkTables(spark.session, {"t": spark.session.read.parquet(str(folder / "t.parquet"))})


def _totals(groups: Any) -> dict[Any, dict[str, int]]:
    """Return the integers of groups, by the word; of one group that is all, by None."""
    return {
        key[0] if key else None: {name: int(values[at]) for name, values in groups.measures.items()}
        for at, key in enumerate(groups.keys)
    }


def _places(tables: SparkTables) -> dict[Any, int]:
    """Return the places of people's declared groups, computed from the engine's hashes of people alone."""
    hashed = f"xxhash64('{SALT}', person)"
    turns = ", ".join("xxhash64(" * turn + hashed + ")" * turn for turn in range(ROUNDS))
    with tables.reading() as cursor:
        seen = cursor.execute(f"SELECT DISTINCT person, {turns} FROM {tables.stored('t')}").fetchall()
    return {
        (person, word): place(code, hashes) for person, *hashes in seen for code, (word,) in enumerate(FEW)
    }


def _planted(self: SparkStatements, plain: Any, old: str, new: str, *given: Any) -> str:
    text: str = plain(self, *given)
    assert old in text or not text.startswith("WITH")
    return text.replace(old, new)


def test_groups_and_values_of_a_unit_are_chosen_by_their_priorities(
    spark: Spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The choice is recomputed from the engine's hashes; a cap or a weight that is forgotten is seen."""
    rows = _rows()
    tables = _opened(spark, tmp_path, rows)
    backend = tables.backend(CATALOG)

    def found(query: BoundedQuery = QUERY) -> dict[Any, Any]:
        [groups] = backend.run(query, _salt=SALT).reveal()
        assert list(groups.keys) == sorted(groups.keys, key=lambda key: (key[0] is None, key[0]))
        return _totals(groups)

    hashed = f"xxhash64('{SALT}', person, word), xxhash64('{SALT}', person, word, value)"
    with tables.reading() as cursor:
        seen = cursor.execute(f"SELECT person, word, value, {hashed} FROM {tables.stored('t')}").fetchall()
    hashes = {(person, word): group for person, word, _, group, _ in seen}
    hashes |= {(person, word, value): number for person, word, value, _, number in seen}
    expected = _expected(rows, hashes)
    assert found() == expected
    few = replace(QUERY, declared=FEW)
    assert set(found(few)) == {"a", "nobody", "d", "b"}
    for name, old, new in (
        ("totals", f"place <= {GROUPS}", f"place <= {GROUPS + 1}"),
        ("totals", f"least(n, {ROWS})", "n"),
        ("distinct", f"number <= {VALUES}", f"number <= {VALUES + 1}"),
    ):
        plain = getattr(SparkStatements, name)
        with monkeypatch.context() as patch:
            patch.setattr(SparkStatements, name, partialmethod(_planted, plain, old, new))
            assert found() != expected, new

    # Groups that are declared, and few, are chosen by places that are computed here again.
    places = _places(tables)
    placed = _expected([row for row in rows if (row["word"],) in FEW], hashes | places)
    assert found(few) == {**placed, "nobody": dict.fromkeys((*ADDED, "n", "d"), 0)}
    plain = SparkStatements._in_masked_groups
    with monkeypatch.context() as patch:
        more = partialmethod(_planted, plain, f"< {GROUPS}", f"< {GROUPS + 1}")
        patch.setattr(SparkStatements, "_in_masked_groups", more)
        assert found(few) != {**placed, "nobody": dict.fromkeys((*ADDED, "n", "d"), 0)}


@pytest.mark.soak
@pytest.mark.parametrize(("most", "together"), [(3, False), (4, True)], ids=["by unit", "together"])
def test_rows_of_units_below_the_cap_are_added_up_together(
    spark: Spark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, most: int, together: bool
) -> None:
    """Sums of few declared groups, of people of whom some are above the cap; a wrong weight is seen."""
    rows = [*_rows(people=60), *({**row, "person": 100 + row["person"] % 6} for row in _rows())]
    tables = _opened(spark, tmp_path, rows)
    asked = [row for row in rows if (row["word"],) in FEW]
    above = [person for person, number in Counter(row["person"] for row in asked).items() if number > most]
    assert 5 < len(above) < 30
    query = replace(QUERY, declared=FEW, measures=QUERY.measures[:-1], max_groups=1, max_rows=most)
    query = replace(query, grouping_sets=((0,), ()))
    relations = Relations(catalog=CATALOG, dialect=SPARK, stored=tables.stored)
    assert SparkStatements.of(query, relations, salt=SALT)._together is together

    def found() -> list[Any]:
        return [_totals(one) for one in tables.backend(CATALOG).run(query, _salt=SALT).reveal()]

    words = _expected(asked, _places(tables), most_groups=1, most_rows=most)
    for own in words.values():
        own.pop("d")
    whole = {name: sum(own[name] for own in words.values()) for name in ("n", *ADDED)}
    expected = [{**words, "nobody": dict.fromkeys(whole, 0)}, {None: whole}]
    assert found() == expected
    plain = SparkStatements.totals
    for old, new in (
        (f"least(n, {most})", "n"),
        *([(f"unit_rows > {most}", f"unit_rows > {most + 1}"), ("__unit IS NULL THEN 1", "FALSE THEN 1")]
          if together else []),
    ):  # fmt: skip
        with monkeypatch.context() as patch:
            patch.setattr(SparkStatements, "totals", partialmethod(_planted, plain, old, new))
            assert found() != expected, new


SOME = Call(function=">=", arguments=(VALUE, Literal(value=1, kind=Kind.INTEGER)), kind=Kind.BOOLEAN)
ONES = Grid(step=Fraction(1, 1024), lower=1, upper=1)
SUMS = (
    *QUERY.measures[:-1],
    Measure(name="some", kind=MeasureKind.MOMENT, condition=SOME, sensitivity=8),
    Measure(
        name="present",
        kind=MeasureKind.MOMENT,
        factors=(Factor(expression=VALUE, centre=0.0, grid=ONES),),
        sensitivity=8 * 1024,
    ),
)
PEOPLE = (
    Measure(name="people", kind=MeasureKind.UNITS, sensitivity=1),
    Measure(name="some people", kind=MeasureKind.UNITS, condition=SOME, sensitivity=1),
    replace(QUERY.measures[1], name="clamped", condition=SOME, clamp=(2, 9), sensitivity=9),
)
PAIRS = tuple((word, value) for word in ("a", "b", "d") for value in (0, 1, 7))


@pytest.mark.parametrize(
    ("together", "kind", "changes"),
    [
        (True, Kind.INTEGER, {"measures": SUMS, "max_rows": 8}),
        pytest.param(True, Kind.TEXT, {"measures": SUMS, "max_rows": 8}, marks=pytest.mark.soak),
        pytest.param(False, Kind.INTEGER, {"measures": (*SUMS, *PEOPLE)}, marks=pytest.mark.soak),
        pytest.param(False, Kind.INTEGER, {"measures": SUMS, "max_total": 4}, marks=pytest.mark.soak),
    ],
    ids=["together", "named people", "people", "all rows"],
)
def test_groups_that_are_known_by_numbers_have_the_integers_of_their_keys(
    spark: Spark,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    together: bool,
    kind: Kind,
    changes: dict[str, Any],
) -> None:
    """Two keys, groups by both, by one and by none: entries are the same where rows have keys instead."""
    rows = [*_rows(people=60), *({**row, "person": 100 + row["person"] % 2} for row in _rows() * 4)]
    if kind is Kind.TEXT:
        rows = [{**row, "person": f"person {row['person']}"} for row in rows]
    tables = _opened(spark, tmp_path, rows)
    [table] = CATALOG.tables
    fields = tuple(replace(one, kind=kind) if one.name == "person" else one for one in table.fields)
    catalog = Catalog((replace(table, fields=fields),))
    query = replace(QUERY, keys=(("word", WORD), ("value", VALUE)), declared=PAIRS, **changes)
    query = replace(query, grouping_sets=((0, 1), (1,), ()))
    relations = Relations(catalog=catalog, dialect=SPARK, stored=tables.stored)
    written = SparkStatements.of(query, relations, salt=SALT)
    assert written._only_totals and written._together is together
    found = shown(tables.backend(catalog).run(query, _salt=SALT).reveal())
    monkeypatch.setattr(SparkStatements, "_only_totals", False)
    assert shown(tables.backend(catalog).run(query, _salt=SALT).reveal()) == found


BY_VALUE = replace(QUERY, keys=(("word", WORD), ("value", VALUE)), grouping_sets=((0, 1), (1,), ()))


@pytest.mark.parametrize(
    "remote", [False, pytest.param(True, marks=pytest.mark.soak)], ids=["classic", "remote"]
)
@pytest.mark.parametrize(
    "query", [QUERY, pytest.param(BY_VALUE, marks=pytest.mark.soak)], ids=["one", "three"]
)
def test_what_the_statements_of_a_question_share_is_held_until_it_ends(
    spark: Spark, tmp_path: Path, query: BoundedQuery, remote: bool
) -> None:
    """Integers are the same; all statements read what is kept of the first; then executors let go of it."""
    pq.write_table(pa.Table.from_pylist(_rows()), tmp_path / "t.parquet")
    session = spark.remote() if remote else spark.session
    tables = SparkTables(session, {"t": session.read.parquet(str(tmp_path / "t.parquet"))})
    backend, holding = tables.backend(CATALOG), spark.session._jsparkSession.sharedState().cacheManager()
    assert holding.isEmpty()
    query = replace(query, members=True)
    alone = shown(backend.run(query, _salt=SALT).reveal())
    assert holding.isEmpty()
    with pytest.raises(ZeroDivisionError), tables.admitted():
        found = backend.run(query, _salt=SALT).reveal()
        assert shown(found) == alone
        [view] = tables._shared.views
        written = found[0].members.written
        pin(tables._session)  # plans are written whole again
        for text in (written.totals((0,)), written.members((0,), [], [1])):
            assert f"Scan In-memory table {view}" in tables._session.sql(f"EXPLAIN {text}").collect()[0][0]
        raise ZeroDivisionError
    assert holding.isEmpty()
    with pytest.raises(Exception, match="TABLE_OR_VIEW_NOT_FOUND"):
        tables._session.sql(f"SELECT * FROM {view}").collect()
    with tables.admitted(), tables.reading() as cursor:  # a Spark that keeps nothing reads rows again
        assert tables.share(cursor, "SELECT nonsense FROM nowhere") is None and not tables._shared.views


def place(code: int, words: Sequence[Any]) -> Any:
    """Return the place of a declared group in the order of a unit; `words` are hashes of the unit."""
    left, right = code >> 3, code & 7
    for word in words:
        left = left ^ (word >> (3 * right) & 7)
        right = right ^ (word >> (24 + 3 * left) & 7)
    return 8 * left + right


def test_places_are_a_permutation_and_favour_no_group() -> None:
    """A false alarm has a chance below 1e-9: 7 standard deviations, 26 frequencies.

    With three rounds instead of four, sets in one column of places are seen 4% too often: 16 deviations.
    """
    units = 10**6
    chance = np.random.default_rng(18)
    words = chance.integers(-(2**63), 2**63 - 1, (ROUNDS, units))
    ours = np.array([place(code, words[:, :1000]) for code in range(64)])
    assert np.array_equal(np.sort(ours, axis=0), np.repeat(np.arange(64)[:, None], 1000, axis=1))
    for codes in ((0, 8, 16, 24), (0, 1, 2, 3), (0, 9, 18, 27), (0, 1, 8, 9), (7, 63)):
        first = np.argsort([place(code, words) for code in codes], axis=0)[: len(codes) // 2]
        chosen = (1 << first).sum(axis=0)
        _, often = np.unique(chosen, return_counts=True)
        share = 1 / math.comb(len(codes), len(codes) // 2)
        assert np.all(np.abs(often - units * share) < 7 * math.sqrt(units * share * (1 - share))), codes


def test_a_cap_on_rows_that_needs_more_than_38_digits_is_refused() -> None:
    relations = Relations(catalog=CATALOG, dialect=SPARK, stored=str)
    for cap, fits in ((10**38 // 2**93, True), (10**38 // 2**93 + 1, False)):
        written = SparkStatements.of(replace(QUERY, max_total=cap), relations, salt=SALT)
        with nullcontext() if fits else pytest.raises(Unsupported, match="38 digits"):
            written.totals((0,))
