"""No text is too long: one in one person's row neither stops a question nor changes its charge or its shape.

What is asked of a long text is every function, conversion and aggregate that takes a text: a new one without
an example makes a test fail here. DuckDB has the meaning: texts of a mebibyte are computed with, and longer
ones are NULL. PostgreSQL is given 134 million code points, which it stores in 1.6 megabytes and which its
own functions fail at; the other engines are given one more than a mebibyte, and 134 million in the soak.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from functools import cache
from typing import Any

import pytest

from sfumato.aggregates.registry import Function
from sfumato.backends.dialect import LONGEST_TEXT, Dialect
from sfumato.catalog import Catalog, Kind
from sfumato.catalog.identifiers import identifier
from sfumato.errors import EngineFailure, QueryRefused
from sfumato.plan import tree
from sfumato.plan.functions import FUNCTIONS, Signature
from sfumato.plan.numbers import KindError
from sfumato.plan.sql import parse
from tests.conformance.comparing import Compared, compare, compare_together
from tests.conformance.engines import DuckDB, Engine, PostgreSQL, lean
from tests.conformance.forms import AGGREGATES, CAPS, EXPRESSIONS
from tests.engine.questions import Asked
from tests.engine.worlds import CATALOG, crowd

VISITS = Catalog(tuple(one for one in CATALOG.tables if one.name in ("visits", "named")))
LONG = 2**27  # code points of a text that PostgreSQL is given
TEXTS = {  # the beginning of a text, and what it goes on with
    "letters": ("", "a"),
    "number": ("1e", "0"),
    "spaces": ("", " "),
    "digits": ("", "7"),
    "moment": ("2024-02-29 ", " "),
    "bits": ("0b", "1"),
    "quotes": ("'", "\\"),
    "lines": ("a", "\n"),
    "é": ("", "é"),
    "palette": ("a", "\U0001f3a8"),
    "zone": ("2024-01-01 12:34", "+0"),
}
QUICK = ("number",)
ASKED = (
    *(one for one in EXPRESSIONS if "v.word" in one),
    "v.word <> 'b'",
    "v.word <= v.region",
    "v.word >= v.region",
    "v.word BETWEEN 'a' AND v.region",
    "REGEXP_EXTRACT(v.word, '[a0]b|(?:ab|e)0*')",
    "REGEXP_REPLACE(v.word, '^[^e]*e', 'x')",
    "REGEXP_EXTRACT(v.word, 'e(0+)', 1)",
    f"CONCAT({', '.join(['v.word'] * 150)})",
    f"CONCAT_WS(v.region, {', '.join(['v.word'] * 150)})",
    f"CONCAT_WS(', ', v.word, {', '.join(['LEFT(v.word, 3)', 'NULL'] * 60)})",
)
MEASURES = tuple(one for one in AGGREGATES if "v.word" in one)
_OWN = "(SELECT person, {} AS a FROM visits GROUP BY person)"
FORMS = tuple(
    Asked(text, CAPS)
    for text in (
        "SELECT v.word, v.region, COUNT(DISTINCT v.word) FROM visits AS v GROUP BY v.word, v.region",
        f"SELECT u.a, COUNT(*) FROM {_OWN.format('MIN(word)')} AS u GROUP BY u.a",
        f"SELECT u.a, COUNT(*) FROM {_OWN.format('MAX(word)')} AS u GROUP BY u.a",
        f"SELECT COUNT(u.a), SUM(LEAST(u.a, 9)) FROM {_OWN.format('COUNT(DISTINCT word)')} AS u",
        "SELECT n.word, COUNT(*), SUM(n.qty) FROM named AS n GROUP BY n.word",
    )
)


def long_text(name: str, size: int) -> str:
    """Return a text of so many bytes, or up to three fewer."""
    before, letter = TEXTS[name]
    return before + letter * ((size - len(before.encode())) // len(letter.encode()))


def _rows(names: Sequence[str], sizes: tuple[int, int]) -> dict[str, list[dict[str, Any]]]:
    """Return a few people, and one with texts of so many bytes."""
    found = crowd(1, people=5, rows=8).tables
    held: dict[str, list[dict[str, Any]]] = {}
    for table in ("visits", "named"):
        plain = [{**row, "word": "b", "region": "north"} for row in found[table]]
        texts = [long_text(name, size) for name in names for size in sizes]
        hostile = [{**plain[0], "person": 900, "word": one, "region": one} for one in texts]
        if table == "named":  # people by name: the long names are nobody's, the others two people's
            hostile = [{**row, "person": row["word"]} for row in hostile]
        held[table] = [*plain, *hostile]
    return held


def _stretched(engine: Engine, to: int) -> None:
    """Make the texts beyond a mebibyte in the tables of PostgreSQL that were made last as long as it can."""
    if not isinstance(engine, PostgreSQL):
        return
    execute = engine._connection.execute
    [(schema,)] = execute(
        "SELECT n.nspname FROM pg_namespace AS n WHERE n.nspname LIKE 'World %' ORDER BY n.oid DESC LIMIT 1"
    ).fetchall()
    long = f"left(word, 20) || repeat(right(word, 1), {to} / octet_length(right(word, 1)))"
    found = f"FROM {identifier(schema)}.visits WHERE octet_length(word) > {LONGEST_TEXT}"
    execute(f"CREATE TEMP TABLE stretched AS SELECT md5(word) AS old, {long} AS long {found}")
    for table, column in (("visits", "word"), ("visits", "region"), ("named", "word"), ("named", "person")):
        execute(
            f"UPDATE {identifier(schema)}.{table} SET {column} = s.long FROM stretched AS s"
            f" WHERE md5({column}) = s.old"
        )
    execute("DROP TABLE stretched")


class Pair:
    """The same rows in DuckDB and in an engine, texts that are too long by a byte or by a lot."""

    def __init__(self, engine: Engine, names: Sequence[str], *, whole: int, over: int = LONGEST_TEXT + 4):
        self.catalog = engine.known(VISITS)
        self._ours = DuckDB().tables(self.catalog, _rows(names, (whole, LONGEST_TEXT + 4)))
        self._theirs = engine.tables(self.catalog, _rows(names, (whole, over)))
        _stretched(engine, LONG)

    def __call__(self, _: int) -> tuple[Any, Any]:
        """Return a backend of each of them."""
        return self._ours.backend(self.catalog), self._theirs.backend(self.catalog)

    def asked(self, *, size: int = 12) -> Compared:
        """Ask for everything that takes a text."""
        found = compare_together(ASKED, _keys, size, self.catalog, self)
        for more in (
            compare_together(MEASURES, _measures, size, self.catalog, self),
            compare(FORMS, self.catalog, self),
        ):
            found.same += more.same
            found.refused += more.refused
            found.wrong += more.wrong
        return found


@cache
def _pair(engine: Engine) -> Pair:
    return Pair(engine, QUICK, whole=2**12)


def _keys(some: Sequence[str]) -> Asked:
    listed = ", ".join(f"{one} AS k{place}" for place, one in enumerate(some))
    grouped = ", ".join(f"k{place}" for place in range(len(some)))
    return Asked(f"SELECT {listed}, COUNT(*) FROM visits AS v GROUP BY {grouped}", CAPS)


def _measures(some: Sequence[str]) -> Asked:
    return Asked(f"SELECT {', '.join(some)} FROM visits AS v", CAPS)


def test_everything_that_takes_a_text_takes_one_of_any_length(postgresql: PostgreSQL) -> None:
    found = _pair(postgresql).asked()
    assert not found.wrong
    assert found.same > 80


@pytest.mark.parametrize(
    ("engine", "names", "whole"),
    [
        pytest.param("postgresql", tuple(TEXTS), 2**14, marks=pytest.mark.soak),
        pytest.param("postgresql", ("letters", "moment"), LONGEST_TEXT, marks=pytest.mark.night),
        pytest.param("spark", tuple(TEXTS), 2**10, marks=pytest.mark.night),
        pytest.param("spark", ("moment",), 2**16, marks=pytest.mark.soak),
    ],
    indirect=["engine"],
)
def test_texts_of_every_form(engine: Engine, names: Sequence[str], whole: int) -> None:
    assert not Pair(engine, names, whole=whole).asked(size=6).wrong


def test_a_text_that_is_read_is_seen(postgresql: PostgreSQL, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: columns are read whole, and the server fails."""
    pair = _pair(postgresql)
    monkeypatch.setattr(Dialect, "short_text", lambda self, sql: self.plain_text(sql))
    [wrong] = compare([_keys(["TRIM(v.word)"])], pair.catalog, pair).wrong
    assert wrong.endswith(": fails")


# -- as users see it ------------------------------------------------------------------------------

QUESTION = (
    "SELECT v.region, COUNT(TRIM(v.word)) AS a, COUNT(CAST(v.word AS DOUBLE)) AS b,"
    " COUNT(CAST(v.word AS TIMESTAMP)) AS c, COUNT(DISTINCT v.word) AS d,"
    " SUM(LEAST(LENGTH(REGEXP_REPLACE(v.word, 'o', 'x')), 9)) AS e"
    " FROM {} AS v WHERE v.word NOT LIKE '%o_o%' OR v.word IS NULL GROUP BY v.region"
)


def _released(engine: Engine, rows: dict[str, list[dict[str, Any]]]) -> list[Any]:
    """Return what is seen of answers, but for their noise: columns, how many rows, what is left."""
    import sfumato as sf

    db = engine.connect(
        VISITS,
        rows,
        public=(),
        unit={"visits": "person", "named": "person"},
        columns={f"{one}.region": sf.one_of("north", "south") for one in rows},
        budget=sf.Budget(epsilon=100, delta=1e-6),
        **CAPS,
    )
    _stretched(engine, LONG)
    seen: list[Any] = []
    for table in rows:
        release = db.sql(QUESTION.format(table), epsilon=1).release()
        seen.append((release.columns, len(release.rows), repr(db.budget)))
    return seen


@pytest.mark.parametrize(("engine", "_"), lean(["quick"], postgresql=1), indirect=["engine"])
def test_status_charge_and_shape_are_those_of_a_neighbour(engine: Engine, _: str) -> None:
    rows = _rows(QUICK, (2**12, LONGEST_TEXT + 4))
    for row in (row for held in rows.values() for row in held):
        row["region"] = "north"
    without = {name: [row for row in held if len(row["word"]) < 99] for name, held in rows.items()}
    assert _released(engine, rows) == _released(engine, without)


def test_a_text_that_is_read_is_seen_by_analysts(
    postgresql: PostgreSQL, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Planted: columns are read whole, and the question fails after its charge."""
    monkeypatch.setattr(Dialect, "short_text", lambda self, sql: self.plain_text(sql))
    rows = _rows(QUICK, (2**12, LONGEST_TEXT + 4))
    for row in rows["visits"]:
        row["region"] = "north"
    with pytest.raises(EngineFailure):
        _released(postgresql, rows)


# -- nothing is left out --------------------------------------------------------------------------

NOT_OF_TEXTS = frozenset(Function) - {
    Function.COUNT, Function.COUNT_DISTINCT, Function.MIN, Function.MAX, Function.MODE, Function.HISTOGRAM,
}  # fmt: skip
KINDS = [getattr(Kind, name) for name, of in Kind.__annotations__.items() if of == "ClassVar[Kind]"]


def _nodes(texts: Iterator[str]) -> Iterator[tree.Node]:
    """Yield all nodes of questions; what the plan refuses has none."""
    for text in texts:
        with suppress(QueryRefused):
            for one in parse(text, VISITS).queries:
                waiting: list[tree.Node] = [one.query.source]
                waiting += [part for _, part in (*one.query.keys, *one.query.aggregates)]
                while waiting:
                    yield (node := waiting.pop())
                    waiting += tree.parts(node)


def _takes_a_text(signature: Signature) -> bool:
    """Return whether a function can be given a text that is not a constant."""
    for size in range(signature.least, (signature.most or signature.least) + 1):
        places = [place for place in range(size) if place not in signature.literal]
        for kinds in itertools.product(KINDS, repeat=size):
            with suppress(KindError):
                if any(kinds[place] is Kind.TEXT for place in places) and signature.kind(kinds):
                    return True
    return False


def _is_text(node: tree.Expression) -> bool:
    return node.kind is Kind.TEXT and not isinstance(node, tree.Literal)


def missing(asked: Sequence[str], functions: Mapping[str, Signature]) -> set[str]:
    """Return the functions, and the kinds of conversions, that take a text and are not asked for."""
    nodes = list(_nodes(_keys([one]).text for one in asked))
    calls = {
        one.function for one in nodes if isinstance(one, tree.Call) and any(map(_is_text, one.arguments))
    }
    casts = {str(one.kind) for one in nodes if isinstance(one, tree.Cast) and _is_text(one.operand)}
    wanted = {name for name, signature in functions.items() if _takes_a_text(signature)}
    return (wanted - calls) | ({str(kind) for kind in KINDS if kind is not Kind.TEXT} - casts)


def test_every_function_and_conversion_that_takes_a_text_is_asked_for() -> None:
    assert missing(ASKED, FUNCTIONS) == set()
    new = {**FUNCTIONS, "reverse": FUNCTIONS["lower"]}
    assert missing(ASKED, new) == {"reverse"}  # planted: a function without an example
    assert missing([one for one in ASKED if "TRIM" not in one], FUNCTIONS) == {"trim", "ltrim", "rtrim"}


def test_every_aggregate_that_takes_a_text_is_asked_for() -> None:
    forms = [_measures([one]).text for one in MEASURES] + [one.text for one in FORMS]
    nodes = list(_nodes(iter(forms)))
    of_texts = {
        one.function for one in nodes if isinstance(one, tree.Aggregate) and any(map(_is_text, one.arguments))
    }
    assert of_texts == frozenset(Function) - NOT_OF_TEXTS
    for function in NOT_OF_TEXTS:
        for name in function.record.names:
            many = ", ".join(["v.word"] * 2) if name.startswith(("co", "regr")) else "v.word"
            assert not list(_nodes(iter([_measures([f"{name}({many})"]).text]))), name
