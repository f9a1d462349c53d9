"""A cap on a unit's rows over all groups: the engine holds every unit to it, and noise is for no more."""

from __future__ import annotations

import itertools
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import sfumato as sf
from sfumato.analysis.bounded import BoundedQuery, MeasureKind
from sfumato.backends.bounding.row_weights import RowWeights
from sfumato.errors import InvalidArgument, QueryRefused, SfumatoError
from sfumato.ledger import Ledger

PLACES = ("a", "b", "c", "d", "e")
SUMS = "SELECT place, COUNT(*) AS n, COUNT(x) AS p, SUM(x) AS s, SUM(y) AS t FROM t GROUP BY place"
CELLS = "SELECT place, HISTOGRAM(place) AS h, HISTOGRAM(x) AS q FROM t GROUP BY place"
UNITS = "SELECT place, COUNT(*) AS n, COUNT(DISTINCT who) AS u, COUNT(DISTINCT x) AS d FROM t GROUP BY place"
ROLLUP = "SELECT place, COUNT(*) AS n, SUM(y) AS t FROM t GROUP BY ROLLUP (place)"


def rows_of(seed: int, people: int = 60) -> list[tuple[Any, ...]]:
    """Return rows of people with very different numbers of them, in up to five places."""
    random = np.random.default_rng(seed)
    rows: list[tuple[Any, ...]] = []
    for who in range(people):
        for place in PLACES[: random.integers(1, 6)]:
            for _ in range(int(random.choice([1, 1, 2, 5, 30]))):
                x = None if random.random() < 0.2 else int(random.integers(-3, 13))
                rows.append((who, place, x, float(random.normal(0, 8))))
    return rows


HEAVY = [(999, place, 10, 1e9) for place in PLACES for _ in range(40)]
UNEVEN = [(999, "a", 10, -1e9)] * 300 + [(999, "b", -7, 3.0)]
NOTHING = [(999, place, None, float("nan")) for place in PLACES] * 3


def opened(rows: list[tuple[Any, ...]], declared: bool = True, **given: Any) -> sf.Database:
    frame = pd.DataFrame(rows, columns=["who", "place", "x", "y"]).astype({"x": "Int64"})
    columns: dict[str, Any] = {"x": sf.between(0, 10), "y": sf.between(-20, 20)}
    if declared:
        columns["place"] = sf.one_of(*PLACES)
    given.setdefault("budget", sf.Budget(epsilon=9, delta=1e-6))
    return sf.connect(frame, name="t", unit="who", columns=columns, **given)


def bounded(database: sf.Database, text: str, **caps: int) -> BoundedQuery:
    [bounding] = database.sql(text, epsilon=1, **caps).priced().boundings
    return bounding.query


def totals(database: sf.Database, query: BoundedQuery) -> list[dict[tuple[Any, ...], dict[str, Any]]]:
    """Return the exact integers of every group of every grouping set."""
    return [
        {
            key: {name: np.atleast_1d(values[at]).astype(object) for name, values in groups.measures.items()}
            for at, key in enumerate(groups.keys)
        }
        for groups in database.backend.run(query, _salt=12345).reveal()  # type: ignore[call-arg]
    ]


def moved(
    one: dict[tuple[Any, ...], dict[str, Any]], other: dict[tuple[Any, ...], dict[str, Any]], name: str
) -> list[int]:
    """Return by how much each integer of a measure differs, in any group."""
    found: list[int] = []
    for key in {**one, **other}:
        sides = [side[key][name] if key in side else 0 for side in (one, other)]
        found += [abs(int(each)) for each in np.atleast_1d(sides[1] - sides[0])]
    return found


@pytest.mark.parametrize("caps", list(itertools.product((1, 3, 50), (2, 7, 40))))
def test_counts_are_weighted_as_the_rule_says(caps: tuple[int, int]) -> None:
    """Every group is kept, so that the reference needs no salt: trunc(PARTS * min(n, m) * T / W)."""
    rows, (most, total) = rows_of(1), caps
    database = opened(rows)
    query = bounded(database, "SELECT place, COUNT(*) AS n FROM t GROUP BY place",
                    max_groups=5, max_rows=most, max_rows_total=total)  # fmt: skip
    counts = pd.DataFrame(rows)[[0, 1]].value_counts().to_dict()
    groups = min(5, total)
    if groups < 5 or total >= 5 * min(most, total):
        assert (query.max_total is None) == (total >= groups * min(most, total))
        return
    assert query.max_total == total
    [measure] = query.measures
    parts = measure.sensitivity // min(most, total)
    assert parts > 1
    expected = dict.fromkeys(PLACES, 0)
    for who in {key[0] for key in counts}:
        own = {place: min(counts.get((who, place), 0), most, total) for place in PLACES}
        whole = sum(own.values())
        for place, weight in own.items():
            expected[place] += parts * weight if whole <= total else parts * weight * total // whole
    [found] = totals(database, query)
    assert {key[0]: int(values[measure.name][0]) for key, values in found.items()} == expected


@pytest.mark.parametrize("text", [SUMS, CELLS, UNITS, ROLLUP])
@pytest.mark.parametrize("declared", [True, False])
@pytest.mark.parametrize(
    "person", [HEAVY, UNEVEN, NOTHING, HEAVY[:3]], ids=["heavy", "uneven", "null", "few"]
)
def test_one_person_stays_in_the_box(text: str, declared: bool, person: list[tuple[Any, ...]]) -> None:
    """Each number moves by the sensitivity, all of them by the cap; UNITS and DISTINCT by the box alone."""
    caps = {"max_groups": 4, "max_rows": 6, "max_rows_total": 9}
    rows = rows_of(2, people=12)
    one, other = opened(rows, declared), opened([*rows, *person], declared)
    if not declared and text == CELLS:
        text = "SELECT place, HISTOGRAM(x) AS q FROM t GROUP BY place"
    query = bounded(one, text, **caps)
    assert query.max_total == 9 and query.max_rows == 6 and query == bounded(other, text, **caps)
    both = list(zip(totals(one, query), totals(other, query), strict=True))
    for measure in query.measures:
        weighted = measure.kind in (MeasureKind.MOMENT, MeasureKind.CELLS)
        whole = Fraction(measure.sensitivity * 9, 6) if weighted else measure.sensitivity * 4
        for grouping_set, sides in zip(query.grouping_sets, both, strict=True):
            moves = moved(*sides, measure.name)
            assert sum(moves) <= whole, (measure.name, grouping_set)
            if grouping_set:
                assert max(moves) <= measure.sensitivity
                assert sum(move**2 for move in moves) <= measure.sensitivity * whole


def test_cells_and_counts_have_the_same_weights() -> None:
    """Of two groups of five that count: cells of a group add up to its count, but for truncation."""
    rows = [(who, place, abs(x or 0), y) for who, place, x, y in rows_of(3)]
    database = opened(rows)
    text = "SELECT place, COUNT(*) AS n, HISTOGRAM(x) AS h FROM t GROUP BY place"
    query = bounded(database, text, max_groups=2, max_rows=6, max_rows_total=7)
    count, cells = query.measures
    [found] = totals(database, query)
    for values in found.values():
        [whole], parts = values[count.name], values[cells.name]
        assert 0 <= whole - sum(parts) <= 60 * len(parts) < whole / 10


def test_the_box_is_reached() -> None:
    """A person who fills all caps moves counts by the whole cap, so that a tighter price would be false."""
    rows = rows_of(2, people=12)
    caps = {"max_groups": 4, "max_rows": 6, "max_rows_total": 9}
    text = "SELECT place, COUNT(*) AS n FROM t GROUP BY place"
    one, other = opened(rows), opened([*rows, *HEAVY])
    query = bounded(one, text, **caps)
    [before], [after] = totals(one, query), totals(other, query)
    parts = query.measures[0].sensitivity // 6
    assert 9 * parts - 4 <= sum(moved(before, after, query.measures[0].name)) <= 9 * parts


@pytest.mark.parametrize("rule", ["gaussian", "pure", "zcdp"])
def test_noise_is_for_the_cap_over_all_groups(rule: str) -> None:
    """Laplace noise in proportion to T instead of k m, Gaussian to sqrt(m T) instead of m sqrt(k)."""
    database = opened(rows_of(1), budget=sf.Budget(epsilon=3, delta=1e-6, rule=rule))
    text = "SELECT place, SUM(y) AS t FROM t GROUP BY place"
    plain, capped = (
        database.sql(text, epsilon=1, max_groups=5, max_rows=4, **more).priced()
        for more in ({}, {"max_rows_total": 6})
    )
    noises = [priced.costs[0].noises[0].law for priced in (plain, capped)]
    ratio = noises[1].deviation / noises[0].deviation
    assert type(noises[0]) is type(noises[1])
    assert ratio == pytest.approx(6 / 20 if rule == "pure" else (6 * 4 / (16 * 5)) ** 0.5, rel=0.01)
    [item] = [part for part, _ in capped.event.parts()]
    measure = capped.boundings[0].query.measures[0]
    record = item.to_dict()
    if rule == "pure":
        assert Fraction(str(record["sensitivity"])) == Fraction(measure.sensitivity * 6, 4)
    else:
        assert Fraction(str(record["l2_squared"])) == Fraction(measure.sensitivity**2 * 6, 4)


def test_a_rollup_is_paid_for_as_if_all_rows_fell_together() -> None:
    database = opened(rows_of(1))
    priced = database.sql(ROLLUP, epsilon=1, max_groups=4, max_rows=6, max_rows_total=9).priced()
    query = priced.boundings[0].query
    for noise in priced.costs[0].noises:
        measure = next(one for one in query.measures if one.name == noise.measure)
        [(part, _)] = noise.event.parts()
        paid = Fraction(str(part.to_dict()["l2_squared"]))
        fell = Fraction(measure.sensitivity * 9, 6)
        whole = query.grouping_sets[noise.grouping_set] == ()
        assert paid == (fell**2 if whole else fell * measure.sensitivity)


def test_the_cap_alone_is_enough_and_bounds_the_others() -> None:
    database = opened(rows_of(1))
    alone = bounded(database, SUMS, max_rows_total=3)
    assert (alone.max_groups, alone.max_rows, alone.max_total) == (3, 3, 3)
    loose = bounded(database, SUMS, max_groups=2, max_rows=2, max_rows_total=4)
    assert loose.max_total is None and (loose.max_groups, loose.max_rows) == (2, 2)
    assert bounded(database, "SELECT COUNT(*) AS n FROM t", max_rows_total=3).max_rows == 3
    single = bounded(database, SUMS, max_groups=5, max_rows=1, max_rows_total=3)
    assert single.max_total is None and (single.max_groups, single.max_rows) == (3, 1)
    with pytest.raises(QueryRefused, match="max_rows_total"):
        database.sql(SUMS, epsilon=1, max_groups=4, max_rows=6, max_rows_total=9, others=True).priced()
    with pytest.raises(InvalidArgument):
        database.sql(SUMS, epsilon=1, max_rows_total=0)


def test_answers_of_a_huge_epsilon_are_those_of_the_weights() -> None:
    """With noise that rounds away: counts, sums and averages of one person of 200 rows in five places.

    False alarm below e^-1000: the scale of all noise is below a thousandth of one step.
    """
    database = opened(HEAVY, budget=sf.Budget(epsilon=10**10, delta=1e-6))
    asked = "COUNT(*) AS n, SUM(x) AS s, AVG(x) AS a, QUANTILE(x, [0.5, 0.9]) AS q"
    text = f"SELECT place, {asked} FROM t GROUP BY place"
    release = database.sql(text, epsilon=10**9, max_groups=5, max_rows=40, max_rows_total=50).release()
    for _, n, total, average, quantiles in release.rows:
        assert (n, total) == (10, 100) and average == pytest.approx(10) and quantiles == [10, 10]


def test_from_a_project_file_and_from_sql(tmp_path: Path) -> None:
    pd.DataFrame(rows_of(1), columns=["who", "place", "x", "y"]).to_parquet(tmp_path / "t.parquet")
    text = """ledger = "t.ledger"
[tables.t]
path = "t.parquet"
unit = "who"
max_rows_total = 4
[budget]
epsilon = 3
delta = 1e-6
"""
    (tmp_path / "sfumato.toml").write_text(text)
    Ledger.open(tmp_path / "t.ledger").close()
    database = sf.open(tmp_path / "sfumato.toml")
    question = database.sql("SELECT place, COUNT(*) AS n FROM t GROUP BY place", epsilon=1)
    assert question.priced().boundings[0].query.max_total == 4
    assert "4 rows in all of them together" in question.explain()
    release = question.release()
    assert any("max_rows_total = 4" in note for note in release.notes)
    clause = "WITH DIFFERENTIAL_PRIVACY OPTIONS(epsilon=1, max_rows_contributed=7)"
    query = database.sql(f"SELECT {clause} place, COUNT(*) FROM t GROUP BY place").priced().boundings[0].query
    assert (query.max_total, query.max_rows, query.max_groups) == (7, 7, 7)
    (tmp_path / "sfumato.toml").write_text(text.replace("= 4", "= 0"))
    with pytest.raises(SfumatoError):
        sf.open(tmp_path / "sfumato.toml")


def test_losses_know_the_cap() -> None:
    """Each of 500 people has 50 rows; 9 of them count."""
    rows = [(who, place, 1, 1.0) for who in range(500) for place in PLACES for _ in range(10)]
    database = opened(rows, budget=sf.Budget(epsilon=100, delta=1e-6))
    text = "SELECT place, COUNT(*) AS n FROM t GROUP BY place"
    asked = database.sql(text, epsilon=50, max_groups=5, max_rows=6, max_rows_total=9, losses=True)
    [note] = [note for note in asked.release().notes if "of the cost" in note]
    told = float(note.split("about ")[1].split("%")[0])
    assert abs(told - 82) < 2 and "max_rows_total = 9" in note


def test_weights_are_exact_however_large() -> None:
    """Against Python's integers, for sums and weights on every path."""
    random = np.random.default_rng(7)
    for largest, rows_up_to in ((10**6, 50), (2**61, 50), (2**61, 2**31 - 1), (2**50, 2**20)):
        rows = random.integers(1, rows_up_to, size=60)
        unit = np.sort(random.integers(0, 20, size=60))
        unit = np.unique(unit, return_inverse=True)[1]
        sums = random.integers(-largest, largest, size=60)
        weights = RowWeights.of(unit, rows, most=7, total=11)
        whole = {one: sum(min(int(n), 7) for n in rows[unit == one]) for one in set(unit.tolist())}
        expected = []
        for s, n, one in zip(sums.tolist(), rows.tolist(), unit.tolist(), strict=True):
            weight = Fraction(min(n, 7), n) * min(Fraction(1), Fraction(11, whole[one]))
            expected.append(int(s * weight))  # toward zero
        assert weights.applied(sums).tolist() == expected
        assert weights.applied(sums.astype(object)).tolist() == expected
