"""Nothing is dropped in silence: whatever a question says is in its tree, in its SQL, or refused."""

from __future__ import annotations

import dataclasses
import random
import subprocess
import sys
from pathlib import Path

import pytest
from sqlglot import exp
from sqlglot.dialects.duckdb import DuckDB
from sqlglot.errors import ParseError

from sfumato.errors import QueryRefused
from sfumato.plan.dialect import parsed
from sfumato.plan.question import Statement
from sfumato.plan.request import Request
from sfumato.plan.sql import parse, request_of
from sfumato.plan.syntax import IGNORED
from sfumato.plan.tree import Aggregate
from tests.plan.example import CATALOG, accepted, refused

# What may be said without changing what was asked.
HARMLESS = {
    ("Identifier", "quoted"),  # names are found without regard to case
    ("Cast", "safe"),  # every conversion is safe here
    ("DataType", "nested"),  # says again that a type is a list, and lists are refused
}
COMPARED = (exp.Between, exp.In, exp.Predicate)
UNSEEN = {"Exists"}  # what EXISTS selects does not matter to it


def test_whatever_the_parser_could_add_to_a_node_is_noticed() -> None:
    """Put something into every empty argument of every class of node that accepted questions contain.

    The request must then be refused or differ. A peer that dropped FILTER, DISTINCT or OVER fails this.
    """
    seen: set[tuple[str, str, str, str]] = set()
    for text, _ in accepted():
        if "DIFFERENTIAL_PRIVACY" in text or "contribution_bounds" in text:
            continue  # cut out before parsing
        (tree,) = parsed(text.rstrip(";"))
        assert tree is not None
        plain = request_of(tree, Statement(text, CATALOG))
        for position, node in enumerate(tree.walk()):
            parent = type(node.parent).__name__
            if parent in UNSEEN or (
                isinstance(node.parent, exp.Select) and type(node.parent.parent).__name__ in UNSEEN
            ):
                continue
            for name in type(node).arg_types:
                if node.args.get(name) or name in IGNORED.get(type(node), ()):
                    continue
                if (type(node).__name__, name) in HARMLESS:
                    continue
                if name == "is_string" and isinstance(node.parent, COMPARED):
                    continue  # age < '18' is age < 18
                for value in (True, exp.Placeholder(this="sentinel")):
                    key = (type(node).__name__, parent, name, type(value).__name__)
                    if key not in seen:
                        seen.add(key)
                        assert noticed(tree, position, name, value, text, plain), key
    assert len(seen) > 1500


def noticed(
    tree: exp.Expr, position: int, name: str, value: bool | exp.Expr, text: str, plain: Request
) -> bool:
    changed = tree.copy()
    node = next(node for at, node in enumerate(changed.walk()) if at == position)
    try:
        node.set(name, value)
        return request_of(changed, Statement(text, CATALOG)) != plain  # type: ignore[arg-type]
    except (QueryRefused, AttributeError, TypeError, ValueError):
        return True  # refused, or no parser could have made such a node


ADDED = [
    ("COUNT(*)", "COUNT(*) FILTER (WHERE age > 1)"),
    ("COUNT(*)", "COUNT(DISTINCT age)"),
    ("COUNT(*)", "COUNT(*) OVER ()"),
    ("COUNT(*)", "COUNT(age)"),
    ("SUM(income)", "SUM(DISTINCT income)"),
    ("SUM(income)", "SUM(income) FILTER (WHERE member)"),
    ("SUM(income)", "SUM(income ORDER BY age)"),
    ("SUM(income)", "SUM(income) IGNORE NULLS"),
    ("SUM(income)", "SUM(income, contribution_bounds_per_row => (0, 1))"),
    ("SELECT", "SELECT DISTINCT"),
    ("SELECT", "SELECT DISTINCT ON (region)"),
    ("FROM people", "FROM people TABLESAMPLE 10%"),
    ("FROM people", "FROM people WHERE age > 3"),
    ("FROM people", "FROM people CROSS JOIN regions r"),
    ("FROM people", "FROM ONLY people"),
    ("GROUP BY region", "GROUP BY ROLLUP(region)"),
    ("GROUP BY region", "GROUP BY region WITH TOTALS"),
    ("GROUP BY region", "GROUP BY region, job"),
    ("ORDER BY region", "ORDER BY region DESC"),
    ("ORDER BY region", "ORDER BY region NULLS FIRST"),
    ("ORDER BY region", "ORDER BY region LIMIT 1"),
    ("ORDER BY region", "ORDER BY region LIMIT 1 OFFSET 1"),
    ("ORDER BY region", "ORDER BY region LIMIT 10%"),
    ("ORDER BY region", "ORDER BY region FETCH FIRST 1 ROWS WITH TIES"),
    ("ORDER BY region", "ORDER BY region FOR UPDATE"),
    ("ORDER BY region", "HAVING COUNT(*) > 1 ORDER BY region"),
    ("ORDER BY region", "QUALIFY row_number() OVER () = 1 ORDER BY region"),
    ("ORDER BY region", "ORDER BY region USING SAMPLE 3"),
]


@pytest.mark.parametrize(("part", "more"), ADDED, ids=lambda text: text)
def test_a_clause_more_is_another_request(part: str, more: str) -> None:
    text = "SELECT region, COUNT(*) AS n, SUM(income) AS s FROM people GROUP BY region ORDER BY region"
    plain = parse(text, CATALOG)
    changed = text.replace(part, more)
    assert changed != text
    try:
        request = parse(changed, CATALOG)
    except QueryRefused:
        return
    assert dataclasses.replace(request, text="") != dataclasses.replace(plain, text="")
    assert [query.query for query in request.queries] != [
        query.query for query in plain.queries
    ] or request.postprocessing != plain.postprocessing


def test_mixed_up_questions_are_refused_and_never_fail_otherwise() -> None:
    """Pieces of one question put into another: the outcome is a request or a refusal, nothing else."""
    draw = random.Random(3)
    texts = [text for text, _ in accepted()] + [text for text, _, _ in refused()]
    pieces = [text.replace("(", " ( ").replace(")", " ) ").replace(",", " , ").split() for text in texts]
    outcomes = {"request": 0, "refusal": 0}
    for _ in range(3000):
        words, others = list(draw.choice(pieces)), draw.choice(pieces)
        at, start = draw.randrange(len(words)), draw.randrange(len(others))
        words[at : at + draw.randint(0, 3)] = others[start : start + draw.randint(0, 8)]
        try:
            parse(" ".join(words), CATALOG)
            outcomes["request"] += 1
        except QueryRefused:
            outcomes["refusal"] += 1
    assert outcomes["request"] > 20


def test_filter_and_distinct_are_in_the_tree() -> None:
    """The planted bug: an aggregate read without its FILTER, or COUNT without its DISTINCT."""

    def only(text: str) -> Aggregate:
        ((_, aggregate),) = parse(text, CATALOG).queries[0].query.aggregates
        return aggregate

    plain = only("SELECT COUNT(job) FROM people")
    assert only("SELECT COUNT(job) FILTER (WHERE age > 3) FROM people") != plain
    assert only("SELECT COUNT(DISTINCT job) FROM people") != plain
    both = only("SELECT COUNT(DISTINCT job) FILTER (WHERE age > 3) FROM people")
    assert both.where is not None and both.function.label == "count(distinct)"
    inner = "SELECT AVG(n) FROM (SELECT uid, COUNT({}) {} AS n FROM people GROUP BY uid)"
    forms = [("job", ""), ("DISTINCT job", ""), ("job", "FILTER (WHERE age > 3)")]
    sources = [parse(inner.format(*form), CATALOG).queries[0].query.source for form in forms]
    assert len(set(sources)) == 3


def test_reading_a_question_opens_no_engine_and_no_file() -> None:
    code = """
import builtins, io, sys
from sfumato.plan.sql import parse
from tests.plan.example import CATALOG
def forbidden(*arguments, **options):
    raise AssertionError("a file was opened")
parse("SELECT COUNT(*) FROM people", CATALOG)  # loads what is loaded late
builtins.open = io.open = forbidden
parse("SELECT region, AVG(age) FROM people JOIN visits ON uid = pid GROUP BY region", CATALOG)
try:
    parse("SELECT COUNT(*) FROM read_csv('/etc/passwd')", CATALOG)
except Exception as error:
    assert "SF403" in str(error)
assert "duckdb" not in sys.modules and "pyarrow" not in sys.modules
"""
    root = Path(__file__).parent.parent.parent
    environment = {"PYTHONPATH": f"{root / 'src'}:{root}"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, cwd=root)


def test_no_call_loses_an_argument() -> None:
    """Whatever function the parser knows, with up to four arguments: each of them is in its tree, or refused.

    LOG2(x, 3), MOD(x, 2, 3) and others were read without their last argument.
    """
    parser = DuckDB.Parser
    for name in {*parser.FUNCTIONS, *parser.FUNCTION_PARSERS}:
        for many in range(1, 5):
            arguments = [f"a{place}" for place in range(many)]
            try:
                [tree] = parsed(f"SELECT {name}({', '.join(arguments)})")
            except (ParseError, IndexError):  # a builder may stumble
                continue
            assert all(one in repr(tree) for one in arguments), (name, many)
