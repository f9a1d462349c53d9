"""Public groups: what public tables, lists and a question's own conditions say of them, and nothing else.

At an epsilon so large that noise rounds away (off by one with a chance below e^-500), every group that DuckDB
finds is shown with its number, and every other group that is shown is empty. Groups do not depend on private
rows: an empty table and a table with any newcomer have the same ones.
"""

from __future__ import annotations

import ast
import random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

import sfumato as sf
from sfumato.analysis import public_rows
from sfumato.analysis.bounded import BoundedQuery
from sfumato.analysis.pricing import _shifts
from sfumato.core.gaussian import GaussianNoise
from tests.soaked import rest_soaked

REGION = pa.table({"rid": [0, 1, 2, 3], "rname": ["africa", "asia", "europe", None]})
NATION = pa.table(
    {
        "nid": [0, 1, 2, 3, 4, 5, None],
        "nname": ["algeria", "india", "japan", "france", "china", None, "nowhere"],
        "nrid": [0, 1, 1, 2, 1, 0, 2],
    }
)
SEGMENTS, KINDS = ("a", "b", "c"), (1, 2)
SEEDS = 3


def people(seed: int, size: int) -> dict[str, Any]:
    draw = random.Random(seed)
    return {
        "who": list(range(size)),
        "nation": [draw.choice([0, 1, 2, 3, 4, 5, 9, None]) for _ in range(size)],
        "segment": [draw.choice([*SEGMENTS, "z", None]) for _ in range(size)],
        "kind": [draw.choice([*KINDS, 7, None]) for _ in range(size)],
        "score": [draw.choice([0, 1, 2, 3, None]) for _ in range(size)],
    }


def table_of(rows: dict[str, Any]) -> Any:
    kinds = {"segment": pa.string()}
    return pa.table({name: pa.array(values, kinds.get(name, pa.int64())) for name, values in rows.items()})


def database(rows: dict[str, Any], **options: Any) -> Any:
    return sf.connect(
        table_of(rows),
        name="people",
        unit="who",
        columns={"segment": sf.one_of(*SEGMENTS), "kind": sf.one_of(*KINDS)},
        max_groups=5,
        max_rows=5,
        budget=sf.Budget(epsilon=10**9, delta=1e-6, rule="pure"),
        public={"region": REGION, "nation": NATION},
        **options,
    )


def shown(text: str, rows: dict[str, Any], **options: Any) -> list[tuple[Any, ...]]:
    return list(database(rows).sql(text, epsilon=10**4, **options).release().rows)


JOINED = "people JOIN nation ON nation = nid JOIN region ON nrid = rid"


CASES = """
columns of one table are not crossed
SELECT nid, nname, COUNT(*) FROM people JOIN nation ON nation = nid GROUP BY 1, 2
[(0, "algeria"), (1, "india"), (2, "japan"), (3, "france"), (4, "china")]

nor are columns of tables that are joined
SELECT nname, rname, COUNT(*) FROM JOINED WHERE nid < 2 GROUP BY 1, 2
[("algeria", "africa"), ("india", "asia")]

a condition on a public column narrows, also through another public table
SELECT nname, COUNT(*) FROM JOINED WHERE rname = 'asia' GROUP BY 1
[("china",), ("india",), ("japan",)]

equalities of WHERE count as those of ON
SELECT nname, COUNT(*) FROM people, nation, region
WHERE nation = nid AND nrid = rid AND rname = 'asia' GROUP BY 1
[("china",), ("india",), ("japan",)]

a public subquery has the rows that it has
SELECT nname, COUNT(*) FROM people JOIN (SELECT * FROM nation WHERE nrid = 2) n ON nation = nid GROUP BY 1
[("france",)]

and so does a public query of WITH
WITH far AS (SELECT nid, nname FROM nation n
WHERE NOT EXISTS (SELECT 1 FROM region r WHERE r.rid = n.nrid AND rname = 'asia'))
SELECT nname, COUNT(*) FROM people JOIN far ON nation = nid GROUP BY 1
[("algeria",), ("france",)]

so does IN
SELECT nname, COUNT(*) FROM people JOIN nation ON nation = nid
WHERE nrid IN (SELECT rid FROM region WHERE rname = 'europe') GROUP BY 1
[("france",)]

a condition on the key itself narrows the owner's list
SELECT segment, COUNT(*) FROM people WHERE segment IN ('a', 'c', 'q') GROUP BY 1
[("a",), ("c",)]

a condition on two keys narrows their pairs
SELECT segment, kind, COUNT(*) FROM people WHERE segment = 'a' OR kind = 2 GROUP BY 1, 2
[("a", 1), ("a", 2), ("b", 2), ("c", 2)]

also under another name
SELECT s, COUNT(*) FROM (SELECT who, segment AS s FROM people) p WHERE s > 'a' GROUP BY 1
[("b",), ("c",)]

a condition on a private column that is no key never does
SELECT segment, COUNT(*) FROM people WHERE kind = 1 AND score > 2 GROUP BY 1
[("a",), ("b",), ("c",)]

not even one that the owner's list of that column would make false
SELECT segment, COUNT(*) FROM people WHERE kind = 5 GROUP BY 1
[("a",), ("b",), ("c",)]

nor one that may be true for another reason
SELECT segment, COUNT(*) FROM people WHERE segment = 'a' OR score = 2 GROUP BY 1
[("a",), ("b",), ("c",)]

a private column that equals a public one has its values
SELECT nation, COUNT(*) FROM people JOIN nation ON nation = nid GROUP BY nation
[(0,), (1,), (2,), (3,), (4,), (5,)]

also by USING
SELECT nation, COUNT(*) FROM people JOIN (SELECT nid AS nation FROM nation WHERE nrid = 1) n USING (nation)
GROUP BY nation
[(1,), (2,), (4,)]

and a condition on it is one on the public column
SELECT nname, COUNT(*) FROM people JOIN nation ON nation = nid WHERE people.nation > 2 GROUP BY 1
[("china",), ("france",)]

what the question lists stands beside what tables list
SELECT CASE WHEN score > 1 THEN 'high' ELSE 'low' END AS s, nname, COUNT(*)
FROM people JOIN nation ON nation = nid WHERE nrid = 2 GROUP BY 1, 2
[("high", "france"), ("low", "france")]

a left join has rows without a match
SELECT COALESCE(nname, '-') AS n, COUNT(*)
FROM people LEFT JOIN (SELECT * FROM nation WHERE nrid = 1) n ON nation = nid GROUP BY 1
[("-",), ("china",), ("india",), ("japan",)]

a union has the groups of its parts
SELECT x, COUNT(*) FROM (SELECT who, nname AS x FROM people JOIN nation ON nation = nid WHERE nrid = 2
UNION ALL SELECT who, segment AS x FROM people) u GROUP BY x
[("a",), ("b",), ("c",), ("france",)]
"""


def cases() -> list[Any]:
    """Return (question, groups) pairs, each under what it shows."""
    found = []
    for block in CASES.strip().split("\n\n"):
        name, *text, groups = block.split("\n")
        asked = " ".join(text).replace("JOINED", JOINED)
        found.append(pytest.param(asked, ast.literal_eval(groups), id=name))
    return found


@pytest.mark.parametrize(("text", "groups"), cases())
def test_groups_are_those_that_public_facts_allow(text: str, groups: list[tuple[Any, ...]]) -> None:
    """The same for nobody, for a few and for many; counts are those of the rows."""
    for rows in (people(1, 0), people(2, 3), people(3, 150)):
        found = shown(text, rows)
        assert [row[:-1] for row in found] == groups
        truth = _truth(text, rows)
        assert {row[:-1]: row[-1] for row in found if row[-1]} == {
            key: number for key, number in truth.items() if key in groups
        }


def _truth(text: str, rows: dict[str, Any]) -> dict[Any, int]:
    with duckdb.connect() as engine:
        for name, given in (("people", table_of(rows)), ("nation", NATION), ("region", REGION)):
            engine.register(name, given)
        return {tuple(row[:-1]): row[-1] for row in engine.execute(text).fetchall()}


# -- nothing is lost, whatever is asked ------------------------------------------------------

_FROM = (
    "people p JOIN nation n ON p.nation = n.nid",
    "people p JOIN nation n ON p.nation = n.nid JOIN region r ON n.nrid = r.rid",
    "people p, nation n, region r",
    "people p LEFT JOIN nation n ON p.nation = n.nid AND n.nrid < 2",
    "people p JOIN nation n ON p.nation = n.nid LEFT JOIN region r ON n.nrid = r.rid AND r.rid > 0",
    "nation n JOIN region r ON n.nrid = r.rid JOIN people p ON p.nation = n.nid",
    "people p JOIN (SELECT * FROM nation WHERE nrid <> 1) n ON p.nation = n.nid",
    "(SELECT * FROM people WHERE score < 3) p JOIN nation n ON p.nation = n.nid",
)
_KEYS = (
    "p.segment", "p.kind", "n.nname", "n.nid", "r.rname", "p.nation", "COALESCE(n.nname, 'none')",
    "CASE WHEN n.nrid = 1 THEN 'asia' ELSE 'elsewhere' END", "CASE WHEN p.score > 1 THEN 1 ELSE 0 END",
    "COALESCE(p.segment, 'a')",
)  # fmt: skip
_WHERE = (
    "p.segment IN ('a', 'z')", "p.segment <> 'b'", "p.kind = 2", "p.score >= 1", "n.nrid = 1",
    "n.nname LIKE '%a%'", "r.rname = 'asia'", "p.segment = 'a' OR n.nid = 3", "n.nname IS NOT NULL",
    "p.nation BETWEEN 1 AND 4", "p.kind IS NULL OR p.kind < 2", "n.nid = p.kind", "r.rid = p.kind",
    "EXISTS (SELECT 1 FROM region q WHERE q.rid = n.nrid AND q.rname <> 'asia')",
    "n.nrid IN (SELECT rid FROM region WHERE rname = 'africa')",
    "NOT EXISTS (SELECT 1 FROM region q WHERE q.rid = p.kind)", "p.kind > 2 OR n.nid > 2",
    "p.segment = 'z' OR n.nid < 2",
)  # fmt: skip


def questions(seed: int, number: int) -> list[str]:
    """Return generated questions."""
    draw, found = random.Random(seed), []
    for _ in range(number):
        source = draw.choice(_FROM)
        far = "region r" not in source
        keys, tests = ([one for one in some if not (far and "r." in one)] for some in (_KEYS, _WHERE))
        keys = draw.sample(keys, draw.choice((1, 1, 2, 2, 3)))
        tests = draw.sample(tests, draw.choice((0, 1, 1, 2, 3)))
        if "p, nation" in source:
            tests += ["p.nation = n.nid", "n.nrid = r.rid"]
        where = f" WHERE {' AND '.join(f'({test})' for test in tests)}" if tests else ""
        places = ", ".join(str(place + 1) for place in range(len(keys)))
        found.append(f"SELECT {', '.join(keys)}, COUNT(*) FROM {source}{where} GROUP BY {places}")
    return found


def _on_lists(text: str, key: tuple[Any, ...]) -> bool:
    """Whether the keys of a group that DuckDB found have values on the owner's lists."""
    names = _split(text.removeprefix("SELECT ").split(", COUNT(*)")[0])
    for name, value in zip(names, key, strict=True):
        listed = SEGMENTS if "p.segment" in name else KINDS if name == "p.kind" else (value,)
        if value is None or value not in listed:
            return False
    return True


def _split(names: str) -> list[str]:
    found, deep = [""], 0
    for letter in names:
        deep += (letter == "(") - (letter == ")")
        if letter == "," and not deep:
            found.append("")
        else:
            found[-1] += letter
    return [name.strip() for name in found]


@pytest.mark.parametrize("seed", rest_soaked(range(SEEDS), SEEDS))
def test_no_row_is_lost_and_no_group_depends_on_rows(seed: int) -> None:
    listed, rows = 0, (people(seed, 120), people(seed + 100, 2))
    opened = [database(each) for each in rows]
    for text in questions(seed, 25):
        try:
            asked = [one.sql(text, epsilon=10**4, keys="declared").priced() for one in opened]
        except sf.errors.QueryRefused as refused:
            with pytest.raises(sf.errors.QueryRefused, match=refused.code):
                opened[1].sql(text, epsilon=10**4, keys="declared").priced()
            if "no group is left" in str(refused):
                assert not any(_on_lists(text, key) for key in _truth(text, rows[0]))
            continue
        listed += 1
        groups = [one.boundings[0].query.declared for one in asked]
        assert groups[0] == groups[1], text
        released = opened[0].sql(text, epsilon=10**4, keys="declared").release().rows
        found = {row[:-1]: row[-1] for row in released}
        assert len(found) == len(released) and set(found) == set(groups[0] or ()), text
        truth = {key: number for key, number in _truth(text, rows[0]).items() if _on_lists(text, key)}
        assert {key: number for key, number in found.items() if number} == truth, text
    assert listed >= 10  # the generator asks for listed groups, mostly


@pytest.mark.soak
def test_planted_a_left_join_taken_for_an_inner_one_loses_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(left: Any, right: Any, condition: Any) -> Any:
        columns = {one.name: one for one in public_rows.outputs(right)}
        return left.beside(public_rows.PublicRows(rows=(right,), columns=columns)).also(condition)

    monkeypatch.setattr(public_rows, "_beside_or_null", wrong)
    with pytest.raises(AssertionError):
        for seed in range(SEEDS):
            test_no_row_is_lost_and_no_group_depends_on_rows(seed)


def test_planted_lists_of_columns_that_are_no_keys_lose_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    """The owner's list says which groups there are, not which values rows have."""
    honest = public_rows._lists

    def wrong(scan: Any, catalog: Any, keys: Any) -> Any:
        return honest(scan, catalog, frozenset(column.name for column in scan.columns))

    monkeypatch.setattr(public_rows, "_lists", wrong)
    with pytest.raises(AssertionError):
        for seed in range(SEEDS):
            test_no_row_is_lost_and_no_group_depends_on_rows(seed)


def test_sums_of_uneven_groups_are_charged_for_the_largest() -> None:
    """Of four groups a unit is in three, which fall together in one group of the coarser set."""
    text = f"SELECT rname, nname, COUNT(*) FROM {JOINED} GROUP BY ROLLUP(rname, nname)"
    asked = database(people(1, 5)).sql(text, epsilon=1, max_groups=3)
    query: BoundedQuery = asked.priced().boundings[0].query
    assert [key[0] for key in query.declared or ()] == ["africa", "asia", "asia", "asia", "europe"]
    assert query.grouping_sets == ((0, 1), (0,), ())
    assert _shifts(query, (0,), GaussianNoise) == ((3, 1),)
    assert _shifts(query, (), GaussianNoise) == ((3, 1),)
    assert _shifts(query, (0, 1), GaussianNoise) == ((1, 3),)


def test_everything_else_is_what_no_tuple_lists() -> None:
    """A row whose values stand in different tuples is in neither of them."""
    rows = people(4, 80)
    text = (
        "SELECT segment, nname, COUNT(*) AS n FROM people JOIN nation ON nation = nid"
        " WHERE (segment = 'a' AND nid = 1) OR (segment = 'b' AND nid = 3) OR score >= 0 AND nid IN (1, 3)"
        " GROUP BY 1, 2"
    )
    narrow = text.replace(" OR score >= 0 AND nid IN (1, 3)", "")
    assert [row[:2] for row in shown(narrow, rows)] == [("a", "india"), ("b", "france")]
    released = shown(narrow, rows, others=True)
    assert released[-1][:2] == ("everything else", "everything else") and released[-1][2] == 0
    wide = shown(text, rows, others=True)
    assert sum(row[2] for row in wide) == sum(_truth(text, rows).values())


def test_a_list_is_read_as_it_stands_where_no_condition_names_it() -> None:
    """A question about declared groups alone asks the engine nothing before it is paid for."""
    opened = database(people(5, 5))
    opened.backend.public_keys = None
    asked = opened.sql("SELECT segment, kind, COUNT(*) FROM people GROUP BY 1, 2", epsilon=1).priced()
    assert len(asked.boundings[0].query.declared or ()) == 6


# -- lists of keys ---------------------------------------------------------------------------

PAIRS = [("a", 1), ("b", 2), ("c", 1)]


def test_listed_combinations_are_the_groups() -> None:
    rows = people(6, 90)
    opened = sf.connect(
        table_of(rows),
        name="people",
        unit="who",
        keys={("segment", "kind"): PAIRS},
        max_groups=5,
        max_rows=5,
        budget=sf.Budget(epsilon=10**9, delta=1e-6, rule="pure"),
    )

    def asked(text: str, **options: Any) -> list[tuple[Any, ...]]:
        return list(opened.sql(text, epsilon=10**4, **options).release().rows)

    both = "SELECT segment, kind, COUNT(*) FROM people GROUP BY 1, 2"
    truth = _truth(both, rows)
    assert asked(both) == [(*pair, truth.get(pair, 0)) for pair in PAIRS]
    swapped = "SELECT kind, segment, COUNT(*) FROM people GROUP BY 1, 2"
    assert asked(swapped) == sorted((kind, segment, truth.get((segment, kind), 0)) for segment, kind in PAIRS)
    narrow = both.replace("GROUP", "WHERE kind = 1 GROUP")
    assert [row[:2] for row in asked(narrow)] == [("a", 1), ("c", 1)]
    alone = "SELECT kind, COUNT(*) FROM people GROUP BY 1"  # one of its columns has the values of the list
    assert asked(alone) == [(kind, _truth(alone, rows)[(kind,)]) for kind in (1, 2)]
    assert len(asked(both, keys="selected")) > len(PAIRS)  # also those that nobody listed


@pytest.mark.parametrize(
    "keys",
    [
        {"segment": [("a",)]},
        {("segment", "kind"): ["ab"]},
        {("segment",): [("a",)]},
        {("segment", "segment"): [("a", "b")]},
        {("segment", "kind"): []},
        {("segment", "kind"): [("a",)]},
        {("segment", "kind"): [("a", None)]},
        {("segment", "kind"): [("a", 1), ("a", 1)]},
        {("segment", "kind"): [("a", 1), ("b", "x")]},
        {("segment", "nothing"): [("a", 1)]},
        {("segment", "who"): [("a", 1)]},
        {("segment", "kind"): [("a", 1)], ("kind", "score"): [(1, 1)]},
        {("segment", "kind"): [("q", 1)]},
        {("other.segment", "kind"): [("a", 1)]},
    ],
)
def test_lists_of_keys_that_do_not_fit_are_refused(keys: Any) -> None:
    with pytest.raises(sf.errors.InvalidArgument):
        sf.connect(
            table_of(people(1, 3)),
            name="people",
            unit="who",
            columns={"segment": sf.one_of(*SEGMENTS)},
            keys=keys,
            budget=sf.Budget(epsilon=1),
        )


def test_columns_of_columns_that_grow_are_read_at_once() -> None:
    """Each of 8 subqueries writes its column 12 times: 400 million names, if they were put together."""
    many = " + ".join(["x"] * 12)
    text = "SELECT who, nname, nid AS x FROM people JOIN nation ON nation = nid"
    for _ in range(8):
        text = f"SELECT who, nname, CASE WHEN x > 0 THEN {many} ELSE 0 END AS x FROM ({text}) q WHERE x > -1"
    question = f"SELECT nname, COUNT(*) AS n FROM ({text}) q WHERE x = 3 AND nname <> 'india' GROUP BY nname"
    [bounding] = database(people(1, 4)).sql(question, epsilon=1).priced().boundings
    assert {key[0] for key in bounding.query.declared or ()} == {"algeria", "japan", "france", "china"}
